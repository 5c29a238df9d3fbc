/** The learnt correlation of every pair of features. */

import { h, s, say, set } from "./dom.js";
import { featureName, fixed } from "./format.js";

export const DRAWN_IN_FULL = 64;
export const NOT_ASKED_ABOVE = 256; // features: the matrix would be megabytes, every time
const STEPS = 20; // of colour, each way
const touched = matchMedia("(hover: none)");
const LABELLED = 16; // rows, at the most, with their names beside them

/** Correlations of a covariance; a feature that does not vary has none. */
export function correlations(sigma) {
  const deviation = sigma.map((row, i) => Math.sqrt(Math.max(0, row[i])));
  return sigma.map((row, i) =>
    row.map((value, j) => {
      const scale = deviation[i] * deviation[j];
      return scale > 0 ? Math.max(-1, Math.min(1, value / scale)) : i === j ? 1 : 0;
    }),
  );
}

/** The features that have the most to say about another, in their own order. */
export function mostTelling(matrix, many) {
  const strongest = matrix.map((row, i) => ({
    place: i,
    most: Math.max(0, ...row.map((value, j) => (i === j ? 0 : Math.abs(value)))),
  }));
  strongest.sort((a, b) => b.most - a.most);
  return strongest
    .slice(0, many)
    .map(({ place }) => place)
    .sort((a, b) => a - b);
}

export class HeatMap {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.places = [];
    this.at = null;
    this.cells = s("g");
    this.cursor = s("rect", { class: "heat-cursor", width: 1, height: 1, visibility: "hidden" });
    this.svg = s("svg", { "aria-hidden": "true" }, this.cells, this.cursor);
    this.labels = h("div", { class: "heat-labels", "aria-hidden": "true" });
    this.frame = h("div", { class: "heat-frame", role: "img", tabindex: "0" }, this.svg);
    this.said = h("output", { class: "heat-said" }, " ");
    this.note = h("p", { class: "hint", hidden: true });
    const legend = h(
      "p",
      { class: "heat-legend" },
      h("span", {}, "−1 opposite"),
      h("span", { class: "heat-ramp" }),
      h("span", {}, "alike 1"),
    );
    this.empty = h("p", { class: "chart-empty" });
    this.drawn = h("div", { class: "heat-drawn" }, this.labels, this.frame);
    root.append(this.drawn, this.said, legend, this.note, this.empty);
    // A tap is a pointer that comes down, does not move, and leaves at once.
    for (const kind of ["pointerdown", "pointermove"]) {
      this.frame.addEventListener(kind, (event) => this.pointAt(event));
    }
    this.frame.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.leave();
    });
    this.frame.addEventListener("blur", () => this.leave());
    this.frame.addEventListener("focus", () => this.at ?? this.move(0, 0));
    this.frame.addEventListener("keydown", (event) => this.step(event));
    this.clear();
  }

  clear() {
    this.matrix = null;
    this.root.classList.add("has-none");
    say(this.empty, "");
    this.leave();
  }

  /** Nothing to draw, and why. */
  explain(why) {
    this.clear();
    this.root.classList.remove("has-none");
    this.root.classList.add("has-why");
    say(this.empty, why);
  }

  /** @param {number[][]} sigma @param {string[]|null} names */
  show(sigma, names) {
    const matrix = correlations(sigma);
    const many = matrix.length;
    const places =
      many <= DRAWN_IN_FULL ? matrix.map((_, i) => i) : mostTelling(matrix, DRAWN_IN_FULL);
    this.root.classList.remove("has-none", "has-why");
    this.note.hidden = many <= DRAWN_IN_FULL;
    say(
      this.note,
      `${many} features: drawn are the ${DRAWN_IN_FULL} with the strongest correlations.`,
    );
    if (String(places) !== String(this.places)) this.lay(places);
    Object.assign(this, { matrix, names, places });
    this.paint();
    const label = (place) => featureName(names, place);
    this.labels.replaceChildren(
      ...(places.length <= LABELLED ? places : []).map((place) =>
        h("bdi", { class: "named" }, label(place)),
      ),
    );
    set(this.frame, { "aria-label": this.summary() });
    if (this.at) this.move(...this.at);
  }

  lay(places) {
    const n = places.length;
    this.leave();
    set(this.svg, { viewBox: `0 0 ${n} ${n}` });
    this.drawn.style.setProperty("--rows", n);
    this.root.classList.toggle("fine", n > 24);
    const cell = (_, k) => s("rect", { x: k % n, y: Math.floor(k / n), width: 1, height: 1 });
    this.cells.replaceChildren(...Array.from({ length: n * n }, cell));
  }

  paint() {
    let k = 0;
    for (const i of this.places) {
      for (const j of this.places) {
        const cell = this.cells.children[k];
        const step = i === j ? "self" : Math.round(this.matrix[i][j] * STEPS);
        if (cell.step !== step) {
          cell.step = step;
          cell.style.fill = step === "self" ? "none" : colour(step);
        }
        k += 1;
      }
    }
  }

  summary() {
    let best = null;
    for (const i of this.places) {
      for (const j of this.places) {
        if (i < j && (!best || Math.abs(this.matrix[i][j]) > Math.abs(best.value))) {
          best = { i, j, value: this.matrix[i][j] };
        }
      }
    }
    const many = this.places.length;
    const start = `Correlations of ${many} features. Arrow keys go from pair to pair.`;
    if (!best) return start;
    return `${start} The strongest: ${this.pair(best.i, best.j)}.`;
  }

  pair(i, j) {
    const [one, other] = [featureName(this.names, i), featureName(this.names, j)];
    return i === j
      ? `${one} with itself: 1`
      : `${one} and ${other}: ${fixed(this.matrix[i][j], 2)}`;
  }

  pointAt(event) {
    if (this.matrix === null) return;
    const { left, top, width } = this.svg.getBoundingClientRect();
    const place = (offset) => Math.floor((offset / width) * this.places.length);
    this.move(place(event.clientY - top), place(event.clientX - left));
  }

  step(event) {
    const ways = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const way = ways[event.key];
    if (!way || this.matrix === null) return;
    event.preventDefault();
    const [row, column] = this.at ?? [0, 0];
    this.move(row + way[0], column + way[1]);
  }

  move(row, column) {
    if (this.matrix === null) return;
    const within = (k) => Math.max(0, Math.min(this.places.length - 1, k));
    this.at = [within(row), within(column)];
    const [i, j] = this.at;
    set(this.cursor, { x: j, y: i, visibility: null });
    say(this.said, this.pair(this.places[i], this.places[j]));
  }

  leave() {
    this.at = null;
    set(this.cursor, { visibility: "hidden" });
    say(this.said, touched.matches ? "Tap a pair." : "Point at a pair, or use the arrow keys.");
  }
}

function colour(step) {
  const side = step < 0 ? "var(--heat-low)" : "var(--heat-high)";
  const share = Math.round((100 * Math.abs(step)) / STEPS);
  return `color-mix(in oklab, ${side} ${share}%, var(--heat-none))`;
}
