"""Bandwidth rules, which compute a number h from points and weights, and scales, one number for each column.

=================  ====================================================================================================
scott              σ̄ · nₑ^(−1/(d + 4)), σ̄ the mean standard deviation of the columns, nₑ = (Σw)²/Σw² (Scott 1992)
silverman          σ̄ · (nₑ (d + 2)/4)^(−1/(d + 4)) (Silverman 1986)
median             the median distance of two different points
iqr                the mean interquartile range of the columns / 1.35 (Cruz Cortés & Scott 2017, Section VI-A)
jaakkola           the median distance of a point to the nearest different one (Jaakkola, Diekhans & Haussler 1999; with labels,
                   to the nearest point of another class, as in the paper)
neighbour          the median distance to the N-th different neighbour, N in 3, 5, 7, 9, 11 with the largest drop ratio (Cruz
                   Cortés & Scott 2014, Section 4.1)
mode_clustering    σ̄ · (4/(d + 4))^(1/(d + 6)) · nₑ^(−1/(d + 6)), the normal reference rule for the gradient of a density
                   (Chen, Genovese & Wasserman 2016, eq. 18)
=================  ====================================================================================================

Columns are divided by their scales before distances are computed. "robust" is the interquartile range, or the standard deviation if
that is 0 (such as a 0/1 column or a count that is mostly 0). "standard" is the standard deviation of a whole population, so a
repeated row is the same as a row of twice the weight. A constant column has scale 1.

Only ratios of weights matter. As in SciPy, weights act like repetition on moments and quantiles, and on the sample size through nₑ.
A quantile is the value at which the cumulative weight reaches the probability. If it reaches the probability exactly, the quantile
is the midpoint to the next value. With this definition, repeating a point is the same as doubling its weight, and repeating all
points changes nothing. For pairs and neighbours, coincident points are merged and their weights added. For large n, rules for pairs
or neighbours use a subsample, always the same one for the same data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from reduset import _validate
from reduset._engine import (
    FarthestFirst,
    Frame,
    Profile,
    add,
    blocks,
    cholesky_dropping,
    each_column,
    gram,
    held_rows,
    kernel_sums,
    over_blocks,
    row_blocks,
    rows_of,
)
from reduset._messages import printable, warn
from reduset._types import Array, Floats, Indices, PointsLike, WeightsLike

MAX_ALL_PAIRS, PAIRS = 2000, 1 << 16  # up to this number of rows all pairs are used, otherwise a sample of pairs
MAX_NEIGHBOUR_ROWS, QUERIES = 20_000, 2000
MAX_TREE_COLUMNS = 16  # with more columns, a tree visits almost all points
NEIGHBOURS = (3, 5, 7, 9, 11)
MIN_SPAN = 1e-140  # of the points, so that squared distances keep their digits
STEP_TOLERANCE = 1e-12  # relative to the total weight: a cumulative weight this close to a probability equals it


def scott(X: PointsLike, sample_weight: WeightsLike = None) -> float:
    """Scott's rule.

    >>> import numpy as np
    >>> from reduset import bandwidth
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> round(bandwidth.scott(X), 3)
    0.316
    """
    X, w = _checked(X, sample_weight)
    return _scale(X, w) * _effective(w) ** (-1 / (X.shape[1] + 4))


def silverman(X: PointsLike, sample_weight: WeightsLike = None) -> float:
    """Silverman's rule."""
    X, w = _checked(X, sample_weight)
    d = X.shape[1]
    return _scale(X, w) * (_effective(w) * (d + 2) / 4) ** (-1 / (d + 4))


def mode_clustering(X: PointsLike, sample_weight: WeightsLike = None) -> float:
    """The normal reference rule for the gradient of a density."""
    X, w = _checked(X, sample_weight)
    d = X.shape[1]
    return _scale(X, w) * (4 / (d + 4)) ** (1 / (d + 6)) * _effective(w) ** (-1 / (d + 6))


def iqr(X: PointsLike, sample_weight: WeightsLike = None) -> float:
    """The mean interquartile range over 1.35."""
    X, w = _checked(X, sample_weight)
    ranges = [_quantile(column, w, 0.75) - _quantile(column, w, 0.25) for column in each_column(X)]
    return _require_positive(float(np.mean(ranges)) / 1.35, "iqr", "the middle half of every column is a single value")


def median(X: PointsLike, sample_weight: WeightsLike = None, scales: Array | None = None) -> float:
    """The median distance of two different points, with columns divided by ``scales``."""
    return median_of_rows(_validate.rows.points(X), sample_weight, scales)


def median_of_rows(X: Floats, sample_weight: WeightsLike, scales: Array | None) -> float:
    """`median` for validated rows."""
    units = 1.0 if scales is None else scales
    _require_room(X, units)
    X, w = _present(X, sample_weight)
    if len(X) <= MAX_ALL_PAIRS:
        distinct, w = _distinct_points(X if scales is None else X / scales, w, MAX_ALL_PAIRS)
        distances = pdist(distinct - distinct.mean(axis=0))
        if np.all(w == w[0]):
            return float(np.median(distances))
        i, j = np.triu_indices(len(distinct), 1)
    else:
        i, j = np.random.default_rng(0).integers(len(X), size=(2, PAIRS))
        points, (left, right) = held_rows(X, np.stack([i, j]))
        distances = np.empty(PAIRS)
        for a, b in blocks(PAIRS, 4096):
            distances[a:b] = np.sqrt(
                np.square(np.subtract(points[left[a:b]], points[right[a:b]], dtype=np.float64) / units).sum(axis=1)
            )
        apart = distances > 0
        _require_positive(float(apart.any()), "median", f"all {PAIRS} sampled pairs coincide")
        distances, i, j = distances[apart], i[apart], j[apart]
    return _quantile(distances, w[i] * w[j], 0.5)


def jaakkola(X: PointsLike, sample_weight: WeightsLike = None, y: ArrayLike | None = None) -> float:
    """The median distance to the nearest different point; with labels ``y``, to the nearest point of another class."""
    if y is None:
        X, w = _checked(X, sample_weight)
        distances, w = _neighbour_distances(X, w, 1)
        return _quantile(distances[:, 0], w, 0.5)
    X = _validate.points(X)
    labels = np.asarray(y)
    if labels.shape != (len(X),):
        raise ValueError(f"y must have shape ({len(X)},), one label for each point; got {labels.shape}")
    if sample_weight is not None:
        labels = labels[_validate.weights(sample_weight, len(X)) > 0]
    X, w = _checked(X, sample_weight)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got only {classes[0]!r}; omit y to use the nearest of all points")
    rows = _subset_of_rows(len(X), QUERIES)
    nearest = np.empty(len(rows))
    for label in classes:
        in_class = labels[rows] == label
        nearest[in_class] = _nearest_of(X[labels != label], X[rows[in_class]], 1)[:, 0]
    return _require_positive(_quantile(nearest, w[rows], 0.5), "jaakkola", "most points coincide with one of another class")


def neighbour(X: PointsLike, sample_weight: WeightsLike = None) -> float:
    """The median distance to the N-th neighbour, for the N with the earliest drop of the k-centre error.

    The drop ratio is the drop of the error between 5 and 20 atoms relative to the drop between 5 and 100 atoms.
    """
    X, w = _checked(X, sample_weight)
    distinct, mass = _distinct_points(X, w, MAX_NEIGHBOUR_ROWS)
    counts = [N for N in NEIGHBOURS if len(distinct) > N] or [len(distinct) - 1]
    distances, weights = _neighbour_distances(X, w, counts[-1])
    candidates = [_quantile(distances[:, N - 1], weights, 0.5) for N in counts]
    if len(candidates) == 1:
        return candidates[0]
    first = int(np.argmin(np.square(distinct - np.average(distinct, axis=0, weights=mass)).sum(axis=1)))
    order = FarthestFirst(distinct, Frame.around(distinct, 1.0), first)
    order.extend(min(100, len(distinct)))
    return max(candidates, key=lambda h: _drop_ratio(distinct, mass, distinct[order.indices], h))


def _neighbour_distances(X: Floats, w: Array, count: int) -> tuple[Array, Array]:
    """Distances of a subset to its 1st to ``count``-th different neighbours among all points, and the weights of the subset."""
    if len(X) <= MAX_NEIGHBOUR_ROWS:
        distinct, w = _distinct_points(X, w, MAX_NEIGHBOUR_ROWS)
        rows = _subset_of_rows(len(distinct), QUERIES)
        return _nearest_of(distinct, distinct[rows], count + 1)[:, 1:], w[rows]
    rows = _subset_of_rows(len(X), QUERIES)
    requested = count + 1
    while True:  # search farther until there are enough different distances
        distances = _nearest_of(X, X[rows], requested)
        is_new = np.diff(distances, axis=1) > 0
        if is_new.sum(axis=1).min() >= count:
            rank = np.cumsum(is_new, axis=1)
            return np.stack(
                [distances[np.arange(len(rows)), 1 + np.argmax(rank == k, axis=1)] for k in range(1, count + 1)], axis=1
            ), w[rows]
        if requested >= min(len(X), 64 * (count + 1)):
            distinct, w = _distinct_points(X, w, MAX_NEIGHBOUR_ROWS)  # mostly repeated points: use distinct ones of a subsample
            return _neighbour_distances(distinct, w, count)
        requested = min(4 * requested, len(X))


def _nearest_of(X: Floats, queries: Floats, count: int) -> Array:
    """(queries, count) distances to the nearest points, in increasing order."""
    centre = X[0].astype(np.float64)
    if X.shape[1] <= MAX_TREE_COLUMNS:
        distances = cKDTree(np.subtract(X, centre)).query(np.subtract(queries, centre), k=list(range(1, count + 1)))[0]
        return np.asarray(distances)
    from sklearn.neighbors import NearestNeighbors  # blocked matrix products, imported on first use

    model = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(np.subtract(X, centre))
    rows = model.kneighbors(np.subtract(queries, centre), return_distance=False)
    # distances from differences, because rounding in the products hides whether a near point is a repeated one
    differences = (np.subtract(X[rows[:, k]], queries, dtype=np.float64) for k in range(count))
    return np.sort(np.stack([np.sqrt(np.square(difference).sum(axis=1)) for difference in differences], axis=1), axis=1)


def _drop_ratio(points: Array, w: Array, atoms: Array, h: float) -> float:
    frame = Frame.around(points, float(np.sqrt(0.5) / h))
    L, kept = cholesky_dropping(gram(atoms, atoms, frame, Profile()))
    kappa = kernel_sums(points, w, atoms[kept], frame, Profile())
    energy = np.zeros(len(atoms))
    energy[kept] = solve_triangular(L, kappa, lower=True) ** 2
    explained = np.cumsum(energy)
    at = [explained[min(k, len(atoms)) - 1] for k in (5, 20, 100)]
    return float((at[1] - at[0]) / (at[2] - at[0])) if at[2] > at[0] else 0.0


SCALES = ("robust", "standard")
MAX_RATIO = 30.0  # of the spreads of two columns; above it, the wider column dominates distances
SPREAD_ROWS = 100_000  # rows for the spreads


def column_scales(X: PointsLike, sample_weight: WeightsLike = None, rule: str = "robust") -> Array:
    """(d,) scales of the columns of X, 1 for a constant column.

    >>> from reduset import bandwidth
    >>> bandwidth.column_scales([[20_000.0, 31.0, 7.0], [35_000.0, 44.0, 7.0], [90_000.0, 62.0, 7.0]])
    array([7.0e+04, 3.1e+01, 1.0e+00])
    """
    _validate.one_of(rule, "rule", SCALES)
    X, w = _present(_validate.rows.points(X), sample_weight)
    scales = np.zeros(X.shape[1])
    if rule == "robust":
        scales += [_quantile(column, w, 0.75) - _quantile(column, w, 0.25) for column in each_column(X)]
    if not scales.all():
        deviations = np.sqrt(_variances(X, w)[0])
        scales = np.where(scales > 0, scales, deviations)
    return np.where(scales > 0, scales, 1.0)


def dominated_column(X: Floats) -> tuple[int, int, float] | None:
    """The widest column, the narrowest column that is not constant, and the ratio of their spreads; None below `MAX_RATIO`.

    The narrow column then has almost no effect on distances. This is intended for principal components, but seldom for other
    columns.
    """
    rows = np.asarray(X[:: max(1, len(X) // SPREAD_ROWS)], np.float64)
    spread = rows.std(axis=0)
    varying = np.flatnonzero(spread > 0)
    if len(varying) < 2 or spread[varying].max() < MAX_RATIO * spread[varying].min():
        return None
    wide, narrow = (int(varying[pick(spread[varying])]) for pick in (np.argmax, np.argmin))
    return wide, narrow, float(spread[wide] / spread[narrow])


KERNELS_UNITS = (
    "kernel=Gaussian(scales='robust') gives columns equal weight; kernel=Gaussian() states that all columns have the same unit, "
    "such as principal components"
)


def warn_of_units(X: Floats, names: Sequence[object] | None, so: str, way_out: str = KERNELS_UNITS) -> None:
    """Warn if one column dominates all distances; ``so`` states the consequence. Columns have names, or numbers if None."""
    dominated = dominated_column(X)
    if dominated is not None:
        *pair, ratio = dominated
        wide, narrow = (k if names is None else repr(printable(names[k])) for k in pair)
        warn(f"column {wide} spreads {ratio:,.0f} times as far as column {narrow} and dominates all distances: {so}. {way_out}")


def _checked(X: PointsLike, sample_weight: WeightsLike) -> tuple[Floats, Array]:
    X = _validate.rows.points(X)
    _require_room(X, 1.0)
    return _present(X, sample_weight)


def _present(X: Floats, sample_weight: WeightsLike) -> tuple[Floats, Array]:
    """The points with positive weight, and their weights."""
    if sample_weight is None:
        return X, np.broadcast_to(1.0, len(X))
    if (
        isinstance(sample_weight, np.ndarray)
        and sample_weight.shape == (len(X),)
        and sample_weight.strides == (0,)
        and sample_weight[0] > 0
    ):
        return X, sample_weight
    w = _validate.rows.weights(sample_weight, X, len(X))
    w = np.ldexp(w, -np.frexp(w.max())[1])  # a power of 2 does not round, and keeps squares in range
    present = w > 0
    return (X, w) if present.all() else (rows_of(X, present), w[present])


def _require_room(X: Floats, units: float | Array) -> None:
    """Raise `ValueError` if the points are so close that squared distances underflow."""
    for rows in (X[:64], X):  # the first usually suffice
        span = float((np.subtract(rows.max(axis=0), rows.min(axis=0), dtype=np.float64) / units).max())
        if span >= MIN_SPAN:
            return
    if span > 0:
        raise ValueError(
            f"X must span at least {MIN_SPAN:g} for a bandwidth rule, so that squared distances are above 0, got {span:.3g}; "
            "rescale it: X / X.std(), or give the bandwidth as a number"
        )


def _effective(w: Array) -> float:
    return float(len(w)) if w.strides == (0,) else float(w.sum() ** 2 / (w @ w))


def _scale(X: Floats, w: Array) -> float:
    """The mean over columns of the weighted standard deviation (the unbiased one, as in SciPy)."""
    variance, squares = _variances(X, w)
    unbiased = 1.0 - squares
    if unbiased <= 0:
        raise ValueError("this bandwidth rule needs at least two points with positive weight; give the bandwidth as a number")
    return _require_positive(float(np.mean(np.sqrt(variance / unbiased))), "this rule", "all points coincide")


def _variances(X: Floats, w: Array) -> tuple[Array, float]:
    """(d,) weighted population variances of the columns, and the sum of the squared normalized weights."""
    proportions = np.broadcast_to(1.0 / len(w), len(w)) if w.strides == (0,) else w / w.sum()
    centre = X[0].astype(np.float64)  # subtracting any point first keeps the digits of data far from 0
    total, square = _two_moments(X, proportions, centre)
    return np.maximum(square - total**2, 0.0), float(proportions @ proportions)


@over_blocks(add)
def _two_moments(X: Floats, proportions: Array, centre: Array) -> tuple[Array, Array]:
    """(d,) Σ wᵢ (xᵢ − c) and Σ wᵢ (xᵢ − c)²."""
    total, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for a, b in row_blocks(X, X.shape[1]):
        block = X[a:b] - centre
        total += proportions[a:b] @ block
        square += proportions[a:b] @ block**2
    return total, square


def _subset_of_rows(count: int, limit: int) -> Indices:
    """All rows, or a fixed random subset of them."""
    if count <= limit:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, size=limit, replace=False))


def _distinct_points(X: Floats, w: Array, limit: int) -> tuple[Array, Array]:
    """The distinct points of a subsample, and their total weights."""
    rows = _subset_of_rows(len(X), limit)
    distinct, inverse = np.unique(X[rows].astype(np.float64), axis=0, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(
            f"a bandwidth cannot be found from the data: all {len(rows)} points used coincide; give the bandwidth as a number"
        )
    return distinct, np.asarray(np.bincount(inverse.reshape(-1), weights=w[rows]), np.float64)


def _quantile(values: Floats, w: Array, q: float) -> float:
    """The weighted quantile at probability q, or the midpoint to the next value if the cumulative weight is exactly q.

    This is "averaged_inverted_cdf" of NumPy, for any weights.
    """
    if w.strides == (0,) or np.all(w == w[0]):
        return float(np.quantile(values, q, method="averaged_inverted_cdf"))
    order = np.argsort(values, kind="stable")
    v, ends = np.asarray(values, np.float64)[order], np.cumsum(w[order])
    # rounding depends on the scale of the weights, so it must not decide the side of a step
    slack = ends[-1] * max(STEP_TOLERANCE, 4 * float(np.finfo(np.float64).eps) * len(v))
    low = np.searchsorted(ends, q * ends[-1] - slack)
    high = min(np.searchsorted(ends, q * ends[-1] + slack, side="right"), len(v) - 1)
    return float(v[low] + (v[high] - v[low]) * 0.5)


def _require_positive(value: float, rule: str, why_not: str) -> float:
    if not value > 0:
        raise ValueError(f"{rule} finds no bandwidth above 0: {why_not}; give the bandwidth as a number or use another rule")
    return value
