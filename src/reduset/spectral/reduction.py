"""From data to weighted atoms: what every spectral method here starts with.

The eigenproblem of n points becomes one of m atoms, each with the mass of the points it stands for (Kingravi, Vela & Gray 2013,
Sections 3 and 4). Masses count rows: they sum to n, or to the sum of the sample weights, and a weight of 3 is a row three times.
Cost of the selection, and O(n·m) where masses are those of the nearest points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import SQUARED, assigned_distances, blocks, nearest, row_blocks
from reduset._types import Array, Floats
from reduset.compression import Compression
from reduset.kernels import Kernel, RadialKernel
from reduset.kernels.base import exponential
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.select import Selection, Selector, Shadow, as_selector
from reduset.select.contract import support
from reduset.spectral.extension import atoms_matrix
from reduset.spectral.memory import ensure_memory

WEIGHTS = ("auto", "nearest")
PAIRS_BLOCK = 1 << 20
LARGEST = 1e150  # of κ, as of coordinates: squares of what is below cannot overflow
PASSES, AIM, ENOUGH = 12, 0.97, 0.93  # of a search for wider shadows: how many, and the share of the size aimed at and taken


@dataclass(frozen=True)
class Quantisation:
    """A vector quantisation: how far points are from the atoms that stand for them."""

    shares: Array  # (n,) of the mass, summing to 1
    products: Array  # (n,) g/g(0) of each point with its atom


@dataclass(frozen=True)
class WeightedAtoms:
    """A weighted reduced set: atoms, and the mass that each stands for.

    Attributes
    ----------
    atoms : (m, d)
    masses : (m,) above 0, summing to the mass of the data
    kernel : with its bandwidth known
    indices : (m,) rows of the data, or None where atoms are new points
    n_samples : how many rows there were
    quantisation : None where the masses are not those of points moved to their atoms
    """

    atoms: Array
    masses: Array
    kernel: Kernel
    indices: NDArray[np.int64] | None
    n_samples: int
    quantisation: Quantisation | None

    @property
    def size(self) -> int:
        return len(self.atoms)

    @property
    def mass(self) -> float:
        return float(self.masses.sum())

    @property
    def shares(self) -> Array:
        """The masses as shares of the whole."""
        return self.masses / self.mass

    @property
    def peak(self) -> float:
        """κ = k(x, x)."""
        return exponential(self.kernel.log_energy(self.atoms.shape[1]))

    @property
    def is_exact(self) -> bool:
        """Whether every row is an atom of its own mass, so that the atoms' eigenproblem is that of the rows."""
        if self.quantisation is None:
            return False
        present = self.quantisation.shares > 0
        return self.size == np.count_nonzero(present) and bool((self.quantisation.products[present] == 1.0).all())

    def rows_in(self, X: Floats) -> NDArray[np.int64] | None:
        """Which rows of X the atoms are, or None where they are not rows of it, each another."""
        rows = self.indices
        if rows is None or len(rows) != self.size or rows.max() >= len(X) or len(np.unique(rows)) < len(rows):
            return None
        alike = all(np.array_equal(X[rows[a:b]], self.atoms[a:b]) for a, b in row_blocks(rows, X.shape[1]))
        return rows if alike else None

    def products(self, single: bool = False) -> Array:
        """k/κ of all pairs of atoms, (m, m); ``single`` where 1e-7 will do."""
        ensure_memory(self.size)
        return atoms_matrix(self.kernel, self.atoms, single)

    def gram(self, single: bool = False) -> Array:
        """k of all pairs of atoms, (m, m); ``single`` where 1e-7 of κ will do."""
        if not 1 / LARGEST < self.peak < LARGEST:
            exponent = self.kernel.log_energy(self.atoms.shape[1])
            raise ValueError(
                f"kernel={self.kernel!r} has k(x, x) = exp({exponent:.4g}) in {self.atoms.shape[1]} dimensions, where products "
                "leave the range of floating point; use normalized=False and space='rkhs', which make it 1"
            )
        matrix = self.products(single)
        if self.peak != 1.0:
            matrix *= self.peak
        return matrix


def reduce_rows(
    X: Floats,
    kernel: Kernel | None,
    reduce: Any,
    *,
    ell: float = 4.0,
    size: int | None = None,
    weights: str = "auto",
    sample_weight: Any = None,
    rng: np.random.Generator,
) -> WeightedAtoms:
    """The weighted atoms that stand for the rows of X.

    Parameters
    ----------
    X : (n, d), checked
    kernel : None takes that of given atoms
    reduce : None (every row is an atom), the name of a selector, a selector, or atoms that are given: a Compression, a KernelMean
    ell : of "shadow"
    size : the number of atoms; of "shadow" the most
    weights : "auto" takes the selector's own where it has any, "nearest" the mass of the points nearest to each atom
    sample_weight : (n,), optional
    """
    _validate.one_of(weights, "weights", WEIGHTS)
    rows = np.ones(len(X)) if sample_weight is None else _validate.weights(sample_weight, len(X))
    if size is not None:
        size = _validate.whole(size, "size", 1, None, "it is a number of atoms")
        if reduce is None or is_given(reduce):
            what = None if reduce is None else f"a {type(reduce).__name__}"
            raise ValueError(f"size={size} goes with a selector, which chooses so many atoms; got reduce={what}")
    if is_given(reduce):
        return _as_given(X, rows, kernel, reduce, weights)
    full = KernelMean.from_samples(X, kernel, sample_weight)
    if reduce is None:
        points, kept = support(full)
        kept = np.arange(len(X)) if kept is None else kept
        masses = rows[kept]
        exact = Quantisation(masses / masses.sum(), np.ones(len(kept)))
        return WeightedAtoms(np.array(points, np.float64), masses, full.kernel, kept, len(X), exact)
    selector = Shadow(ell) if isinstance(reduce, str) and reduce == "shadow" else _selector(reduce)
    if size is None and not selector.ending:
        raise ValueError(f"reduce={reduce!r} needs size, the number of atoms; only 'shadow' finds its own")
    chosen = selector.select(full, len(X) if size is None or selector.ending else min(size, len(X)), rng)
    if isinstance(selector, Shadow) and size is not None and len(chosen.atoms) > size:
        chosen = _widened(full, selector.ell, chosen, size, rng)
        weights = "nearest"  # wide balls overlap, and a row is better off with the nearest atom than with the first
    if chosen.weights is None or weights == "nearest":
        return _by_nearest(full, rows, chosen.atoms, chosen.indices)
    quantisation = None
    if chosen.owners is not None:
        quantisation = Quantisation(full.weights, _products_with(full, chosen.atoms, chosen.owners))
    return _kept(full, chosen.atoms, chosen.weights * rows.sum(), chosen.indices, quantisation)


def _selector(reduce: Any) -> Selector:
    try:
        return as_selector(reduce)
    except ValueError as error:
        text = str(error).replace("select must be one of", "reduce must be None, a Compression, a KernelMean, one of")
        raise ValueError(text) from error


def _widened(full: KernelMean, ell: float, chosen: Selection, size: int, rng: np.random.Generator) -> Selection:
    """At most ``size`` shadows that still cover all points: wider ones, by interpolation of log count over log ell.

    The heaviest ones of too many would leave the sparse parts bare, and tear a manifold.
    """
    high, low, best, step = (np.log(ell), np.log(len(chosen.atoms))), None, None, 0.5
    for _ in range(PASSES):
        excess = max(high[1] - np.log(AIM * size), 0.1)
        if low is None:
            guess, step = high[0] - step * excess, 2 * step
        else:
            guess = high[0] - (high[0] - low[0]) * np.clip(excess / max(high[1] - low[1], excess), 0.1, 0.9)
        found = Shadow(float(np.exp(guess))).select(full, full.size, rng)
        place = guess, np.log(len(found.atoms))
        if len(found.atoms) > size:
            high = place
            continue
        low = place
        if best is None or len(found.atoms) > len(best.atoms):
            best = found
        if len(found.atoms) >= ENOUGH * size:
            break
    if best is None:  # some points are close to none, however wide a shadow
        return replace(chosen, atoms=chosen.atoms[:size], indices=None if chosen.indices is None else chosen.indices[:size])
    return best


def _products_with(full: KernelMean, atoms: Array, owners: NDArray[np.int64]) -> Array:
    """g/g(0) of each point with the atom that stands for it; 1 of points of no weight, which need none."""
    kernel, d, out = full.kernel, full.dimension, np.ones(full.size)
    if not isinstance(kernel, RadialKernel):
        for j in range(len(atoms)):
            its = np.flatnonzero(owners == j)
            out[its] = np.clip(kernel.product_gram(full.atoms[its], atoms[j : j + 1])[:, 0], -1.0, 1.0)
        return out
    shape = kernel.product(d)
    metric = shape.profile.ranking
    gaps = assigned_distances(full.atoms, atoms, owners, kernel.frame(full.atoms, shape), metric)
    return kernel.product_at(np.sqrt(gaps) if metric == SQUARED else gaps, d)


def is_given(reduce: Any) -> bool:
    """Whether the atoms are there already."""
    return isinstance(reduce, Compression | KernelMean | Mixture)


def _as_given(X: Floats, rows: Array, kernel: Kernel | None, small: Compression | KernelMean, weights: str) -> WeightedAtoms:
    mean, indices = (small.mean, small.indices) if isinstance(small, Compression) else (small, None)
    if isinstance(mean, Mixture):
        raise TypeError(
            f"reduce must have atoms, and the mean of this {type(small).__name__} has components ({mean!r}); compress with "
            "pieces='atoms', or give a size"
        )
    what = type(small).__name__
    if mean.dimension != X.shape[1]:
        raise ValueError(f"reduce must be a {what} of points of {X.shape[1]} columns like X, got {mean.dimension}")
    if kernel is not None and kernel != mean.kernel:
        raise ValueError(f"kernel={kernel!r} is not that of the {what}, {mean.kernel!r}; leave it out, or use small.reweigh")
    full, atoms = KernelMean(X, rows / rows.sum(), mean.kernel), np.asarray(mean.atoms, np.float64)
    if weights == "nearest":
        return _by_nearest(full, rows, atoms, indices)
    if mean.weights.min() < 0:
        raise ValueError(
            f"the weights of a {what} must not be negative here, got {mean.weights.min():.3g}; use weights='nearest', "
            "or compress with weights='simplex'"
        )
    return _kept(full, atoms, mean.weights * (rows.sum() / mean.mass), indices, None)


def _by_nearest(full: KernelMean, rows: Array, atoms: Array, indices: NDArray[np.int64] | None) -> WeightedAtoms:
    """Each atom with the mass of the points nearest to it."""
    owner, products = nearest_atoms(full.kernel, full.atoms, atoms)
    masses = np.bincount(owner, rows, len(atoms)).astype(np.float64)
    return _kept(full, atoms, masses, indices, Quantisation(rows / rows.sum(), products))


def _kept(full: KernelMean, atoms: Array, masses: Array, rows: Any, quantisation: Quantisation | None) -> WeightedAtoms:
    """Without the atoms that have no mass, which are as good as absent."""
    present = masses > 0
    if not present.all():
        atoms, masses, rows = atoms[present], masses[present], None if rows is None else rows[present]
    return WeightedAtoms(np.array(atoms), np.array(masses), full.kernel, rows, full.size, quantisation)


def nearest_atoms(kernel: Kernel, points: Floats, atoms: Array) -> tuple[NDArray[np.int32], Array]:
    """The atom nearest to each point, and g/g(0) of the two."""
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(points.shape[1])
        metric = shape.profile.ranking
        frame, scale = kernel.frame(points, shape).sized(points)
        owner, distances = nearest(points, atoms, frame, metric)
        return owner, kernel.product_at(scale * distances, points.shape[1])
    owner, products = np.empty(len(points), np.int32), np.empty(len(points))
    for a, b in blocks(len(points), max(1, PAIRS_BLOCK // len(atoms))):
        near = kernel.product_gram(points[a:b], atoms)
        owner[a:b] = near.argmax(axis=1)
        products[a:b] = np.clip(near.max(axis=1), -1.0, 1.0)
    return owner, products
