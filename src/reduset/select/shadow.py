"""The shadow density estimate (Kingravi, Vela & Gray 2013, Algorithm 2): a single pass that decides how many atoms there are.

In the order of the rows, each point that no atom covers becomes one and covers all within bandwidth/ℓ of it: points that the kernel
hardly tells apart. Its own weight is the mass it covers. O(n·m) as in the paper at worst, less by boxes (`_engine.shadows`).

Atoms are handed out heaviest first, so that a prefix holds as much of the mass as it can. For a kernel without a bandwidth a point
is covered where its bump is as close to the atom's as a Gaussian's is at bandwidth/ℓ: g/C above exp(−1/(2ℓ²)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import row_blocks, shadow_centres
from reduset._messages import warn
from reduset._types import Array, Floats, Indices, Report
from reduset.kernels import Kernel, RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal, support


@dataclass(frozen=True)
class Shadow(Selector):
    """Atoms whose shadows, balls of radius bandwidth/ell, cover the data.

    Parameters
    ----------
    ell : float
        How many times smaller than the bandwidth a shadow is; larger keeps more atoms. The paper advises 3 to 5.

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
        self._owners: Indices = np.empty(0, np.int64)
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
            centres, owner = shadow_centres(points, kernel.plain_frame(points), 1.0 / ell, metric, report)
        else:
            centres, owner = _cast_by_products(points, kernel, float(np.exp(-0.5 / ell**2)), report)
        if len(centres) == len(points) > 1:
            warn(
                f"Shadow: ell={ell:g} keeps every one of the {len(points):,} points, no two lie within bandwidth/ell of each "
                "other; lower ell, or widen the bandwidth"
            )
        masses = np.bincount(owner, weights, len(centres)).astype(np.float64)
        heaviest = np.argsort(-np.bincount(owner, np.abs(weights), len(centres)), kind="stable")
        chosen = centres[heaviest]
        places = np.empty(len(centres), np.int64)
        places[heaviest] = np.arange(len(centres))
        self._owners = np.full(mean.size, -1)
        self._owners[slice(None) if rows is None else rows] = places[owner]
        return chosen if rows is None else rows[chosen], masses[heaviest]

    @property
    def indices(self) -> Indices:
        return np.empty(0, np.int64) if self._rows is None else self._rows[: self._count]

    def weights(self) -> Array:
        shown = self._masses[: self._count]
        missing = float(np.abs(self._masses).sum()) / max(float(np.abs(shown).sum()), np.finfo(np.float64).tiny)
        return shown * missing if self._count < len(self._masses) else shown

    def owners(self) -> Indices | None:
        return self._owners if 0 < self._count == len(self._masses) else None


def _cast_by_products(points: Floats, kernel: Kernel, least: float, report: Report | None) -> tuple[Indices, NDArray[np.int32]]:
    """The same pass by inner products, for kernels that know no distance."""
    owner = np.full(len(points), -1, np.int32)
    centres: list[int] = []
    for row in range(len(points)):
        if owner[row] >= 0:
            continue
        for a, b in row_blocks(points, points.shape[1]):
            near = kernel.product_gram(points[a:b], points[row : row + 1])[:, 0] > least
            owner[a:b][near & (owner[a:b] < 0)] = len(centres)
        owner[row] = len(centres)
        centres.append(row)
        if report is not None:
            report(row + 1, len(points))
    return np.array(centres, dtype=np.int64), owner
