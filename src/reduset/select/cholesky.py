"""Randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2023), by rejection (Epperly, Tropp & Webber 2024).

Each atom is drawn with a chance proportional to |w|·σ², σ² the squared distance of a point's bump to the span of those chosen. The
plain algorithm updates σ² of every point at every step, O(n·m²) with an n × m matrix. But σ² only shrinks, so an old one is an
upper bound: draw by the bounds, compute σ² of what was drawn, and accept with the ratio of the two. The law of the atoms is the
same. Proposals go in blocks, larger ones as fewer are accepted; every one tightens its own bound, and all bounds are refreshed only
when the proposals since the last refresh have cost as much as one. Memory O(n + m²).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular

from reduset._engine import blocks, map_rows, pivot_floor, run_all, single_threaded_blas
from reduset._types import Array, Floats, Indices, Report
from reduset.kernels import Kernel, RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal

PROPOSALS, MOST_PROPOSALS = 64, 2048
TOGETHER = 128  # proposals gone through one after the other in one block
REFRESH_ROWS = 2048
SCAN = 8  # operations a row for drawing, next to those of a matrix product


@dataclass(frozen=True)
class Cholesky(Selector):
    """Random atoms, each drawn by its distance to the span of those before it.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Cholesky
    >>> f = KernelMean.from_samples(np.array([[0.0], [0.0], [0.0], [9.0]]), kernel=Gaussian(1.0))
    >>> sorted(f.atoms[Cholesky().select(f, 2, rng=0).indices, 0].tolist())
    [0.0, 9.0]
    """

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Pivots(mean, rng)


class _Pivots(Traversal):
    def __init__(self, mean: KernelMean, rng: np.random.Generator) -> None:
        self._mean, self._rng = mean, rng
        self._bound = np.ones(mean.size)  # on σ²
        self._factor = np.zeros((0, 0))  # of the atoms' Gram matrix
        self._rows: list[int] = []
        self._atoms: Floats = mean.atoms[:0]
        self._block = PROPOSALS
        self._since = 0  # proposals since the last refresh
        self._in_vain = 0  # operations for proposals of which none had room, since one had
        self._exhausted = False

    @property
    def indices(self) -> Indices:
        return np.array(self._rows, dtype=np.int64)

    def extend(self, size: int, report: Report | None = None) -> None:
        while len(self._rows) < size and not self._exhausted:
            self._propose(size)
            # where rows repeat themselves few are left to be accepted, and drawing these costs a sum over all rows each time
            dear = self._in_vain >= self._mean.size * len(self._rows) ** 2 > 0
            if (self._since >= self._mean.size or dear) and len(self._rows) < size:
                self._refresh()
            if report is not None:
                report(len(self._rows), size)

    def _propose(self, size: int) -> None:
        """Draw a block by the bounds, and accept or reject one after the other."""
        ends = self._mean.magnitudes * self._bound
        np.cumsum(ends, out=ends)
        if not ends[-1] > 0:
            self._exhausted = True
            return
        places = self._rng.random(self._block) * ends[-1]
        drawn = np.minimum(np.searchsorted(ends, places, side="right"), self._mean.size - 1)
        threshold = self._rng.random(self._block) * self._bound[drawn]
        floor = pivot_floor(len(self._rows) + PROPOSALS)
        points = self._mean.atoms[drawn]
        columns = _columns(self._mean.kernel, self._atoms, self._factor, points) if self._rows else np.empty((0, self._block))
        room = 1.0 - np.einsum("ij,ij->j", columns, columns)
        self._tighten(drawn, np.where(room > floor, room, 0.0))
        self._since += self._block
        self._in_vain += SCAN * self._mean.size + self._block * len(self._rows) ** 2
        able = np.flatnonzero((room > floor) & (room > threshold))  # room only shrinks, so the others are out
        if len(able) < self._block // 4:
            self._block = min(2 * self._block, MOST_PROPOSALS)
        able = able[:TOGETHER]  # what would come after is drawn again: draws are independent, so their law is the same
        if len(able):
            self._in_vain = 0
            self._accept(drawn[able], points[able], columns[:, able], threshold[able], floor, size - len(self._rows))

    def _accept(self, drawn: Indices, points: Floats, columns: Array, threshold: Array, floor: float, most: int) -> None:
        """Go through the proposals one after the other, each in sight of those accepted before it."""
        residual = self._mean.kernel.product_gram(points, points) - columns.T @ columns
        accepted: list[int] = []
        inside = np.zeros((len(drawn), len(drawn)))  # row k: the direction that the k-th accepted adds, at every proposal
        for i in range(len(drawn)):
            room = float(residual[i, i])
            if len(accepted) == most or not room > max(floor, threshold[i]):
                continue
            inside[len(accepted)] = residual[i] / np.sqrt(room)
            residual -= np.outer(inside[len(accepted)], inside[len(accepted)])
            accepted.append(i)
        self._append(drawn, accepted, columns, inside)
        self._atoms = np.concatenate([self._atoms, points[accepted]])
        self._tighten(drawn[accepted], np.zeros(len(accepted)))

    def _append(self, drawn: Indices, accepted: list[int], columns: Array, inside: Array) -> None:
        done, more = len(self._rows), len(accepted)
        factor = np.zeros((done + more, done + more))
        factor[:done, :done] = self._factor
        factor[done:, :done] = columns[:, accepted].T
        factor[done:, done:] = np.tril(inside[:more][:, accepted].T)
        self._factor = factor
        self._rows.extend(int(drawn[i]) for i in accepted)

    def _tighten(self, rows: Indices, bound: Array) -> None:
        self._bound[rows] = np.minimum(self._bound[rows], bound)

    def _refresh(self) -> None:
        """σ² of every point."""
        mean = self._mean
        known = partial(_tightened, mean.kernel, np.asarray(self._atoms), self._factor)
        self._bound = np.asarray(map_rows(mean.atoms, known, mean.magnitudes, self._bound))
        self._since = self._in_vain = 0


def _columns(kernel: Kernel, atoms: Floats, factor: Array, points: Floats) -> Array:
    """L⁻¹ k(atoms, points): the kernel functions of the points in the orthonormal basis of the span."""
    gram = kernel.product_gram(atoms, points)
    with single_threaded_blas():
        return np.asarray(solve_triangular(factor, gram, lower=True, check_finite=False, overwrite_b=True))


def _tightened(kernel: Kernel, atoms: Floats, factor: Array, points: Floats, magnitudes: Array, bound: Array) -> Array:
    """Bounds on σ² of points, brought down to σ² for those that can be drawn."""
    out, floor = bound.copy(), pivot_floor(len(atoms))

    def look(a: int, b: int) -> None:
        able = a + np.flatnonzero(magnitudes[a:b] * bound[a:b])
        if len(able):
            columns = _columns(kernel, atoms, factor, points[able])
            room = 1.0 - np.einsum("ij,ij->j", columns, columns)
            out[able] = np.minimum(bound[able], np.where(room <= floor, 0.0, room))

    tasks = [partial(look, a, b) for a, b in blocks(len(points), REFRESH_ROWS)]
    run_all(tasks, in_turn=not isinstance(kernel, RadialKernel))
    return out
