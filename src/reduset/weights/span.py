"""Weights for given atoms: the best approximation of f in their span, and in subsets of it.

With K the atoms' Gram matrix and κ the inner products of f with their bumps, the free optimum is α = K⁻¹κ. One Cholesky
factor K = L Lᵀ in the order of the atoms gives it for every prefix: with y = L⁻¹κ the first j atoms explain the energy Σ_{i≤j} yᵢ²
of ‖f‖², and their weights are one triangular solve. Any other weights α' lose exactly ‖Lᵀα' − y‖² more (Pythagoras).

All in units where every bump has norm 1. O(m³/3) up to `CHOLESKY_UP_TO` atoms, conjugate gradients of O(m²) a step beyond.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from reduset._engine import cached_property, cholesky_dropping
from reduset._messages import warn
from reduset._types import Array
from reduset.kernels import Kernel
from reduset.mixture.pieces import ComponentPieces, Pieces, gram_of
from reduset.weights.kinds import PROGRAM, WEIGHTINGS, made_from, weights_from

CHOLESKY_UP_TO = 8000
PRECONDITIONER_ENTRIES = 40_000_000
CG_TOLERANCE, CG_STEPS = 1e-10, 400


class Span(ABC):
    """The span of the atoms' bumps, with what f looks like from inside it.

    Attributes
    ----------
    given : (k, d) the atoms given, in order
    atoms : (m, d), redundant ones already dropped
    kappa : (m,) inner products of f with the atoms' bumps
    kept : mask over the atoms given, False where redundant
    """

    given: Array
    atoms: Array
    kappa: Array
    kept: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return len(self.atoms)

    @abstractmethod
    def facing(self, kappa: Array) -> Span:
        """The span of the same atoms for another f, from its κ at all the atoms given; what the atoms alone decide is shared."""

    @abstractmethod
    def weights(self, kind: str, mass: float, size: int) -> Array:
        """Weights of that kind for the first ``size`` atoms."""

    @abstractmethod
    def energy(self, size: int) -> float:
        """‖Pf‖² for the projection P onto the span of the first ``size`` atoms."""

    @abstractmethod
    def energy_after(self, size: int) -> float:
        """‖Pf‖² that only the atoms after the first ``size`` explain."""

    @abstractmethod
    def excess(self, weights: Array, size: int) -> float:
        """‖Pf − Σ αᵢ φ(·, cᵢ)‖² for weights of the first ``size`` atoms."""

    def excess_of_given(self, weights: Array, size: int) -> float:
        """‖Pf − Σ αᵢ φ(·, cᵢ)‖², P onto all of the span, for weights of the first ``size`` atoms given, redundant ones included."""
        padded = np.zeros(self.size)
        padded[:size] = weights
        return self.excess(padded, self.size)


def span_of(kernel: Kernel, atoms: Pieces, kappa: Array) -> Span:
    """Factor the atoms' Gram matrix, or prepare to iterate where it is too large to."""
    if len(atoms) <= CHOLESKY_UP_TO:
        return FactoredSpan(kernel, atoms, kappa)
    if isinstance(atoms, ComponentPieces):
        raise ValueError(f"size must be at most {CHOLESKY_UP_TO:,} for components, got {len(atoms):,}; use pieces='atoms'")
    return IterativeSpan(kernel, atoms, kappa)


class FactoredSpan(Span):
    """By Cholesky: every prefix at once."""

    def __init__(self, kernel: Kernel, atoms: Any, kappa: Array) -> None:
        self.L, self.kept = cholesky_dropping(gram_of(kernel, atoms))
        self._kernel, self.given = kernel, atoms
        self.atoms, self.kappa = atoms if self.kept.all() else atoms[self.kept], kappa[self.kept]
        self.y = solve_triangular(self.L, self.kappa, lower=True, check_finite=False)

    def facing(self, kappa: Array) -> FactoredSpan:
        other = copy(self)
        other.kappa = kappa[self.kept]
        other.y = solve_triangular(self.L, other.kappa, lower=True, check_finite=False)
        return other

    def energy(self, size: int) -> float:
        return float(self.y[:size] @ self.y[:size])

    def energies_added(self) -> Array:
        """yᵢ², what each atom adds."""
        return self.y**2

    def energies_after(self) -> Array:
        """What the atoms after each one add."""
        return np.append(np.cumsum(self.energies_added()[::-1])[::-1][1:], 0.0)

    def energy_after(self, size: int) -> float:
        return float(np.sum(self.energies_added()[size:]))

    def excess(self, weights: Array, size: int) -> float:
        gap = self.L[:size, :size].T @ weights - self.y[:size]
        return float(gap @ gap)

    @cached_property
    def coordinates(self) -> Array:
        """The bumps of the atoms given in the orthonormal basis of the span, (k, m): L with a row for each that was dropped."""
        if self.kept.all():
            return self.L
        rows = np.empty((len(self.given), self.size))
        rows[self.kept] = self.L
        dropped = self._kernel.product_gram(self.atoms, self.given[~self.kept])
        rows[~self.kept] = solve_triangular(self.L, dropped, lower=True, check_finite=False).T
        return rows

    def excess_of_given(self, weights: Array, size: int) -> float:
        gap = weights @ self.coordinates[:size] - self.y
        return float(gap @ gap)

    def weights(self, kind: str, mass: float, size: int) -> Array:
        return weights_from(self.L[:size, :size], self.y[:size], kind, mass)

    def excess_of_sum(self, mass: float) -> Array:
        """What "sum_to_one" loses beyond "free" at every prefix: (mass − 1ᵀα)² / 1ᵀK⁻¹1."""
        ones = solve_triangular(self.L, np.ones(self.size), lower=True, check_finite=False)
        return (mass - np.cumsum(ones * self.y)) ** 2 / np.cumsum(ones**2)


class IterativeSpan(Span):
    """By preconditioned conjugate gradients, without the m × m matrix.

    The preconditioner is the Nyström approximation from the first atoms plus a multiple of the identity: a farthest-first prefix
    covers the data, so it carries the large eigenvalues.
    """

    def __init__(self, kernel: Kernel, atoms: Array, kappa: Array) -> None:
        self._kernel = kernel
        self.given = self.atoms = atoms
        self.kappa = kappa
        self.kept = np.ones(len(atoms), np.bool_)
        self._solved: dict[tuple[str, int], Array] = {}

    def facing(self, kappa: Array) -> IterativeSpan:
        return IterativeSpan(self._kernel, self.given, kappa)

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
        some = self.atoms[:rank]
        L, kept = cholesky_dropping(self._kernel.product_gram(some, some))
        tall = solve_triangular(L, self._kernel.product_gram(some[kept], self.atoms[:size]), lower=True).T
        rest = max(float(np.mean(1 - np.einsum("ij,ij->i", tall, tall))), 1e-8)
        small = np.linalg.cholesky(tall.T @ tall + rest * np.eye(tall.shape[1]))

        def apply(v: Array) -> Array:
            v = v.reshape(-1)
            return (v - tall @ cho_solve((small, True), tall.T @ v)) / rest

        return LinearOperator((size, size), matvec=apply, dtype=np.float64)

    def weights(self, kind: str, mass: float, size: int) -> Array:
        def program() -> Array:
            others = ", ".join(repr(name) for name, each in WEIGHTINGS.items() if not each.signed and each.start != PROGRAM)
            raise ValueError(f"weights={kind!r} works up to {CHOLESKY_UP_TO} atoms, got {size}; use {others}, or a smaller size")

        def free() -> Array:
            return self._solve("kappa", self.kappa[:size])

        return made_from(kind, mass, free, lambda: self._solve("ones", np.ones(size)), program)

    def energy(self, size: int) -> float:
        return float(self.kappa[:size] @ self._solve("kappa", self.kappa[:size]))

    def energy_after(self, size: int) -> float:
        padded = np.zeros(self.size)  # no factor to read it from: the squared distance of the two projections
        padded[:size] = self._solve("kappa", self.kappa[:size])
        return self.excess(padded, self.size)

    def excess(self, weights: Array, size: int) -> float:
        gap = weights - self._solve("kappa", self.kappa[:size])
        return max(float(gap @ self._times(gap, size)), 0.0) if gap.any() else 0.0
