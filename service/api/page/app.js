/** One learner at a glance, live: what is asked for when, and who is told. */

import { get, key, learnerPath, now, Problem, Unreachable } from "./api.js";
import { curls } from "./begin.js";
import { Decisions } from "./decisions.js";
import { byId, h, named, say } from "./dom.js";
import { COMPLETES_NOTHING, completesNothing } from "./explained.js";
import { Features } from "./features.js";
import { Figures } from "./figures.js";
import { many, plain, span } from "./format.js";
import { HeatMap, DRAWN_IN_FULL, NOT_ASKED_ABOVE } from "./heatmap.js";
import { askForKey, showForget } from "./keys.js";
import { wire } from "./manage.js";
import { OverTime } from "./overtime.js";
import { Poll } from "./poll.js";
import { Rates } from "./series.js";
import { State } from "./state.js";
import { TryIt } from "./tryit.js";

const FIGURES_MS = 1_000;
const TIMELINE_MS = 5_000; // as long as its intervals are
const DECISIONS_MS = 2_000;
const MODEL_MS = 5_000;
// Where it has many features: the service reads all of its moments to answer.
const WIDE_FIGURES_MS = 5_000;
const WIDE_MODEL_MS = 30_000;
const LIST_MS = 5_000;
const LISTED = 50; // decisions

const state = new State(() => askForKey({ entered: restart }));
const views = {
  figures: new Figures(byId("figures")),
  time: new OverTime(),
  features: new Features(byId("features")),
  heat: new HeatMap(byId("heat")),
  decisions: new Decisions(),
  tryIt: new TryIt(),
};

let learner = null;
let statistics = null;
let polls = {};
let listing = null;

/** What became of a call. */
function report(kind, error) {
  const before = state.errors.has(kind);
  state.report(kind, error);
  if (error instanceof Problem && error.status === 401) {
    lock(error);
    askForKey({ entered: restart, again: key.get() !== null });
  } else if (error instanceof Problem && error.type === "unknown-learner") {
    leave(); // deleted elsewhere
  } else if (error && !(error instanceof Problem || error instanceof Unreachable)) {
    console.error(error);
  } else if (error === null && before && kind === "figures") {
    // It is back: the others need not wait for their turn.
    for (const [other, poll] of Object.entries(polls)) if (other !== kind) poll.now();
    listing.now();
  }
  state.show(now());
}

/** Without a key nothing is shown, nor what was shown before. */
function lock(error) {
  stop();
  choose(null);
  state.absent = null;
  byId("links").hidden = true;
  byId("learner").hidden = true;
  byId("empty").hidden = true;
  byId("picker").replaceChildren(h("option", {}, "locked"));
  byId("picker").disabled = true;
  state.report("list", error);
}

function stop() {
  for (const poll of Object.values(polls)) poll.stop();
  polls = {};
  listing?.stop();
  listing = null;
}

function restart() {
  stop();
  state.errors.clear();
  listing = new Poll(list, LIST_MS, (error) => report("list", error)).start();
  if (learner !== null) follow();
}

/** Everything there is to ask about the learner, each at its own pace. */
function follow() {
  const name = learner;
  const rates = new Rates();
  const wide = () => (statistics?.dimension ?? 0) > DRAWN_IN_FULL;
  const ask = (kind, interval_ms, path, show) =>
    new Poll(
      async (signal) => show(await get(learnerPath(name, path()), signal)),
      interval_ms,
      (error) => report(kind, error),
    ).start();
  polls = {};
  polls.figures = ask(
    "figures",
    () => (wide() ? WIDE_FIGURES_MS : FIGURES_MS),
    () => "",
    (answer) => {
      showStatistics(answer, rates.add(performance.now(), answer.rounds, answer.rewards));
    },
  );
  polls.timeline = ask(
    "timeline",
    TIMELINE_MS,
    () => "/timeline",
    (answer) => {
      const last = answer.points.at(-1);
      if (last) state.active(Math.min(now(), last.at + answer.interval_s));
      views.time.show(answer, statistics?.mean_reward ?? null);
    },
  );
  const latest = `/decisions?limit=${LISTED}&explained=true`;
  polls.decisions = ask(
    "decisions",
    DECISIONS_MS,
    () => latest,
    (answer) => {
      views.decisions.show(answer.decisions);
    },
  );
  polls.model = ask(
    "model",
    () => (wide() ? WIDE_MODEL_MS : MODEL_MS),
    () => (askForMatrices() ? "/model" : "/model?matrices=false"),
    showModel,
  );
}

const askForMatrices = () => (statistics?.dimension ?? Infinity) <= NOT_ASKED_ABOVE;

function showStatistics(answer, rates) {
  const first = statistics === null;
  statistics = answer;
  state.seen(answer, now());
  byId("main").dataset.phase = "ready";
  say(byId("about"), about(answer));
  views.figures.show(answer, rates);
  views.features.show({ statistics: answer });
  views.decisions.of = { names: answer.features, policy: answer.policy };
  views.tryIt.show(answer);
  if (first) polls.model.now();
}

function showModel(model) {
  if (statistics === null) return; // how many features there are is not known yet
  views.features.show({ model });
  views.tryIt.learn(model, statistics.arms ? statistics.observed_rate : null);
  const { policy, dimension, features } = statistics;
  byId("heat-hint").hidden = completesNothing(policy);
  if (completesNothing(policy)) views.heat.explain(COMPLETES_NOTHING);
  else if (dimension === 1) views.heat.explain("One feature: nothing to correlate with.");
  else if (model.sigma) views.heat.show(model.sigma, features);
  else if (!askForMatrices()) {
    views.heat.explain(`Not drawn for more than ${NOT_ASKED_ABOVE} features.`);
  } else views.heat.explain("Nothing seen yet: it is learnt from every arm that is sent.");
}

function about({ policy, preset, dimension, epsilon, default_reward, reward_wait_s, arms }) {
  const parts = [
    `${policy}, ${preset}`,
    many(dimension, "feature"),
    `${many(arms, "arm")} seen`,
  ];
  if (epsilon > 0) parts.push(`${plain(100 * epsilon)} % at random`);
  if (default_reward !== null) {
    parts.push(`no reward in ${span(reward_wait_s ?? 0)} counts as ${plain(default_reward)}`);
  }
  return parts.map((part) => part.replaceAll(" ", "\u00a0")).join(" · "); // each in one piece
}

/** The learners there are, and the one to show among them. */
async function list(signal) {
  const { learners } = await get("learners", signal);
  const names = learners.map((one) => one.name);
  const picker = byId("picker");
  if (String([...picker.options].map((one) => one.value)) !== String(names) || picker.disabled) {
    picker.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    if (names.length === 0) picker.append(h("option", { value: "" }, "no learner yet"));
    picker.disabled = names.length === 0;
  }
  byId("links").hidden = false;
  byId("metrics").hidden = key.get() !== null; // a link cannot show the key
  state.empty = names.length === 0;
  byId("empty").hidden = names.length > 0;
  byId("learner").hidden = names.length === 0;
  if (names.length === 0) {
    if (learner !== null) choose(null);
    state.absent = null;
    byId("main").dataset.phase = "empty";
    say(byId("empty-curls"), curls());
  } else settle(names);
  picker.value = learner ?? "";
}

/** Show the one that the address names; where there is none such, another, and say so. */
function settle(names) {
  if (names.includes(state.absent?.wanted)) state.absent = null; // it has come
  const wanted = fromHash() || learner;
  if (wanted === learner && names.includes(learner)) return;
  const found = [wanted, learner, "default"].find((one) => names.includes(one)) ?? names[0];
  state.absent = wanted && wanted !== found ? { wanted, shown: found } : null;
  if (found !== learner) choose(found);
  else showInAddress(found);
}

const fromHash = () => new URLSearchParams(location.hash.slice(1)).get("learner");
const showInAddress = (name) =>
  history.replaceState(null, "", `#learner=${encodeURIComponent(name)}`);

/** @param {string|null} name */
function choose(name) {
  for (const poll of Object.values(polls)) poll.stop();
  polls = {};
  learner = name;
  statistics = null;
  state.clear();
  for (const view of Object.values(views)) view.clear(name);
  byId("main").dataset.phase = "loading";
  document.title = name === null ? "Lacuna" : `${name} · Lacuna`;
  byId("name").replaceChildren(named(name ?? ""));
  byId("picker").value = name ?? "";
  if (name === null) return;
  if (fromHash() !== name) showInAddress(name);
  state.show(now());
  follow();
}

/** Somebody chose it: what was not there before is no matter any more. */
function pick(name) {
  state.absent = null;
  choose(name);
}

/** The learner is not there any more, or not as it was. */
function leave() {
  choose(null);
  listing?.now();
}

wire({
  current: () => learner,
  created(name) {
    showInAddress(name);
    leave();
  },
  changed: leave,
  deleted() {
    history.replaceState(null, "", "#"); // nobody asks for it any more
    leave();
  },
});
byId("picker").addEventListener("change", (event) => pick(event.target.value));
byId("forget").addEventListener("click", () => {
  key.set(null);
  showForget();
  lock(null);
  restart();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the learner
  byId("main").focus();
});
addEventListener("hashchange", () => {
  const linked = fromHash();
  const known = [...byId("picker").options].some((one) => one.value === linked);
  if (known && linked !== learner) pick(linked);
  else if (linked && !known) listing?.now();
});
showForget();
restart();
