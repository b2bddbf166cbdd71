"""What every kernel can do, and what follows for a kernel that depends on a distance alone.

An anisotropic kernel is an isotropic one after a linear map, so ``covariance`` and ``scales``, its diagonal kind, only change the
frame. Constants are kept as logarithms: in many dimensions they leave the range of floating point long before the results do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from reduset import _engine as engine
from reduset import _validate
from reduset import bandwidth as rules
from reduset._engine import Frame, Profile
from reduset._messages import warn
from reduset._types import Array, Floats, Precision
from reduset.kernels import ANY_FAMILY
from reduset.kernels.spectra import ScaleLaw, Spectrum

NARROWEST = 1e-300  # bandwidth
MOST_BANDWIDTHS = 1e306  # across, so that coordinates are finite
FARTHEST = 1e150  # that a point may be from 0 (`_validate.points`)
SCALES = 1e-150, 2 * FARTHEST  # between these, so that their squares, and points in these units, are numbers
SHOWN = 4  # scales
DATA = "data: use KernelMean.from_samples or kernel.resolve(X)"
RESCALE = "multiply the points and the bandwidth by the same number, such as 1e200, which changes nothing"


def exponential(logarithm: float) -> float:
    """exp, or infinity: density constants overflow in many dimensions, where only their logarithm is of use."""
    return math.exp(logarithm) if logarithm < 709 else math.inf


@dataclass(frozen=True)
class Shape:
    """A function of two points as the loops compute it: exp(log_scale) · profile, in coordinates scaled by ``stretch``."""

    profile: Profile
    stretch: float
    log_scale: float


class Kernel(ABC):
    """What every kernel can do. Sums and matrices are those of the bump scaled to 1 at its centre; the scale is a logarithm."""

    space: str

    @abstractmethod
    def resolve(self, points: Floats, sample_weight: Floats | None = None) -> Kernel:
        """This kernel with whatever it leaves to the data decided from the data."""

    @abstractmethod
    def log_peak(self, dimension: int) -> float:
        """log φ(x, x)."""

    @abstractmethod
    def log_energy(self, dimension: int) -> float:
        """log g(x, x) = log ‖φ(·, x)‖², the C of the bounds."""

    @abstractmethod
    def value_sums(self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "auto") -> Array:
        """Σᵢ wᵢ φ(xᵢ, q) / φ(0) for each query."""

    @abstractmethod
    def product_sums(self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double") -> Array:
        """Σᵢ wᵢ g(xᵢ, q) / g(0) for each query."""

    @abstractmethod
    def product_gram(self, points: Floats, others: Floats) -> Array:
        """The matrix g(xᵢ, yⱼ) / g(0)."""

    def product_rows(self, points: Floats) -> Callable[[int], Array]:
        """The matrix g(xᵢ, xⱼ) / g(0) row by row, for whoever asks for one row after the other."""
        return lambda k: self.product_gram(points[k : k + 1], points)[0]

    @abstractmethod
    def product_at(self, distances: Array, dimension: int) -> Array:
        """The least g / g(0) of two points at a given distance in the coordinates of the inner product."""

    def length(self, distance: float, dimension: int) -> float | None:
        """A distance in the coordinates of the inner product in units of the data, or of their scales; None where it has none."""
        return None

    def gradient_sums(self, points: Floats, weights: Floats, queries: Floats) -> Array:
        """Σᵢ wᵢ ∇_q φ(xᵢ, q) / φ(0), (m, d)."""
        raise TypeError(f"{self!r} has no gradient here; use {ANY_FAMILY}")

    def product_slopes(
        self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double"
    ) -> tuple[Array, Array]:
        """Σᵢ wᵢ g(xᵢ, q) / g(0), (m,), and its gradient in q, (m, d), in one pass."""
        raise TypeError(f"{self!r} has no gradient here, so its atoms cannot be moved; use {ANY_FAMILY}")

    def log_sums(self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double") -> Array:
        """log Σᵢ wᵢ φ(xᵢ, q) / φ(0), without underflow."""
        raise TypeError(f"{self!r} is not a density; use {ANY_FAMILY} for log_density")

    def noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        """(count, d) draws from the bump at the origin, as a density."""
        raise TypeError(f"{self!r} cannot be sampled from; use {ANY_FAMILY}")

    def density_log_peak(self, dimension: int) -> float:
        """log φ(x, x) of the bump that integrates to 1."""
        raise TypeError(f"{self!r} is not a density; use {ANY_FAMILY} for log_density")

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything needed to build the kernel again, as plain JSON values."""


@dataclass(frozen=True, eq=False)
class RadialKernel(Kernel):
    """A bump that depends on a distance alone.

    Parameters
    ----------
    bandwidth : float, str or None
        The width h of the bump, or the name of a rule of `reduset.bandwidth` to find it from the data. None leaves it open:
        `compress` may search for it, and whatever needs one takes the median distance.
    covariance : (d, d) or (d,) array, optional
        Distance is then Mahalanobis: ((x − y)ᵀ covariance⁻¹ (x − y))^½ / bandwidth.
    normalized : bool
        Whether φ integrates to 1 (a density) or is 1 at its centre.
    space : "rkhs" or "l2"
        The space whose inner product, norm and distance are meant.
    scales : (d,) array, "robust", "standard" or None
        Units of the columns, by which each is divided before distances are taken, so that the bandwidth is in these units: numbers
        above 0; of each column of the data the interquartile range, or the standard deviation where that is 0; or the standard
        deviation alone; 1 for a column without any spread. In place of a covariance.
    """

    bandwidth: float | str | None = None
    covariance: Any = None
    normalized: bool = False
    space: str = "rkhs"
    scales: Any = field(default=None, kw_only=True)

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            _validate.one_of(self.bandwidth, "bandwidth", rules.RULES)
        elif self.bandwidth is not None:
            object.__setattr__(self, "bandwidth", _validate.positive(self.bandwidth, "bandwidth"))
            if self.width < NARROWEST:
                raise ValueError(
                    f"bandwidth must be at least {NARROWEST:g}, so that 1 / bandwidth is finite, got {self.width!r}; {RESCALE}"
                )
        _validate.one_of(self.space, "space", ("rkhs", "l2"))
        if not isinstance(self.normalized, bool | np.bool_):
            raise TypeError(f"normalized must be True or False, got {self.normalized!r}")
        if self.covariance is not None:
            matrix = _validate.covariance(self.covariance)
            matrix.setflags(write=False)
            object.__setattr__(self, "covariance", matrix)
        if self.scales is not None:
            object.__setattr__(self, "scales", _checked_scales(self.scales))
            if self.covariance is not None:
                shape = " by ".join(map(str, self.covariance.shape))
                raise ValueError(
                    "covariance and scales both say in what units distances are; give one of the two, got a covariance of "
                    f"{shape} and scales={_few(self.scales)}"
                )

    def with_bandwidth(self, bandwidth: float) -> Self:
        """The same kernel with another bandwidth above 0; nothing is validated again."""
        other = copy(self)
        object.__setattr__(other, "bandwidth", float(bandwidth))
        return other

    # -- the parts that a family decides ------------------------------------------------------------------------------------

    @abstractmethod
    def _bump(self, dimension: int) -> tuple[Profile, float]:
        """φ as a profile, and the stretch of its frame beyond 1/h."""

    @abstractmethod
    def _product(self, dimension: int) -> tuple[Profile, float]:
        """g in L2 as a profile, and the stretch of its frame beyond 1/h."""

    @abstractmethod
    def _log_density_constant(self, dimension: int) -> float:
        """log of the constant that makes the bump of unit bandwidth integrate to 1."""

    @abstractmethod
    def _log_square_integral(self, dimension: int) -> float:
        """log ∫ φ² of the bump of unit bandwidth and height."""

    @abstractmethod
    def spectrum(self, dimension: int) -> Spectrum:
        """The spectrum of g, in the coordinates of `product`."""

    @abstractmethod
    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        """Draws from the bump of unit bandwidth, as a density."""

    @abstractmethod
    def _tail(self, t: Array) -> Array:
        """The share beyond t ≥ 0 of the bump of unit bandwidth on a line, and along each axis where `scale_law` is None."""

    def scale_law(self, dimension: int) -> ScaleLaw | None:
        """Which normal laws the bump mixes; None where it is a product over columns."""
        return None

    # -- what follows from them ---------------------------------------------------------------------------------------------

    def resolve(self, points: Floats, sample_weight: Floats | None = None) -> RadialKernel:
        d = points.shape[1]
        if self.covariance is not None and len(self.covariance) != d:
            raise ValueError(f"covariance must be {d} by {d} like the points' columns, got {self.covariance.shape}")
        if isinstance(self.scales, str):
            return replace(self, scales=rules.column_scales(points, sample_weight, self.scales)).resolve(points, sample_weight)
        if self.scales is not None and len(self.scales) != d:
            raise ValueError(f"scales must be {d} numbers, one for each of the points' columns, got {len(self.scales)}")
        if self.is_resolved:
            self._require_room(points)
            return self
        rule = "median" if self.bandwidth is None else str(self.bandwidth)
        if all(bool((some.min(axis=0) == some.max(axis=0)).all()) for some in (points[:64], points)):  # mostly a few tell
            # any bandwidth gives the same compression of a single place, so this is no reason to refuse it
            warn(f"all points coincide, so bandwidth={rule!r} finds none; 1.0 is used")
            return self.with_bandwidth(1.0)
        if rule == "median" and np.ndim(self.covariance) < 2:  # which copies no more rows than it looks at
            return self.with_bandwidth(rules.median_of_rows(points, sample_weight, self.units))
        if self.units is not None:
            points = points / self.units
        elif self.covariance is not None:
            points = points @ self._whitening()
        return replace(self, bandwidth=rules.RULES[rule](points, sample_weight))

    def _require_room(self, points: Floats) -> None:
        """Refuse points whose distances in bandwidths are no numbers."""
        units = 1.0 if self.scales is None else self.scales
        if self.width * np.min(units) < 1 / FARTHEST and self.covariance is None:  # points stay below that in size
            span = float((np.subtract(points.max(axis=0), points.min(axis=0), dtype=np.float64) / units).max())
            if span / MOST_BANDWIDTHS > self.width:
                raise ValueError(
                    f"bandwidth must be at least {1 / MOST_BANDWIDTHS:g} of the points' span of {span:.3g}, so that distances in "
                    f"bandwidths are finite, got {self.width!r}; widen it, or use a rule: bandwidth='median'"
                )

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to the data: the bandwidth is a number, and so are the scales."""
        return not (self.bandwidth is None or isinstance(self.bandwidth, str) or isinstance(self.scales, str))

    @property
    def width(self) -> float:
        """The bandwidth as a number."""
        if self.bandwidth is None or isinstance(self.bandwidth, str):
            state = "left open" if self.bandwidth is None else f"still the rule {self.bandwidth!r}"
            raise ValueError(f"bandwidth is {state}; it needs {DATA}")
        return self.bandwidth

    @property
    def units(self) -> Array | None:
        """(d,) what each column is divided by: the scales as numbers, or the roots of variances; None where there are none."""
        if isinstance(self.scales, str):
            raise ValueError(f"scales are still the rule {self.scales!r}; they need {DATA}")
        return np.sqrt(self.covariance) if np.ndim(self.covariance) == 1 else self.scales

    @property
    def is_isotropic(self) -> bool:
        """Whether the bandwidth is one length in all directions: neither a covariance nor scales are set."""
        return self.covariance is None and self.scales is None

    @property
    def column_units(self) -> Array | None:
        """(d,) the extent of a bandwidth of 1 along each column: the units, or the roots of the covariance's diagonal."""
        return np.sqrt(np.diagonal(self.covariance)) if np.ndim(self.covariance) == 2 else self.units

    @property
    def unit_covariance(self) -> Array | None:
        """(d, d) whose ellipsoid a bandwidth of 1 is: the covariance, or the squares of the units; None where it is a ball."""
        units = self.units
        return self.covariance if units is None else np.diag(np.square(units))

    def _whitening(self) -> Array:
        # covariance = L Lᵀ, so (x − y) L⁻ᵀ has the Mahalanobis length of x − y
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.covariance)).T)

    def _matrix(self, stretch: float) -> float | Array:
        if self.units is not None:
            return np.asarray(stretch / self.width / self.units)
        return float(stretch / self.width) if self.covariance is None else self._whitening() * (stretch / self.width)

    def _log_volume(self, dimension: int) -> float:
        """log |det| of the map from unit coordinates to the data's."""
        log = dimension * np.log(self.width)
        if self.units is not None:
            log += np.log(self.units).sum()
        elif self.covariance is not None:
            log += 0.5 * np.linalg.slogdet(self.covariance)[1]
        return float(log)

    def density_log_peak(self, dimension: int) -> float:
        return self._log_density_constant(dimension) - self._log_volume(dimension)

    def log_peak(self, dimension: int) -> float:
        return self.density_log_peak(dimension) if self.normalized else 0.0

    def log_energy(self, dimension: int) -> float:
        if self.space == "rkhs":
            return self.log_peak(dimension)
        return 2 * self.log_peak(dimension) + self._log_square_integral(dimension) + self._log_volume(dimension)

    def bump(self, dimension: int) -> Shape:
        """φ for the loops."""
        return Shape(*self._bump(dimension), self.log_peak(dimension))

    def product(self, dimension: int) -> Shape:
        """g for the loops."""
        profile, stretch = (self._bump if self.space == "rkhs" else self._product)(dimension)
        return Shape(profile, stretch, self.log_energy(dimension))

    def length(self, distance: float, dimension: int) -> float:
        return float(distance * self.width / self.product(dimension).stretch)

    def frame(self, points: Floats, shape: Shape) -> Frame:
        """Coordinates for the loops, centred on the points."""
        return Frame.around(points, self._matrix(shape.stretch))

    def plain_frame(self, points: Floats) -> Frame:
        """Coordinates in which distances are those of the definition of φ, in bandwidths."""
        return Frame.around(points, self._matrix(1.0))

    def value_sums(self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "auto") -> Array:
        shape = self.bump(points.shape[1])
        return engine.kernel_sums(points, weights, queries, self.frame(points, shape), shape.profile, precision)

    def product_sums(self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double") -> Array:
        shape = self.product(points.shape[1])
        return engine.kernel_sums(points, weights, queries, self.frame(points, shape), shape.profile, precision)

    def product_gram(self, points: Floats, others: Floats) -> Array:
        shape = self.product(points.shape[1])
        return engine.gram(points, others, self.frame(points, shape), shape.profile)

    def product_rows(self, points: Floats) -> Callable[[int], Array]:
        shape = self.product(points.shape[1])
        return engine.gram_by_rows(points, self.frame(points, shape), shape.profile)

    def gradient_sums(self, points: Floats, weights: Floats, queries: Floats) -> Array:
        """Σᵢ wᵢ ∇_q φ(xᵢ, q) / φ(0), (m, d)."""
        return self._slopes(self.bump(points.shape[1]), points, weights, queries, "double")[1]

    def product_slopes(
        self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double"
    ) -> tuple[Array, Array]:
        return self._slopes(self.product(points.shape[1]), points, weights, queries, precision)

    def _slopes(self, shape: Shape, points: Floats, weights: Floats, queries: Floats, precision: Precision) -> tuple[Array, Array]:
        frame = self.frame(points, shape)
        values, inner = engine.gradient_sums(points, weights, queries, frame, shape.profile, precision)
        if np.ndim(frame.matrix) == 0:
            return values, inner * frame.matrix
        matrix = engine.to_device_of(inner, np.asarray(frame.matrix))
        return values, inner * matrix if matrix.ndim == 1 else inner @ matrix.T

    def log_sums(self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double") -> Array:
        shape = self.bump(points.shape[1])
        return engine.log_sums(points, weights, queries, self.frame(points, shape), shape.profile, precision)

    def product_at(self, distances: Array, dimension: int) -> Array:
        """The least g / g(0) of two points at a given distance in the coordinates of `product`."""
        shape = self.product(dimension)
        t = np.minimum(distances.astype(np.float64), 1e150)  # far enough, and its square is finite
        if shape.profile.metric == engine.SQUARED:
            t = t * t
        elif shape.profile.metric == engine.SOFT_CITYBLOCK:  # all of the distance in one coordinate is the worst case
            t = t - np.log1p(t)
        flat = t.reshape(-1)
        shape.profile.to_exponents(flat)
        return np.exp(-flat.reshape(t.shape))

    def noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        unit = self._noise(count, dimension, rng) * self.width
        if self.units is not None:
            return np.asarray(unit * self.units)
        return unit if self.covariance is None else unit @ np.linalg.cholesky(self.covariance).T

    def tail(self, t: Array) -> Array:
        """The same for t of either sign."""
        share = self._tail(np.abs(t))
        return np.where(t < 0, 1.0 - share, share)

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"name": self.name, "bandwidth": self.bandwidth}
        out |= {"normalized": bool(self.normalized), "space": self.space}
        if self.covariance is not None:
            out["covariance"] = self.covariance.tolist()
        if self.scales is not None:
            out["scales"] = self.scales if isinstance(self.scales, str) else self.scales.tolist()
        own = (each.name for each in fields(self) if each.name not in RadialKernel.__dataclass_fields__)
        return out | {name: getattr(self, name) for name in own}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RadialKernel) and self._compared() == other._compared()

    def _compared(self) -> dict[str, Any]:
        """As `to_dict`, with a diagonal covariance as its variances, whichever way it was given."""
        matrix = self.covariance
        if np.ndim(matrix) == 2 and np.count_nonzero(matrix) == len(matrix):
            return self.to_dict() | {"covariance": np.diagonal(matrix).tolist()}
        return self.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.bandwidth, self.normalized, self.space))

    def __repr__(self) -> str:
        shown = [] if self.bandwidth is None else [repr(self.bandwidth) if isinstance(self.bandwidth, str) else f"{self.width:.6g}"]
        rest = {k: v for k, v in self.to_dict().items() if k not in ("name", "bandwidth")}
        defaults = {each.name: each.default for each in fields(self)}
        short = {"covariance": lambda _: "…", "scales": _few}
        shown += [f"{k}={short.get(k, repr)(v)}" for k, v in rest.items() if v != defaults[k]]
        return f"{type(self).__name__}({', '.join(shown)})"


def _few(scales: Any) -> str:
    """Scales as they are printed: a word, or the first few numbers."""
    if isinstance(scales, str):
        return repr(scales)
    numbers = list(scales)
    return f"[{', '.join(f'{each:.3g}' for each in numbers[:SHOWN])}{', …' if len(numbers) > SHOWN else ''}]"


def _checked_scales(scales: Any) -> Any:
    """The name of a rule, or numbers above 0 that nobody can write to."""
    if isinstance(scales, str):
        return _validate.one_of(scales, "scales", rules.SCALES)
    told = np.asarray(scales, dtype=object)  # so that each is checked as it was given
    if told.ndim != 1 or not len(told):
        raise ValueError(f"scales must be a number for each column, 'robust' or 'standard', got shape {told.shape}")
    way_out = "it divides a column: use 1 to leave that as it is"
    found = np.array([_validate.positive(each, f"scales[{k}]", way_out) for k, each in enumerate(told)])
    if not SCALES[0] <= found.min() <= found.max() <= SCALES[1]:
        raise ValueError(
            f"scales must lie between {SCALES[0]:g} and {SCALES[1]:g}, got {found.min():g} to {found.max():g}; rescale the columns"
        )
    found.setflags(write=False)
    return found
