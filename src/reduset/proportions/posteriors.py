"""Posterior probabilities of a classifier: of training rows and of samples, by classifiers that have not seen the row.

The training rows are dealt to a few folds, each class evenly, and those of a fold are seen by a classifier fitted to the other
folds. A sample is seen by the classifier fitted to all rows, the best there is. But new rows of a class do not look to that one as
its training rows did to those: a classifier of more rows is surer of itself, by a quarter where it is strongly regularised. So
where a sample is compared with training rows, each of its rows is seen by one of the folds' classifiers: given these, new rows of a
class have the law that its training rows have, however few there were to fit to.

The folds take turns in the order of the posteriors, so that all of them see like parts of the sample.

One fit more than there are folds, and all of them are kept; a row of a sample costs a prediction, two where it is compared.
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
    """A classifier fitted to all rows, and one for each fold that has not seen the fold's rows."""

    whole: Any
    by_fold: list[Any]

    def posteriors(self, table: Any) -> Array:
        """(n₀, k) the posteriors of a sample's rows by the classifier fitted to all."""
        return np.asarray(self.whole.predict_proba(table), np.float64)

    def posteriors_in_turn(self, table: Any, posteriors: Array) -> Array:
        """(n₀, k) those of each row by one of the folds' classifiers, which take turns where rows are sorted by ``posteriors``."""
        order = np.lexsort(posteriors.T)
        out = np.empty_like(posteriors)
        for f, classifier in enumerate(self.by_fold):
            some = np.sort(order[f :: len(self.by_fold)])
            if len(some):
                out[some] = classifier.predict_proba(_safe_indexing(table, some))
        return out


def cross_fit_classifier(
    classifier: Any, table: Any, labels: NDArray[Any], weights: Array | None, rng: np.random.Generator, report: Report
) -> tuple[CrossFittedClassifier, Array]:
    """The classifiers, and the posteriors (n, k) of each training row by the one that has not seen it."""
    classes, counts = np.unique(labels, return_counts=True)
    fewest = int(counts.min())
    if fewest < 2:
        raise ValueError(
            f"classifier needs at least two rows of every class, got one of class {classes[np.argmin(counts)]!s}; "
            "leave classifier out or add rows"
        )

    def fitted(rows: NDArray[np.int64]) -> Any:
        weighed = {} if weights is None else {"sample_weight": weights[rows]}
        return clone(classifier).fit(_safe_indexing(table, rows), labels[rows], **weighed)

    folds = StratifiedKFold(min(FOLDS, fewest), shuffle=True, random_state=int(rng.integers(2**31)))
    out = np.empty((len(labels), len(classes)))
    by_fold: list[Any] = []
    for rest, some in folds.split(labels, labels):
        report(len(by_fold), folds.n_splits)
        by_fold.append(fitted(rest))
        out[some] = by_fold[-1].predict_proba(_safe_indexing(table, some))
    return CrossFittedClassifier(fitted(np.arange(len(labels))), by_fold), out
