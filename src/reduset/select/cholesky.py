"""Randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2023), by rejection (Epperly, Tropp & Webber 2024).

Each atom is drawn with a probability proportional to |w|·σ². σ² is the squared distance of a point's kernel function to the span of
the chosen atoms. The plain algorithm updates σ² of every point at every step, O(n·m²) with an n × m matrix. But σ² only shrinks, so
an old value is an upper bound. Points are drawn by these bounds, σ² of the drawn points is computed, and a point is accepted with
the ratio of the two. The atoms have the same distribution. Proposals are drawn in blocks, which grow as fewer are accepted. Each
proposal tightens its own bound. All bounds are refreshed only when the cost of the proposals since the last refresh reaches the
cost of a refresh. Memory O(n + m²).
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

PROPOSALS, MAX_PROPOSALS = 64, 2048
MAX_SEQUENTIAL = 128  # proposals of a block that are accepted or rejected one by one
REFRESH_ROWS = 2048
SCAN = 8  # cost of drawing per row, in operations of a matrix product


@dataclass(frozen=True)
class Cholesky(Selector):
    """Random atoms, each drawn by its distance to the span of the earlier atoms.

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
        self._wasted = 0  # operations since the last accepted proposal
        self._exhausted = False

    @property
    def indices(self) -> Indices:
        return np.array(self._rows, dtype=np.int64)

    def extend(self, size: int, report: Report | None = None) -> None:
        while len(self._rows) < size and not self._exhausted:
            self._propose(size)
            # with repeated rows few proposals can be accepted, and every block costs a sum over all rows
            is_expensive = self._wasted >= self._mean.size * len(self._rows) ** 2 > 0
            if (self._since >= self._mean.size or is_expensive) and len(self._rows) < size:
                self._refresh()
            if report is not None:
                report(len(self._rows), size)

    def _propose(self, size: int) -> None:
        """Draw a block by the bounds, and accept or reject its points one by one."""
        ends = self._mean.magnitudes * self._bound
        np.cumsum(ends, out=ends)
        if not ends[-1] > 0:
            self._exhausted = True
            return
        quantiles = self._rng.random(self._block) * ends[-1]
        drawn = np.minimum(np.searchsorted(ends, quantiles, side="right"), self._mean.size - 1)
        threshold = self._rng.random(self._block) * self._bound[drawn]
        floor = pivot_floor(len(self._rows) + PROPOSALS)
        points = self._mean.atoms[drawn]
        columns = _columns(self._mean.kernel, self._atoms, self._factor, points) if self._rows else np.empty((0, self._block))
        squared = 1.0 - np.einsum("ij,ij->j", columns, columns)  # σ²
        self._tighten(drawn, np.where(squared > floor, squared, 0.0))
        self._since += self._block
        self._wasted += SCAN * self._mean.size + self._block * len(self._rows) ** 2
        able = np.flatnonzero((squared > floor) & (squared > threshold))  # σ² only shrinks, so the others cannot be accepted
        if len(able) < self._block // 4:
            self._block = min(2 * self._block, MAX_PROPOSALS)
        able = able[:MAX_SEQUENTIAL]  # the others are drawn again: draws are independent, so the distribution is the same
        if len(able):
            self._wasted = 0
            self._accept(drawn[able], points[able], columns[:, able], threshold[able], floor, size - len(self._rows))

    def _accept(self, drawn: Indices, points: Floats, columns: Array, threshold: Array, floor: float, limit: int) -> None:
        """Accept or reject the proposals one by one, given the proposals accepted before."""
        residual = self._mean.kernel.product_gram(points, points) - columns.T @ columns
        accepted: list[int] = []
        inside = np.zeros((len(drawn), len(drawn)))  # row k: the direction that the k-th accepted adds, at every proposal
        for i in range(len(drawn)):
            squared = float(residual[i, i])
            if len(accepted) == limit or not squared > max(floor, threshold[i]):
                continue
            inside[len(accepted)] = residual[i] / np.sqrt(squared)
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
        self._since = self._wasted = 0


def _columns(kernel: Kernel, atoms: Floats, factor: Array, points: Floats) -> Array:
    """L⁻¹ k(atoms, points): the kernel functions of the points in the orthonormal basis of the span."""
    gram = kernel.product_gram(atoms, points)
    with single_threaded_blas():
        return np.asarray(solve_triangular(factor, gram, lower=True, check_finite=False, overwrite_b=True))


def _tightened(kernel: Kernel, atoms: Floats, factor: Array, points: Floats, magnitudes: Array, bound: Array) -> Array:
    """Bounds on σ² of points, replaced by σ² itself for points that can be drawn."""
    out, floor = bound.copy(), pivot_floor(len(atoms))

    def refresh_block(a: int, b: int) -> None:
        able = a + np.flatnonzero(magnitudes[a:b] * bound[a:b])
        if len(able):
            columns = _columns(kernel, atoms, factor, points[able])
            squared = 1.0 - np.einsum("ij,ij->j", columns, columns)
            out[able] = np.minimum(bound[able], np.where(squared <= floor, 0.0, squared))

    tasks = [partial(refresh_block, a, b) for a, b in blocks(len(points), REFRESH_ROWS)]
    run_all(tasks, in_turn=not isinstance(kernel, RadialKernel))
    return out
