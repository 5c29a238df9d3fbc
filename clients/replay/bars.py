"""What CLBBF must reach on a sample of Avazu: ratios of click-through rates."""

from __future__ import annotations

from collections.abc import Sequence

from clients.tables import aligned

from .report import Summary

POLICY = "clbbf"
BARS = {  # (erased, against): at least
    (0.1, "clbbf-paper"): 1.4,
    (0.1, "oful"): 1.08,
    (0.4, "oful"): 1.25,
}
ERASED = (0.1, 0.4)
POLICIES = ("clbbf", "oful", "clbbf-paper", "mean-fill", "random")


def reached(summaries: Sequence[Summary]) -> dict[tuple[float, str], float]:
    rates = {(one.setting.erased, one.policy): one.ctr for one in summaries}
    return {
        (erased, against): rates[erased, POLICY] / rates[erased, against]
        for erased, against in BARS
        if rates.get((erased, against))
    }


def passed(summaries: Sequence[Summary]) -> bool:
    found = reached(summaries)
    return all(found.get(bar, 0.0) >= least for bar, least in BARS.items())


def table(summaries: Sequence[Summary]) -> str:
    found = reached(summaries)
    head = [f"CTR of {POLICY} over", "erased", "reached", "at least", ""]
    body = [
        [against, f"{erased:g}", f"{ratio:.3f}", f"{BARS[erased, against]:g}",
         "PASS" if ratio >= BARS[erased, against] else "FAIL"]
        for (erased, against), ratio in found.items()
    ]  # fmt: skip
    return aligned([head, *body])
