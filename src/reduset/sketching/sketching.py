"""sketch: n rows in, m of them out, which cover all, with the weight of the rows that each stands for.

The rows are those of `Stratified`: each row belongs to a cell, each cell to one row of its own, and its weight is that of the cell.
Such weights know no kernel, so their error at every scale comes from waves of one pass over the rows (`certificate.by_scale`), and
no inner product of any row with an atom is needed:

    e(h) = ‖f − f_m‖ / ‖f‖,     resolution = the finest h at which e ≤ tol, there and at every coarser one.

O(n·m·d) at worst: once for farthest-first rows, once for the cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._progress import Progress
from reduset._types import Array, Indices, KernelLike, PointsLike, ProgressLike, Report, SeedLike, WeightsLike
from reduset.bandwidth.rules import warn_of_units
from reduset.certificate import Certificate
from reduset.certificate.by_scale import ErrorProfile
from reduset.compression.builder import Builder
from reduset.compression.clock import Clock
from reduset.compression.grouped import QUOTAS, SQUARE_ROOT, labels_of
from reduset.compression.grouped import quotas as shared_out
from reduset.compression.request import is_left_open
from reduset.compression.resolution import TOL, with_bandwidth
from reduset.kernels import Gaussian, RadialKernel
from reduset.kernels.base import exponential
from reduset.mean import KernelMean
from reduset.select.stratified import Stratified
from reduset.sketching.result import Sketch
from reduset.weights.kinds import OWN


def sketch(
    data: PointsLike,
    size: int,
    *,
    kernel: KernelLike = None,
    coverage: float | None = None,
    sample_weight: WeightsLike = None,
    groups: Any = None,
    quotas: str = SQUARE_ROOT,
    tol: float = TOL,
    confidence: float = 0.95,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Sketch:
    """Choose rows that stand for all others: rare ones are among them, and their weights are right for shares.

    Parameters
    ----------
    data : (n, d) array or frame
    size : int
        That many rows (fewer where fewer are distinct).
    kernel : Kernel, default a Gaussian whose bandwidth is open
        Its distance says what is near: `Gaussian(scales="robust")` for columns in different units; a warning says where that looks
        to be the case and no kernel is given. A bandwidth that is given is the one at which the error is told.
    coverage : the share of the rows that cover
        None for as many as it takes for a radius of at most 1.25 times that of farthest-first rows alone.
    sample_weight : (n,) array, optional
    groups : (n,) array of labels, optional
        Samples, batches or types: each gets rows of its own, whose weights add up to exactly its share.
    quotas : "square root", "proportional" or "equal"
        How ``size`` is shared out among groups; a group of fewer rows than its quota is kept whole, and others get more.
    tol : float
        The error of the resolution, the finest detail that is kept so well.
    confidence : float, of the intervals
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import sketch
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(50_000, 3)), rng.normal(size=(50, 3)) + 9])  # one row in a thousand is rare
    >>> small = sketch(X, 500, rng=0)
    >>> rare = small.indices >= 50_000
    >>> bool(rare.any()), round(float(small.weights[rare].sum()), 6) == round(50 / 50_050, 6)
    (True, True)
    >>> small.owners.shape
    (50050,)
    """
    full = KernelMean.from_samples(data, Gaussian() if kernel is None else kernel, sample_weight)
    size = _validate.whole(size, "size", 1, full.size, "it is a number of the data's rows")
    tol = _validate.positive(tol, "tol", "it is a share, 0.01 for one percent")
    confidence, selector = _validate.confidence(confidence), Stratified(coverage)
    _validate.one_of(quotas, "quotas", QUOTAS)
    rng = _validate.generator(rng)
    if kernel is None:
        warn_of_units(full.atoms, data, "rows that are rare by it may be lost")
    clock, shown = Clock(), Progress(progress)
    try:
        with single_threaded_blas():
            with clock.stage("select"):
                report = shown.stage("selecting")
                if groups is None:
                    cells = _Cells.of(full, selector, size, rng, report)
                else:
                    cells = _by_groups(full, selector, size, groups, quotas, rng, shown)
            with clock.stage("certify"):
                shown.stage("certifying")(0, 1)
                look = _Look.at(full, cells, tol if is_left_open(kernel) else None, confidence, rng, shown)
    finally:
        shown.close()
    return Sketch(
        indices=cells.rows,
        weights=cells.weights,
        owners=cells.owners,
        certificate=look.certificate,
        mean=look.mean,
        resolution=look.resolution,
        tol=tol,
        profile=look.profile,
        groups=cells.labels,
        timings=clock.timings(),
        remark=cells.remark,
    )


@dataclass(frozen=True)
class _Cells:
    """Rows, ascending, with the weights of their cells; the cell of every row; how far any row is from the nearest, at most."""

    rows: Indices
    weights: Array
    owners: Indices
    radius: float | None
    remark: str
    labels: NDArray[Any] | None = None

    @classmethod
    def of(cls, mean: KernelMean, selector: Stratified, size: int, rng: np.random.Generator, report: Report) -> _Cells:
        traversal = selector.begin(mean, rng)
        traversal.extend(size, report)
        found, weights, owners = traversal.indices, traversal.weights(), traversal.owners()
        if found is None or weights is None or owners is None:
            raise RuntimeError(f"{selector} chooses rows, each of which stands for some")
        return cls.ascending(found, weights, owners, traversal.radius(), traversal.remark())

    @classmethod
    def ascending(
        cls, rows: Indices, weights: Array, owners: Indices, radius: float | None, remark: str, labels: Any = None
    ) -> _Cells:
        """The same with the rows in the order of the data."""
        order = np.argsort(rows)
        place = np.empty(len(order) + 1, np.int64)
        place[order], place[-1] = np.arange(len(order)), -1  # rows of no weight, whose owner is −1, keep it
        return cls(rows[order], weights[order], place[owners], radius, remark, None if labels is None else labels[order])


def _by_groups(
    full: KernelMean, selector: Stratified, size: int, groups: Any, rule: str, rng: np.random.Generator, shown: Progress
) -> _Cells:
    """Each group apart, by its quota, under the numbers of all rows."""
    names, of = labels_of(groups, full.size)
    counts = np.bincount(of, full.weights != 0, len(names)).astype(np.int64)
    if (counts == 0).any():
        empty = ", ".join(map(str, names[counts == 0][:5]))
        raise ValueError(f"groups must have rows of some weight, {empty} {'has' if (counts == 0).sum() == 1 else 'have'} none")
    masses = np.bincount(of, full.magnitudes, len(names)).astype(np.float64)
    given = shared_out(size, masses, counts, rule)
    report = shown.stage("groups")
    rows, weights, label, radii = [], [], [], []
    owners, begun = np.full(full.size, -1), 0
    for k, stream in enumerate(rng.spawn(len(names))):
        report(k, len(names))
        own = np.flatnonzero(of == k)
        part = KernelMean(full.atoms[own], full.weights[own], full.kernel)
        cells = _Cells.of(part, selector, int(given[k]), stream, lambda *_: None)
        rows.append(own[cells.rows])
        weights.append(cells.weights)
        label.append(np.full(len(cells.rows), k))
        radii.append(cells.radius)
        owners[own] = np.where(cells.owners >= 0, cells.owners + begun, -1)
        begun += len(cells.rows)
    whole = [str(name) for name in names[given == counts]]
    remark = f"kept whole, since their quota is all they have: {', '.join(whole)}" if whole else ""
    radius = None if any(each is None for each in radii) else max(each for each in radii if each is not None)
    labels = names[np.concatenate(label)]
    return _Cells.ascending(np.concatenate(rows), np.concatenate(weights), owners, radius, remark, labels)


@dataclass(frozen=True)
class _Look:
    """What was lost, and through which kernel that is told."""

    certificate: Certificate
    mean: KernelMean
    resolution: float | None
    profile: ErrorProfile | None

    @classmethod
    def at(
        cls, full: KernelMean, cells: _Cells, tol: float | None, confidence: float, rng: np.random.Generator, shown: Progress
    ) -> _Look:
        """At the finest bandwidth within ``tol``; at that of the kernel where none is, or where no tolerance is given."""
        builder = Builder(full, rng, confidence, shown)
        scales, size = builder.scales(len(cells.rows)), len(cells.rows)
        small = KernelMean(np.asarray(full.atoms[cells.rows], np.float64), cells.weights, full.kernel)
        radius = None if cells.radius is None else full.kernel.length(cells.radius, full.dimension)
        if scales is None:  # no bandwidth but the kernel's own, which takes inner products with all rows
            builder.place(np.asarray(small.atoms, np.float64), cells.rows, ordered=True)
            _, certificate = builder.prefixes(OWN, cells.weights).state(size)
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
            error, (low, high), confidence, method, float("nan"), energy, None, None, None, None, radius=radius
        )
        return cls(certificate, small, found, profile)
