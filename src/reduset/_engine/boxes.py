"""How much of a sum of bumps lies in a box, where a bump is a product over columns: Σᵢ wᵢ Πⱼ P(lⱼ ≤ xᵢⱼ + sⱼT ≤ hⱼ).

T is a symmetric law on a line, known by its share U(t) beyond t. Of limits and their mirror image those that lie farther right
are taken,

    P(a ≤ T ≤ b) = U(max(a, −b)) − U(max(b, −a)),

so that no 1 is in a tail, and a box at thirty deviations keeps its digits; what is lost is 1e-16 over the length of the box in
units of s. A bump that mixes normal laws of scales τ with shares p is Σₖ pₖ of such products. O(n·q·d) for q boxes, times scales.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import ndtr

from reduset._engine.threads import blocks, run_all
from reduset._types import Array, Floats

TILE = 1 << 14  # entries: a few arrays of it fit into the cache
CHUNK = 1 << 16  # rows a task, at least
PARTIALS = 1 << 22  # numbers that tasks may leave to be added

Tail = Callable[[Array], Array]


def normal_tail(t: Array) -> Array:
    """The share of the normal law beyond t."""
    return np.asarray(ndtr(-t))


def between(a: Array, b: Array, tail: Tail) -> Array:
    """P(a ≤ T ≤ b) of a symmetric law with this tail, a ≤ b."""
    return tail(np.maximum(a, -b)) - tail(np.maximum(b, -a))


def box_sums(
    points: Floats,
    weights: Array,
    low: Array,
    high: Array,
    units: float | Array,
    tail: Tail = normal_tail,
    scales: tuple[Array, Array] | None = None,
) -> Array:
    """(q,) of boxes between ``low`` and ``high``, (q, d) each, with infinite limits where there are none.

    ``units`` is s: a number, (d,) or, where every point has its own, (n, 1) or (n, d). ``scales`` are τ and p of a mixture.
    """
    n, q = len(points), len(low)
    endless = [(bool(np.isneginf(low[:, j]).all()), bool(np.isposinf(high[:, j]).all())) for j in range(low.shape[1])]
    columns = [(j, below_all) for j, (below_all, above_all) in enumerate(endless) if not (below_all and above_all)]
    chunks = blocks(n, max(CHUNK, -(-n * q // PARTIALS)))
    sums = np.zeros((len(chunks), q))

    def add(k: int, c: int, e: int) -> None:
        rows = max(1, TILE // (e - c))
        for a, b in blocks(chunks[k][1] - chunks[k][0], rows):
            a, b = a + chunks[k][0], b + chunks[k][0]
            x = np.asarray(points[a:b], np.float64)
            s = np.broadcast_to(units[a:b] if np.ndim(units) == 2 else units, x.shape)  # type: ignore[index]
            sums[k, c:e] += _shares(x, s, low[c:e], high[c:e], columns, tail, scales) @ weights[a:b]

    run_all([partial(add, k, c, e) for k in range(len(chunks)) for c, e in blocks(q, 64)], blas=True)
    return np.asarray(sums.sum(axis=0))


def _shares(
    x: Array,
    s: Array,
    low: Array,
    high: Array,
    columns: list[tuple[int, bool]],
    tail: Tail,
    scales: tuple[Array, Array] | None,
) -> Array:
    """(q, n) of each bump in each box."""
    limits = []
    with np.errstate(over="ignore"):  # beyond all numbers is far enough
        for j, endless in columns:
            upper = (high[:, j, None] - x[:, j]) / s[:, j]
            limits.append((None if endless else (low[:, j, None] - x[:, j]) / s[:, j], upper))

    def product(scale: float) -> Array:
        found = np.ones((len(low), len(x)))
        for lower, upper in limits:
            found *= tail(-upper / scale) if lower is None else between(lower / scale, upper / scale, tail)
        return found

    if scales is None:
        return product(1.0)
    total = np.zeros((len(low), len(x)))
    for scale, share in zip(*scales, strict=True):
        total += share * product(scale)
    return total
