"""Random walks on weighted atoms, the eigenproblem of diffusion maps, Laplacian eigenmaps and normalised cuts.

The walk is due to Coifman & Lafon 2006. On weighted atoms it has the form (15) of Kingravi, Vela & Gray 2013. Let p be the
proportions of mass, k the kernel values, and q = Σⱼ pⱼ k(·, cⱼ) the density at an atom. The probability of a step from x to atom j
is

    a(x, j) = k(x, cⱼ) bⱼ / Σₗ k(x, cₗ) bₗ,    bⱼ = pⱼ / qⱼ^α

α = 0 keeps the density in the walk. α = 1 removes it and leaves the geometry. The walk among atoms has the stationary distribution
π, and is self-adjoint under π. Its eigenproblem is S v = λv with S = π^½ a π^(−½). The eigenfunctions are ψ = v π^(−½), with
Σ π ψ² = 1. The first pair, 1 and a constant, is removed before. This is also correct if several eigenvalues are 1. A point has the
values ψ(x) = Σⱼ a(x, j) ψⱼ / λ. They equal ψ at the atoms. If atoms represent equal rows, the result is the walk on all rows. The
cost is O(m³), or O(m²) a pair, and O(m) a point.

`graph_bandwidth` computes a bandwidth that connects each cluster and keeps clusters separate: h² = 3 · mean d₇². Here d₇ is the
distance of a row to its 7th distinct neighbour in a sample of 1,000 rows. The 7th neighbour is the choice of self-tuning spectral
clustering (Zelnik-Manor & Perona 2004). In a larger sample, neighbours would be closer, but the distances between clusters would
stay the same. The root mean square follows the sparse clusters. A median would turn their rows into outliers. The cost is
O(1,000² d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from reduset._engine import SQUARED, blocks
from reduset._types import Array, Floats
from reduset.kernels import ANY_FAMILY, RadialKernel
from reduset.spectral.components import fix_signs, leading_pairs, pad_pairs
from reduset.spectral.extension import ROWS_PER_BLOCK, mapped_blocks
from reduset.spectral.reduction import WeightedAtoms, row_masses

ROUNDING = 1e-12  # Smaller eigenvalues are replaced by 0.
DISCONNECTED = 1e-9  # An eigenvalue within this distance of 1 shows a disconnected graph.
EDGE_THRESHOLDS = (1e-12, 1e-9, 1e-6)  # The first threshold with more than one part defines the parts.
MIN_SUM = 1e-290  # Smaller sums of kernel values have no correct digits.

NEIGHBOUR, SAMPLE_SIZE, FACTOR = 7, 1000, 3.0
MAX_QUANTILE = 0.99  # Neighbour distances above this quantile are clipped.


class DisconnectedWarning(UserWarning):
    """The graph of the atoms is disconnected."""


@dataclass(frozen=True)
class RandomWalk:
    """A random walk on atoms, with its eigenfunctions except the constant eigenfunction.

    Attributes
    ----------
    eigenvalues : (k,)
        Eigenvalues in [0, 1]. They are in descending order.
    functions : (m, k)
        Eigenfunctions ψ at the atoms.
    stationary : (m,)
        Stationary distribution π.
    attraction : (m,)
        Factors b of the transition probabilities.
    parts : (m,)
        Connected component of each atom. The numbers start at 0.
    """

    eigenvalues: Array
    functions: Array
    stationary: Array
    attraction: Array
    parts: NDArray[np.int64]

    def evaluate(self, reduced: WeightedAtoms, queries: Floats) -> Array:
        """(q, k) ψ at the queries. If the kernel vanishes at all atoms, a step leads to the nearest atom."""
        out = np.empty((len(queries), len(self.eigenvalues)))
        inverse = np.zeros_like(self.eigenvalues)
        np.divide(1.0, self.eigenvalues, out=inverse, where=self.eigenvalues > 0)
        scaled = np.column_stack([self.functions * self.attraction[:, None], self.attraction])
        for a, b, sums in mapped_blocks(reduced.kernel, reduced.atoms, scaled, queries):
            distant = np.flatnonzero(sums[:, -1] < MIN_SUM)
            sums[distant, -1] = 1.0
            out[a:b] = sums[:, :-1] / sums[:, -1:]
            if len(distant):
                out[a + distant] = self.functions[_nearest_to_distant(reduced, queries[a:b][distant])]
        return np.asarray(out * inverse)


def _nearest_to_distant(reduced: WeightedAtoms, queries: Floats) -> NDArray[np.int64]:
    """(q,) nearest atoms of very distant points. Their distances to all atoms are almost equal."""
    kernel, atoms = reduced.kernel, reduced.atoms
    if not isinstance(kernel, RadialKernel):
        return np.argmax(kernel.product_gram(queries, atoms), axis=1)
    frame = kernel.plain_frame(atoms)
    Q, A = frame.apply(queries), frame.apply(atoms)
    if kernel.product(atoms.shape[1]).profile.metric == SQUARED:
        return np.argmin((A**2).sum(axis=1) - 2 * Q @ A.T, axis=1)  # The squared length of a query would cancel the differences.
    return np.array([np.argmin(np.abs(A - query).sum(axis=1)) for query in Q])


def random_walk(reduced: WeightedAtoms, count: int, alpha: float, solver: str = "auto") -> RandomWalk:
    """The ``count`` slowest eigenfunctions of the walk. If there are fewer, the rest have the eigenvalue 0."""
    matrix = reduced.products()
    if matrix.min() < -1e-12:
        raise ValueError(
            f"the kernel must not be negative, because its values are probabilities, got {matrix.min():.3g}; use {ANY_FAMILY}"
        )
    p = reduced.proportions
    density = matrix @ p
    with np.errstate(all="ignore"):
        attraction = p / density**alpha
        degrees = attraction * (matrix @ attraction)
        stationary = degrees / degrees.sum()
    if not stationary.min() > 0:  # The condition also holds for NaN.
        raise ValueError(
            f"alpha must keep powers of the density within floating point, got {alpha:g} for densities between {density.min():.3g} "
            f"and {density.max():.3g} of the highest possible; 0 to 1 is usual"
        )
    scale = attraction / np.sqrt(degrees)
    matrix *= scale[:, None]
    matrix *= scale[None, :]
    roots = np.sqrt(stationary)
    for a, b in blocks(len(roots), ROWS_PER_BLOCK):  # Blocks avoid a second matrix.
        matrix[a:b] -= roots[a:b, None] * roots[None, :]
    values, vectors = pad_pairs(*leading_pairs(matrix, count, solver), count)
    values = np.where(values > ROUNDING, np.minimum(values, 1.0), 0.0)
    functions = fix_signs(vectors / roots[:, None])
    del matrix
    parts = _parts(reduced, scale) if values[0] > 1 - DISCONNECTED else np.zeros(reduced.size, np.int64)
    return RandomWalk(values, functions, stationary, attraction, parts)


def _parts(reduced: WeightedAtoms, scale: Array) -> NDArray[np.int64]:
    """The connected component of each atom."""
    probabilities = reduced.products()
    probabilities *= scale[:, None]
    probabilities *= scale[None, :]
    for threshold in EDGE_THRESHOLDS:
        labels = _connected_components(probabilities, threshold)
        if labels.max() > 0:
            break
    return labels


def _connected_components(probabilities: Array, threshold: float) -> NDArray[np.int64]:
    """Connected components of the graph of edges above the threshold.

    The search reads the matrix row by row. A sparse graph of m² edges would need the memory of several matrices.
    """
    labels = np.full(len(probabilities), -1)
    for start in range(len(probabilities)):
        if labels[start] >= 0:
            continue
        front, part = np.array([start]), labels.max() + 1
        while len(front):
            labels[front] = part
            reached = np.zeros(len(probabilities), bool)
            for a, b in blocks(len(front), ROWS_PER_BLOCK):
                reached |= (probabilities[front[a:b]] > threshold).any(axis=0)
            front = np.flatnonzero(reached & (labels < 0))
    return labels


def graph_bandwidth(X: Floats, sample_weight: Any = None) -> float | None:
    """The bandwidth for rows (n, d) with weights (n,). None for fewer than two distinct rows."""
    rows, masses = _distinct_rows(X, row_masses(X, sample_weight))
    if len(rows) < 2:
        return None
    centred = rows - rows.mean(axis=0)
    rank = min(NEIGHBOUR, len(rows) - 1)
    distances = np.partition(cdist(centred, centred), rank, axis=1)[:, rank]
    order = np.argsort(distances)
    position = int(np.searchsorted(np.cumsum(masses[order]), MAX_QUANTILE * masses.sum()))
    distances = np.minimum(distances, distances[order[min(position, len(order) - 1)]])
    scale = float(distances.max())
    if not 0 < scale < np.inf:
        return None
    return float(scale * np.sqrt(FACTOR * np.average(np.square(distances / scale), weights=masses)))


def _distinct_rows(X: Floats, weights: Array) -> tuple[Array, Array]:
    """The distinct rows of a sample with a fixed seed, and their weights."""
    present = np.flatnonzero(weights > 0)
    if len(present) > SAMPLE_SIZE:
        probabilities = weights[present] / weights[present].sum()
        present = np.sort(np.random.default_rng(0).choice(present, SAMPLE_SIZE, replace=False, p=probabilities))
        weights = np.ones(len(weights))
    rows, inverse = np.unique(np.asarray(X[present], np.float64), axis=0, return_inverse=True)
    return rows, np.asarray(np.bincount(inverse.ravel(), weights[present]), np.float64)
