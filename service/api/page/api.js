/**
 * Calls of the service. Addresses are relative, so that the page may live behind a path prefix.
 * The API key is kept for this tab's session and sent with every call.
 */

const KEPT = "lacuna-key";
const TIMEOUT_MS = 15_000;

/** The service has answered, but with an error: problem+json as it says in docs/api.md. */
export class Problem extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.status = status;
    this.type = String(problem.type ?? "").replace("urn:lacuna:problem:", "");
    this.errors = problem.errors ?? [];
  }
}

/** No answer at all. */
export class Unreachable extends Error {}

let inMemory = null; // where session storage is forbidden

export const key = {
  get() {
    try {
      return sessionStorage.getItem(KEPT) ?? inMemory;
    } catch {
      return inMemory;
    }
  },
  /** @param {string|null} value */
  set(value) {
    inMemory = value;
    try {
      if (value === null) sessionStorage.removeItem(KEPT);
      else sessionStorage.setItem(KEPT, value);
    } catch {
      // it is in memory
    }
  },
};

/** The service's clock, as its answers tell it: the reader's may be wrong. */
let ahead_s = 0;
export const now = () => Date.now() / 1000 + ahead_s;

function readClock(response) {
  const date = Date.parse(response.headers.get("date") ?? "");
  // The header has whole seconds: a smaller difference is none.
  if (Number.isFinite(date)) {
    const difference = date / 1000 + 0.5 - Date.now() / 1000;
    ahead_s = Math.abs(difference) < 2 ? 0 : difference;
  }
}

/**
 * @param {string} path
 * @param {{method?: string, body?: any, signal?: AbortSignal}} [options]
 * @returns {Promise<Response>} one that is all right; anything else is thrown
 */
export async function send(path, { method = "GET", body, signal } = {}) {
  const headers = { accept: "application/json" };
  if (key.get() !== null) headers["x-api-key"] = key.get();
  if (body !== undefined) headers["content-type"] = "application/json";
  const signals = [AbortSignal.timeout(TIMEOUT_MS), ...(signal ? [signal] : [])];
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any(signals),
      cache: "no-store",
      credentials: "same-origin",
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new Unreachable(error.name === "TimeoutError" ? "no answer in time" : "no answer");
  }
  readClock(response);
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Problem(response.status, problem);
}

/** @returns {Promise<any>} the JSON of the answer */
export async function get(path, signal) {
  const response = await send(path, { signal });
  try {
    const answer = await response.json();
    signal?.throwIfAborted(); // nobody wants to know any more
    return answer;
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new Unreachable("the answer broke off");
  }
}

export const learnerPath = (name, rest = "") => `learners/${encodeURIComponent(name)}${rest}`;
