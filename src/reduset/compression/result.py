"""The result of a compression: a small kernel mean and its error, for rows in memory, streams, Dask collections and cohorts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._describe import Description, Row, counted, percent
from reduset._engine import cached_property
from reduset._progress import Clock
from reduset._types import Indices
from reduset._validate import seeded
from reduset.certificate import (
    Bounds,
    Certificate,
    ErrorProfile,
    MedianError,
    Scales,
    at_bandwidth,
    bounds_of,
    log_density_change,
)
from reduset.compression import summary
from reduset.compression.plan import Plan
from reduset.compression.prefixes import Path, Prefixes
from reduset.compression.stages import Atoms, Resolution, Run, SearchResult, certify, weigh_atoms
from reduset.kernels import RadialKernel, as_kernel, exponential
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean, ComponentPieces, SmallMean, as_density, mean_of, pieces_of
from reduset.weights import HINTS, WEIGHTINGS

MASS_ROUNDING = 1e-9
ABOVE = 1.005  # times the error of random rows: the warning needs errors that differ when printed


@dataclass(frozen=True)
class Selected:
    """All selected atoms. A result shows the atoms with a weight.

    Attributes
    ----------
    size : Number of selected atoms.
    rows : (size,) rows of the data, or None for new points
    groups : (size,) the group of each atom, or None
    all_shown : Whether atoms with weight 0 are shown too, as for atoms shared by several results.
    """

    size: int
    rows: Indices | None
    groups: NDArray[Any] | None = None
    all_shown: bool = False

    def first(self, size: int) -> Selected:
        """The first ``size`` atoms."""
        rows, groups = (None if values is None else values[:size] for values in (self.rows, self.groups))
        return Selected(size, rows, groups, self.all_shown)

    def shown_in(self, result: Compression) -> Compression:
        """The result of these atoms, without the atoms of weight 0."""
        mean, shown = result.mean, np.ones(self.size, np.bool_)
        if not self.all_shown and mean.weights.any():
            shown = mean.weights != 0
        if not shown.all():
            mean = mean_of(pieces_of(mean)[shown], mean.weights[shown], mean.kernel)
        rows, groups = (None if values is None else values[shown] for values in (self.rows, self.groups))
        return replace(result, mean=mean, indices=rows, groups=groups, _selected=self)


@dataclass(frozen=True)
class Compression:
    """A small kernel mean and its approximation error.

    Attributes
    ----------
    mean : KernelMean of m atoms, or ComponentMean of m components
    indices : (m,) rows of the data, or None for atoms that are new points
    certificate : Certificate
    n_samples : Number of atoms of the original mean.
    dropped : Rows that were selected and omitted as redundant.
    reached : Whether the ``tol`` or ``plateau`` was reached.
    timings : Seconds by stage.
    remark : Text on the choice of the selector, and on moved atoms.
    groups : (m,) the group of each atom, if groups were compressed separately
    resolved : Resolution, if it was searched for.
    plan : All decisions, with every default resolved. None for results of streams and shared atoms.
    notes : How the columns of a table were read and transformed.
    """

    mean: SmallMean
    indices: Indices | None
    certificate: Certificate
    n_samples: int
    selection: str
    weighting: str
    dropped: Indices
    reached: bool
    timings: dict[str, float]
    remark: str
    _prefixes: Prefixes = field(repr=False)
    _selected: Selected = field(repr=False)
    groups: NDArray[Any] | None = None
    _scales: Scales | None = field(default=None, repr=False)
    resolved: Resolution | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    plan: Plan | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """The number of atoms with a weight."""
        return self.mean.size

    @property
    def selected(self) -> int:
        """The number of selected atoms. With non-negative weights, the weights of some are 0."""
        return self._selected.size

    @property
    def residual_bound(self) -> float:
        """The upper end of the interval of ‖f − Pf‖, P the projection onto the span of the atoms: the error of free weights."""
        prefixes, kernel = self._prefixes, self.mean.kernel
        square = prefixes.residual.plus(prefixes.span.energy_after(self.selected)).high
        return float(np.sqrt(square)) * exponential(kernel.log_energy(self.mean.dimension) / 2)

    @property
    def resolution(self) -> float | None:
        """The finest bandwidth within the tolerance, there and at every coarser scale; None if it was not searched for."""
        return None if self.resolved is None else self.resolved.bandwidth

    @cached_property
    def path(self) -> Path:
        """The error of every prefix; of some prefixes for "simplex" weights or very many atoms, since each needs a solve."""
        return self._prefixes.path(self.selected)

    @property
    def has_profile(self) -> bool:
        """Whether `profile` can compute the error at other scales than the kernel's."""
        return self._scales is not None

    def profile(self, bandwidths: Any = None) -> ErrorProfile:
        """The error at every scale, coarser and finer than the kernel's, with intervals that hold at all scales at once.

        It is computed from stored summaries of the data, without another pass.

        Parameters
        ----------
        bandwidths : array of bandwidths
            By default two in each octave, from the spread of the data to at least six octaves below.
        """
        if self._scales is None:
            raise ValueError(
                "profile is not available for this result: its kernel has no bandwidth, or one too small for random Fourier "
                "features of these data; certificate.relative_error has the error at the scale of the kernel"
            )
        given = self._scales.bandwidths
        if bandwidths is not None:
            given = np.array([_validate.positive(value, "bandwidths") for value in np.ravel(bandwidths).tolist()])
        if not len(given):
            raise ValueError("bandwidths must be one number or more, got none; omit it for two in each octave")
        descending = np.sort(np.asarray(given, np.float64))[::-1]
        return self._scales.profile(self.mean, descending, self.certificate.confidence, self.size)

    @cached_property
    def near_median(self) -> MedianError | None:
        """The error at the median distance of the rows, or at the nearest measured bandwidth; None if unknown."""
        if self._scales is None or self._scales.median is None:
            return None
        median, own = self._scales.median, self.certificate.bandwidth
        if own is not None and np.isclose(own, median, rtol=1e-9, atol=0):
            return MedianError(self.certificate.relative_error, median, median)
        bandwidth = self._scales.nearest(median)
        return MedianError(float(self.profile(bandwidth).relative_errors[0]), bandwidth, median)

    def above_random_rows(self) -> str | None:
        """A text if the error is certified to be above the error of equally many random rows; otherwise None."""
        kernel, certificate, rows = self.mean.kernel, self.certificate, self._prefixes
        signed = rows.total > abs(rows.mass) * (1 + MASS_ROUNDING)  # rows of equal weight cannot represent a signed mean
        if self._scales is None or not isinstance(kernel, RadialKernel) or signed:
            return None
        without_replacement = np.sqrt(self.n_samples / max(self.n_samples - 1, 1))
        profile = self._scales.profile(self.mean, np.array([kernel.width]), certificate.confidence, self.mean.size)
        random = float(profile.random_rows[0]) * without_replacement
        if not 0 < ABOVE * random < certificate.interval[0]:
            return None
        return (
            f"the error of {percent(certificate.relative_error)}{at_bandwidth(certificate.bandwidth)} is above that of "
            f"{counted(self.size, 'random row')}, {percent(random)}"
        )

    def at(self, size: int) -> Compression:
        """The nested compression of the first ``size`` selected atoms, without a new selection or a pass over the data."""
        size = _validate.whole(size, "size", 1, self.selected, "compress again for more atoms")
        if size == self.selected:
            return self
        clock = Clock()
        mean, certificate = self._prefixes.state(size)
        fewer = replace(self, mean=mean, certificate=certificate, timings=clock.timings(), resolved=None)
        return self._selected.first(size).shown_in(fewer)

    def with_all_selected(self) -> Compression:
        """The result with the atoms of weight 0. Its atoms then include the atoms of every smaller size."""
        mean, _ = self._prefixes.state(self.selected)
        return replace(self._selected, all_shown=True).shown_in(replace(self, mean=mean))

    @seeded
    def reweigh(self, full: KernelMean, kernel: Any = None, weights: str | None = None, rng: Any = None) -> Compression:
        """The same atoms for another kernel or other weights: one pass over ``full``, without a new selection.

        Parameters
        ----------
        full : KernelMean
            The mean that was compressed. A result does not keep the data.
        kernel : Kernel, default the kernel of ``full``
        weights : str, default the kind of weights of this result
        """
        if not isinstance(full, KernelMean):
            raise TypeError(
                f"full must be the KernelMean that was compressed, got {type(full).__name__}; use KernelMean.from_samples(X)"
            )
        if full.size != self.n_samples or full.dimension != self.mean.dimension:
            raise ValueError(
                f"full must be the mean that was compressed, of {self.n_samples:,} atoms in {self.mean.dimension} dimensions; "
                f"got {full.size:,} in {full.dimension}"
            )
        points, rows = self._prefixes.atoms[: self.selected], self._selected.rows
        if rows is not None and not np.array_equal(full.atoms[rows], points):
            raise ValueError("full must be the mean that was compressed: its rows at .indices are not the atoms of this result")
        if kernel is not None:
            full = KernelMean(full.atoms, full.weights, as_kernel(kernel, full.dimension))
        if isinstance(self.mean, ComponentMean):
            full = as_density(full)
        kind = self.weighting if weights is None else weights
        if weights is None and kind not in WEIGHTINGS:
            raise ValueError(f"weights must be given, since {kind!r} weights hold for this result's kernel only; use 'simplex'")
        kind = _validate.one_of(kind, "weights", WEIGHTINGS, HINTS)
        rng = _validate.generator(rng)
        target = Run(rng, self._prefixes.confidence).target(full)
        weighed = weigh_atoms(target, Atoms(points, rows))
        prefixes = certify(target, weighed, kind)
        return result_of(SearchResult(target, weighed, prefixes, weighed.span.size, True, selection=self.selection), rng)

    def describe(self) -> Description:
        """The result as rows of (label, value, explanation), which give text, plain values or a table."""
        return summary.describe(self)

    def __str__(self) -> str:
        return str(self.describe())

    def details(self) -> str:
        """The bounds, the selection, the time of every stage, and the plan."""
        piece = summary.noun(self.mean)
        decisions = [f"{self.selection}, weights {self.weighting}"]
        decisions += [f"{len(self.dropped)} redundant dropped"] if len(self.dropped) else []
        decisions += [f"{self.selected - self.size:,} more omitted with weight 0"] if self.selected > self.size else []
        stages = ", ".join(f"{name} {seconds:.3g}" for name, seconds in self.timings.items() if name != "total")
        rows = [
            *self.certificate.describe().rows,
            Row(f"{piece}s", [", ".join(decisions), *(self.remark.split("; ") if self.remark else [])]),
            Row("NOT REACHED", "" if self.reached else "with the largest allowed size; raise max_size"),
            Row("time", f"{self.timings['total']:.3g} s" + (f" ({stages})" if stages else "")),
            Row("plan", [] if self.plan is None else list(self.plan.lines())),
        ]
        size = f"{counted(self.n_samples, 'point')} to {counted(self.size, piece)} in {self.mean.dimension}-D"
        return str(Description(f"Compression of {size}, {self.mean.kernel!r}", tuple(rows)))


def assemble(
    prefixes: Prefixes,
    size: int,
    n_samples: int,
    selection: str,
    clock: Clock,
    *,
    bounds: Bounds | None = None,
    indices: Indices | None = None,
    dropped: Indices | None = None,
    groups: NDArray[Any] | None = None,
    reached: bool = True,
    remark: str = "",
    all_shown: bool = False,
    scales: Scales | None = None,
    rows: KernelMean | None = None,
    rng: np.random.Generator | None = None,
) -> Compression:
    """The result for the first ``size`` atoms.

    Parameters
    ----------
    prefixes : Span of the atoms, residual, and mass of f.
    n_samples : Number of rows.
    bounds : Bounds for ``size`` atoms. None computes them from the covering radii, if these are known.
    all_shown : Whether atoms with weight 0 are kept, because other results have the same atoms.
    rows, rng : The mean of all rows and a generator, for the change of the logarithm of the density.
    """
    with clock.stage("weigh"):
        mean, certificate = prefixes.state(size, bounds)
    if rows is not None and rng is not None:
        with clock.stage("certify"):
            certificate = replace(certificate, log_density_change=log_density_change(rows, mean, rng))
    selected = Selected(size, None if indices is None else indices[:size], groups, all_shown)
    result = Compression(
        mean=mean,
        indices=None,
        certificate=certificate,
        n_samples=n_samples,
        selection=selection,
        weighting=prefixes.kind,
        dropped=np.empty(0, np.int64) if dropped is None else dropped,
        reached=reached,
        timings=clock.timings(),
        remark=remark,
        _prefixes=prefixes,
        _selected=selected,
        _scales=scales,
    )
    return selected.shown_in(result)


def result_of(search: SearchResult, rng: np.random.Generator, plan: Plan | None = None) -> Compression:
    """The result of a search over the rows of a mean."""
    target, weighed, prefixes, atoms = search.target, search.weighed, search.prefixes, search.weighed.atoms
    dropped = None if atoms.rows is None or prefixes.own is not None else atoms.rows[~weighed.span.kept]
    bounds = Bounds(None, None, None, None)  # unknown for components
    if not isinstance(prefixes.atoms, ComponentPieces):
        points, cover = prefixes.atoms[: search.size], None if atoms.traversal is None else atoms.traversal.cover
        carrying = prefixes.error(search.size).weights != 0
        with target.run.clock.stage("certify"):
            bounds = bounds_of(target.full, points, float(prefixes.magnitudes[: search.size].sum()), cover)
            if carrying.any() and not carrying.all():  # atoms with weight 0 are omitted, so they do not cover any rows
                bounds = replace(bounds, radius=bounds_of(target.full, points[carrying], 0.0, cover).radius)
    result = assemble(
        prefixes,
        search.size,
        target.full.size,
        search.selection,
        target.run.clock,
        bounds=bounds,
        indices=search.rows,
        dropped=dropped,
        groups=search.groups,
        rows=target.full,
        rng=rng,
        reached=search.reached,
        remark="; ".join(filter(None, (atoms.remark, atoms.moved))),
        scales=target.scales(weighed.span.size),
    )
    return replace(result, resolved=search.resolution, plan=plan, weighting=search.weighting or result.weighting)
