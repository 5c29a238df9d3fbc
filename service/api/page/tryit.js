/** A dry run: arms as a grid of fields or as JSON, and what the learner would choose. */

import { send } from "./api.js";
import { byId, h, named, say, set } from "./dom.js";
import { Explained } from "./explained.js";
import { featureName, many, number, sentence } from "./format.js";

const WIDEST_GRID = 64; // features; above that, JSON
const ARMS = 3;

export class TryIt {
  constructor() {
    this.root = byId("try");
    this.clear();
  }

  clear() {
    Object.assign(this, { dimension: null, names: null, model: null });
    this.root.replaceChildren(h("div", { class: "loading-block" }));
  }

  /** Laid out anew only when the learner's features are others: nobody's typing is lost. */
  show(statistics) {
    this.learner = statistics.name;
    this.policy = statistics.policy;
    const same = String(this.names) === String(statistics.features);
    if (same && this.dimension === statistics.dimension) return;
    this.dimension = statistics.dimension;
    this.names = statistics.features;
    this.lay();
    for (let k = 0; k < ARMS; k += 1) this.addArm();
    this.example();
  }

  /** What an example may be drawn from. */
  learn(model, observed) {
    const first = !this.model && model.nu;
    Object.assign(this, { model, observed });
    if (first && this.untouched) this.example();
  }

  lay() {
    const names = Array.from({ length: this.dimension }, (_, j) => featureName(this.names, j));
    const heads = names.map((name) => h("th", { scope: "col" }, named(name)));
    this.untouched = true;
    this.rows = h("tbody");
    this.grid = h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": "Arms and their features" },
      h(
        "table",
        { class: "try-grid" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "Arm"),
            ...heads,
            h("th", {}, h("span", { class: "unseen" }, "Remove")),
          ),
        ),
        this.rows,
      ),
    );
    this.json = h("textarea", { rows: 8, spellcheck: "false", "aria-label": "Arms as JSON" });
    this.text = h("details", { class: "paste" }, h("summary", {}, "As JSON"), this.json);
    this.wide = this.dimension > WIDEST_GRID;
    this.grid.hidden = this.wide;
    this.text.open = this.wide;
    this.add = button("Add an arm", () => this.addArm());
    this.add.hidden = this.wide;
    this.go = h("button", { type: "submit", class: "main" }, "Choose (dry run)");
    this.error = h("p", { class: "error", role: "alert" });
    this.answer = h("div", { class: "answer" });
    this.explained = null;
    this.form = h(
      "form",
      { novalidate: true },
      this.grid,
      this.text,
      h(
        "p",
        { class: "row" },
        this.go,
        this.add,
        button("Another example", () => this.example()),
      ),
      this.error,
    );
    this.root.replaceChildren(this.form, this.answer);
    this.grid.addEventListener("input", () => {
      this.untouched = false;
      this.toJson();
    });
    this.json.addEventListener("input", () => {
      this.untouched = false;
      this.fromJson();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
  }

  addArm(id = this.freeName(), values = []) {
    const field = (label, value, wide) =>
      h("input", {
        ...{ type: "text", autocomplete: "off", spellcheck: "false", "aria-label": label },
        ...{ value, size: wide ? 12 : 6, inputmode: wide ? null : "decimal" },
      });
    const cells = Array.from({ length: this.wide ? 0 : this.dimension }, (_, j) => {
      const label = `${featureName(this.names, j)} of arm ${this.rows.childElementCount + 1}`;
      const input = field(label, values[j] ?? "");
      input.placeholder = "missing";
      return h("td", {}, input);
    });
    const remove = button("×", () => {
      row.remove();
      this.toJson();
    });
    set(remove, { class: "quiet", "aria-label": `Remove arm ${this.rows.childElementCount + 1}` });
    const name = field(`Name of arm ${this.rows.childElementCount + 1}`, id, true);
    const row = h("tr", {}, h("th", { scope: "row" }, name), ...cells, h("td", {}, remove));
    this.rows.append(row);
    this.toJson();
  }

  freeName() {
    const taken = new Set([...this.rows.children].map((row) => row.querySelector("input").value));
    let n = 1;
    while (taken.has(`arm-${n}`)) n += 1;
    return `arm-${n}`;
  }

  /** Arms as the learner is used to them: drawn about what it has seen, with holes as often. */
  example() {
    const { nu, sigma } = this.model ?? {};
    const draw = (j) => {
      if (Math.random() > (this.observed?.[j] ?? 0.7)) return null;
      const spread = sigma ? Math.sqrt(Math.max(0, sigma[j][j])) : 0.3;
      return Number(((nu?.[j] ?? 0.5) + spread * gaussian()).toFixed(2));
    };
    const many = this.wide ? ARMS : Math.max(1, this.rows.childElementCount);
    const arms = Array.from({ length: many }, (_, k) => ({
      id: this.rows.children[k]?.querySelector("input").value ?? `arm-${k + 1}`,
      features: Array.from({ length: this.dimension }, (_, j) => draw(j)),
    }));
    this.json.value = written(arms);
    this.fromJson();
  }

  toJson() {
    if (this.wide) return;
    this.json.value = written([...this.rows.children].map((row) => armOf(row)));
    this.forgive();
  }

  forgive() {
    say(this.error, "");
    for (const input of this.rows.querySelectorAll("[aria-invalid]")) {
      set(input, { "aria-invalid": null });
    }
  }

  /** What went wrong; an answer to something else is not left beside it. */
  fail(error) {
    say(this.error, sentence(error.message));
    this.answer.replaceChildren();
    this.explained = null;
  }

  /** Into the grid where it fits; the JSON is what is sent in any case. */
  fromJson() {
    let arms;
    try {
      arms = parsed(this.json.value);
    } catch (error) {
      this.fail(error);
      return;
    }
    this.forgive();
    if (this.wide) return;
    const text = this.json.value;
    this.rows.replaceChildren();
    arms.forEach((arm, k) => {
      const given = Array.isArray(arm.features)
        ? arm.features
        : (this.names ?? []).map((name) => arm.features?.[name]);
      const values = given.map((value, j) => (arm.mask?.[j] === 0 ? "" : (value ?? "")));
      this.addArm(arm.id ?? String(k), values);
    });
    this.json.value = text;
  }

  async run() {
    this.forgive();
    this.go.disabled = true;
    try {
      const arms = parsed(this.json.value);
      arms.forEach((arm, k) => this.checkNumbers(arm, k));
      const body = { learner: this.learner, arms, dry_run: true };
      const answer = await (await send("select", { method: "POST", body })).json();
      if (answer.learner === this.learner) this.tell(answer);
    } catch (error) {
      this.fail(error);
    }
    this.go.disabled = false;
  }

  /** Whatever else may be wrong with an arm, the service says. */
  checkNumbers({ id, features }, k) {
    for (const [at, value] of Object.entries(features ?? {})) {
      if (value === null || typeof value === "number") continue;
      const place = Array.isArray(features) ? Number(at) : (this.names ?? []).indexOf(at);
      const input = this.rows.children[k]?.querySelectorAll("td input")[place];
      if (input) set(input, { "aria-invalid": "true" });
      const name = place < 0 ? at : featureName(this.names, place);
      throw new Error(`${id ?? `arm ${k + 1}`}, ${name}: not a number.`);
    }
  }

  tell(answer) {
    if (this.explained === null) {
      this.said = h("p", { class: "said", role: "status" });
      this.answer.replaceChildren(this.said);
      this.explained = new Explained(this.answer);
    }
    this.said.replaceChildren(
      ...["It would choose ", named(answer.arm), " with probability "],
      `${number(answer.probability, 2)}, from ${many(answer.model_version, "reward")}`,
      answer.degraded ? " (the store is away)." : ".",
    );
    this.explained.show(answer.arms, answer, { names: this.names, policy: this.policy });
  }
}

const button = (text, click) => h("button", { type: "button", on: { click } }, text);

/** One arm to a line. */
const written = (arms) => `[${arms.map((arm) => JSON.stringify(arm)).join(",\n ")}]`;

/** Arms, or a whole select that has them. */
function parsed(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("This is not JSON that can be read.");
  }
  const arms = Array.isArray(value) ? value : value?.arms;
  if (!Array.isArray(arms) || arms.some((arm) => arm === null || typeof arm !== "object")) {
    throw new Error('A list of arms is wanted: [{"features": […]}, …]');
  }
  return arms;
}

/** What is no number stays text, and is refused when it is sent. */
function armOf(row) {
  const [id, ...values] = [...row.querySelectorAll("input")].map((input) => input.value.trim());
  const features = values.map((text) => {
    if (text === "") return null;
    const value = Number(text.replace("−", "-"));
    return Number.isFinite(value) ? value : text;
  });
  return { ...(id ? { id } : {}), features };
}

function gaussian() {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}
