"""compress: n points in, m weighted atoms out, with their measured error (Cruz Cortés & Scott 2017); weigh: for given atoms.

validated data → plan (`plan`) → select, weigh and certify (`stages`) in a search (`searches`, `resolution`) → `result`
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reduset import _validate
from reduset._describe import percent
from reduset._engine import in_blocks, single_threaded_blas
from reduset._frames import names_of
from reduset._messages import NotReachedWarning, is_quiet, quietly, warn
from reduset._progress import Progress
from reduset._types import Array, Indices, KernelLike, PointsLike, ProgressLike, Report, SeedLike, SelectorLike, WeightsLike
from reduset._validate import seeded
from reduset.bandwidth import warn_of_units
from reduset.certificate import Certificate, at_bandwidth
from reduset.compression import summary
from reduset.compression.plan import SQUARE_ROOT, is_left_open, plan_of
from reduset.compression.result import Compression, result_of
from reduset.compression.searches import find, find_groups
from reduset.compression.stages import Run, SearchResult
from reduset.data import opened
from reduset.io import Table, on_estimated_scales
from reduset.mean import KernelMean
from reduset.mixture import Mixture, SmallMean
from reduset.select import Selector, Traversal
from reduset.weights import OWN

TRANSFORMED = "atoms, the bandwidth and the error are of the transformed values"


@seeded
def compress(
    data: KernelMean | PointsLike,
    kernel: KernelLike = None,
    *,
    size: int | None = None,
    tol: float | None = None,
    plateau: float | None = None,
    max_size: int | None = None,
    pieces: str = "atoms",
    select: SelectorLike = "auto",
    refine: bool | int = False,
    weights: str | None = None,
    sample_weight: WeightsLike = None,
    groups: Any = None,
    quotas: str = SQUARE_ROOT,
    confidence: float = 0.95,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Compression:
    """Approximate the kernel mean of the rows by a small function, and measure the error.

    Two of size, tolerance and bandwidth determine the third.

    - ``compress(X, size=1000)`` returns 1,000 weighted atoms and their resolution. This is the finest bandwidth at which their
      error is at most 5 %, there and at every coarser scale.
    - ``compress(X, Gaussian(0.5), tol=0.01)`` returns the fewest atoms within 1 % at this bandwidth.
    - ``compress(X, Gaussian(0.5), size=1000)`` measures the error of 1,000 atoms at this bandwidth.
    - ``compress(X, tol=0.05)`` chooses the bandwidth at which the sampling error of the rows equals ``tol``.

    The result is for kernel computations: densities, distances, modes, drift. For a smaller table, use `sketch`. It returns real
    rows with weights.

    Parameters
    ----------
    data : KernelMean, (n, d) array, frame, `reduset.io.Table`, path or paths, Dask collection or list of delayed partitions
        Files and Dask collections are read in passes, and are never in memory as a whole.
        Channels of FCS files without a transform are put on estimated scales, as by `sketch`.
    kernel : Kernel, number, name or callable k(X, Y)
        The kernel of the rows, by default `Gaussian()`, for which the bandwidth is searched. A KernelMean has its own kernel.
    size : int
        The number of atoms, by default 1,000. Fewer if fewer rows are distinct, and if atoms are redundant or get weight 0.
    tol : float
        The largest relative error ‖f − f_m‖ / ‖f‖, by default 0.05. It limits the upper end of the confidence interval.
    plateau : float
        Stop at the first atom that adds at most this proportion of the energy added since the first (the ε of the 2017 paper).
    max_size : int, default min(n, 5000), or 1,000 without a bandwidth
        The largest number of atoms with ``tol`` or ``plateau``.
    pieces : "atoms" or "components"
        Weighted points, or Gaussian components, each with a covariance (``mean`` is then a `ComponentMean`). For densities, some
        hundred components have the error of thousands of atoms.
    select : "auto", the name of another class of `reduset.select` in small letters ("kcenter", "kmeans", …), or a selector
        How atoms are chosen. "auto" tries several selectors and keeps the best.
    refine : bool or int
        Move the selected atoms by L-BFGS to lower the error. A number limits the steps. Moved atoms have no indices.
    weights : "free", "sum_to_one", "clipped", "sum_to_one_clipped", "simplex_projection", "simplex" or "own"
        "free" weights have the smallest error and may be negative. "simplex" weights are the best non-negative weights with the sum
        of the rows' weights. "own" uses the weights of the selector. The default for atoms at a given bandwidth is "free". It is
        "simplex" without a bandwidth and for components ("sum_to_one" with ``refine``).
    sample_weight : (n,) array, optional
        Weights of the rows. A KernelMean has its own weights. For files and Dask frames, also the name of a column.
    groups : (n,) array of labels, optional
        Compress each group separately. Its atoms have exactly its proportion of the weight, and ``tol`` holds for each group.
    quotas : "square root", "proportional" or "equal"
        How ``size`` is divided among groups. By default, it is proportional to the square roots of their weights.
    confidence : float
        The level of the certificate's interval.
    rng : None, seed or Generator
        The same seed gives the same result.
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    Compression
        ``mean`` is the small function, and ``certificate`` its measured error. ``indices`` are the rows of the atoms, if they are
        rows of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, compress
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> small = compress(X, kernel=Gaussian("median"), tol=0.01, rng=0)
    >>> small.size < 40, small.certificate.relative_error <= 0.01
    (True, True)
    """
    data = opened(data, sample_weight if isinstance(sample_weight, str) else None)
    notes = data.notes if in_blocks(data) else ()
    if isinstance(data, Table):
        table = on_estimated_scales(data)
        notes, data = (*table.notes, *([TRANSFORMED] if data.channels else [])), table
    full = as_mean(data, kernel, sample_weight)
    plan = plan_of(
        full,
        full is not data and is_left_open(kernel),
        size=size,
        tol=tol,
        plateau=plateau,
        max_size=max_size,
        pieces=pieces,
        select=select,
        refine=refine,
        weights=weights,
        grouped=groups is not None,
        confidence=confidence,
    )
    if kernel is None and full is not data:
        warn_of_units(full.atoms, names_of(data), "the error is determined by the wide column alone")
    rng = _validate.generator(rng)
    # once for the whole call: BLAS threads are set for the whole process, so compressions in parallel would interfere
    with closing(Progress(progress)) as shown, single_threaded_blas():
        run = Run(rng, plan.confidence, shown)
        search = find(full, plan, run) if groups is None else find_groups(full, plan, groups, quotas, run)
        result = replace(result_of(search, rng, plan), notes=notes)
    if not is_quiet():
        _warn(result, search)
    return result


def _warn(result: Compression, search: SearchResult) -> None:
    """Warn if the mean is orthogonal to all atoms, if random rows have a smaller error, or if the goal was not reached."""
    plan, error = result.plan, result.certificate
    if search.prefixes.is_orthogonal(search.size) and error.norm > 0:  # no weights bring the atoms closer to the mean than 0 does
        if result.mean.weights.any():
            consequence = f"the error with weights={result.weighting!r} is {percent(error.relative_error)}"
        else:
            consequence = "the best weights are 0, so the result is the zero function, with an error of 100 %"
        pieces = f"{summary.noun(result.mean)}s"
        warn(
            f"the mean is orthogonal to all {pieces} chosen, {result.selected} of {result.n_samples:,} points: {consequence}. "
            f"Choose more {pieces} by a larger size, or others by another select or rng"
        )
    comparison = result.above_random_rows()
    if comparison is not None:
        warn(
            f"{comparison}; omit select and weights (got {result.selection} and {result.weighting!r}), or use sketch(data, "
            f"{result.size}) for real rows with weights"
        )
    if not result.reached and plan is not None:
        warn(
            f"{plan.goal or f'the end of {plan.selector}'} was not reached with {result.size} {summary.noun(result.mean)}s: "
            f"the error is {error.relative_error:.3g} (at most {error.interval[1]:.3g}){at_bandwidth(error.bandwidth)}. "
            + (search.way_out[:1].upper() + search.way_out[1:] or "Raise max_size, or widen the bandwidth"),
            NotReachedWarning,
        )


def as_mean(data: KernelMean | PointsLike, kernel: KernelLike, sample_weight: WeightsLike) -> KernelMean:
    """The mean of points, or a given mean. Raises an error for options that exclude each other."""
    if not isinstance(data, KernelMean):
        if isinstance(data, Compression):
            raise TypeError("data is a Compression; compress its mean: compress(small.mean, ...)")
        if isinstance(data, Mixture):
            raise TypeError(f"data is a {type(data).__name__}; simplify makes it smaller: simplify(mixture, size=...)")
        return KernelMean.from_samples(data, kernel, sample_weight)
    for name, given in (("kernel", kernel), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(
                f"{name} needs points, and a KernelMean has its own. Use KernelMean(mean.atoms, mean.weights, kernel) to change it"
            )
    total = data.total
    _validate.squares_summable(total, "the weights' magnitudes must sum to", f"got {total:g}; rescale the mean: mean / scale")
    return data


@seeded
def weigh(
    data: KernelMean | PointsLike,
    atoms: Any,
    kernel: KernelLike = None,
    weights: str | WeightsLike = None,
    *,
    tol: float | None = None,
    sample_weight: WeightsLike = None,
    confidence: float = 0.95,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Compression:
    """Compute the best weights for given atoms, or certify given weights.

    The atoms may be a coreset, a sketch, cluster centres or a random sample. The result has the same type as in `compress`.

    Parameters
    ----------
    data : KernelMean, or (n, d) array or frame
        The data that the atoms represent.
    atoms : (m,) whole numbers, rows of the data; or (m, d) points of any kind
    kernel : Kernel or callable k(X, Y)
        Only with points, since a KernelMean has its own kernel. Without a bandwidth (the default), the result has the finest
        bandwidth at which the error of these atoms is at most ``tol``.
    weights : str or (m,) array
        A kind of weights as in `compress` ("free", "simplex", …), with the same defaults. An array has the weights of the atoms,
        such as 1/m each. These are kept and certified.
    tol : float, default 0.05; only without a bandwidth
        The largest relative error.
    sample_weight : (n,) array, optional; only with points
        Weights of the rows.
    confidence : float
        The level of the certificate's interval.
    rng : None, seed or Generator
        The same seed gives the same result.
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    Compression
        Atoms are sorted by the energy that each adds; ``indices`` are rows of the data if rows were given.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, weigh
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> rows = np.arange(40)  # a random sample, or what another library chose
    >>> equal = weigh(X, rows, Gaussian(1.0), weights=np.full(40, 1 / 40), rng=0)
    >>> best = weigh(X, rows, Gaussian(1.0), rng=0)
    >>> best.certificate.relative_error < equal.certificate.relative_error / 10
    True
    """
    if not isinstance(data, KernelMean):
        data = opened(data, sample_weight if isinstance(sample_weight, str) else None)
    full = as_mean(data, kernel, sample_weight)
    kind = weights if weights is None or isinstance(weights, str) else OWN
    given = _given(atoms, None if weights is kind else weights, full)
    is_open = full is not data and is_left_open(kernel)
    if tol is not None and not is_open:
        raise ValueError(
            f"tol determines the bandwidth, got tol={tol!r} with {full.kernel!r}, which has one; omit tol or the kernel"
        )
    source = {"data": data, "kernel": kernel, "sample_weight": sample_weight} if is_open else {"data": full}
    options: dict[str, Any] = {"confidence": confidence, "rng": rng, "progress": progress}
    return compress(**source, size=len(given.points), tol=tol, select=given, weights=kind, **options)


def _given(atoms: Any, weights: Any, full: KernelMean) -> Given:
    values = np.asarray(atoms) if isinstance(atoms, list | tuple) else atoms
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if getattr(values, "ndim", None) == 1 and kind != "f":
        rows = _rows_among(np.asarray(values), full.size)
        points = np.asarray(full.atoms[rows], np.float64)
    else:
        rows, points = None, np.asarray(_validate.rows.points(atoms, "atoms")[:], np.float64)
        if points.shape[1] != full.dimension:
            raise ValueError(f"atoms must have {full.dimension} columns like the data, got shape {points.shape}")
    if len(points) > full.size:
        raise ValueError(f"atoms must be at most as many as the data's points, {full.size:,}, got {len(points):,}; omit some")
    own = None
    if weights is not None:
        own = _validate.weights(weights, len(points), "weights", signed=True)
        total, mass = float(own.sum()), full.mass
        if full.stored_weights.min() >= 0 and not mass / 2 <= total <= 2 * mass:
            raise ValueError(
                f"weights must sum to about that of the data, {mass:g}, got {total:g}; rescale them: "
                f"weights * ({mass:g} / weights.sum())"
            )
    return Given(rows, points, own)


def _rows_among(rows: Any, n: int) -> Indices:
    """Row numbers of the data, without duplicates."""
    if rows.dtype.kind not in "iu":
        raise TypeError(
            f"atoms must be whole numbers, rows of the data, or an (m, d) array of points; got {rows.dtype} of shape {rows.shape}"
            + ("; np.flatnonzero(mask) has the rows of a mask" if rows.dtype.kind == "b" else "")
        )
    if not len(rows):
        raise ValueError("atoms must be at least one row or point, got none")
    wrong = rows[(rows < 0) | (rows >= n)]
    if len(wrong):
        raise ValueError(f"atoms must be rows of the data, 0 to {n - 1:,}, got {wrong[0]:,}")
    twice = np.flatnonzero(np.bincount(rows) > 1)
    if len(twice):
        raise ValueError(
            f"atoms must be distinct rows, got row {twice[0]:,} more than once; np.unique(rows, return_counts=True) returns "
            "distinct rows, and counts for weights"
        )
    return rows.astype(np.int64)


@dataclass(frozen=True)
class Given(Selector):
    """Given atoms: rows of the data or points, with their weights if they have any."""

    rows: Indices | None = field(compare=False)
    points: Array = field(compare=False, repr=False)
    own: Array | None = field(compare=False, repr=False)
    scale_free = True
    weighs = True

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _AsGiven(self)

    def __str__(self) -> str:
        return "given"


class _AsGiven(Traversal):
    nested = False  # so that atoms are sorted by the energy that each adds

    def __init__(self, given: Given) -> None:
        self._given, self.points = given, given.points

    def extend(self, size: int, report: Report | None = None) -> None:
        """All atoms are given."""

    @property
    def indices(self) -> Indices | None:
        return self._given.rows

    def weights(self) -> Array | None:
        return self._given.own


def compress_quietly(full: KernelMean, **options: Any) -> Compression:
    """`compress` without warnings, for callers that report ``reached`` themselves."""
    with quietly():
        return compress(full, **options)


def evaluated(full: KernelMean, compression: Compression | None) -> tuple[SmallMean, Certificate]:
    """The mean to keep and its certificate. Without a compression, it is a copy of all atoms, since the data may change later."""
    if compression is not None:
        return compression.mean, compression.certificate
    atoms = full.atoms if in_blocks(full.atoms) else np.array(full.atoms[:])
    return KernelMean.unchecked(atoms, full.weights, full.kernel), Certificate.without_error(full)
