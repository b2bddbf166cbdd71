"""The stage "weigh": the inner products κ of f with the atoms, and the factor from which the weights of every prefix follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._engine import blocks, order_by_energy
from reduset._types import Array
from reduset.compression.selecting import Atoms, Rows
from reduset.compression.target import Target
from reduset.mixture.pieces import ComponentPieces, Pieces, gram_of
from reduset.weights import CHOLESKY_UP_TO, Span, span_of

ATOMS_A_STEP = 512
NONE_KNOWN = np.empty(0)


@dataclass(frozen=True)
class Weighed:
    """Atoms with what their weights follow from.

    Attributes
    ----------
    atoms : all of them, redundant ones included
    kappa : (m,) inner products of f with their kernel functions
    span : the span of these functions, redundant ones omitted
    """

    atoms: Atoms
    kappa: Array
    span: Span

    @property
    def rows(self) -> tuple[Rows | None, Rows]:
        """The rows of the atoms kept, and of those omitted as redundant."""
        rows, kept = self.atoms.rows, self.span.kept
        return (None, np.empty(0, np.int64)) if rows is None else (rows[kept], rows[~kept])


def weigh(target: Target, atoms: Atoms, known: Array = NONE_KNOWN) -> Weighed:
    """Weigh atoms; ``known`` is κ of the first of them, which is not computed again."""
    known = (known if atoms.kappa is None else atoms.kappa)[: len(atoms)]
    if len(known) < len(atoms):
        known = np.concatenate([known, inner_products(target, atoms.points[len(known) :])])
    if atoms.in_order:
        return _spanned(target, atoms, known)
    order = np.arange(len(atoms))
    if len(atoms) <= CHOLESKY_UP_TO:  # beyond, no matrix of the atoms is held
        with target.run.clock.stage("weigh"):
            order = order_by_energy(gram_of(target.full.kernel, atoms.points), known)
    return _spanned(target, atoms.at(order), known[order])


def first(target: Target, weighed: Weighed, size: int) -> Weighed:
    """Only the first ``size`` of the atoms that are kept."""
    some = np.flatnonzero(weighed.span.kept)[:size]
    return _spanned(target, weighed.atoms.at(some), weighed.kappa[some])


def _spanned(target: Target, atoms: Atoms, kappa: Array) -> Weighed:
    with target.run.clock.stage("weigh"):
        return Weighed(atoms, kappa, span_of(target.full.kernel, atoms.points, kappa))


def inner_products(target: Target, points: Pieces) -> Array:
    """(m,) of f with the kernel functions at these points. One pass over the data."""
    full, run = target.full, target.run
    with run.clock.stage("weigh"):
        report = run.progress.stage("weighing")
        if isinstance(points, ComponentPieces):
            return points.kappa(full, report)
        parts = []
        for a, b in blocks(len(points), ATOMS_A_STEP):
            report(a, len(points))
            parts.append(full.kernel.product_sums(full.atoms, full.weights, points[a:b]))
        return np.concatenate(parts) if parts else np.empty(0)
