"""Moderated F statistics of many populations under many labellings: a weighted linear model for each, with variances that borrow
from each other.

For values y of a population with weights w, nuisance Z and indicators X of the groups, with M = I − P the projection off √w·Z,

    explained = (Xᵀu)ᵀ (XᵀGX)⁻¹ (Xᵀu),     u = √w·M√w·y,     G = √w·M·√w,
    F = (explained / p) / ((d₀s₀² + yᵀGy − explained) / (d₀ + d)),     p = G − 1 groups, d degrees of freedom.

Another labelling is another X, so for B of them one product with u and one with G. s₀² and d₀ are those of the scaled F law of all
populations' variances (Smyth 2004, Section 6.2), taken without a look at the labels: the whole of it treats all labellings alike,
and an exact test stays exact. O(B·n²) for each population, O(B·n) where they share their weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

from reduset._types import Array
from reduset.differences.design import Design
from reduset.differences.relabelling import Relabellings

RIDGE = 1e-12  # of the trace: labellings that Z nearly fixes explain nothing
MOST_FREEDOM = 1e6  # all variances are the same


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
    freedom : of the moderated variances
    """

    statistics: Array
    effects: Array
    errors: Array
    freedom: float


def fit(values: Array, weights: Array | None, design: Design, labelled: Relabellings) -> Fits:
    """Fit the model to every column of values, (n, k), with weights of the same shape, or none."""
    groups = len(design.levels)
    X = labelled.indicators(groups)
    parts = (
        [_Part.of(values, np.ones(len(values)), design, X)]
        if weights is None
        else [_Part.of(values[:, [j]], weights[:, j], design, X) for j in range(values.shape[1])]
    )
    explained = np.concatenate([each.explained for each in parts], axis=1)
    left = np.concatenate([each.energy for each in parts])
    d, p = design.freedom, groups - 1
    prior = prior_of(left / (d + p), d + p)
    residual = np.maximum(left - explained, 0.0)
    moderated = (prior.freedom * prior.variance + residual) / (prior.freedom + d)
    effects = np.concatenate([each.effects for each in parts], axis=1)
    spreads = np.concatenate([each.spreads for each in parts], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.where(moderated > 0, explained / p / moderated, 0.0)
    return Fits(statistics, effects, spreads * np.sqrt(moderated[0]), prior.freedom + d)


class _Part(NamedTuple):
    """Populations of the same weights: (B, k) explained, (k,) yᵀGy; and of the true labels effects and √ of (XᵀGX)⁻¹'s diagonal."""

    explained: Array
    energy: Array
    effects: Array
    spreads: Array

    @classmethod
    def of(cls, values: Array, weights: Array, design: Design, X: Array) -> _Part:
        root = np.sqrt(weights)
        q, _ = np.linalg.qr(design.nuisance * root[:, None])
        off = np.eye(len(root)) - q @ q.T
        scaled = off @ (values * root[:, None])
        G, u = off * np.outer(root, root), scaled * root[:, None]
        p, B = len(X), X.shape[1]
        along = np.einsum("pbn,nk->bpk", X, u, optimize=True)
        square = np.empty((B, p, p))
        for a in range(p):
            pushed = X[a] @ G
            for b in range(a, p):
                square[:, a, b] = square[:, b, a] = np.einsum("bn,bn->b", pushed, X[b])
        size = np.trace(square, axis1=1, axis2=2)
        whole = float(np.sum(weights))
        square += np.eye(p) * (RIDGE * whole)
        solved = np.linalg.solve(square, along)
        explained = np.einsum("bpk,bpk->bk", along, solved)
        explained[size < 1e-6 * whole / len(root)] = 0.0
        spreads = np.sqrt(np.linalg.inv(square[0]).diagonal())[:, None] * np.ones(values.shape[1])
        return cls(explained, np.einsum("nk,nk->k", scaled, scaled), solved[0], spreads)


def prior_of(variances: Array, freedom: float) -> Prior:
    """s₀² and d₀ of variances that have the same degrees of freedom, by the moments of their logarithms."""
    able = variances[variances > 0]
    if len(able) < 3:
        return Prior(float(able.mean()) if len(able) else 0.0, 0.0)
    logs = np.log(able) - digamma(freedom / 2) + np.log(freedom / 2)
    middle, spread = float(logs.mean()), float(logs.var(ddof=1))
    excess = spread - float(polygamma(1, freedom / 2))
    if excess <= 0:
        return Prior(float(np.exp(middle)), MOST_FREEDOM)
    half = _trigamma_inverse(excess)
    return Prior(float(np.exp(middle + digamma(half) - np.log(half))), 2 * half)


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
