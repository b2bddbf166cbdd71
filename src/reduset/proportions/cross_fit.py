"""How near training rows are to class means that have not seen them: what a new row's would be.

The rows are dealt to a few folds, each class evenly. Moments by class add up, so one pass gives those of every fold, and their sums
without one fold the means that the fold's rows are seen with: O(n·m·d) for two passes, and m³ a fold. Without compression every row
is left out by itself, which costs nothing: its own bump is taken away.
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
    """At most `ROWS` rows with their numbers in ``data`` and their discriminants (rows, k), by means that have not seen the row.

    A class of one row leaves none to be valued by: then all are as the means see them.
    """
    numbered = LabelledPoints(np.arange(len(data.codes), dtype=np.float64)[:, None], data.codes, data.weights, data.classes)
    kept = numbered.some(ROWS, rng).points[:, 0].astype(np.int64)
    some = data.part(kept)
    fewest = int(np.bincount(data.codes, minlength=data.classes).min())
    if isinstance(means, FullClassMeans):
        return some, kept, means.discriminants(means.left_out()[kept] if fewest > 1 else means.values(some.points))
    if fewest < 2:
        return some, kept, means.discriminants(means.values(some.points))
    fold = np.empty(len(data.codes), np.int64)
    order = rng.permutation(
        len(fold)
    )  # one for all classes, so that their order does not matter; the covariance is of the first rows
    for code in range(data.classes):
        rows = order[data.codes[order] == code]
        fold[rows] = np.arange(len(rows)) % min(FOLDS, fewest)
    parts = [data.part(order[fold[order] == f]) for f in range(min(FOLDS, fewest))]
    atoms = np.asarray(means.atoms, np.float64)
    moments = [class_moments(part, [means.kernel], atoms, ridge is not None)[0] for part in parts]
    gram = grams([means.kernel], atoms)[0]
    values = np.empty((len(kept), data.classes))
    for f in range(len(parts)):
        rest = reduce(ClassMoments.with_, moments[:f] + moments[f + 1 :])
        out = np.flatnonzero(fold[kept] == f)
        without = ProjectedClassMeans.of(means.kernel, atoms, gram, rest, ridge)
        values[out] = without.discriminants(without.values(some.points[out]))
    return some, kept, values
