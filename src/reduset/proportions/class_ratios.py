"""Ratios of the class densities at a row, by multinomial logistic regression on k or 2k values of the row.

The inputs are the discriminants v(x) with the class means (`class_means`), k numbers that separate the classes in the whitened
norm. With a classifier, the logarithms s(x) of its posteriors are added. With O the logarithms of the class proportions in
training, or s with a classifier,

    log P(class | x) = O + W'(v, s) + b, up to a constant;    ratios r ∝ P(class | x) / P(class).

W and b have a normal prior with standard deviation 1, for standardised values. The values belong to rows that were not used to fit
the means and the classifier. Otherwise the ratios would be overconfident. For a calibrated classifier and few rows, the regression
increases the error. Its posteriors are therefore used unchanged (Saerens, Latinne & Decaestecker 2002), unless the regression
increases the cross-validated likelihood of the labels by more than two standard errors.

O(n·k²) per evaluation, with several hundred evaluations, on at most 16,384 rows from `cross_fit`.
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

PRIOR = 1.0  # standard deviation of the coefficients
MIN_DEVIATION = 1e-12  # relative to the largest value: smaller deviations are rounding
FOLDS = 5
GAIN = 2.0  # standard errors
MAX_STEPS = 300


@dataclass(frozen=True)
class ClassRatios:
    """log P(class | x) = O + W'(features − centre)/scale + b, where O is the offset of a row or ``log_proportions``."""

    log_proportions: Array  # (k,)
    centre: Array  # (q,)
    scale: Array
    coefficients: Array  # (q + 1, k) with b in the last row, or (0, k) to return the offset unchanged

    def log_posteriors(self, features: Array, offset: Array | None) -> Array:
        """(n, k) logarithms of the posteriors, up to a constant of each row."""
        base = self.log_proportions if offset is None else offset
        if not len(self.coefficients):
            return np.asarray(base)
        scaled = (features - self.centre) / self.scale
        return np.asarray(base + scaled @ self.coefficients[:-1] + self.coefficients[-1])

    def __call__(self, features: Array, offset: Array | None) -> Array:
        """The ratios (n, k), with maximum 1 in each row."""
        logs = self.log_posteriors(features, offset) - self.log_proportions
        return np.asarray(np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), FLOOR))

    def losses(self, features: Array, offset: Array | None, rows: LabelledPoints) -> Array:
        """(n,) −log P(class | x) for the class of each row."""
        logs = log_softmax(self.log_posteriors(features, offset), axis=1)
        return np.asarray(-logs[np.arange(len(rows.codes)), rows.codes])


def learn_ratios(rows: LabelledPoints, features: Array, offset: Array | None, rng: np.random.Generator) -> ClassRatios:
    """The ratios from values (n, q) of held-out rows and, with a classifier, the logarithms of its posteriors (n, k)."""
    with single_threaded_blas():
        return _chosen(rows, features, offset, rng)


def _chosen(rows: LabelledPoints, features: Array, offset: Array | None, rng: np.random.Generator) -> ClassRatios:
    """The regression, or the posteriors of the classifier."""
    fitted = _regression(rows, features, offset)
    if offset is None:
        return fitted
    plain = ClassRatios(fitted.log_proportions, fitted.centre, fitted.scale, fitted.coefficients[:0])
    fold = np.empty(len(rows.codes), np.int64)
    fold[rng.permutation(len(fold))] = np.arange(len(fold)) % FOLDS
    gains = plain.losses(features, offset, rows)
    for f in range(FOLDS):
        held, rest = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        if len(held) and len(rest):
            model = _regression(rows.part(rest), features[rest], offset[rest])
            gains[held] -= model.losses(features[held], offset[held], rows.part(held))
    weights = rows.weights / rows.weights.sum()
    gain = float(weights @ gains)
    error = float(np.sqrt(np.square(weights * (gains - gain)).sum()))
    return fitted if gain > GAIN * error else plain


def held_out_ratios(ratios: ClassRatios, rows: LabelledPoints, features: Array, offset: Array | None) -> HeldOutRatios:
    """The ratios of held-out rows by class."""
    return HeldOutRatios(ratios(features, offset), rows.codes, rows.row_weights, rows.sizes)


def _regression(rows: LabelledPoints, features: Array, offset: Array | None) -> ClassRatios:
    """Multinomial logistic regression with a normal prior on the coefficients, by L-BFGS."""
    n, k = len(rows.codes), rows.classes
    weights = rows.weights / rows.weights.sum()
    masses = rows.masses
    log_proportions = np.log(np.maximum(masses, 1e-300) / masses.sum())
    centre = weights @ features
    scale = np.sqrt(weights @ np.square(features - centre))
    scale[scale <= MIN_DEVIATION * np.abs(features).max(initial=1e-300)] = np.inf
    inputs = np.hstack([(features - centre) / scale, np.ones((n, 1))])
    base = np.broadcast_to(log_proportions, (n, k)) if offset is None else offset
    labelled = (np.arange(n), rows.codes)
    ridge = 1.0 / (PRIOR**2 * n)

    def loss(flat: Array) -> tuple[float, Array]:
        W = flat.reshape(-1, k)
        logs = log_softmax(base + inputs @ W, axis=1)
        value = -float(weights @ logs[labelled])
        slope = np.exp(logs)
        slope[labelled] -= 1.0
        return value + ridge / 2 * float(flat @ flat), (inputs.T @ (weights[:, None] * slope) + ridge * W).ravel()

    start = np.zeros(inputs.shape[1] * k)
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_STEPS})
    return ClassRatios(log_proportions, centre, scale, np.asarray(result.x).reshape(-1, k))
