"""The Bayesian oracle of Theorem noisyGerased: what an arm is worth, given what can be seen of it.

It knows θ*, ν, Σ_f, Σ_n. Written apart from `service.learner.completion`, so that an error there
cannot hide here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Oracle:
    """Σ_f + Σ_n must be positive definite, as the paper assumes.

    >>> oracle = Oracle([0.6, 0.8], [1.0, 1.0], np.eye(2), np.eye(2))
    >>> oracle.value(np.array([[np.nan, np.nan], [3.0, np.nan]])).round(3)
    array([1.4, 2. ])
    """

    def __init__(
        self, theta: ArrayLike, nu: ArrayLike, sigma_f: ArrayLike, sigma_n: ArrayLike
    ) -> None:
        theta, self.nu, sigma_f = np.asarray(theta), np.asarray(nu), np.asarray(sigma_f)
        sigma = sigma_f + np.asarray(sigma_n)
        # θ' = (Σ_f + Σ_n)⁻¹ Σ_f θ*,  θ̄ = [νᵀθ* − νᵀθ'; θ']   (Proposition noisyG)
        self.theta_prime: Floats = np.linalg.solve(sigma, sigma_f @ theta)
        self.theta_bar: Floats = np.append(
            self.nu @ theta - self.nu @ self.theta_prime, self.theta_prime
        )
        self.precision: Floats = np.linalg.inv(sigma)
        # Var(zᵀθ* | x) where nothing is missing: θ*ᵀΣ_fθ* − θ*ᵀΣ_f(Σ_f + Σ_n)⁻¹Σ_fθ*
        self.noise_variance = float(theta @ sigma_f @ (theta - self.theta_prime))

    def complete(self, x: Floats) -> Floats:
        """x̄(ν, Σ_f + Σ_n, x) of any number of arms, (…, d), NaN where missing.

        With Ω = (Σ_f + Σ_n)⁻¹, x̄_U = ν_U − Ω_UU⁻¹ Ω_US (x − ν)_S: one batched solve for all arms
        that miss equally many features.
        """
        arms = x.reshape(-1, x.shape[-1])  # (n, d)
        missing = np.isnan(arms)
        centred = np.where(missing, 0.0, arms - self.nu)
        pull = centred @ self.precision  # (n, d)  Ω_·S (x − ν)_S
        xbar = arms.copy()
        for rows, holes, omega in self._by_holes(missing):
            shift = np.linalg.solve(omega, pull[rows[:, None], holes][:, :, None])[:, :, 0]
            xbar[rows[:, None], holes] = self.nu[holes] - shift
        return xbar.reshape(x.shape)

    def value(self, x: Floats) -> Floats:
        """E[zᵀθ* | x] = [1; x̄]ᵀθ̄   (eq. r_missing), (…,)"""
        worth: Floats = self.theta_bar[0] + self.complete(x) @ self.theta_bar[1:]
        return worth

    def variance(self, missing: NDArray[np.bool_]) -> Floats:
        """Var(zᵀθ* | x), (…,): it depends on what is missing, not on what was seen.

        By the law of total variance, Var(zᵀθ* | x′) plus Var(x′ᵀθ' | x) = θ'_Uᵀ Ω_UU⁻¹ θ'_U.
        """
        masks = missing.reshape(-1, missing.shape[-1])
        total = np.full(len(masks), self.noise_variance)
        for rows, holes, omega in self._by_holes(masks):
            lost = self.theta_prime[holes]  # (n, u)
            total[rows] += (lost * np.linalg.solve(omega, lost[:, :, None])[:, :, 0]).sum(axis=1)
        return total.reshape(missing.shape[:-1])

    def _by_holes(self, missing: NDArray[np.bool_]) -> Iterator[tuple[Indices, Indices, Floats]]:
        """Rows that miss u > 0 features, which (n, u), and their Ω_UU (n, u, u); for every u."""
        counts = missing.sum(axis=1)
        for u in np.unique(counts[counts > 0]):
            rows = np.flatnonzero(counts == u)
            holes = np.nonzero(missing[rows])[1].reshape(len(rows), u)
            yield rows, holes, self.precision[holes[:, :, None], holes[:, None, :]]
