"""The prefixes of a sequence of atoms: their weights and errors, without the data.

The residual is measured once, at the largest size. This gives the error of every prefix, because the energies that later atoms add
are known exactly (Pythagoras):

    ‖f − P_j f‖² = ‖f − P_m f‖² + Σ_{j<i≤m} yᵢ².
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array
from reduset.certificate import ZERO_NORM, Bounds, Certificate, Measurement, bandwidth_of
from reduset.kernels import Kernel, exponential
from reduset.mixture import SmallMean, mean_of
from reduset.weights import FactoredSpan, Span, solved

PATH_SIZES, ALL_SIZES_UP_TO = 24, 300  # of a path with weights that need a solve at every size


@dataclass(frozen=True)
class Path:
    """The error of every prefix of the atoms.

    Attributes
    ----------
    sizes : (k,) numbers of atoms
    relative_errors : (k,) ‖f − f_m‖ / ‖f‖ at each
    """

    sizes: NDArray[np.int64]
    relative_errors: Array


@dataclass(frozen=True)
class PrefixError:
    """The relative error of one prefix and its parts, in units in which every kernel function has norm 1."""

    relative: float
    interval: tuple[float, float]
    square_norm: float  # ‖f‖²
    excess: float  # squared error of the weights minus the squared error of the best weights
    weights: Array


@dataclass(frozen=True)
class Prefixes:
    """The atoms in order, one residual, and one kind of weights.

    Attributes
    ----------
    span : Span of all atoms.
    residual : Measured ‖f − Pf‖² for all atoms.
    kind : Kind of the weights.
    mass, total : Sums Σw and Σ|w| of f.
    magnitudes : (m,) |w| of the row of each atom, 0 for atoms that are not rows.
    covered : Values of g / C at the covering radius after each atom, where it is known.
    own : (k,) given weights of all atoms, such as the selector's.
    last : (m,) weights of all atoms that replace the solution. Smaller prefixes use the solution.
    """

    kernel: Kernel
    span: Span
    residual: Measurement
    kind: str
    mass: float
    total: float
    magnitudes: Array
    covered: Array | None
    confidence: float
    own: Array | None = None
    last: Array | None = None
    _errors: dict[int, PrefixError] = field(default_factory=dict, init=False, repr=False)

    @property
    def atoms(self) -> Any:
        """The atoms in order. Redundant ones are included only if the weights are given."""
        return self.span.atoms if self.own is None else self.span.given

    def error(self, size: int) -> PrefixError:
        """The error of the first ``size`` atoms. It is kept, since simplex weights of thousands of atoms take seconds."""
        if size not in self._errors:
            span, explained = self.span, size
            if self.own is not None:
                weights, explained = self._given_weights(self.own, size), span.size
                excess = span.excess_of_given(weights, size)
            elif self.last is not None and size == span.size:
                weights, excess = self.last, span.excess(self.last, size)
            else:
                equations = span.equations(size)
                if self.is_orthogonal(size):  # free weights are then 0 instead of rounding errors
                    equations = replace(equations, y=np.zeros(size))
                weights = solved(self.kind, equations, self.mass)
                excess = 0.0 if self.kind == "free" else span.excess(weights, size)
            rest = self.residual
            squares = np.array([rest.square, rest.low, rest.high]) + span.energy_after(explained)
            norms = span.energy(explained) + squares if rest.whole is None else np.full(3, rest.whole)
            of_zero = np.inf if excess > 0 else 0.0
            errors = np.sqrt(np.divide(squares + excess, norms, out=np.full(3, of_zero), where=norms > 0))
            # if both ends are equal, rounding may put the estimate outside of the interval
            interval = (float(errors.min()), float(errors.max()))
            self._errors[size] = PrefixError(float(errors[0]), interval, float(norms[0]), excess, weights)
        return self._errors[size]

    def _given_weights(self, own: Array, size: int) -> Array:
        """Given weights. The weights of a prefix are rescaled to the sum of all."""
        magnitude = float(np.abs(own[:size]).sum())
        if size == len(own):
            return own
        if magnitude == 0:  # the selector gave these atoms no weight
            return np.full(size, self.mass / size)
        return own[:size] * (float(np.abs(own).sum()) / magnitude)

    def is_orthogonal(self, size: int) -> bool:
        """Whether the projection of f onto the first ``size`` atoms is 0 up to rounding."""
        return float(np.sqrt(self.span.energy(min(size, self.span.size)))) <= ZERO_NORM * self.total

    def _squares(self, residual: float) -> Array | None:
        """The squared relative error of every prefix; None if each needs a solve."""
        if not isinstance(self.span, FactoredSpan) or self.kind not in ("free", "sum_to_one"):
            return None
        excess = 0.0 if self.kind == "free" else self.span.excess_of_sum(self.mass)
        total = self.span.energy(self.span.size) + residual if self.residual.whole is None else self.residual.whole
        return np.asarray((self.span.energies_after() + residual + excess) / total if total > 0 else np.zeros(self.span.size))

    def path(self, size: int) -> Path:
        """The errors of the prefixes up to ``size``. If each needs a solve, some sizes are omitted."""
        squares = self._squares(self.residual.square)
        sizes = np.arange(1, size + 1)
        if squares is not None:
            return Path(sizes, np.sqrt(squares[:size]))
        if size > ALL_SIZES_UP_TO or self.kind == "simplex" or not isinstance(self.span, FactoredSpan):
            sizes = np.unique(np.geomspace(1, size, PATH_SIZES).round().astype(np.int64))
        return Path(sizes, np.array([self.error(int(m)).relative for m in sizes]))

    def smallest(self, tol: float) -> int | None:
        """The smallest size with an interval that ends within tol, or None."""
        if self.error(len(self.atoms)).interval[1] > tol:
            return None
        squares = self._squares(self.residual.high)
        if squares is not None:  # if tol equals the end of the interval, rounding may exclude every size
            return int(np.append(np.flatnonzero(squares <= tol**2), len(squares) - 1)[0]) + 1
        low, high = 0, len(self.atoms)  # the error decreases with the size, or nearly so: bisect
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.error(middle).interval[1] <= tol else (middle, high)
        return high

    def state(self, size: int, bounds: Bounds | None = None) -> tuple[SmallMean, Certificate]:
        """The mean of the first ``size`` atoms and its certificate; ``bounds`` by default from the covering radii."""
        kernel, d = self.kernel, self.atoms.shape[1]
        error = self.error(size)
        if bounds is None:
            nu = float(self.covered[size - 1]) if self.covered is not None and size <= len(self.covered) else None
            bounds = Bounds.from_incoherence(max(self.total - float(self.magnitudes[:size].sum()), 0.0), nu)
        # the bounds hold for the best weights, and with rounded coordinates these weights are not the best
        beyond = error.excess if self.residual.whole is None else error.excess + self.residual.high
        bound, theorem = bounds.best(beyond, self.kind if self.residual.whole is None else "free")
        log_energy = kernel.log_energy(d)
        energy, scale = exponential(log_energy), exponential(log_energy / 2)

        magnitude = float(np.abs(error.weights).sum())

        certificate = Certificate(
            relative_error=error.relative,
            interval=error.interval,
            confidence=self.confidence,
            method=self.residual.method,
            norm=float(np.sqrt(error.square_norm)) * scale,
            energy=energy,
            bound=None if bound is None else bound * scale,
            theorem_bound=None if theorem is None else theorem * scale,
            sup_bound=bound * energy if bound is not None and kernel.space == "rkhs" else None,
            incoherence=None if bounds.incoherence is None else bounds.incoherence * energy,
            negative_mass=float(np.maximum(-error.weights, 0.0).sum()) / magnitude if magnitude > 0 else 0.0,
            radius=None if bounds.radius is None else kernel.length(bounds.radius, d),
            bandwidth=bandwidth_of(kernel),
        )
        return mean_of(self.atoms[:size], error.weights, kernel), certificate
