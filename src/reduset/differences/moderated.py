"""Moderated F statistics of many populations under many labellings: a weighted linear model for each, with variances that borrow
from each other.

For values y of a population with weights w, nuisance Z and indicators X of the groups, with M = I − P the projection off √w·Z,

    explained = (Xᵀu)ᵀ (XᵀGX)⁻¹ (Xᵀu),     u = √w·M√w·y,     G = √w·M·√w,
    F = (explained / p) / ((d₀s₀² + yᵀGy − explained) / (d₀ + d)),     p = G − 1 groups, d degrees of freedom.

Another labelling is another X, so for B of them one product with u and one with G. s₀² and d₀ are those of the scaled F law of all
populations' variances (Smyth 2004, Section 6.2), taken without a look at the labels: the whole of it treats all labellings alike,
and an exact test stays exact. No variance has more freedom than all of them together. O(B·n²) for each population, O(B·n) where
they share their weights, some columns at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

from reduset._types import Array
from reduset.differences.design import Design
from reduset.differences.relabelling import Relabellings

RIDGE = 1e-12  # of the trace: labellings that Z nearly fixes explain nothing
MOST_FREEDOM = 1e6  # all variances are the same
COLUMNS = 64  # populations at a time
ROUNDING = 1e-12  # of the values, that nothing smaller can be told from
ALL = 1e-10  # of the energy, below which nothing is left of it
LEAST_VARIANCE = 1e-5  # of the median: one population without variance is not to say that variances differ without end


class Prior(NamedTuple):
    """What all variances together say of each: s₀² and its degrees of freedom d₀."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Fits:
    """Statistics of k populations.

    Attributes
    ----------
    statistics : (B, k) moderated F under each labelling, the true one first
    effects : (G − 1, k) β of the true labels: differences to the first group
    errors : (G − 1, k) their standard errors, from moderated variances
    freedom : (k,) of the moderated variances
    """

    statistics: Array
    effects: Array
    errors: Array
    freedom: Array


def fit(values: Array, weights: Array | None, design: Design, labelled: Relabellings, known: Array | float = 1.0) -> Fits:
    """Fit the model to every column of values, (n, k), with weights of the same shape, or none.

    ``known`` says which share of the degrees of freedom a column has: less than 1 where some samples know next to nothing of it.
    """
    X, k = labelled.indicators(len(design.levels)), values.shape[1]
    p, B = len(X), X.shape[1]
    statistics, energy = np.empty((B, k)), np.empty(k)
    effects, spreads = np.empty((p, k)), np.empty((p, k))
    for columns, frame in _frames(weights, k, design, X):
        explained, energy[columns], effects[:, columns] = frame.explained(values[:, columns], X)
        statistics[:, columns], spreads[:, columns] = explained, frame.spreads[:, None]
    whole, own = np.broadcast_to(known, k) * (design.freedom + p), np.broadcast_to(known, k) * design.freedom
    prior = prior_of(energy / whole, whole)
    variance = np.empty(k)
    for first in range(0, k, COLUMNS):
        columns = slice(first, first + COLUMNS)
        explained = statistics[:, columns]
        left = energy[columns] - explained
        left[left < ALL * energy[columns]] = 0.0
        moderated = (prior.freedom * prior.variance + left) / (prior.freedom + own[columns])
        variance[columns] = moderated[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            statistics[:, columns] = np.where(explained > 0, explained / p / moderated, 0.0)
    return Fits(statistics, effects, spreads * np.sqrt(variance), np.minimum(prior.freedom + own, own.sum()))


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


def prior_of(variances: Array, freedom: Array | float) -> Prior:
    """s₀² and d₀ of variances, each with its degrees of freedom, by the moments of their logarithms."""
    able = variances > 0
    if able.sum() < 3:
        return Prior(float(variances[able].mean()) if able.any() else 0.0, 0.0)
    half = np.broadcast_to(freedom, variances.shape)[able] / 2
    some = np.maximum(variances[able], LEAST_VARIANCE * np.median(variances[able]))
    logs = np.log(some) - digamma(half) + np.log(half)
    middle = float(logs.mean())
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    if excess <= 0:
        return Prior(float(np.exp(middle)), MOST_FREEDOM)
    found = _trigamma_inverse(excess)
    return Prior(float(np.exp(middle + digamma(found) - np.log(found))), min(2 * found, MOST_FREEDOM))


def _trigamma_inverse(value: float) -> float:
    """The y with ψ′(y) = value, by Newton's method on 1/ψ′, which is convex and nearly linear."""
    y = 0.5 + 1 / value
    for _ in range(50):
        slope = float(polygamma(1, y))
        step = slope * (1 - slope / value) / float(polygamma(2, y))
        y += step
        if abs(step) < 1e-10 * y:
            break
    return y
