"""The paper as plain loops: Algorithms 1 and 2 and OFUL, O(t) a round and all.

Written from the paper's text, sharing nothing with `service.learner`: this is the independent path
that the fast code is checked against. The one departure is the design's bound on X_t (see
docs/decisions/0002-bound-on-x.md), which both use; `x_exactly` gives the paper's own sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

RCOND = 1e-12


def completed(nu, sigma, x, m):
    """x̄(ν, Σ, x) of Theorem noisyGerased, with the Moore-Penrose inverse of the notation."""
    seen = [j for j in range(len(x)) if m[j]]
    missing = [j for j in range(len(x)) if not m[j]]
    out = np.array(x, dtype=float)
    if not missing:
        return out
    if not seen:
        return np.array(nu, dtype=float)
    inverse = np.linalg.pinv(sigma[np.ix_(seen, seen)], rcond=RCOND, hermitian=True)
    gap = np.array([x[j] - nu[j] for j in seen])
    for j in missing:
        out[j] = nu[j] + sigma[j, seen] @ inverse @ gap
    return out


def estimated(xi, z, n, arms, d):
    """p̂, ν̂, Σ̂ of Algorithm 1 with tK written as the number of arms so far."""
    p = max(1, n) / (d * arms)
    nu = xi / (arms * p)
    sigma = np.empty((d, d))
    for i in range(d):
        for j in range(d):
            factor = (p - 1) / p**2 * (i == j) + 1 / p**2
            sigma[i, j] = z[i, j] / arms * factor - nu[i] * nu[j]
    return p, nu, sigma


@dataclass
class Past:
    x: np.ndarray
    m: np.ndarray
    zhat: np.ndarray
    y: float | None = None


@dataclass
class Naive:
    """One of "clbbf", "e-clbbf", "oful", round by round."""

    policy: str
    d: int
    horizon: int | None = None
    alpha: float = 0.5
    c2: float = 1.0
    c4: float = 1.0
    c5: float = 1.0
    c6: float = 1.0
    t: int = 0
    arms: int = 0
    n: int = 0
    past: list[Past] = field(default_factory=list)

    def __post_init__(self):
        self.xi = np.zeros(self.d)
        self.z = np.zeros((self.d, self.d))
        self.i = 1

    def total_rounds(self):
        return self.horizon if self.horizon else 2 ** math.ceil(math.log2(self.t + 1))

    def choose(self, x, m, uniform_choice):
        """x (K, d) with 0 in the holes, m (K, d). `uniform_choice(K)` draws as the paper does."""
        self.t += 1
        k = len(x)
        for a in range(k):
            self.arms += 1
            self.n += int(sum(m[a]))
            self.xi = self.xi + x[a]
            self.z = self.z + np.outer(x[a], x[a])
        big_t = self.total_rounds()
        self.p, self.nu, self.sigma = estimated(self.xi, self.z, self.n, self.arms, self.d)
        if self.policy == "oful":
            self.xbar = [np.array(x[a], dtype=float) for a in range(k)]
        else:
            self.xbar = [completed(self.nu, self.sigma, x[a], m[a]) for a in range(k)]
        zhat = [np.concatenate([[1.0], self.xbar[a]]) for a in range(k)]
        if self.policy == "clbbf" and self.t == 2**self.i:
            for row in self.past:
                xbar = completed(self.nu, self.sigma, row.x, row.m)
                row.zhat = np.concatenate([[1.0], xbar])
            self.i += 1

        self.lam = self.c4 * self.d * math.log(k * big_t)
        self.v = self.lam * np.eye(self.d + 1)
        self.b = np.zeros(self.d + 1)
        for row in self.past:
            self.v = self.v + np.outer(row.zhat, row.zhat)
            self.b = self.b + row.zhat * row.y
        inverse = np.linalg.inv(self.v)
        self.theta = np.linalg.solve(self.v, self.b)

        exploring = self.t == 1
        if self.policy == "e-clbbf":
            tau = math.ceil(self.d * math.log(big_t) ** 2 / (k * self.alpha**4))
            exploring = self.t <= tau
        self.beta = self.c5 * math.sqrt((self.d + 1) * math.log(self.t * big_t))
        self.beta += self.c2 * math.sqrt(self.lam)
        if self.policy == "clbbf":
            share = math.sqrt(math.log(k * big_t) / k)
            self.beta += self.c6 * (self.d / self.p) ** 1.5 * share * self.x_bound(inverse)
        self.scores = [
            zhat[a] @ self.theta + self.beta * math.sqrt(zhat[a] @ inverse @ zhat[a])
            for a in range(k)
        ]
        if exploring:
            arm = uniform_choice(k)
        else:
            arm = 0
            for a in range(1, k):
                if self.scores[a] > self.scores[arm]:
                    arm = a
        if not (self.policy == "e-clbbf" and exploring):
            self.past.append(Past(np.array(x[arm]), np.array(m[arm]), zhat[arm]))
            self.waiting = True
        else:
            self.waiting = False
        return arm

    def observe_reward(self, y):
        if self.waiting:
            self.past[-1].y = y

    def x_bound(self, inverse):
        """√(r tr(V⁻¹S)) ≥ X_t"""
        s = self.v - self.lam * np.eye(self.d + 1)
        return math.sqrt(len(self.past) * max(0.0, np.trace(inverse @ s)))

    def x_exactly(self, inverse):
        """X_t = Σ_s ‖ẑ_s‖_{V⁻¹}"""
        return sum(math.sqrt(row.zhat @ inverse @ row.zhat) for row in self.past)
