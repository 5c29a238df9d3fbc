"""Ridge regression of rewards on completed features, one reward at a time.

S = Σ ẑẑᵀ,  b = Σ ẑ y,  V = λI + S = L Lᵀ,  θ̂ = V⁻¹ b.
λ is kept apart from S so that it can move. L takes a rank-one update per reward, θ̂ and tr V⁻¹
follow by Sherman-Morrison; when θ̂ no longer solves V θ̂ = b to rounding, all three are made anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numba
import numpy as np
from scipy.linalg import blas, lapack

from .arms import MAX_MAGNITUDE, Floats
from .errors import BadInput

SMALL = 64  # columns up to which a plain loop beats the call of a blocked routine
DRIFT_CHECK_EVERY = 32  # folds; the check costs as much as a fold
DRIFT_TOLERANCE = 1e-11  # of ‖V‖‖θ̂‖ + ‖b‖


@dataclass(slots=True)
class Regression:
    """S, b and what follows from them; n = d + 1 throughout."""

    s: Floats  # (n, n)  S
    b: Floats  # (n,)
    count: int = 0  # r, rewards folded
    sum_y: float = 0.0
    sum_yy: float = 0.0
    ridge: float = 1.0  # λ
    factor: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (n, n)  Lᵀ, upper
    theta: Floats = field(default_factory=lambda: np.empty(0))  # (n,)  θ̂
    trace_inverse: float = 0.0  # tr V⁻¹
    fit: float = 0.0  # θ̂ᵀb + λ‖θ̂‖²
    since_check: int = 0

    @classmethod
    def zero(cls, dimension: int, ridge: float = 1.0) -> Regression:
        n = dimension + 1
        model = cls(np.zeros((n, n)), np.zeros(n), ridge=ridge)
        model.factorise()
        return model

    def add(self, z: Floats, y: Floats) -> None:
        """Fold rows (m, n) with their rewards (m,), in order.

        S and b are summed row by row whatever the batch, so that everyone who folds the same log
        holds the same bits.
        """
        if len(z) >= max(16, len(self.b) // 4):  # a new factor costs less than so many updates
            accumulate(z, y, self.s, self.b)
            for reward in y.tolist():
                self.sum_y += reward
                self.sum_yy += reward * reward
            self.count += len(y)
            self.factorise()
            return
        fell, self.fit, self.sum_y, self.sum_yy = fold_rows(
            z, y, self.s, self.b, self.factor, self.theta, self.ridge, self.sum_y, self.sum_yy
        )
        self.trace_inverse -= fell
        self.count += len(y)
        self.since_check += len(z)
        if self.since_check >= DRIFT_CHECK_EVERY:
            self.since_check = 0
            if not self.drift() <= DRIFT_TOLERANCE:  # true for NaN
                self.factorise()

    def replace(self, s: Floats, b: Floats) -> None:
        """The same rewards on features completed anew."""
        self.s, self.b = s, b
        self.factorise()

    def set_ridge(self, ridge: float) -> None:
        if ridge != self.ridge:
            self.ridge = ridge
            self.factorise()

    def gram(self) -> Floats:
        """V = λI + S"""
        v = self.s.copy()
        np.einsum("ii->i", v)[:] += self.ridge
        return v

    def factorise(self) -> None:
        """L, θ̂ and tr V⁻¹ from S, b, λ alone."""
        v = self.gram()
        factor, info = lapack.dpotrf(v, lower=0, clean=1)
        jitter = np.finfo(float).eps * np.diagonal(v)
        while info != 0:
            # λ has vanished beside S in rounding (features of 1e9 and a ridge of 1): lift the
            # diagonal by what rounding already costs.
            v += np.diag(jitter)
            jitter = jitter * 4
            factor, info = lapack.dpotrf(v, lower=0, clean=1)
        self.factor = np.ascontiguousarray(factor)
        self.theta, _ = lapack.dpotrs(factor, self.b, lower=0)
        inverse, _ = lapack.dtrtri(factor, lower=0)
        self.trace_inverse = float(np.einsum("ij,ij->", inverse, inverse))
        self.fit = float(self.theta @ self.b + self.ridge * (self.theta @ self.theta))
        self.since_check = 0

    def drift(self) -> float:
        """How far θ̂ is from solving V θ̂ = b, row by row in parts of what is added up there."""
        v = self.gram()
        residual = np.abs(v @ self.theta - self.b)
        size = np.abs(v) @ np.abs(self.theta) + np.abs(self.b)
        return float((residual / (size + 1e-300)).max())

    def score(self, z: Floats) -> tuple[Floats, Floats]:
        """ẑᵀθ̂ and ‖ẑ‖_{V⁻¹} of every row."""
        if len(self.b) > SMALL:
            half = blas.dtrsm(1.0, self.factor.T, z.T, lower=1)  # (n, A)  L⁻¹ẑ
            return z @ self.theta, np.sqrt(np.einsum("ij,ij->j", half, half))
        mean = np.empty(len(z))
        width = np.empty(len(z))
        score_rows(z, self.theta, self.factor, mean, width)
        return mean, width

    def effective_dimension(self) -> float:
        """tr(V⁻¹S) = n − λ tr V⁻¹"""
        return max(0.0, len(self.b) - self.ridge * self.trace_inverse)

    def residual_square(self) -> float:
        """Σ (y − ẑᵀθ̂)² = Σy² − θ̂ᵀb − λ‖θ̂‖², for V θ̂ = b"""
        return max(0.0, self.sum_yy - self.fit)


NUMBERS = (float, int, np.floating, np.integer)


def check_reward(reward: object) -> float:
    if isinstance(reward, bool) or not isinstance(reward, NUMBERS):
        raise BadInput("reward", "must be a number")
    try:
        value = float(reward)
    except OverflowError:  # a whole number beyond any double
        value = math.inf
    if not -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE:  # false for NaN
        raise BadInput("reward", f"must be finite and at most {MAX_MAGNITUDE:g} in size")
    return value


@numba.njit(cache=True, nogil=True)
def accumulate(z, y, s, b):  # type: ignore[no-untyped-def]
    """S += ẑẑᵀ, b += ẑ y, row by row: the same bits however the rows are cut into batches."""
    for row in range(z.shape[0]):
        _add_outer(z[row], y[row], s, b)


@numba.njit(cache=True, nogil=True)
def _add_outer(z, y, s, b):  # type: ignore[no-untyped-def]
    n = z.shape[0]
    for i in range(n):
        for j in range(n):
            s[i, j] += z[i] * z[j]
        b[i] += z[i] * y


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _solve_factor(factor, z, half, full):  # type: ignore[no-untyped-def]
    """half = L⁻¹ z and full = V⁻¹ z, with factor = Lᵀ; returns ‖half‖² = zᵀV⁻¹z."""
    n = z.shape[0]
    half[:] = z
    square = 0.0
    for j in range(n):
        half[j] /= factor[j, j]
        square += half[j] * half[j]
        for i in range(j + 1, n):
            half[i] -= factor[j, i] * half[j]
    for j in range(n - 1, -1, -1):
        total = half[j]
        for i in range(j + 1, n):
            total -= factor[j, i] * full[i]
        full[j] = total / factor[j, j]
    return square


@numba.njit(cache=True, nogil=True)
def fold_rows(z, y, s, b, factor, theta, ridge, sum_y, sum_yy):  # type: ignore[no-untyped-def]
    """Rewards into S, b, L and θ̂, O(n²) each.

    Returns how much tr V⁻¹ fell, θ̂ᵀb + λ‖θ̂‖², Σy and Σy².
    """
    n = z.shape[1]
    half = np.empty(n)
    gain = np.empty(n)  # V⁻¹ ẑ
    fell = 0.0
    for row in range(z.shape[0]):
        _add_outer(z[row], y[row], s, b)
        sum_y += y[row]
        sum_yy += y[row] * y[row]
        square = _solve_factor(factor, z[row], half, gain)
        error = y[row] - _dot(z[row], theta)
        for i in range(n):
            theta[i] += gain[i] * (error / (1.0 + square))  # Sherman-Morrison
        fell += _dot(gain, gain) / (1.0 + square)
        half[:] = z[row]
        _add_to_factor(factor, half)
    return fell, _dot(theta, b) + ridge * _dot(theta, theta), sum_y, sum_yy


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@numba.njit(cache=True, nogil=True)
def _add_to_factor(factor, z):  # type: ignore[no-untyped-def]
    """L Lᵀ + z zᵀ by one Givens rotation per column of L, a row of `factor`; z is used up."""
    n = z.shape[0]
    for k in range(n):
        old = factor[k, k]
        new = np.sqrt(old * old + z[k] * z[k])
        cosine = old / new
        sine = z[k] / new
        factor[k, k] = new
        for i in range(k + 1, n):
            entry = factor[k, i]
            factor[k, i] = cosine * entry + sine * z[i]
            z[i] = cosine * z[i] - sine * entry


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def score_rows(z, theta, factor, mean, width):  # type: ignore[no-untyped-def]
    """mean = ẑᵀθ̂ and width = ‖L⁻¹ẑ‖ = ‖ẑ‖_{V⁻¹} for every row of z (A, n).

    All arms are solved side by side, so that the inner loop runs over contiguous memory, and two
    columns of L at a time, so that it runs half as often.
    """
    rows, n = z.shape
    padded = (rows + 7) // 8 * 8  # whole vectors; what is beyond `rows` is not looked at
    half = np.zeros((n, padded))
    square = np.zeros(padded)
    for a in range(rows):
        mean[a] = _dot(z[a], theta)
        for i in range(n):
            half[i, a] = z[a, i]
    for j in range(0, n - 1, 2):
        first, second = half[j], half[j + 1]
        scale, step, scale_next = 1.0 / factor[j, j], factor[j, j + 1], 1.0 / factor[j + 1, j + 1]
        for a in range(padded):
            one = first[a] * scale
            two = (second[a] - step * one) * scale_next
            first[a] = one
            second[a] = two
            square[a] += one * one + two * two
        for i in range(j + 2, n):
            target, by_first, by_second = half[i], factor[j, i], factor[j + 1, i]
            for a in range(padded):
                target[a] -= by_first * first[a] + by_second * second[a]
    if n % 2:
        last, scale = half[n - 1], 1.0 / factor[n - 1, n - 1]
        for a in range(padded):
            square[a] += (last[a] * scale) ** 2
    for a in range(rows):
        width[a] = np.sqrt(square[a])
