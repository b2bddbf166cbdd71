"""The model: a compressed mean and all that is known of it, in one file that needs no data to be looked at, used or reported on.

It holds the atoms or components and weights, the names of the columns, the certificate, the error of every size and at every scale,
the weights of some smaller sizes, a portrait of the full mean, and in words where all this came from. `KernelMean.load` reads its
mean too, or `ComponentMean.load` where it is one of components: a file of another kind, so that no reader takes means for atoms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive, _validate
from reduset._archive import fields as f
from reduset._describe import Description, Row
from reduset._types import Array
from reduset.certificate import Certificate
from reduset.certificate.by_scale import ErrorProfile, MedianError, missing_mass
from reduset.certificate.certificate import METHODS, bandwidth_of
from reduset.compression import Compression, Path, Resolution, at_resolution, error_lines, head, noun
from reduset.mean import MEAN, KernelMean
from reduset.mixture import ComponentMean
from reduset.mixture.component_mean import COMPONENT_MEAN, SmallMean
from reduset.model.marginals import MarginalDensities
from reduset.model.profiles import CURVES, SizeProfiles

STEPS = 24
AMOUNT = f.optional(f.measured())
ABOUT = f.entries(  # what this library writes into ``about``; users may add entries with other names
    selection=f.text,
    weighting=f.text,
    remark=f.optional(f.text),
    reached=f.flag,
    timings=f.mapping(f.measured(signed=True)),
    command=f.text,
    versions=f.mapping(f.text),
    sources=f.listed(f.text),
    notes=f.listed(f.text),
    transform=f.optional(f.either(f.text, f.mapping(f.optional(f.text)))),
    encode=f.optional(f.mapping(f.either(f.text, f.entries()))),
    compensate=f.flag,
    portrait_rows=f.whole(1),
)
FIELDS: f.Fields = {
    "columns": f.names("d"),
    "n_samples": f.whole(1),
    "certificate": f.record(
        Certificate,
        relative_error=f.measured(),
        interval=f.listed(f.measured(), 2),
        confidence=f.proportion,
        method=f.one_of(METHODS),
        norm=f.measured(),
        energy=f.measured(),
        bound=AMOUNT,
        theorem_bound=AMOUNT,
        sup_bound=AMOUNT,
        incoherence=f.optional(f.measured(signed=True)),
        log_density_change=AMOUNT,
        negative_mass=f.proportion,
        radius=AMOUNT,
        bandwidth=AMOUNT,
    ),
    "total": f.optional(f.number(0, _validate.HEAVIEST)),
    "resolved": f.optional(
        f.record(
            Resolution,
            bandwidth=f.number(0, above=True),
            tol=f.number(0, above=True),
            median=f.number(0, above=True),
            random_rows=f.optional(f.number(0, above=True)),
            alone=f.flag,
            by_noise=f.flag,
        )
    ),
    "near_median": f.optional(
        f.record(MedianError, relative_error=f.number(0), bandwidth=f.number(0, above=True), distance=f.number(0, above=True))
    ),
    "about": ABOUT,
    "path_sizes": f.Numbers(("sizes",), low=0, integers=True),
    "path_errors": f.Numbers(("sizes",), low=0, high=np.inf, unbounded=True),
    "step_sizes": f.Numbers(("steps",), low=1, high=f.MAX_EXACT, integers=True),
    "step_weights": f.Numbers(("steps", "m")),
    "grids": f.Numbers(("pictured", "places")),
    "widths": f.Numbers(("pictured",)),
    "marginals": f.Numbers(("pictured", "places")),
    "pair_grids": f.Numbers(("paired", "pair_places")),
    "pair_widths": f.Numbers(("paired",)),
    "pairs": f.Numbers(("pairs?", 2), low=0, high=f.MAX_EXACT, integers=True),
    "joint": f.Numbers(("pairs?", "pair_places", "pair_places")),
    "bars": f.Numbers(("barred?", 3, "bars?")),
    "scales": f.Numbers(("scales?",), low=0, above=True),
    "profile_sizes": f.Numbers(("profiles?",), low=1, high=f.MAX_EXACT, integers=True),
    "profile_errors": f.Numbers(("profiles?", CURVES, "scales?"), low=0, high=np.inf, unbounded=True),
}
MODEL = _archive.Kind("reduset.Model", "model", MEAN.fields | FIELDS, holds=(MEAN,))
COMPONENT_MODEL = _archive.Kind(
    "reduset.Model.components", "model", COMPONENT_MEAN.fields | FIELDS, holds=(COMPONENT_MEAN, *COMPONENT_MEAN.holds)
)


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
        kind = COMPONENT_MODEL if isinstance(self.mean, ComponentMean) else MODEL
        values = {
            **{name: getattr(self.mean, name) for name in kind.holds[0].fields},
            **vars(self),
            **vars(self.portrait),
            **self.profiles.arrays(),
            "path_sizes": self.path.sizes,
            "path_errors": self.path.relative_errors,
        }
        _archive.write(path, kind, values)

    @classmethod
    def load(cls, path: _archive.Path_) -> Model:
        """Read what `save` wrote; a damaged, edited, newer or foreign file is a ValueError."""
        return _archive.read(
            path,
            {
                MODEL: lambda values: cls._from_values(values, KernelMean(**{name: values[name] for name in MEAN.fields})),
                COMPONENT_MODEL: lambda values: cls._from_values(
                    values, ComponentMean.from_values({name: values[name] for name in COMPONENT_MEAN.fields})
                ),
            },
        )

    @classmethod
    def _from_values(cls, values: dict[str, Any], mean: SmallMean) -> Model:
        """The model in a file, whose parts must agree with each other: a digest does not show that they do."""
        certificate, width = values["certificate"], bandwidth_of(mean.kernel)
        if certificate.bandwidth not in (None, width):
            raise ValueError(f"certificate.bandwidth must be that of the kernel, {width}, got {certificate.bandwidth!r}")
        portrait = MarginalDensities(**{name: values[name] for name in MarginalDensities.__dataclass_fields__})
        columns, paired = len(portrait.grids), len(portrait.pair_grids)
        if (
            max(columns, paired) > mean.dimension
            or portrait.pairs.max(initial=0) >= paired
            or len(portrait.bars) not in (0, columns)
        ):
            raise ValueError("grids, pair_grids, pairs and bars must describe columns of the model")
        if values["step_sizes"].max() > mean.size:
            raise ValueError(f"step_sizes must be at most {mean.size:,}, the size of the model, got {values['step_sizes'].max():,}")
        return cls(
            mean,
            path=Path(values["path_sizes"], values["path_errors"]),
            portrait=portrait,
            profiles=SizeProfiles.from_arrays(values, certificate.confidence, mean.size),
            certificate=replace(certificate, bandwidth=width, interval=tuple(certificate.interval)),
            **{name: values[name] for name in cls.__dataclass_fields__ if name in values and name != "certificate"},
        )

    def describe(self) -> Description:
        """The model as rows of (label, value, explanation): as text, as plain values, or as a table."""
        resolved, certificate = self.resolved, self.certificate
        about = self.about
        made = f"{about['selection']}, weights {about.get('weighting', 'unknown')}" if "selection" in about else ""
        names = ", ".join(self.columns[:12]) + (" …" if len(self.columns) > 12 else "")
        facts = {"n": self.n_samples, "size": self.size, "pieces": f"{self.piece}s", "kernel": self.mean.kernel.to_dict()}
        return Description(
            f"Model: {head(self.size, self.n_samples, len(self.columns), self.piece)}",
            (
                Row("columns", names, "The columns that were used.", facts | {"columns": self.columns}),
                Row(
                    "error",
                    error_lines(certificate, self.mean.kernel, resolved, self.near_median),
                    "‖f − f_m‖ / ‖f‖, the distance of the two functions relative to the norm of the full one.",
                    {"certificate": asdict(certificate), "near_median": self.near_median and asdict(self.near_median)},
                ),
                Row(
                    "resolution",
                    "" if resolved is None else at_resolution(resolved, self.size),
                    "The smallest bandwidth at which the error is within the tolerance, there and at all larger bandwidths.",
                    {"resolution": resolved and asdict(resolved)},
                ),
                Row(f"{self.piece}s", made, "The selector and the kind of weights.", {"about": about}),
            ),
        )

    def __str__(self) -> str:
        return str(self.describe())
