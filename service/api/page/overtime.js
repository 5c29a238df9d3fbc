/** The card "Reward over time": two charts on one timeline, and the same as a table. */

import { now } from "./api.js";
import { byId, h, say } from "./dom.js";
import { count, many, number, rate, span, time } from "./format.js";
import { dense, isOver, ratesOf, rollingMeans, windowOf } from "./series.js";
import { TimeChart } from "./timechart.js";

const LEAST_SPAN_S = 60;
const ROWS = 12; // of the table
const FIRM = 30; // rewards, with which a band tells something

export class OverTime {
  constructor() {
    this.timeline = null;
    this.overall = null;
    this.reward = new TimeChart(byId("reward-chart"), {
      label: "Mean reward over time",
      lines: [{ name: "mean", of: "mean", low: "low", high: "high" }],
      about: (point) =>
        point.mean === null
          ? "no rewards"
          : `${number(point.mean)}${between(point)}, ${many(point.n, "reward")}`,
    });
    this.rate = new TimeChart(byId("rate-chart"), {
      label: "Selects and rewards per second",
      lines: [
        { name: "selects", of: "selects" },
        { name: "rewards", of: "rewards" },
      ],
      about: ({ selects, rewards }) => `${rate(selects)} selects/s   ${rate(rewards)} rewards/s`,
    });
    this.body = h("tbody");
    byId("time-table").append(
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": "Reward over time" },
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, ...["Until", "Mean", "95 % band", "Rewards"].map(heading))),
          this.body,
        ),
      ),
    );
    byId("span").addEventListener("change", () => this.draw());
  }

  clear() {
    this.timeline = null;
    this.reward.show(null);
    this.rate.show(null);
    this.body.replaceChildren();
    say(byId("window"), "");
  }

  /** @param {any} timeline as the service has it @param {number|null} overall mean of all */
  show(timeline, overall) {
    Object.assign(this, { timeline, overall });
    this.draw();
  }

  draw() {
    if (this.timeline === null) return;
    const { interval_s, points } = this.timeline;
    if (points.length === 0) {
      this.reward.show(null, "No selects in the last hour");
      this.rate.show(null, "");
      this.body.replaceChildren();
      return;
    }
    const longest_s = Number(document.querySelector("#span input:checked").value);
    const window_s = windowOf(longest_s);
    const to = Math.max(now(), points.at(-1).at);
    // A young learner's chart begins where it began.
    const from = Math.max(to - longest_s, Math.min(points[0].at, to - LEAST_SPAN_S));
    const intervals = dense(this.timeline, from - window_s, to);
    // The interval that is going on would pull the end of the line about.
    const means = rollingMeans(intervals, interval_s, window_s).filter(
      (point) => point.at >= from && isOver(point.at, to),
    );
    this.drawReward(means, from, to, points[0].at + window_s);
    this.drawRates(
      ratesOf(intervals, interval_s, to).filter((p) => p.at >= from),
      from,
      to,
    );
    this.tabulate(means);
    say(byId("window"), `each point is the mean of the ${span(window_s)} before it`);
  }

  /** @param {number} young_until before that, there is not a whole window to take a mean of */
  drawReward(means, from, to, young_until) {
    const known = means.filter((point) => point.mean !== null);
    if (known.length === 0) {
      this.reward.show(null, "No rewards yet in the time shown");
      return;
    }
    // The band of a few rewards is so wide that nothing else could be seen beside it: every mean
    // is in the chart, but only firm bands are in full. A learner's very first means are left out.
    const most = Math.max(...known.map((point) => point.n));
    const isFirm = (point) => point.low !== null && point.n >= Math.min(most / 10, FIRM);
    const begins = known.findIndex((point) => isFirm(point) || point.at >= young_until);
    const drawn = known.slice(Math.max(0, begins));
    const ends = drawn.flatMap((p) => (isFirm(p) ? [p.mean, p.low, p.high] : [p.mean]));
    const [first, last] = [drawn[0], drawn.at(-1)];
    this.reward.show({
      ...{ from, to, points: means.slice(means.indexOf(first)) },
      ...{ low: Math.min(...ends), high: Math.max(...ends) },
      level: this.overall,
      summary:
        `From ${number(first.mean)} at ${time(first.at)} to ${number(last.mean)} at ` +
        `${time(last.at)}${between(last)}.`,
    });
  }

  drawRates(points, from, to) {
    const most = Math.max(1, ...points.flatMap((p) => [p.selects, p.rewards]));
    const last = points.at(-1);
    const summary = last ? `Now ${rate(last.selects)} and ${rate(last.rewards)}.` : "None yet.";
    this.rate.show({ from, to, points, low: 0, high: most, summary });
  }

  tabulate(means) {
    if (!byId("time-table").open && this.body.childElementCount) return;
    const every = Math.max(1, Math.floor(means.length / ROWS));
    const rows = means.toReversed().filter((_, k) => k % every === 0);
    this.body.replaceChildren(
      ...rows
        .slice(0, ROWS)
        .map(({ at, n, mean, low, high }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, time(at)),
            h("td", {}, number(mean)),
            h("td", {}, low === null ? "–" : `${number(low)} to ${number(high)}`),
            h("td", {}, count(n)),
          ),
        ),
    );
  }
}

/** The band of a point, where it has one. */
const between = ({ low, high }) => (low === null ? "" : ` (${number(low)} to ${number(high)})`);

const heading = (text) => h("th", { scope: "col" }, text);
