"""k-centre selection by farthest-first traversal (Cruz Cortés & Scott 2017, Section V).

The next atom is the point farthest from the chosen atoms. This maximises the incoherence ν, the smallest over all points of the
largest inner product with an atom. The radius is within a factor 2 of the optimum, which no polynomial algorithm can improve.
O(n·m·d) at worst, usually less (`_engine.farthest`). The order is greedy, so every prefix is the selection of its size.

With ``groups``, only atoms of its own group cover a point, as with the discriminative kernel of Section V-A. The traversals of the
groups are independent. They run separately and are merged by the distance at which each atom was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _engine, _validate
from reduset._engine import (
    SQUARED,
    FarthestFirst,
    Frame,
    LazyCover,
    LeafCover,
    in_memory,
    row_blocks,
    rows_in_place,
    rows_of,
)
from reduset._types import Floats, Indices, Report
from reduset.kernels import FunctionKernel, RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal, support

Radii = NDArray[np.float64]
MIN_ABS, MAX_ABS = 1e-15, 1e15  # limits of the largest absolute value: its square fits into single precision


@dataclass(frozen=True)
class KCenter(Selector):
    """Farthest-first atoms.

    Parameters
    ----------
    first : "random", "mean" or int
        The first atom: a random point (by weight), the point nearest to the mean of the points, or a given row.
    groups : (n,) array of labels, optional
        Cover each group by atoms from this group only.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import KCenter
    >>> f = KernelMean.from_samples(np.array([[0.0], [1.0], [5.0], [9.0]]), kernel=Gaussian(1.0))
    >>> KCenter(first=0).select(f, 3).indices
    array([0, 3, 2])
    """

    first: str | int = "random"
    groups: Any = field(default=None, compare=False)

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        if self.groups is None:
            return _traverse(mean, self._first_row(mean, rng))
        labels = np.asarray(self.groups)
        if labels.shape != (mean.size,):
            raise ValueError(f"groups must have shape ({mean.size},), one label per point; got {labels.shape}")
        values, codes = np.unique(labels, return_inverse=True)
        parts: list[Traversal] = []
        first = self._first_row(mean, rng)
        lead = int(codes[first])
        for code in [lead, *(k for k in range(len(values)) if k != lead)]:
            rows = np.flatnonzero((codes == code) & (mean.weights != 0))
            if not len(rows):
                continue
            part = KernelMean(rows_of(mean.atoms, rows), mean.weights[rows], mean.kernel)
            start = int(np.searchsorted(rows, first)) if code == lead else _row_near_mean(part)
            parts.append(_Renamed(_traverse(part, start), rows))
        return _Merged(parts)

    def _first_row(self, mean: KernelMean, rng: np.random.Generator) -> int:
        if isinstance(self.first, str):
            _validate.one_of(self.first, "first", ("random", "mean"))
            if self.first == "mean":
                return _row_near_mean(mean)
            return int(mean.draw_rows(1, rng)[0])
        row = _validate.whole(self.first, "first", 0, mean.size - 1, "it is a row of the data")
        if mean.weights[row] == 0:
            raise ValueError(f"first must be a row of non-zero weight, row {row} has weight 0")
        return row


def _row_near_mean(mean: KernelMean) -> int:
    points, rows = support(mean)
    weights = mean.magnitudes if rows is None else mean.magnitudes[rows]
    centre = np.zeros(mean.dimension)
    for a, b in row_blocks(points, mean.dimension):
        centre += weights[a:b] @ (points[a:b] - points[0].astype(np.float64))
    centre = centre / weights.sum() + points[0]
    best, least = 0, np.inf
    for a, b in row_blocks(points, mean.dimension):
        squares = np.square(points[a:b] - centre).sum(axis=1)
        k = int(np.argmin(squares))
        if squares[k] < least:
            best, least = a + k, float(squares[k])
    return best if rows is None else int(rows[best])


def _traverse(mean: KernelMean, first: int) -> Traversal:
    """Farthest-first traversal of the mean's atoms of non-zero weight, beginning with row ``first``."""
    points, rows = support(mean)
    if rows is not None:
        part = KernelMean(points, mean.weights[rows], mean.kernel)
        return _Renamed(_traverse(part, int(np.searchsorted(rows, first))), rows)
    if isinstance(mean.kernel, RadialKernel):
        return (_ByProducts if _products_are_faster(mean.atoms, mean.kernel) else _InCoordinates)(mean.atoms, mean.kernel, first)
    if isinstance(mean.kernel, FunctionKernel):
        return _InFeatureSpace(mean.atoms, mean.kernel, first)
    raise TypeError(f"KCenter does not support kernels of type {type(mean.kernel).__name__}")


class _InCoordinates(Traversal):
    """For a radial kernel the order by feature-space distance equals the order by distance, since g decreases strictly."""

    def __init__(self, points: Floats, kernel: RadialKernel, first: int) -> None:
        d = points.shape[1]
        shape = kernel.product(d)
        metric = shape.profile.ranking
        # Isotropic kernels use the units of the data, in which integers stay exact.
        plain = kernel.is_isotropic
        frame = Frame.around(points, 1.0) if plain else kernel.frame(points, shape)
        self._order = FarthestFirst(points, frame, first, metric)
        self._scale = shape.stretch / kernel.width if plain else 1.0
        self._metric = metric

    def extend(self, size: int, report: Report | None = None) -> None:
        self._order.extend(size, report)

    @property
    def indices(self) -> Indices:
        return self._order.indices

    @property
    def cover(self) -> LeafCover | None:  # type: ignore[override]  # a property, since the leaves are rebuilt if float32 is too coarse
        if not self._order.complete:
            return None
        return LeafCover(self._order.leaves, self._metric, self._scale * self._order.unit)

    def radii(self) -> Radii:
        return self._scale * self._order.covering_radii()


def _products_are_faster(points: Floats, kernel: RadialKernel) -> bool:
    """Whether matrix products are faster than leaves: with many columns, and for rows outside of main memory.

    They need Euclidean distances, and values with squares that fit into single precision.
    """
    if kernel.product(points.shape[1]).profile.ranking != SQUARED or points.dtype.kind != "f":
        return False
    if in_memory(points) and (points.shape[1] < _engine.costs.MANY or not kernel.is_isotropic):
        return False
    return MIN_ABS <= max(-float(points.min()), float(points.max())) <= MAX_ABS


class _ByProducts(Traversal):
    """The same traversal by matrix products, on the processor or on the GPU that holds the points (`_engine.lazy_cover`)."""

    def __init__(self, points: Floats, kernel: RadialKernel, first: int) -> None:
        shape, plain = kernel.product(points.shape[1]), kernel.is_isotropic
        self._cover = LazyCover(rows_in_place(points, None if plain else kernel.frame(points, shape)))
        self._cover.add_rows(np.array([first]))
        self._scale = shape.stretch / kernel.width if plain else 1.0
        self._first, self._remaining = first, np.inf  # the squared covering radius

    def extend(self, size: int, report: Report | None = None) -> None:
        more = size - 1 - len(self._cover.indices)
        if more >= 0 and self._remaining > 0:
            self._remaining = self._cover.extend(more, report=report)

    @property
    def indices(self) -> Indices:
        return np.array([self._first, *self._cover.indices], np.int64)

    def radii(self) -> Radii:
        return np.asarray(self._scale * np.sqrt([*self._cover.distances, self._remaining]))


class _InFeatureSpace(Traversal):
    """Any kernel with a constant diagonal C: squared distances are 2 − 2 k(x, c)/C, one matrix column per atom."""

    def __init__(self, points: Floats, kernel: FunctionKernel, first: int) -> None:
        self._points, self._kernel = points, kernel
        self._squares = np.full(len(points), np.inf)  # squared distance to the nearest atom
        self._rows: list[int] = []
        self._radii: list[float] = []
        self._choose(first)

    def _choose(self, row: int) -> None:
        for a, b in row_blocks(self._points, self._points.shape[1]):
            column = self._kernel.product_gram(self._points[a:b], self._points[row : row + 1])[:, 0]
            np.minimum(self._squares[a:b], np.maximum(2 - 2 * column, 0), out=self._squares[a:b])
        self._squares[row] = 0.0
        self._rows.append(row)
        self._radii.append(float(np.sqrt(self._squares.max())))

    def extend(self, size: int, report: Report | None = None) -> None:
        while len(self._rows) < size:
            row = int(np.argmax(self._squares))
            if self._squares[row] <= 1e-14:  # rounding of a diagonal
                return
            self._choose(row)
            if report is not None:
                report(len(self._rows), size)

    @property
    def indices(self) -> Indices:
        return np.array(self._rows, dtype=np.int64)

    def radii(self) -> Radii:
        return np.array(self._radii)


class _Renamed(Traversal):
    """A traversal of a subset of the rows, which returns the row numbers of the full data."""

    def __init__(self, inner: Traversal, rows: Indices) -> None:
        self._inner, self._rows = inner, rows

    def extend(self, size: int, report: Report | None = None) -> None:
        self._inner.extend(min(size, len(self._rows)), report)

    @property
    def indices(self) -> Indices:
        return np.asarray(self._rows[self._inner.indices])

    def radii(self) -> Radii | None:
        return self._inner.radii()


class _Merged(Traversal):
    """The traversals of several groups as one. The group with the largest radius always chooses next."""

    def __init__(self, parts: list[Traversal]) -> None:
        self._parts = parts
        self._chosen: Indices = np.empty(0, np.int64)
        self._radii: Radii = np.empty(0)

    def extend(self, size: int, report: Report | None = None) -> None:
        length = 8  # atoms of each group, doubled until the merge needs no more
        while len(self._chosen) < size:
            for part in self._parts:
                part.extend(min(size, length), report)
            # rounding may raise a radius, which must not change the order within a group
            radii = [np.minimum.accumulate(np.asarray(part.radii())) for part in self._parts]
            # the radius of its group before each choice, which sets the order; the first atom of a group precedes all others
            before, after = np.concatenate([np.append(np.inf, group[:-1]) for group in radii]), np.concatenate(radii)
            order = np.argsort(-before, kind="stable")
            last = np.cumsum([len(group) for group in radii]) - 1
            unfinished = [len(group) == length < size and group[-1] > 0 for group in radii]
            if not np.isin(last[unfinished], order[:size]).any():
                self._chosen = np.concatenate([part.indices for part in self._parts])[order[:size]]
                self._radii = np.append(before[order], after[order[-1]])[1 : len(self._chosen) + 1]
                return
            length *= 2

    @property
    def indices(self) -> Indices:
        return self._chosen

    def radii(self) -> Radii | None:
        return self._radii
