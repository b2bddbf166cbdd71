"""sketch: choose m of n rows, with weights.

1. `strata` chooses covering rows and one row of each stratum of equal mass. They are representative without weights, too.
2. `calibration` computes weights near the masses of the strata, with which summaries of the columns are exact.
3. Each row is assigned to its nearest row of the sketch, in O(n·m·d) at worst. The largest distance is the covering radius.
4. Random Fourier features give the error at every scale from one pass over the rows (`certificate.by_scale`):

    e(h) = ‖f − f_m‖ / ‖f‖,     resolution = the smallest h at which e ≤ tol, there and at all coarser scales.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import on_device, rows_of, single_threaded_blas, to_numpy
from reduset._frames import names_of
from reduset._progress import Clock, Progress
from reduset._types import Array, Indices, KernelLike, PointsLike, ProgressLike, Report, SeedLike, WeightsLike
from reduset._validate import seeded
from reduset.bandwidth import SCALES, warn_of_units
from reduset.certificate import Certificate, ErrorProfile
from reduset.compression import QUOTAS, SQUARE_ROOT, TOL, Atoms, Run, certify, is_left_open, labels_of, weigh_atoms
from reduset.compression import quotas as apportioned
from reduset.kernels import Gaussian, RadialKernel, exponential
from reduset.mean import KernelMean, with_bandwidth
from reduset.sketching.calibration import BOUND, EVERY, Calibration, calibrate_weights
from reduset.sketching.columns import compare_columns
from reduset.sketching.result import Sketch
from reduset.sketching.strata import StratifiedRows, checked_coverage, draw_rows
from reduset.sketching.summaries import Summary, summarise
from reduset.sketching.tables import DIVIDED, KeptRows, TableRows
from reduset.weights import OWN, with_nearest_atoms

UNITS = "scales='robust' divides columns by their interquartile ranges; scales=None keeps their units, without this warning"


@seeded
def sketch(
    data: PointsLike,
    size: int,
    *,
    kernel: KernelLike = None,
    scales: Any = "auto",
    encode: Any = "auto",
    identifiers: str = "omit",
    coverage: float | None = None,
    calibrate: bool = True,
    sample_weight: WeightsLike = None,
    groups: Any = None,
    quotas: str = SQUARE_ROOT,
    tol: float = TOL,
    confidence: float = 0.95,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Sketch:
    """Choose rows that represent all rows, with weights. Without the weights, statistics are nearly as accurate.

    Parameters
    ----------
    data : (n, d) array, frame, `reduset.io.Table`, path or paths, Dask collection or list of delayed partitions
        Weights of tables and files are used. Files and Dask collections are read in passes, and one copy of their rows in single
        precision is held in memory.
    size : int
        Number of rows, at most the number of rows with non-zero weight.
    kernel : Kernel, default `Gaussian()`
        Sets the distance. The error is measured at its bandwidth. Without a bandwidth, it is measured at the resolution.
    scales : "auto", "robust", "standard", numbers or None
        Divide columns by interquartile ranges ("robust"), standard deviations ("standard") or given numbers, before distances are
        computed. "auto" is "robust" for frames and tables, and None for tables in one unit (transformed channels, pixels). It is
        also None for arrays, with a warning if one column dominates all distances. Only with ``kernel=None``.
    encode : "auto", None, or as in `reduset.io.read`
        How text, categories and dates of a frame become numbers. With "auto", categories become columns of 0 and 1. Ordered
        categories become 0, 1, …, and dates become days. Text with more than 50 categories is not used. None uses numeric columns
        only.
    identifiers : "omit" or "keep"
        Whether columns of a frame that look like identifiers are used. These are whole numbers that rise or fall from row to row,
        or that have no gaps and no repetition.
    coverage : float, optional
        Proportion of the size for covering rows, the farthest-first rows of the data. A large proportion lowers the radius, and
        makes the weights necessary. By default at most 1 %, and so few that means and spreads stay accurate without weights. With
        ``scales``, the default also adds rows with the minimum and the maximum of each column.
    calibrate : bool
        Adjust the weights, so that weighted means, standard deviations and deciles of columns are exact. False keeps the masses of
        the strata.
    sample_weight : (n,) array, optional
        Weights of the rows. For files and Dask frames, also the name of a column.
    groups : (n,) array of labels, optional
        Samples, batches or types. Each group is sketched separately, and its weights sum to its proportion exactly.
    quotas : "square root", "proportional" or "equal"
        How ``size`` is divided among groups. A group with fewer rows than its quota is kept whole, and others get more.
    tol : float
        The error that sets the resolution.
    confidence : float
        The level of the intervals.
    rng : None, seed or Generator
        The same seed gives the same result.
    progress : bool, or a function of (stage, done, total)

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import sketch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3)) * [1, 2, 3] + [0, 10, 20]
    >>> small = sketch(X, 500, rng=0)
    >>> (small.weights @ X[small.indices]).round(6) == X.mean(axis=0).round(6)
    array([ True,  True,  True])
    >>> error = np.abs(X[small.indices].std(axis=0) / X.std(axis=0) - 1)  # without weights
    >>> bool(error.max() < 1 / np.sqrt(2 * 500))  # the standard error of 500 random rows
    True
    >>> small.assignments.shape
    (20000,)
    """
    by_default = kernel is None and isinstance(scales, str) and scales == "auto"
    _validate.one_of(identifiers, "identifiers", ("omit", "keep"))
    table = TableRows.of(data, encode, identifiers, sample_weight if isinstance(sample_weight, str) else None)
    full = KernelMean.from_samples(table.values, _kernel(kernel, scales, table.has_units), sample_weight)
    size = _validate.whole(size, "size", 1, full.size, "it is a number of the data's rows")
    tol = _validate.tolerance(tol)
    confidence, coverage = _validate.confidence(confidence), checked_coverage(coverage)
    _validate.one_of(quotas, "quotas", QUOTAS)
    rng = _validate.generator(rng)
    if by_default and table.names is None:
        warn_of_units(full.atoms, names_of(data), "rare rows may be missed", UNITS)
    clock, shown = Clock(), Progress(progress)
    try:
        with single_threaded_blas():
            with clock.stage("summarise"):
                before = _summary(full)
            with clock.stage("select"):
                parts = _parts(full, size, groups, quotas)
                chosen = _chosen(full, parts, before, coverage, rng, shown)
            with clock.stage("weigh"):
                rows = np.asarray(to_numpy(rows_of(full.atoms, chosen.rows)), np.float64)
                calibrated = _calibrated(rows, chosen, before, int(np.count_nonzero(full.weights)), calibrate)
                chosen = replace(chosen, weights=calibrated.weights)
            with clock.stage("assign"):
                assignments, radius = _assigned(full, parts, chosen)
            with clock.stage("certify"):
                shown.stage("certifying")(0, 1)
                errors = _Errors.of(full, chosen, radius, tol if is_left_open(kernel) else None, confidence, rng, shown)
    finally:
        shown.close()
    kept = KeptRows.of(data, chosen.rows, rows, table.names)
    exceptions = tuple((kept.names[column], statistic) for column, statistic in calibrated.exceptions)
    return Sketch(
        indices=chosen.rows,
        weights=chosen.weights,
        assignments=assignments,
        covering=chosen.covering,
        certificate=errors.certificate,
        mean=errors.mean,
        resolution=errors.resolution,
        tol=tol,
        profile=errors.profile,
        columns=compare_columns(kept.names, before, rows, chosen.weights, full.size),
        exact=calibrated.exact,
        exceptions=exceptions,
        groups=None if chosen.group is None else parts.names[chosen.group],
        timings=clock.timings(),
        kept=kept,
        message="; ".join(filter(None, [parts.message, _omissions(calibrated)])),
        notes=(*table.notes, *([DIVIDED] if by_default and table.has_units else [])),
        calibrated=calibrate,
    )


def _kernel(kernel: KernelLike, scales: Any, has_units: bool) -> KernelLike:
    """The kernel given, or a Gaussian with an open bandwidth and the scales of the columns."""
    if isinstance(scales, str) and _validate.one_of(scales, "scales", ("auto", *SCALES)) == "auto":
        return kernel if kernel is not None else Gaussian(scales="robust" if has_units else None)
    if kernel is not None:
        raise ValueError("scales needs kernel=None, since a kernel has its own scales; use Gaussian(scales=...), or omit kernel")
    return Gaussian(scales=scales)


def _calibrated(rows: Array, chosen: _Chosen, before: Summary, available: int, calibrate: bool) -> Calibration:
    if len(rows) == available:  # all rows with their own weights
        return Calibration(chosen.weights, EVERY, ())
    return calibrate_weights(rows, chosen.weights, before, chosen.group) if calibrate else Calibration(chosen.weights, (), ())


def _omissions(calibrated: Calibration) -> str:
    """The summaries of columns that the weights do not reproduce. If they reproduce none, the printed result has its own line."""
    if not calibrated.omitted or not calibrated.exact:
        return ""
    omitted = " and ".join(calibrated.omitted)
    return f"{omitted} are not exact: this needs more rows, or weights that change by more than a factor of {BOUND:g}"


@dataclass(frozen=True)
class _Parts:
    """The rows of each group, and the number to choose from each. Without groups, there is one group of all rows."""

    names: NDArray[Any]
    rows: list[Indices | None]
    sizes: list[int]
    message: str = ""


@dataclass(frozen=True)
class _Chosen:
    """Rows in ascending order, with weights, a mask of covering rows, and the group of each row (None for one group)."""

    rows: Indices
    weights: Array
    covering: NDArray[np.bool_]
    group: Indices | None


def _parts(full: KernelMean, size: int, groups: Any, rule: str) -> _Parts:
    if groups is None:
        return _Parts(np.empty(0), [None], [size])
    names, of = labels_of(groups, full.size)
    counts = np.bincount(of, full.weights != 0, len(names)).astype(np.int64)
    if (counts == 0).any():
        empty = ", ".join(map(str, names[counts == 0][:5]))
        raise ValueError(f"groups must have rows of non-zero weight, {empty} {'has' if (counts == 0).sum() == 1 else 'have'} none")
    sizes = apportioned(size, np.bincount(of, full.magnitudes, len(names)).astype(np.float64), counts, rule)
    order = np.argsort(of, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(of, minlength=len(names)))[:-1])
    whole = [str(name) for name in names[sizes == counts]]
    message = f"kept whole, since they have no more rows than their quota: {', '.join(whole)}" if whole else ""
    return _Parts(names, list(rows), sizes.tolist(), message)


def _summary(mean: KernelMean) -> Summary:
    points = to_numpy(mean.atoms[:]) if on_device(mean.atoms) else mean.atoms
    return summarise(points, None if mean.is_uniform else mean.magnitudes)


def _part_of(full: KernelMean, rows: Indices | None) -> KernelMean:
    return full if rows is None else KernelMean(rows_of(full.atoms, rows), full.weights[rows], full.kernel)


def _chosen(
    full: KernelMean, parts: _Parts, before: Summary, coverage: float | None, rng: np.random.Generator, shown: Progress
) -> _Chosen:
    """The chosen rows of all groups, as row numbers of the data."""
    report = shown.stage("selecting" if len(parts.rows) == 1 else "groups")
    parts_drawn: list[StratifiedRows] = []
    for k, (rows, size, stream) in enumerate(zip(parts.rows, parts.sizes, rng.spawn(len(parts.rows)), strict=True)):
        part = _part_of(full, rows)
        summary = before if rows is None else _summary(part)
        inner: Report | None = report if len(parts.rows) == 1 else None
        if inner is None:
            report(k, len(parts.rows))
        drawn = draw_rows(part, summary, size, coverage, stream, inner)
        parts_drawn.append(drawn if rows is None else replace(drawn, rows=rows[drawn.rows]))
    rows, weights, covering = (
        np.concatenate([getattr(drawn, name) for drawn in parts_drawn]) for name in ("rows", "weights", "covering")
    )
    order = np.argsort(rows)
    lengths = [len(drawn.rows) for drawn in parts_drawn]
    group = np.repeat(np.arange(len(lengths)), lengths)[order] if len(parts.names) else None
    return _Chosen(rows[order], weights[order], covering[order], group)


def _assigned(full: KernelMean, parts: _Parts, chosen: _Chosen) -> tuple[Indices, float | None]:
    """(n,) the nearest row of the sketch in the same group, for rows of non-zero weight, and the largest distance."""
    assignments, farthest = np.full(full.size, -1), 0.0
    for k, rows in enumerate(parts.rows):
        members = np.arange(len(chosen.rows)) if chosen.group is None else np.flatnonzero(chosen.group == k)
        part = _part_of(full, rows)
        index, distance = np.empty(part.size, np.int64), np.zeros(part.size)

        def note(_: int, which: Any, atom: Any, __: Array, length: Array, index: Indices = index, to: Array = distance) -> None:
            index[which], to[which] = atom, length

        with_nearest_atoms(
            part, np.asarray(to_numpy(rows_of(full.atoms, chosen.rows[members])), np.float64), None, note, products=False
        )
        has_weight = part.weights != 0
        assignments[np.arange(full.size) if rows is None else rows] = np.where(has_weight, members[index], -1)
        farthest = max(farthest, float(distance[has_weight].max()))
    assignments[chosen.rows] = np.arange(len(chosen.rows))  # a row of the sketch to itself, also if another is equal
    return assignments, full.kernel.length(farthest, full.dimension)


@dataclass(frozen=True)
class _Errors:
    """The measured error, and the kernel at which it is measured."""

    certificate: Certificate
    mean: KernelMean
    resolution: float | None
    profile: ErrorProfile | None

    @classmethod
    def of(
        cls,
        full: KernelMean,
        chosen: _Chosen,
        radius: float | None,
        tol: float | None,
        confidence: float,
        rng: np.random.Generator,
        shown: Progress,
    ) -> _Errors:
        """The error at the smallest bandwidth within ``tol``, or else at the bandwidth of the kernel."""
        target, size = Run(rng, confidence, shown).target(full), len(chosen.rows)
        scales = target.scales(size)
        atoms = np.asarray(to_numpy(rows_of(full.atoms, chosen.rows)), np.float64)
        small = KernelMean(atoms, chosen.weights, full.kernel)
        if scales is None:  # without a scale, the error needs inner products with all rows
            weighed = weigh_atoms(target, Atoms(atoms, chosen.rows))
            _, certificate = certify(target, weighed, OWN, chosen.weights).state(size)
            return cls(replace(certificate, radius=radius), small, None, None)
        profile = scales.profile(small, scales.bandwidths, confidence, size)
        resolution = None if tol is None else profile.finest(tol)
        if resolution is not None:
            small = with_bandwidth(small, resolution)
        kernel = cast(RadialKernel, small.kernel)
        at_width = scales.profile(small, np.array([kernel.width]), confidence, size)
        error, (low, high) = float(at_width.relative_errors[0]), at_width.intervals[0].tolist()
        if resolution is not None:  # the intervals that set it, which hold at all scales at once
            low, high = profile.intervals[profile.bandwidths == resolution][0].tolist()
        energy = exponential(kernel.log_energy(full.dimension))
        method = "exact" if scales.certain else "frequencies"
        certificate = Certificate(
            *(error, (low, high), confidence, method, float("nan"), energy, None, None, None, None),
            radius=radius,
            bandwidth=kernel.width,
        )
        return cls(certificate, small, resolution, profile)
