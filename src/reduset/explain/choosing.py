"""background: a few weighted rows instead of the whole table, as the background of Shapley values.

Let P be the distribution of the background. The value of a set S of columns at x is the average v(S) = E f(x_S, B_rest), B ~ P. A
Shapley value is a fixed sum of such values, φᵢ(x) = E_P hᵢ. It is linear in P (interventional Shapley values: Štrumbelj & Kononenko
2014, Lundberg & Lee 2017). So with weighted rows Q instead of P

    |φᵢ(x; P) − φᵢ(x; Q)| = |E_P hᵢ − E_Q hᵢ| ≤ ‖hᵢ‖ · ‖f_P − f_Q‖

in the norm of any kernel, for every x. In v(S) the columns of S are fixed, so hᵢ depends on fewer columns than the model. The
kernel is therefore a mixture of one of sets of columns and one of whole rows (below). An additive model is a sum of functions gⱼ of
single columns. Its φᵢ changes by at most V(gᵢ) · sup |P(Xᵢ ≤ t) − Q(Xᵢ ≤ t)| with the total variation V (Koksma).

**Kernel.** It compares sets of columns and whole rows:

    k = ρ Πⱼ (1 + θ kⱼ) / (1 + θ) + (1 − ρ) (9 g_h + 3 g_{h/2} + g_{h/4}) / 13,     θ = 2 / d,     ρ = min(d/10, ½)

A column becomes two coordinates. Trees split by rank, so the first is the rank, (mass below + half of the ties) in [0, 1]. Linear
models and networks add values, so the second is the value in units of twice the interquartile range (`bandwidth.column_scales`).

The product over columns represents additive models. A pair of columns has less weight than a single column. Three columns have less
weight than two, and so on. The Gaussians g of whole rows represent dependence on many columns at once, such as tight clusters of
rows. Their columns are in standard deviations. The mean squared distance of two rows is then 2d = h². Smaller scales have less
weight.

With few columns the Gaussians have most weight. They are smooth, so a few rows can reduce their part of the error to almost zero.
The product has kinks, which a few rows cannot approximate. The loops are in `_engine.kernel_blocks`. The ranks cost O(d·n log n).

**Selection.** Up to 1,000 rows are selected greedily, for weights that sum to one. Let b(x) = φ(·, x) − f be the kernel functions
relative to f. Their inner products are ⟨b(x), b(y)⟩ = k(x, y) − f(x) − f(y) + ‖f‖². Let A be the inverse of their Gram matrix at
the selected rows. The nearest point of the affine hull of these rows has the weights A1 / 1ᵀA1. Its squared distance is 1 / 1ᵀA1. A
row x adds (1 − b(x)ᵀA1)² / σ²(x) to 1ᵀA1. Here σ² is the squared distance of b(x) to the span of the others. This is a pursuit of
the function that is 1 everywhere. A pursuit of f itself (`select.Greedy`) would spend directions on the mass, which weights on the
simplex have anyway. More than 1,000 rows are thinned and get equal weights. The weights and the certificate use all rows of the
table.

O(n·(m + 384)·d), and O(q²·d + q·m²) with memory O(q·m) for the selection among q ≤ 8,192 rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from reduset import _validate
from reduset._engine import Pursuit, columnwise_gram, single_threaded_blas
from reduset._frames import names_of, table_weights
from reduset._messages import NotReachedWarning, warn
from reduset._types import Array, Floats, Indices, PointsLike, ProgressLike, Report, SeedLike, WeightsLike
from reduset._validate import seeded
from reduset.bandwidth import column_scales
from reduset.compression import compress_quietly
from reduset.explain.explained import Background, rows_like
from reduset.kernels import FunctionKernel
from reduset.mean import KernelMean
from reduset.select import Greedy, Selector, Thinning, Traversal
from reduset.weights import OWN

WEIGHTS = ("equal", "simplex")
SIZE, MAX_SIZE = 100, 1000  # the default, and the largest for weights on the simplex
MAX_CANDIDATES = 8192
ORDERS = 2.0  # θ = ORDERS / d
RHO_PER_COLUMN, MAX_RHO = 0.1, 0.5
SCALE_WEIGHTS = (9 / 13, 3 / 13, 1 / 13)  # of the Gaussians of whole rows at h, h/2 and h/4
INTERQUARTILE_RANGES = 2.0  # the unit of values
MAX_VALUE = 1e70  # in these units, so that sums of squares stay finite


@seeded
def background(
    X: PointsLike,
    size: int | None = None,
    *,
    tol: float | None = None,
    max_size: int | None = None,
    weights: str = "simplex",
    sample_weight: WeightsLike = None,
    confidence: float = 0.95,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Background:
    """Choose a few weighted rows of X to replace all rows as the background of explanations of a model.

    Columns may have any units, because the kernel uses their ranks and their values in interquartile ranges. Codes of categories
    are treated as numbers, so one-hot columns are better.

    Parameters
    ----------
    X : (n, d) array or frame of numbers; `reduset.io.as_table` encodes text
    size : int, default 100
        The number of rows. The result has fewer if some get no weight. More than 1,000 rows have equal weights.
    tol : float
        The largest certified relative error in the norm of the kernel. Pass it instead of ``size`` for the fewest rows.
    max_size : int, default min(n, 1000), the maximum number of rows for ``tol``
    weights : "simplex" or "equal"
        "equal" for explainers that take rows without weights: all of shap except `KernelExplainer`. With ``sample_weight``, a row
        may then occur twice.
    sample_weight : (n,) array, optional
    confidence : float, of the interval of the certificate
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    Background
        With ``rows``, ``weights``, ``indices``, ``certificate``, and `Background.to_shap` for `shap.KernelExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.explain import background
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=3000), 1000 * rng.exponential(size=3000), rng.integers(0, 2, 3000)])
    >>> small = background(X, 50, rng=0)
    >>> small.rows.shape, round(float(small.weights.sum()), 12)
    ((50, 3), 1.0)
    >>> model = lambda rows: rows[:, 0] + np.log1p(rows[:, 1]) * rows[:, 2]
    >>> abs(small.base_change(model, X)) < 0.02, small.random_rows > 500
    (True, True)
    """
    if size is not None and tol is not None:
        raise ValueError(f"give one of size and tol, which both set the number of rows, got size={size!r} and tol={tol!r}")
    if weights == "equal" and tol is not None:
        raise ValueError(f"tol needs weights='simplex', got tol={tol!r} with weights='equal'; give a size")
    _validate.one_of(weights, "weights", WEIGHTS)
    sample_weight = table_weights(X) if sample_weight is None else sample_weight
    points = _validate.points(X)
    n = len(points)
    mass = np.broadcast_to(1.0, n) if sample_weight is None else _validate.weights(sample_weight, n)
    if tol is None:
        size = min(SIZE, n) if size is None else _validate.whole(size, "size", 1, n, "it is a number of rows of X")
    columns = coordinates(points, mass)
    full = KernelMean.from_samples(columns, explaining_kernel(columns, mass), None if sample_weight is None else mass)
    options: dict[str, Any] = {"size": size, "confidence": confidence, "rng": rng, "progress": progress}
    if tol is not None:
        limit = MAX_SIZE if max_size is None else _validate.whole(max_size, "max_size", 1)
        options |= {"tol": tol, "max_size": min(limit, n)}
    if weights == "equal" or (size is not None and size > MAX_SIZE):
        small = compress_quietly(full, select=Thinning(), weights=OWN, **options)
    else:
        small = compress_quietly(full, select=AffineGreedy(), weights="simplex", **options)
    indices, masses = cast(Indices, small.indices), small.mean.weights
    if not small.reached:
        warn(
            f"tol={tol:g} was not reached with {small.size} rows: the error is {small.certificate.relative_error:.3g} (at most "
            f"{small.certificate.interval[1]:.3g}). Raise max_size, or tol",
            NotReachedWarning,
        )
    if weights == "equal":
        indices = np.repeat(indices, np.maximum(np.rint(masses * (size or n)).astype(np.int64), 1))
        masses = np.full(len(indices), 1.0 / len(indices))
    return Background(
        rows=rows_like(X, points, indices),
        weights=np.asarray(masses / masses.sum()),
        indices=indices,
        certificate=small.certificate,
        n_samples=n,
        columns=names_of(X) or [str(j) for j in range(points.shape[1])],
        column_gaps=distribution_gaps(points, mass, points[indices], masses),
        reached=small.reached,
        timings=small.timings,
    )


@dataclass(frozen=True)
class AffineGreedy(Selector):
    """Selects the row that lowers the error most under weights that sum to one.

    The candidates are at most 8,192 rows, drawn by weight.
    """

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        if mean.size <= MAX_CANDIDATES:
            return _AffinePursuit(mean, np.arange(mean.size), rng)
        rows, counts = np.unique(mean.draw_rows(MAX_CANDIDATES, rng), return_counts=True)
        return _AffinePursuit(KernelMean(mean.atoms[rows], counts / counts.sum(), mean.kernel), rows, rng)

    def __str__(self) -> str:
        return "Greedy"


class _AffinePursuit(Traversal):
    def __init__(self, mean: KernelMean, rows: Indices, rng: np.random.Generator) -> None:
        self._mean, self._rows, self._rng = mean, rows, rng
        self._candidates = np.flatnonzero(mean.weights)
        self._pursuit: Pursuit | None = None
        self._others: Traversal | None = None

    def extend(self, size: int, report: Report | None = None) -> None:
        if self._pursuit is None:
            self._pursuit = self._begin_pursuit()
        with single_threaded_blas():
            while self._others is None and len(self._pursuit.chosen) < size:
                if not self._pursuit.choose():
                    # the affine hull contains f up to rounding or spans all directions, but other rows may be independent
                    after = tuple(self._candidates[self._pursuit.chosen].tolist())
                    self._others = Greedy(after=after).begin(self._mean, self._rng)
                elif report is not None:
                    report(len(self._pursuit.chosen), size)
        if self._others is not None:
            self._others.extend(size, report)

    def _begin_pursuit(self) -> Pursuit:
        kernel, points = self._mean.kernel, np.asarray(self._mean.atoms[self._candidates], np.float64)
        weights = self._mean.weights[self._candidates]
        values = kernel.product_sums(points, weights / weights.sum(), points)
        energy = float(weights @ values) / float(weights.sum())
        row = kernel.product_rows(points)

        def relative_to_f(position: int) -> Array:
            return np.asarray(row(position) - (values + (values[position] - energy)))

        return Pursuit(np.ones(len(points)), relative_to_f, 1.0 - 2.0 * values + energy)

    @property
    def indices(self) -> Indices:
        if self._others is not None and self._others.indices is not None:
            return self._rows[self._others.indices]
        chosen = [] if self._pursuit is None else self._pursuit.chosen
        return self._rows[self._candidates[np.array(chosen, dtype=np.int64)]]


@dataclass(frozen=True)
class ExplainingKernel:
    """k(x, y) for rows of coordinates.

    The parameters are θ, the (d,) rates of the squared differences of values in −log g_h, and ρ.
    """

    theta: float
    rates: Array = field(repr=False)
    rho: float

    def __call__(self, points: Floats, others: Floats) -> Array:
        wide, middle, fine = ((1.0 - self.rho) * part for part in SCALE_WEIGHTS)
        return columnwise_gram(points, others, self.theta, self.rates, (self.rho, wide, middle, fine))

    def __repr__(self) -> str:
        return f"columns and rows, theta={self.theta:.3g}"


def explaining_kernel(columns: Array, weights: Array) -> FunctionKernel:
    """The kernel for (n, 2d) rows of coordinates, with ranks in the first d columns."""
    d = columns.shape[1] // 2
    rates = 0.25 / (d * np.square(column_scales(columns[:, d:], weights, "standard")))  # 1 / 2h² in standard deviations
    return FunctionKernel(ExplainingKernel(ORDERS / d, rates, min(RHO_PER_COLUMN * d, MAX_RHO)))


def coordinates(points: Floats, weights: Array) -> Array:
    """(n, 2d) ranks and then values of the d columns that are not constant; of one column if all are constant."""
    present = points if weights.strides == (0,) else points[weights > 0]
    varying = np.flatnonzero(present.max(axis=0) != present.min(axis=0))
    varying = varying if len(varying) else np.zeros(1, np.int64)
    scales = column_scales(points, weights)[varying]
    middle = np.median(present[:, varying], axis=0)  # subtracted first, which keeps the digits of data far from 0
    columns = np.empty((len(points), 2 * len(varying)))
    for k, j in enumerate(varying):
        columns[:, k] = ranks(points[:, j], weights)
        values = (points[:, j] - middle[k]) / (INTERQUARTILE_RANGES * scales[k])
        columns[:, len(varying) + k] = np.clip(values, -MAX_VALUE, MAX_VALUE)
    return columns


def ranks(values: Floats, weights: Array) -> Array:
    """(n,) the proportion of the weight below each value, plus half of the ties."""
    distinct, at = np.unique(values, return_inverse=True)
    mass = np.bincount(at.reshape(-1), weights, len(distinct))
    ends = np.cumsum(mass)
    return np.asarray(((ends - mass / 2) / ends[-1])[at.reshape(-1)], np.float64)


def distribution_gaps(points: Floats, weights: Array, rows: Floats, masses: Array) -> Array:
    """(d,) the largest difference between the distribution functions of each column, of the points and of weighted rows."""
    gaps = np.empty(points.shape[1])
    for j in range(points.shape[1]):
        both = np.concatenate([points[:, j], rows[:, j]])
        signed = np.concatenate([weights / weights.sum(), -masses / masses.sum()])
        distinct, at = np.unique(both, return_inverse=True)
        gaps[j] = np.abs(np.cumsum(np.bincount(at.reshape(-1), signed, len(distinct)))).max()
    return gaps
