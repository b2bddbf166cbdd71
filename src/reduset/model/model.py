"""The model: a compression and its error in one file, which can be used and reported on without the data.

It stores the atoms or components with their weights, the names of the columns, and the certificate. It also stores the error of
every size and at every scale, the weights of some smaller sizes, the marginal densities of the full mean, and the origin.
`KernelMean.load` reads the mean of a model of atoms. `ComponentMean.load` reads the mean of a model of components, which is another
kind of file.

Computing the error at every scale takes a hundredth of the time of the atoms. It is therefore stored for every third size of the
report's slider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive, _validate
from reduset._describe import Description, Row
from reduset._types import Array
from reduset.certificate import METHODS, Certificate, ErrorProfile, MedianError, bandwidth_of, missing_mass
from reduset.compression import Compression, Path, Resolution, at_resolution, error_lines, head, noun
from reduset.mean import MEAN, KernelMean
from reduset.mixture import COMPONENT_MEAN, ComponentMean, SmallMean
from reduset.model.marginals import MarginalDensities

f = _archive.fields

STEPS, PROFILE_STEP = 24, 3  # number of sizes with weights; every third size has a profile
CURVES = 5  # arrays of a profile: errors, lower and upper ends of intervals, errors of random rows, sampling errors
AMOUNT = f.optional(f.measured())
ABOUT = f.entries(  # written by this library; users may add entries of other names
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
    """A name for each column, by default "x1", "x2", …"""
    titles = tuple(f"x{k + 1}" for k in range(dimension)) if names is None else tuple(map(str, names))
    if len(titles) != dimension:
        raise ValueError(f"{parameter} must name the {dimension} columns, got {len(titles)} names")
    return titles


@dataclass(frozen=True)
class SizeProfiles:
    """The error at every scale, for some of the sizes.

    Attributes
    ----------
    sizes : (p,) in increasing order up to the size of the result; empty without profiles
    profiles : one for each size, at the same bandwidths
    """

    sizes: NDArray[np.int64]
    profiles: tuple[ErrorProfile, ...]

    @classmethod
    def of(cls, small: Compression, sizes: NDArray[np.int64]) -> SizeProfiles:
        """The profiles of every third size of a compression, including the last; empty if the compression has no profile."""
        sizes = sizes[::-1][::PROFILE_STEP][::-1] if small.has_profile else np.empty(0, np.int64)
        return cls(sizes, tuple(small.at(int(size)).profile() for size in sizes))

    def nearest(self, size: int) -> int:
        """The position of the size with the ratio nearest to 1."""
        return int(np.abs(np.log(self.sizes / size)).argmin())

    def arrays(self) -> dict[str, Array]:
        """The arrays of a file."""
        curves = [np.stack([p.relative_errors, *p.intervals.T, p.random_rows, p.noise]) for p in self.profiles]
        return {
            "scales": self.profiles[0].bandwidths if self.profiles else np.empty(0),
            "profile_sizes": self.sizes.astype(np.float64),
            "profile_errors": np.stack(curves) if curves else np.empty((0, CURVES, 0)),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], confidence: float, largest: int) -> SizeProfiles:
        """From the arrays of a file, for a result with ``largest`` atoms and intervals of the given confidence."""
        scales, sizes, curves = arrays["scales"], arrays["profile_sizes"], arrays["profile_errors"]
        if (len(sizes) > 0) != (len(scales) > 0):
            raise ValueError(f"profiles must have sizes and scales, got {len(sizes)} sizes and {len(scales)} scales")
        if not (np.diff(scales) < 0).all():
            raise ValueError("scales must be positive numbers in decreasing order")
        if len(sizes) and not ((np.diff(sizes) > 0).all() and sizes[-1] == largest):
            raise ValueError(f"profile_sizes must go up to the {largest:,} atoms of the model")
        return cls(
            sizes,
            tuple(
                ErrorProfile(scales, errors, np.stack([low, high], axis=1), drawn, noise, confidence)
                for errors, low, high, drawn, noise in curves
            ),
        )


@dataclass(frozen=True)
class Model:
    """A compression, its error and its origin.

    Attributes
    ----------
    mean : KernelMean of m atoms, or ComponentMean of m components
    columns : names of the d columns
    n_samples : number of points of the full mean
    certificate : Certificate
    path : the error of every size
    step_sizes : (k,) some of the sizes up to m
    step_weights : (k, m) the weights of the first atoms for each of these sizes, and 0 for the other atoms
    portrait : marginal densities of the full mean; for a stream, of a sample of its points
    total : Σ w of the full mean; None for signed weights
    about : plain values: the selection, the command, the files
    profiles : the error at every scale, for some of the sizes
    resolved : the resolution, if it was searched for
    near_median : the error at the median distance of the rows, or at the nearest measured bandwidth; None if unknown
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
    profiles: SizeProfiles = field(default_factory=lambda: SizeProfiles(np.empty(0, np.int64), ()))
    resolved: Resolution | None = None
    near_median: MedianError | None = None

    @classmethod
    def of(
        cls, full: KernelMean, small: Compression, columns: Sequence[str] | None = None, about: Mapping[str, Any] | None = None
    ) -> Model:
        """The model of a compression of ``full``. The marginal densities take two passes over the points.

        Parameters
        ----------
        full : KernelMean that was compressed
        small : Compression
        columns : names, by default "x1", "x2", …
        about : plain values to store with the model
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
        """The model of a compression of a stream, with the marginal densities of a sample of its rows.

        Parameters
        ----------
        sample : KernelMean of random rows, from `StreamCompressor.sample`
        small, columns, about : as in `of`; ``about["portrait_rows"]`` is the number of rows of the sample
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
        small = small.with_all_selected()
        sizes = np.unique(np.geomspace(1, small.size, STEPS).round().astype(np.int64))
        weights = np.zeros((len(sizes), small.size))
        for row, size in zip(weights, sizes, strict=True):
            row[:size] = small.at(int(size)).mean.weights
        facts = {
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
            facts | dict(about or {}),
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
        """The name of a piece of the mean: "atom" or "component"."""
        return noun(self.mean)

    @property
    def resolution(self) -> float | None:
        """The smallest bandwidth at which the error is within the tolerance, there and at all larger ones; None if unknown."""
        return None if self.resolved is None else self.resolved.bandwidth

    def profile(self, step: int = -1) -> ErrorProfile:
        """The error at every scale of ``step_sizes[step]`` atoms, or of the nearest size that has a profile.

        Parameters
        ----------
        step : position in ``step_sizes``, by default the last
        """
        if not len(self.profiles.sizes):
            raise ValueError(
                "this model has the error at one scale only, because its kernel has no bandwidth, the bandwidth is too small for "
                "random Fourier features, or its file has no profiles; use certificate.relative_error"
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
        """The relative error of ``step_sizes[step]`` atoms, or of the nearest size of the path."""
        return float(self.path.relative_errors[np.abs(self.path.sizes - self.step_sizes[step]).argmin()])

    def subsample_errors(self, sizes: NDArray[np.int64]) -> Array | None:
        """The root mean square error of random rows, for each of these numbers of rows; None for signed weights.

        Rows are drawn with probability w/Σw and have weight Σw/m. Then E‖f − f_m‖² = ((Σw)² C − ‖f‖²)/m.
        """
        norm, energy = self.certificate.norm, self.certificate.energy
        if self.total is None or not (0 < norm < np.inf and 0 < energy < np.inf):
            return None
        with np.errstate(all="ignore"):
            excess = float(np.square(np.float64(self.total) / norm) * energy) - 1.0
        return np.asarray(np.sqrt(max(excess, 0.0) / np.asarray(sizes, np.float64))) if np.isfinite(excess) else None

    def save(self, path: _archive.Path_) -> None:
        """Write one .npz with a JSON header, atomically. Reading it executes nothing."""
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
        """Read a file of `save`. Raises ValueError for a damaged, edited, newer or foreign file."""
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
        """The model of a file. Raises ValueError for inconsistent parts, because the digest of a file does not detect them."""
        certificate, width = values["certificate"], bandwidth_of(mean.kernel)
        if certificate.bandwidth not in (None, width):
            raise ValueError(f"certificate.bandwidth must be the bandwidth of the kernel, {width}, got {certificate.bandwidth!r}")
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
