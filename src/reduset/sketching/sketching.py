"""sketch: n rows in, m of them out, with weights.

1. `strata`: covering rows, and one row of each stratum of equal mass; right without weights, too.
2. `calibration`: weights near the masses of the strata, with which the columns' summaries equal those of all rows.
3. Assignments: each row to its nearest row of the sketch, O(n·m·d) at worst; the largest distance is the covering radius.
4. The error at every scale, from random Fourier features of one pass over the rows (`certificate.by_scale`):

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
from reduset.bandwidth.rules import SCALES, warn_of_units
from reduset.certificate import Certificate
from reduset.certificate.by_scale import ErrorProfile
from reduset.compression import QUOTAS, SQUARE_ROOT, TOL, Atoms, Run, certify, is_left_open, labels_of, weigh_atoms
from reduset.compression import quotas as apportioned
from reduset.kernels import Gaussian, RadialKernel
from reduset.kernels.base import exponential
from reduset.mean import KernelMean, with_bandwidth
from reduset.sketching.calibration import BOUND, EVERY, Calibration, calibrate_weights
from reduset.sketching.columns import compare_columns
from reduset.sketching.result import Sketch
from reduset.sketching.strata import StratifiedRows, checked_coverage, draw_rows
from reduset.sketching.summaries import Summary, summarise
from reduset.sketching.tables import DIVIDED, KeptRows, TableRows
from reduset.weights import OWN, with_nearest_atoms

UNITS = "scales='robust' divides columns by their interquartile ranges; scales=None uses them as they are, without this warning"


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
    """Choose rows that represent all rows, with weights; nearly as right without the weights.

    Parameters
    ----------
    data : (n, d) array, frame, `reduset.io.Table`, path, Dask collection or list of delayed partitions
        Weights of tables and files count. Files and Dask collections are read in passes; of their rows, one copy in single
        precision is held in memory.
    size : int
        Number of rows (all rows of non-zero weight, if there are fewer).
    kernel : Kernel, default a Gaussian whose bandwidth is found
        Sets the distance. The error is measured at its bandwidth, if it has one.
    scales : "auto", "robust", "standard", numbers or None
        Divide columns by these before distances are computed: interquartile ranges ("robust") or standard deviations. "auto" is
        "robust" for frames and tables, None for tables in one unit (transformed channels, pixels), and None for arrays, with a
        warning if one column dominates all distances. Only with ``kernel=None``.
    encode : "auto", None, or as in `reduset.io.read`
        How text, categories and dates of a frame become numbers. "auto": categories become columns of 0 and 1, ordered categories
        0, 1, …, dates days; text with more than 50 categories is not used. None uses numeric columns only.
    identifiers : "omit" or "keep"
        Whether columns of a frame that look like identifiers are used: whole numbers that rise or fall from row to row, or that
        have no gaps and no repetition.
    coverage : float, optional
        Proportion of the size for covering rows, the farthest-first rows of the data. A large one lowers the radius, and makes the
        weights necessary. By default at most 1 %, and no more than leave means and spreads right without weights; with ``scales``,
        also the rows with the minimum and the maximum of each column.
    calibrate : bool
        Adjust the weights, so that weighted means, standard deviations and deciles of columns equal those of all rows; False
        keeps the masses of the strata.
    sample_weight : (n,) array, optional; of files and Dask frames also a column
    groups : (n,) array of labels, optional
        Samples, batches or types: each has rows of its own, and its weights sum to its proportion exactly.
    quotas : "square root", "proportional" or "equal"
        How ``size`` is divided among groups. A group with fewer rows than its quota is kept whole, and others get more.
    tol : float
        The error that sets the resolution.
    confidence : float, of the intervals
    rng : None, seed or Generator; the same seed gives the same result
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
                found = _calibrated(rows, chosen, before, int(np.count_nonzero(full.weights)), calibrate)
                chosen = replace(chosen, weights=found.weights)
            with clock.stage("assign"):
                assignments, radius = _assigned(full, parts, chosen)
            with clock.stage("certify"):
                shown.stage("certifying")(0, 1)
                errors = _Errors.of(full, chosen, radius, tol if is_left_open(kernel) else None, confidence, rng, shown)
    finally:
        shown.close()
    kept = KeptRows.of(data, chosen.rows, rows, table.names)
    exceptions = tuple((kept.names[column], statistic) for column, statistic in found.exceptions)
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
        exact=found.exact,
        exceptions=exceptions,
        groups=None if chosen.group is None else parts.names[chosen.group],
        timings=clock.timings(),
        kept=kept,
        message="; ".join(filter(None, [parts.message, _omissions(found)])),
        notes=(*table.notes, *([DIVIDED] if by_default and table.has_units else [])),
        calibrated=calibrate,
    )


def _kernel(kernel: KernelLike, scales: Any, has_units: bool) -> KernelLike:
    """The kernel given, or a Gaussian with an open bandwidth and the scales of the columns."""
    if isinstance(scales, str) and _validate.one_of(scales, "scales", ("auto", *SCALES)) == "auto":
        return kernel if kernel is not None else Gaussian(scales="robust" if has_units else None)
    if kernel is not None:
        raise ValueError("scales goes with kernel=None, a kernel has its own; use Gaussian(scales=...), or leave out kernel")
    return Gaussian(scales=scales)


def _calibrated(rows: Array, chosen: _Chosen, before: Summary, available: int, calibrate: bool) -> Calibration:
    if len(rows) == available:  # all rows with their own weights
        return Calibration(chosen.weights, EVERY, ())
    return calibrate_weights(rows, chosen.weights, before, chosen.group) if calibrate else Calibration(chosen.weights, (), ())


def _omissions(found: Calibration) -> str:
    """Which summaries of the columns the weights do not reproduce; if there are none that they do, the result prints so."""
    if not found.omitted or not found.exact:
        return ""
    return f"{' and '.join(found.omitted)} are not exact: that takes more rows, or weights that change by more than {BOUND:g} times"


@dataclass(frozen=True)
class _Parts:
    """The rows of each group, and how many of them to choose; one group of all rows where none were given."""

    names: NDArray[Any]
    rows: list[Indices | None]
    sizes: list[int]
    message: str = ""


@dataclass(frozen=True)
class _Chosen:
    """Rows, ascending, with weights, which of them cover, and the group of each (None for one group)."""

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
    """The rows of every group, by its quota, under the numbers of all rows."""
    report = shown.stage("selecting" if len(parts.rows) == 1 else "groups")
    found: list[StratifiedRows] = []
    for k, (rows, size, stream) in enumerate(zip(parts.rows, parts.sizes, rng.spawn(len(parts.rows)), strict=True)):
        part = _part_of(full, rows)
        summary = before if rows is None else _summary(part)
        inner: Report | None = report if len(parts.rows) == 1 else None
        if inner is None:
            report(k, len(parts.rows))
        drawn = draw_rows(part, summary, size, coverage, stream, inner)
        found.append(drawn if rows is None else replace(drawn, rows=rows[drawn.rows]))
    rows, weights, covering = (np.concatenate([getattr(each, name) for each in found]) for name in ("rows", "weights", "covering"))
    order = np.argsort(rows)
    group = np.repeat(np.arange(len(found)), [len(each.rows) for each in found])[order] if len(parts.names) else None
    return _Chosen(rows[order], weights[order], covering[order], group)


def _assigned(full: KernelMean, parts: _Parts, chosen: _Chosen) -> tuple[Indices, float | None]:
    """(n,) the nearest row of the sketch, of the same group, for each row of non-zero weight; and how far any is from it."""
    found, farthest = np.full(full.size, -1), 0.0
    for k, rows in enumerate(parts.rows):
        mine = np.arange(len(chosen.rows)) if chosen.group is None else np.flatnonzero(chosen.group == k)
        part = _part_of(full, rows)
        index, distance = np.empty(part.size, np.int64), np.zeros(part.size)

        def note(_: int, which: Any, nearest: Any, __: Array, apart: Array, index: Indices = index, far: Array = distance) -> None:
            index[which], far[which] = nearest, apart

        with_nearest_atoms(
            part, np.asarray(to_numpy(rows_of(full.atoms, chosen.rows[mine])), np.float64), None, note, products=False
        )
        weighty = part.weights != 0
        found[np.arange(full.size) if rows is None else rows] = np.where(weighty, mine[index], -1)
        farthest = max(farthest, float(distance[weighty].max()))
    found[chosen.rows] = np.arange(len(chosen.rows))  # of equal rows, each to itself
    return found, full.kernel.length(farthest, full.dimension)


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
        """At the smallest bandwidth within ``tol``; at that of the kernel if there is none, or if no tolerance is given."""
        target, size = Run(rng, confidence, shown).target(full), len(chosen.rows)
        scales = target.scales(size)
        atoms = np.asarray(to_numpy(rows_of(full.atoms, chosen.rows)), np.float64)
        small = KernelMean(atoms, chosen.weights, full.kernel)
        if scales is None:  # a kernel without a scale, whose error takes inner products with all rows
            weighed = weigh_atoms(target, Atoms(atoms, chosen.rows))
            _, certificate = certify(target, weighed, OWN, chosen.weights).state(size)
            return cls(replace(certificate, radius=radius), small, None, None)
        profile = scales.profile(small, scales.bandwidths, confidence, size)
        found = None if tol is None else profile.finest(tol)
        if found is not None:
            small = with_bandwidth(small, found)
        kernel = cast(RadialKernel, small.kernel)
        there = scales.profile(small, np.array([kernel.width]), confidence, size)
        error, (low, high) = float(there.relative_errors[0]), there.intervals[0].tolist()
        if found is not None:  # of all scales at once, by which it was found
            low, high = profile.intervals[profile.bandwidths == found][0].tolist()
        energy = exponential(kernel.log_energy(full.dimension))
        method = "exact" if scales.certain else "frequencies"
        certificate = Certificate(
            *(error, (low, high), confidence, method, float("nan"), energy, None, None, None, None),
            radius=radius,
            bandwidth=kernel.width,
        )
        return cls(certificate, small, found, profile)
