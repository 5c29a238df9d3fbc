/** The latest decisions, and one of them opened. */

import { get, learnerPath, Problem } from "./api.js";
import { byId, h, Keyed, named, say, set } from "./dom.js";
import { Explained } from "./explained.js";
import { count, number, sentence } from "./format.js";
import { Poll } from "./poll.js";

const OPEN_MS = 2_000;

/** What came of a decision, in words. */
export function outcome({ status, reward }) {
  if (status === "pending") return "pending";
  return status === "defaulted" ? `${number(reward, 2)} by default` : number(reward, 2);
}

export class Decisions {
  constructor() {
    this.root = byId("decisions");
    this.panel = byId("opened");
    this.hint = byId("decisions-hint");
    this.body = h("tbody");
    this.rows = new Keyed(this.body, (item) => this.makeRow(item), updateRow);
    const head = ["Round", "Arm", "Of", "Reward"].map((text) => h("th", { scope: "col" }, text));
    this.none = h(
      "p",
      { class: "hint", hidden: true },
      "None yet. Send a select, or wait for one.",
    );
    this.table = h("table", { class: "decision-table" }, h("thead", {}, h("tr", {}, ...head)));
    this.table.append(this.body);
    this.root.append(this.table, this.none);
    this.held = false;
    this.root.addEventListener("pointerenter", () => this.hold());
    this.root.addEventListener("pointerleave", () => this.release());
    this.root.addEventListener("focusin", () => this.hold());
    this.root.addEventListener("focusout", () => this.release());
    this.body.addEventListener("keydown", (event) => this.walk(event));
    for (const part of [this.root, this.panel]) {
      part.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && this.event) this.close();
      });
    }
    this.clear();
  }

  clear(learner = null) {
    Object.assign(this, { learner, of: { names: null }, latest: [] });
    this.held = false;
    this.rows.show([], () => "");
    this.none.hidden = true;
    say(this.hint, "");
    this.root.classList.add("has-none");
    this.close(false);
  }

  /** While somebody chooses from it, the list stays as it is; rewards still come in. */
  hold() {
    this.held = true;
    if (this.latest.length) say(this.hint, "held while you choose");
  }

  release() {
    if (this.root.matches(":hover") || this.root.contains(document.activeElement)) return;
    this.held = false;
    this.draw();
  }

  show(decisions) {
    this.latest = decisions.toSorted((a, b) => b.round - a.round);
    this.draw();
  }

  draw() {
    this.root.classList.remove("has-none");
    if (this.held && this.shown?.length) {
      const known = new Map(this.latest.map((one) => [one.event_id, one]));
      this.shown = this.shown.map((one) => known.get(one.event_id) ?? one);
    } else {
      this.shown = this.latest;
      say(this.hint, this.latest.length ? "newest first, a sample" : "");
    }
    this.none.hidden = this.shown.length > 0;
    this.table.hidden = this.shown.length === 0;
    this.rows.show(this.shown, (one) => one.event_id);
    this.rove();
  }

  makeRow(item) {
    const arm = named(item.arm);
    const button = h("button", { type: "button", class: "row-button" }, count(item.round));
    button.addEventListener("click", () => this.open(item.event_id, button));
    const reward = h("span", { class: "outcome" });
    const row = h(
      "tr",
      {},
      h("th", { scope: "row" }, button),
      h("td", {}, arm),
      h("td", { class: "num" }, count(item.arms)),
      h("td", { class: "num" }, reward),
    );
    row.parts = { button, reward };
    set(button, { "aria-label": `Round ${count(item.round)}, arm ${item.arm}` });
    row.event = item.event_id;
    return row;
  }

  /** One row is in the tab order, arrow keys do the rest. */
  rove() {
    const rows = [...this.body.children];
    const here = rows.find((row) => row.contains(document.activeElement));
    const stop = here ?? rows.find((row) => row.event === this.event) ?? rows[0];
    for (const row of rows) {
      const opened = row.event === this.event;
      set(row.parts.button, { tabindex: row === stop ? "0" : "-1", "aria-expanded": `${opened}` });
      row.classList.toggle("is-open", opened);
    }
  }

  walk(event) {
    const rows = [...this.body.children];
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || !rows[to]) return;
    event.preventDefault();
    rows[to].parts.button.focus();
    this.rove();
  }

  /** @param {string} event @param {HTMLElement} [from] gets the focus back */
  open(event, from) {
    this.poll?.stop();
    const learner = this.learner;
    Object.assign(this, { event, from });
    const title = h("h3", { tabindex: "-1" }, "Decision");
    const shut = h("button", { type: "button", class: "quiet", on: { click: () => this.close() } });
    say(shut, "Close");
    const facts = h("dl", { class: "facts" });
    const why = h("div", { class: "loading-block" });
    this.panel.replaceChildren(h("div", { class: "card-head" }, title, shut), facts, why);
    this.panel.dataset.open = "true";
    let explained = null;
    const path = learnerPath(learner, `/decisions/${encodeURIComponent(event)}`);
    const poll = new Poll(
      async (signal) => {
        const { decision, arms } = await get(path, signal);
        title.replaceChildren(`Round ${count(decision.round)}: `, named(decision.arm));
        tell(facts, decision);
        if (explained === null) {
          why.className = "";
          why.replaceChildren();
          if (arms === null) why.textContent = "Why is not kept for this one: only for a sample.";
          else (explained = new Explained(why)).show(arms, decision, this.of);
        }
        if (decision.status !== "pending") poll.stop();
      },
      OPEN_MS,
      (error) => {
        if (error === null) return;
        const gone = error instanceof Problem && error.status === 404;
        if (gone) poll.stop();
        else if (explained !== null) return; // what was shown stays
        explained = null;
        why.className = "hint";
        say(why, gone ? "This decision is no longer kept." : sentence(error.message));
      },
    );
    this.poll = poll.start();
    this.rove();
    title.focus();
  }

  close(refocus = true) {
    this.poll?.stop();
    const from = this.from;
    Object.assign(this, { poll: null, event: null, from: null });
    delete this.panel.dataset.open;
    this.panel.replaceChildren(
      h("p", { class: "hint" }, "Open a decision to see what each arm was worth, and why."),
    );
    if (refocus) (from?.isConnected ? from : this.body.querySelector("button"))?.focus();
    this.rove();
  }
}

function updateRow(row, item) {
  say(row.parts.reward, outcome(item));
  row.parts.reward.dataset.status = item.status;
}

function tell(facts, decision) {
  const lines = [
    ["Reward", outcome(decision)],
    ["Chosen", `1 of ${count(decision.arms)}`],
    ["Probability", number(decision.probability, 2)],
    ["Rewards learnt from by then", count(decision.model_version)],
    ["Event", decision.event_id],
    ...(decision.degraded ? [["Degraded", "chosen while the store was away"]] : []),
  ];
  if (facts.childElementCount !== lines.length) {
    facts.replaceChildren(
      ...lines.map(([name]) => h("div", {}, h("dt", {}, name), h("dd", {}, named("")))),
    );
    // The reward comes while somebody looks: that is worth saying aloud.
    set(facts.firstElementChild.lastElementChild, { "aria-live": "polite" });
  }
  lines.forEach(([, text], k) => {
    const value = facts.children[k].lastElementChild.firstElementChild;
    say(value, text);
    set(value, { title: text, "data-status": k === 0 ? decision.status : null });
  });
}
