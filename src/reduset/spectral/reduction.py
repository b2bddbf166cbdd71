"""From rows to weighted atoms, the first step of every spectral method.

The eigenproblem of n rows becomes an eigenproblem of m atoms (Kingravi, Vela & Gray 2013, Sections 3 and 4). Each atom is weighted
by the mass of the rows it represents. Masses count rows: they sum to n, or to the sum of the sample weights. A weight of 3 equals
three equal rows. The cost is the selection, and O(n·m) if masses belong to the nearest rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import SQUARED, assigned_distances, blocks, map_rows, nearest, physical_memory, row_blocks
from reduset._types import Array, Floats
from reduset.compression import Compression
from reduset.kernels import Kernel, RadialKernel, exponential
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.select import Selection, Selector, Shadow, as_selector, support
from reduset.spectral.extension import atoms_matrix

WEIGHTS = ("auto", "nearest")
PAIRS_PER_BLOCK = 1 << 20
MAX_PEAK = 1e150  # Largest κ. Smaller values can be squared without overflow.
MAX_MEMORY_FRACTION = 0.8  # Largest fraction of the memory for one matrix.
MAX_PASSES, TARGET_FRACTION, ACCEPTED_FRACTION = 12, 0.97, 0.93  # Search for wider shadows, in fractions of the size.


@dataclass(frozen=True)
class Quantisation:
    """The assignment of rows to atoms.

    Attributes
    ----------
    proportions : (n,)
        Proportions of the mass. They sum to 1.
    products : (n,)
        Values g/g(0) of each row with its atom.
    """

    proportions: Array
    products: Array


@dataclass(frozen=True)
class WeightedAtoms:
    """Atoms and the mass that each represents.

    Attributes
    ----------
    atoms : (m, d)
    masses : (m,)
        Positive masses. Their sum is the mass of the data.
    kernel : Kernel
        Kernel with a numeric bandwidth.
    indices : (m,) or None
        Row numbers of the atoms. None if the atoms are new points.
    n_samples : int
        Number of rows.
    quantisation : Quantisation or None
        Assignment of rows. None if the masses do not come from rows assigned to atoms.
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
    def proportions(self) -> Array:
        """The masses, divided by their sum."""
        return self.masses / self.mass

    @property
    def peak(self) -> float:
        """The value κ = k(x, x)."""
        return exponential(self.kernel.log_energy(self.atoms.shape[1]))

    @property
    def is_exact(self) -> bool:
        """Whether every row is an atom with its own mass, so that both eigenproblems are equal."""
        if self.quantisation is None:
            return False
        present = self.quantisation.proportions > 0
        return self.size == np.count_nonzero(present) and bool((self.quantisation.products[present] == 1.0).all())

    def rows_in(self, X: Floats) -> NDArray[np.int64] | None:
        """The row numbers of the atoms in X. None if the atoms are not distinct rows of X."""
        rows = self.indices
        if rows is None or len(rows) != self.size or rows.max() >= len(X) or len(np.unique(rows)) < len(rows):
            return None
        equal = all(np.array_equal(X[rows[a:b]], self.atoms[a:b]) for a, b in row_blocks(rows, X.shape[1]))
        return rows if equal else None

    def products(self, single: bool = False) -> Array:
        """(m, m) values k/κ of all pairs of atoms. ``single`` allows a precision of 1e-7."""
        ensure_memory(self.size)
        return atoms_matrix(self.kernel, self.atoms, single)

    def gram(self, single: bool = False) -> Array:
        """(m, m) kernel values of all pairs of atoms. ``single`` allows a precision of 1e-7 κ."""
        if not 1 / MAX_PEAK < self.peak < MAX_PEAK:
            exponent = self.kernel.log_energy(self.atoms.shape[1])
            raise ValueError(
                f"kernel={self.kernel!r} has k(x, x) = exp({exponent:.4g}) in {self.atoms.shape[1]} dimensions, which is outside "
                "the range of floating point; use normalized=False and space='rkhs', which make it 1"
            )
        matrix = self.products(single)
        if self.peak != 1.0:
            matrix *= self.peak
        return matrix


def ensure_memory(atoms: int) -> None:
    """Raise MemoryError for a Gram matrix larger than the memory.

    The operating system may allow such an allocation, and end the process when the matrix is filled.
    """
    memory = physical_memory()
    needed, available = 8.0 * atoms**2, MAX_MEMORY_FRACTION * memory
    if needed > available:
        limit = int((available / 8) ** 0.5)
        limit -= limit % 10 ** max(len(str(limit)) - 2, 0)  # Round to two digits.
        raise MemoryError(
            f"the kernel matrix of {atoms:,} atoms takes {needed / 1e9:,.1f} GB, this machine has {memory / 1e9:,.1f} GB; "
            f"keep at most {limit:,} atoms: set size (n_components of Nystroem), lower ell, or use a larger bandwidth"
        )


def row_masses(X: Floats, sample_weight: Any) -> Array:
    """(n,) sample weights, 1 by default."""
    return np.ones(len(X)) if sample_weight is None else _validate.weights(sample_weight, len(X))


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
    """The weighted atoms that represent the rows of X.

    Parameters
    ----------
    X : (n, d)
        Validated rows.
    kernel : Kernel or None
        Kernel of the rows. None uses the kernel of given atoms.
    reduce : None, the name of a selector, a selector, a Compression or a KernelMean
        Selector of the atoms, or given atoms. With None, every row is an atom.
    ell : float
        Parameter of "shadow".
    size : int, optional
        Number of atoms. For "shadow", it is the maximum.
    weights : "auto" or "nearest"
        "auto" uses the selector's weights if it computes weights. "nearest" uses the mass of the rows nearest to each atom.
    sample_weight : (n,), optional
    rng : Generator
    """
    _validate.one_of(weights, "weights", WEIGHTS)
    masses = row_masses(X, sample_weight)
    if size is not None:
        size = _validate.whole(size, "size", 1, None, "it is a number of atoms")
        if reduce is None or is_reduced(reduce):
            given = None if reduce is None else f"a {type(reduce).__name__}"
            raise ValueError(f"size={size} needs a selector of atoms, got reduce={given}; omit size, or use a selector")
    if is_reduced(reduce):
        return _given_atoms(X, masses, kernel, reduce, weights)
    full = KernelMean.from_samples(X, kernel, sample_weight)
    if reduce is None:
        points, kept = support(full)
        kept = np.arange(len(X)) if kept is None else kept
        masses = masses[kept]
        exact = Quantisation(masses / masses.sum(), np.ones(len(kept)))
        return WeightedAtoms(np.array(points, np.float64), masses, full.kernel, kept, len(X), exact)
    selector = Shadow(ell) if isinstance(reduce, str) and reduce == "shadow" else _selector(reduce)
    if size is None and not selector.ending:
        raise ValueError(f"reduce={reduce!r} needs size, the number of atoms; set size, or use 'shadow'")
    selection = selector.select(full, len(X) if size is None or selector.ending else min(size, len(X)), rng)
    if isinstance(selector, Shadow) and size is not None and len(selection.atoms) > size:
        selection = _wider_shadows(full, selector.ell, selection, size, rng)
        weights = "nearest"  # Wide balls overlap; the nearest atom represents a row better than the first.
    if selection.weights is None or weights == "nearest":
        return _nearest_masses(full, masses, selection.atoms, selection.indices)
    quantisation = None
    if selection.assignments is not None:
        quantisation = Quantisation(full.weights, _assigned_products(full, selection.atoms, selection.assignments))
    return _drop_empty_atoms(full, selection.atoms, selection.weights * masses.sum(), selection.indices, quantisation)


def is_reduced(reduce: Any) -> bool:
    """Whether ``reduce`` is an existing compression, mean or mixture instead of a selector."""
    return isinstance(reduce, Compression | KernelMean | Mixture)


def _selector(reduce: Any) -> Selector:
    try:
        return as_selector(reduce)
    except ValueError as error:
        text = str(error).replace("select must be one of", "reduce must be None, a Compression, a KernelMean, one of")
        raise ValueError(text) from error


def _wider_shadows(full: KernelMean, ell: float, selection: Selection, size: int, rng: np.random.Generator) -> Selection:
    """At most ``size`` wider shadows that cover all rows, by interpolation of log count over log ell.

    Keeping only the heaviest shadows would leave sparse regions uncovered, and disconnect a manifold.
    """
    high, low, best, step = (np.log(ell), np.log(len(selection.atoms))), None, None, 0.5
    for _ in range(MAX_PASSES):
        excess = max(high[1] - np.log(TARGET_FRACTION * size), 0.1)
        if low is None:
            guess, step = high[0] - step * excess, 2 * step
        else:
            guess = high[0] - (high[0] - low[0]) * np.clip(excess / max(high[1] - low[1], excess), 0.1, 0.9)
        trial = Shadow(float(np.exp(guess))).select(full, full.size, rng)
        point = guess, np.log(len(trial.atoms))
        if len(trial.atoms) > size:
            high = point
            continue
        low = point
        if best is None or len(trial.atoms) > len(best.atoms):
            best = trial
        if len(trial.atoms) >= ACCEPTED_FRACTION * size:
            break
    if best is None:  # Isolated rows can need more shadows than ``size`` at every width.
        return replace(
            selection, atoms=selection.atoms[:size], indices=None if selection.indices is None else selection.indices[:size]
        )
    return best


def _assigned_products(full: KernelMean, atoms: Array, assignments: NDArray[np.int64]) -> Array:
    """(n,) values g/g(0) of each row with its atom. They are 1 for rows of weight 0."""
    kernel, d = full.kernel, full.dimension
    if not isinstance(kernel, RadialKernel):
        return map_rows(full.atoms, partial(_products_of_rows, kernel, atoms), assignments)
    shape = kernel.product(d)
    metric = shape.profile.ranking
    distances = assigned_distances(full.atoms, atoms, assignments, kernel.frame(full.atoms, shape), metric)
    return kernel.product_at(np.sqrt(distances) if metric == SQUARED else distances, d)


def _products_of_rows(kernel: Kernel, atoms: Array, points: Floats, assignments: NDArray[np.int64]) -> Array:
    out = np.ones(len(points))
    for j in np.unique(assignments[assignments >= 0]):
        rows = np.flatnonzero(assignments == j)
        out[rows] = np.clip(kernel.product_gram(points[rows], atoms[j : j + 1])[:, 0], -1.0, 1.0)
    return out


def _given_atoms(X: Floats, masses: Array, kernel: Kernel | None, given: Compression | KernelMean, weights: str) -> WeightedAtoms:
    mean, indices = (given.mean, given.indices) if isinstance(given, Compression) else (given, None)
    kind = type(given).__name__
    if isinstance(mean, Mixture):
        raise TypeError(
            f"reduce must have atoms, got a {kind} with components ({mean!r}); compress with pieces='atoms', or use a selector"
        )
    if mean.dimension != X.shape[1]:
        raise ValueError(f"reduce must be a {kind} of points of {X.shape[1]} columns like X, got {mean.dimension}")
    if kernel is not None and kernel != mean.kernel:
        raise ValueError(
            f"kernel={kernel!r} differs from the kernel of the {kind}, {mean.kernel!r}; omit it, or use Compression.reweigh"
        )
    full, atoms = KernelMean(X, masses / masses.sum(), mean.kernel), np.asarray(mean.atoms, np.float64)
    if weights == "nearest":
        return _nearest_masses(full, masses, atoms, indices)
    if mean.weights.min() < 0:
        raise ValueError(
            f"the weights of a {kind} must not be negative here, got {mean.weights.min():.3g}; use weights='nearest', "
            "or compress with weights='simplex'"
        )
    return _drop_empty_atoms(full, atoms, mean.weights * (masses.sum() / mean.mass), indices, None)


def _nearest_masses(full: KernelMean, masses: Array, atoms: Array, indices: NDArray[np.int64] | None) -> WeightedAtoms:
    """The atoms, each with the mass of its nearest rows."""
    assignments, products = nearest_atoms(full.kernel, full.atoms, atoms)
    sums = np.bincount(assignments, masses, len(atoms)).astype(np.float64)
    return _drop_empty_atoms(full, atoms, sums, indices, Quantisation(masses / masses.sum(), products))


def _drop_empty_atoms(
    full: KernelMean, atoms: Array, masses: Array, indices: Any, quantisation: Quantisation | None
) -> WeightedAtoms:
    """The atoms of positive mass."""
    present = masses > 0
    if not present.all():
        atoms, masses, indices = atoms[present], masses[present], None if indices is None else indices[present]
    return WeightedAtoms(np.array(atoms), np.array(masses), full.kernel, indices, full.size, quantisation)


def nearest_atoms(kernel: Kernel, points: Floats, atoms: Array) -> tuple[NDArray[np.int32], Array]:
    """The nearest atom of each point, and the value g/g(0) of the two."""
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(points.shape[1])
        frame, scale = kernel.frame(points, shape).sized(points)
        assignments, distances = nearest(points, atoms, frame, shape.profile.ranking)
        return assignments, kernel.product_at(scale * distances, points.shape[1])
    found = map_rows(points, partial(_largest_products, kernel, atoms))
    return found[:, 0].astype(np.int32), found[:, 1]


def _largest_products(kernel: Kernel, atoms: Array, points: Floats) -> Array:
    """(n, 2) the atom with the largest kernel value at each point, and g/g(0) of the two."""
    found = np.empty((len(points), 2))
    for a, b in blocks(len(points), max(1, PAIRS_PER_BLOCK // len(atoms))):
        block = kernel.product_gram(points[a:b], atoms)
        found[a:b, 0], found[a:b, 1] = block.argmax(axis=1), np.clip(block.max(axis=1), -1.0, 1.0)
    return found
