"""The search for the size at one bandwidth: select, weigh, certify, next size.

Sizes grow by doubling, and each step adds to the selection and to κ only what is missing: a search costs little more than its last
step. Atoms that do not nest, and moved ones, are put in the order of the energy that each adds, so that their prefixes are good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2

import numpy as np

from reduset._types import Array
from reduset.compression.certifying import Found, certify, residual
from reduset.compression.plan import Plan
from reduset.compression.prefixes import Prefixes
from reduset.compression.refine import move
from reduset.compression.selecting import begin, select
from reduset.compression.target import Target
from reduset.compression.weighing import NONE_KNOWN, Weighed, first, weigh
from reduset.select.contract import Traversal
from reduset.weights import CHOLESKY_UP_TO, FactoredSpan

FIRST_SIZE = 32
ROUNDS_OF_MOVED_ATOMS = 4  # after the doubling
NEGLIGIBLE = 0.5  # of tol²: the largest measured residual, so that the search for the smallest prefix is sharp
EXTRAPOLATION_FROM = 512  # atoms, below which a curve of errors says little
FAR_BEYOND = 4  # times the most atoms allowed
MAX_DOUBLINGS = 40


def find_size(target: Target, plan: Plan) -> Found:
    """The atoms of a plan at the bandwidth of the target."""
    traversal = begin(target, plan.selector)
    if plan.size is not None:
        found = by_size(target, traversal, plan.size, plan.weighting, plan.steps)
    elif plan.tol is not None:
        found = by_tolerance(target, traversal, plan.tol, plan.weighting, plan.most, plan.steps)
    elif plan.plateau is not None:
        found = by_plateau(target, traversal, plan.plateau, plan.weighting, plan.most, plan.steps)
    else:
        found = by_end(target, traversal, plan.weighting, plan.most, plan.steps)
    ended = f"{plan.selector} has no more atoms that add to these" if found.weighed.span.size < plan.most else ""
    return replace(found, way_out=found.way_out or ended, selection=plan.name)


def grow(target: Target, traversal: Traversal, size: int, known: Array = NONE_KNOWN) -> Weighed:
    """``size`` atoms of a traversal, weighed; ``known`` is the κ of those that it had before."""
    return weigh(target, select(target, traversal, size), known if traversal.nested else NONE_KNOWN)


def _certified(target: Target, weighed: Weighed, weighting: str, steps: int | None) -> tuple[Weighed, Prefixes]:
    return (weighed, certify(target, weighed, weighting)) if steps is None else move(target, weighed, weighting, steps)


def by_size(target: Target, traversal: Traversal, size: int, weighting: str, steps: int | None) -> Found:
    """That many atoms, or as many as there are."""
    weighed, prefixes = _certified(target, grow(target, traversal, size), weighting, steps)
    return Found(target, weighed, prefixes, len(prefixes.atoms), True)


def by_end(target: Target, traversal: Traversal, weighting: str, most: int, steps: int | None) -> Found:
    """All the atoms that the selector gives, up to the most allowed."""
    grown = grow(target, traversal, most)
    reached = not grown.atoms.complete or most == target.full.size
    weighed, prefixes = _certified(target, grown, weighting, steps)
    if not reached:  # there may be exactly that many
        traversal.extend(most + 1)
        rows = traversal.indices
        reached = rows is not None and len(rows) == most
    return Found(target, weighed, prefixes, len(prefixes.atoms), reached)


def by_tolerance(target: Target, traversal: Traversal, tol: float, weighting: str, most: int, steps: int | None) -> Found:
    """The smallest prefix whose error is certified within tol; all the atoms if none is."""
    if steps is not None:
        return _moved_within(target, traversal, tol, weighting, most, steps)
    size, known = min(FIRST_SIZE, most), NONE_KNOWN
    sizes: list[int] = []
    squares: list[float] = []
    while True:
        weighed = grow(target, traversal, size, known)
        known, more = weighed.kappa, weighed.atoms.complete and size < most
        rest = residual(target, weighed, carefully=False)
        goal = tol**2 * (weighed.span.energy(weighed.span.size) + rest.square)
        sizes.append(size)
        squares.append(rest.square)
        needed = atoms_needed(sizes, squares, goal, target.full.dimension) if more else 0.0
        if needed > FAR_BEYOND * most:
            about = float(f"{min(needed, target.full.size):.2g}")  # all the points are always enough
            way_out = (
                f"it cannot be reached with {most:,} atoms: by the errors of up to {size:,} it would take about {about:,.0f}, "
                f"and the search ends here. Raise tol, widen the bandwidth, or give size={most}"
            )
            prefixes = certify(target, weighed, weighting)
            return Found(target, weighed, prefixes, len(prefixes.atoms), False, way_out)
        if more and rest.high > NEGLIGIBLE * goal:
            size = min(most, max(size + 1, int(1.25 * size)) if rest.high <= goal else 2 * size)
            continue
        prefixes = certify(target, weighed, weighting)
        smallest = prefixes.smallest(tol)
        if smallest is not None:
            return Found(target, weighed, prefixes, smallest, True)
        if not more:
            return Found(target, weighed, prefixes, len(prefixes.atoms), False)
        size = min(most, 2 * size)


def _moved_within(target: Target, traversal: Traversal, tol: float, weighting: str, most: int, steps: int) -> Found:
    """Doubling until the moved atoms are within tol, then shorter prefixes, moved again, as long as they stay so.

    Each round tries the size halfway between the largest known to fail and the smallest known to do.
    """
    size, known, fails = min(FIRST_SIZE, most), NONE_KNOWN, 0
    while True:
        grown = grow(target, traversal, size, known)
        known, more = grown.kappa, grown.atoms.complete and size < most
        weighed, prefixes = move(target, grown, weighting, steps)
        smallest = prefixes.smallest(tol)
        if smallest is not None:
            break
        if not more:
            return Found(target, weighed, prefixes, len(prefixes.atoms), False)
        fails, size = size, min(most, 2 * size)
    best = Found(target, weighed, prefixes, smallest, True)
    for _ in range(ROUNDS_OF_MOVED_ATOMS):
        size = max(fails + 1, (fails + best.size) // 2)
        if size >= best.size:
            break
        shorter = first(target, best.weighed, size)
        # their radii are not those of a traversal any more
        shorter = replace(shorter, atoms=replace(shorter.atoms, order=None))
        weighed, prefixes = move(target, shorter, weighting, steps)
        smallest = prefixes.smallest(tol)
        if smallest is None:
            fails = size
        else:
            best = Found(target, weighed, prefixes, smallest, True)
    return best


def by_plateau(target: Target, traversal: Traversal, epsilon: float, weighting: str, most: int, steps: int | None) -> Found:
    """The first size at which an atom adds at most epsilon of the energy added since the first (2017, Section V-B)."""
    size, known = min(FIRST_SIZE, most), NONE_KNOWN
    while True:
        weighed = grow(target, traversal, size, known)
        known, span = weighed.kappa, weighed.span
        if not isinstance(span, FactoredSpan):
            raise ValueError(f"plateau works up to {CHOLESKY_UP_TO} atoms; set max_size to that or less, or use tol")
        added = span.energies_added()
        since = np.cumsum(added) - added[0]
        flat = np.flatnonzero(added[1:] <= epsilon * since[1:])
        more = weighed.atoms.complete and size < most
        if len(flat) or not more:  # with every distinct point an atom, nothing is left to add
            reached = bool(len(flat)) or len(span.kept) < size or size == target.full.size
            break
        size = min(most, 2 * size)
    chosen = int(flat[0]) + 2 if len(flat) else span.size
    if steps is not None:
        weighed, prefixes = move(target, first(target, weighed, chosen), weighting, steps)
        return Found(target, weighed, prefixes, len(prefixes.atoms), reached)
    prefixes = certify(target, weighed, weighting)
    return Found(target, weighed, prefixes, chosen if len(flat) else len(prefixes.atoms), reached)


def atoms_needed(sizes: Sequence[int], squares: Sequence[float], goal: float, dimension: int) -> float:
    """About how many atoms bring the square down to the goal, from the errors of the sizes tried so far; 0 without three sizes.

    A doubling of the atoms divides the squared error by 2^e. For smooth kernels e grows with every doubling, at most like m^(2/d)
    (the error of a Gaussian is about exp(−c·m^(2/d))). So e is let grow by as much as it last did, and by that at least.
    """
    if len(sizes) < 3 or sizes[-1] < EXTRAPOLATION_FROM or min(squares) <= 0:
        return 0.0
    before, last = (log2(squares[k - 1] / squares[k]) / log2(sizes[k] / sizes[k - 1]) for k in (len(sizes) - 2, len(sizes) - 1))
    least = 2 ** (2 / dimension)
    growth = min(max(least, last / before if before > 0 else least), 4.0)
    missing, rate, doublings = log2(squares[-1] / goal) if goal > 0 else float("inf"), max(last, 1e-3), 0
    while missing > 0 and doublings < MAX_DOUBLINGS:
        rate *= growth
        missing -= rate
        doublings += 1
    return sizes[-1] * 2.0 ** (doublings + missing / rate if missing < 0 else doublings)
