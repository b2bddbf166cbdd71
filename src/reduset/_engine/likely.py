"""A near atom of every point, most often the nearest: looked for among those of the few groups of atoms that are nearest to it.

In many dimensions no atom can be ruled out by a box, and n·m·d products are the price of being sure. Whoever only parts the points
into cells need not be: with the atoms in √m groups, of which each point looks into `LOOKED`, it is some n·√m·d, a tenth or less.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.neighbours import nearest
from reduset._engine.profile import SQUARED, Frame
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

LOOKED = 4  # groups
SWEEPS = 3
ROWS_A_TASK = 4096


def likely_nearest(points: Floats, atoms: NDArray[np.float64], frame: Frame) -> NDArray[np.int64]:
    """(n,) for each point an atom that is near, by Euclidean distance in the frame; the same whatever the number of threads."""
    sized, _ = frame.sized(points)
    group, middles = _groups(atoms, sized)
    looked = min(LOOKED, len(middles))
    first = np.empty((len(points), looked), np.int16)
    Z, half = _ranked(sized.apply(middles))
    run_all([partial(_rank, points, Z, half, sized, first, a, b) for a, b in blocks(len(points), ROWS_A_TASK)], blas=True)
    best = np.full(len(points), -np.inf, np.float32)
    index = np.zeros(len(points), np.int64)
    members = [np.flatnonzero(group == g) for g in range(len(middles))]
    mine = [_ranked(sized.apply(atoms[each])) for each in members]
    for place in range(looked):  # in turns: then no point is looked at by two threads at a time
        order = np.argsort(first[:, place], kind="stable")
        ends = np.searchsorted(first[order, place], np.arange(len(middles) + 1))
        tasks = [
            partial(_improve, points, order[ends[g] + a : ends[g] + b], *mine[g], members[g], sized, best, index)
            for g in range(len(middles))
            for a, b in blocks(int(ends[g + 1] - ends[g]), ROWS_A_TASK)
        ]
        run_all(tasks, blas=True)
    return index


def _groups(atoms: NDArray[np.float64], frame: Frame) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The group of each atom, and the middles of the groups: k-means of the atoms."""
    middles = atoms[:: max(1, int(np.sqrt(len(atoms))))].copy()
    for _ in range(SWEEPS):
        group, _ = nearest(atoms, middles, frame, SQUARED)
        counts = np.bincount(group, minlength=len(middles))
        sums = np.stack([np.bincount(group, column, len(middles)) for column in atoms.T], axis=1)
        middles = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], middles)
    group, _ = nearest(atoms, middles, frame, SQUARED)
    kept, of = np.unique(group, return_inverse=True)
    return of.astype(np.int32), middles[kept]


def _ranked(Z: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What z·a − |a|²/2 is computed from, which is largest where |z − a| is least."""
    return np.ascontiguousarray(Z.T, np.float32), (0.5 * np.einsum("ij,ij->i", Z, Z)).astype(np.float32)


def _rank(points, Z, half, frame, first, a, b):
    scores = frame.apply(points[a:b]).astype(np.float32) @ Z
    scores -= half
    looked = first.shape[1]
    first[a:b] = np.argpartition(-scores, looked - 1, axis=1)[:, :looked]


def _improve(points, rows, Z, half, members, frame, best, index):
    scores = frame.apply(points[rows]).astype(np.float32) @ Z
    scores -= half
    place = np.argmax(scores, axis=1)
    value = scores[np.arange(len(rows)), place]
    better = value > best[rows]
    best[rows[better]] = value[better]
    index[rows[better]] = members[place[better]]
