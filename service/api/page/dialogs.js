/** Questions that stand in the way until they are answered. Escape and "Cancel" change nothing. */

import { h, say } from "./dom.js";
import { sentence } from "./format.js";

let ids = 0;

/**
 * @param {{title: (Node|string)[], content: Node[], yes: string, danger?: boolean,
 *   act: () => Promise<void>|void, cancelled?: () => void, ready?: () => boolean}} asked
 *   `act` may throw: its message is shown and the question stays; `ready`: whether it may be done
 */
export function ask({ title, content, yes, danger = false, act, cancelled, ready = () => true }) {
  const id = `dialog-${(ids += 1)}`;
  const error = h("p", { class: "error", role: "alert" });
  const go = h("button", { type: "submit", class: danger ? "main danger" : "main" }, yes);
  const cancel = h("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel");
  const form = h(
    "form",
    { novalidate: true },
    h("h2", { id }, ...title),
    ...content,
    error,
    h("p", { class: "row row-end" }, cancel, go),
  );
  const dialog = h("dialog", { "aria-labelledby": id }, form);
  let done = false;
  const check = () => (go.disabled = !ready());
  form.addEventListener("input", check);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    say(error, "");
    try {
      await act();
      done = true;
      dialog.close();
    } catch (problem) {
      say(error, sentence(problem.message));
      check();
    }
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (!done) cancelled?.();
  });
  document.body.append(dialog);
  check();
  dialog.showModal(); // the browser keeps the focus inside, and gives it back at the end
  return dialog;
}

/** A field with its label (text, or parts of it) above it and, where it helps, a hint below. */
export function field(label, input, hint = "") {
  const children = [h("span", {}, ...[label].flat()), input];
  return h("label", { class: "field" }, ...children, hint ? h("small", {}, hint) : null);
}
