"""The kernel mean f = Σᵢ wᵢ φ(·, xᵢ): atoms, weights and a kernel, frozen.

A sample, a density estimate, an SVM and a compression of any of these are all of this one type. Evaluation costs O(n) per query, an
inner product O(n·m). The kernel matrix is never stored.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from reduset import _archive, _validate
from reduset._engine import as_given, device_of, in_blocks, on_device, row_blocks, rows_by_weight, to_numpy
from reduset._frames import is_sparse
from reduset._types import Array, Floats, KernelLike, PointsLike, Precision, SeedLike, WeightsLike
from reduset._validate import seeded, warn_if_lying
from reduset.data import opened, row_weights
from reduset.kernels import ANY_FAMILY, Kernel, RadialKernel, as_kernel, boxes_of, exponential, stored_kernel

NODES = {1: 1024, 2: 128, 3: 32}  # default nodes per axis of a grid, by the number of columns
MAX_NODES = 1 << 24  # of a grid
REACH = 3.0  # bandwidths that a grid extends beyond the outermost atoms
TOL = 1e-5  # of the probability of a box, if it is computed by lattice rules
MEAN = _archive.Kind(
    "reduset.KernelMean",
    "kernel mean",
    {
        "kernel": stored_kernel,
        "atoms": _archive.fields.Numbers(("m", "d")),
        "weights": _archive.fields.Numbers(("m",)),
    },
)


class GridValues(NamedTuple):
    """Values on a grid: its ``axes``, an increasing array for each column, and ``values``, an array with one axis per column."""

    axes: tuple[Array, ...]
    values: Array

    @property
    def points(self) -> Array:
        """(nodes, d) coordinates of the nodes, in the order of ``values.ravel()``."""
        return np.stack([coordinates.ravel() for coordinates in np.meshgrid(*self.axes, indexing="ij")], axis=1)


class LinearCombination(ABC):
    """A linear combination of kernel functions or densities: the base class of frozen dataclasses with ``weights`` that add."""

    weights: Array
    _called: ClassVar[str]  # in messages

    # -- integrals and grids ------------------------------------------------------------------------------------------------

    def cdf(self, Q: PointsLike, tol: float = TOL) -> Array:
        """The integral of f from −∞ to each row q of Q in all columns, (q,): `integrate_box` from −∞ to q.

        Parameters
        ----------
        Q : (q, d) array or frame
        tol : float
            As in `integrate_box`.
        """
        upper, _ = _validate.limits(Q, "Q", self.dimension)
        return self._in_boxes(np.full_like(upper, -np.inf), upper, _validate.positive(tol, "tol"))

    def integrate_box(self, low: Any, high: Any, tol: float = TOL) -> float | Array:
        """The integral of f over a box with sides along the axes. Kernel functions integrate to 1, as in `log_density`.

        It is a probability if f is a density. Over the whole space it is the sum of the weights. It is accurate to 1e-12. In the
        tails, nearly all digits are correct for any kernel in one column, and for a Gaussian or city-block Laplacian in several.

        Kernels with a full covariance differ. In two columns, the integral for a Gaussian is accurate to 1e-15 of the weights. With
        more columns it is computed by lattice rules until the standard error is at most ``tol`` times Σ|w|. If that is not reached,
        a warning is given.

        Parameters
        ----------
        low, high : (d,) or (q, d)
            Limits of one box, or of q boxes. If only one of them has shape (q, d), the other is used for all boxes. Limits may be
            infinite. For one column they may be numbers.
        tol : float
            The largest standard error of lattice rules, relative to Σ|w|.

        Examples
        --------
        >>> from reduset import Gaussian, KernelMean
        >>> f = KernelMean([[0.0], [4.0]], [0.5, 0.5], Gaussian(1.0))
        >>> round(f.integrate_box(-1, 1), 4), f.cdf([[0.0], [4.0]]).round(4)
        (0.342, array([0.25, 0.75]))
        """
        lower, upper, single = _validate.box(low, high, self.dimension)
        integrals = self._in_boxes(lower, upper, _validate.positive(tol, "tol"))
        return float(integrals[0]) if single else integrals

    def on_grid(self, points: int | Sequence[int] | None = None, reach: float = REACH) -> GridValues:
        """f on a grid around all atoms: its axes, and values in an array with an axis for each column.

        Parameters
        ----------
        points : int, or one for each column
            The number of nodes along an axis. The default is 1,024 for one column, 128 for two and 32 for three columns.
        reach : float
            The distance from the outermost atoms with weight to the ends of the grid, in bandwidths.

        Examples
        --------
        >>> from reduset import Gaussian, KernelMean
        >>> f = KernelMean([[0.0, 0.0]], [1.0], Gaussian(1.0))
        >>> (x, y), values = f.on_grid((3, 5))
        >>> x, values.shape
        (array([-3.,  0.,  3.]), (3, 5))
        """
        d = self.dimension
        if points is None and d not in NODES:
            raise ValueError(
                f"points must set the number of nodes for each of {d} columns, because a grid has the product of these numbers; "
                "use marginal for a few columns, or evaluate f at chosen points"
            )
        requested = np.asarray(NODES[d] if points is None else points)
        requested = requested if requested.ndim else np.broadcast_to(requested, d)
        if len(requested) != d:
            raise ValueError(f"points must be one number, or one for each of {d} columns, got {len(requested)}")
        counts = [_validate.whole(count, "points", 2) for count in requested.tolist()]
        if math.prod(counts) > MAX_NODES:
            raise ValueError(f"points must give at most {MAX_NODES:,} nodes in all, got {math.prod(counts):,}; use fewer per axis")
        low, high = self._extent(_validate.positive(reach, "reach"))
        axes = tuple(np.linspace(*ends) for ends in zip(low, high, counts, strict=True))
        values = self(GridValues(axes, self.weights).points)
        return GridValues(axes, np.asarray(values).reshape(counts))

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of columns."""

    @abstractmethod
    def __call__(self, Q: PointsLike) -> Array:
        """The values of f at each row of Q."""

    @abstractmethod
    def _in_boxes(self, low: Array, high: Array, tol: float) -> Array:
        """(q,) the integrals over boxes."""

    @abstractmethod
    def _extent(self, reach: float) -> tuple[Array, Array]:
        """Lower and upper limits, (d,) each, of the box of the atoms with weight, extended by ``reach`` bandwidths."""

    # -- algebra ------------------------------------------------------------------------------------------------------------

    def _freeze(self, **arrays: NDArray[Any]) -> None:
        """Set fields to read-only views."""
        for name, array in arrays.items():
            if isinstance(array, np.ndarray):
                array = array.view()
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __radd__(self, other: Any) -> Self:
        """The sum with 0, the start value of sum()."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, factor: float) -> Self:
        if not isinstance(factor, numbers.Real):
            return NotImplemented
        weights = self.weights * _validate.finite(factor, "factor")
        return cast(Self, replace(cast(Any, self), weights=weights))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Self:
        if not isinstance(divisor, numbers.Real):
            return NotImplemented
        if divisor == 0:
            raise ZeroDivisionError(f"a {self._called} cannot be divided by 0")
        return self * (1.0 / _validate.finite(divisor, "divisor"))

    def __neg__(self) -> Self:
        return self * -1.0

    def __sub__(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        return cast(Self, cast(Any, self) + other * -1.0)


@dataclass(frozen=True, eq=False)
class KernelMean(LinearCombination):
    """A weighted sum of kernel functions.

    Parameters
    ----------
    atoms : (n, d) array
        The centres of the kernel functions. The array is kept by reference, so do not change it afterwards.
    weights : (n,) array
        May be signed. Weights are not normalised. If all are 0, f is the zero function.
    kernel : Kernel
        Its bandwidth and scales are numbers, or names of rules that are applied to the atoms. A kernel without a bandwidth takes
        the median distance.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> f = KernelMean.from_samples(np.array([[0.0], [1.0]]), kernel=Gaussian(1.0))
    >>> f(np.array([[0.5]])).round(4)
    array([0.8825])
    >>> g = KernelMean.from_samples(np.array([[3.0]]), kernel=Gaussian(1.0))
    >>> round(f.distance(g), 4)
    1.2872
    """

    atoms: Floats
    weights: Array
    kernel: Kernel
    _called = "kernel mean"

    def __post_init__(self) -> None:
        atoms = _validate.rows.points(self.atoms, "atoms")
        weights = _validate.rows.weights(self.weights, self.atoms, len(atoms), "weights", signed=True, zero=True)
        self._freeze(atoms=atoms, weights=weights)
        object.__setattr__(self, "kernel", as_kernel(self.kernel, self.atoms.shape[1]).resolve(self.atoms, self.magnitudes))

    @classmethod
    def unchecked(cls, atoms: Floats, weights: Array, kernel: Kernel) -> KernelMean:
        """A mean of arrays and a resolved kernel that were validated before."""
        mean = object.__new__(cls)
        mean._freeze(atoms=atoms, weights=weights)
        object.__setattr__(mean, "kernel", kernel)
        return mean

    @classmethod
    def from_samples(cls, X: PointsLike, kernel: KernelLike = None, sample_weight: WeightsLike = None) -> KernelMean:
        """The mean of the kernel functions at the rows of X. Its weights sum to 1.

        Parameters
        ----------
        X : (n, d) array or frame
        kernel : Kernel or callable, default ``Gaussian("median")``
        sample_weight : (n,) array, optional
            Non-negative; only their ratios matter. The default is equal weights, or the weights of a table from `reduset.io`.
        """
        warn_if_lying(X)
        return cls.of_rows(X, kernel, sample_weight)

    @classmethod
    def of_rows(cls, X: PointsLike, kernel: KernelLike = None, sample_weight: WeightsLike = None) -> KernelMean:
        """`from_samples` without the warning for swapped rows and columns, for bags with few rows and many columns."""
        given = opened(X, sample_weight if isinstance(sample_weight, str) else None)
        sample_weight = row_weights(X, given, sample_weight)
        X = _validate.checked_rows(given)
        if sample_weight is None:
            weights = np.broadcast_to(1.0 / len(X), len(X))  # stores one number for any n
        else:
            weights = _validate.rows.weights(sample_weight, given, len(X))
            weights = weights / weights.max()  # makes the sum finite
            weights /= weights.sum()
        magnitudes = np.broadcast_to(weights[0], len(X)) if sample_weight is None else weights
        return cls.unchecked(X, weights, as_kernel(kernel, X.shape[1]).resolve(X, magnitudes))

    # -- size ---------------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of atoms."""
        return len(self.atoms)

    @property
    def dimension(self) -> int:
        return int(self.atoms.shape[1])

    @property
    def mass(self) -> float:
        """The sum of the weights."""
        return self.size * float(self.weights[0]) if self.is_uniform else float(np.sum(self.weights))

    @property
    def is_uniform(self) -> bool:
        """Whether all weights are equal and stored as one number."""
        return self.weights.strides == (0,)

    @property
    def magnitudes(self) -> Array:
        """|w|, stored as one number if the weights are."""
        return np.broadcast_to(abs(self.weights[0]), self.size) if self.is_uniform else np.abs(self.weights)

    @property
    def total(self) -> float:
        """The sum of |w|."""
        return self.size * abs(float(self.weights[0])) if self.is_uniform else float(np.sum(np.abs(self.weights)))

    @property
    def stored_weights(self) -> Array:
        """The stored weights: (1,) if all are stored as one number, otherwise (n,)."""
        return self.weights[:1] if self.is_uniform else self.weights

    def draw_rows(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``count`` rows with probabilities proportional to |w|. They do not depend on how equal weights are stored."""
        uniform = rng.random(count)
        if self.is_uniform:
            return (uniform * self.size).astype(np.int64)
        return rows_by_weight(self.magnitudes, uniform)

    # -- evaluation ---------------------------------------------------------------------------------------------------------

    def __call__(self, Q: PointsLike, precision: Precision = "auto") -> Array:
        """f at each row of Q.

        ``precision`` "auto" computes in float32 if that is accurate to 1e-5, and otherwise in float64. "single" always computes in
        float32, "double" in float64.
        """
        _validate.one_of(precision, "precision", ("auto", "single", "double"))
        peak = exponential(self.kernel.log_peak(self.dimension))
        return self._at(Q, partial(self.kernel.value_sums, self.atoms, self.weights, precision=precision), factor=peak)

    def gradient(self, Q: PointsLike) -> Array:
        """∇f at each row of Q, (m, d). At an atom, the gradient of a Laplacian kernel is set to 0."""
        peak = exponential(self.kernel.log_peak(self.dimension))
        return self._at(Q, partial(self.kernel.gradient_sums, self.atoms, self.weights), factor=peak)

    def log_density(self, Q: PointsLike, precision: Precision = "auto") -> Array:
        """log of Σ wᵢ φ(q, xᵢ) at each row of Q, with kernel functions that integrate to 1, for any value of ``normalized``.

        It does not underflow far from the atoms. The result is −inf if the sum is 0, and NaN if signed weights make it negative.
        ``precision`` "auto" computes in float32 if the logarithm is then accurate to 1e-5, and otherwise in float64, like "double".
        """
        _validate.one_of(precision, "precision", ("auto", "double"))
        peak = self.kernel.density_log_peak(self.dimension)
        return self._at(Q, partial(self.kernel.log_sums, self.atoms, self.weights, precision=precision), term=peak)

    def _at(self, Q: Any, sums: Callable[[Floats], Array], factor: float = 1.0, term: float = 0.0) -> Array:
        """sums(Q) · factor + term. Rows in blocks are evaluated where they are, sparse rows converted block by block."""
        evaluate = partial(_evaluated, sums, factor, term)
        if in_blocks(Q) and not in_blocks(self.atoms):
            rows: Any = _validate.rows.queries(Q, "Q", self.dimension)
            return cast(Array, rows.map_rows(evaluate))
        if on_device(Q):
            queries = _validate.rows.queries(Q, "Q", self.dimension)
            with device_of(queries):
                return as_given(evaluate(queries), Q)
        if not is_sparse(Q):
            return evaluate(_validate.points(Q, "Q", self.dimension))
        rows = _validate.sparse_points(Q, "Q", self.dimension)
        parts = row_blocks(range(rows.shape[0]), self.dimension)
        return np.concatenate([evaluate(_validate.points(rows[a:b].toarray(), "Q")) for a, b in parts])

    def _in_boxes(self, low: Array, high: Array, tol: float) -> Array:
        return boxes_of(self.kernel, self.atoms, self.weights, low, high, tol)

    def _extent(self, reach: float) -> tuple[Array, Array]:
        if not isinstance(self.kernel, RadialKernel):
            raise TypeError(f"{self.kernel!r} has no bandwidth, which sets the limits of a grid; use {ANY_FAMILY}")
        units = self.kernel.column_units
        margin = reach * self.kernel.width * (1.0 if units is None else units)
        atoms = self.atoms[np.flatnonzero(self.weights)]
        return atoms.min(axis=0) - margin, atoms.max(axis=0) + margin

    # -- geometry -----------------------------------------------------------------------------------------------------------

    def inner(self, other: KernelMean) -> float:
        """⟨f, other⟩ in the kernel's space."""
        self._require_compatible(other)
        long, short = (self, other) if self.size >= other.size else (other, self)
        values = to_numpy(self.kernel.product_sums(long.atoms, long.weights, short.atoms))
        return float(short.weights @ values) * exponential(self.kernel.log_energy(self.dimension))

    def norm(self) -> float:
        """‖f‖."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def distance(self, other: KernelMean) -> float:
        """‖f − other‖: the maximum mean discrepancy in "rkhs", the L2 distance in "l2".

        Differences below about 1e-8 of the norms are smaller than rounding errors.
        """
        self._require_compatible(other)
        return 0.0 if other is self else (self - other).norm()

    @seeded
    def sample(self, count: int, rng: SeedLike = None) -> Array:
        """``count`` draws from f, normalised to a density, (count, d). The weights must not be negative.

        Parameters
        ----------
        count : int
        rng : None, seed or Generator
        """
        count = _validate.whole(count, "count", 0)
        rng = _validate.generator(rng)
        if self.stored_weights.min() < 0:
            raise ValueError(
                f"weights must be non-negative for draws, got a weight of {self.weights.min():.3g}; "
                "use weights='simplex' or 'clipped' in compress"
            )
        rows = self.draw_rows(count, rng)
        return np.asarray(self.atoms[rows] + self.kernel.noise(count, self.dimension, rng))

    # -- algebra ------------------------------------------------------------------------------------------------------------

    def _require_compatible(self, other: KernelMean) -> None:
        if not isinstance(other, KernelMean):
            raise TypeError(f"expected a KernelMean, got {type(other).__name__}")
        if other.dimension != self.dimension:
            raise ValueError(f"both means must have the same dimension, got {self.dimension} and {other.dimension}")
        if other.kernel != self.kernel:
            raise ValueError(
                f"both means must have the same kernel, got {self.kernel} and {other.kernel}; set the same bandwidth for both"
            )

    def __add__(self, other: KernelMean) -> KernelMean:
        if not isinstance(other, KernelMean):
            return NotImplemented
        self._require_compatible(other)
        return KernelMean(np.concatenate([self.atoms, other.atoms]), np.concatenate([self.weights, other.weights]), self.kernel)

    # -- files --------------------------------------------------------------------------------------------------------------

    def save(self, path: _archive.Path_) -> None:
        """Write an .npz with a JSON header, atomically. Reading it executes nothing."""
        _archive.write(path, MEAN, {"kernel": self.kernel, "atoms": self.atoms, "weights": self.weights})

    @classmethod
    def load(cls, path: _archive.Path_) -> KernelMean:
        """Read a file of `save`, or the mean in a larger file. Raises ValueError for a damaged, edited, newer or foreign file."""
        return _archive.read(path, {MEAN: lambda values: cls(**values)})

    def __repr__(self) -> str:
        return f"KernelMean({self.size:,} atoms in {self.dimension} dimensions, {self.kernel!r})"


def _evaluated(sums: Callable[[Floats], Array], factor: float, term: float, queries: Floats) -> Array:
    return sums(queries) * factor if term == 0 else sums(queries) + term


def with_bandwidth(mean: KernelMean, bandwidth: float) -> KernelMean:
    """The mean with the same atoms and weights, and kernel functions of another bandwidth."""
    return KernelMean.unchecked(mean.atoms, mean.weights, cast(RadialKernel, mean.kernel).with_bandwidth(bandwidth))
