"""Every hole filled with its conditional expectation (Theorem noisyGerased, x̄(ν, Σ, x)).

With observed set S and missing set U:
    x̄_S = x_S
    x̄_U = ν_U + Σ_US Σ_SS⁻¹ (x − ν)_S        solved on S, or, the same number,
        = ν_U − Ω_UU⁻¹ Ω_US (x − ν)_S        solved on U, where Ω = Σ⁻¹
"""

from __future__ import annotations

import numba
import numpy as np

from .arms import Floats, Mask
from .estimate import Estimate

# A pivot below this share of its variance counts as zero: then the Moore-Penrose inverse stands
# in, as in the paper's notation, and eigenvalues below this share of the largest are zero.
RELATIVE_ZERO = 1e-12


def complete(z: Floats, observed: Mask, estimate: Estimate) -> int:
    """Fill the holes of rows [1; x] in place, so that they are ẑ = [1; x̄]; how many there were."""
    return complete_rows(z, observed, estimate.nu, estimate.sigma, estimate.omega)


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def complete_rows(z, observed, nu, sigma, omega):  # type: ignore[no-untyped-def]
    """z (A, d+1), what stands in its holes is not read. Empty omega: always solve on S."""
    rows, d = observed.shape
    has_precision = omega.shape[0] > 0
    side = np.empty(d + 1, np.int64)  # the indices solved on
    delta = np.empty(d)  # (x − ν) on S, 0 on U
    weights = np.empty(d)  # Σ_SS⁻¹ (x − ν)_S on S, 0 on U
    matrix = np.empty((d, d))
    right = np.empty(d)
    completed = 0
    for row in range(rows):
        seen = 0
        for j in range(d):  # no branches: this loop is vectorised
            here = observed[row, j]
            value = z[row, j + 1] if here else nu[j]
            z[row, j + 1] = value
            delta[j] = value - nu[j]  # 0 on U
            seen += here
        missing = d - seen
        completed += missing
        if missing == 0 or seen == 0:
            continue

        solve_on_missing = has_precision and missing <= seen
        n = 0
        for j in range(d):
            side[n] = j
            n += observed[row, j] != solve_on_missing
        source = omega if solve_on_missing else sigma
        if solve_on_missing:
            for i in range(n):
                total = 0.0
                for j in range(d):
                    total += omega[side[i], j] * delta[j]
                right[i] = -total  # −Ω_US (x − ν)_S
        else:
            for i in range(n):
                right[i] = delta[side[i]]
        _gather(source, side, n, matrix)
        if not _positive_solve(matrix, right, n):
            _gather(source, side, n, matrix)
            _pseudo_solve(matrix, right, n)

        if solve_on_missing:
            for i in range(n):
                z[row, side[i] + 1] += right[i]
        else:
            weights[:] = 0.0
            for i in range(n):
                weights[side[i]] = right[i]
            for j in range(d):
                if not observed[row, j]:
                    total = 0.0
                    for k in range(d):
                        total += sigma[j, k] * weights[k]
                    z[row, j + 1] += total  # Σ_US Σ_SS⁻¹ (x − ν)_S
    return completed


@numba.njit(cache=True, nogil=True)
def _gather(source, side, n, matrix):  # type: ignore[no-untyped-def]
    for i in range(n):
        for j in range(i + 1):
            matrix[i, j] = source[side[i], side[j]]


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _positive_solve(a, right, n):  # type: ignore[no-untyped-def]
    """right ← a⁻¹ right, the lower half of a given and overwritten; False, and right as it was,
    where a is not safely positive definite.

    a = L D Lᵀ: one division per row and no roots, which is most of the time at n = 3.
    """
    for i in range(n):
        for j in range(i):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] = total  # L_ij D_j
        pivot = a[i, i]
        for j in range(i):
            entry = a[i, j] * a[j, j]
            pivot -= a[i, j] * entry
            a[i, j] = entry  # L_ij
        if not pivot > RELATIVE_ZERO * a[i, i]:
            return False
        a[i, i] = 1.0 / pivot  # 1 / D_i
    for i in range(n):
        total = right[i]
        for k in range(i):
            total -= a[i, k] * right[k]
        right[i] = total
    for i in range(n - 1, -1, -1):
        right[i] *= a[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i):  # row i of L, contiguous
            right[k] -= a[i, k] * right[i]
    return True


@numba.njit(cache=True, nogil=True)
def _pseudo_solve(a, right, n):  # type: ignore[no-untyped-def]
    """right ← a⁺ right for a symmetric, perhaps indefinite or singular a (lower half given)."""
    full = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            full[i, j] = a[i, j]
            full[j, i] = a[i, j]
    values, vectors = np.linalg.eigh(full)
    smallest = RELATIVE_ZERO * np.max(np.abs(values))
    solution = np.zeros(n)
    for k in range(n):
        if abs(values[k]) > smallest:
            along = 0.0
            for i in range(n):
                along += vectors[i, k] * right[i]
            for i in range(n):
                solution[i] += vectors[i, k] * along / values[k]
    right[:n] = solution
