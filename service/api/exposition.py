"""From the boards of all workers to what Prometheus reads."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from service import __version__

from .board import Labels, Series
from .families import COUNTERS, GAUGES, HISTOGRAMS, Family

SILENT_S = 10.0  # a worker that was not heard of for so long says nothing about now
HEARD_AT = "heard_at"
# Of the rewards in the model and their sum, that pair which has seen more.
MODEL = "model"
# Of a learner's features together: its labels are the learner and their names.
FEATURES = "features"
NOW = {*GAUGES, HEARD_AT, MODEL, FEATURES}  # on boards: how things are, not what was counted

Totals = dict[tuple[str, Labels], list[float]]


def families(
    boards: Iterable[list[Series]], pending: Mapping[str, int], store_up: bool | None
) -> Iterator[Metric]:
    totals = _merged(boards)
    totals["info", (__version__,)] = [1.0]
    for learner, waiting in pending.items():
        totals["pending", (learner,)] = [float(waiting)]
    if store_up is not None:
        totals["store_up", ()] = [float(store_up)]
    for (name, labels), values in list(totals.items()):
        if name == MODEL:
            totals["model_version", labels], totals["reward_sum", labels] = values[:1], values[1:]
        elif name == FEATURES:
            for feature, rate in zip(labels[1:], values, strict=True):
                totals["feature_observed_rate", (labels[0], feature)] = [rate]
        elif name == "request_seconds":
            totals["requests", labels] = [sum(values[:-1])]
    made: dict[str, Metric] = {}
    for (name, labels), values in sorted(totals.items()):
        if name in HISTOGRAMS:
            _histogram(made, name, labels, values)
        elif name in COUNTERS:
            family = COUNTERS[name]
            counter = made.setdefault(
                name, CounterMetricFamily(f"lacuna_{name}", family.help, labels=family.labels)
            )
            counter.add_metric(labels, values[0])  # type: ignore[attr-defined]
        elif name in GAUGES:
            family = GAUGES[name]
            gauge = made.setdefault(
                name, GaugeMetricFamily(f"lacuna_{name}", family.help, labels=family.labels)
            )
            gauge.add_metric(labels, values[0])  # type: ignore[attr-defined]
    yield from made.values()


def _merged(boards: Iterable[list[Series]]) -> Totals:
    """Counters add up. Of gauges the largest counts, and none of a worker that is silent."""
    totals: Totals = {}
    heard = 0
    for board in boards:
        silent_s = math.inf
        for name, labels, values in board:
            if name == HEARD_AT and not math.isnan(values[0]):
                silent_s = max(0.0, time.time() - values[0])
                totals["worker_silent_seconds", labels] = [silent_s]
        heard += silent_s <= SILENT_S
        for name, labels, values in board:
            known = totals.get((name, labels))
            if name in NOW:
                if silent_s <= SILENT_S and not math.isnan(values[0]):
                    totals[name, labels] = values if known is None else max(known, values)
            elif known is None:
                totals[name, labels] = values
            else:
                totals[name, labels] = [a + b for a, b in zip(known, values, strict=True)]
    totals["workers", ()] = [float(heard)]
    return totals


def _histogram(made: dict[str, Metric], name: str, labels: Labels, values: list[float]) -> None:
    family: Family = HISTOGRAMS[name]
    cumulative, total = [], 0.0
    for most, value in zip((*family.buckets, math.inf), values[:-1], strict=True):
        total += value
        cumulative.append(("+Inf" if most == math.inf else f"{most:g}", total))
    histogram = made.setdefault(
        name, HistogramMetricFamily(f"lacuna_{name}", family.help, labels=family.labels)
    )
    histogram.add_metric(labels, cumulative, values[-1])  # type: ignore[attr-defined]
