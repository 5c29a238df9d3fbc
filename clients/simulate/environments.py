"""Where a policy plays: rounds of arms, what each arm would pay, and what the oracle thinks of it.

An environment is drawn from a seed alone. Its model (θ*, ν, Σ) and its rounds come from two
streams of that seed, and a round's numbers do not depend on the arm chosen, so every policy
meets the same arms and the same noise. The same seed with another p has the same arms too: one
uniform number per entry decides whether it is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from clients.errors import BadArgument

from .oracle import Oracle

Floats = NDArray[np.float64]

MODEL, ROUNDS = 1, 2  # the two streams of a seed
BLOCK_ROUNDS = 500
BLOCK_ENTRIES = 1 << 24  # bounds the oracle's batch of (u, u) matrices to 128 MiB

HETEROGENEOUS_RATES = (0.3, 1.0)
FIXED_MEANS = (1.1, 1.0, 0.9, 0.8, 0.7)  # the best 10 % above the second
VIEW_NOISE = 1e-3  # spectral norm of Σ_n where the arms are fixed
RARE_RATE = 0.01
RARE_SPREAD = 0.5  # one standard deviation of zᵀθ* moves the rate by this share


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment, fully said; with a seed it is determined."""

    environment: str
    dimension: int  # d
    arms: int  # K
    observed: float | None  # p; None where the environment has rates of its own
    rounds: int  # T

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        seen = "" if self.observed is None else f", p={self.observed:g}"
        return f"{self.environment}: d={self.dimension}, K={self.arms}{seen}, T={self.rounds:,}"


@dataclass(frozen=True, slots=True)
class Block:
    """B rounds."""

    x: Floats  # (B, K, d) what is seen, NaN where missing
    reward: Floats  # (B, K) what each arm would pay
    value: Floats  # (B, K) its expectation given what can be seen


@dataclass(frozen=True, slots=True)
class Model:
    """Features z ~ N(ν, FᵀF), views x = z + ε with ε ~ N(0, GᵀG); ‖FᵀF‖₂ = ‖GᵀG‖₂ = 1."""

    theta: Floats  # (d,)  θ*
    nu: Floats  # (d,)
    f: Floats  # (d, d)  Σ_f = FᵀF
    g: Floats  # (d, d)  Σ_n = GᵀG

    @classmethod
    def draw(cls, seed: int, dimension: int) -> Model:
        """Section exp: all uniform on [0, 1], vectors over their 2-norm, Σ over its spectral."""
        rng = stream(seed, MODEL)
        theta, nu = rng.random((2, dimension))
        f, g = rng.random((2, dimension, dimension))
        return cls(
            theta / np.linalg.norm(theta),
            nu / np.linalg.norm(nu),
            f / np.linalg.norm(f, 2),  # ‖FᵀF‖₂ = ‖F‖₂²
            g / np.linalg.norm(g, 2),
        )

    def oracle(self) -> Oracle:
        return Oracle(self.theta, self.nu, self.f.T @ self.f, self.g.T @ self.g)

    def features(self, rng: np.random.Generator, rounds: int, arms: int) -> Floats:
        z: Floats = self.nu + rng.standard_normal((rounds, arms, len(self.nu))) @ self.f
        return z

    def views(self, rng: np.random.Generator, z: Floats, rates: Floats) -> Floats:
        """z + ε where seen, feature j with probability rates[j]; NaN elsewhere."""
        x = z + rng.standard_normal(z.shape) @ self.g
        return np.where(rng.random(z.shape) < rates, x, np.nan)


def stream(seed: int, which: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(which,)))


def block_rounds(setting: Setting) -> int:
    """Whole blocks only, of a size that T does not change: a longer run begins as a shorter one."""
    return max(1, min(BLOCK_ROUNDS, BLOCK_ENTRIES // (setting.arms * setting.dimension**2)))


def gaussian(setting: Setting, seed: int, rates: Floats) -> Iterator[Block]:
    """y = zᵀθ* + η, η ~ N(0, 1)   (section prob)"""
    model = Model.draw(seed, setting.dimension)
    oracle, rng, b = model.oracle(), stream(seed, ROUNDS), block_rounds(setting)
    while True:
        z = model.features(rng, b, setting.arms)
        x = model.views(rng, z, rates)
        reward = z @ model.theta + rng.standard_normal((b, 1))
        yield Block(x, reward, oracle.value(x))


def homogeneous(setting: Setting, seed: int) -> Iterator[Block]:
    return gaussian(setting, seed, _rates(setting))


def heterogeneous(setting: Setting, seed: int) -> Iterator[Block]:
    return gaussian(setting, seed, np.linspace(*HETEROGENEOUS_RATES, setting.dimension))


def low_diversity(setting: Setting, seed: int) -> Iterator[Block]:
    """The same five arms in every round, seen through noise and holes.

    Their features are orthonormal, so that an arm says nothing about the others: only trying an
    arm tells what it is worth. An arm's value is its mean reward, z_aᵀθ*.
    """
    base = Model.draw(seed, setting.dimension)
    rng, b = stream(seed, ROUNDS), block_rounds(setting)
    basis = np.linalg.qr(rng.standard_normal((setting.dimension, setting.arms)))[0]
    z = basis.T  # (5, d)
    means = rng.permutation(np.array(FIXED_MEANS))
    model = Model(z.T @ means, base.nu, base.f, np.sqrt(VIEW_NOISE) * base.g)
    value = np.broadcast_to(means, (b, setting.arms))
    while True:
        x = model.views(rng, np.broadcast_to(z, (b, *z.shape)), _rates(setting))
        yield Block(x, value + rng.standard_normal((b, 1)), value)


def rare(setting: Setting, seed: int) -> Iterator[Block]:
    """Clicks: y = 1 with probability clip(rate · (1 + spread · s), 0, 1), else 0.

    s = (z − ν)ᵀθ* / sd(zᵀθ*). An arm's value is the expectation of that probability given x,
    clipping included: given x, zᵀθ* is Gaussian with the oracle's mean and variance.
    """
    model = Model.draw(seed, setting.dimension)
    oracle, rng, b = model.oracle(), stream(seed, ROUNDS), block_rounds(setting)
    centre = model.nu @ model.theta
    slope = RARE_RATE * RARE_SPREAD / np.linalg.norm(model.f @ model.theta)
    while True:
        z = model.features(rng, b, setting.arms)
        x = model.views(rng, z, _rates(setting))
        chance = np.clip(RARE_RATE + slope * (z @ model.theta - centre), 0.0, 1.0)
        mean = RARE_RATE + slope * (oracle.value(x) - centre)
        value = clipped_mean(mean, slope * np.sqrt(oracle.variance(np.isnan(x))))
        yield Block(x, (rng.random((b, 1)) < chance).astype(np.float64), value)


def clipped_mean(mean: Floats, deviation: Floats) -> Floats:
    """E[clip(g, 0, 1)] for g ~ N(mean, deviation²)."""

    def above(level: float) -> Floats:  # E[(g − level)⁺]
        s = (mean - level) / deviation
        excess: Floats = (mean - level) * norm.cdf(s) + deviation * norm.pdf(s)
        return excess

    return above(0.0) - above(1.0)


def _rates(setting: Setting) -> Floats:
    assert setting.observed is not None
    return np.full(setting.dimension, setting.observed)


@dataclass(frozen=True, slots=True)
class Kind:
    """An environment by name: how to play it, and the setting it has unless told otherwise."""

    blocks: Callable[[Setting, int], Iterator[Block]]
    summary: str
    default: Setting


ENVIRONMENTS = {
    kind.default.environment: kind
    for kind in (
        Kind(homogeneous, "the paper's figure: d=2", Setting("paper", 2, 100, 0.7, 10_000)),
        Kind(
            homogeneous,
            "the paper's model, larger",
            Setting("homogeneous", 10, 20, 0.7, 10_000),
        ),
        Kind(
            heterogeneous,
            "feature j is seen with its own rate, from 0.3 to 1.0",
            Setting("heterogeneous", 8, 15, None, 10_000),
        ),
        Kind(
            low_diversity,
            "the same five arms in every round; the best is 10 % better",
            Setting("low-diversity", 10, len(FIXED_MEANS), 0.9, 10_000),
        ),
        Kind(rare, "clicks, about 1 in 100", Setting("rare", 10, 20, 0.9, 50_000)),
    )
}


def make_setting(
    environment: str,
    *,
    dimension: int | None = None,
    arms: int | None = None,
    observed: float | None = None,
    rounds: int | None = None,
) -> Setting:
    """The environment's own setting with what is given in place; refused where it cannot be."""
    default = ENVIRONMENTS[environment].default
    if default.observed is None and observed is not None:
        raise BadArgument(f"--observed: {environment} has rates of its own")
    setting = Setting(
        environment,
        dimension or default.dimension,
        arms or default.arms,
        default.observed if observed is None else observed,
        rounds or default.rounds,
    )
    if environment == "low-diversity":
        if setting.arms != len(FIXED_MEANS):
            raise BadArgument(f"--arms: {environment} has {len(FIXED_MEANS)} arms")
        if setting.dimension < setting.arms:
            raise BadArgument(f"--dimension: {environment} needs at least {setting.arms}")
    return setting


def blocks(setting: Setting, seed: int) -> Iterator[Block]:
    """Endless."""
    return ENVIRONMENTS[setting.environment].blocks(setting, seed)
