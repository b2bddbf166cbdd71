"""Posterior probabilities of a classifier for training rows and samples, from classifiers that were fitted without the row.

The training rows are divided into stratified folds. Rows of a fold get posteriors from a classifier fitted to the other folds. A
sample gets its posteriors from the classifier fitted to all rows, which is the best. But these posteriors have a different
distribution. A classifier fitted to more rows is more confident, by a quarter if it is strongly regularised. For comparisons of a
sample with training rows, each row of the sample therefore gets its posteriors from the classifier of one fold. Given these
classifiers, new rows of a class have the same distribution as its training rows, for any number of rows.

The folds alternate in the order of the posteriors, so each evaluates a similar part of the sample.

The cost is one more fit than the number of folds, and all classifiers are kept. A row of a sample costs one prediction, or two if
it is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from reduset._types import Array, Report

FOLDS = 5


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
