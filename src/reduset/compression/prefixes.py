"""A nested family: everything that can be said of every prefix of the atoms without the data.

One measurement of the residual at the largest size gives the error of every prefix, because the energies that later atoms add are
known exactly: ‖f − P_j f‖² = ‖f − P_m f‖² + Σ_{j<i≤m} yᵢ² (Pythagoras).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine import cached_property
from reduset._types import Array
from reduset.certificate import Certificate
from reduset.certificate.bounds import Bounds
from reduset.certificate.cancelling import NOTHING
from reduset.certificate.certificate import bandwidth_of, negative_share
from reduset.certificate.probe import Measurement
from reduset.kernels import Kernel
from reduset.kernels.base import exponential
from reduset.mixture.component_mean import SmallMean, mean_of
from reduset.weights import FactoredSpan, Span, solved

PATH_SIZES, EVERY_UP_TO = 24, 300  # where weights must be found anew at every size


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
    """The relative error of one prefix, and what it was made of, in units where every bump has norm 1."""

    relative: float
    interval: tuple[float, float]
    square_norm: float  # ‖f‖²
    excess: float  # what the weights lose beyond the best
    weights: Array


@dataclass(frozen=True)
class Prefixes:
    """The atoms in order, one residual, and one kind of weights.

    Attributes
    ----------
    span : of all the atoms
    residual : ‖f − Pf‖² for all of them
    kind : of the weights
    mass, total : Σw and Σ|w| of f
    shares : (m,) |w| of each atom's own point
    covered : g / C at the covering radius after each atom, for as many as are known
    own : (k,) weights of all the atoms given, where these are not solved for: the selector's own
    last : (m,) weights of all the atoms, where they are made of those solved for; fewer atoms have the ones solved for
    """

    kernel: Kernel
    span: Span
    residual: Measurement
    kind: str
    mass: float
    total: float
    shares: Array
    covered: Array | None
    confidence: float
    own: Array | None = None
    last: Array | None = None

    @classmethod
    def of_new_points(
        cls, kernel: Kernel, span: Span, residual: Measurement, kind: str, confidence: float, mass: float = 1.0, total: float = 1.0
    ) -> Prefixes:
        """For atoms that are no points of f, so that none has a share of its own, and whose covering radii are not known."""
        return cls(kernel, span, residual, kind, mass, total, np.zeros(span.size), None, confidence)

    @property
    def atoms(self) -> Any:
        """The atoms in order; the redundant ones are among them only where they have weights of their own."""
        return self.span.atoms if self.own is None else self.span.given

    @cached_property
    def _known(self) -> dict[int, PrefixError]:
        return {}

    def error(self, size: int) -> PrefixError:
        """The error of the first ``size`` atoms, found once: on the simplex the weights of thousands take seconds."""
        if size not in self._known:
            self._known[size] = self._found(size)
        return self._known[size]

    def _found(self, size: int) -> PrefixError:
        span = self.span
        if self.own is not None:
            return self._own_error(self.own, size)
        if self.last is not None and size == span.size:
            return self._error(self.last, span.excess(self.last, size), size)
        weights = self._weights(size)
        return self._error(weights, 0.0 if self.kind == "free" else span.excess(weights, size), size)

    def is_orthogonal(self, size: int) -> bool:
        """Whether the projection of f onto the first ``size`` atoms is 0 up to rounding."""
        return float(np.sqrt(self.span.energy(min(size, self.span.size)))) <= NOTHING * self.total

    def _weights(self, size: int) -> Array:
        """Weights of the kind asked for; free weights of a mean that is orthogonal to the atoms are 0, not their rounding."""
        equations = self.span.equations(size)
        if self.is_orthogonal(size):
            equations = replace(equations, free=lambda: np.zeros(size))
        return solved(self.kind, equations, self.mass)

    def _own_error(self, own: Array, size: int) -> PrefixError:
        """A prefix of the selector's own weights, rescaled to the sum of all of them."""
        some = float(np.abs(own[:size]).sum())
        if size == len(own):
            weights = own
        elif some == 0:  # atoms that the selector took without giving them a weight
            weights = np.full(size, self.mass / size)
        else:
            weights = own[:size] * (float(np.abs(own).sum()) / some)
        return self._error(weights, self.span.excess_of_given(weights, size), self.span.size)

    def _error(self, weights: Array, excess: float, size: int) -> PrefixError:
        rest = self.residual.plus(self.span.energy_after(size))
        energy = self.span.energy(size)
        estimate, *ends = (
            float(np.sqrt((r + excess) / whole)) if whole > 0 else (np.inf if excess > 0 else 0.0)
            for r, whole in ((r, energy + r if rest.whole is None else rest.whole) for r in (rest.square, rest.low, rest.high))
        )
        around = (estimate, *ends)  # where the ends meet, rounding may leave the estimate beside them
        norm = energy + rest.square if rest.whole is None else rest.whole
        return PrefixError(estimate, (min(around), max(around)), norm, excess, weights)

    def _squares(self, residual: float) -> Array | None:
        """The squared relative error of every prefix, where that takes no new solve."""
        if not isinstance(self.span, FactoredSpan) or self.kind not in ("free", "sum_to_one"):
            return None
        excess = 0.0 if self.kind == "free" else self.span.excess_of_sum(self.mass)
        total = self.span.energy(self.span.size) + residual if self.residual.whole is None else self.residual.whole
        return np.asarray((self.span.energies_after() + residual + excess) / total if total > 0 else np.zeros(self.span.size))

    def path(self, size: int) -> Path:
        """The errors of the prefixes up to ``size``: of all, or of some where weights must be found anew for each."""
        squares = self._squares(self.residual.square)
        sizes = np.arange(1, size + 1)
        if squares is not None:
            return Path(sizes, np.sqrt(squares[:size]))
        if size > EVERY_UP_TO or self.kind == "simplex" or not isinstance(self.span, FactoredSpan):
            sizes = np.unique(np.geomspace(1, size, PATH_SIZES).round().astype(np.int64))
        return Path(sizes, np.array([self.error(int(m)).relative for m in sizes]))

    def smallest(self, tol: float) -> int | None:
        """The first size whose interval ends within tol, if any does."""
        if self.error(len(self.atoms)).interval[1] > tol:
            return None
        squares = self._squares(self.residual.high)
        if squares is not None:  # where tol is the very end of the interval, rounding may leave none
            return int(np.append(np.flatnonzero(squares <= tol**2), len(squares) - 1)[0]) + 1
        low, high = 0, len(self.atoms)  # the error falls with the size, or nearly so: halve
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.error(middle).interval[1] <= tol else (middle, high)
        return high

    def state(self, size: int, bounds: Bounds | None = None) -> tuple[SmallMean, Certificate]:
        """The mean of the first ``size`` atoms and its certificate; bounds from the covering radii where none are given."""
        kernel, d = self.kernel, self.atoms.shape[1]
        error = self.error(size)
        if bounds is None:
            nu = float(self.covered[size - 1]) if self.covered is not None and size <= len(self.covered) else None
            bounds = Bounds.from_incoherence(max(self.total - float(self.shares[:size].sum()), 0.0), nu)
        # bounds are those of the best weights, which these are not where coordinates are rounded
        beyond = error.excess if self.residual.whole is None else error.excess + self.residual.high
        bound, theorem = bounds.best(beyond, self.kind if self.residual.whole is None else "free")
        log_energy = kernel.log_energy(d)
        energy, scale = exponential(log_energy), exponential(log_energy / 2)

        def times(value: float | None, factor: float) -> float | None:
            return None if value is None else value * factor

        certificate = Certificate(
            relative_error=error.relative,
            interval=error.interval,
            confidence=self.confidence,
            method=self.residual.method,
            norm=float(np.sqrt(error.square_norm)) * scale,
            energy=energy,
            bound=times(bound, scale),
            theorem_bound=times(theorem, scale),
            sup_bound=times(bound, energy) if kernel.space == "rkhs" else None,
            incoherence=times(bounds.incoherence, energy),
            negative_mass=negative_share(error.weights),
            radius=None if bounds.radius is None else kernel.length(bounds.radius, d),
            bandwidth=bandwidth_of(kernel),
        )
        return mean_of(self.atoms[:size], error.weights, kernel), certificate
