/** The API key: asked for when a call is refused, kept for the tab's session, forgotten at will. */

import { key } from "./api.js";
import { byId, h } from "./dom.js";
import { ask, field } from "./dialogs.js";

const SENDABLE = /^[\x20-\x7e]+$/; // in a header

let asking = false;

/** Show whether there is a key to forget. */
export function showForget() {
  byId("forget").hidden = key.get() === null;
}

/** @param {{entered: () => void, again?: boolean}} options `again`: the one shown is wrong */
export function askForKey({ entered, again = false }) {
  if (asking) return;
  asking = true;
  const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false" });
  const told = again ? "The service does not know this key." : "This service asks for an API key.";
  ask({
    title: ["API key"],
    content: [
      h("p", {}, `${told} It is kept in this tab until the tab is closed, and nowhere else.`),
      field("Key", input),
    ],
    yes: "Use it",
    ready: () => input.value.trim() !== "",
    act() {
      if (!SENDABLE.test(input.value.trim())) throw new Error("A key has no such characters.");
      asking = false;
      key.set(input.value.trim());
      showForget();
      entered();
    },
    cancelled() {
      asking = false;
    },
  });
}
