"""Distances of rows to centres, one block of rows at a time: from differences, or in many dimensions from matrix products.

|z − c|² = |z|² + |c|² − 2 z·c cancels digits if lengths exceed distances. Products are used if double precision suffices. Single
precision costs half. It is used if the caller allows it (``single``) and lengths are so short that distances are off by about 1e-7;
squared lengths are then still computed in double precision. The product omits columns that are 0 in all centres. It also omits
columns that are constant over all rows, such as the margins of images. O(n·m·d).

`Ranks` finds the nearest of several centres by products alone, on any device: z·a − |a|²/2 is largest for the nearest a.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reduset._engine.arithmetic import FAST
from reduset._engine.cached import cached_property
from reduset._engine.compiled import compiled, row
from reduset._engine.distances import LINEAR, ROOT, SQUARED, distances_at, to_distances
from reduset._engine.passes import BlockRows
from reduset._engine.profile import BLAS_REACH, MIXED_FROM, MIXED_REACH, Frame, Profile
from reduset._engine.sums import BLAS_FROM
from reduset._engine.threads import row_blocks, run_all
from reduset._engine.tiles import squared_distance_rows
from reduset._types import Array, Floats, Indices

WITHIN_SINGLE = 1e18  # largest square of a coordinate, so that float32 holds the sums
SINGLE_ROUNDING, MAX_ROUNDING = 2.0**-22, 1e-3  # rounding error of a product, and its largest ratio to a squared distance


def array_module(values: Any) -> Any:
    """NumPy or CuPy, depending on the array."""
    if isinstance(values, np.ndarray):
        return np
    import cupy

    return cupy


@dataclass(frozen=True)
class Ranks:
    """Nearest atoms by products in float32, twice as fast as float64. Rows with too large a rounding error are repeated in
    float64."""

    atoms: Any  # (m, d), and half the squared lengths
    half: Any
    single: tuple[Any, Any] | None  # None if float32 cannot hold the squares
    farthest: float  # largest length of an atom

    @classmethod
    def of(cls, A: Any, unit: float) -> Ranks:
        xp = array_module(A)
        squares = xp.einsum("ij,ij->i", A, A)
        fits = unit == 1.0 and 1 / WITHIN_SINGLE < float(squares.max()) < WITHIN_SINGLE
        single = (A.astype(xp.float32), (0.5 * squares).astype(xp.float32)) if fits else None
        return cls(A, 0.5 * squares, single, float(np.sqrt(float(squares.max()))))

    def nearest(self, Z: Any) -> tuple[Any, Any]:
        """(rows,) the nearest atom of each row of Z, and its distance."""
        if self.single is None:
            return self._in_double(Z)
        xp, (atoms, half) = array_module(Z), self.single
        scores = Z.astype(xp.float32) @ atoms.T
        scores -= half
        index = xp.argmax(scores, axis=1).astype(xp.int32)
        distance = _row_lengths(Z - self.atoms[index])
        rounding = SINGLE_ROUNDING * self.farthest * (self.farthest + _row_lengths(Z))
        square = distance**2
        # float32 may round tiny squares to 0
        uncertain = xp.flatnonzero((rounding > MAX_ROUNDING * square) | (square < 1 / WITHIN_SINGLE))
        if len(uncertain):
            index[uncertain], distance[uncertain] = self._in_double(Z[uncertain])
        return index, distance

    def _in_double(self, Z: Any) -> tuple[Any, Any]:
        xp = array_module(Z)
        index = xp.argmax(Z @ self.atoms.T - self.half, axis=1).astype(xp.int32)
        return index, _row_lengths(Z - self.atoms[index])


def _row_lengths(values: Any) -> Any:
    xp = array_module(values)
    return xp.sqrt(xp.einsum("ij,ij->i", values, values))


Columns = Indices


def varying_columns(points: Floats) -> Columns:
    """The columns that are not constant."""
    constant = np.arange(points.shape[1])
    for a, b in row_blocks(points, points.shape[1]):  # after the first blocks few columns are left to compare
        constant = constant[(points[a:b, constant] == points[0, constant]).all(axis=0)]
        if len(constant) == 0:
            break
    return np.delete(np.arange(points.shape[1]), constant)


def is_packable(points: Floats, frame: Frame) -> bool:
    """Whether coordinates can be computed one by one, without a copy of all points."""
    return isinstance(frame.matrix, float) and points.dtype.kind == "f" and points.flags.c_contiguous


def packed(
    points: Floats, frame: Frame, columns: Columns, middle: Array, dtype: type, by_threads: bool = False
) -> tuple[Floats, Array]:
    """The selected columns of the coordinates minus ``middle``, (n, k), and squared lengths over all columns, (n,)."""
    values: Floats = np.empty((len(points), len(columns)), dtype)
    squares = np.empty(len(points))
    parts = row_blocks(points, points.shape[1]) if by_threads else [(0, len(points))]
    run_all([partial(_fill, points[a:b], frame, columns, middle, values[a:b], squares[a:b]) for a, b in parts])
    return values, squares


def _fill(points: Floats, frame: Frame, columns: Columns, middle: Array, values: Floats, squares: Array) -> None:
    if is_packable(points, frame):
        _pack(points, columns, frame.centre, frame.matrix, middle, values, squares)
    else:
        _pack(frame.apply(points), columns, np.zeros(len(middle)), 1.0, middle, values, squares)


@compiled(fastmath=FAST)
def _pack(points, columns, centre, scale, middle, values, squares):
    u = np.empty(len(middle))
    for i in range(points.shape[0]):
        x = points[i]
        for k in range(len(u)):
            u[k] = (x[k] - centre[k]) * scale - middle[k]
        total = 0.0
        for k in range(len(u)):
            total += u[k] * u[k]
        squares[i] = total
        z = values[i]
        for j in range(len(columns)):
            z[j] = u[columns[j]]


def assigned_distances(points: Floats, centres: Floats, assignments: Indices, frame: Frame, metric: int) -> Array:
    """(n,) the distance of each point to its assigned centre, from differences; 0 for negative assignments."""
    if isinstance(points, BlockRows):
        return points.map_rows(partial(_assigned_distances_of_block, centres, frame, metric), assignments)
    out = np.empty(len(points))
    scale = abs(frame.matrix) if isinstance(frame.matrix, float) and points.dtype == centres.dtype == np.float64 else None
    centre_rows = np.ascontiguousarray(centres if scale is not None else frame.apply(centres))

    def task(a: int, b: int) -> None:
        rows = np.ascontiguousarray(points[a:b]) if scale is not None else frame.apply(points[a:b])
        _assigned_differences(rows, centre_rows, assignments[a:b], metric, out[a:b])

    run_all([partial(task, a, b) for a, b in row_blocks(points, points.shape[1])])
    return out if scale is None else out * scale ** (2 if metric == SQUARED else 1)


def _assigned_distances_of_block(centres: Floats, frame: Frame, metric: int, rows: Floats, assignments: Indices) -> Array:
    return assigned_distances(rows, centres, assignments, frame, metric)


def has_single_products(profile: Profile, dimension: int) -> bool:
    """Whether products in single precision apply: for Gaussian kernels, and in enough columns to be faster."""
    return profile.metric == SQUARED and profile.family == LINEAR and dimension >= MIXED_FROM


class Centres:
    """Centres, and the distances of rows to them in coordinates of the frame times ``unit``.

    ``widest`` is the largest factor applied to distances later. It also magnifies the cancellation in products.
    """

    def __init__(
        self, centres: Floats, frame: Frame, profile: Profile, unit: float = 1.0, widest: float = 1.0, single: bool = False
    ) -> None:
        self._frame = frame if unit == 1.0 else Frame(frame.centre, frame.matrix * unit)
        self._profile = profile
        self._Y = self._frame.apply(centres)
        self._magnified = widest**2 * profile.slope
        self._by_products = profile.metric == SQUARED and centres.shape[1] >= BLAS_FROM
        self._by_single = single and has_single_products(profile, centres.shape[1])

    @property
    def typical(self) -> float:
        """The mean squared distance between two centres, by products in single precision."""
        return self._single.typical

    @cached_property
    def _single(self) -> _Products:
        return _Products(self._Y, np.float32, self._profile)

    @cached_property
    def _double(self) -> _Products:
        return _Products(self._Y, np.float64, self._profile)

    @cached_property
    def _columns(self) -> Array:
        return np.ascontiguousarray(self._Y.T)

    def distances(self, points: Floats, first: int = 0) -> Floats:
        """(n, m − first) distances of the points to the centres from ``first``, in the precision of the computation."""
        result = self._single.distances(points, self._frame, self._magnified, first) if self._by_single else None
        if result is None and self._by_products:
            result = self._double.distances(points, self._frame, self._magnified, first)
        if result is not None:
            return result
        out = np.empty((len(points), len(self._Y) - first))
        _differences(self._frame.apply(points), self._columns, distances_at(self._profile.metric, np.float64), first, out)
        return out


class _Products:
    """Centres minus their mean, in one precision."""

    def __init__(self, Y: Array, dtype: Any, profile: Profile) -> None:
        self._dtype, self._family = dtype, profile.family
        # In double precision relative to the frame's centre; single precision gains accuracy from shorter rows.
        self._middle = Y.mean(axis=0) if dtype == np.float32 else np.zeros(Y.shape[1])
        # The square root needs small distances from differences in all columns.
        self._columns = np.arange(Y.shape[1]) if self._family == ROOT else np.flatnonzero((Y != 0).any(axis=0))
        self._middle[np.delete(np.arange(Y.shape[1]), self._columns)] = 0.0
        self._rows, self._squares = packed(Y, Frame(np.zeros(Y.shape[1]), 1.0), self._columns, self._middle, dtype)
        self._longest = float(self._squares.max())
        self._reach = MIXED_REACH if dtype == np.float32 else BLAS_REACH[np.float64]

    @property
    def typical(self) -> float:
        return 2 * float(self._squares.mean())

    def distances(self, points: Floats, frame: Frame, magnified: float, first: int) -> Floats | None:
        """The distances in this precision; None if the rounding error would be too large."""
        if self._longest * magnified > self._reach:
            return None
        P, lengths = packed(points, frame, self._columns, self._middle, self._dtype)
        if float(lengths.max()) * magnified > self._reach:
            return None
        rows, squares = self._rows[first:], self._squares[first:]
        G = P @ rows.T
        squared_distance_rows(G, rows, squares, P, lengths, self._family)
        return G


@compiled(fastmath=FAST)
def _differences(P, Z, distances, first, out):
    n = Z.shape[1]
    for i in range(P.shape[0]):
        to_distances(distances, Z, first, n, n - first, row(P, i), row(out, i))


@compiled(fastmath=FAST)
def _assigned_differences(P, Y, assignments, metric, out):
    for i in range(len(P)):
        total = 0.0
        if assignments[i] >= 0:
            p = P[i]
            y = Y[assignments[i]]
            if metric == SQUARED:
                for j in range(len(p)):
                    total += (p[j] - y[j]) * (p[j] - y[j])
            else:
                for j in range(len(p)):
                    total += abs(p[j] - y[j])
        out[i] = total
