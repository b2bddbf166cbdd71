"""Ratios of the classes' densities at a row, by multinomial logistic regression on few values of the row.

A row enters by its discriminants v(x) with the class means (`class_means`), k numbers that tell the classes apart in the whitened
norm, and where there is a classifier by the logarithms s(x) of its posteriors. With O the logarithms of the classes' shares in
training, or s,

    log P(class | x) = O + W'(v, s) + b, up to a constant;    ratios r ∝ P(class | x) / P(class).

W and b have a normal prior of deviation 1 (values in units of their own deviation). Values are of rows that the means, and the
classifier, have not seen: else the ratios would be too sure of themselves. A classifier that is calibrated already is only made
worse by this on few rows; so it is taken as it is (Saerens, Latinne & Decaestecker 2002) unless the cross-validated likelihood of
the labels gains more than two standard errors.

O(n·k²) an evaluation, some hundreds of them, on the at most 16,384 rows of `cross_fit`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from reduset._engine import single_threaded_blas
from reduset._types import Array
from reduset.proportions.class_means import LabelledPoints
from reduset.proportions.likelihood import FLOOR, HeldOutRatios

PRIOR = 1.0  # deviation of the coefficients
DISTINCT = 1e-12  # a deviation below this, of the largest value, is rounding
FOLDS = 5
GAIN = 2.0  # standard errors
MOST_STEPS = 300


@dataclass(frozen=True)
class ClassRatios:
    """log P(class | x) = O + W'(features − centre)/scale + b; O the offset of a row, or ``log_shares`` where it has none."""

    log_shares: Array  # (k,)
    centre: Array  # (q,)
    scale: Array
    coefficients: Array  # (q + 1, k), b in the last row; none, (0, k), leaves the offset as it is

    def log_posteriors(self, features: Array, offset: Array | None) -> Array:
        """(n, k), up to a constant of each row."""
        base = self.log_shares if offset is None else offset
        if not len(self.coefficients):
            return np.asarray(base)
        scaled = (features - self.centre) / self.scale
        return np.asarray(base + scaled @ self.coefficients[:-1] + self.coefficients[-1])

    def __call__(self, features: Array, offset: Array | None) -> Array:
        """The ratios (n, k), the largest of each row 1."""
        logs = self.log_posteriors(features, offset) - self.log_shares
        return np.asarray(np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), FLOOR))

    def losses(self, features: Array, offset: Array | None, rows: LabelledPoints) -> Array:
        """(n,) −log P(class | x) of each row's own class."""
        logs = log_softmax(self.log_posteriors(features, offset), axis=1)
        return np.asarray(-logs[np.arange(len(rows.codes)), rows.codes])


def learn_ratios(rows: LabelledPoints, features: Array, offset: Array | None, rng: np.random.Generator) -> ClassRatios:
    """The ratios from values (n, q) of rows held out and, with a classifier, the logarithms of its posteriors (n, k)."""
    with single_threaded_blas():
        return _chosen(rows, features, offset, rng)


def _chosen(rows: LabelledPoints, features: Array, offset: Array | None, rng: np.random.Generator) -> ClassRatios:
    """The regression, or the classifier as it is."""
    fitted = _regression(rows, features, offset)
    if offset is None:
        return fitted
    plain = ClassRatios(fitted.log_shares, fitted.centre, fitted.scale, fitted.coefficients[:0])
    fold = np.empty(len(rows.codes), np.int64)
    fold[rng.permutation(len(fold))] = np.arange(len(fold)) % FOLDS
    gains = plain.losses(features, offset, rows)
    for f in range(FOLDS):
        some, rest = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        if len(some) and len(rest):
            model = _regression(rows.part(rest), features[rest], offset[rest])
            gains[some] -= model.losses(features[some], offset[some], rows.part(some))
    shares = rows.weights / rows.weights.sum()
    gain = float(shares @ gains)
    error = float(np.sqrt(np.square(shares * (gains - gain)).sum()))
    return fitted if gain > GAIN * error else plain


def held_out_ratios(ratios: ClassRatios, rows: LabelledPoints, features: Array, offset: Array | None) -> HeldOutRatios:
    """What the ratios are in each class."""
    return HeldOutRatios(ratios(features, offset), rows.codes, rows.shares, rows.sizes)


def _regression(rows: LabelledPoints, features: Array, offset: Array | None) -> ClassRatios:
    """Multinomial logistic regression with a normal prior on the coefficients, by L-BFGS."""
    n, k = len(rows.codes), rows.classes
    weights = rows.weights / rows.weights.sum()
    masses = rows.masses
    log_shares = np.log(np.maximum(masses, 1e-300) / masses.sum())
    centre = weights @ features
    scale = np.sqrt(weights @ np.square(features - centre))
    scale[scale <= DISTINCT * np.abs(features).max(initial=1e-300)] = np.inf
    inputs = np.hstack([(features - centre) / scale, np.ones((n, 1))])
    base = np.broadcast_to(log_shares, (n, k)) if offset is None else offset
    own = (np.arange(n), rows.codes)
    ridge = 1.0 / (PRIOR**2 * n)

    def loss(flat: Array) -> tuple[float, Array]:
        W = flat.reshape(-1, k)
        logs = log_softmax(base + inputs @ W, axis=1)
        value = -float(weights @ logs[own])
        slope = np.exp(logs)
        slope[own] -= 1.0
        return value + ridge / 2 * float(flat @ flat), (inputs.T @ (weights[:, None] * slope) + ridge * W).ravel()

    start = np.zeros(inputs.shape[1] * k)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
    return ClassRatios(log_shares, centre, scale, np.asarray(found.x).reshape(-1, k))
