"""The interface of all kernels, and the methods of kernels that depend on a distance alone.

An anisotropic kernel is an isotropic one after a linear map. So ``covariance``, and ``scales`` for a diagonal map, only change the
frame. Constants are stored as logarithms, because in many dimensions they overflow or underflow long before the results do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from reduset import _engine as engine
from reduset import _validate
from reduset import bandwidth as rules
from reduset._engine import Frame, Profile
from reduset._messages import warn
from reduset._types import Array, Floats, Precision
from reduset.kernels import ANY_FAMILY
from reduset.kernels.spectra import ScaleMixture, Spectrum

MIN_BANDWIDTH = 1e-300
MAX_SPAN = 1e306  # of the points in bandwidths, so that coordinates are finite
MAX_COORDINATE = 1e150  # of a point (`_validate.points`)
MIN_SCALE, MAX_SCALE = 1e-150, 2 * MAX_COORDINATE  # so that their squares, and points in these units, are finite
PRINTED_SCALES = 4
DATA = "data: use KernelMean.from_samples or kernel.resolve(X)"
RESCALE = "multiply the points and the bandwidth by the same number, such as 1e200"


def exponential(logarithm: float) -> float:
    """exp, or infinity on overflow: density constants overflow in many dimensions, where only their logarithm is used."""
    return math.exp(logarithm) if logarithm < 709 else math.inf


class Shape(NamedTuple):
    """A function of two points for the compiled loops, 1 at its centre: a profile in coordinates scaled by ``stretch``."""

    profile: Profile
    stretch: float


class Kernel(ABC):
    """The interface of all kernels. Sums and matrices use the function scaled to 1 at its centre. The scale is a logarithm."""

    space: str

    @abstractmethod
    def resolve(self, points: Floats, sample_weight: Floats | None = None) -> Kernel:
        """This kernel with all open parameters set from the data."""

    @abstractmethod
    def log_peak(self, dimension: int) -> float:
        """log φ(x, x)."""

    @abstractmethod
    def log_energy(self, dimension: int) -> float:
        """log g(x, x) = log ‖φ(·, x)‖², the constant C of the bounds."""

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
        """A function that returns one row of the matrix g(xᵢ, xⱼ) / g(0)."""
        return lambda k: self.product_gram(points[k : k + 1], points)[0]

    @abstractmethod
    def product_at(self, distances: Array, dimension: int) -> Array:
        """The least g / g(0) of two points at a given distance in the coordinates of the inner product."""

    def length(self, distance: float, dimension: int) -> float | None:
        """A distance in the coordinates of the inner product, in units of the data or of their scales; None if it has no units."""
        return None

    def gradient_sums(self, points: Floats, weights: Floats, queries: Floats) -> Array:
        """Σᵢ wᵢ ∇_q φ(xᵢ, q) / φ(0), (m, d)."""
        raise TypeError(f"{self!r} has no gradient; use {ANY_FAMILY}")

    def product_slopes(
        self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double"
    ) -> tuple[Array, Array]:
        """Σᵢ wᵢ g(xᵢ, q) / g(0), (m,), and its gradient in q, (m, d), in one pass."""
        raise TypeError(f"{self!r} has no gradient, so its atoms cannot be moved; use {ANY_FAMILY}")

    def log_sums(self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double") -> Array:
        """log Σᵢ wᵢ φ(xᵢ, q) / φ(0), without underflow."""
        raise TypeError(f"{self!r} is not a density; use {ANY_FAMILY} for log_density")

    def noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        """(count, d) draws from the kernel function at the origin, as a density."""
        raise TypeError(f"{self!r} cannot be sampled from; use {ANY_FAMILY}")

    def density_log_peak(self, dimension: int) -> float:
        """log φ(x, x) for φ scaled to integrate to 1."""
        raise TypeError(f"{self!r} is not a density; use {ANY_FAMILY} for log_density")

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """All parameters of the kernel, as plain JSON values."""


@dataclass(frozen=True, eq=False)
class RadialKernel(Kernel):
    """A kernel that depends on a distance alone.

    Parameters
    ----------
    bandwidth : float, str or None
        The bandwidth h, or the name of a rule of `reduset.bandwidth` that computes it from the data. With None, `compress` may
        search for it, and other functions use the median distance.
    covariance : (d, d) or (d,) array, optional
        Use the Mahalanobis distance ((x − y)ᵀ covariance⁻¹ (x − y))^½ / bandwidth.
    normalized : bool
        True if φ integrates to 1 (a density), False if φ is 1 at its centre.
    space : "rkhs" or "l2"
        The space of inner products, norms and distances.
    scales : (d,) array, "robust", "standard" or None
        Each column is divided by its scale before distances are computed, so the bandwidth is in these units. An array holds
        numbers above 0. "robust" takes the interquartile range of each column, or the standard deviation if that is 0. "standard"
        takes the standard deviation. A constant column has scale 1. Scales and a covariance exclude each other.
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
            if self.width < MIN_BANDWIDTH:
                raise ValueError(
                    f"bandwidth must be at least {MIN_BANDWIDTH:g}, so that 1 / bandwidth is finite, got {self.width!r}; {RESCALE}"
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
                    "covariance and scales both set the units of distances; give one of the two, got a covariance of "
                    f"{shape} and scales={_printed_scales(self.scales)}"
                )

    def with_bandwidth(self, bandwidth: float) -> Self:
        """The same kernel with another bandwidth above 0, without validation."""
        other = copy(self)
        object.__setattr__(other, "bandwidth", float(bandwidth))
        return other

    # -- implemented by each kernel ------------------------------------------------------------------------------------------

    @abstractmethod
    def bump(self, dimension: int) -> Shape:
        """φ."""

    @abstractmethod
    def product(self, dimension: int) -> Shape:
        """g, which is φ in "rkhs"."""

    @abstractmethod
    def _log_density_constant(self, dimension: int) -> float:
        """log of the constant that makes φ with bandwidth 1 integrate to 1."""

    @abstractmethod
    def _log_square_integral(self, dimension: int) -> float:
        """log ∫ φ² for bandwidth 1 and height 1."""

    @abstractmethod
    def spectrum(self, dimension: int) -> Spectrum:
        """The spectrum of g, in the coordinates of `product`."""

    @abstractmethod
    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        """Draws from φ with bandwidth 1, as a density."""

    @abstractmethod
    def _tail(self, t: Array) -> Array:
        """The integral of φ, a density with bandwidth 1, beyond t ≥ 0 in one dimension; along each axis if φ is a product."""

    def scale_mixture(self, dimension: int) -> ScaleMixture | None:
        """φ as a scale mixture of normal distributions; None if it is a product over columns."""
        return None

    # -- derived from these --------------------------------------------------------------------------------------------------

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
        if all(bool((rows.min(axis=0) == rows.max(axis=0)).all()) for rows in (points[:64], points)):  # the first usually suffice
            # any bandwidth gives the same compression of a single point, so a warning suffices
            warn(f"all points coincide, so bandwidth={rule!r} has no value; 1.0 is used")
            return self.with_bandwidth(1.0)
        if rule == "median" and np.ndim(self.covariance) < 2:  # copies only the rows that it uses
            return self.with_bandwidth(rules.median_of_rows(points, sample_weight, self.units))
        if self.units is not None:
            points = points / self.units
        elif self.covariance is not None:
            points = points @ self._whitening()
        return replace(self, bandwidth=rules.RULES[rule](points, sample_weight))

    def _require_room(self, points: Floats) -> None:
        """Raise `ValueError` if distances of the points overflow in units of the bandwidth."""
        units = 1.0 if self.scales is None else self.scales
        if self.width * np.min(units) < 1 / MAX_COORDINATE and self.covariance is None:  # otherwise they cannot overflow
            span = float((np.subtract(points.max(axis=0), points.min(axis=0), dtype=np.float64) / units).max())
            if span / MAX_SPAN > self.width:
                raise ValueError(
                    f"bandwidth must be at least {1 / MAX_SPAN:g} of the points' span of {span:.3g}, so that distances in "
                    f"bandwidths are finite, got {self.width!r}; widen it, or use a rule: bandwidth='median'"
                )

    @property
    def is_resolved(self) -> bool:
        """True if the bandwidth and the scales are numbers, so no parameter is left to the data."""
        return not (self.bandwidth is None or isinstance(self.bandwidth, str) or isinstance(self.scales, str))

    @property
    def width(self) -> float:
        """The bandwidth as a number."""
        if self.bandwidth is None or isinstance(self.bandwidth, str):
            state = "not set" if self.bandwidth is None else f"still the rule {self.bandwidth!r}"
            raise ValueError(f"bandwidth is {state}; it needs {DATA}")
        return self.bandwidth

    @property
    def units(self) -> Array | None:
        """(d,) divisor of each column: its scale, or the root of its variance; None without both."""
        if isinstance(self.scales, str):
            raise ValueError(f"scales are still the rule {self.scales!r}; they need {DATA}")
        return np.sqrt(self.covariance) if np.ndim(self.covariance) == 1 else self.scales

    @property
    def is_isotropic(self) -> bool:
        """True if neither a covariance nor scales are set, so the bandwidth is the same in all directions."""
        return self.covariance is None and self.scales is None

    @property
    def column_units(self) -> Array | None:
        """(d,) length of a bandwidth of 1 along each column: the units, or the roots of the covariance's diagonal."""
        return np.sqrt(np.diagonal(self.covariance)) if np.ndim(self.covariance) == 2 else self.units

    @property
    def unit_covariance(self) -> Array | None:
        """(d, d) covariance at bandwidth 1: the covariance, or the squared units on a diagonal; None for the identity."""
        units = self.units
        return self.covariance if units is None else np.diag(np.square(units))

    def _whitening(self) -> Array:
        # covariance = L Lᵀ, so (x − y) L⁻ᵀ has the Mahalanobis length of x − y
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.covariance)).T)

    def _log_volume(self, dimension: int) -> float:
        """log |det| of the map from unit coordinates to the coordinates of the data."""
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

    def length(self, distance: float, dimension: int) -> float:
        return float(distance * self.width / self.product(dimension).stretch)

    def frame(self, points: Floats, shape: Shape) -> Frame:
        """Coordinates for the compiled loops, centred on the points."""
        units, factor = self.units, shape.stretch / self.width
        if units is not None:
            return Frame.around(points, np.asarray(factor / units))
        return Frame.around(points, float(factor) if self.covariance is None else self._whitening() * factor)

    def plain_frame(self, points: Floats) -> Frame:
        """Coordinates in which distances are in units of the bandwidth, as in the definition of φ."""
        return self.frame(points, Shape(Profile(), 1.0))

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
        t = np.minimum(distances.astype(np.float64), 1e150)  # so that its square is finite
        if shape.profile.metric == engine.SQUARED:
            t = t * t
        elif shape.profile.metric == engine.SOFT_CITYBLOCK:  # the product is least if one coordinate holds all of the distance
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
        """The integral beyond t, for t of any sign."""
        beyond = self._tail(np.abs(t))
        return np.where(t < 0, 1.0 - beyond, beyond)

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"name": self.name, "bandwidth": self.bandwidth}
        out |= {"normalized": bool(self.normalized), "space": self.space}
        if self.covariance is not None:
            out["covariance"] = self.covariance.tolist()
        if self.scales is not None:
            out["scales"] = self.scales if isinstance(self.scales, str) else self.scales.tolist()
        names = (parameter.name for parameter in fields(self) if parameter.name not in RadialKernel.__dataclass_fields__)
        return out | {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RadialKernel) and self._compared() == other._compared()

    def _compared(self) -> dict[str, Any]:
        """`to_dict` with a diagonal matrix replaced by its variances, so that both forms compare equal."""
        matrix = self.covariance
        if np.ndim(matrix) == 2 and np.count_nonzero(matrix) == len(matrix):
            return self.to_dict() | {"covariance": np.diagonal(matrix).tolist()}
        return self.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.bandwidth, self.normalized, self.space))

    def __repr__(self) -> str:
        shown = [] if self.bandwidth is None else [repr(self.bandwidth) if isinstance(self.bandwidth, str) else f"{self.width:.6g}"]
        rest = {k: v for k, v in self.to_dict().items() if k not in ("name", "bandwidth")}
        defaults = {parameter.name: parameter.default for parameter in fields(self)}
        short = {"covariance": lambda _: "…", "scales": _printed_scales}
        shown += [f"{k}={short.get(k, repr)(v)}" for k, v in rest.items() if v != defaults[k]]
        return f"{type(self).__name__}({', '.join(shown)})"


def _printed_scales(scales: Any) -> str:
    """Printed scales: the name of a rule, or the first numbers."""
    if isinstance(scales, str):
        return repr(scales)
    numbers = list(scales)
    return f"[{', '.join(f'{scale:.3g}' for scale in numbers[:PRINTED_SCALES])}{', …' if len(numbers) > PRINTED_SCALES else ''}]"


def _checked_scales(scales: Any) -> Any:
    """The name of a rule, or a read-only array of numbers above 0."""
    if isinstance(scales, str):
        return _validate.one_of(scales, "scales", rules.SCALES)
    given = np.asarray(scales, dtype=object)  # so that each is validated in its given type
    if given.ndim != 1 or not len(given):
        raise ValueError(f"scales must be a number for each column, 'robust' or 'standard', got shape {given.shape}")
    way_out = "it divides a column, and 1 leaves the column unchanged"
    numbers = np.array([_validate.positive(scale, f"scales[{k}]", way_out) for k, scale in enumerate(given)])
    if not MIN_SCALE <= numbers.min() <= numbers.max() <= MAX_SCALE:
        raise ValueError(
            f"scales must lie between {MIN_SCALE:g} and {MAX_SCALE:g}, got {numbers.min():g} to {numbers.max():g}; "
            "rescale the columns"
        )
    numbers.setflags(write=False)
    return numbers
