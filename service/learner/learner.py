"""The learner: choose, learn, refresh. Pure state and arithmetic; no IO, no clock.

One round is `observe` (the arms into the moments), `prepare` (estimate, refresh when due),
`choose`, and later `learn`. `select` and `reward` do just that for one process; a service with
many workers calls the parts, and lets the moments and the rewards of others in between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import estimate as estimates
from . import presets, randomness
from .arms import Arms, Floats, Mask
from .completion import complete, with_one
from .config import LearnerConfig
from .errors import BadInput
from .estimate import Estimate
from .history import History, Rows
from .moments import Moments
from .policies import Scoring, make_policy
from .presets import Round
from .regression import Regression, check_reward

# An estimate is used until the arms seen have grown by this share (preset `practical`).
ESTIMATE_GROWTH = 0.01


@dataclass(frozen=True, slots=True)
class Choices:
    """What was chosen for R requests, and why. Rows of `mean`, `bonus`, `z` are arms, as sent."""

    index: NDArray[np.int64]  # (R,) the chosen arm's position within its request
    probability: Floats  # (R,)
    rounds: list[Round]
    learns: Mask  # (R,) whether the reward goes into the model
    rows: NDArray[np.int64]  # (R,) the chosen arm's row
    arms: Arms
    mean: Floats  # (A,)   ẑᵀθ̂
    bonus: Floats  # (A,)  score = mean + bonus
    z: Floats  # (A, d+1)  ẑ
    model_version: int  # r

    def row(self, request: int) -> Rows:
        """The chosen row of a request, its reward still open (NaN)."""
        chosen = self.rows[request]
        return Rows(
            self.z[chosen : chosen + 1, 1:],
            self.arms.observed[chosen : chosen + 1],
            np.array([np.nan]),
        )


class Learner:
    def __init__(self, config: LearnerConfig) -> None:
        self.config = config
        self.policy = make_policy(config)
        self.moments = Moments.zero(config.dimension)
        self.estimate: Estimate | None = None
        self.model = Regression.zero(config.dimension)
        self.history = History(config.dimension, config.history_limit)
        self.next_refresh = 2  # due in the round where r + 1 reaches it
        self.completed_entries = 0

    # One process, one caller --------------------------------------------------------------

    def select(self, features: ArrayLike, mask: ArrayLike | None = None) -> Choices:
        """One round: (K, d) features, NaN where missing."""
        return self.select_batch(Arms.of(features, mask, dimension=self.config.dimension))

    def select_batch(self, arms: Arms) -> Choices:
        """Rounds that are played at once: all of their arms are in the moments of each."""
        self._check(arms)
        self.moments.add(arms)
        self.prepare()
        return self.choose(arms)

    def reward(self, choices: Choices, reward: float, request: int = 0) -> None:
        value = check_reward(reward)
        if choices.learns[request]:
            row = choices.row(request)
            row.y[0] = value
            self.learn(row)

    # The parts ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """The estimate, and the refresh of past choices, as far as they are due."""
        if self.policy.completes:
            if self.estimate_due():
                self.estimate = self.new_estimate()
            if self.refresh_due():
                if self.config.preset != "paper":
                    self.estimate = self.new_estimate()
                self.refresh()

    def estimate_due(self) -> bool:
        if self.estimate is None or self.config.preset == "paper":
            return True
        return self.moments.arms > (1.0 + ESTIMATE_GROWTH) * self.estimate.arms

    def new_estimate(self) -> Estimate:
        if self.config.preset == "paper":
            return estimates.exact(self.moments)
        return estimates.guarded(self.moments, uniform_missingness=self.config.uniform_missingness)

    def refresh_due(self) -> bool:
        return self.policy.refreshes and self.model.count + 1 >= self.next_refresh

    def refresh(self) -> None:
        """Complete every kept choice with today's ν̂, Σ̂ and rebuild S, b (Algorithm 1, t = 2^i)."""
        assert self.estimate is not None
        xbar, s, b = self.history.completed_anew(self.estimate)
        self.history.replace(xbar)
        self.model.replace(s, b)
        self.next_refresh = 1 << (self.model.count + 1).bit_length()

    def learn(self, rows: Rows) -> None:
        """Fold rewarded choices, in order."""
        self.model.add(with_one(rows.xbar), rows.y)
        if self.policy.refreshes:
            self.history.append(rows)

    def choose(self, arms: Arms) -> Choices:
        """Score all arms of all requests with one model and pick one arm for each request.

        The requests must be in the moments already: the last of them is round `moments.rounds`.
        """
        counts = arms.counts.tolist()
        first = self.moments.rounds - len(counts) + 1
        rounds = [
            Round(first + r, k, presets.horizon_of(self.config, first + r))
            for r, k in enumerate(counts)
        ]
        if self.policy.completes:
            assert self.estimate is not None
            z, completed = complete(arms.x, arms.observed, self.estimate)
            self.completed_entries += completed
        else:
            z = with_one(arms.x)

        active = self._active(arms, rounds)
        mean = np.empty(len(z))
        bonus = np.empty(len(z))
        index = np.empty(len(rounds), dtype=np.int64)
        probability = np.empty(len(rounds))
        for group in self._groups(rounds):
            rows = slice(arms.starts[group.start], arms.starts[group.stop])
            self.model.set_ridge(presets.ridge(self.config, rounds[group.start]))
            mean[rows], width = self.model.score(z[rows])
            scoring = Scoring(
                rounds[group],
                arms.starts[group.start : group.stop + 1] - rows.start,
                z[rows],
                width,
                active[rows],
                self._p_hat(),
                self.model,
            )
            bonus[rows] = self.policy.bonus(scoring)
            index[group], probability[group] = self._pick(scoring, mean[rows] + bonus[rows])
        return Choices(
            index=index,
            probability=probability,
            rounds=rounds,
            learns=np.array([self.policy.learns(this) for this in rounds]),
            rows=arms.starts[:-1] + index,
            arms=arms,
            mean=mean,
            bonus=bonus,
            z=z,
            model_version=self.model.count,
        )

    def _pick(self, scoring: Scoring, score: Floats) -> tuple[NDArray[np.int64], Floats]:
        """The arm of every request and the probability it had."""
        score[~scoring.active] = -np.inf
        best = np.empty(len(scoring.rounds), dtype=np.int64)
        starts = scoring.starts.tolist()
        for r in range(len(best)):
            # argmax takes the first of equals: ties go to the lowest index
            best[r] = score[starts[r] : starts[r + 1]].argmax()
        chosen = best.copy()
        uniform = np.zeros(len(best))  # the share of this round that is uniform
        candidates = np.ones(len(best))
        for r, this in enumerate(scoring.rounds):
            uniform[r] = 1.0 if self.policy.explores(this) else self.config.epsilon
            if uniform[r] > 0.0:
                coin, place = randomness.of_round(self.config.seed, this.number).random(2)
                allowed = np.flatnonzero(scoring.active[starts[r] : starts[r + 1]])
                candidates[r] = len(allowed)
                if coin < uniform[r]:
                    chosen[r] = allowed[int(place * len(allowed))]
        by_policy = self.policy.propensity(scoring, best, chosen)
        return chosen, uniform / candidates + (1.0 - uniform) * by_policy

    def _groups(self, rounds: list[Round]) -> list[slice]:
        """Runs of requests that have one λ. Only the paper's depends on K and T."""
        if self.config.preset != "paper" or self.config.ridge is not None:
            return [slice(0, len(rounds))]
        cuts = [r for r in range(1, len(rounds)) if rounds[r][1:] != rounds[r - 1][1:]]
        return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(rounds)], strict=True)]

    def _active(self, arms: Arms, rounds: list[Round]) -> Mask:
        """Arms with ‖x‖₂ ≤ c √(|S| ln(KT)); all arms of a request where none is left."""
        if self.config.active_set is None:
            return np.ones(len(arms.x), dtype=np.bool_)
        log_kt = np.log([this.arms * this.horizon for this in rounds])
        limit = np.repeat(log_kt, arms.counts) * arms.observed.sum(axis=1)
        active = np.linalg.norm(arms.x, axis=1) <= self.config.active_set * np.sqrt(limit)
        for start, stop in zip(arms.starts[:-1], arms.starts[1:], strict=True):
            if not active[start:stop].any():
                active[start:stop] = True
        return active

    def _p_hat(self) -> float:
        return 1.0 if self.estimate is None else self.estimate.p_hat

    def _check(self, arms: Arms) -> None:
        if arms.x.shape[1] != self.config.dimension:
            raise BadInput(
                "features",
                f"must have {self.config.dimension} per arm; there are {arms.x.shape[1]}",
            )
