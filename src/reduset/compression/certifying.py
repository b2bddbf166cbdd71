"""The stage "certify": the measured error of all prefixes of the atoms, and the a-priori bounds of one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array
from reduset.certificate.bounds import Bounds, bounds_of
from reduset.certificate.probe import Measurement
from reduset.compression.prefixes import Prefixes
from reduset.compression.target import Target
from reduset.compression.weighing import Weighed
from reduset.mixture.pieces import ComponentPieces
from reduset.weights import OWN


@dataclass(frozen=True)
class Resolution:
    """The bandwidth that a search found.

    Attributes
    ----------
    bandwidth : the finest at which the error is within ``tol``, there and at every coarser scale
    median : the median distance of the rows, for comparison
    random_rows : the finest at which as many random rows are within ``tol``; None if they are at none
    alone : whether distinct rows do not overlap there, so that the error is the same at all finer scales
    by_noise : whether it is the bandwidth at which the sampling error of the rows equals ``tol``
    """

    bandwidth: float
    tol: float
    median: float
    random_rows: float | None
    alone: bool = False
    by_noise: bool = False


@dataclass(frozen=True)
class Found:
    """What a search found: the input of the result.

    Attributes
    ----------
    target, weighed, prefixes : at the bandwidth of the result
    size : how many of the atoms
    reached : whether the goal was reached
    way_out : what to do if not
    selection : the name of the selection
    weighting : the name of the weights, if it is not that of the prefixes
    resolution : of the search for a bandwidth, if there was one
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


def residual(target: Target, weighed: Weighed, carefully: bool) -> Measurement:
    """‖f − Pf‖² for all the atoms, P the projection onto their span; a quick estimate if not ``carefully``."""
    span, run = weighed.span, target.run
    with run.clock.stage("weigh"):
        free = span.weights("free", target.full.mass, span.size)
    with run.clock.stage("certify"):
        run.progress.stage("certifying")(0, 1)
        measure = target.probe.measure if carefully else target.probe.glance
        return measure(span.atoms, free, span.kappa)


def certify(target: Target, weighed: Weighed, weighting: str, own: Array | None = None) -> Prefixes:
    """Weights and errors of all prefixes of the atoms, from one measurement.

    Parameters
    ----------
    own : (m,) weights of all atoms, for weights that are not solved for; by default those of the selector for "own"
    """
    full, atoms = target.full, weighed.atoms
    if weighting == OWN and own is None:
        own = atoms.own_weights()
    rows = atoms.rows if atoms.rows is None or own is not None else atoms.rows[weighed.span.kept]
    shares = np.zeros(len(atoms)) if rows is None else full.magnitudes[rows]
    measured = residual(target, weighed, True)
    covered = _covered(target, weighed)
    return Prefixes(
        full.kernel, weighed.span, measured, weighting, full.mass, full.total, shares, covered, target.run.confidence, own
    )


def _covered(target: Target, weighed: Weighed) -> Array | None:
    """g / C at the covering radius after each atom, if the radii are known."""
    full, kept, radii = target.full, weighed.span.kept, weighed.atoms.radii()
    if radii is None:
        return None
    # up to the first atom dropped, which leaves its surroundings uncovered
    safe = len(kept) if kept.all() else int(np.argmin(kept))
    covered = full.kernel.product_at(radii[:safe], full.dimension)
    covered[np.isinf(radii[:safe])] = 0.0  # a group without an atom is not covered: the bound is then Σ|w| of the rest
    return np.asarray(covered)


def bounds(target: Target, weighed: Weighed, prefixes: Prefixes, size: int) -> Bounds:
    """The a-priori bounds for the first ``size`` atoms, from one more pass over the data."""
    if isinstance(prefixes.atoms, ComponentPieces):  # bounds are those of single points
        return Bounds(None, None, None, None)
    full, cover = target.full, weighed.atoms.cover
    with target.run.clock.stage("weigh"):
        carrying = prefixes.error(size).weights != 0
    with target.run.clock.stage("certify"):
        found = bounds_of(full, prefixes.atoms[:size], float(prefixes.shares[:size].sum()), cover)
        if carrying.all() or not carrying.any():
            return found
        # atoms without a weight are omitted from the result, and cover nothing there
        return replace(found, radius=bounds_of(full, prefixes.atoms[:size][carrying], 0.0, cover).radius)
