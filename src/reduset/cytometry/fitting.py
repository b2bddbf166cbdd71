"""F statistics of many populations under many labellings, p-values from them, and false discovery rates.

For values y of a population with weights w, nuisance Z and indicators X of the groups, with M = I − P the projection off √w·Z,

    explained = (Xᵀu)ᵀ (XᵀGX)⁻¹ (Xᵀu),     u = √w·M√w·y,     G = √w·M·√w,
    F = (explained / p) / max((yᵀGy − explained) / d, least),     p = G − 1 groups, d degrees of freedom.

Another labelling is another X, so B of them take one product with u and one with G. The variance is at least the sampling variance
of the cell counts, the mean of w·chance: three samples without a cell and three with one are not without variance. Nothing else is
shared between populations. They differ in how much they vary between samples by far more than the scaled inverse χ² distribution of
moderated statistics (Smyth 2004), and shrinkage to one variance hides changes of those that hardly vary. All labellings are treated
alike, so an exact test stays exact. O(B·n²) for each population, O(B·n) for populations with the same weights.

The p-value of a population is the proportion of labellings whose statistic is at least as large. A few labellings cannot give
p-values small enough for many populations. F statistics of all populations have nearly one distribution under the null hypothesis,
so they are pooled over all labellings: p is the proportion of all of them at least as large. q-values are those of Benjamini &
Hochberg (1995).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from reduset._types import Array
from reduset.cytometry.design import Design, Relabellings

RIDGE = 1e-12  # of the trace, for labellings that Z nearly determines
COLUMNS = 64  # populations at a time
VALUE_ROUNDING = 1e-12
RESIDUAL_ROUNDING = 1e-10  # of the energy
STATISTIC_ROUNDING = 1e-9  # equivalent labellings differ by rounding


@dataclass(frozen=True)
class Fits:
    """Statistics of k populations.

    Attributes
    ----------
    statistics : (B, k) F under each labelling, the true one first
    effects : (G − 1, k) β of the true labels: differences to the first group
    errors : (G − 1, k) their standard errors
    freedom : (k,) of the variances
    """

    statistics: Array
    effects: Array
    errors: Array
    freedom: Array


def fit(
    values: Array,
    weights: Array | None,
    design: Design,
    labelled: Relabellings,
    known: Array | float = 1.0,
    chance: Array | float = 0.0,
) -> Fits:
    """Fit the model to every column of values, (n, k), with weights of the same shape or none.

    ``known`` is the proportion of the degrees of freedom of a column; it is below 1 if some samples hardly inform about it.
    ``chance`` is the sampling variance of each value, (n, k).
    """
    X, k = labelled.indicators(len(design.levels)), values.shape[1]
    p, B = len(X), X.shape[1]
    statistics, variance = np.empty((B, k)), np.empty(k)
    effects, spreads = np.empty((p, k)), np.empty((p, k))
    share = np.broadcast_to(known, k)
    freedom = share * design.freedom
    least = np.broadcast_to(chance if weights is None else weights * chance, values.shape).mean(axis=0) / share
    for columns, frame in _frames(weights, k, design, X):
        explained, energy, effects[:, columns] = frame.explained(values[:, columns], X)
        spreads[:, columns] = frame.spreads[:, None]
        left = energy - explained
        left[left < RESIDUAL_ROUNDING * energy] = 0.0
        within = np.maximum(left / freedom[columns], least[columns])
        variance[columns] = within[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            statistics[:, columns] = np.where(explained > 0, explained / p / within, 0.0)
    return Fits(statistics, effects, spreads * np.sqrt(variance), freedom)


def _frames(weights: Array | None, k: int, design: Design, X: Array) -> Iterator[tuple[slice, _Frame]]:
    """Columns of the same weights, in blocks."""
    if weights is None:
        shared = _Frame.of(np.ones(X.shape[2]), design, X)
        yield from ((slice(first, first + COLUMNS), shared) for first in range(0, k, COLUMNS))
    else:
        yield from ((slice(j, j + 1), _Frame.of(weights[:, j], design, X)) for j in range(k))


class _Frame(NamedTuple):
    """Shared by populations of the same weights: √w, M, XᵀGX, whether Z determines a labelling, and √ of (XᵀGX)⁻¹'s diagonal."""

    root: Array
    off: Array
    square: Array
    fixed: Array
    spreads: Array

    @classmethod
    def of(cls, weights: Array, design: Design, X: Array) -> _Frame:
        root = np.sqrt(weights)
        q, _ = np.linalg.qr(design.nuisance * root[:, None])
        off = np.eye(len(root)) - q @ q.T
        G = off * np.outer(root, root)
        p, B = len(X), X.shape[1]
        square = np.empty((B, p, p))
        for a in range(p):
            pushed = X[a] @ G
            for b in range(a, p):
                square[:, a, b] = square[:, b, a] = np.einsum("bn,bn->b", pushed, X[b])
        whole = float(np.sum(weights))
        fixed = np.trace(square, axis1=1, axis2=2) < 1e-6 * whole / len(root)
        square += np.eye(p) * (RIDGE * whole)
        return cls(root, off, square, fixed, np.sqrt(np.linalg.inv(square[0]).diagonal()))

    def explained(self, values: Array, X: Array) -> tuple[Array, Array, Array]:
        """(B, k) explained, (k,) yᵀGy, and (p, k) effects of the true labels."""
        full = values * self.root[:, None]
        scaled = self.off @ full
        energy = np.einsum("nk,nk->k", scaled, scaled)
        none = energy <= VALUE_ROUNDING**2 * np.einsum("nk,nk->k", full, full)
        scaled[:, none], energy[none] = 0.0, 0.0
        along = np.einsum("pbn,nk->bpk", X, scaled * self.root[:, None], optimize=True)
        solved = np.linalg.solve(self.square, along)
        explained = np.einsum("bpk,bpk->bk", along, solved)
        explained[self.fixed] = 0.0
        return explained, energy, solved[0]


def own_p_values(statistics: Array) -> Array:
    """(k,) the proportion of labellings whose statistic is at least as large, from (B, k), the true one first."""
    return np.asarray(np.mean(statistics >= statistics[0] * (1 - STATISTIC_ROUNDING), axis=0))


def pooled_p_values(statistics: Array) -> Array:
    """(k,) the proportion of the statistics of all populations and labellings that are at least as large."""
    return _proportion_beyond(statistics, statistics[0])


def largest_p_values(statistics: Array) -> Array:
    """(k,) the proportion of labellings in which any statistic is at least as large: the family-wise p-value (Westfall 1993)."""
    return _proportion_beyond(statistics.max(axis=1), statistics[0])


def _proportion_beyond(statistics: Array, values: Array) -> Array:
    """The proportion of statistics that are at least as large as each value."""
    below = np.searchsorted(np.sort(statistics, axis=None), values * (1 - STATISTIC_ROUNDING), side="left")
    return np.asarray((statistics.size - below) / statistics.size)


def q_values(p: Array) -> Array:
    """(k,) the smallest false discovery rate at which each is found."""
    return np.asarray(false_discovery_control(p))
