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
from reduset._engine.compiled import compiled, inner
from reduset._engine.profile import LINEAR, Profile, depths, gaps
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
def _add_products(sign, query, Z, start, metric, family, exponent, table, step, t, sums):
    """sums[j] += sign·g(query, column j of Z) for all columns from ``start`` on."""
    count = Z.shape[1] - start
    gaps(metric, Z, start, Z.shape[1], query, t)
    if family != LINEAR:
        depths(family, exponent, table, step, t[:count])
    later = sums[start:]
    for j in range(len(later)):
        later[j] += sign * exp_minus(t[j])


def balance_lists(Z: Floats, profile: Profile, luck: Array, confidence: float, kept: NDArray[np.integer]) -> None:
    """The same from coordinates, in their precision, for many lists of equal length one below the other in Z (k·length, d).

    ``kept`` (k, p) becomes the position in its list of the point of each pair that stays.
    """
    _balance_lists(Z, *profile.arguments, luck, confidence, kept)


@compiled(fastmath=FAST)
def _balance_lists(Z, metric, family, exponent, table, step, luck, confidence, kept):
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
            gaps(metric, columns, second, second + 1, rows[first], one)
            if family != LINEAR:
                depths(family, exponent, table, step, one)
            along = sums[first] - sums[second]
            sign, spread = _draw(2 - 2 * exp_minus(one[0]), along, luck[k, i], confidence, spread)
            if i + 1 < pairs:
                _add_products(sign, rows[first], columns, second + 1, metric, family, exponent, table, step, t, sums)
                _add_products(-sign, rows[second], columns, second + 1, metric, family, exponent, table, step, t, sums)
            kept[k, i] = first if sign > 0 else second
