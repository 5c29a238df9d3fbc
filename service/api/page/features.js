/** One row per feature: how often it is seen, and what it weighs, with its uncertainty. */

import { byId, h, Keyed, named, s, say, set } from "./dom.js";
import { featureName, fixed, NONE, number, percent, placesFor } from "./format.js";

const AT_FIRST = 24; // rows; the rest on demand
const CONSTANT = -1;
const WIDTH = 100; // of a drawing, in its own units: it stretches with its column

export class Features {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.all = false;
    this.order = byId("order");
    this.order.addEventListener("change", () => this.draw());
    const head = ["Feature", "Observed", "Weight θ̂ ± width"];
    this.body = h("tbody");
    this.rows = new Keyed(this.body, makeRow, (row, item) => this.update(row, item));
    this.more = h("button", { type: "button", class: "quiet", hidden: true });
    this.more.addEventListener("click", () => {
      this.all = !this.all;
      this.draw();
    });
    this.scale = h("p", { class: "hint" });
    this.table = h(
      "table",
      { class: "feature-table" },
      h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
      this.body,
    );
    root.append(this.table, this.more, this.scale);
    this.clear();
  }

  clear() {
    Object.assign(this, { statistics: null, model: null, all: false });
    this.rows.show([], () => 0);
    this.more.hidden = true;
    say(this.scale, "");
    this.root.classList.add("has-none");
  }

  show({ statistics = this.statistics, model = this.model }) {
    Object.assign(this, { statistics, model });
    this.draw();
  }

  draw() {
    if (this.statistics === null) return;
    const { dimension, features, observed_rate: observed, arms } = this.statistics;
    const { theta, uncertainty } = this.model ?? {};
    this.root.classList.remove("has-none");
    const items = Array.from({ length: dimension }, (_, place) => ({
      place,
      name: featureName(features, place),
      observed: arms ? observed[place] : null,
      theta: theta?.[place + 1] ?? null,
      width: uncertainty?.[place + 1] ?? null,
    }));
    if (this.order.value === "observed") items.sort((a, b) => a.observed - b.observed);
    if (this.order.value === "weight") items.sort((a, b) => Math.abs(b.theta) - Math.abs(a.theta));
    const shown = this.all ? items : items.slice(0, AT_FIRST);
    const constant = {
      ...{ place: CONSTANT, name: "constant", observed: null },
      ...{ theta: theta?.[0] ?? null, width: uncertainty?.[0] ?? null },
    };
    const drawn = [constant, ...shown];
    // One scale for all rows, with room for every whisker and for zero.
    this.reach = Math.max(1e-9, ...drawn.map((i) => Math.abs(i.theta ?? 0) + (i.width ?? 0)));
    this.places = placesFor(this.reach);
    // One width for the numbers of all rows, so that the drawings beside them have one, too.
    const longest = Math.max(...drawn.map((item) => this.weight(item).length));
    this.table.style.setProperty("--weight-chars", longest);
    this.rows.show(drawn, (item) => item.place);
    this.more.hidden = dimension <= AT_FIRST;
    say(this.more, this.all ? `Only ${AT_FIRST}` : `All ${dimension} features`);
    say(
      this.scale,
      theta
        ? `Weights from ${this.write(-this.reach)} to ${this.write(this.reach)}, the line is 0; ` +
            "the bar is ± √(V⁻¹)ⱼⱼ: a standard error where the noise of rewards is 1."
        : "",
    );
  }

  write(weight) {
    return this.reach < 1e4 ? fixed(weight, this.places) : number(weight, 2);
  }

  weight({ theta, width }) {
    return theta === null ? NONE : `${this.write(theta)} ± ${this.write(width ?? 0)}`;
  }

  update(row, { name, place, observed, theta, width }) {
    const { bar, rate, whisker, dot, value, label, drawing } = row.parts;
    say(label, name);
    set(label, { title: name });
    row.classList.toggle("constant", place === CONSTANT);
    bar.style.width = `${100 * (observed ?? 0)}%`;
    say(rate, place === CONSTANT ? "always 1" : percent(observed, 0));
    bar.parentElement.hidden = place === CONSTANT;
    const x = (weight) => (WIDTH / 2) * (1 + weight / this.reach);
    set(drawing, { visibility: theta === null ? "hidden" : null });
    if (theta !== null) {
      set(whisker, { x1: x(theta - (width ?? 0)), x2: x(theta + (width ?? 0)) });
      set(dot, { x1: x(theta), x2: x(theta) });
    }
    say(value, this.weight({ theta, width }));
  }
}

function makeRow(item) {
  const label = named(item.name);
  const bar = h("span", { class: "bar-fill" });
  const rate = h("span", { class: "num" });
  const value = h("span", { class: "num" });
  const zero = { x1: WIDTH / 2, x2: WIDTH / 2, y1: 0, y2: 20, class: "zero" };
  const whisker = s("line", { class: "whisker", y1: 10, y2: 10 });
  // A round cap on a line without length is a dot that does not stretch with the drawing.
  const dot = s("line", { class: "estimate", y1: 10, y2: 10 });
  const marks = s("g", {}, whisker, dot);
  const drawing = s(
    "svg",
    { viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: "none", "aria-hidden": "true" },
    s("line", zero),
    marks,
  );
  const row = h(
    "tr",
    {},
    h("th", { scope: "row" }, label),
    h("td", {}, h("div", { class: "cell" }, h("span", { class: "bar-track" }, bar), rate)),
    h("td", {}, h("div", { class: "cell" }, drawing, value)),
  );
  row.parts = { label, bar, rate, whisker, dot, value, drawing: marks };
  return row;
}
