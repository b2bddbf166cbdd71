"""The shadow density estimate (Kingravi, Vela & Gray 2013, Algorithm 2): a single pass that determines the number of atoms.

Rows are visited in order. Each point that no atom covers becomes an atom and covers all points within bandwidth/ℓ. Its kernel
function hardly differs from theirs. Its own weight is the weight that it covers. O(n·m) at worst as in the paper, less with boxes
(`_engine.shadows`).

Atoms are sorted by weight, heaviest first, so that every prefix has the largest weight. For a kernel without a bandwidth, an atom
covers a point if g/C is above exp(−1/(2ℓ²)). This is the value of a Gaussian at the distance bandwidth/ℓ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import BlockRows, Frame, row_blocks, shadow_centres
from reduset._messages import warn
from reduset._types import Array, Floats, Indices, Report
from reduset.kernels import Kernel, RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal, support


@dataclass(frozen=True)
class Shadow(Selector):
    """Atoms with shadows, balls of radius bandwidth/ell, that cover the data.

    Parameters
    ----------
    ell : float
        The bandwidth divided by the radius of a shadow. Larger values keep more atoms. The paper advises 3 to 5.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Shadow
    >>> f = KernelMean.from_samples(np.array([[0.0], [5.0], [0.1], [5.2], [5.1]]), kernel=Gaussian(1.0))
    >>> chosen = Shadow(ell=4.0).select(f, 5)
    >>> chosen.indices, chosen.weights
    (array([1, 0]), array([0.6, 0.4]))
    """

    ell: float = 4.0
    ending = True
    weighs = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "ell", _validate.positive(self.ell, "ell", "the paper advises 3 to 5"))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Shadows(mean, self.ell)


class _Shadows(Traversal):
    def __init__(self, mean: KernelMean, ell: float) -> None:
        self._mean, self._ell = mean, ell
        self._rows: Indices | None = None
        self._masses: Array = np.empty(0)
        self._assignments: Indices = np.empty(0, np.int64)
        self._count = 0

    def extend(self, size: int, report: Report | None = None) -> None:
        if self._rows is None:
            self._rows, self._masses = self._pass(report)
        self._count = max(self._count, min(size, len(self._rows)))

    def _pass(self, report: Report | None) -> tuple[Indices, Array]:
        mean, kernel, ell = self._mean, self._mean.kernel, self._ell
        points, rows = support(mean)
        weights = mean.weights if rows is None else mean.weights[rows]
        if isinstance(kernel, RadialKernel):
            metric = kernel.product(mean.dimension).profile.ranking
            assign = partial(_shadows_by_distance, kernel.plain_frame(points), 1.0 / ell, metric)
        else:
            assign = partial(_shadows_by_products, kernel, float(np.exp(-0.5 / ell**2)))
        centres, assignments = _of_blocks(points, assign, report) if isinstance(points, BlockRows) else assign(points, report)
        if len(centres) == len(points) > 1:
            warn(
                f"Shadow: ell={ell:g} keeps every one of the {len(points):,} points, because no two are within bandwidth/ell of "
                "each other; lower ell, or widen the bandwidth"
            )
        masses = np.bincount(assignments, weights, len(centres)).astype(np.float64)
        heaviest = np.argsort(-np.bincount(assignments, np.abs(weights), len(centres)), kind="stable")
        chosen = centres[heaviest]
        rank = np.empty(len(centres), np.int64)
        rank[heaviest] = np.arange(len(centres))
        self._assignments = np.full(mean.size, -1)
        self._assignments[slice(None) if rows is None else rows] = rank[assignments]
        return chosen if rows is None else rows[chosen], masses[heaviest]

    @property
    def indices(self) -> Indices:
        return np.empty(0, np.int64) if self._rows is None else self._rows[: self._count]

    def weights(self) -> Array:
        masses = self._masses[: self._count]
        factor = float(np.abs(self._masses).sum()) / max(float(np.abs(masses).sum()), np.finfo(np.float64).tiny)
        return masses * factor if self._count < len(self._masses) else masses

    def assignments(self) -> Indices | None:
        return self._assignments if 0 < self._count == len(self._masses) else None


Assignment = tuple[Indices, NDArray[np.int32]]  # the rows of the centres, and the number of the centre of every row


def _of_blocks(points: BlockRows, assign: Callable[..., Assignment], report: Report | None) -> Assignment:
    """The same centres from rows in blocks. Each batch of blocks has twice as many as the one before.

    Centres of earlier batches come before the rows of a block. They cover what they can, and only the other rows are fetched.
    """
    rows, held = np.empty(0, np.int64), np.empty((0, points.shape[1]), points.dtype)
    filled = np.flatnonzero(np.diff(points.starts)).tolist()
    a, batch = 0, 1
    while a < len(filled):
        some = filled[a : a + batch]
        parts = list(points.run(partial(_uncovered, assign, held), [()] * len(some), some))
        numbers = np.concatenate([points.starts[k] + local for k, (local, _) in zip(some, parts, strict=True)])
        centres, _ = assign(np.concatenate([held, *(values for _, values in parts)]), None)
        new = centres[len(held) :] - len(held)
        held = np.concatenate([held, np.concatenate([values for _, values in parts])[new]])
        rows = np.concatenate([rows, numbers[new]])
        a, batch = a + batch, 2 * batch
        if report is not None:
            report(int(points.starts[some[-1] + 1]), len(points))
    return rows, points.map_rows(partial(_covering, assign, held))


def _covering(assign: Callable[..., Assignment], held: Floats, points: Floats) -> NDArray[np.int32]:
    """The first centre that covers each row. It is at least the number of ``held`` centres where none of them does."""
    return assign(np.concatenate([held, points]), None)[1][len(held) :]


def _uncovered(assign: Callable[..., Assignment], held: Floats, points: Floats) -> tuple[Indices, Floats]:
    """The numbers of the rows that no held centre covers, and these rows."""
    local = np.flatnonzero(_covering(assign, held, points) >= len(held))
    return local, points[local]


def _shadows_by_distance(frame: Frame, radius: float, metric: int, points: Floats, report: Report | None) -> Assignment:
    return shadow_centres(points, frame, radius, metric, report)


def _shadows_by_products(kernel: Kernel, threshold: float, points: Floats, report: Report | None) -> Assignment:
    """The same pass by inner products, for kernels without a distance."""
    assignments = np.full(len(points), -1, np.int32)
    centres: list[int] = []
    for row in range(len(points)):
        if assignments[row] >= 0:
            continue
        for a, b in row_blocks(points, points.shape[1]):
            near = kernel.product_gram(points[a:b], points[row : row + 1])[:, 0] > threshold
            assignments[a:b][near & (assignments[a:b] < 0)] = len(centres)
        assignments[row] = len(centres)
        centres.append(row)
        if report is not None:
            report(row + 1, len(points))
    return np.array(centres, dtype=np.int64), assignments
