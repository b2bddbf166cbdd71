"""F statistics of many populations under many labellings: a weighted linear model for each.

For values y of a population with weights w, nuisance Z and indicators X of the groups, with M = I − P the projection off √w·Z,

    explained = (Xᵀu)ᵀ (XᵀGX)⁻¹ (Xᵀu),     u = √w·M√w·y,     G = √w·M·√w,
    F = (explained / p) / max((yᵀGy − explained) / d, least),     p = G − 1 groups, d degrees of freedom.

Another labelling is another X, so for B of them one product with u and one with G. No variance is taken as less than what numbers
of cells leave to chance, mean w·chance: three samples with no cell and three with one are not without variance. Nothing else is
borrowed: populations differ in how much they vary between samples by far more than the scaled inverse χ² of moderated statistics
has (Smyth 2004), and drawing all to one variance hides a change of those that hardly vary. The whole treats all labellings alike,
and an exact test stays exact. O(B·n²) for each population, O(B·n) where they share their weights, some columns at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reduset._types import Array
from reduset.cytometry.design import Design
from reduset.cytometry.relabelling import Relabellings

RIDGE = 1e-12  # of the trace: labellings that Z nearly fixes explain nothing
COLUMNS = 64  # populations at a time
ROUNDING = 1e-12  # of the values, that nothing smaller can be told from
ALL = 1e-10  # of the energy, below which nothing is left of it


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
    """Fit the model to every column of values, (n, k), with weights of the same shape, or none.

    ``known`` says which share of the degrees of freedom a column has: less than 1 where some samples know next to nothing of it.
    ``chance`` is the part of the variance of each value, (n, k), that is there whatever samples differ by.
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
        left[left < ALL * energy] = 0.0
        within = np.maximum(left / freedom[columns], least[columns])
        variance[columns] = within[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            statistics[:, columns] = np.where(explained > 0, explained / p / within, 0.0)
    return Fits(statistics, effects, spreads * np.sqrt(variance), freedom)


def _frames(weights: Array | None, k: int, design: Design, X: Array) -> Iterator[tuple[slice, _Frame]]:
    """Columns that have the same weights, not too many at a time."""
    if weights is None:
        shared = _Frame.of(np.ones(X.shape[2]), design, X)
        yield from ((slice(first, first + COLUMNS), shared) for first in range(0, k, COLUMNS))
    else:
        yield from ((slice(j, j + 1), _Frame.of(weights[:, j], design, X)) for j in range(k))


class _Frame(NamedTuple):
    """What populations of the same weights share: √w, M, XᵀGX and whether Z fixes it by labelling, √ of (XᵀGX)⁻¹'s diagonal."""

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
        none = energy <= ROUNDING**2 * np.einsum("nk,nk->k", full, full)
        scaled[:, none], energy[none] = 0.0, 0.0
        along = np.einsum("pbn,nk->bpk", X, scaled * self.root[:, None], optimize=True)
        solved = np.linalg.solve(self.square, along)
        explained = np.einsum("bpk,bpk->bk", along, solved)
        explained[self.fixed] = 0.0
        return explained, energy, solved[0]
