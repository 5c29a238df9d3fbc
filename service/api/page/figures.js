/** The row of figures. */

import { h, say } from "./dom.js";
import { bytes, count, many, number, percent, plain, rate, seconds, span } from "./format.js";

const NO_DEFAULT = "no default reward";

/** What stands in each: its name, its value, and a line that says more. */
const FIGURES = [
  ["Selects per second", (s, now) => rate(now.selects), (s) => `${count(s.rounds)} so far`],
  ["Rewards per second", (s, now) => rate(now.rewards), (s) => `${count(s.rewards)} so far`],
  ["Mean reward", (s) => number(s.mean_reward), () => "of all so far"],
  ["Pending", (s) => count(s.pending), () => "reward to come"],
  [
    "Default share",
    (s) => percent(s.rewards && s.default_reward !== null ? s.defaults / s.rewards : null),
    (s) =>
      s.default_reward === null
        ? NO_DEFAULT
        : `${plain(s.default_reward)} after ${span(s.reward_wait_s ?? 0)}`,
  ],
  [
    "Late share",
    (s) => percent(came(s) && s.default_reward !== null ? s.late / came(s) : null),
    (s) => (s.default_reward === null ? NO_DEFAULT : `${count(s.late)} after the default`),
  ],
  ["Duplicates", (s) => count(s.duplicates), () => "sent again"],
  [
    "Staleness",
    (s) => seconds(s.staleness_s),
    (s) => `${many(s.workers, "worker")}, ${bytes(s.bytes_held)}`,
  ],
];

/** Rewards that callers sent, in time or not. */
const came = (s) => s.rewards - s.defaults + s.late;

export class Figures {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.cells = FIGURES.map(([name]) => {
      const value = h("span", { class: "value" }, "–");
      const more = h("span", { class: "more" }, " ");
      root.append(h("div", { class: "figure" }, h("dt", {}, name), h("dd", {}, value, more)));
      return { value, more };
    });
  }

  clear() {
    for (const { value, more } of this.cells) {
      say(value, "–");
      say(more, " ");
    }
  }

  /** @param {any} statistics @param {{selects: number|null, rewards: number|null}} rates */
  show(statistics, rates) {
    this.cells.forEach(({ value, more }, k) => {
      const [, of, about] = FIGURES[k];
      say(value, of(statistics, rates));
      say(more, about(statistics));
    });
  }
}
