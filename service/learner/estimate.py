"""From moments to the distribution of the features: p̂, ν̂, Σ̂ and the precision Ω̂ = Σ̂⁻¹."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from scipy.linalg import lapack

from .arms import Floats
from .moments import Moments

# Eigenvalues of the guarded correlation matrix are at least this. Scale-free; far below what a
# real feature's own noise contributes, far above rounding.
EIGENVALUE_FLOOR = 1e-4
# Correlations are multiplied by N₂/(N₂ + this), N₂ the rows in which both features were seen.
SHRINKAGE_ROWS = 2.0
# A variance this small against the mean square is rounding: the feature is a constant.
CONSTANT_VARIANCE = 1e-12

LEAST_PIVOT = 1e-8  # below it Σ̂⁻¹ has lost half its digits

NO_PRECISION = np.empty((0, 0))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What completion needs. `omega` is empty where Σ̂ has no usable inverse (preset `paper`)."""

    p_hat: float
    nu: Floats  # (d,)    ν̂
    sigma: Floats  # (d, d)  Σ̂
    omega: Floats  # (d, d)  Ω̂ = Σ̂⁻¹, or (0, 0)
    arms: int  # N it was made from

    @classmethod
    def of(cls, p_hat: float, nu: Floats, sigma: Floats, arms: int) -> Estimate:
        """With the precision where Σ̂ has one that is safe to use: the same bits for the same Σ̂."""
        return cls(p_hat, nu, sigma, _precision(sigma), arms)


def observed_rate(moments: Moments) -> float:
    """p̂ = max(1, n) / (d N)"""
    return max(1.0, moments.observed_entries) / (moments.dimension * max(1, moments.arms))


def uniform(moments: Moments) -> tuple[float, Floats, Floats]:
    """The paper's estimate (Algorithm 1): one missing rate for all features."""
    n_arms = max(1, moments.arms)
    p = observed_rate(moments)
    nu = moments.xi / (n_arms * p)  # ν̂ = ξ / (N p̂)
    # Σ̂ = (Z/N) ∘ ((p̂−1)/p̂² I + 1/p̂² 11ᵀ) − ν̂ν̂ᵀ
    sigma = moments.z / (n_arms * p * p)
    diagonal = np.einsum("ii->i", sigma)
    diagonal *= p  # (p̂−1)/p̂² + 1/p̂² = 1/p̂
    sigma -= np.outer(nu, nu)
    return p, nu, sigma


def per_feature(moments: Moments) -> tuple[float, Floats, Floats]:
    """Every feature, and every pair, divided by how often it was really seen.

    What was never seen together has covariance 0; what was never seen at all has mean 0.
    """
    seen = np.maximum(moments.p, 1.0)  # (d, d)
    nu = moments.xi / np.diagonal(seen)  # ν̂_j = ξ_j / P_jj
    sigma = moments.z / seen - np.outer(nu, nu)  # Σ̂_ij = Z_ij / P_ij − ν̂_i ν̂_j
    sigma[moments.p == 0.0] = 0.0
    return observed_rate(moments), nu, sigma


def exact(moments: Moments) -> Estimate:
    """Preset `paper`: Σ̂ as it falls out, indefinite or not; Ω̂ only where it is safe to use."""
    p, nu, sigma = uniform(moments)
    return Estimate.of(p, nu, sigma, moments.arms)


def guarded(moments: Moments, *, uniform_missingness: bool) -> Estimate:
    """Positive definite whatever came in: shrunk a little, then floored, on the correlation scale.

    Method-of-moments covariances can be indefinite. Shrinkage toward the diagonal vanishes as the
    pairs are seen more often; the floor is met only where it is needed.
    """
    p, nu, sigma = uniform(moments) if uniform_missingness else per_feature(moments)
    correlation = np.empty_like(sigma)
    scale = np.empty_like(nu)
    _correlate(nu, sigma, moments.z, moments.p, correlation, scale)
    sigma = _floored(correlation) * (scale[:, None] * scale)  # symmetric to the bit
    return Estimate.of(p, nu, sigma, moments.arms)


@numba.njit(cache=True, nogil=True)
def _correlate(nu, sigma, z, p, correlation, scale):  # type: ignore[no-untyped-def]
    """Σ̂ as shrunk correlations, and the standard deviations they are scaled by.

    A constant feature is its mean and tells nothing of the others: variance 1, covariances 0.
    """
    d = len(nu)
    varies = np.empty(d, np.bool_)
    for j in range(d):
        second = max(z[j, j] / max(p[j, j], 1.0), nu[j] * nu[j])
        varies[j] = sigma[j, j] > CONSTANT_VARIANCE * second
        scale[j] = np.sqrt(sigma[j, j]) if varies[j] else 1.0
    for i in range(d):
        for j in range(d):
            if i == j:
                correlation[i, j] = 1.0
            elif varies[i] and varies[j]:
                r = sigma[i, j] / (scale[i] * scale[j])
                r *= p[i, j] / (p[i, j] + SHRINKAGE_ROWS)
                correlation[i, j] = max(-1.0, min(1.0, r))
            else:
                correlation[i, j] = 0.0


def _floored(correlation: Floats) -> Floats:
    """Eigenvalues below the floor raised to it."""
    # All eigenvalues are above the floor iff C − floor·I has a Cholesky factor: far cheaper
    # than the eigenvalues themselves, and often the case.
    lowered = correlation.copy()
    np.einsum("ii->i", lowered)[:] -= EIGENVALUE_FLOOR
    _, info = lapack.dpotrf(lowered, lower=1)
    if info == 0:
        return correlation
    values, vectors = np.linalg.eigh(correlation)
    raised = (vectors * np.maximum(values, EIGENVALUE_FLOOR)) @ vectors.T
    _mirror(raised)
    return raised


def _precision(sigma: Floats) -> Floats:
    """Σ̂⁻¹ where Σ̂ is positive definite and well conditioned; else empty."""
    factor, info = lapack.dpotrf(sigma, lower=1)
    if info != 0:
        return NO_PRECISION
    # A squared pivot is a feature's variance given those before it; free of scale as a share.
    left = np.diagonal(factor) ** 2 / np.diagonal(sigma)
    if left.min() < LEAST_PIVOT:
        return NO_PRECISION
    half, info = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if info != 0:
        return NO_PRECISION
    omega = np.ascontiguousarray(half)
    _mirror(omega)
    return omega


@numba.njit(cache=True, nogil=True)
def _mirror(matrix):  # type: ignore[no-untyped-def]
    """The lower half onto the upper."""
    for i in range(len(matrix)):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
