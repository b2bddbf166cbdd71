"""The self-balancing walk of kernel halving (Dwivedi & Mackey 2021, Algorithm 1a), which keeps one point of each pair.

A random sign for each pair keeps ψ = Σ ±(k(·, x) − k(·, x′)) small. Let α be the inner product of ψ with the next difference. The
closer α is to a threshold, the more probable is the opposite sign. The products of ψ with all later differences are updated after
each sign. This takes four kernel evaluations for every two pairs, n²/2 in all for n points.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.compiled import compiled, inner, row, strip
from reduset._engine.distances import to_distances, to_exponents
from reduset._engine.profile import Profile
from reduset._types import Array, Floats


@njit(inline="always")
def _draw(square, along, uniform, confidence, spread):
    """Draw a sign for a pair, given the squared norm of its difference and the product with ψ. Also return the updated σ²."""
    if square <= 0:  # the two points coincide, so that either may stay
        return (1.0 if uniform < 0.5 else -1.0), spread
    threshold = max(np.sqrt(square * spread) * confidence, square)
    sign = 1.0 if uniform < 0.5 * (1 - along / threshold) else -1.0
    return sign, spread + max(0.0, square * (1 + (square - 2 * threshold) * spread / threshold**2))


@compiled()
def balance_products(K, uniforms, confidence, signs):
    """Signs for the pairs (2i, 2i + 1) of points with Gram matrix K."""
    along = np.zeros(len(signs))
    spread = 0.0
    for i in range(len(signs)):
        square = K[2 * i, 2 * i] + K[2 * i + 1, 2 * i + 1] - 2 * K[2 * i, 2 * i + 1]
        signs[i], spread = _draw(square, along[i], uniforms[i], confidence, spread)
        for j in range(i + 1, len(signs)):
            first = K[2 * i, 2 * j] - K[2 * i, 2 * j + 1]
            second = K[2 * i + 1, 2 * j] - K[2 * i + 1, 2 * j + 1]
            along[j] += signs[i] * (first - second)


@inner(fastmath=FAST)
def _add_products(sign, query, Z, start, distances, exponents, exponent, table, step, t, sums):
    """sums[j] += sign·g(query, column j of Z) for all columns from ``start``."""
    count = Z.shape[1] - start
    to_distances(distances, Z, start, Z.shape[1], count, query, t)
    to_exponents(exponents, exponent, table, step, t, count)
    later = strip(sums, start, count)
    for j in range(count):
        later[j] += sign * exp_minus(t[j])


def balance_lists(Z: Floats, profile: Profile, uniforms: Array, confidence: float, kept: NDArray[np.integer]) -> None:
    """Balance many lists of equal length, given as coordinates (k·length, d) in Z, one list below the other.

    ``kept`` (k, p) receives the position of each pair's kept point in its list. Kernel values use the precision of Z.
    """
    _balance_lists(Z, *profile.value_arguments(Z.dtype.type), uniforms, confidence, kept)


@compiled(fastmath=FAST)
def _balance_lists(Z, distances, exponents, exponent, table, step, uniforms, confidence, kept):
    length = len(Z) // len(uniforms)
    pairs = uniforms.shape[1]
    sums = np.empty(2 * pairs)  # ⟨ψ, point⟩ for each point; the product with a pair is the difference of two
    t = np.empty(2 * pairs, Z.dtype)
    one = np.empty(1, Z.dtype)
    for k in range(len(uniforms)):
        rows = Z[k * length : k * length + 2 * pairs]
        columns = np.ascontiguousarray(rows.T)
        sums[:] = 0
        spread = 0.0
        for i in range(pairs):
            first, second = 2 * i, 2 * i + 1
            to_distances(distances, columns, second, 2 * pairs, 1, row(rows, first), one)
            to_exponents(exponents, exponent, table, step, one, 1)
            along = sums[first] - sums[second]
            sign, spread = _draw(2 - 2 * exp_minus(one[0]), along, uniforms[k, i], confidence, spread)
            if i + 1 < pairs:
                _add_products(sign, row(rows, first), columns, second + 1, distances, exponents, exponent, table, step, t, sums)
                _add_products(-sign, row(rows, second), columns, second + 1, distances, exponents, exponent, table, step, t, sums)
            kept[k, i] = first if sign > 0 else second
