"""How many atoms: a given number, the fewest within a tolerance, the 2017 paper's plateau, or as many as the selector ends with.

Each search takes a `Builder` whose selection is open and returns (the prefixes, the size, whether the goal was reached). ``steps``
is None where the atoms stay, else the number of steps by which they are moved, 0 for as many as the time allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _validate
from reduset.compression.builder import Builder
from reduset.compression.outlook import FAR_BEYOND, atoms_needed
from reduset.compression.prefixes import Prefixes
from reduset.weights.span import CHOLESKY_UP_TO, FactoredSpan

MOST_ATOMS = 5000
FIRST_SIZE = 32
REFINED_ROUNDS = 4  # of a search with moved atoms, after the doubling
NEGLIGIBLE = 0.5  # of tol²: what the measured residual may take, so that the search for the smallest prefix is sharp

Found = tuple[Prefixes, int, bool]


@dataclass(frozen=True)
class SizeGoal:
    """What was asked for, checked; ``words`` name it, empty where the selector decides, and ``most`` atoms are allowed."""

    search: Callable[[Builder, str, int | None], Found]
    words: str
    most: int


def asked_for(n: int, ending: bool, max_size: int | None, **goals: Any) -> SizeGoal:
    """The goal from what a user gave: exactly one of size, tol and plateau, or none where the selector ends by itself."""
    given = {name: goal for name, goal in goals.items() if goal is not None}
    if len(given) > 1 or (not given and not ending):
        raise ValueError(
            "give exactly one of size (a number of atoms), tol (a relative error) and plateau (the ε rule); "
            f"got {' and '.join(given) or 'none'}"
        )
    if "size" in given:
        size = _validate.whole(given["size"], "size", 1, n, "it is a number of the data's points")
        if max_size is not None:
            raise ValueError("max_size goes with tol or plateau; with size it has no meaning, leave it out")
        return SizeGoal(lambda builder, kind, steps: by_size(builder, size, kind, steps), f"size={size}", size)
    most = min(n, MOST_ATOMS) if max_size is None else _validate.whole(max_size, "max_size", 1, n)
    if not given:
        return SizeGoal(lambda builder, kind, steps: by_end(builder, kind, most, steps), "", most)
    ((name, goal),) = given.items()
    share = _validate.tolerance(goal, name)
    find = by_tolerance if name == "tol" else by_plateau
    return SizeGoal(lambda builder, kind, steps: find(builder, share, kind, most, steps), f"{name}={goal}", most)


def by_size(builder: Builder, size: int, kind: str, steps: int | None) -> Found:
    """That many atoms, or as many as there are."""
    builder.grow(size)
    prefixes = builder.prefixes(kind) if steps is None else builder.refine(kind, steps)
    return prefixes, len(prefixes.atoms), True


def by_end(builder: Builder, kind: str, most: int, steps: int | None) -> Found:
    """All the atoms that the selector gives, up to the most allowed."""
    reached = not builder.grow(most) or most == builder.full.size
    prefixes = builder.prefixes(kind) if steps is None else builder.refine(kind, steps)
    if not reached:  # there may be exactly that many
        builder.traversal.extend(most + 1)
        rows = builder.traversal.indices
        reached = rows is not None and len(rows) == most
    return prefixes, len(prefixes.atoms), reached


def by_tolerance(builder: Builder, tol: float, kind: str, most: int, steps: int | None) -> Found:
    """The smallest prefix whose error is certified within tol, all the atoms where none is."""
    return _selected(builder, tol, kind, most) if steps is None else _moved(builder, tol, kind, most, steps)


def _selected(builder: Builder, tol: float, kind: str, most: int) -> Found:
    size = min(FIRST_SIZE, most)
    sizes: list[int] = []
    squares: list[float] = []
    while True:
        more = builder.grow(size) and size < most
        residual = builder.residual(carefully=False)
        goal = tol**2 * (builder.span.energy(builder.size) + residual.square)
        sizes.append(size)
        squares.append(residual.square)
        needed = atoms_needed(sizes, squares, goal, builder.full.dimension) if more else 0.0
        if needed > FAR_BEYOND * most:
            about = float(f"{min(needed, builder.full.size):.2g}")  # all the points are always enough
            builder.outlook = (
                f"it cannot be reached with {most:,} atoms: by the errors of up to {size:,} it would take about {about:,.0f}, "
                f"and the search ends here. Raise tol, widen the bandwidth, or give size={most}"
            )
            prefixes = builder.prefixes(kind)
            return prefixes, len(prefixes.atoms), False
        if more and residual.high > NEGLIGIBLE * goal:
            size = min(most, max(size + 1, int(1.25 * size)) if residual.high <= goal else 2 * size)
            continue
        prefixes = builder.prefixes(kind)
        smallest = prefixes.smallest(tol)
        if smallest is not None:
            return prefixes, smallest, True
        if not more:
            return prefixes, len(prefixes.atoms), False
        size = min(most, 2 * size)


def _moved(builder: Builder, tol: float, kind: str, most: int, steps: int) -> Found:
    """Doubling until the moved atoms are within tol, then ever shorter prefixes, moved again, while they stay so.

    Each round tries the size halfway between the largest known to fail and the smallest known to do.
    """
    size = min(FIRST_SIZE, most)
    fails = 0
    while True:
        more = builder.grow(size) and size < most
        prefixes = builder.refine(kind, steps)
        smallest = prefixes.smallest(tol)
        if smallest is not None:
            break
        if not more:
            return prefixes, len(prefixes.atoms), False
        fails, size = size, min(most, 2 * size)
    best, state, remark = (prefixes, smallest), builder.atoms, builder.remark
    for _ in range(REFINED_ROUNDS):
        size = max(fails + 1, (fails + smallest) // 2)
        if size >= smallest:
            break
        builder.place(state.places, state.rows, state.kappa, ordered=True, moved=True)
        builder.cut(size)
        prefixes = builder.refine(kind, steps)
        found = prefixes.smallest(tol)
        if found is None:
            fails = size
        else:
            smallest, best, state, remark = found, (prefixes, found), builder.atoms, builder.remark
    builder.place(state.places, state.rows, state.kappa, ordered=True, moved=True)
    builder.remark = remark
    return *best, True


def by_plateau(builder: Builder, epsilon: float, kind: str, most: int, steps: int | None) -> Found:
    """The first size at which an atom adds at most epsilon of the energy added since the first (2017, Section V-B)."""
    size = min(FIRST_SIZE, most)
    while True:
        more = builder.grow(size) and size < most
        span = builder.span
        if not isinstance(span, FactoredSpan):
            raise ValueError(f"plateau works up to {CHOLESKY_UP_TO} atoms; set max_size to that or less, or use tol")
        added = span.energies_added()
        since = np.cumsum(added) - added[0]
        flat = np.flatnonzero(added[1:] <= epsilon * since[1:])
        if len(flat) or not more:  # with every distinct point an atom, nothing is left to add
            reached = bool(len(flat)) or len(span.kept) < size or size == builder.full.size
            break
        size = min(most, 2 * size)
    chosen = int(flat[0]) + 2 if len(flat) else span.size
    if steps is not None:
        builder.cut(chosen)
        prefixes = builder.refine(kind, steps)
        return prefixes, len(prefixes.atoms), reached
    prefixes = builder.prefixes(kind)
    return prefixes, chosen if len(flat) else len(prefixes.atoms), reached
