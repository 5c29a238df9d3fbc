/** Asking again and again, politely. */

const LONGEST_WAIT_MS = 5_000;

export class Poll {
  /**
   * One request at a time; after a failure ever longer waits; none while the tab is hidden.
   * @param {(signal: AbortSignal) => Promise<void>} work
   * @param {number | (() => number)} interval_ms
   * @param {(error: Error|null) => void} report what became of it, null when all is well
   */
  constructor(work, interval_ms, report) {
    this.work = work;
    this.interval_ms = typeof interval_ms === "function" ? interval_ms : () => interval_ms;
    this.report = report;
    this.failures = 0;
    this.timer = 0;
    this.busy = false;
    this.again = false;
    this.stopping = new AbortController();
    this.onVisible = () => !document.hidden && this.now();
  }

  start() {
    document.addEventListener("visibilitychange", this.onVisible);
    this.now();
    return this;
  }

  stop() {
    document.removeEventListener("visibilitychange", this.onVisible);
    clearTimeout(this.timer);
    this.stopping.abort();
  }

  /** Do not wait for the next turn. */
  async now() {
    clearTimeout(this.timer);
    if (this.busy) {
      this.again = true; // what is under way may tell of before
      return;
    }
    if (this.stopping.signal.aborted || document.hidden) return;
    this.busy = true;
    this.again = false;
    let error = null;
    try {
      await this.work(this.stopping.signal);
      this.failures = 0;
    } catch (reason) {
      error = reason;
      this.failures += 1;
    }
    this.busy = false;
    if (this.stopping.signal.aborted) return;
    this.report(error);
    const usual = this.interval_ms();
    const wait = Math.min(usual * 2 ** this.failures, Math.max(usual, LONGEST_WAIT_MS));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), this.again ? 0 : wait);
  }
}
