"""A simulated market: users, ads, what is known about them, and who would click on what.

How much a user likes an ad has three sides: taste, the ad's quality, and price. Nobody sees them.
What an ad server sees are a dozen scores, each a noisy mix of them, so scores that are there say
something about those that are not. Scores lie about 0.5: a 0 in place of one that is missing says
"very bad" of what is merely unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Of each score: its share of taste, quality and price, and who supplies it.
SCORES = {
    "interest_match": ((0.85, 0.0, 0.0), "profile"),
    "brand_affinity": ((0.7, 0.0, 0.4), "profile"),
    "category_views": ((0.8, 0.0, 0.0), "profile"),
    "past_category_ctr": ((0.75, 0.2, 0.0), "history"),
    "past_purchases": ((0.5, 0.0, 0.65), "history"),
    "ad_ctr_7d": ((0.0, 0.85, 0.0), "statistics"),
    "ad_ctr_1d": ((0.0, 0.75, 0.0), "statistics"),
    "landing_quality": ((0.0, 0.8, 0.0), "quality"),
    "creative_score": ((0.0, 0.65, 0.35), "quality"),
    "text_match": ((0.6, 0.0, 0.0), "request"),
    "price_fit": ((0.0, 0.0, 0.75), "request"),
    "format_fit": ((0.0, 0.5, 0.0), "request"),
}
NAMES = tuple(SCORES)
SUPPLIERS = tuple(dict.fromkeys(supplier for _, supplier in SCORES.values()))
REASONS = {
    "profile": "no consent",
    "history": "new user",
    "statistics": "new ad",
    "quality": "upstream timeouts",
}

USERS, ADS, TRAITS = 2_000, 200, 4
CANDIDATES = 12
MEAN, SPREAD = 0.5, 0.2  # of a score

NO_CONSENT, NEW_USER, NEW_AD = 0.35, 0.3, 0.35  # shares
TIMEOUT, TIMEOUT_IN_OUTAGE = 0.15, 0.85
OUTAGE_EVERY_S, OUTAGE_S = 20.0, 6.0

CLICKS, SLOPE = 0.10, np.array([0.06, 0.06, 0.03])  # mean, and what each side adds to it
LEAST, MOST = 0.005, 0.9


@dataclass(frozen=True, slots=True)
class World:
    taste: Floats  # (users, ads)
    price: Floats  # (users, ads)
    quality: Floats  # (ads,)
    consents: Mask  # (users,)
    known: Mask  # (users,)
    measured: Mask  # (ads,)

    @classmethod
    def draw(cls, seed: int) -> World:
        rng = np.random.default_rng(seed)
        return cls(
            _affinity(rng),
            _affinity(rng),
            rng.standard_normal(ADS),
            rng.random(USERS) >= NO_CONSENT,
            rng.random(USERS) >= NEW_USER,
            rng.random(ADS) >= NEW_AD,
        )

    def sides(self, user: int, ads: NDArray[np.int64]) -> Floats:
        """Taste, quality, price of every ad, (K, 3)."""
        return np.stack([self.taste[user, ads], self.quality[ads], self.price[user, ads]], axis=1)

    def click_probability(self, user: int, ads: NDArray[np.int64]) -> Floats:
        """(K,)"""
        return np.clip(CLICKS + self.sides(user, ads) @ SLOPE, LEAST, MOST)

    def scores(
        self, user: int, ads: NDArray[np.int64], rng: np.random.Generator, *, outage: bool
    ) -> Floats:
        """What the suppliers say now, (K, d), NaN where they say nothing."""
        share = np.array([mix for mix, _ in SCORES.values()])  # (d, 3)
        noise = np.sqrt(1.0 - (share**2).sum(axis=1))
        raw = self.sides(user, ads) @ share.T + noise * rng.standard_normal((len(ads), len(NAMES)))
        x = MEAN + SPREAD * raw
        timeouts = rng.random(len(ads)) < (TIMEOUT_IN_OUTAGE if outage else TIMEOUT)
        silent = {
            "profile": np.full(len(ads), not self.consents[user]),
            "history": np.full(len(ads), not self.known[user]),
            "statistics": ~self.measured[ads],
            "quality": timeouts,
        }
        for supplier, where in silent.items():
            x[np.ix_(np.flatnonzero(where), np.array(block(supplier)))] = np.nan
        return x


def block(supplier: str) -> list[int]:
    """The places of a supplier's scores."""
    return [place for place, (_, by) in enumerate(SCORES.values()) if by == supplier]


def in_outage(elapsed_s: float) -> bool:
    """
    >>> [in_outage(s) for s in (0.0, 15.0, 21.0, 35.0)]
    [False, True, False, True]
    """
    return elapsed_s % OUTAGE_EVERY_S >= OUTAGE_EVERY_S - OUTAGE_S


def _affinity(rng: np.random.Generator) -> Floats:
    users = rng.standard_normal((USERS, TRAITS))
    ads = rng.standard_normal((ADS, TRAITS))
    return users @ ads.T / np.sqrt(TRAITS)
