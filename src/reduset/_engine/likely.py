"""A near atom of every point, most often the nearest: looked for among those of the few groups of atoms that are nearest to it.

In many dimensions no atom can be ruled out by a box, and n·m·d products are the price of being sure. Whoever only parts the points
into cells need not be: with the atoms in √m groups, of which each point looks into `LOOKED`, it is some n·√m·d, a tenth or less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.gaps import SQUARED
from reduset._engine.neighbours import nearest
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

LOOKED = 4  # groups
SWEEPS = 3
ROWS_A_TASK = 4096


def likely_nearest(points: Floats, atoms: NDArray[np.float64], frame: Frame) -> NDArray[np.int64]:
    """(n,) for each point an atom that is near, by Euclidean distance in the frame; the same whatever the number of threads."""
    sized, _ = frame.sized(points)
    A = sized.apply(atoms)
    group, middles = _groups(A)
    looked = min(LOOKED, len(middles))
    first = np.empty((len(points), looked), np.int16)
    half = 0.5 * np.einsum("ij,ij->i", middles, middles)
    run_all([partial(_rank, points, middles, half, sized, first, a, b) for a, b in blocks(len(points), ROWS_A_TASK)], blas=True)
    gap = np.full(len(points), np.inf, np.float32)
    index = np.zeros(len(points), np.int64)
    groups = [_Group.of(A, np.flatnonzero(group == g), middle) for g, middle in enumerate(middles)]
    for place in range(looked):  # in turns: then no point is looked at by two threads at a time
        order = np.argsort(first[:, place], kind="stable")
        ends = np.searchsorted(first[order, place], np.arange(len(middles) + 1))
        tasks = [
            partial(_improve, points, order[ends[g] + a : ends[g] + b], each, sized, gap, index)
            for g, each in enumerate(groups)
            for a, b in blocks(int(ends[g + 1] - ends[g]), ROWS_A_TASK)
        ]
        run_all(tasks, blas=True)
    return index


@dataclass(frozen=True)
class _Group:
    """Atoms about their middle, in single precision: far from the origin, products of coordinates would have no digits left."""

    members: NDArray[np.int64]
    middle: NDArray[np.float64]
    columns: NDArray[np.float32]  # (d, m)
    half: NDArray[np.float32]  # half the squared lengths

    @classmethod
    def of(cls, A: NDArray[np.float64], members: NDArray[np.int64], middle: NDArray[np.float64]) -> _Group:
        Z = A[members] - middle
        return cls(members, middle, np.ascontiguousarray(Z.T, np.float32), (0.5 * np.einsum("ij,ij->i", Z, Z)).astype(np.float32))


def _groups(A: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The group of each atom, and the middles of the groups: k-means of the atoms."""
    plain = Frame(np.zeros(A.shape[1]), 1.0)
    middles = A[:: max(1, int(np.sqrt(len(A))))].copy()
    for _ in range(SWEEPS):
        group, _ = nearest(A, middles, plain, SQUARED)
        counts = np.bincount(group, minlength=len(middles))
        sums = np.stack([np.bincount(group, column, len(middles)) for column in A.T], axis=1)
        middles = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], middles)
    kept, of = np.unique(nearest(A, middles, plain, SQUARED)[0], return_inverse=True)
    return of.astype(np.int64), middles[kept]


def _rank(points, middles, half, frame, first, a, b):
    """Which groups are nearest; in double precision, for there are few."""
    scores = half - frame.apply(points[a:b]) @ middles.T
    looked = first.shape[1]
    first[a:b] = np.argpartition(scores, looked - 1, axis=1)[:, :looked]


def _improve(points, rows, group, frame, gap, index):
    Z = (frame.apply(points[rows]) - group.middle).astype(np.float32)
    scores = Z @ group.columns
    scores -= group.half
    place = np.argmax(scores, axis=1)
    own = np.einsum("ij,ij->i", Z, Z) - 2 * scores[np.arange(len(rows)), place]
    better = own < gap[rows]
    gap[rows[better]] = own[better]
    index[rows[better]] = group.members[place[better]]
