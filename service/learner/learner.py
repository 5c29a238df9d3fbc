"""The learner: choose, learn, refresh. Pure state and arithmetic; no IO, no clock.

One round is `observe` (the arms into the moments), `prepare` (estimate, refresh when due),
`choose`, and later `learn`. `select` and `reward` do just that for one process; a service with
many workers calls the parts, and lets the moments and the rewards of others in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from . import estimate as estimates
from . import presets, randomness
from .arms import Arms, Floats, Mask
from .completion import complete
from .config import LearnerConfig
from .estimate import Estimate
from .history import History, Refreshed, Rows
from .moments import Moments
from .policies import Scoring, make_policy
from .presets import Round
from .regression import SMALL, Regression, accumulate, check_reward
from .scoring import choose_optimistic

# An estimate is used until the arms seen have grown by this share (preset `practical`).
ESTIMATE_GROWTH = 0.01


@dataclass(slots=True)
class Choices:
    """What was chosen for R requests, and why. Rows of `z`, `mean`, `bonus` are arms, as sent."""

    index: list[int]  # R: the chosen arm's position within its request
    probability: list[float]  # R
    learns: list[bool]  # R: whether the reward goes into the model
    rounds: list[Round]  # R
    arms: Arms
    z: Floats  # (A, d+1)  ẑ
    mean: Floats  # (A,)    ẑᵀθ̂
    bonus: Floats  # (A,)   score = mean + bonus
    model_version: int  # r

    def row(self, request: int, reward: float) -> Rows:
        """The chosen row of a request with its reward."""
        chosen = self.arms.starts[request] + self.index[request]
        return Rows(
            self.z[chosen : chosen + 1],
            self.arms.observed[chosen : chosen + 1],
            np.array([reward]),
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
        self._randomised = config.epsilon > 0.0 or not self.policy.deterministic
        # Only the paper's λ depends on the request, by its K and T.
        self._ridge_moves = config.preset == "paper" and config.ridge is None

    # One process, one caller --------------------------------------------------------------

    def select(self, features: ArrayLike, mask: ArrayLike | None = None) -> Choices:
        """One round: (K, d) features, NaN where missing."""
        return self.select_batch(Arms.of(features, mask, dimension=self.config.dimension))

    def select_batch(self, arms: Arms) -> Choices:
        """Rounds that are played at once: all of their arms are in the moments of each."""
        self.moments.add(arms)
        self.prepare()
        return self.choose(arms)

    def reward(self, choices: Choices, reward: float, request: int = 0) -> None:
        value = check_reward(reward)
        if choices.learns[request]:
            self.learn(choices.row(request, value))

    # The parts ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """The estimate, and the refresh of past choices, as far as they are due."""
        if self.refresh_due():
            self.estimate = self.new_estimate()
            self.refresh(self.estimate)
        elif self.estimate_due():
            self.estimate = self.new_estimate()

    def estimate_due(self) -> bool:
        if not self.policy.completes:
            return False
        if self.estimate is None or self.config.preset == "paper":
            return True
        return self.moments.arms > (1.0 + ESTIMATE_GROWTH) * self.estimate.arms

    def new_estimate(self) -> Estimate:
        if self.config.preset == "paper":
            return estimates.exact(self.moments)
        return estimates.guarded(self.moments, uniform_missingness=self.config.uniform_missingness)

    def refresh_due(self) -> bool:
        return self.policy.refreshes and self.model.count + 1 >= self.next_refresh

    def refresh(self, estimate: Estimate) -> None:
        """Complete every kept choice with today's ν̂, Σ̂ and rebuild S, b (Algorithm 1, t = 2^i)."""
        self.adopt(self.history.completed_anew(estimate))

    def adopt(self, refreshed: Refreshed, late: Sequence[Rows] = ()) -> None:
        """Take over a refresh made elsewhere, and put behind it the rows learnt while it ran."""
        count = self.model.count - sum(len(rows) for rows in late)
        self.history.replace(refreshed.z)
        for rows in late:
            accumulate(rows.z, rows.y, refreshed.s, refreshed.b)
            self.history.append(rows)
        self.model.replace(refreshed.s, refreshed.b)
        self.next_refresh = 1 << (count + 1).bit_length()

    def learn(self, rows: Rows) -> None:
        """Fold rewarded choices, in order."""
        self.model.add(rows.z, rows.y)
        if self.policy.refreshes:
            self.history.append(rows)

    def learn_meanwhile(self, rows: Rows) -> None:
        """Fold while a refresh runs elsewhere; `adopt` wants these rows again."""
        self.model.add(rows.z, rows.y)

    def choose(self, arms: Arms) -> Choices:
        """Score all arms of all requests with one model and pick one arm for each request.

        The requests must be in the moments already: the last of them is round `moments.rounds`.
        """
        return self._choose(arms, self.moments.rounds - arms.requests + 1)

    def preview(self, arms: Arms, *, anew: bool = True) -> Choices:
        """What the next round would choose; nothing changes.

        Without `anew` the estimate that is there will do, also where the round would make another.
        """
        shown = copy(self)
        shown.model = copy(self.model)  # its λ may move, which makes a new factor
        if self.policy.completes and (anew or self.estimate is None):
            shown.moments = self.moments.copy()
            shown.moments.add(arms)
            if shown.estimate_due():
                shown.estimate = shown.new_estimate()
        return shown._choose(arms, self.moments.rounds + 1)

    def _choose(self, arms: Arms, first_round: int) -> Choices:
        rounds = [
            Round(t, stop - start, presets.horizon_of(self.config, t))
            for t, (start, stop) in enumerate(pairwise(arms.starts), first_round)
        ]
        active = self._active(arms, rounds)
        if len(rounds) > 1 and self._ridge_moves:
            return self._scored_apart(arms, rounds, active)
        self.model.set_ridge(presets.ridge(self.config, rounds[0]))
        return self._scored(arms, rounds, active)

    def _scored(self, arms: Arms, rounds: list[Round], active: Mask | None) -> Choices:
        """All requests under the λ that is set."""
        policy, model = self.policy, self.model
        estimate = self.estimate if policy.completes else None
        p_hat = 1.0 if estimate is None else estimate.p_hat
        z = arms.z if estimate is None else arms.z.copy()
        if policy.deterministic and len(model.b) <= SMALL:
            betas = [policy.beta(this, model, p_hat) for this in rounds]
            mean, bonus, best, completed = choose_optimistic(
                z, arms, estimate, model, betas, active
            )
            self.completed_entries += completed
        else:
            if estimate is not None:
                self.completed_entries += complete(z, arms.observed, estimate)
            mean, width = model.score(z)
            bonus = policy.bonus(Scoring(rounds, arms.starts, z, active, p_hat, model), width)
            score = mean + bonus
            if active is not None:
                score[~active] = -np.inf
            # argmax takes the first of equals: ties go to the lowest index
            best = [int(score[start:stop].argmax()) for start, stop in pairwise(arms.starts)]
        if self._randomised or any(map(policy.explores, rounds)):
            scoring = Scoring(rounds, arms.starts, z, active, p_hat, model)
            index, probability = self._explored(scoring, best)
        else:
            index, probability = best, [1.0] * len(best)
        learns = [policy.learns(this) for this in rounds]
        return Choices(index, probability, learns, rounds, arms, z, mean, bonus, model.count)

    def _scored_apart(self, arms: Arms, rounds: list[Round], active: Mask | None) -> Choices:
        """Requests of different K under preset `paper`, whose λ depends on K and T: one by one."""
        parts = []
        for (start, stop), this in zip(pairwise(arms.starts), rounds, strict=True):
            self.model.set_ridge(presets.ridge(self.config, this))
            one = Arms(arms.z[start:stop], arms.observed[start:stop], [0, stop - start])
            allowed = None if active is None else active[start:stop]
            parts.append(self._scored(one, [this], allowed))
        return Choices(
            [part.index[0] for part in parts],
            [part.probability[0] for part in parts],
            [part.learns[0] for part in parts],
            rounds,
            arms,
            np.concatenate([part.z for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.bonus for part in parts]),
            self.model.count,
        )

    def _explored(self, scoring: Scoring, best: list[int]) -> tuple[list[int], list[float]]:
        """The best arms, but for rounds that are uniform, in whole or with probability ε."""
        chosen = best.copy()
        uniform = [0.0] * len(best)  # P(arm) that comes from choosing uniformly
        greedy = [1.0] * len(best)  # the share of the round that is left to the policy
        for r, this in enumerate(scoring.rounds):
            share = 1.0 if self.policy.explores(this) else self.config.epsilon
            if share > 0.0:
                coin, place = randomness.of_round(self.config.seed, this.number).random(2)
                allowed = scoring.allowed(r)
                uniform[r], greedy[r] = share / len(allowed), 1.0 - share
                if coin < share:
                    chosen[r] = int(allowed[int(place * len(allowed))])
        by_policy = self.policy.propensity(scoring, best, chosen)
        return chosen, [u + g * p for u, g, p in zip(uniform, greedy, by_policy, strict=True)]

    def _active(self, arms: Arms, rounds: list[Round]) -> Mask | None:
        """Arms with ‖x‖₂ ≤ c √(|S| ln(KT)); all arms of a request where none is left."""
        if self.config.active_set is None:
            return None
        active = np.empty(len(arms.z), dtype=np.bool_)
        for (start, stop), this in zip(pairwise(arms.starts), rounds, strict=True):
            seen = arms.observed[start:stop].sum(axis=1)  # |S|
            limit = self.config.active_set * np.sqrt(seen * math.log(this.arms * this.horizon))
            inside = np.linalg.norm(arms.x[start:stop], axis=1) <= limit
            active[start:stop] = inside if inside.any() else True
        return active
