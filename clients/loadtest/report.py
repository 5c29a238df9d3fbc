"""What a load test found, for people and as JSON."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from clients.tables import aligned
from service import __version__

from .crew import Found, Moment
from .histogram import RELATIVE_ERROR, Histogram
from .job import Account, Job
from .ledger import Entry
from .ramp import Tried, highest

FORMAT = 1
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 1.0)
NAMES = ("p50", "p90", "p95", "p99", "p99.9", "max")


@dataclass(slots=True)
class Outcome:
    url: str
    mode: str  # closed, open or ramp
    job: Job  # of the first process; the others differ in their ids only
    processes: int
    found: Found  # of a ramp: its highest rate held, or the last one tried
    account: Account
    ledger: list[Entry] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # sentences; empty: all is well
    interrupted: bool = False


def text(outcome: Outcome) -> str:
    found, account = outcome.found, outcome.account
    lines = [_title(outcome), *(["Interrupted: this is what was found."] * outcome.interrupted), ""]
    if outcome.tried:
        lines += [aligned(_ramp_rows(outcome.tried)), "", _verdict(outcome.tried), ""]
    rows = [["latency, ms", *NAMES, "mean", "answers", "per s"]]
    for name, histogram in (("select", found.selects), ("reward", found.rewards)):
        if histogram.count:
            rows.append([name, *map(_ms, _latency(histogram)), *_counts(histogram, found)])
    lines.append(aligned(rows))
    if found.step.rate is not None:
        late = 1e3 * found.lag.quantile_s(0.99)
        lines.append(
            "Latency counts from when a request was due. "
            f"This program itself was late by {late:.2f} ms at its p99."
        )
    if account.errors:
        lines += ["", "Errors: " + ", ".join(f"{n:,} × {w}" for w, n in account.errors.items())]
        lines += [f"  {one}" for one in account.wrong]
    if outcome.ledger:
        lines += ["", aligned(_ledger_rows(outcome.ledger))]
    if account.unsent_rewards:
        lines.append(f"{account.unsent_rewards:,} rewards were not sent any more.")
    lines += ["", *([f"FAIL  {one}" for one in outcome.failures] or ["PASS"])]
    return "\n".join(lines)


def _title(outcome: Outcome) -> str:
    job = outcome.job
    load = {
        "closed": "closed loop",
        "open": f"open loop, {_total_rate(outcome):,.0f} selects due per second",
        "ramp": "the highest rate that holds",
    }[outcome.mode]
    return (
        f"{outcome.url}: {load}; K={job.arms} d={job.dimension}, {job.missing:.0%} missing, "
        f"{job.body} body, {job.connections * outcome.processes} connections, "
        f"{outcome.processes} process{'es' if outcome.processes > 1 else ''}"
    )


def _total_rate(outcome: Outcome) -> float:
    return (outcome.found.step.rate or 0.0) * outcome.processes


def _latency(histogram: Histogram) -> list[float]:
    return [*histogram.quantiles_ms(SHARES), 1e3 * histogram.mean_s]


def _counts(histogram: Histogram, found: Found) -> list[str]:
    rate = histogram.count / found.elapsed_s if found.elapsed_s else math.nan
    return [f"{histogram.count:,}", f"{rate:,.0f}"]


def _ms(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _ramp_rows(tried: Sequence[Tried]) -> list[list[str]]:
    head = ["selects due per s", "answered per s", "p50", "p99", ""]
    return [
        head,
        *(
            [
                f"{one.rate:,.0f}",
                f"{one.found.rate:,.0f}",
                _ms(1e3 * one.found.selects.quantile_s(0.5)),
                _ms(one.p99_ms),
                "held" if one.held else "not held",
            ]
            for one in tried
        ),
    ]


def _verdict(tried: list[Tried]) -> str:
    best = highest(tried)
    if best is None:
        return "No rate that was tried held."
    return f"Highest rate held: {best.rate:,.0f} selects per second, p99 {best.p99_ms:.1f} ms."


def _ledger_rows(ledger: Sequence[Entry]) -> list[list[str]]:
    head = ["ledger", "acknowledged", "in doubt", "the learner's count", ""]
    return [
        head,
        *(
            [
                one.what,
                f"{one.acknowledged:,.10g}",
                f"{one.doubtful:,}",
                f"{one.counted:,.10g}",
                "equal"
                if one.balanced
                else "LOST"
                if one.counted < one.acknowledged
                else "TOO MANY",
            ]
            for one in ledger
        ),
    ]


def _word(one: Entry) -> str:
    if one.balanced:
        return "equal"
    return "LOST" if one.counted < one.acknowledged else "TOO MANY"


def to_dict(outcome: Outcome) -> dict[str, Any]:
    job, account = outcome.job, outcome.account
    return {
        "format": FORMAT,
        "versions": {"lacuna": __version__, "python": platform.python_version()},
        "url": outcome.url,
        "mode": outcome.mode,
        "processes": outcome.processes,
        "connections": job.connections * outcome.processes,
        "arms": job.arms,
        "dimension": job.dimension,
        "missing": job.missing,
        "body": job.body,
        "rewards": job.rewards,
        "reward_delay_s": job.reward_delay_s,
        "duplicates": job.duplicates,
        "relative_error": RELATIVE_ERROR,
        **_found(outcome.found, outcome.processes),
        "timeline": [_moment(one) for one in outcome.found.timeline],
        "interval_s": outcome.found.interval_s,
        "ramp": [
            {"held": one.held, **_found(one.found, outcome.processes)} for one in outcome.tried
        ],
        "highest_rate": getattr(highest(outcome.tried), "rate", None),
        "account": {name: getattr(account, name) for name in Account.__struct_fields__},
        "ledger": [
            {
                "what": one.what,
                "acknowledged": one.acknowledged,
                "in_doubt": one.doubtful,
                "counted": one.counted,
                "balanced": one.balanced,
            }
            for one in outcome.ledger
        ],
        "failures": outcome.failures,
        "interrupted": outcome.interrupted,
    }


def _found(found: Found, processes: int) -> dict[str, Any]:
    due = None if found.step.rate is None else found.step.rate * processes
    return {
        "due_per_s": due,
        "answered_per_s": found.rate,
        "elapsed_s": found.elapsed_s,
        "select_ms": _quantiles(found.selects),
        "reward_ms": _quantiles(found.rewards),
        "lag_ms": _quantiles(found.lag),
    }


def _moment(moment: Moment) -> dict[str, Any]:
    return {"select_ms": _quantiles(moment.selects), "reward_ms": _quantiles(moment.rewards)}


def _quantiles(histogram: Histogram) -> dict[str, Any] | None:
    if not histogram.count:
        return None
    values = dict(zip((*NAMES, "mean"), _latency(histogram), strict=True))
    return {**values, "count": histogram.count}
