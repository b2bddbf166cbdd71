"""The model: a compressed mean and all that is known of it, in one file that needs no data to be looked at, used or reported on.

It holds the atoms or components and weights, the names of the columns, the certificate, the error of every size and at every scale,
the weights of some smaller sizes, a portrait of the full mean, and in words where all this came from. `KernelMean.load` reads its
mean too, or `ComponentMean.load` where it is one of components: a file of another kind, so that no reader takes means for atoms.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset._messages import printable
from reduset._types import Array
from reduset.certificate import Certificate
from reduset.certificate.by_scale import ErrorProfile, MedianError, missing_mass
from reduset.compression import Compression, Path
from reduset.compression.certifying import Resolution
from reduset.compression.summary import error_lines, head, noun, resolution
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean
from reduset.mixture.component_mean import SmallMean
from reduset.model.header import (
    certificate_from,
    check_arrays,
    checked_about,
    columns_from,
    count_from,
    median_error_from,
    resolution_from,
    total_from,
)
from reduset.model.marginals import MarginalDensities
from reduset.model.profiles import SizeProfiles

STEPS = 24


def column_names(names: Sequence[str] | None, dimension: int, parameter: str = "columns") -> tuple[str, ...]:
    """A name for each column: those given, or "x1", "x2", …"""
    told = tuple(f"x{k + 1}" for k in range(dimension)) if names is None else tuple(map(str, names))
    if len(told) != dimension:
        raise ValueError(f"{parameter} must name the {dimension} columns, got {len(told)} names")
    return told


@dataclass(frozen=True)
class Model:
    """A compressed mean and what is known of it.

    Attributes
    ----------
    mean : KernelMean of m atoms, or ComponentMean of m components
    columns : names of the d columns
    n_samples : how many points the full mean had
    certificate : Certificate
    path : the error of every size
    step_sizes, step_weights : (k,) some sizes up to m, and (k, m) the weights of the first atoms there, 0 beyond
    portrait : of the full mean; of a sample of its points where it was a stream
    total : Σ w of the full mean; None where some weight was negative
    about : what else was told: the selection, the command, the files
    profiles : the error at every scale, of some sizes; of none where it is not known
    resolved : what the search for the resolution found, where there was one
    near_median : the error at the median distance of the rows, or at the nearest bandwidth at which it is measured; None if unknown
    """

    mean: SmallMean
    columns: tuple[str, ...]
    n_samples: int
    certificate: Certificate
    path: Path
    step_sizes: NDArray[np.int64]
    step_weights: Array
    portrait: MarginalDensities
    total: float | None
    about: dict[str, Any] = field(default_factory=dict)
    profiles: SizeProfiles = field(default_factory=SizeProfiles.unknown)
    resolved: Resolution | None = None
    near_median: MedianError | None = None

    @classmethod
    def of(
        cls, full: KernelMean, small: Compression, columns: Sequence[str] | None = None, about: Mapping[str, Any] | None = None
    ) -> Model:
        """What there is to know of a compression of ``full``; two passes over the points, for the portrait.

        Parameters
        ----------
        full : KernelMean that was compressed
        small : Compression
        columns : names; "x1", "x2", … if not given
        about : plain values to keep beside it
        """
        if full.size != small.n_samples or full.dimension != small.mean.dimension:
            raise ValueError(
                f"full must be the mean that was compressed, of {small.n_samples:,} points in {small.mean.dimension} columns; got "
                f"{full.size:,} in {full.dimension}"
            )
        return cls._made(full, small, columns, about)

    @classmethod
    def of_stream(
        cls, sample: KernelMean, small: Compression, columns: Sequence[str] | None = None, about: Mapping[str, Any] | None = None
    ) -> Model:
        """What there is to know of a compression of a stream, whose rows are gone: its portrait is that of a fair sample of them.

        Parameters
        ----------
        sample : KernelMean of some rows, drawn fairly from all, as `StreamCompressor.sample` gives it
        small, columns, about : as in `of`; how many rows the sample has is kept as ``about["portrait_rows"]``
        """
        if sample.size > small.n_samples or sample.dimension != small.mean.dimension:
            raise ValueError(
                f"sample must be some of the {small.n_samples:,} points in {small.mean.dimension} columns that were compressed; "
                f"got {sample.size:,} in {sample.dimension}"
            )
        return cls._made(sample, small, columns, dict(about or {}) | {"portrait_rows": sample.size})

    @classmethod
    def _made(cls, full: KernelMean, small: Compression, columns: Sequence[str] | None, about: Mapping[str, Any] | None) -> Model:
        names = column_names(columns, full.dimension)
        small = small.with_all_selected()  # a smaller size may need what the largest leaves out
        sizes = np.unique(np.geomspace(1, small.size, STEPS).round().astype(np.int64))
        weights = np.zeros((len(sizes), small.size))
        for row, size in zip(weights, sizes, strict=True):
            row[:size] = small.at(int(size)).mean.weights
        told = {
            "selection": small.selection,
            "weighting": small.weighting,
            "remark": small.remark,
            "reached": small.reached,
            "timings": dict(small.timings),
        }
        total = float(full.weights.sum()) if full.weights.min() >= 0 else None
        portrait = MarginalDensities.of(full)
        return cls(
            small.mean,
            names,
            small.n_samples,
            small.certificate,
            small.path,
            sizes,
            weights,
            portrait,
            total,
            told | dict(about or {}),
            SizeProfiles.of(small, sizes),
            small.resolved,
            small.near_median,
        )

    @property
    def size(self) -> int:
        """The number of atoms or components."""
        return self.mean.size

    @property
    def piece(self) -> str:
        """What the mean is made of, in a word: "atom" or "component"."""
        return noun(self.mean)

    @property
    def resolution(self) -> float | None:
        """The finest bandwidth within the tolerance, here and at every coarser scale, where it was searched for."""
        return None if self.resolved is None else self.resolved.bandwidth

    def profile(self, step: int = -1) -> ErrorProfile:
        """The error at every scale of ``step_sizes[step]`` atoms, or of the nearest of ``profiles.sizes``, of which it is known."""
        if not len(self.profiles.sizes):
            raise ValueError(
                "this model knows the error at its own scale only: its kernel has no bandwidth to change, its bandwidth is too "
                "small, compared with the data, for random Fourier features, or its file has no profiles; see "
                "certificate.relative_error"
            )
        nearest = self.profiles.nearest(int(self.step_sizes[step]))
        profile, size = self.profiles.profiles[nearest], int(self.profiles.sizes[nearest])
        if self.total is None or size not in self.step_sizes:
            return profile
        weights = self.step_weights[int(np.flatnonzero(self.step_sizes == size)[0])]
        return replace(profile, limit=missing_mass(self.total, float(weights.sum())))

    def at(self, step: int) -> SmallMean:
        """The nested mean of ``step_sizes[step]`` atoms or components."""
        first = slice(int(self.step_sizes[step]))
        weights = self.step_weights[step, first]
        if isinstance(self.mean, ComponentMean):
            return replace(self.mean.part(first), weights=weights)
        return KernelMean(self.mean.atoms[first], weights, self.mean.kernel)

    def error_at(self, step: int) -> float:
        """The relative error of that many atoms; of the nearest size that is known, where not every one is."""
        return float(self.path.relative_errors[np.abs(self.path.sizes - self.step_sizes[step]).argmin()])

    def subsample_errors(self, sizes: NDArray[np.int64]) -> Array | None:
        """What so many rows drawn at random would lose, in the root of the mean square; None for signed weights.

        Rows drawn with probability w/Σw, each of weight Σw/m: E‖f − f_m‖² = ((Σw)² C − ‖f‖²)/m.
        """
        norm, energy = self.certificate.norm, self.certificate.energy
        if self.total is None or not (0 < norm < np.inf and 0 < energy < np.inf):
            return None
        with np.errstate(all="ignore"):
            excess = float(np.square(np.float64(self.total) / norm) * energy) - 1.0
        return np.asarray(np.sqrt(max(excess, 0.0) / np.asarray(sizes, np.float64))) if np.isfinite(excess) else None

    def save(self, path: _archive.Path_) -> None:
        """Write one .npz with a JSON header, atomically. Nothing in it is ever executed."""
        portrait = {name: np.asarray(value, np.float64) for name, value in vars(self.portrait).items()}
        kind = _archive.COMPONENT_MODEL if isinstance(self.mean, ComponentMean) else _archive.MODEL
        own = _archive.LAWS if isinstance(self.mean, ComponentMean) else ("atoms", "weights")
        arrays = {
            **{name: np.ascontiguousarray(getattr(self.mean, name), np.float64) for name in own},
            "path": np.stack([self.path.sizes.astype(np.float64), self.path.relative_errors]),
            "step_sizes": self.step_sizes.astype(np.float64),
            "step_weights": self.step_weights,
            **portrait,
            **self.profiles.arrays(),
        }
        header = {
            "kind": kind,
            "version": _archive.KINDS[kind].version,
            "kernel": self.mean.kernel.to_dict(),
            "columns": list(self.columns),
            "n_samples": int(self.n_samples),
            "certificate": asdict(self.certificate),
            "total": self.total,
            "resolved": None if self.resolved is None else asdict(self.resolved),
            "near_median": None if self.near_median is None else asdict(self.near_median),
            "about": checked_about(self.about),  # or it could not be read again
        }
        _archive.write(path, header, arrays)

    @classmethod
    def load(cls, path: _archive.Path_) -> Model:
        """Read what `save` wrote; a damaged, edited, newer or foreign file is a ValueError."""
        kinds = {name: _archive.KINDS[name] for name in (_archive.MODEL, _archive.COMPONENT_MODEL)}
        header, arrays = _archive.read(path, kinds)
        kept = ComponentMean if header["kind"] == _archive.COMPONENT_MODEL else KernelMean
        mean: SmallMean = kept.from_parts(path, header, arrays)
        try:
            check_arrays(arrays)
            drawn = {name: arrays[name] for name in MarginalDensities.__dataclass_fields__ if name in arrays}
            portrait = MarginalDensities(**drawn | {"pairs": drawn["pairs"].astype(np.int64).reshape(-1, 2)})
            sizes, errors = arrays["path"]
            certificate = certificate_from(header.get("certificate"), mean.kernel)
            model = cls(
                mean,
                columns_from(header.get("columns"), mean.dimension),
                count_from(header.get("n_samples")),
                certificate,
                Path(sizes.astype(np.int64), errors),
                arrays["step_sizes"].astype(np.int64),
                arrays["step_weights"],
                portrait,
                total_from(header.get("total")),
                checked_about(header.get("about")),
                SizeProfiles.from_arrays(arrays, certificate.confidence, mean.size),
                resolution_from(header.get("resolved")),
                median_error_from(header.get("near_median")),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{os.fspath(path)} describes no model: {error}") from error
        model._check(path)
        return model

    def _check(self, path: _archive.Path_) -> None:
        """Refuse parts that do not belong together: a digest says that they were written so, and not that they are sound."""
        m, d, steps = self.mean.size, self.mean.dimension, len(self.step_sizes)
        portrait = self.portrait
        columns, paired = len(portrait.grids), len(portrait.pair_grids)
        fits = (
            self.step_weights.shape == (steps, m)
            and steps > 0
            and ((self.step_sizes >= 1) & (self.step_sizes <= m)).all()
            and portrait.marginals.shape == portrait.grids.shape
            and portrait.widths.shape == (columns,)
            and columns <= d
            and paired <= d
            and portrait.pair_widths.shape == (paired,)
            and portrait.joint.shape == (len(portrait.pairs), *2 * portrait.pair_grids.shape[1:])
            and ((portrait.pairs >= 0) & (portrait.pairs < paired)).all()
            and portrait.bars.shape[:2] in ((columns, 3), (0, 3))
            and len(self.path.sizes) > 0
        )
        if not fits:
            raise ValueError(f"{os.fspath(path)} describes no model: its parts do not belong together")

    def __str__(self) -> str:
        lines = [
            f"Model: {head(self.size, self.n_samples, len(self.columns), self.piece)}",
            f"columns    {printable(', '.join(self.columns[:12]))}" + (" …" if len(self.columns) > 12 else ""),
            *(
                f"{'' if k else 'error':<11}{line}"
                for k, line in enumerate(error_lines(self.certificate, self.mean.kernel, self.resolved, self.near_median))
            ),
        ]
        if self.resolved is not None:
            lines.append(f"resolution {resolution(self.resolved, self.size)}")
        if "selection" in self.about:
            told = f"{self.about['selection']}, weights {self.about.get('weighting', 'unknown')}"
            lines.append(printable(f"{self.piece + 's':<11}{told}"))
        return "\n  ".join(lines)
