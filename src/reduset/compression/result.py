"""The result of a compression: a small kernel mean and what it lost, put together in one place whoever knows the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from reduset import _validate
from reduset._progress import Progress
from reduset._types import Indices
from reduset.certificate import Certificate
from reduset.certificate.bounds import Bounds
from reduset.certificate.certificate import log_density_change
from reduset.compression.builder import Builder
from reduset.compression.clock import Clock
from reduset.compression.prefixes import Path, Prefixes
from reduset.kernels.base import exponential
from reduset.kernels.registry import as_kernel
from reduset.mean import KernelMean
from reduset.weights import KINDS
from reduset.weights.kinds import OWN


@dataclass(frozen=True)
class Compression:
    """A small kernel mean and what it lost.

    Attributes
    ----------
    mean : KernelMean of m atoms
    indices : (m,) rows of the data, or None where atoms are new points
    certificate : Certificate
    n_samples : how many atoms the original had
    dropped : rows that were selected and left out as redundant
    reached : whether the ``tol`` or ``plateau`` asked for was reached
    timings : seconds by stage
    remark : what the selector chose and why, and whether the atoms were moved, where there is something to say
    """

    mean: KernelMean
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

    @property
    def size(self) -> int:
        """The number of atoms."""
        return self.mean.size

    @property
    def residual_bound(self) -> float:
        """The upper end of the interval of ‖f − Pf‖, P the projection onto the atoms' span: what weights of any sign may lose."""
        prefixes, kernel = self._prefixes, self.mean.kernel
        square = prefixes.residual.plus(prefixes.span.energy_after(self.size)).high
        return float(np.sqrt(square)) * exponential(kernel.log_energy(self.mean.dimension) / 2)

    @cached_property
    def path(self) -> Path:
        """The error of every prefix (of some, where weights must be found anew for each: "simplex", or very many atoms)."""
        return self._prefixes.path(self.size)

    def at(self, size: int) -> Compression:
        """The nested compression of the first ``size`` atoms: no new selection, no pass over the data."""
        size = _validate.whole(size, "size", 1, self.size, "compress again for more atoms")
        if size == self.size:
            return self
        clock = Clock()
        mean, certificate = self._prefixes.state(size)
        rows = None if self.indices is None else self.indices[:size]
        return replace(self, mean=mean, indices=rows, certificate=certificate, timings=clock.timings())

    def reweigh(self, full: KernelMean, kernel: Any = None, weights: str | None = None, rng: Any = None) -> Compression:
        """The same atoms for another kernel (or other weights): one pass over ``full``, no new selection.

        Parameters
        ----------
        full : KernelMean that was compressed; a result keeps no data of its own
        kernel : Kernel, default the one of ``full``
        weights : str, default those of this result
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
        if self.indices is not None and not np.array_equal(full.atoms[self.indices], self.mean.atoms):
            raise ValueError("full must be the mean that was compressed: its rows at .indices are not the atoms of this result")
        if kernel is not None:
            full = KernelMean(full.atoms, full.weights, as_kernel(kernel))
        kind = self.weighting if weights is None else weights
        if weights is None and kind == OWN:
            raise ValueError("weights='own' are the selector's, for the kernel it saw; say which weights to give the atoms now")
        kind = _validate.one_of(kind, "weights", KINDS)
        rng = _validate.generator(rng)
        builder = Builder(full, rng, self._prefixes.confidence, Progress())
        builder.place(np.asarray(self.mean.atoms, np.float64), self.indices, ordered=True)
        return assemble_built(builder, builder.prefixes(kind), builder.size, self.selection, True, rng)

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {seconds:.3g}" for name, seconds in self.timings.items() if name != "total")
        lines = [
            f"Compression of {self.n_samples:,} points to {self.size:,} atoms in {self.mean.dimension}-D, {self.mean.kernel!r}",
            *str(self.certificate).splitlines(),
            f"atoms      {self.selection}, weights {self.weighting}"
            + (f", {len(self.dropped)} redundant dropped" if len(self.dropped) else ""),
        ]
        if self.remark:
            lines.extend(f"           {line}" for line in self.remark.split("; "))
        if not self.reached:
            lines.append("NOT REACHED within the largest size allowed: see max_size")
        lines.append(f"time       {self.timings['total']:.3g} s" + (f" ({parts})" if parts else ""))
        return "\n  ".join(lines)


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
    density_change: Callable[[KernelMean], float | None] = lambda _: None,
    reached: bool = True,
    remark: str = "",
) -> Compression:
    """The result for the first ``size`` atoms, from what is known of the rows: in memory, from a stream, on Dask or in a cohort.

    Parameters
    ----------
    prefixes : the span of the atoms, the residual, and the mass of f
    n_samples : how many rows there were
    bounds : those of ``size`` atoms; None: from the covering radii, where these are known
    density_change : what the logarithm of a density changed by, of the small mean
    """
    with clock.stage("weigh"):
        mean, certificate = prefixes.state(size, bounds)
    with clock.stage("certify"):
        certificate = replace(certificate, log_density_change=density_change(mean))
    return Compression(
        mean=mean,
        indices=None if indices is None else indices[:size],
        certificate=certificate,
        n_samples=n_samples,
        selection=selection,
        weighting=prefixes.kind,
        dropped=np.empty(0, np.int64) if dropped is None else dropped,
        reached=reached,
        timings=clock.timings(),
        remark=remark,
        _prefixes=prefixes,
    )


def assemble_built(
    builder: Builder, prefixes: Prefixes, size: int, selection: str, reached: bool, rng: np.random.Generator
) -> Compression:
    """The result for the first ``size`` atoms of a builder, whose rows are at hand."""
    rows, dropped = (builder.atoms.rows, None) if prefixes.kind == OWN else builder.rows()
    return assemble(
        prefixes,
        size,
        builder.full.size,
        selection,
        builder.clock,
        bounds=builder.bounds(prefixes, size),
        indices=rows,
        dropped=dropped,
        density_change=lambda small: log_density_change(builder.full, small, rng),
        reached=reached,
        remark=builder.remark,
    )
