"""Functions of the atoms through which all rows are looked at: about the leading components of the atoms, and their mean.

Only their span matters (`ritz`), so that of many atoms it is taken from products with a block: the span of a random block after
one product (three, where p is not far below m) holds the leading directions to the ratio of the eigenvalue of order p to theirs
(Halko, Martinsson & Tropp 2011). The Gram matrix K is centred and weighted on the block's side alone, and what it gives in the last
product are the functions' values at the atoms, which then need no other look. O(m²·p).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, qr

from reduset._engine import single_threaded_blas
from reduset._types import Array
from reduset.spectral.components import definite, inverse_roots, principal_components
from reduset.spectral.eigen import FEW_ATOMS, FEW_PAIRS
from reduset.spectral.extension import bears_single, offers_single, products_of
from reduset.spectral.reduction import WeightedAtoms

SOME_PAIRS = 5  # of m/this many functions, a decomposition costs several times more than products with a block of them
MORE_TURNS = 2  # products where the functions are many: of fewer atoms the rest of the spectrum is nearer to the leading part
FLAT = 1e-10  # of κ: a mean within the span, but for rounding


@dataclass(frozen=True)
class AtomFunctions:
    """Orthonormal functions Σⱼ Aⱼₖ k(·, cⱼ), k = 1 … p.

    Attributes
    ----------
    coefficients : (m, p) A
    heights : (p,) their inner products with the atoms' kernel mean μ̄, about which rows are counted; 0 where nothing is centred
    mean_norm : ‖μ̄‖
    at_atoms : (m, p) their values at the atoms, or None where these are not known
    """

    coefficients: Array
    heights: Array
    mean_norm: float
    at_atoms: Array | None


def leading_functions(reduced: WeightedAtoms, count: int, centre: bool, solver: str = "auto") -> AtomFunctions:
    """About the ``count`` leading components of the atoms, and the rest of their mean."""
    if solver == "auto" and reduced.size > FEW_ATOMS and count <= reduced.size // SOME_PAIRS:
        return _rough(reduced, count, centre)
    parts = principal_components(reduced, count, centre, solver)
    if not centre:
        return AtomFunctions(parts.coefficients, parts.offsets, parts.mean_norm, None)
    return _with_mean(AtomFunctions(parts.coefficients, parts.offsets, parts.mean_norm, None), reduced, None)


def _rough(reduced: WeightedAtoms, count: int, centre: bool) -> AtomFunctions:
    """By a random block; with a matrix in single precision, unless it turns out to be too coarse for these functions."""
    dimension = reduced.atoms.shape[1]
    if offers_single(reduced.kernel, dimension):
        found = _by_block(reduced, count, centre, single=True)
        if bears_single(reduced.kernel, found.coefficients, dimension):
            return found
    return _by_block(reduced, count, centre, single=False)


def _by_block(reduced: WeightedAtoms, count: int, centre: bool, single: bool) -> AtomFunctions:
    matrix, shares, roots = reduced.gram(single), reduced.shares, np.sqrt(reduced.masses)[:, None]

    def spread(block: Array) -> Array:
        """(I − p1ᵀ) W^½ times the block."""
        block = roots * block
        return block - np.outer(shares, block.sum(axis=0)) if centre else block

    def directions(block: Array) -> Array:
        """An orthonormal basis of what the weighted and centred matrix makes of a block, spread, from K times that."""
        with single_threaded_blas():  # of narrow matrices, where more threads wait for each other
            block = roots * (block - shares @ block if centre else block)
            return spread(qr(block, mode="economic", overwrite_a=True, check_finite=False)[0])

    start = spread(np.random.default_rng(0).normal(size=(len(matrix), count + 1)))
    block = products_of(matrix, np.column_stack([start, shares]))  # one look at the matrix for both
    block, means = directions(block[:, :-1]), block[:, -1]
    if count > len(matrix) // FEW_PAIRS:
        for _ in range(MORE_TURNS):
            block = directions(products_of(matrix, block))
    at_atoms = products_of(matrix, block)
    with single_threaded_blas():
        inner = block.T @ at_atoms
        values, turns = eigh((inner + inner.T) / 2, check_finite=False)
        values = definite(values[::-1], reduced)
        turns = turns[:, ::-1] * inverse_roots(values)
        block, at_atoms = block @ turns, at_atoms @ turns
    mean_norm = float(np.sqrt(max(float(shares @ means), 0.0)))
    found = AtomFunctions(block, means @ block if centre else np.zeros(len(values)), mean_norm, at_atoms)
    return _with_mean(found, reduced, means) if centre else found


def _with_mean(found: AtomFunctions, reduced: WeightedAtoms, means: Array | None) -> AtomFunctions:
    """And what their span lacks of μ̄: centred bumps do not span their own mean, which the components of the rows may lean to."""
    height = found.mean_norm**2 - float(found.heights @ found.heights)
    if height < FLAT * reduced.peak:
        return found
    root = np.sqrt(height)
    mean = (reduced.shares - found.coefficients @ found.heights) / root
    at_atoms = None
    if found.at_atoms is not None and means is not None:
        at_atoms = np.column_stack([found.at_atoms, (means - found.at_atoms @ found.heights) / root])
    return AtomFunctions(np.column_stack([found.coefficients, mean]), np.append(found.heights, root), found.mean_norm, at_atoms)
