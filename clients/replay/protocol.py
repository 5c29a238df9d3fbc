"""The rounds: which impressions are candidates, what is erased of them, what each would pay.

`pools`: the paper's protocol. One clicked and K − 1 unclicked impressions out of pools drawn once,
at shuffled positions. `log`: K impressions after another as logged.

A round is a function of seed and number alone: every policy meets the same rounds, a run can go on
from any of them, and another erasure probability hides more or less of the same entries.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .errors import TooFew

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]

BLOCK_ROUNDS = 250
POOLS, ROUNDS, HOLES = 1, 2, 3  # streams of a seed


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment, fully said; with a seed and the impressions it is determined."""

    mode: Literal["pools", "log"] = "pools"
    arms: int = 20  # K
    pool: int = 1_000
    erased: float = 0.1  # 1 − p
    erase: Literal["item", "view"] = "view"  # holes are an impression's own, or new each time
    rounds: int = 10_000  # T

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Block:
    x: Floats  # (B, K, d), NaN where missing
    paid: Bits  # (B, K)


class Rounds:
    def __init__(
        self, codes: NDArray[np.float32], clicks: Bits, setting: Setting, seed: int
    ) -> None:
        self.setting, self.seed = setting, seed
        self.codes, self.clicks = codes, clicks
        if setting.mode == "log":
            available = len(clicks) // setting.arms
            if available < setting.rounds:
                raise TooFew(
                    f"the log has {len(clicks):,} impressions, enough for {available:,} rounds of "
                    f"{setting.arms} arms, not {setting.rounds:,}"
                )
            return
        rng = np.random.default_rng([seed, POOLS])
        self.clicked = self._pool(np.flatnonzero(clicks), "clicked", rng)
        self.unclicked = self._pool(np.flatnonzero(~clicks), "unclicked", rng)
        if setting.erase == "item":
            holes = np.random.default_rng([seed, HOLES])
            self.draw = holes.random((2 * setting.pool, codes.shape[1]), dtype=np.float32)

    def _pool(
        self, candidates: NDArray[np.intp], kind: str, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        if len(candidates) < self.setting.pool:
            raise TooFew(
                f"there are {len(candidates):,} {kind} impressions in the sample, fewer than the "
                f"{self.setting.pool:,} of --pool; a larger --sample-rows may hold more"
            )
        return rng.choice(candidates, self.setting.pool, replace=False)

    def block(self, number: int) -> Block:
        start = number * BLOCK_ROUNDS
        count = min(BLOCK_ROUNDS, self.setting.rounds - start)
        rng = np.random.default_rng([self.seed, ROUNDS, number])
        # Drawn for a full block, so that a longer run begins as a shorter one.
        if self.setting.mode == "log":
            rows, paid = self._logged(start, count, rng)
            draw = self._fresh_holes(number)[:count]
        else:
            rows, paid, draw = self._from_pools(number, rng)
            rows, paid, draw = rows[:count], paid[:count], draw[:count]
        x = self.codes[rows].astype(np.float64)
        x[draw < self.setting.erased] = np.nan
        return Block(x, paid)

    def _from_pools(self, number: int, rng: np.random.Generator) -> tuple[Any, Bits, Any]:
        K, pool = self.setting.arms, self.setting.pool
        others = np.argpartition(rng.random((BLOCK_ROUNDS, pool)), K - 1, axis=1)[:, : K - 1]
        one = rng.integers(pool, size=BLOCK_ROUNDS)
        place = rng.integers(K, size=BLOCK_ROUNDS)
        each = np.arange(BLOCK_ROUNDS)
        items = np.empty((BLOCK_ROUNDS, K), dtype=np.intp)  # below `pool`: clicked
        items[:, 1:] = others + pool
        items[each, 0] = items[each, place]
        items[each, place] = one
        # At place 0 nothing moved: its own item was never set, and is now the clicked one.
        paid = items < pool
        rows = np.concatenate([self.clicked, self.unclicked])[items]
        draw = self.draw[items] if self.setting.erase == "item" else self._fresh_holes(number)
        return rows, paid, draw

    def _logged(
        self, start: int, count: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], Bits]:
        K = self.setting.arms
        order = rng.random((BLOCK_ROUNDS, K)).argsort(axis=1)[:count]
        rows = (start + np.arange(count))[:, None] * K + order
        return rows, self.clicks[rows]

    def _fresh_holes(self, number: int) -> NDArray[np.float32]:
        rng = np.random.default_rng([self.seed, HOLES, number])
        shape = (BLOCK_ROUNDS, self.setting.arms, self.codes.shape[1])
        return rng.random(shape, dtype=np.float32)


class MeanFilled:
    """The same rounds with every hole filled by the mean of its feature over all arms so far."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        d = rounds.codes.shape[1]
        self.sums, self.counts = np.zeros(d), np.zeros(d)
        self.next = 0

    def block(self, number: int) -> Block:
        while self.next < number:  # a run that goes on
            self._fill(self.rounds.block(self.next))
        return self._fill(self.rounds.block(number))

    def _fill(self, block: Block) -> Block:
        seen = ~np.isnan(block.x)
        sums = self.sums + np.where(seen, block.x, 0.0).sum(axis=1).cumsum(axis=0)  # (B, d)
        counts = self.counts + seen.sum(axis=1).cumsum(axis=0)
        self.sums, self.counts = sums[-1], counts[-1]
        self.next += 1
        means = sums / np.maximum(counts, 1.0)
        return Block(np.where(seen, block.x, means[:, None, :]), block.paid)
