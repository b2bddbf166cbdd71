"""The self-balancing walk of kernel halving (Dwivedi & Mackey 2021, Algorithm 1a): which of each pair of points stays.

A sign is drawn for every pair so that ψ = Σ ±(k(·, x) − k(·, x′)) stays small: the closer its inner product α with the next
difference comes to a threshold, the surer the next sign is the opposite one. The products of ψ with all later differences are kept
up to date, which takes four kernel evaluations for every two pairs: n²/2 in all for n points.
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
def _draw(square, along, luck, confidence, spread):
    """A sign for a pair whose difference has this squared norm and this product with ψ; and σ² after it."""
    if square <= 0:  # the two coincide: either may stay
        return (1.0 if luck < 0.5 else -1.0), spread
    threshold = max(np.sqrt(square * spread) * confidence, square)
    sign = 1.0 if luck < 0.5 * (1 - along / threshold) else -1.0
    return sign, spread + max(0.0, square * (1 + (square - 2 * threshold) * spread / threshold**2))


@compiled()
def balance_products(K, luck, confidence, signs):
    """Signs for the pairs (2i, 2i + 1) of points whose products are K."""
    along = np.zeros(len(signs))
    spread = 0.0
    for i in range(len(signs)):
        square = K[2 * i, 2 * i] + K[2 * i + 1, 2 * i + 1] - 2 * K[2 * i, 2 * i + 1]
        signs[i], spread = _draw(square, along[i], luck[i], confidence, spread)
        for j in range(i + 1, len(signs)):
            first = K[2 * i, 2 * j] - K[2 * i, 2 * j + 1]
            second = K[2 * i + 1, 2 * j] - K[2 * i + 1, 2 * j + 1]
            along[j] += signs[i] * (first - second)


@inner(fastmath=FAST)
def _add_products(sign, query, Z, start, distances, exponents, exponent, table, step, t, sums):
    """sums[j] += sign·g(query, column j of Z) for all columns from ``start`` on."""
    count = Z.shape[1] - start
    to_distances(distances, Z, start, Z.shape[1], count, query, t)
    if exponents != 0:
        to_exponents(exponents, exponent, table, step, t, count)
    later = strip(sums, start, count)
    for j in range(count):
        later[j] += sign * exp_minus(t[j])


def balance_lists(Z: Floats, profile: Profile, luck: Array, confidence: float, kept: NDArray[np.integer]) -> None:
    """The same from coordinates, in their precision, for many lists of equal length one below the other in Z (k·length, d).

    ``kept`` (k, p) becomes the position in its list of the point of each pair that stays.
    """
    _balance_lists(Z, *profile.value_arguments(Z.dtype.type), luck, confidence, kept)


@compiled(fastmath=FAST)
def _balance_lists(Z, distances, exponents, exponent, table, step, luck, confidence, kept):
    length = len(Z) // len(luck)
    pairs = luck.shape[1]
    sums = np.empty(2 * pairs)  # of ψ with each point: a pair's product with it is the difference of two
    t = np.empty(2 * pairs, Z.dtype)
    one = np.empty(1, Z.dtype)
    for k in range(len(luck)):
        rows = Z[k * length : k * length + 2 * pairs]
        columns = np.ascontiguousarray(rows.T)
        sums[:] = 0
        spread = 0.0
        for i in range(pairs):
            first, second = 2 * i, 2 * i + 1
            to_distances(distances, columns, second, 2 * pairs, 1, row(rows, first), one)
            if exponents != 0:
                to_exponents(exponents, exponent, table, step, one, 1)
            along = sums[first] - sums[second]
            sign, spread = _draw(2 - 2 * exp_minus(one[0]), along, luck[k, i], confidence, spread)
            if i + 1 < pairs:
                _add_products(sign, row(rows, first), columns, second + 1, distances, exponents, exponent, table, step, t, sums)
                _add_products(-sign, row(rows, second), columns, second + 1, distances, exponents, exponent, table, step, t, sums)
            kept[k, i] = first if sign > 0 else second
