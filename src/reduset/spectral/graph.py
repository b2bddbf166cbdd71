"""Random walks on weighted atoms: diffusion maps, Laplacian eigenmaps and normalised cuts are all functions of one eigenproblem.

With shares p, kernel values k and q = Σⱼ pⱼ k(·, cⱼ), the density at an atom (Coifman & Lafon 2006; on weighted atoms the form (15)
of Kingravi, Vela & Gray 2013),

    a(x, j) = k(x, cⱼ) bⱼ / Σₗ k(x, cₗ) bₗ,    bⱼ = pⱼ / qⱼ^α

is the chance to step from x to atom j. α = 0 keeps the density in the walk, 1 takes it out and leaves the shape. The walk among
atoms has the stationary shares π, and is symmetric in their sense: π^½ a π^(−½) = S, S v = λv, ψ = v π^(−½), with Σ π ψ² = 1. The
first pair, 1 and a constant, is taken out beforehand, so that it is the right one however many eigenvalues are 1. A point has
ψ(x) = Σⱼ a(x, j) ψⱼ / λ, which at the atoms is ψ itself. Atoms that stand for equal rows give what the walk on all rows
gives. O(m³), or O(m²) a pair; O(m) a point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine import SQUARED, blocks
from reduset._types import Array, Floats
from reduset.kernels import ANY_FAMILY, RadialKernel
from reduset.spectral.eigen import fix_signs, leading_pairs, padded
from reduset.spectral.extension import ROWS_AT_ONCE, mapped_blocks
from reduset.spectral.reduction import WeightedAtoms

ROUNDING = 1e-12  # eigenvalues below are none: the walk has forgotten where it was after one step
APART = 1e-9  # an eigenvalue within this of 1: the walk does not leave a part of the atoms in any time of interest
EDGES = (1e-12, 1e-9, 1e-6)  # the faintest edges that connect, the first that leaves more than one part
FAR = 1e-290  # sums of kernel values below have lost their digits


class DisconnectedWarning(UserWarning):
    """The graph of the atoms falls into parts."""


@dataclass(frozen=True)
class RandomWalk:
    """A random walk on atoms by its eigenfunctions, without the constant one.

    Attributes
    ----------
    eigenvalues : (k,) descending, in [0, 1]
    functions : (m, k) ψ at the atoms
    stationary : (m,) π
    pull : (m,) b
    parts : (m,) the part of the graph that each atom belongs to, numbered from 0
    """

    eigenvalues: Array
    functions: Array
    stationary: Array
    pull: Array
    parts: NDArray[np.int64]

    def at(self, reduced: WeightedAtoms, queries: Floats) -> Array:
        """(q, k) ψ at the queries. So far from all atoms that the kernel vanishes, a step leads to the nearest atom."""
        out = np.empty((len(queries), len(self.eigenvalues)))
        inverse = np.zeros_like(self.eigenvalues)
        np.divide(1.0, self.eigenvalues, out=inverse, where=self.eigenvalues > 0)
        scaled = np.column_stack([self.functions * self.pull[:, None], self.pull])
        for a, b, sums in mapped_blocks(reduced.kernel, reduced.atoms, scaled, queries):
            far = np.flatnonzero(sums[:, -1] < FAR)
            sums[far, -1] = 1.0
            out[a:b] = sums[:, :-1] / sums[:, -1:]
            if len(far):
                out[a + far] = self.functions[_nearest_from_afar(reduced, queries[a:b][far])]
        return np.asarray(out * inverse)


def _nearest_from_afar(reduced: WeightedAtoms, queries: Floats) -> NDArray[np.int64]:
    """The nearest atom of points so far away that distances to the atoms hardly differ: (q,)."""
    kernel, atoms = reduced.kernel, reduced.atoms
    if not isinstance(kernel, RadialKernel):
        return np.argmax(kernel.product_gram(queries, atoms), axis=1)
    frame = kernel.plain_frame(atoms)
    Q, A = frame.apply(queries), frame.apply(atoms)
    if kernel.product(atoms.shape[1]).profile.metric == SQUARED:
        return np.argmin((A**2).sum(axis=1) - 2 * Q @ A.T, axis=1)  # without the length of the query, in which all else would drown
    return np.array([np.argmin(np.abs(A - query).sum(axis=1)) for query in Q])


def random_walk(reduced: WeightedAtoms, count: int, alpha: float, solver: str = "auto") -> RandomWalk:
    """The ``count`` slowest eigenfunctions of the walk; with eigenvalue 0 those that so few atoms do not have."""
    matrix = reduced.products()
    if matrix.min() < -1e-12:
        raise ValueError(
            f"the kernel must not be negative, since its values are chances to step; got {matrix.min():.3g}: use {ANY_FAMILY}"
        )
    shares = reduced.shares
    density = matrix @ shares
    with np.errstate(all="ignore"):
        pull = shares / density**alpha
        degrees = pull * (matrix @ pull)
        stationary = degrees / degrees.sum()
    if not stationary.min() > 0:  # nor where it is no number
        raise ValueError(
            f"alpha must keep powers of the density within floating point, got {alpha:g} for densities between {density.min():.3g} "
            f"and {density.max():.3g} of the highest possible; 0 to 1 is usual"
        )
    scale = pull / np.sqrt(degrees)
    matrix *= scale[:, None]
    matrix *= scale[None, :]
    roots = np.sqrt(stationary)
    for a, b in blocks(len(roots), ROWS_AT_ONCE):  # no second matrix
        matrix[a:b] -= roots[a:b, None] * roots[None, :]
    values, vectors = padded(*leading_pairs(matrix, count, solver), count)
    values = np.where(values > ROUNDING, np.minimum(values, 1.0), 0.0)
    functions = fix_signs(vectors / roots[:, None])
    del matrix
    parts = _parts(reduced, scale) if values[0] > 1 - APART else np.zeros(reduced.size, np.int64)
    return RandomWalk(values, functions, stationary, pull, parts)


def _parts(reduced: WeightedAtoms, scale: Array) -> NDArray[np.int64]:
    """Which part of the graph each atom belongs to."""
    chances = reduced.products()
    chances *= scale[:, None]
    chances *= scale[None, :]
    for faintest in EDGES:
        labels = _connected(chances, faintest)
        if labels.max() > 0:
            break
    return labels


def _connected(chances: Array, faintest: float) -> NDArray[np.int64]:
    """The parts that edges above ``faintest`` connect, row by row: a sparse graph of m² edges would take several matrices."""
    labels = np.full(len(chances), -1)
    for start in range(len(chances)):
        if labels[start] >= 0:
            continue
        front, part = np.array([start]), labels.max() + 1
        while len(front):
            labels[front] = part
            reached = np.zeros(len(chances), bool)
            for a, b in blocks(len(front), ROWS_AT_ONCE):
                reached |= (chances[front[a:b]] > faintest).any(axis=0)
            front = np.flatnonzero(reached & (labels < 0))
    return labels
