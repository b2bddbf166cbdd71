"""Cross-fitting: values of training rows from models fitted without them, and the class ratios that are learnt from these values.

Training rows are then compared like new rows. They are divided into stratified folds, and each fold is left out once.

**Discriminants.** Moments by class are additive, so one pass gives the moments of every fold. The sum over the other folds gives
the class means for the rows of a fold. The cost is O(n·m·d) for two passes, and m³ per fold. Without compression every row is left
out separately by subtracting its kernel function, which costs no evaluation.

**Posteriors of a classifier.** Rows of a fold get posteriors from a classifier fitted to the other folds. A sample gets its
posteriors from the classifier fitted to all rows, which is the best. But these posteriors have a different distribution. A
classifier fitted to more rows is more confident, by a quarter if it is strongly regularised. For comparisons of a sample with
training rows, each row of the sample therefore gets its posteriors from the classifier of one fold. Given these classifiers, new
rows of a class have the same distribution as its training rows, for any number of rows. The folds alternate in the order of the
posteriors, so each evaluates a similar part of the sample. The cost is one more fit than the number of folds, and all classifiers
are kept. A row of a sample costs one prediction, or two if it is compared.

**Ratios** of the class densities at a row come from multinomial logistic regression on k or 2k values of the row. The inputs are
the discriminants v(x) with the class means (`class_means`), k numbers that separate the classes in the whitened norm. With a
classifier, the logarithms s(x) of its posteriors are added. With O the logarithms of the class proportions in training, or s with a
classifier,

    log P(class | x) = O + W'(v, s) + b, up to a constant;    ratios r ∝ P(class | x) / P(class).

W and b have a normal prior with standard deviation 1, for standardised values. With values of rows that were used to fit the means
or the classifier, the ratios would be overconfident. For a calibrated classifier and few rows, the regression increases the error.
Its posteriors are therefore used unchanged (Saerens, Latinne & Decaestecker 2002), unless the regression increases the
cross-validated likelihood of the labels by more than two standard errors. O(n·k²) per evaluation, with several hundred evaluations,
on at most 16,384 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from reduset._engine import single_threaded_blas
from reduset._types import Array, Indices, Report
from reduset.proportions.class_means import (
    ClassMeans,
    ClassMoments,
    FullClassMeans,
    LabelledPoints,
    ProjectedClassMeans,
    class_moments,
    grams,
)
from reduset.proportions.likelihood import FLOOR

FOLDS = 5
ROWS = 16384
PRIOR = 1.0  # standard deviation of the coefficients
MIN_DEVIATION = 1e-12  # relative to the largest value: smaller deviations are rounding
GAIN = 2.0  # standard errors
MAX_STEPS = 300


def cross_fitted(
    data: LabelledPoints, means: ClassMeans, ridge: float | None, rng: np.random.Generator
) -> tuple[LabelledPoints, Indices, Array]:
    """At most `ROWS` rows with their indices in ``data`` and their discriminants (rows, k) with means computed without the row.

    If a class has only one row, the means of all rows are used.
    """
    kept = data.sample(ROWS, rng)
    sample = data.part(kept)
    smallest = int(np.bincount(data.codes, minlength=data.classes).min())
    if smallest < 2:
        return sample, kept, means.discriminants(means.values(sample.points))
    if isinstance(means, FullClassMeans):
        return sample, kept, means.discriminants(means.leave_one_out_values()[kept])
    fold = np.empty(len(data.codes), np.int64)
    # One random order serves all classes, so their order has no effect. The covariance uses the first rows.
    order = rng.permutation(len(fold))
    for code in range(data.classes):
        rows = order[data.codes[order] == code]
        fold[rows] = np.arange(len(rows)) % min(FOLDS, smallest)
    parts = [data.part(order[fold[order] == f]) for f in range(min(FOLDS, smallest))]
    atoms = np.asarray(means.atoms, np.float64)
    moments = [class_moments(part, [means.kernel], atoms, ridge is not None)[0] for part in parts]
    gram = grams([means.kernel], atoms)[0]
    values = np.empty((len(kept), data.classes))
    for f in range(len(parts)):
        rest = reduce(ClassMoments.merged_with, moments[:f] + moments[f + 1 :])
        out = np.flatnonzero(fold[kept] == f)
        without = ProjectedClassMeans.of(means.kernel, atoms, gram, rest, ridge)
        values[out] = without.discriminants(without.values(sample.points[out]))
    return sample, kept, values


@dataclass(frozen=True)
class CrossFittedClassifier:
    """A classifier fitted to all rows, and for each fold one that was fitted without its rows."""

    whole: Any
    by_fold: list[Any]

    def posteriors(self, table: Any) -> Array:
        """(n₀, k) the posteriors of a sample's rows from the classifier fitted to all rows."""
        return np.asarray(self.whole.predict_proba(table), np.float64)

    def posteriors_in_turn(self, table: Any, posteriors: Array) -> Array:
        """(n₀, k) posteriors of each row from the classifier of one fold. Folds alternate in the order of ``posteriors``."""
        order = np.lexsort(posteriors.T)
        out = np.empty_like(posteriors)
        for f, classifier in enumerate(self.by_fold):
            rows = np.sort(order[f :: len(self.by_fold)])
            if len(rows):
                out[rows] = classifier.predict_proba(_safe_indexing(table, rows))
        return out


def cross_fit_classifier(
    classifier: Any, table: Any, labels: NDArray[Any], weights: Array | None, rng: np.random.Generator, report: Report
) -> tuple[CrossFittedClassifier, Array]:
    """The classifiers, and the posteriors (n, k) of each training row from the classifier fitted without it."""
    classes, counts = np.unique(labels, return_counts=True)
    smallest = int(counts.min())
    if smallest < 2:
        raise ValueError(
            f"classifier needs at least two rows of every class, got one of class {classes[np.argmin(counts)]!s}; "
            "omit classifier or add rows"
        )

    def fitted(rows: NDArray[np.int64]) -> Any:
        options = {} if weights is None else {"sample_weight": weights[rows]}
        return clone(classifier).fit(_safe_indexing(table, rows), labels[rows], **options)

    folds = StratifiedKFold(min(FOLDS, smallest), shuffle=True, random_state=int(rng.integers(2**31)))
    out = np.empty((len(labels), len(classes)))
    by_fold: list[Any] = []
    for rest, held in folds.split(labels, labels):
        report(len(by_fold), folds.n_splits)
        by_fold.append(fitted(rest))
        out[held] = by_fold[-1].predict_proba(_safe_indexing(table, held))
    return CrossFittedClassifier(fitted(np.arange(len(labels))), by_fold), out


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
    """The ratios from values (n, q) of held-out rows and, with a classifier, the logarithms of its posteriors (n, k).

    With a classifier, its posteriors are used unless the regression is clearly better.
    """
    with single_threaded_blas():
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
