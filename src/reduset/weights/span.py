"""The span of given atoms: the projection of f onto it, and weights for the atoms and for each prefix of them.

Let K be the Gram matrix of the atoms and κ their inner products with f. One Cholesky factor K = L Lᵀ in the order of the atoms
is used for every prefix. With y = L⁻¹κ, the first j atoms explain the energy Σ_{i≤j} yᵢ² of ‖f‖². Their free weights K⁻¹κ need one
triangular solve. Any other weights α' increase the squared error by exactly ‖Lᵀα' − y‖² (Pythagoras).

All kernel functions are scaled to norm 1. Cost: O(m³/3) up to `CHOLESKY_UP_TO` atoms, O(m²) a step of conjugate gradients beyond.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from reduset._engine import cached_property, cholesky_dropping
from reduset._messages import warn
from reduset._types import Array
from reduset.kernels import Kernel
from reduset.mixture import ComponentPieces, Pieces
from reduset.weights.weightings import WEIGHTINGS, Equations, solved

CHOLESKY_UP_TO = 8000
PRECONDITIONER_ENTRIES = 40_000_000
CG_TOLERANCE, CG_STEPS = 1e-10, 400


class Span(ABC):
    """The span of the atoms' kernel functions and the projection of f onto it.

    Attributes
    ----------
    given : (k, d) the atoms given, in order
    atoms : (m, d) without redundant ones
    kappa : (m,) inner products of f with the atoms' kernel functions
    kept : (k,) mask over the atoms given, False for redundant ones
    size : the number m
    """

    given: Array
    atoms: Array
    kappa: Array
    kept: NDArray[np.bool_]
    size: int

    @abstractmethod
    def facing(self, kappa: Array) -> Span:
        """The span of the same atoms for another f, from its κ at all atoms given. The factor is shared."""

    @abstractmethod
    def equations(self, size: int) -> Equations:
        """The equations of the weights of the first ``size`` atoms."""

    @abstractmethod
    def energy(self, size: int) -> float:
        """‖Pf‖² for the projection P onto the span of the first ``size`` atoms."""

    @abstractmethod
    def energy_after(self, size: int) -> float:
        """The part of ‖Pf‖² that only the atoms after the first ``size`` explain."""

    @abstractmethod
    def excess(self, weights: Array, size: int) -> float:
        """‖Pf − Σ αᵢ φ(·, cᵢ)‖² for weights of the first ``size`` atoms."""

    def weights(self, kind: str, mass: float, size: int) -> Array:
        """Weights by a registered weighting for the first ``size`` atoms."""
        return solved(kind, self.equations(size), mass)

    def excess_of_given(self, weights: Array, size: int) -> float:
        """‖Pf − Σ αᵢ φ(·, cᵢ)‖² for weights of the first ``size`` atoms given, including redundant ones.

        P is the projection onto the whole span.
        """
        padded = np.zeros(self.size)
        padded[:size] = weights
        return self.excess(padded, self.size)


def span_of(kernel: Kernel, atoms: Pieces, kappa: Array) -> Span:
    """The span by a factor of the atoms' Gram matrix, or by iteration if there are more than `CHOLESKY_UP_TO` atoms."""
    if len(atoms) <= CHOLESKY_UP_TO:
        return FactoredSpan(kernel, atoms, kappa)
    if isinstance(atoms, ComponentPieces):
        raise ValueError(f"size must be at most {CHOLESKY_UP_TO:,} for components, got {len(atoms):,}; use pieces='atoms'")
    return IterativeSpan(kernel, atoms, kappa)


class FactoredSpan(Span):
    """The span by a Cholesky factor, for all prefixes at once."""

    def __init__(self, kernel: Kernel, atoms: Any, kappa: Array) -> None:
        gram = atoms.gram(kernel) if isinstance(atoms, ComponentPieces) else kernel.product_gram(atoms, atoms)
        self.L, self.kept = cholesky_dropping(gram)
        self._kernel, self.given = kernel, atoms
        self.atoms, self.kappa = atoms if self.kept.all() else atoms[self.kept], kappa[self.kept]
        self.y, self.size = solve_triangular(self.L, self.kappa, lower=True, check_finite=False), len(self.kappa)

    def facing(self, kappa: Array) -> FactoredSpan:
        other = copy(self)
        other.kappa = kappa[self.kept]
        other.y = solve_triangular(self.L, other.kappa, lower=True, check_finite=False)
        return other

    def equations(self, size: int) -> Equations:
        return Equations(self.L[:size, :size], self.y[:size])

    def energy(self, size: int) -> float:
        return float(self.y[:size] @ self.y[:size])

    def energies_after(self) -> Array:
        """(m,) the energy that all atoms after each atom add."""
        return np.append(np.cumsum(self.y[::-1] ** 2)[::-1][1:], 0.0)

    def energy_after(self, size: int) -> float:
        return float(np.sum(self.y[size:] ** 2))

    def excess(self, weights: Array, size: int) -> float:
        difference = self.L[:size, :size].T @ weights - self.y[:size]
        return float(difference @ difference)

    @cached_property
    def coordinates(self) -> Array:
        """(k, m) coordinates of the given atoms' kernel functions in an orthonormal basis: L with a row for each dropped atom."""
        if self.kept.all():
            return self.L
        rows = np.empty((len(self.given), self.size))
        rows[self.kept] = self.L
        dropped = self._kernel.product_gram(self.atoms, self.given[~self.kept])
        rows[~self.kept] = solve_triangular(self.L, dropped, lower=True, check_finite=False).T
        return rows

    def excess_of_given(self, weights: Array, size: int) -> float:
        difference = weights @ self.coordinates[:size] - self.y
        return float(difference @ difference)

    def excess_of_sum(self, mass: float) -> Array:
        """(m,) the excess of "sum_to_one" weights at every prefix: (mass − 1ᵀα)² / 1ᵀK⁻¹1."""
        ones = solve_triangular(self.L, np.ones(self.size), lower=True, check_finite=False)
        return (mass - np.cumsum(ones * self.y)) ** 2 / np.cumsum(ones**2)


class IterativeSpan(Span):
    """The span by preconditioned conjugate gradients, without the m × m matrix.

    The preconditioner is the Nyström approximation from the first atoms plus a multiple of the identity. A farthest-first prefix
    covers the data, so it carries the large eigenvalues.
    """

    def __init__(self, kernel: Kernel, atoms: Array, kappa: Array) -> None:
        self._kernel = kernel
        self.given = self.atoms = atoms
        self.kappa, self.size = kappa, len(atoms)
        self.kept = np.ones(len(atoms), np.bool_)
        self._solved: dict[tuple[str, int], Array] = {}

    def facing(self, kappa: Array) -> IterativeSpan:
        return IterativeSpan(self._kernel, self.given, kappa)

    def equations(self, size: int) -> Equations:
        return _IterativeEquations(np.empty((0, 0)), self.kappa[:size], self)

    def _free(self, size: int) -> Array:
        return self._solve("kappa", self.kappa[:size])

    def _times(self, vector: Array, size: int) -> Array:
        return self._kernel.product_sums(self.atoms[:size], vector, self.atoms[:size])

    def _solve(self, name: str, right: Array) -> Array:
        size = len(right)
        if (name, size) not in self._solved:
            operator = LinearOperator((size, size), matvec=lambda v: self._times(v, size), dtype=np.float64)
            solution, failed = cg(operator, right, rtol=CG_TOLERANCE, maxiter=CG_STEPS, M=self._preconditioner(size))
            if failed:
                warn(
                    f"conjugate gradients stopped after {CG_STEPS} steps before reaching {CG_TOLERANCE:g}; "
                    "the certificate measures the weights as they are",
                    RuntimeWarning,
                )
            self._solved[name, size] = solution
        return self._solved[name, size]

    def _preconditioner(self, size: int) -> LinearOperator:
        rank = max(1, min(size, PRECONDITIONER_ENTRIES // size, 2000))
        first = self.atoms[:rank]
        L, kept = cholesky_dropping(self._kernel.product_gram(first, first))
        tall = solve_triangular(L, self._kernel.product_gram(first[kept], self.atoms[:size]), lower=True).T
        rest = max(float(np.mean(1 - np.einsum("ij,ij->i", tall, tall))), 1e-8)
        small = np.linalg.cholesky(tall.T @ tall + rest * np.eye(tall.shape[1]))

        def apply(v: Array) -> Array:
            v = v.reshape(-1)
            return (v - tall @ cho_solve((small, True), tall.T @ v)) / rest

        return LinearOperator((size, size), matvec=apply, dtype=np.float64)

    def energy(self, size: int) -> float:
        return float(self.kappa[:size] @ self._free(size))

    def energy_after(self, size: int) -> float:
        padded = np.zeros(self.size)  # without a factor, the squared distance of the two projections
        padded[:size] = self._free(size)
        return self.excess(padded, self.size)

    def excess(self, weights: Array, size: int) -> float:
        difference = weights - self._free(size)
        return max(float(difference @ self._times(difference, size)), 0.0) if difference.any() else 0.0


@dataclass(frozen=True)
class _IterativeEquations(Equations):
    """Equations without a factor, with κ for ``y``."""

    span: IterativeSpan

    def free(self) -> Array:
        return self.span._free(len(self.y)) if self.y.any() else self.y

    def ones(self) -> Array:
        return self.span._solve("ones", np.ones(len(self.y)))

    def on_simplex(self, mass: float) -> Array:
        others = ", ".join(repr(name) for name, other in WEIGHTINGS.items() if not (other.signed or other.optimal))
        size = len(self.y)
        raise ValueError(f"weights='simplex' works up to {CHOLESKY_UP_TO} atoms, got {size}; use {others}, or a smaller size")
