"""The stages of a compression: select (which atoms) → weigh (which weights) → certify (the measured error).

A stage is a function with typed input and output, and does not call earlier stages. Searches for a size or a bandwidth are loops
around the stages (`searches`, `resolution`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reduset._engine import cached_property, order_by_energy
from reduset._progress import Clock, Progress
from reduset._types import Array, Indices
from reduset.certificate import Probe, Scales, probe_for
from reduset.compression.prefixes import Prefixes
from reduset.mean import KernelMean
from reduset.mixture import ComponentPieces, Pieces, kappa_of
from reduset.select import Selector, Traversal, with_own_weights
from reduset.weights import CHOLESKY_UP_TO, OWN, Span, span_of

NONE_KNOWN = np.empty(0)


@dataclass(frozen=True)
class Run:
    """The state that all stages of one call use.

    Attributes
    ----------
    rng : Generator from which each target spawns its random streams.
    confidence : Level of all intervals.
    """

    rng: np.random.Generator
    confidence: float
    progress: Progress = field(default_factory=Progress)
    clock: Clock = field(default_factory=Clock)

    def target(self, full: KernelMean, probe: Probe | None = None) -> Target:
        """A mean as a target, with new random streams. ``probe`` replaces the default measurement of errors."""
        select_rng, probe_rng, move_rng, scale_rng = self.rng.spawn(4)
        return Target(full, self, select_rng, probe_rng, move_rng, scale_rng, probe)


@dataclass(frozen=True)
class Target:
    """The mean f that is approximated, at one bandwidth, with the measurements of errors.

    The probe and the scales each need a pass over the data. They are created once, at their first use.

    Attributes
    ----------
    full : The mean f.
    run : State of the call.
    select_rng, probe_rng, move_rng, scale_rng : Random streams, one for each use.
    own_probe : Replaces the default measurement of errors.
    """

    full: KernelMean
    run: Run
    select_rng: np.random.Generator
    probe_rng: np.random.Generator
    move_rng: np.random.Generator
    scale_rng: np.random.Generator
    own_probe: Probe | None = None
    _scales: list[Scales | None] = field(default_factory=list, init=False, repr=False)

    @cached_property
    def probe(self) -> Probe:
        """The measurement of errors at this bandwidth."""
        return self.own_probe or probe_for(self.full, self.run.confidence, self.probe_rng)

    def begin(self, selector: Selector) -> Traversal:
        """Begin a selection."""
        with self.run.clock.stage("select"):
            return selector.begin(self.full, self.select_rng)

    def scales(self, size: int, required: bool = False) -> Scales | None:
        """The measurement of errors at every scale, for ``size`` atoms, kept from the first call.

        If random Fourier features cannot measure these points, it is None, or an error is raised if it is ``required``.
        """
        if not self._scales:
            with self.run.clock.stage("certify"):
                self._scales.append(self.probe.scales(size, self.scale_rng))
        if required and self._scales[0] is None:
            raise ValueError(
                "kernel needs a bandwidth for these points, since the search for one fails: they are too far from 0 for their "
                "spread. Give one, such as Gaussian(1.0), with size or tol alone"
            )
        return self._scales[0]


@dataclass(frozen=True)
class Atoms:
    """Selected atoms.

    Attributes
    ----------
    points : (m, d) coordinates, or components
    rows : (m,) rows of the data, or None for new points
    in_order : Whether the order is kept. Otherwise atoms are sorted by the energy that each adds.
    traversal : The selection of the atoms, or None for given atoms.
    order : (m,) the position of each atom in the traversal, or None for moved atoms
    kappa : (m,) inner products of f with the kernel functions of the atoms, if the selector computed them
    complete : Whether the requested number of atoms was reached.
    remark, moved : Texts on the choice of the selector and on the moves.
    """

    points: Pieces
    rows: Indices | None = None
    in_order: bool = True
    traversal: Traversal | None = None
    order: Indices | None = None
    kappa: Array | None = None
    complete: bool = True
    remark: str = ""
    moved: str = ""

    def at(self, positions: Indices) -> Self:
        """The atoms at these positions, in this order."""
        rows = None if self.rows is None else self.rows[positions]
        order = None if self.order is None else self.order[positions]
        return replace(self, points=self.points[positions], rows=rows, order=order, kappa=None)

    def own_weights(self) -> Array:
        """The weights of the selector."""
        own = None if self.traversal is None or self.order is None else self.traversal.weights()
        if own is None or self.order is None:
            raise ValueError(
                f"weights='own' needs a selector that has weights ({with_own_weights()}) and atoms that were not moved; "
                "use weights='free'"
            )
        return own[self.order]


@dataclass(frozen=True)
class Weighed:
    """Atoms and the factor from which the weights of every prefix follow.

    Attributes
    ----------
    atoms : All atoms, including redundant ones.
    kappa : (m,) inner products of f with the kernel functions of the atoms
    span : Span of these functions, without redundant atoms.
    """

    atoms: Atoms
    kappa: Array
    span: Span


@dataclass(frozen=True)
class Resolution:
    """The bandwidth that a search returned.

    Attributes
    ----------
    bandwidth : The finest bandwidth with an error within ``tol``, there and at every coarser scale.
    median : Median distance of the rows, for comparison.
    random_rows : The finest bandwidth at which random rows in the same number are within ``tol``; None if there is none.
    alone : True if distinct rows do not overlap there, so that the error is the same at all finer scales.
    by_noise : True if it is the bandwidth at which the sampling error of the rows equals ``tol``.
    """

    bandwidth: float
    tol: float
    median: float
    random_rows: float | None
    alone: bool = False
    by_noise: bool = False


@dataclass(frozen=True)
class SearchResult:
    """The end of a search: the input of a `Compression`.

    Attributes
    ----------
    target, weighed, prefixes : Data, atoms and errors at the bandwidth of the result.
    size : Number of atoms of the result.
    reached : Whether the goal was reached.
    way_out : Advice if it was not reached.
    selection : Name of the selection.
    weighting : Name of the weights, if it differs from the name in the prefixes.
    resolution : Result of the search for a bandwidth, if there was one.
    groups : (m,) the group of each atom, or None
    """

    target: Target
    weighed: Weighed
    prefixes: Prefixes
    size: int
    reached: bool
    way_out: str = ""
    selection: str = ""
    weighting: str = ""
    resolution: Resolution | None = None
    groups: NDArray[Any] | None = None

    @property
    def rows(self) -> Indices | None:
        """(size,) the rows of the atoms, or None if they are new points."""
        atoms, kept = self.weighed.atoms, self.weighed.span.kept
        if atoms.rows is None:
            return None
        return (atoms.rows if self.prefixes.own is not None else atoms.rows[kept])[: self.size]


def select_atoms(target: Target, traversal: Traversal, size: int) -> Atoms:
    """Select ``size`` atoms, or fewer if the data have fewer distinct rows."""
    with target.run.clock.stage("select"):
        traversal.extend(size, target.run.progress.stage("selecting"))
        rows = traversal.indices
        if rows is None:
            points = traversal.points[:size]
        else:
            rows = rows[:size]
            points = np.asarray(target.full.atoms[rows], np.float64)
        kappa = None if traversal.nested else traversal.kappa
        complete, remark = len(points) == size, traversal.remark
        return Atoms(points, rows, traversal.nested, traversal, np.arange(len(points)), kappa, complete, remark)


def weigh_atoms(target: Target, atoms: Atoms, known: Array = NONE_KNOWN) -> Weighed:
    """Compute the weights of atoms in one pass over the data. ``known`` is κ of the first atoms, which is not computed again."""
    known = (known if atoms.kappa is None else atoms.kappa)[: len(atoms.points)]
    with target.run.clock.stage("weigh"):
        if len(known) < len(atoms.points):
            report = target.run.progress.stage("weighing")
            known = np.concatenate([known, kappa_of(target.full, atoms.points[len(known) :], report)])
        if not atoms.in_order and len(atoms.points) <= CHOLESKY_UP_TO:  # for more, no Gram matrix is stored
            kernel, points = target.full.kernel, atoms.points
            gram = points.gram(kernel) if isinstance(points, ComponentPieces) else kernel.product_gram(points, points)
            order = order_by_energy(gram, known)
            atoms, known = atoms.at(order), known[order]
        return Weighed(atoms, known, span_of(target.full.kernel, atoms.points, known))


def first_atoms(target: Target, weighed: Weighed, size: int) -> Weighed:
    """The first ``size`` atoms that are not redundant."""
    positions = np.flatnonzero(weighed.span.kept)[:size]
    atoms, kappa = weighed.atoms.at(positions), weighed.kappa[positions]
    with target.run.clock.stage("weigh"):
        return Weighed(atoms, kappa, span_of(target.full.kernel, atoms.points, kappa))


def certify(target: Target, weighed: Weighed, weighting: str, own: Array | None = None) -> Prefixes:
    """Weights and errors of all prefixes of the atoms, from one measurement.

    Parameters
    ----------
    own : (m,) given weights of all atoms; by default the selector's for "own"
    """
    full, atoms, kept = target.full, weighed.atoms, weighed.span.kept
    if weighting == OWN and own is None:
        own = atoms.own_weights()
    rows = atoms.rows if atoms.rows is None or own is not None else atoms.rows[kept]
    magnitudes = np.zeros(len(atoms.points)) if rows is None else full.magnitudes[rows]
    free = weighed.span.weights("free", full.mass, weighed.span.size)
    with target.run.clock.stage("certify"):
        target.run.progress.stage("certifying")(0, 1)
        measured = target.probe.measure(weighed.span.atoms, free, weighed.span.kappa)
    radii = None if atoms.traversal is None or atoms.order is None else atoms.traversal.radii()  # covering radii
    covered = None
    if radii is not None:  # up to the first dropped atom, after which its neighbourhood is not covered
        radii = radii[: len(kept) if kept.all() else int(np.argmin(kept))]
        covered = np.asarray(full.kernel.product_at(radii, full.dimension))
        covered[np.isinf(radii)] = 0.0  # a group without an atom is not covered: the bound is then Σ|w| of the rest
    confidence = target.run.confidence
    return Prefixes(full.kernel, weighed.span, measured, weighting, full.mass, full.total, magnitudes, covered, confidence, own)
