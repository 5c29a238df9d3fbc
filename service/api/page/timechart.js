/** A chart over time: bands, lines, a grid, and a cursor for pointer and arrow keys. */

import { h, s, say, set } from "./dom.js";
import { labels, time, timeShort } from "./format.js";
import { roundLevels, timeTicks } from "./series.js";

const MARGIN = { top: 8, right: 12, bottom: 22, left: 48 };
let clips = 0;

/**
 * @typedef {{at: number, [name: string]: number|null}} Point
 * @typedef {{name: string, of: string, low?: string, high?: string}} Line `of`, `low` and `high`
 *   name fields of the points; `name` is its class
 * @typedef {{from: number, to: number, points: Point[], low: number, high: number,
 *   level?: number|null, summary: string}} Shown
 */
export class TimeChart {
  /**
   * @param {HTMLElement} root
   * @param {{label: string, lines: Line[], about: (point: Point) => string}} options
   */
  constructor(root, options) {
    Object.assign(this, { root, ...options });
    /** @type {Shown|null} */
    this.shown = null;
    this.cursor = null;
    const clip = `clip-${(clips += 1)}`;
    this.clip = s("rect");
    this.grid = s("g", { class: "grid" });
    this.level = s("line", { class: "level" });
    this.bands = this.lines.map((line) => s("path", { class: `band band-${line.name}` }));
    this.paths = this.lines.map((line) => s("path", { class: `line line-${line.name}` }));
    this.rule = s("line", { class: "rule" });
    this.dots = this.lines.map((line) => s("circle", { class: `dot dot-${line.name}`, r: 3.5 }));
    this.mark = s("g", { class: "cursor", visibility: "hidden" }, this.rule, ...this.dots);
    const drawn = s("g", { "clip-path": `url(#${clip})` }, ...this.bands, ...this.paths);
    this.svg = s(
      "svg",
      { "aria-hidden": "true" },
      s("defs", {}, s("clipPath", { id: clip }, this.clip)),
      ...[this.grid, this.level, drawn, this.mark],
    );
    this.empty = h("p", { class: "chart-empty", hidden: true });
    this.tip = h("output", { class: "tip", hidden: true });
    this.frame = h("div", { class: "frame", role: "img", tabindex: "0" }, this.svg, this.empty);
    root.replaceChildren(this.frame, this.tip);
    // A tap is a pointer that comes down, does not move, and leaves at once.
    for (const kind of ["pointerdown", "pointermove"]) {
      this.frame.addEventListener(kind, (event) => this.pointAt(event));
    }
    this.frame.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.leave();
    });
    this.frame.addEventListener("blur", () => this.leave());
    this.frame.addEventListener("keydown", (event) => this.step(event));
    new ResizeObserver(() => this.draw()).observe(root);
  }

  /** @param {Shown|null} shown null: nothing to draw yet @param {string} [why] */
  show(shown, why = "") {
    this.shown = shown;
    this.root.classList.toggle("has-none", shown === null);
    this.empty.hidden = !why;
    say(this.empty, why);
    set(this.frame, { "aria-label": shown ? `${this.label}. ${shown.summary}` : this.label });
    this.draw();
  }

  draw() {
    const [width, height] = [this.root.clientWidth, this.root.clientHeight];
    if (width === 0) return;
    set(this.svg, { width, height, viewBox: `0 0 ${width} ${height}` });
    const inside = { x: MARGIN.left, y: MARGIN.top };
    const across = Math.max(1, width - MARGIN.left - MARGIN.right);
    const up = Math.max(1, height - MARGIN.top - MARGIN.bottom);
    set(this.clip, { ...inside, width: across, height: up });
    if (this.shown === null) {
      this.grid.replaceChildren();
      set(this.level, { visibility: "hidden" });
      for (const path of [...this.bands, ...this.paths]) set(path, { d: null });
      this.leave();
      return;
    }
    const { from, to, points, low, high } = this.shown;
    const levels = roundLevels(low, high, up > 120 ? 4 : 2);
    const [bottom, top] = [levels[0], levels.at(-1)];
    this.x = (at) => inside.x + ((at - from) / (to - from)) * across;
    this.y = (value) => inside.y + (1 - (value - bottom) / (top - bottom)) * up;
    this.drawGrid(from, to, levels, width, inside.y + up);
    this.lines.forEach((line, k) => {
      set(this.paths[k], { d: trace(points, (p) => p[line.of], this.x, this.y) });
      set(this.bands[k], { d: line.low ? ribbon(points, line, this.x, this.y) : null });
    });
    if (this.cursor !== null) this.move(this.cursor);
  }

  drawGrid(from, to, levels, width, foot) {
    const right = width - MARGIN.right;
    const marks = timeTicks(from, to, Math.max(2, Math.floor(width / 110)));
    const fine = marks.length > 1 && marks[1] - marks[0] < 60;
    const said = labels(levels);
    this.grid.replaceChildren(
      ...levels.flatMap((value, k) => [
        s("line", { x1: MARGIN.left, x2: right, y1: this.y(value), y2: this.y(value) }),
        s("text", { x: MARGIN.left - 8, y: this.y(value), class: "tick-y" }, said[k]),
      ]),
      ...marks.map((at) =>
        s("text", { x: this.x(at), y: foot + 16, class: "tick-x" }, (fine ? time : timeShort)(at)),
      ),
    );
    const { level } = this.shown;
    const seen = typeof level === "number" && level >= levels[0] && level <= levels.at(-1);
    set(this.level, { visibility: seen ? null : "hidden" });
    if (seen) set(this.level, { x1: MARGIN.left, x2: right, y1: this.y(level), y2: this.y(level) });
  }

  pointAt(event) {
    if (this.shown === null) return;
    const left = this.svg.getBoundingClientRect().left;
    const { from, to } = this.shown;
    const share = (event.clientX - left - this.x(from)) / (this.x(to) - this.x(from));
    this.move(from + share * (to - from));
  }

  step(event) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way || !this.shown?.points.length) return;
    event.preventDefault();
    const { points } = this.shown;
    const here = this.cursor === null ? points.length - 1 : nearest(points, this.cursor) + way;
    this.move(points[Math.min(points.length - 1, Math.max(0, here))].at);
  }

  /** The cursor at the point nearest to a time. */
  move(at) {
    const { points, from } = this.shown;
    const point = points[nearest(points, at)];
    if (!point || point.at < from) return;
    this.cursor = at;
    const x = this.x(point.at);
    set(this.rule, { x1: x, x2: x, y1: MARGIN.top, y2: this.root.clientHeight - MARGIN.bottom });
    this.lines.forEach((line, k) => {
      const value = point[line.of];
      set(this.dots[k], {
        cx: x,
        cy: value === null ? 0 : this.y(value),
        visibility: value === null ? "hidden" : null,
      });
    });
    set(this.mark, { visibility: null });
    this.tip.hidden = false;
    say(this.tip, `${time(point.at)}   ${this.about(point)}`);
    const widest = this.root.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(widest, x - this.tip.offsetWidth / 2))}px`;
  }

  leave() {
    this.cursor = null;
    this.tip.hidden = true;
    set(this.mark, { visibility: "hidden" });
  }
}

function nearest(points, at) {
  let best = 0;
  points.forEach((point, k) => {
    if (Math.abs(point.at - at) < Math.abs(points[best].at - at)) best = k;
  });
  return best;
}

/** A line through the points, broken where there is no value. */
function trace(points, of, x, y) {
  let pen = "M";
  let d = "";
  for (const point of points) {
    const value = of(point);
    if (value === null) pen = "M";
    else {
      // A step of no length is drawn as a dot: a point may stand alone.
      const here = `${x(point.at).toFixed(1)} ${y(value).toFixed(1)}`;
      d += pen === "M" ? `M${here}h0` : `L${here}`;
      pen = "L";
    }
  }
  return d || null;
}

/** The area between two lines, one piece for every run of points that have both. */
function ribbon(points, { low, high }, x, y) {
  const pieces = [[]];
  for (const point of points) {
    if (point[low] === null) pieces.push([]);
    else pieces.at(-1).push(point);
  }
  return (
    pieces
      .filter((piece) => piece.length > 1)
      .map((piece) => {
        const back = piece
          .toReversed()
          .map((p) => `L${x(p.at).toFixed(1)} ${y(p[low]).toFixed(1)}`);
        return `${trace(piece, (p) => p[high], x, y)}${back.join("")}Z`;
      })
      .join("") || null
  );
}
