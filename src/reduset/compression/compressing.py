"""compress: n points in, m weighted atoms out, with the error they carry (Cruz Cortés & Scott 2017).

select (which atoms) → weigh (which weights) → certify (how much was lost).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reduset import _validate
from reduset._describe import percent
from reduset._engine import in_blocks, single_threaded_blas
from reduset._frames import names_of
from reduset._messages import NotReachedWarning, is_quiet, quietly, warn
from reduset._progress import Progress
from reduset._types import KernelLike, PointsLike, ProgressLike, SeedLike, SelectorLike, WeightsLike
from reduset._validate import seeded
from reduset.bandwidth.rules import warn_of_units
from reduset.certificate import Certificate
from reduset.certificate.certificate import at_bandwidth
from reduset.compression import summary
from reduset.compression.grouped import SQUARE_ROOT, find_groups
from reduset.compression.pipeline import find
from reduset.compression.plan import is_left_open, plan_of
from reduset.compression.result import Compression, result_of
from reduset.compression.target import Run
from reduset.data import opened
from reduset.io import Table, on_estimated_scales
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.mixture.component_mean import SmallMean

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

    ``compress(X, size=1000)`` returns 1,000 weighted atoms, and the finest bandwidth at which their error is at most 5 %, there and
    at every coarser scale: the resolution. With a bandwidth, ``compress(X, Gaussian(0.5), tol=0.01)`` returns the fewest atoms
    within 1 %, and ``size=`` instead of ``tol=`` measures the error of so many. Two of size, tolerance and bandwidth determine the
    third. ``tol`` alone chooses the bandwidth at which the sampling error of the rows equals ``tol``.

    The result is for kernel computations: densities, distances, modes, drift. For a smaller table, use `sketch`, which returns real
    rows with weights.

    Parameters
    ----------
    data : KernelMean, (n, d) array, frame, `reduset.io.Table`, path, Dask collection or list of delayed partitions
        Files and Dask collections are read in passes, and are never in memory as a whole.
        Channels of FCS files without a transform are put on estimated scales, as by `sketch`.
    kernel : Kernel, number, name or callable k(X, Y)
        The kernel of the rows, by default a Gaussian whose bandwidth is searched for, like `Gaussian()`. A KernelMean has its own.
    size : int
        The number of atoms, by default 1,000; fewer if fewer rows are distinct, or if atoms are redundant or get weight 0.
    tol : float
        The largest relative error ‖f − f_m‖ / ‖f‖, by default 0.05; the upper end of its confidence interval is at most this.
    plateau : float
        Stop at the first atom that adds at most this proportion of the energy added since the first (the ε of the 2017 paper).
    max_size : int, default min(n, 5000), or 1,000 without a bandwidth
        The largest number of atoms with ``tol`` or ``plateau``.
    pieces : "atoms" or "components"
        Weighted points, or Gaussian components with covariances of their own (``mean`` is then a `ComponentMean`). For densities,
        some hundred components have the error of thousands of atoms.
    select : "auto", the name of another class of `reduset.select` in small letters ("kcenter", "kmeans", …), or a selector
        How atoms are chosen; "auto" tries several ways and keeps the best.
    refine : bool or int
        Move the selected atoms by L-BFGS to lower the error; a number is the most steps. Moved atoms have no indices.
    weights : "free", "sum_to_one", "clipped", "sum_to_one_clipped", "simplex_projection", "simplex" or "own"
        "free" weights have the least error and may be negative. "simplex" weights are the best non-negative ones with the sum of
        the rows' weights. "own" are those of the selector. By default "free" at a given bandwidth, otherwise and for components
        "simplex" ("sum_to_one" with ``refine``).
    sample_weight : (n,) array, optional
        Weights of the rows; a KernelMean has its own. Of files and Dask frames, also the name of a column.
    groups : (n,) array of labels, optional
        Compress each group separately; its atoms have exactly its proportion of the weight, and ``tol`` holds for each group.
    quotas : "square root", "proportional" or "equal"
        How ``size`` is divided among groups: by the square roots of their weights, by their weights, or equally.
    confidence : float
        The level of the certificate's interval.
    rng : None, seed or Generator
        The same seed gives the same result.
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    Compression
        ``mean`` is the small function, ``certificate`` its measured error, ``indices`` the rows of the atoms, if they are rows.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, compress
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> small = compress(X, kernel=Gaussian("median"), tol=0.01, rng=0)
    >>> small.size < 40, small.certificate.relative_error <= 0.01
    (True, True)
    """
    data, notes = _on_scales(opened(data, sample_weight if isinstance(sample_weight, str) else None))
    full = as_mean(data, kernel, sample_weight)
    goals: dict[str, Any] = {"tol": tol, "plateau": plateau, "max_size": max_size, "refine": refine}
    options: dict[str, Any] = {"size": size, "pieces": pieces, "select": select, "weights": weights, "confidence": confidence}
    plan = plan_of(full, full is not data and is_left_open(kernel), grouped=groups is not None, **goals, **options)
    if kernel is None and full is not data:
        warn_of_units(full.atoms, names_of(data), "the error is that of the wide column alone")
    rng, shown = _validate.generator(rng), Progress(progress)
    run = Run(rng, plan.confidence, shown)
    try:
        # once for all, and not call by call: compressions in several threads would switch it for each other
        with single_threaded_blas():
            found = find(full, plan, run) if groups is None else find_groups(full, plan, groups, quotas, run, **goals)
            result = replace(result_of(found, rng, plan), notes=notes)
    finally:
        shown.close()
    if not is_quiet():
        _warn_of_zero_projection(result)
        _warn_if_random_rows_are_better(result)
        _warn_if_not_reached(result, found.way_out)
    return result


def _on_scales(data: Any) -> tuple[Any, tuple[str, ...]]:
    """A table with channels of FCS files on estimated scales, and its notes; other data unchanged."""
    if not isinstance(data, Table):
        return data, data.notes if in_blocks(data) else ()
    table = on_estimated_scales(data)
    return table, (*table.notes, *([TRANSFORMED] if data.channels else []))


def _warn_if_not_reached(result: Compression, way_out: str) -> None:
    """Warn if the goal of the plan was not reached."""
    plan, error = result.plan, result.certificate
    if result.reached or plan is None:
        return
    goal = plan.goal or f"{plan.selector}'s own end"
    warn(
        f"{goal} was not reached with {result.size} {summary.noun(result.mean)}s: the error is "
        f"{error.relative_error:.3g} (at most {error.interval[1]:.3g}){at_bandwidth(error.bandwidth)}. "
        + (way_out[:1].upper() + way_out[1:] or "Raise max_size, or widen the bandwidth"),
        NotReachedWarning,
    )


def _warn_if_random_rows_are_better(result: Compression) -> None:
    """Warn if the error is certified to be above that of as many random rows of equal weight, at the bandwidth of the result."""
    found = summary.above_random_rows(result)
    if found is not None:
        warn(
            f"{found}; leave out select and weights (got {result.selection} and {result.weighting!r}), or use sketch(data, "
            f"{result.size}) for real rows with weights"
        )


def _warn_of_zero_projection(result: Compression) -> None:
    """Warn if the mean is orthogonal to all atoms, up to rounding: no weights then bring them closer to it than 0 does."""
    if not result.is_orthogonal or not result.certificate.norm > 0:
        return
    pieces = f"{summary.noun(result.mean)}s"
    if result.mean.weights.any():
        consequence = f"the error with weights={result.weighting!r} is {percent(result.certificate.relative_error)}"
    else:
        consequence = "the best weights are 0, so the result is the zero function, with an error of 100 %"
    warn(
        f"the mean is orthogonal to all {pieces} chosen, {result.selected} of {result.n_samples:,} points: {consequence}. "
        f"Choose more {pieces} by a larger size, or others by another select or rng"
    )


def as_mean(data: KernelMean | PointsLike, kernel: KernelLike, sample_weight: WeightsLike) -> KernelMean:
    """The mean of data, points or a mean, or an error that names what does not go together."""
    if not isinstance(data, KernelMean):
        if isinstance(data, Compression):
            raise TypeError("data is a Compression; compress its mean: compress(small.mean, ...)")
        if isinstance(data, Mixture):
            raise TypeError(f"data is a {type(data).__name__}; simplify makes it smaller: simplify(mixture, size=...)")
        return KernelMean.from_samples(data, kernel, sample_weight)
    for name, given in (("kernel", kernel), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(
                f"{name} goes with points; a KernelMean has its own. Use KernelMean(mean.atoms, mean.weights, kernel) to change it"
            )
    total = data.total
    _validate.squares_summable(total, "the weights' magnitudes must sum to", f"got {total:g}; rescale the mean: mean / scale")
    return data


def compress_quietly(full: KernelMean, **options: Any) -> Compression:
    """`compress` without its warning: whoever calls looks at ``reached``, and says what that means to its users."""
    with quietly():
        return compress(full, **options)


def evaluated(full: KernelMean, compression: Compression | None) -> tuple[SmallMean, Certificate]:
    """The mean to keep and what it lost; without a compression a copy, since the data are the caller's and may change."""
    if compression is not None:
        return compression.mean, compression.certificate
    return KernelMean.unchecked(np.array(full.atoms[:]), full.weights, full.kernel), Certificate.of_nothing_lost(full)
