"""How many atoms: a given number, the fewest within a tolerance, the 2017 paper's plateau, or as many as the selector ends with.

Each takes a `Run` whose selection is open and returns (the nested family, the size, whether the goal was reached). ``steps`` is
None where the atoms stay, else the number of steps by which they are moved, 0 for as many as the time allows.
"""

from __future__ import annotations

import numpy as np

from reduset import weigh
from reduset.nested import Nested
from reduset.run import Run

FIRST_SIZE = 32
REFINED_ROUNDS = 4  # of a search with moved atoms, after the doubling
NEGLIGIBLE = 0.5  # of tol²: what the measured residual may take, so that the search for the smallest prefix is sharp

Found = tuple[Nested, int, bool]


def by_size(run: Run, size: int, kind: str, steps: int | None) -> Found:
    """That many atoms, or as many as there are."""
    run.grow(size)
    nested = run.nested(kind) if steps is None else run.refine(kind, steps)
    return nested, len(nested.atoms), True


def by_end(run: Run, kind: str, most: int, steps: int | None) -> Found:
    """All the atoms that the selector gives, up to the most allowed."""
    reached = not run.grow(most) or most == run.full.size
    nested = run.nested(kind) if steps is None else run.refine(kind, steps)
    if not reached:  # there may be exactly that many
        run.traversal.extend(most + 1)
        rows = run.traversal.indices
        reached = rows is not None and len(rows) == most
    return nested, len(nested.atoms), reached


def by_tolerance(run: Run, tol: float, kind: str, most: int, steps: int | None) -> Found:
    """The smallest prefix whose error is certified within tol, all the atoms where none is."""
    return _selected(run, tol, kind, most) if steps is None else _moved(run, tol, kind, most, steps)


def _selected(run: Run, tol: float, kind: str, most: int) -> Found:
    size = min(FIRST_SIZE, most)
    while True:
        more = run.grow(size) and size < most
        residual = run.residual(carefully=False)
        goal = tol**2 * (run.span.energy(run.size) + residual.square)
        if more and residual.high > NEGLIGIBLE * goal:
            size = min(most, max(size + 1, int(1.25 * size)) if residual.high <= goal else 2 * size)
            continue
        nested = run.nested(kind)
        smallest = nested.smallest(tol)
        if smallest is not None:
            return nested, smallest, True
        if not more:
            return nested, len(nested.atoms), False
        size = min(most, 2 * size)


def _moved(run: Run, tol: float, kind: str, most: int, steps: int) -> Found:
    """Doubling until the moved atoms are within tol, then ever shorter prefixes, moved again, while they stay so.

    Each round tries the size halfway between the largest known to fail and the smallest known to do.
    """
    size = min(FIRST_SIZE, most)
    fails = 0
    while True:
        more = run.grow(size) and size < most
        nested = run.refine(kind, steps)
        smallest = nested.smallest(tol)
        if smallest is not None:
            break
        if not more:
            return nested, len(nested.atoms), False
        fails, size = size, min(most, 2 * size)
    best, state, remark = (nested, smallest), run.atoms, run.remark
    for _ in range(REFINED_ROUNDS):
        size = max(fails + 1, (fails + smallest) // 2)
        if size >= smallest:
            break
        run.place(state.places, state.rows, state.kappa, ordered=True, moved=True)
        run.cut(size)
        nested = run.refine(kind, steps)
        found = nested.smallest(tol)
        if found is None:
            fails = size
        else:
            smallest, best, state, remark = found, (nested, found), run.atoms, run.remark
    run.place(state.places, state.rows, state.kappa, ordered=True, moved=True)
    run.remark = remark
    return *best, True


def by_plateau(run: Run, epsilon: float, kind: str, most: int, steps: int | None) -> Found:
    """The first size at which an atom adds at most epsilon of the energy added since the first (2017, Section V-B)."""
    size = min(FIRST_SIZE, most)
    while True:
        more = run.grow(size) and size < most
        span = run.span
        if not isinstance(span, weigh.FactoredSpan):
            raise ValueError(f"plateau works up to {weigh.CHOLESKY_UP_TO} atoms; set max_size to that or less, or use tol")
        added = span.energies_added()
        since = np.cumsum(added) - added[0]
        flat = np.flatnonzero(added[1:] <= epsilon * since[1:])
        if len(flat) or not more:  # with every distinct point an atom, nothing is left to add
            reached = bool(len(flat)) or len(span.kept) < size or size == run.full.size
            break
        size = min(most, 2 * size)
    chosen = int(flat[0]) + 2 if len(flat) else span.size
    if steps is not None:
        run.cut(chosen)
        nested = run.refine(kind, steps)
        return nested, len(nested.atoms), reached
    nested = run.nested(kind)
    return nested, chosen if len(flat) else len(nested.atoms), reached
