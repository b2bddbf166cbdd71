"""The numbers of the figures of a compression. The report embeds them, and the displays draw them.

A path is thinned to sizes that differ on a screen. The error of m random rows is a/√m (`Model.subsample_errors`), so (a/error)²
random rows have the error of the atoms. The error at every scale is compared with random rows in the same number, and with the
sampling error of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array
from reduset.certificate import ErrorProfile
from reduset.compression import TOL, Compression, Path, noun
from reduset.kernels import Gaussian
from reduset.mixture import ComponentMean, SmallMean
from reduset.model import BEYOND, MarginalDensities, Model

PATH_POINTS, RANDOM_POINTS = 400, 60  # of the two curves
HIGHEST_ERROR = 3.0  # of a figure of the error at every scale
ROUNDING = 1e-12  # relative errors below this are rounding


@dataclass(frozen=True)
class PathFigure:
    """Error by size.

    Attributes
    ----------
    sizes, errors : (k,) nested sizes and their relative errors
    random_sizes, random_errors : (r,) numbers of random rows and their errors; None if not defined
    size, error, interval : Size, error and confidence interval of the compression.
    bound : A-priori bound, relative to ‖f‖; None if not defined.
    alike : Number of random rows with the same error; None if not defined.
    piece : "atom" or "component"
    bandwidth : Bandwidth of the kernel, at which the errors hold; None for a kernel without a bandwidth.
    """

    sizes: NDArray[np.int64]
    errors: Array
    random_sizes: Array | None
    random_errors: Array | None
    size: int
    error: float
    interval: tuple[float, float]
    bound: float | None
    alike: float | None
    piece: str = "atom"
    bandwidth: float | None = None


def path_figure(source: Model | Compression) -> PathFigure:
    """The figure of a model, or of a compression without a comparison with random rows."""
    path: Path = source.path
    shown = np.unique(np.geomspace(1, len(path.sizes), PATH_POINTS).round().astype(np.int64)) - 1
    certificate, size = source.certificate, source.size
    once = source.subsample_errors(np.array([1])) if isinstance(source, Model) else None
    random_sizes = random_errors = alike = bound = None
    if once is not None:
        alike = float(once[0] / certificate.relative_error) ** 2 if certificate.relative_error > 0 else np.inf
        random_sizes = np.geomspace(1, max(size, min(alike, source.n_samples)), RANDOM_POINTS)
        random_errors = once[0] / np.sqrt(random_sizes)
    if certificate.bound is not None and 0 < certificate.norm < np.inf:
        bound = certificate.bound / certificate.norm
    return PathFigure(
        path.sizes[shown],
        path.relative_errors[shown],
        random_sizes,
        random_errors,
        size,
        certificate.relative_error,
        certificate.interval,
        bound,
        alike,
        noun(source.mean),
        certificate.bandwidth,
    )


@dataclass(frozen=True)
class ProfileFigure:
    """Error by bandwidth.

    Attributes
    ----------
    size : Number of atoms.
    bandwidths : (k,) from large to small
    errors, low, high : (k,) relative errors and the ends of their intervals; NaN for errors of rounding size
    random_rows : (k,) errors of ``size`` random rows; NaN if not defined
    noise : (k,) sampling errors of all rows; NaN if not defined
    tol : Tolerance of the resolution.
    finest : Smallest bandwidth with an error certified within ``tol``, there and at all larger bandwidths. None if there is none.
    random_finest, noise_finest : The same for random rows, and for the sampling error.
    own : Bandwidth of the kernel and its error; None if it equals ``finest``.
    confidence : Level of the simultaneous intervals.
    piece : "atom", "component" or "sketch row"
    """

    size: int
    bandwidths: Array
    errors: Array
    low: Array
    high: Array
    random_rows: Array
    noise: Array
    tol: float
    finest: float | None
    random_finest: float | None
    noise_finest: float | None
    own: tuple[float, float] | None
    confidence: float
    piece: str = "atom"

    @property
    def highest(self) -> float:
        """The largest error that is drawn."""
        drawn = np.concatenate([self.errors, self.random_rows, self.noise])
        return min(float(np.fmax.reduce(drawn, initial=self.tol)), HIGHEST_ERROR)


def profile_figure(source: Model | Compression, step: int = -1) -> ProfileFigure:
    """The figure of a compression, or of a model at one of its ``step_sizes``."""
    if isinstance(source, Model):
        profile, signed = source.profile(step), source.total is None
        size = int(source.profiles.sizes[source.profiles.nearest(int(source.step_sizes[step]))])
    else:
        profile, size, signed = source.profile(), source.size, False
    resolved = source.resolved if size == source.size else None
    tol = TOL if source.resolved is None else source.resolved.tol
    shown = drawn_profile(profile, size, tol, float(getattr(source.mean.kernel, "width", np.nan)), noun(source.mean), signed)
    if resolved is None:
        return shown
    return replace(shown, finest=resolved.bandwidth, random_finest=resolved.random_rows, own=None)


def drawn_profile(profile: ErrorProfile, size: int, tol: float, width: float, piece: str, signed: bool = False) -> ProfileFigure:
    """The figure of a profile, with the error at the bandwidth ``width`` if it is in the profile."""
    widths = profile.bandwidths
    position = np.flatnonzero(np.isclose(widths, width, rtol=1e-9))
    drawn, noise = (np.where((curve > 0) & ~np.array(signed), curve, np.nan) for curve in (profile.random_rows, profile.noise))
    measured = profile.relative_errors > ROUNDING
    errors, low, high = (np.where(measured, curve, np.nan) for curve in (profile.relative_errors, *profile.intervals.T))

    def finest(curve: Array) -> float | None:
        within = int(np.cumprod(curve <= tol).sum())
        return float(widths[within - 1]) if within else None

    own = (width, float(profile.relative_errors[position[0]])) if len(position) else None
    limits = profile.finest(tol), finest(drawn), finest(noise)
    return ProfileFigure(size, widths, errors, low, high, drawn, noise, tol, *limits, own, profile.confidence, piece)


def wide_columns(model: Model) -> list[str]:
    """Columns along which a Gaussian kernel has one mode for any rows: their range is at most two bandwidths.

    With rows on an interval of length 2h, (log p)″ = −1/h² + Var(x | t)/h⁴ ≤ 0, because the variance on it is at most h². The range
    is the range of the grid of the marginal densities, which contains the bulk of the rows.
    """
    portrait = model.portrait
    if not isinstance(model.mean.kernel, Gaussian):
        return []
    bulk = portrait.grids[:, -1] - portrait.grids[:, 0] - 2 * BEYOND * portrait.widths
    is_wide = (bulk <= 2 * portrait.widths) & (bulk > 1e-6 * portrait.widths)  # not of constant columns
    return [name for name, wide in zip(model.columns, is_wide, strict=False) if wide]


@dataclass(frozen=True)
class AtomsFigure:
    """Atoms or components over one or two columns.

    Attributes
    ----------
    places : (m, 2) or (m, 1) coordinates
    weights : (m,) weights
    areas : (m,) areas of the markers, relative to the largest
    names : Names of the columns.
    covariances : (m, 2, 2) or (m, 1, 1) covariances of components, including the kernel; None for atoms
    """

    places: Array
    weights: Array
    areas: Array
    names: tuple[str, ...]
    covariances: Array | None = None


def atoms_figure(mean: SmallMean, names: Sequence[str], pair: Sequence[int]) -> AtomsFigure:
    """The atoms or components of a mean in the columns of ``pair``."""
    sizes, columns = np.abs(mean.weights), [int(k) for k in pair]
    return AtomsFigure(
        np.asarray(mean.atoms[:, columns], np.float64),
        np.asarray(mean.weights, np.float64),
        sizes / max(float(sizes.max()), np.finfo(float).tiny),
        tuple(names[k] for k in columns),
        mean.covariances[:, columns][:, :, columns] if isinstance(mean, ComponentMean) else None,
    )


@dataclass(frozen=True)
class DensityFigure:
    """The density of all rows and of the atoms, along one column or over two.

    Attributes
    ----------
    grids : one grid (G,), or two (g,)
    full, small : (G,) or (g, g) densities, with the first column along the first axis
    names : Names of the columns.
    piece : "atom" or "component"
    """

    grids: tuple[Array, ...]
    full: Array
    small: Array
    names: tuple[str, ...]
    piece: str = "atom"

    @property
    def difference(self) -> Array:
        """``small`` − ``full``."""
        return self.small - self.full

    @property
    def signed(self) -> bool:
        """Whether the full density is clearly negative somewhere, as for signed weights."""
        return bool(self.full.min() < -0.01 * np.abs(self.full).max())


def density_figure(portrait: MarginalDensities, small: SmallMean, names: Sequence[str], columns: Sequence[int]) -> DensityFigure:
    """The densities of a portrait and of a small mean, for one column or a pair in either order."""
    chosen = [int(k) for k in columns]
    titles = tuple(names[k] for k in chosen)
    if len(chosen) == 1:
        k = chosen[0]
        if k >= len(portrait.grids):
            raise ValueError(f"columns must be among the first {len(portrait.grids)}, which have marginal densities; got {k}")
        return DensityFigure((portrait.grids[k],), portrait.marginals[k], portrait.marginals_of(small)[k], titles, noun(small))
    position = np.flatnonzero((portrait.pairs == sorted(chosen)).all(axis=1))
    if len(chosen) != 2 or not len(position):
        raise ValueError(
            f"columns must be one column, or two different ones among the first {len(portrait.pair_grids)}, which have joint "
            f"densities; got {list(titles)}"
        )
    full, joint = portrait.joint[position[0]], portrait.joint_of(small)[position[0]]
    if chosen[0] > chosen[1]:
        full, joint = full.T, joint.T
    return DensityFigure((portrait.pair_grids[chosen[0]], portrait.pair_grids[chosen[1]]), full, joint, titles, noun(small))
