"""Weights for given atoms: the best approximation of f in their span, and in subsets of it.

With K the atoms' Gram matrix and κ the inner products of f with their bumps, the free optimum is α = K⁻¹κ. One Cholesky
factor K = L Lᵀ in the order of the atoms gives it for every prefix: with y = L⁻¹κ the first j atoms explain the energy Σ_{i≤j} yᵢ²
of ‖f‖², and their weights are one triangular solve. Any other weights α' lose exactly ‖Lᵀα' − y‖² more (Pythagoras).

=====================  ==================================================================================================
free                   K⁻¹κ (Cruz Cortés & Scott 2017, eq. 4)
sum_to_one             the best with the mass of f (2014, eq. 8)
clipped                the free ones, negative ones set to 0, rescaled to the mass of f (2014, α⁽¹⁾)
simplex_projection     the Euclidean projection of the free ones onto the simplex (2017, Section V-B)
simplex                the best on the simplex: a quadratic program
own                    those that the selector itself gives: counts, equal shares, a line search; not the best of anything
=====================  ==================================================================================================

All in units where every bump has norm 1. O(m³/3) up to `CHOLESKY_UP_TO` atoms, conjugate gradients of O(m²) a step beyond.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import LinearOperator, cg

from reduset._engine.factor import cholesky_dropping
from reduset.radial import Array, Kernel

KINDS = ("free", "sum_to_one", "clipped", "simplex_projection", "simplex")
OWN = "own"
CHOLESKY_UP_TO = 8000
PRECONDITIONER_ENTRIES = 40_000_000
CG_TOLERANCE, CG_STEPS = 1e-10, 400
MOST_EXCHANGES, EXCHANGES_IN_VAIN = 60, 3


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


def span(kernel: Kernel, atoms: Array, kappa: Array) -> Span:
    """Factor the atoms' Gram matrix, or prepare to iterate where it is too large to."""
    return FactoredSpan(kernel, atoms, kappa) if len(atoms) <= CHOLESKY_UP_TO else IterativeSpan(kernel, atoms, kappa)


class FactoredSpan(Span):
    """By Cholesky: every prefix at once."""

    def __init__(self, kernel: Kernel, atoms: Array, kappa: Array) -> None:
        self.L, self.kept = cholesky_dropping(kernel.product_gram(atoms, atoms))
        self._kernel, self.given = kernel, atoms
        self.atoms, self.kappa = atoms[self.kept], kappa[self.kept]
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
                warnings.warn(
                    f"conjugate gradients stopped after {CG_STEPS} steps before reaching {CG_TOLERANCE:g}; "
                    "the certificate measures the weights as they are",
                    RuntimeWarning,
                    stacklevel=2,
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
        free = self._solve("kappa", self.kappa[:size])
        if kind == "sum_to_one":
            return _with_mass(free, self._solve("ones", np.ones(size)), mass)
        if kind == "simplex":
            raise ValueError(
                f"weights='simplex' works up to {CHOLESKY_UP_TO} atoms, got {size}; "
                "use 'simplex_projection' or 'clipped', or a smaller size"
            )
        return _constrained(kind, free, mass)

    def energy(self, size: int) -> float:
        return float(self.kappa[:size] @ self._solve("kappa", self.kappa[:size]))

    def energy_after(self, size: int) -> float:
        padded = np.zeros(self.size)  # no factor to read it from: the squared distance of the two projections
        padded[:size] = self._solve("kappa", self.kappa[:size])
        return self.excess(padded, self.size)

    def excess(self, weights: Array, size: int) -> float:
        gap = weights - self._solve("kappa", self.kappa[:size])
        return max(float(gap @ self._times(gap, size)), 0.0) if gap.any() else 0.0


def weights_from(L: Array, y: Array, kind: str, mass: float) -> Array:
    """Weights of a kind from the factor L of the atoms' Gram matrix and y = L⁻¹κ."""
    if kind == "simplex":
        return _quadratic_program(L, y, mass)
    free = solve_triangular(L, y, lower=True, trans=1, check_finite=False)
    if kind == "sum_to_one":
        return _with_mass(free, cho_solve((L, True), np.ones(len(y)), check_finite=False), mass)
    return _constrained(kind, free, mass)


def _with_mass(free: Array, ones: Array, mass: float) -> Array:
    return free + ones * ((mass - free.sum()) / ones.sum())


def _constrained(kind: str, free: Array, mass: float) -> Array:
    if kind == "free":
        return free
    _require_mass(kind, mass)
    if kind == "simplex_projection":
        return project_onto_simplex(free, mass)
    clipped = np.maximum(free, 0.0)
    return clipped * (mass / clipped.sum()) if clipped.any() else np.full(len(free), mass / len(free))


def _require_mass(kind: str, mass: float) -> None:
    if not mass > 0:
        raise ValueError(f"weights={kind!r} needs a mean whose weights sum to more than 0, got {mass:g}; use weights='free'")


def project_onto_simplex(vector: Array, mass: float = 1.0) -> Array:
    """The nearest point with non-negative entries that sum to ``mass`` (sorting, O(m log m)).

    >>> import numpy as np
    >>> from reduset.weigh import project_onto_simplex
    >>> project_onto_simplex(np.array([0.9, 0.5, -0.2]))
    array([0.7, 0.3, 0. ])
    """
    falling = np.sort(vector)[::-1]
    shift = (np.cumsum(falling) - mass) / np.arange(1, len(vector) + 1)
    last = int(np.flatnonzero(falling > shift)[-1])
    return np.maximum(vector - shift[last], 0.0)


def simplex_by_exchange(K: Array, kappa: Array, mass: float, inside: NDArray[np.bool_]) -> Array | None:
    """min αᵀKα − 2αᵀκ over α ≥ 0, Σα = mass, from a guess of which weights are above 0; None where that does not settle.

    Block principal pivoting (Júdice & Pires 1994): the equations are solved for those inside, then all that broke a sign change
    sides; once that stops helping, only the last of them does. From a good guess one or two factorisations of K suffice, where the
    general program begins anew. The bumps need not have norm 1.
    """
    scale = 1 / np.sqrt(np.diagonal(K))
    inside = inside.copy() if inside.any() else np.ones(len(K), np.bool_)
    unit, goal = K * scale * scale[:, None], kappa * scale
    fewest, chances = len(K) + 1, EXCHANGES_IN_VAIN
    for _ in range(MOST_EXCHANGES):
        rows = np.flatnonzero(inside)
        factor, failed = dpotrf(unit[np.ix_(rows, rows)], lower=1, clean=0)
        if failed:
            return None
        solved = cho_solve((factor, True), np.stack([goal[rows], scale[rows]], axis=1), check_finite=False)
        price = (mass - scale[rows] @ solved[:, 0]) / (scale[rows] @ solved[:, 1])
        value = solved[:, 0] + price * solved[:, 1]
        slack = unit[:, rows] @ value - goal - price * scale
        broken = slack < -1e-12 * max(np.abs(goal).max(), np.abs(value).max())
        broken[rows] = value < 0
        count = int(broken.sum())
        if not count:
            found = np.zeros(len(K))
            found[rows] = value * scale[rows]
            return found
        if count < fewest:
            fewest, chances = count, EXCHANGES_IN_VAIN
        elif chances:
            chances -= 1
        else:
            broken[: np.flatnonzero(broken)[-1]] = False
        inside ^= broken
        if not inside.any():
            return None
    return None


def _quadratic_program(L: Array, y: Array, mass: float) -> Array:
    """min ‖Lᵀα − y‖ over α ≥ 0, Σα = mass, as one non-negative least-squares problem.

    On the simplex Lᵀα − y = Bp with B = mass·Lᵀ − y1ᵀ and p = α/mass. Minimising ‖Bp‖² + (1ᵀp − 1)² over p ≥ 0 finds the same
    direction: at the best length of any direction its value is an increasing function of ‖Bp‖ with 1ᵀp = 1.
    """
    from scipy.optimize import nnls  # a tenth of the time that importing this package takes, for one kind of weights

    _require_mass("simplex", mass)
    size = len(y)
    gaps = mass * L.T - y[:, None]
    gaps /= np.abs(gaps).max() or 1.0  # beside the row of ones, whatever the units of f are
    system = np.vstack([gaps, np.ones(size)])
    goal = np.zeros(size + 1)
    goal[-1] = 1.0
    try:
        solution, _ = nnls(system, goal, maxiter=30 * size)
    except RuntimeError as error:
        raise RuntimeError(
            f"the quadratic program for weights='simplex' did not converge at {size} atoms; use 'clipped'"
        ) from error
    return solution * (mass / solution.sum())
