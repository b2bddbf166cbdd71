"""Gaps of rows to few centres, block by block of the rows: by differences, in many dimensions by products of matrices.

|z − c|² = |z|² + |c|² − 2 z·c cancels, by as much as the lengths are larger than the gaps: products are taken where double
precision bears that. Single precision costs half, and is taken where the caller says that it will do (``single``) and lengths are
so short that gaps are off by about 1e-7; squared lengths are in double precision then, too. Columns in which all centres are 0 add
nothing to a product and are left out of it. O(n·m·d).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.addresses import row
from reduset._engine.arithmetic import FAST
from reduset._engine.cached import cached_property
from reduset._engine.compiled import compiled
from reduset._engine.depths import LINEAR, ROOT
from reduset._engine.gaps import SQUARED, gaps_at, to_gaps
from reduset._engine.packed import packed
from reduset._engine.passes import BlockRows
from reduset._engine.precision import BLAS_REACH, MIXED_FROM, MIXED_REACH
from reduset._engine.profile import Frame, Profile
from reduset._engine.sums import BLAS_FROM
from reduset._engine.threads import row_blocks, run_all
from reduset._engine.tiles import gap_rows
from reduset._types import Floats


def assigned_distances(
    points: Floats, centres: Floats, owners: NDArray[np.int64], frame: Frame, metric: int
) -> NDArray[np.float64]:
    """(n,) the gap of each point to the centre that owns it, 0 where none does (an owner below 0); by differences."""
    if isinstance(points, BlockRows):
        return points.map_rows(partial(_assigned_of_block, centres, frame, metric), owners)
    out = np.empty(len(points))
    scale = abs(frame.matrix) if isinstance(frame.matrix, float) and points.dtype == centres.dtype == np.float64 else None
    places = np.ascontiguousarray(centres if scale is not None else frame.apply(centres))

    def task(a: int, b: int) -> None:
        here = np.ascontiguousarray(points[a:b]) if scale is not None else frame.apply(points[a:b])
        _own_differences(here, places, owners[a:b], metric, out[a:b])

    run_all([partial(task, a, b) for a, b in row_blocks(points, points.shape[1])])
    return out if scale is None else out * scale ** (2 if metric == SQUARED else 1)


def _assigned_of_block(centres: Floats, frame: Frame, metric: int, rows: Floats, owners: NDArray[np.int64]) -> NDArray[np.float64]:
    return assigned_distances(rows, centres, owners, frame, metric)


def has_single_products(profile: Profile, dimension: int) -> bool:
    """Whether there are gaps by products in single precision: of Gaussian bumps, and where they cost less."""
    return profile.metric == SQUARED and profile.family == LINEAR and dimension >= MIXED_FROM


class Centres:
    """Centres, and the gaps of rows to them in coordinates of the frame times ``unit``.

    What a product cancels is magnified by the ``widest`` stretch of the gaps that comes after.
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
        """The mean gap between two centres, by products in single precision."""
        return self._single.typical

    @cached_property
    def _single(self) -> _Products:
        return _Products(self._Y, np.float32, self._profile)

    @cached_property
    def _double(self) -> _Products:
        return _Products(self._Y, np.float64, self._profile)

    @cached_property
    def _columns(self) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._Y.T)

    def gaps(self, points: Floats, first: int = 0) -> Floats:
        """(n, m − first) gaps of the points to the centres from ``first`` on, in the precision that they were found in."""
        found = self._single.gaps(points, self._frame, self._magnified, first) if self._by_single else None
        if found is None and self._by_products:
            found = self._double.gaps(points, self._frame, self._magnified, first)
        if found is not None:
            return found
        out = np.empty((len(points), len(self._Y) - first))
        _differences(self._frame.apply(points), self._columns, gaps_at(self._profile.metric, np.float64), first, out)
        return out


class _Products:
    """Centres about their mean in one precision."""

    def __init__(self, Y: NDArray[np.float64], dtype: Any, profile: Profile) -> None:
        self._dtype, self._family = dtype, profile.family
        # about the frame's centre in double precision, which bears it; single precision gains by shorter rows
        self._middle = Y.mean(axis=0) if dtype == np.float32 else np.zeros(Y.shape[1])
        # a root takes small gaps from differences, in all columns
        self._columns = np.arange(Y.shape[1]) if self._family == ROOT else np.flatnonzero((Y != 0).any(axis=0))
        self._middle[np.delete(np.arange(Y.shape[1]), self._columns)] = 0.0
        self._rows, self._squares = packed(Y, Frame(np.zeros(Y.shape[1]), 1.0), self._columns, self._middle, dtype)
        self._longest = float(self._squares.max())
        self._reach = MIXED_REACH if dtype == np.float32 else BLAS_REACH[np.float64]

    @property
    def typical(self) -> float:
        return 2 * float(self._squares.mean())

    def gaps(self, points: Floats, frame: Frame, magnified: float, first: int) -> Floats | None:
        """The gaps in this precision; None where they cannot be had in it."""
        if self._longest * magnified > self._reach:
            return None
        P, lengths = packed(points, frame, self._columns, self._middle, self._dtype)
        if float(lengths.max()) * magnified > self._reach:
            return None
        rows, squares = self._rows[first:], self._squares[first:]
        G = P @ rows.T
        gap_rows(G, rows, squares, P, lengths, self._family)
        return G


@compiled(fastmath=FAST)
def _differences(P, Z, gaps, first, out):
    n = Z.shape[1]
    for i in range(P.shape[0]):
        to_gaps(gaps, Z, first, n, n - first, row(P, i), row(out, i))


@compiled(fastmath=FAST)
def _own_differences(P, Y, owners, metric, out):
    for i in range(len(P)):
        total = 0.0
        if owners[i] >= 0:
            p = P[i]
            y = Y[owners[i]]
            if metric == SQUARED:
                for j in range(len(p)):
                    total += (p[j] - y[j]) * (p[j] - y[j])
            else:
                for j in range(len(p)):
                    total += abs(p[j] - y[j])
        out[i] = total
