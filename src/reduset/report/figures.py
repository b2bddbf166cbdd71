"""The numbers behind every picture, once: the report embeds them, the displays draw them.

A path is thinned to sizes that a screen can tell apart. How many rows drawn at random would do as well as the atoms follows from
the law of their error, a/√m (`Model.subsample_errors`): (a/error)² rows. The error at every scale is shown beside the two it is
to be judged by: that of as many random rows, and the noise of the sample itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array
from reduset.certificate import Certificate
from reduset.certificate.by_scale import ErrorProfile
from reduset.compression import TOL, Compression, Path, noun
from reduset.kernels import Gaussian
from reduset.mixture import ComponentMean
from reduset.mixture.component_mean import SmallMean
from reduset.model import Model
from reduset.model.marginals import BEYOND, MarginalDensities

MOST_SIZES, RANDOM_SIZES = 400, 60
MOST_LOST = 3.0  # that a picture of the error at every scale shows
ROUNDING = 1e-12  # an error that is nothing but rounding, as a share


@dataclass(frozen=True)
class PathFigure:
    """Error against size.

    Attributes
    ----------
    sizes, errors : (k,) relative errors of nested sizes
    random_sizes, random_errors : (r,) what rows drawn at random lose; None where that is not defined
    size, error, interval : of the compression itself
    bound : certain before measuring, as a share of ‖f‖; None where there is none
    alike : how many rows drawn at random lose as little; None where that is not defined
    piece : what sizes count, "atom" or "component"
    bandwidth : of the kernel, at which the errors hold; None for a kernel without one
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


def is_whitened(model: Model) -> bool:
    """Whether distances are in units of the columns, by their covariance or their scales."""
    return not getattr(model.mean.kernel, "is_isotropic", True)


def bound_share(certificate: Certificate) -> float | None:
    """The a-priori bound as a share of ‖f‖."""
    known = certificate.bound is not None and 0 < certificate.norm < np.inf
    return certificate.bound / certificate.norm if known and certificate.bound is not None else None


def path_figure(source: Model | Compression) -> PathFigure:
    """Of a model, or of a compression, which knows nothing of rows drawn at random."""
    path: Path = source.path
    shown = np.unique(np.geomspace(1, len(path.sizes), MOST_SIZES).round().astype(np.int64)) - 1
    certificate, size = source.certificate, source.size
    once = source.subsample_errors(np.array([1])) if isinstance(source, Model) else None
    sizes = errors = alike = None
    if once is not None:
        alike = float(once[0] / certificate.relative_error) ** 2 if certificate.relative_error > 0 else np.inf
        most = max(size, min(alike, source.n_samples))
        sizes = np.geomspace(1, most, RANDOM_SIZES)
        errors = once[0] / np.sqrt(sizes)
    return PathFigure(
        path.sizes[shown],
        path.relative_errors[shown],
        sizes,
        errors,
        size,
        certificate.relative_error,
        certificate.interval,
        bound_share(certificate),
        alike,
        noun(source.mean),
        certificate.bandwidth,
    )


@dataclass(frozen=True)
class ProfileFigure:
    """Error against the size of details.

    Attributes
    ----------
    size : how many atoms
    bandwidths : (k,) from coarse to fine
    errors, low, high : (k,) relative errors and the ends of their intervals; NaN where nothing is lost but rounding
    random_rows : (k,) what as many rows drawn at random lose; NaN where that is not defined
    noise : (k,) how far all rows are from the law they were drawn from; NaN where that is not defined
    tol : the tolerance that was asked for, or else the usual one
    finest : the finest bandwidth at which, and at every coarser one, the error is certified within ``tol``; None for none
    random_finest : the same for as many random rows
    noise_finest : the finest at which the rows are within ``tol`` of their law
    own : the bandwidth of the kernel, and the error there; None where it is ``finest``
    confidence : of the intervals, which hold at once
    piece : what ``size`` counts, "atom" or "component"
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
        """How far up a picture goes: well beyond 100 %, which is knowing nothing."""
        drawn = np.concatenate([self.errors, self.random_rows, self.noise])
        return min(float(np.fmax.reduce(drawn, initial=self.tol)), MOST_LOST)


def profile_figure(source: Model | Compression, step: int = -1) -> ProfileFigure:
    """Of a compression, or of a model at one of its ``step_sizes``."""
    if isinstance(source, Model):
        profile = source.profile(step)
        size = int(source.profiles.sizes[source.profiles.nearest(int(source.step_sizes[step]))])
        signed = source.total is None
    else:
        profile, size, signed = source.profile(), source.size, False
    found = source.resolved if size == source.size else None
    width = float(getattr(source.mean.kernel, "width", np.nan))
    tol = TOL if source.resolved is None else source.resolved.tol
    shown = drawn_profile(profile, size, tol, width, noun(source.mean), signed)
    return shown if found is None else replace(shown, finest=found.bandwidth, random_finest=found.random_rows, own=None)


def drawn_profile(profile: ErrorProfile, size: int, tol: float, width: float, piece: str, signed: bool = False) -> ProfileFigure:
    """A profile of so many atoms or rows, with the error at the bandwidth ``width`` if it is one of those shown."""
    there = np.flatnonzero(np.isclose(profile.bandwidths, width, rtol=1e-9))
    drawn, noise = (np.where((curve > 0) & ~np.array(signed), curve, np.nan) for curve in (profile.random_rows, profile.noise))
    some = profile.relative_errors > ROUNDING
    errors, low, high = (np.where(some, curve, np.nan) for curve in (profile.relative_errors, *profile.intervals.T))
    return ProfileFigure(
        size,
        profile.bandwidths,
        errors,
        low,
        high,
        drawn,
        noise,
        tol,
        profile.finest(tol),
        _finest(profile.bandwidths, drawn, tol),
        _finest(profile.bandwidths, noise, tol),
        (width, float(profile.relative_errors[there[0]])) if len(there) else None,
        profile.confidence,
        piece,
    )


def _finest(bandwidths: Array, errors: Array, tol: float) -> float | None:
    """The finest of the bandwidths at which, and at every coarser one, errors are within the tolerance."""
    within = int(np.cumprod(errors <= tol).sum())
    return float(bandwidths[within - 1]) if within else None


def wide_columns(model: Model) -> list[str]:
    """Columns of which a Gaussian kernel shows a single hump whatever the rows are: their range is at most two bandwidths.

    With rows on an interval of 2h, (log p)″ = −1/h² + Var(x | t)/h⁴ ≤ 0, as no variance there is above h². The range is that of the
    bulk, which the portrait's grid is made of.
    """
    portrait = model.portrait
    if not isinstance(model.mean.kernel, Gaussian):
        return []
    bulk = portrait.grids[:, -1] - portrait.grids[:, 0] - 2 * BEYOND * portrait.widths
    hidden = (bulk <= 2 * portrait.widths) & (bulk > 1e-6 * portrait.widths)  # a constant column has nothing to hide
    return [name for name, each in zip(model.columns, hidden, strict=False) if each]


@dataclass(frozen=True)
class AtomsFigure:
    """Atoms or components over two columns, or one.

    Attributes
    ----------
    places : (m, 2), or (m, 1)
    weights : (m,)
    areas : (m,) of the markers, the heaviest 1
    names : of the columns
    covariances : (m, 2, 2), or (m, 1, 1), of components, the kernel's bump included; None for atoms
    """

    places: Array
    weights: Array
    areas: Array
    names: tuple[str, ...]
    covariances: Array | None = None


def atoms_figure(mean: SmallMean, names: Sequence[str], pair: Sequence[int]) -> AtomsFigure:
    """The atoms or components of a mean in the columns of ``pair``."""
    sizes = np.abs(mean.weights)
    columns = [int(k) for k in pair]
    return AtomsFigure(
        np.asarray(mean.atoms[:, columns], np.float64),
        np.asarray(mean.weights, np.float64),
        sizes / max(float(sizes.max()), np.finfo(float).tiny),
        tuple(names[k] for k in columns),
        mean.covariances[:, columns][:, :, columns] if isinstance(mean, ComponentMean) else None,
    )


@dataclass(frozen=True)
class DensityFigure:
    """A density of all rows and of the atoms, along one column or over two.

    Attributes
    ----------
    grids : one (G,), or two (g,)
    full, small : (G,) or (g, g), the first column along the first axis
    names : of the columns
    piece : what the small one is made of, "atom" or "component"
    """

    grids: tuple[Array, ...]
    full: Array
    small: Array
    names: tuple[str, ...]
    piece: str = "atom"

    @property
    def difference(self) -> Array:
        """That of the atoms less that of all rows."""
        return self.small - self.full

    @property
    def signed(self) -> bool:
        """Whether rows have weights of both signs, so that the full one goes well below zero."""
        return bool(self.full.min() < -0.01 * np.abs(self.full).max())


def density_figure(portrait: MarginalDensities, small: SmallMean, names: Sequence[str], columns: Sequence[int]) -> DensityFigure:
    """The densities of a portrait and of a small mean, for one column or a pair in either order."""
    chosen = [int(k) for k in columns]
    told = tuple(names[k] for k in chosen)
    if len(chosen) == 1:
        k = chosen[0]
        if k >= len(portrait.grids):
            raise ValueError(f"columns must be among the first {len(portrait.grids)}, which the portrait shows; got {k}")
        return DensityFigure((portrait.grids[k],), portrait.marginals[k], portrait.marginals_of(small)[k], told, noun(small))
    where = np.flatnonzero((portrait.pairs == sorted(chosen)).all(axis=1))
    if len(chosen) != 2 or not len(where):
        raise ValueError(
            f"columns must be one, or two different ones among the first {len(portrait.pair_grids)}, of which the portrait has "
            f"pairs; got {list(told)}"
        )
    full, joint = portrait.joint[where[0]], portrait.joint_of(small)[where[0]]
    turned = chosen[0] > chosen[1]
    grids = (portrait.pair_grids[chosen[0]], portrait.pair_grids[chosen[1]])
    return DensityFigure(grids, full.T if turned else full, joint.T if turned else joint, told, noun(small))
