"""Cross-fitted discriminants: training rows compared with class means that were computed without them, like new rows.

The rows are divided into stratified folds. Moments by class are additive, so one pass gives the moments of every fold. The sum over
the other folds gives the class means for the rows of a fold. The cost is O(n·m·d) for two passes, and m³ per fold. Without
compression every row is left out separately by subtracting its kernel function, which costs no evaluation.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from reduset._types import Array, Indices
from reduset.proportions.class_means import (
    ClassMeans,
    ClassMoments,
    FullClassMeans,
    LabelledPoints,
    ProjectedClassMeans,
    class_moments,
    grams,
)

FOLDS = 5
ROWS = 16384


def cross_fitted(
    data: LabelledPoints, means: ClassMeans, ridge: float | None, rng: np.random.Generator
) -> tuple[LabelledPoints, Indices, Array]:
    """At most `ROWS` rows with their indices in ``data`` and their discriminants (rows, k) with means computed without the row.

    If a class has only one row, the means of all rows are used.
    """
    numbered = LabelledPoints(np.arange(len(data.codes), dtype=np.float64)[:, None], data.codes, data.weights, data.classes)
    kept = numbered.sample(ROWS, rng).points[:, 0].astype(np.int64)
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
