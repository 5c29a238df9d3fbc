/** How the learner is, in one word; and what to say when something is not as it should be. */

import { Problem, Unreachable } from "./api.js";
import { byId, say } from "./dom.js";
import { sentence, time } from "./format.js";

const STALE_S = 5; // several times what an idle worker waits before it looks at the log again
const IDLE_S = 20;
const LONGEST_NAME = 63; // an address may hold anything

const NOTICES = {
  "no key": ["An API key is needed.", "Nothing can be shown without it.", "Enter key"],
  unreachable: ["The service does not answer.", "Trying again.", null],
  degraded: [
    "The store is away.",
    "Selects are answered from the last model, rewards are refused until it is back.",
    null,
  ],
  stale: ["The model is behind.", "This worker has not seen the latest rewards for a while.", null],
};

export class State {
  /** @param {() => void} enterKey */
  constructor(enterKey) {
    this.badge = byId("state");
    this.word = byId("state-text");
    this.button = byId("notice-act");
    this.button.addEventListener("click", enterKey);
    this.empty = false; // there is no learner at all
    /** One that was asked for is not there. @type {{wanted: string, shown: string}|null} */
    this.absent = null;
    /** What became of the last call of each kind. @type {Map<string, Error>} */
    this.errors = new Map();
    this.clear();
  }

  clear() {
    Object.assign(this, {
      statistics: null,
      shown_at: null,
      active_at: null,
      done: null,
      looks: 0,
    });
    this.errors.clear();
  }

  /** @param {string} kind @param {Error|null} error */
  report(kind, error) {
    if (error === null) this.errors.delete(kind);
    else this.errors.set(kind, error);
  }

  /** @param {any} statistics @param {number} at when, in seconds */
  seen(statistics, at) {
    const done = statistics.rounds + statistics.rewards;
    if (this.done !== null && done !== this.done) this.active(at);
    Object.assign(this, { statistics, shown_at: at, done, looks: this.looks + 1 });
  }

  /** Something happened then. */
  active(at) {
    this.active_at = Math.max(this.active_at ?? 0, at);
  }

  wordAt(now) {
    const errors = [...this.errors.values()];
    const problem = (test) => errors.some((one) => one instanceof Problem && test(one));
    if (problem((one) => one.status === 401)) return "no key";
    if (errors.some((one) => one instanceof Unreachable)) return "unreachable";
    if (problem((one) => one.type === "store-down") || this.statistics?.degraded) return "degraded";
    if (errors.length) return "error";
    if (this.statistics === null) return this.empty ? "no learner" : "loading";
    if (this.statistics.staleness_s > STALE_S) return "stale";
    if (this.active_at !== null && now - this.active_at < IDLE_S) return "learning";
    return this.looks < 2 ? "loading" : "idle"; // one look does not tell whether anything moves
  }

  absence() {
    if (this.absent === null) return null;
    const { wanted, shown } = this.absent;
    return [`There is no learner ${wanted.slice(0, LONGEST_NAME)}.`, `This is ${shown}.`, null];
  }

  /** @param {number} now in seconds */
  show(now) {
    const word = this.wordAt(now);
    this.badge.dataset.state = word.replace(" ", "-");
    say(this.word, word);
    const error = [...this.errors.values()][0];
    const trouble =
      word === "error" ? ["Something went wrong.", sentence(error.message), null] : NOTICES[word];
    byId("main").classList.toggle("away", Boolean(trouble) && this.shown_at === null);
    byId("learner").classList.toggle("dimmed", Boolean(trouble) && this.shown_at !== null);
    const notice = trouble ?? this.absence();
    byId("notice").hidden = !notice;
    if (!notice) return;
    const [title, text, act] = notice;
    const isOld = trouble && word !== "stale" && this.shown_at !== null;
    const since = isOld ? ` This is from ${time(this.shown_at)}.` : "";
    byId("notice").dataset.state = trouble ? this.badge.dataset.state : "absent";
    say(byId("notice-title"), title);
    say(byId("notice-text"), `${text}${since}`);
    this.button.hidden = !act;
    say(this.button, act ?? "");
  }
}
