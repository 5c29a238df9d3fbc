/** Every call of the service, described and to be tried out: Swagger UI on our own document. */

import { get, key, Problem } from "./api.js";
import { byId, h } from "./dom.js";
import { sentence } from "./format.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Swagger UI is dark by a class, this page by an attribute. */
function follow() {
  const { theme } = document.documentElement.dataset;
  const isDark = theme === "dark" || (theme === "auto" && dark.matches);
  document.documentElement.classList.toggle("dark-mode", isDark);
}

/** Calls that are tried out show the key that was entered on the page, unless another is given. */
function withKey(request) {
  const given = Object.keys(request.headers).map((name) => name.toLowerCase());
  if (key.get() !== null && !given.includes("x-api-key") && !given.includes("authorization")) {
    request.headers["X-API-Key"] = key.get();
  }
  return request;
}

async function show() {
  const spec = await get("openapi.json");
  spec.servers = [{ url: new URL(".", location.href).href }]; // a prefix of a proxy included
  globalThis.SwaggerUIBundle({
    spec,
    dom_id: "#calls",
    deepLinking: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
    requestInterceptor: withKey,
  });
  byId("said").replaceChildren();
}

follow();
dark.addEventListener("change", follow);
new MutationObserver(follow).observe(document.documentElement, { attributeFilter: ["data-theme"] });
try {
  await show();
} catch (error) {
  const locked = error instanceof Problem && error.status === 401;
  const wanted = ["An API key is needed. ", h("a", { href: "./" }, "Enter it on the page"), "."];
  const failed = `It cannot be shown: ${sentence(error.message)}`;
  byId("said").replaceChildren(...(locked ? wanted : [failed]));
}
