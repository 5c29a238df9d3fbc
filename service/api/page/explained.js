/** Why an arm was chosen: what each arm was worth, and what it was judged by. */

import { h, Keyed, named, s, say, set } from "./dom.js";
import { column, featureName, fixed, number, placesFor } from "./format.js";

/** @param {string|undefined} policy */
export const completesNothing = (policy) => policy === "oful" || policy === "random";
export const COMPLETES_NOTHING = "This policy completes nothing: a missing feature counts as 0.";

const AT_FIRST = 12; // arms
const WIDTH = 100; // of a bar's drawing, in its own units

/**
 * @typedef {{id: string, score: number|null, mean: number|null, bonus: number|null,
 *   observed: number[], features: (number|null)[]}} Arm
 * @typedef {{names: string[]|null, policy: string|undefined}} Of the learner
 */
export class Explained {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.all = false;
    this.arms = [];
    this.worths = h("tbody");
    this.rows = new Keyed(this.worths, makeRow, (row, item) => this.update(row, item));
    const head = ["Arm", "Mean + bonus", "Mean", "Bonus", "Score"];
    this.bars = h(
      "table",
      { class: "arms" },
      h("caption", { class: "unseen" }, "What each arm was worth"),
      h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
      this.worths,
    );
    this.more = h("button", { type: "button", class: "quiet" });
    this.more.addEventListener("click", () => {
      this.all = !this.all;
      this.draw();
    });
    this.drawnAtRandom = h("p", { class: "hint" });
    this.bonus = h("span", { class: "key key-bonus" });
    this.sample = h("span", { class: "filled" });
    this.filling = h("span", { class: "filling" });
    this.grid = h("table", { class: "completed" });
    this.root = h(
      "div",
      { class: "explained" },
      h(
        "p",
        { class: "legend" },
        h("span", { class: "key key-worth" }, "mean"),
        this.bonus,
      ),
      this.bars,
      this.drawnAtRandom,
      this.more,
      h("p", { class: "legend" }, this.sample, this.filling),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": "Features of each arm" },
        this.grid,
      ),
    );
    root.append(this.root);
  }

  /**
   * @param {Arm[]} arms
   * @param {{index: number, probability: number}} choice `index`: the place of the chosen arm
   * @param {Of} learner
   */
  show(arms, { index, probability }, { names, policy }) {
    this.arms = arms.map((arm, place) => ({ ...arm, place, chosen: place === index }));
    // The best first; the sort is stable, so equals stay as they were sent.
    this.arms.sort((a, b) => (b.score ?? 0) - (a.score ?? 0));
    this.names = names;
    this.completes = !completesNothing(policy);
    const best = this.arms[0]?.score ?? 0;
    const atRandom = policy === "random" || (arms[index]?.score ?? 0) < best;
    this.drawnAtRandom.hidden = !atRandom;
    say(this.drawnAtRandom, `Drawn at random, with probability ${number(probability, 2)}.`);
    say(
      this.bonus,
      policy === "thompson" ? "bonus, drawn from the uncertainty" : "bonus for what is uncertain",
    );
    say(this.sample, this.completes ? "≈ 0.5" : "≈ 0");
    const filled = "was missing, and is completed from what the others say";
    say(this.filling, this.completes ? filled : COMPLETES_NOTHING);
    this.draw();
  }

  draw() {
    let shown = this.arms;
    if (!this.all && shown.length > AT_FIRST) {
      shown = shown.filter((arm, k) => k < AT_FIRST || arm.chosen);
    }
    const ends = shown.flatMap(({ mean, score }) => [mean ?? 0, score ?? 0]);
    const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
    const room = (high - low) * 0.02 || 1;
    this.x = (value) => (WIDTH * (value - low + room)) / (high - low + 2 * room);
    const crumbs = 1e-12 * Math.max(...ends.map(Math.abs)); // what rounding leaves of a 0
    this.columns = ["mean", "bonus", "score"].map((name) => {
      const whole = (value) => (value !== null && Math.abs(value) < crumbs ? 0 : value);
      const write = column(shown.map((arm) => whole(arm[name])));
      return (value) => write(whole(value));
    });
    this.rows.show(shown, (arm) => arm.place);
    this.more.hidden = this.arms.length <= AT_FIRST;
    say(this.more, this.all ? `Only the best ${AT_FIRST}` : `All ${this.arms.length} arms`);
    this.fillGrid(shown);
  }

  update(row, { id, mean, bonus, score, chosen }) {
    const { label, worth, extra, end, zero, cells, mark } = row.parts;
    say(label, id);
    set(label, { title: id });
    row.classList.toggle("chosen", chosen);
    mark.hidden = !chosen;
    const span = (from, to) => {
      const [a, b] = [this.x(Math.min(from, to)), this.x(Math.max(from, to))];
      return { x: a, width: b - a };
    };
    set(worth, span(0, mean ?? 0));
    set(extra, span(mean ?? 0, score ?? 0));
    set(end, { x1: this.x(score ?? 0), x2: this.x(score ?? 0) });
    set(zero, { x1: this.x(0), x2: this.x(0) });
    [mean, bonus, score].forEach((value, k) => say(cells[k], this.columns[k](value)));
  }

  fillGrid(shown) {
    const names = shown[0]?.features.map((_, place) => featureName(this.names, place)) ?? [];
    const sizes = shown.flatMap((arm) => arm.features.map((value) => Math.abs(value ?? 0)));
    const places = placesFor(sizes.reduce((most, size) => Math.max(most, size), 0));
    const written = (value) =>
      value === null || Math.abs(value) >= 1e4 ? number(value, 2) : fixed(value, places);
    const cell = (arm) => (value, place) =>
      arm.observed[place]
        ? h("td", {}, written(value))
        : h(
            "td",
            { class: "filled" },
            h("span", { class: "unseen" }, this.completes ? "completed " : "missing "),
            `≈ ${written(value)}`,
          );
    this.grid.replaceChildren(
      h(
        "caption",
        { class: "unseen" },
        `Features of each arm, ${this.completes ? "completed" : "0"} where they were missing`,
      ),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Arm"),
          ...names.map((name) => h("th", { scope: "col" }, named(name))),
        ),
      ),
      h(
        "tbody",
        {},
        ...shown.map((arm) =>
          h(
            "tr",
            { class: arm.chosen ? "chosen" : null },
            h("th", { scope: "row" }, named(arm.id)),
            ...arm.features.map(cell(arm)),
          ),
        ),
      ),
    );
  }
}

function makeRow(arm) {
  const label = named(arm.id);
  const mark = h("span", { class: "mark" }, "chosen");
  const worth = s("rect", { class: "worth", y: 3, height: 14 });
  const extra = s("rect", { class: "extra", y: 6, height: 8 });
  const end = s("line", { class: "end", y1: 3, y2: 17 });
  const zero = s("line", { class: "zero", y1: 0, y2: 20 });
  const drawing = s(
    "svg",
    { viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...[zero, worth, extra, end],
  );
  const cells = [0, 1, 2].map(() => h("td", { class: "num" }));
  const row = h(
    "tr",
    {},
    h("th", { scope: "row" }, label, mark),
    h("td", { class: "bar-cell" }, drawing),
    ...cells,
  );
  row.parts = { label, mark, worth, extra, end, zero, cells };
  return row;
}
