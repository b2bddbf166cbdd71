"""Bandwidth rules: from points (and weights) to one number h; and scales of columns, to one number each.

=================  ====================================================================================================
scott              σ̄ · nₑ^(−1/(d + 4)), σ̄ the mean standard deviation of the columns, nₑ = (Σw)²/Σw² (Scott 1992)
silverman          σ̄ · (nₑ (d + 2)/4)^(−1/(d + 4)) (Silverman 1986)
median             the median distance of two different points
iqr                the mean interquartile range of the columns / 1.35 (Cruz Cortés & Scott 2017, Section VI-A)
jaakkola           the median distance of a point to the nearest different one (Jaakkola, Diekhans & Haussler 1999; with labels, to
                   the nearest of another class, as there)
neighbour          the median distance to the N-th different neighbour, N in 3, 5, 7, 9, 11 with the largest drop ratio (Cruz
                   Cortés & Scott 2014, Section 4.1)
mode_clustering    σ̄ · (4/(d + 4))^(1/(d + 6)) · nₑ^(−1/(d + 6)): the normal reference for the density's gradient (Chen,
                   Genovese & Wasserman 2016, eq. 18)
=================  ====================================================================================================

Scales are what columns are divided by before distances are taken: of each column "robust" takes the interquartile range, or the
standard deviation where that is 0 (a 0/1 column that is mostly 0, a count that mostly is none), "standard" the standard deviation
alone, as of a whole population, by which a repeated row is one of twice the weight. A column without spread is left as it is.

Only ratios of weights matter. They act as they do in SciPy: on moments and quantiles as repetition would, on the sample size
through nₑ. Quantiles are those of the distribution that has these shares, halfway where a step of it ends at the share asked for:
the one definition by which repeating a point is the same as doubling its weight, and repeating all of them changes nothing.
Coincident points count as one place with their weights added where a rule speaks of pairs or neighbours. At large n, rules that
look at pairs or neighbours work on a subsample, always the same for the same data.
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
from reduset._validate import rows as _rows

PAIRS_FROM, PAIRS = 2000, 1 << 16
NEIGHBOURS_FROM, QUERIES = 20_000, 2000
TREE_UP_TO = 16  # dimensions; above, a tree looks at everything
NEIGHBOURS = (3, 5, 7, 9, 11)
NARROWEST = 1e-140  # span of points whose squared distances are numbers with all their digits
ENDS_THERE = 1e-12  # of the weight: a step of the distribution that ends this near to a share ends at it


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
    return _found(float(np.mean(ranges)) / 1.35, "iqr", "the middle half of every column is a single value")


def median(X: PointsLike, sample_weight: WeightsLike = None, scales: Array | None = None) -> float:
    """The median distance between two different points, their columns divided by ``scales``."""
    return median_of_rows(_rows.points(X), sample_weight, scales)


def median_of_rows(X: Floats, sample_weight: WeightsLike, scales: Array | None) -> float:
    """`median` of rows that were validated before."""
    units = 1.0 if scales is None else scales
    _require_room(X, units)
    X, w = _present(X, sample_weight)
    if len(X) <= PAIRS_FROM:
        places, w = _places(X if scales is None else X / scales, w, PAIRS_FROM)
        distances = pdist(places - places.mean(axis=0))
        if np.all(w == w[0]):
            return float(np.median(distances))
        i, j = np.triu_indices(len(places), 1)
    else:
        i, j = np.random.default_rng(0).integers(len(X), size=(2, PAIRS))
        points, (left, right) = held_rows(X, np.stack([i, j]))
        distances = np.empty(PAIRS)
        for a, b in blocks(PAIRS, 4096):
            distances[a:b] = np.sqrt(
                np.square(np.subtract(points[left[a:b]], points[right[a:b]], dtype=np.float64) / units).sum(axis=1)
            )
        apart = distances > 0
        _found(float(apart.any()), "median", f"all {PAIRS} pairs looked at coincide")
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
        raise ValueError(f"y must have shape ({len(X)},), one label a point; got {labels.shape}")
    if sample_weight is not None:
        labels = labels[_validate.weights(sample_weight, len(X)) > 0]
    X, w = _checked(X, sample_weight)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got only {classes[0]!r}; leave y out to use the nearest point of all")
    rows = _some_rows(len(X), QUERIES)
    nearest = np.empty(len(rows))
    for label in classes:
        mine = labels[rows] == label
        nearest[mine] = _nearest_of(X[labels != label], X[rows[mine]], 1)[:, 0]
    return _found(_quantile(nearest, w[rows], 0.5), "jaakkola", "most points coincide with one of another class")


def neighbour(X: PointsLike, sample_weight: WeightsLike = None) -> float:
    """The median distance to the N-th neighbour, with the N whose k-centre errors drop earliest.

    The ratio is that of the drop of the error between 5 and 20 atoms to the drop between 5 and 100.
    """
    X, w = _checked(X, sample_weight)
    places, mass = _places(X, w, NEIGHBOURS_FROM)
    counts = [N for N in NEIGHBOURS if len(places) > N] or [len(places) - 1]
    distances, shares = _neighbour_distances(X, w, counts[-1])
    candidates = [_quantile(distances[:, N - 1], shares, 0.5) for N in counts]
    if len(candidates) == 1:
        return candidates[0]
    first = int(np.argmin(np.square(places - np.average(places, axis=0, weights=mass)).sum(axis=1)))
    order = FarthestFirst(places, Frame.around(places, 1.0), first)
    order.extend(min(100, len(places)))
    return max(candidates, key=lambda h: _drop_ratio(places, mass, places[order.indices], h))


def _neighbour_distances(X: Floats, w: Array, count: int) -> tuple[Array, Array]:
    """The distances of some points to their 1st to ``count``-th different neighbour among all points, and the points' weights."""
    if len(X) <= NEIGHBOURS_FROM:
        places, w = _places(X, w, NEIGHBOURS_FROM)
        rows = _some_rows(len(places), QUERIES)
        return _nearest_of(places, places[rows], count + 1)[:, 1:], w[rows]
    rows = _some_rows(len(X), QUERIES)
    asked = count + 1
    while True:  # coincident points are one place: look further until enough different distances are found
        found = _nearest_of(X, X[rows], asked)
        fresh = np.diff(found, axis=1) > 0
        if fresh.sum(axis=1).min() >= count:
            rank = np.cumsum(fresh, axis=1)
            return np.stack(
                [found[np.arange(len(rows)), 1 + np.argmax(rank == k, axis=1)] for k in range(1, count + 1)], axis=1
            ), w[rows]
        if asked >= min(len(X), 64 * (count + 1)):
            places, w = _places(X, w, NEIGHBOURS_FROM)  # mostly repeated points: those of a subsample, each once
            return _neighbour_distances(places, w, count)
        asked = min(4 * asked, len(X))


def _nearest_of(X: Floats, queries: Floats, count: int) -> Array:
    """(queries, count) distances to the nearest points, in rising order."""
    centre = X[0].astype(np.float64)
    if X.shape[1] <= TREE_UP_TO:
        found = cKDTree(np.subtract(X, centre)).query(np.subtract(queries, centre), k=list(range(1, count + 1)))[0]
        return np.asarray(found)
    from sklearn.neighbors import NearestNeighbors  # by blocked matrix products; imported only where it is needed

    model = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(np.subtract(X, centre))
    rows = model.kneighbors(np.subtract(queries, centre), return_distance=False)
    # from the differences: what the products cancel is what tells a repeated point from a near one
    gaps = (np.subtract(X[rows[:, k]], queries, dtype=np.float64) for k in range(count))
    return np.sort(np.stack([np.sqrt(np.square(gap).sum(axis=1)) for gap in gaps], axis=1), axis=1)


def _drop_ratio(places: Array, w: Array, atoms: Array, h: float) -> float:
    frame = Frame.around(places, float(np.sqrt(0.5) / h))
    L, kept = cholesky_dropping(gram(atoms, atoms, frame, Profile()))
    kappa = kernel_sums(places, w, atoms[kept], frame, Profile())
    energy = np.zeros(len(atoms))
    energy[kept] = solve_triangular(L, kappa, lower=True) ** 2
    explained = np.cumsum(energy)
    at = [explained[min(k, len(atoms)) - 1] for k in (5, 20, 100)]
    return float((at[1] - at[0]) / (at[2] - at[0])) if at[2] > at[0] else 0.0


SCALES = ("robust", "standard")
FAR = 30.0  # how many times as wide a column may be before others hardly count
LOOKED_AT = 100_000  # rows


def column_scales(X: PointsLike, sample_weight: WeightsLike = None, rule: str = "robust") -> Array:
    """(d,) what the columns of X are divided by, 1 where a column has no spread.

    >>> from reduset import bandwidth
    >>> bandwidth.column_scales([[20_000.0, 31.0, 7.0], [35_000.0, 44.0, 7.0], [90_000.0, 62.0, 7.0]])
    array([7.0e+04, 3.1e+01, 1.0e+00])
    """
    _validate.one_of(rule, "rule", SCALES)
    X, w = _present(_rows.points(X), sample_weight)
    found = np.zeros(X.shape[1])
    if rule == "robust":
        found += [_quantile(column, w, 0.75) - _quantile(column, w, 0.25) for column in each_column(X)]
    if not found.all():
        deviations = np.sqrt(_variances(X, w)[0])
        found = np.where(found > 0, found, deviations)
    return np.where(found > 0, found, 1.0)


def drowned_column(X: Floats) -> tuple[int, int, float] | None:
    """The widest column, the narrowest that is not constant, and how many times as far the first spreads; None below `FAR` times.

    Beside the one the other hardly counts in a distance, which is meant of principal components, and seldom of other columns.
    """
    some = np.asarray(X[:: max(1, len(X) // LOOKED_AT)], np.float64)
    spread = some.std(axis=0)
    there = np.flatnonzero(spread > 0)
    if len(there) < 2 or spread[there].max() < FAR * spread[there].min():
        return None
    wide, narrow = (int(there[pick(spread[there])]) for pick in (np.argmax, np.argmin))
    return wide, narrow, float(spread[wide] / spread[narrow])


KERNELS_UNITS = (
    "kernel=Gaussian(scales='robust') counts columns alike; kernel=Gaussian() says that they are in one unit, as principal "
    "components are"
)


def warn_of_units(X: Floats, names: Sequence[object] | None, so: str, way_out: str = KERNELS_UNITS) -> None:
    """Warn if one column dominates all distances; ``so`` states the consequence. Columns have names, or numbers if None."""
    found = drowned_column(X)
    if found is not None:
        *which, times = found
        wide, narrow = (k if names is None else repr(printable(names[k])) for k in which)
        warn(f"column {wide} spreads {times:,.0f} times as far as column {narrow}, which hardly counts beside it: {so}. {way_out}")


def _checked(X: PointsLike, sample_weight: WeightsLike) -> tuple[Floats, Array]:
    X = _rows.points(X)
    _require_room(X, 1.0)
    return _present(X, sample_weight)


def _present(X: Floats, sample_weight: WeightsLike) -> tuple[Floats, Array]:
    """The points of weight, and their weights."""
    if sample_weight is None:
        return X, np.broadcast_to(1.0, len(X))
    if (
        isinstance(sample_weight, np.ndarray)
        and sample_weight.shape == (len(X),)
        and sample_weight.strides == (0,)
        and sample_weight[0] > 0
    ):
        return X, sample_weight
    w = _rows.weights(sample_weight, X, len(X))
    w = np.ldexp(w, -np.frexp(w.max())[1])  # by a power of 2, which rounds nothing: squares and products stay within range
    present = w > 0
    return (X, w) if present.all() else (rows_of(X, present), w[present])


def _require_room(X: Floats, units: float | Array) -> None:
    """Refuse points so near to each other that the squares of their distances are lost."""
    for some in (X[:64], X):  # mostly a few tell
        span = float((np.subtract(some.max(axis=0), some.min(axis=0), dtype=np.float64) / units).max())
        if span >= NARROWEST:
            return
    if span > 0:
        raise ValueError(
            f"X must span at least {NARROWEST:g} for a bandwidth rule, so that squared distances are above 0, got {span:.3g}; "
            "rescale it: X / X.std(), or give the bandwidth as a number"
        )


def _effective(w: Array) -> float:
    return float(len(w)) if w.strides == (0,) else float(w.sum() ** 2 / (w @ w))


def _scale(X: Floats, w: Array) -> float:
    """The mean over columns of the weighted standard deviation (the unbiased one, as in SciPy)."""
    variance, squares = _variances(X, w)
    unbiased = 1.0 - squares
    if unbiased <= 0:
        raise ValueError("this bandwidth rule needs at least two points of weight; give the bandwidth as a number")
    return _found(float(np.mean(np.sqrt(variance / unbiased))), "this rule", "all points coincide")


def _variances(X: Floats, w: Array) -> tuple[Array, float]:
    """(d,) weighted variances of the columns, as of a whole population; and Σ of the squared shares of the weight."""
    share = np.broadcast_to(1.0 / len(w), len(w)) if w.strides == (0,) else w / w.sum()
    centre = X[0].astype(np.float64)  # subtracting any point first keeps the digits of data far from 0
    total, square = _two_moments(X, share, centre)
    return np.maximum(square - total**2, 0.0), float(share @ share)


@over_blocks(add)
def _two_moments(X: Floats, share: Array, centre: Array) -> tuple[Array, Array]:
    """(d,) Σ wᵢ (xᵢ − c) and Σ wᵢ (xᵢ − c)²."""
    total, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for a, b in row_blocks(X, X.shape[1]):
        block = X[a:b] - centre
        total += share[a:b] @ block
        square += share[a:b] @ block**2
    return total, square


def _some_rows(count: int, most: int) -> Indices:
    """All rows, or a fixed random subset of them."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, size=most, replace=False))


def _places(X: Floats, w: Array, most: int) -> tuple[Array, Array]:
    """The distinct points of a subsample, and the weight at each."""
    rows = _some_rows(len(X), most)
    places, which = np.unique(X[rows].astype(np.float64), axis=0, return_inverse=True)
    if len(places) < 2:
        raise ValueError(
            f"a bandwidth cannot be found from the data: all {len(rows)} points looked at coincide; give the bandwidth as a number"
        )
    return places, np.asarray(np.bincount(which.reshape(-1), weights=w[rows]), np.float64)


def _quantile(values: Floats, w: Array, q: float) -> float:
    """The value up to which the share q of the weight lies; halfway to the next where the share ends exactly there.

    NumPy's "averaged_inverted_cdf", for any weights.
    """
    if w.strides == (0,) or np.all(w == w[0]):
        return float(np.quantile(values, q, method="averaged_inverted_cdf"))
    order = np.argsort(values, kind="stable")
    v, ends = np.asarray(values, np.float64)[order], np.cumsum(w[order])
    # where rounding, which differs from one scale of the weights to the next, would decide on which side of a step this is
    slack = ends[-1] * max(ENDS_THERE, 4 * float(np.finfo(np.float64).eps) * len(v))
    low = np.searchsorted(ends, q * ends[-1] - slack)
    high = min(np.searchsorted(ends, q * ends[-1] + slack, side="right"), len(v) - 1)
    return float(v[low] + (v[high] - v[low]) * 0.5)


def _found(value: float, rule: str, why_not: str) -> float:
    if not value > 0:
        raise ValueError(f"{rule} finds no bandwidth above 0: {why_not}; give the bandwidth as a number or use another rule")
    return value
