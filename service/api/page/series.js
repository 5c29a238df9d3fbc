/** What the timeline's sums say: means with their bands, and rates. Pure functions, no drawing. */

const Z95 = 1.96;
const SETTLED_S = 1; // after its end an interval may still be on its way into the answer
const CRUMBS = 1e-9; // of the mean square: a variance below it is what rounding leaves

/** How much time a point of the mean looks back on, for a chart of so many seconds. */
export const windowOf = (span_s) => (span_s <= 300 ? 30 : span_s <= 900 ? 60 : 180);

/**
 * Every interval from `from` to `to`: those in which nothing happened are zeros.
 * @param {{interval_s: number, points: any[]}} timeline
 */
export function dense({ interval_s, points }, from, to) {
  const known = new Map(points.map((point) => [Math.round(point.at / interval_s), point]));
  const all = [];
  for (let k = Math.floor(from / interval_s); k * interval_s < to; k += 1) {
    const { selects = 0, rewards = 0, sum = 0, sum_squares = 0 } = known.get(k) ?? {};
    all.push({ at: k * interval_s, selects, rewards, sum, sum_squares });
  }
  return all;
}

/** Mean and 95 % band of sums; null where there is nothing to take a mean of. */
export function meanOf({ rewards: n, sum, sum_squares }) {
  if (n === 0) return { n, mean: null, low: null, high: null };
  const mean = sum / n;
  if (n === 1) return { n, mean, low: null, high: null };
  const found = (sum_squares - n * mean * mean) / (n - 1);
  const variance = found > (CRUMBS * sum_squares) / n ? found : 0;
  const half = Z95 * Math.sqrt(variance / n);
  return { n, mean, low: mean - half, high: mean + half };
}

/** Whether an interval that ends then has all that came in it. */
export const isOver = (end, now) => end + SETTLED_S <= now;

/** The mean over the `window_s` before the end of each interval. */
export function rollingMeans(intervals, interval_s, window_s) {
  const width = Math.max(1, Math.round(window_s / interval_s));
  const fields = ["rewards", "sum", "sum_squares"];
  return intervals.map((point, last) => {
    const total = { rewards: 0, sum: 0, sum_squares: 0 };
    // Added anew each time: a running total would leave crumbs of what it takes away.
    for (let k = Math.max(0, last - width + 1); k <= last; k += 1) {
      for (const field of fields) total[field] += intervals[k][field];
    }
    return { at: point.at + interval_s, ...meanOf(total) };
  });
}

/** Per second, at the middle of each interval that is over. */
export function ratesOf(intervals, interval_s, now) {
  return intervals
    .filter((point) => isOver(point.at + interval_s, now))
    .map((point) => ({
      at: point.at + interval_s / 2,
      selects: point.selects / interval_s,
      rewards: point.rewards / interval_s,
    }));
}

const RATE_WINDOW_MS = 6_000;
const LEAST_MS = 900;
const LONGEST_PAUSE_MS = 2 * RATE_WINDOW_MS; // a wide learner is asked every few seconds

/** Rates from counters that are read now and then. */
export class Rates {
  constructor() {
    this.samples = [];
  }

  /** @returns {{selects: number|null, rewards: number|null}} per second, over the last seconds */
  add(at_ms, rounds, rewards) {
    const last = this.samples.at(-1);
    const wasReset = last && (rounds < last.rounds || rewards < last.rewards);
    // The mean over an outage, or over the time a tab was hidden, is no rate of now.
    const wasAway = last && at_ms - last.at_ms > LONGEST_PAUSE_MS;
    if (wasReset || wasAway) this.samples = [];
    this.samples.push({ at_ms, rounds, rewards });
    while (this.samples.length > 2 && at_ms - this.samples[1].at_ms > RATE_WINDOW_MS) {
      this.samples.shift();
    }
    const first = this.samples[0];
    const elapsed_s = (at_ms - first.at_ms) / 1000;
    if (elapsed_s * 1000 < LEAST_MS) return { selects: null, rewards: null };
    return {
      selects: (rounds - first.rounds) / elapsed_s,
      rewards: (rewards - first.rewards) / elapsed_s,
    };
  }
}

const FLAT = 1e-5; // of their size: values that differ by less are drawn as one

/** Round levels in equal steps, about so many, from below `low` to above `high`. */
export function roundLevels(low, high, about = 4) {
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (!(high - low > FLAT * size)) {
    const pad = size * 0.5 || 0.5;
    [low, high] = [low - pad, high + pad];
  }
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((one) => one * power >= rough * 0.999) ?? 10);
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
}

/** Multiples of a round number of seconds, in the reader's own hours. */
export function timeTicks(from, to, about = 6) {
  const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800];
  const step = steps.find((one) => (to - from) / one <= about) ?? 3600;
  const all = [];
  for (let k = Math.ceil(from / step); k * step <= to; k += 1) all.push(k * step);
  return all;
}
