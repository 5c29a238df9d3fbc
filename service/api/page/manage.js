/** Create, export, reset and delete a learner; each question names it. */

import { learnerPath, send } from "./api.js";
import { byId, h, named } from "./dom.js";
import { ask, field } from "./dialogs.js";

const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const NAMES =
  "Small letters, digits, - and _, at most 63, and it begins with a letter or digit.";

const POLICIES = [
  ["clbbf", "CLBBF: completes what is missing (the default)"],
  ["e-clbbf", "E-CLBBF: the same without a history"],
  ["thompson", "Thompson sampling on completed features"],
  ["oful", "OFUL: missing counts as 0"],
  ["random", "random"],
];

/** @param {(name: string) => void} done is told the name of the new learner */
export function askToCreate(done) {
  const input = (attributes) =>
    h("input", { autocomplete: "off", spellcheck: "false", ...attributes });
  const name = input({ type: "text", maxlength: 63, placeholder: "ads" });
  const features = h("textarea", {
    rows: 3,
    spellcheck: "false",
    placeholder: "age, price, recency",
  });
  const dimension = input({ type: "number", min: 1, max: 1024, step: 1, placeholder: "3" });
  const policy = h("select", {}, ...POLICIES.map(([value, text]) => h("option", { value }, text)));
  const wait = input({ type: "number", min: 0, step: "any", placeholder: "600" });
  const reward = input({ type: "number", step: "any", placeholder: "0" });
  ask({
    title: ["New learner"],
    content: [
      field("Name", name, "Small letters, digits, - and _"),
      field("Feature names", features, "Separated by commas or lines. Or only how many there are:"),
      field("Dimension", dimension),
      field("Policy", policy),
      h(
        "div",
        { class: "pair" },
        field("Wait for a reward, seconds", wait),
        field("Then book this reward", reward),
      ),
      h("small", {}, "Left empty, a decision waits for its reward and no default is booked."),
    ],
    yes: "Create",
    ready: () =>
      name.value.trim() !== "" && (features.value.trim() !== "" || dimension.value !== ""),
    async act() {
      const wanted = name.value.trim();
      if (!NAME.test(wanted)) throw new Error(NAMES);
      const names = features.value
        .split(/[\n,]/)
        .map((one) => one.trim())
        .filter(Boolean);
      const body = { policy: policy.value };
      if (names.length) body.features = names;
      const asked = [
        ["Dimension", "dimension", dimension],
        ["Wait for a reward", "reward_wait_s", wait],
        ["Then book this reward", "default_reward", reward],
      ];
      for (const [label, setting, from] of asked) {
        if (from.validity.badInput) throw new Error(`${label}: not a number.`);
        if (from.value !== "") body[setting] = Number(from.value);
      }
      if ("reward_wait_s" in body !== "default_reward" in body) {
        throw new Error("“Wait for a reward” and “Then book this reward”: give both, or neither.");
      }
      await mustBeNew(wanted);
      await send(learnerPath(wanted), { method: "PUT", body });
      done(wanted);
    },
  });
}

/** The call would reconfigure one that is there, which nobody means by "create". */
async function mustBeNew(name) {
  const { learners } = await (await send("learners")).json();
  if (learners.some((one) => one.name === name))
    throw new Error(`There is a learner ${name} already.`);
}

export function askToExport(name) {
  ask({
    title: ["Export ", named(name), "?"],
    content: [
      h(
        "p",
        {},
        "One file with all of it: configuration, what it has learnt, and the decisions ",
        "that wait for their reward. ",
        h("code", {}, "PUT …/import"),
        " takes it back.",
      ),
    ],
    yes: "Download",
    async act() {
      const blob = await (await send(learnerPath(name, "/export"))).blob();
      const address = URL.createObjectURL(blob);
      const link = h("a", { href: address, download: `${name}.lacuna`, hidden: true });
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    },
  });
}

export function askToReset(name, done) {
  const warning =
    "It forgets all that it has learnt and its open decisions. Its configuration stays. ";
  const change = () => send(learnerPath(name, "/reset"), { method: "POST" });
  askForName({ name, title: "Reset ", warning, yes: "Reset", change, done });
}

export function askToDelete(name, done) {
  const warning = "The learner and all that it has learnt are removed. ";
  const change = () => send(learnerPath(name), { method: "DELETE" });
  askForName({ name, title: "Delete ", warning, yes: "Delete", change, done });
}

function askForName({ name, title, warning, yes, change, done }) {
  const typed = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const confirmation = field(["Type ", h("code", {}, name), " to go on"], typed);
  ask({
    title: [title, named(name), "?"],
    content: [h("p", {}, warning, "This cannot be undone."), confirmation],
    yes,
    danger: true,
    ready: () => typed.value === name,
    async act() {
      await change();
      done();
    },
  });
}

/** @param {{current: () => ?string, created: (name: string) => void, changed: () => void,
 *   deleted: () => void}} on */
export function wire({ current, created, changed, deleted }) {
  const click = (id, act) => byId(id).addEventListener("click", act);
  const onOne = (act) => () => current() && act(current());
  click("create", () => askToCreate(created));
  click("empty-create", () => askToCreate(created));
  click("export", onOne(askToExport));
  click(
    "reset",
    onOne((name) => askToReset(name, changed)),
  );
  click(
    "delete",
    onOne((name) => askToDelete(name, deleted)),
  );
}
