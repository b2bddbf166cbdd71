"""Rows near each other: the net of a radius, all pairs, and chains of pairs with their diameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from reduset import _validate
from reduset._engine import NearRows, blocks, defining, near_rows, to_numpy
from reduset._progress import Progress
from reduset._types import Array, Indices, Report
from reduset.covers.memory import for_net
from reduset.covers.rows import squared

ORDERS = ("first", "last", "medoid")
BATCH = 1 << 18  # pairs are held for this many rows at a time
DIAMETER_ROWS = 2048


class Pairs(NamedTuple):
    """Row numbers of the pairs, the lower one first, and their distances."""

    first: Indices
    second: Indices
    distances: Array


class WithPoints:
    """The rows of a store, followed by other points: those of another store."""

    def __init__(self, store: Any, points: Any) -> None:
        self.store, self.points = store, points
        self.arrays, self.dimension = np, store.dimension
        self.count = store.count + points.count
        self.max_memory, self.loaded = store.max_memory, store.loaded

    def take(self, rows: Any) -> Array:
        numbers = np.arange(self.count)[rows] if isinstance(rows, slice) else np.asarray(rows)
        values = np.empty((len(numbers), self.dimension))
        own = numbers < self.store.count
        values[own] = to_numpy(self.store.take(self.store.arrays.asarray(numbers[own])))
        values[~own] = self.points.take(numbers[~own] - self.store.count)
        return values


def net_of(search: NearRows, order: Indices, start: Indices, report: Report | None = None) -> Indices:
    """The rows that are kept in addition to the rows of ``start``, in their order."""
    if len(start):
        order = order[~np.isin(order, start)]
        order = order[~search.are_near(order, start)]
    return search.net(order, report)


def nearest_within(search: NearRows, rows: Indices, centres: Indices, report: Report | None = None) -> tuple[Indices, Array]:
    """For each row, which has a centre within the radius, the first of its nearest centres and the squared distance."""
    nearest, squares = np.empty(len(rows), np.int64), np.empty(len(rows))
    position = np.full(search.store.count, -1, np.int64)
    position[centres] = np.arange(len(centres))
    for a, b in blocks(len(rows), BATCH):
        one, other, found = search.pairs(rows[a:b], centres)
        order = np.lexsort((position[other], found, one))
        first = order[np.concatenate([[True], one[order][1:] != one[order][:-1]])] if len(order) else order
        at = np.argsort(rows[a:b], kind="stable")
        nearest[a + at], squares[a + at] = position[other[first]], found[first]
        if report is not None:
            report(b, len(rows))
    return nearest, squares


def priority_of(keep: Any, n: int, size: int | None) -> Any:
    """The checked ``keep``."""
    if keep is None:
        return None
    if size is not None:
        raise ValueError("keep must not be given with size: farthest-first selection has its own order; give radius alone")
    if isinstance(keep, str):
        return _validate.one_of(keep, "keep", ORDERS)
    priority = np.asarray(keep.get() if hasattr(keep, "get") else keep)
    if priority.shape != (n,) or priority.dtype.kind not in "biuf":
        raise ValueError(
            f"keep must be one of {', '.join(map(repr, ORDERS))}, or hold one number for each of the {n:,} rows; got an array of "
            f"{priority.dtype} with shape {priority.shape}"
        )
    if np.isnan(priority).any():
        raise ValueError(
            f"keep must not hold NaN, got one in row {int(np.isnan(priority).argmax())}; give such rows the lowest priority"
        )
    return priority.astype(np.float64)


def priorities(search: NearRows, keep: Any, n: int) -> Indices:
    """The rows in order of their priority; the lowest row first among equal ones."""
    if isinstance(keep, str):
        if keep == "medoid":
            return np.argsort(-search.counts(n), kind="stable")
        return np.arange(n)[:: -1 if keep == "last" else 1]
    return np.argsort(-keep, kind="stable")


def pairs_within(rows: Any, radius: float, cosine: bool) -> tuple[Indices, Indices, Array]:
    """All pairs of rows within a radius, the lower row first, with their squared distances."""
    for_net(rows, Progress())
    search = near_rows(rows, cosine, squared(radius, cosine))
    every = np.arange(rows.count)
    parts = []
    for a, b in blocks(rows.count, BATCH):
        one, other, squares = search.pairs(every[a:b], every)
        lower = one < other
        parts.append((one[lower], other[lower], squares[lower]))
    first, second, found = (np.concatenate(column) for column in zip(*parts, strict=True))
    return first, second, found


def chains(first: Indices, second: Indices) -> list[Indices]:
    """The rows of each component of a graph of pairs, the largest first."""
    involved, flat = np.unique(np.concatenate([first, second]), return_inverse=True)
    if not len(involved):
        return []
    k = len(involved)
    graph = coo_array((np.ones(len(first), np.int8), (flat[: len(first)], flat[len(first) :])), shape=(k, k))
    labels = connected_components(graph, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    parts = np.split(involved[order], np.flatnonzero(np.diff(labels[order])) + 1)
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def diameter(rows: Any, members: Indices, cosine: bool) -> float:
    """The largest squared distance of two of some rows."""

    def points(a: int, b: int) -> Array:
        return np.asarray(defining(to_numpy(rows.take(rows.arrays.asarray(members[a:b]))), cosine))

    middle, largest = points(0, DIAMETER_ROWS).mean(axis=0), 0.0
    for a, b in blocks(len(members), DIAMETER_ROWS):
        one = points(a, b) - middle
        for c, e in blocks(len(members), DIAMETER_ROWS):
            if c >= a:
                other = one if c == a else points(c, e) - middle
                squares = np.einsum("ij,ij->i", one, one)[:, None] + np.einsum("ij,ij->i", other, other) - 2 * one @ other.T
                i, j = np.unravel_index(squares.argmax(), squares.shape)
                largest = max(largest, float(np.square(one[i] - other[j]).sum()))
    return largest
