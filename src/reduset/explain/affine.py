"""Greedy choice for weights that sum to one: each row the one that brings the flat through the chosen nearest to f.

With the bumps seen from f, b(x) = φ(·, x) − f, and A the inverse of their Gram matrix at the chosen rows, the nearest point of the
flat (their affine hull) has the weights A1 / 1ᵀA1 and the squared distance 1 / 1ᵀA1. A row x adds (1 − b(x)ᵀA1)² / σ²(x) to 1ᵀA1,
σ² the squared distance of b(x) to the span of the others: a pursuit of the function that is 1 everywhere. That of f itself
(`select.Greedy`) spends directions on the mass, which weights on the simplex have anyway.

⟨b(x), b(y)⟩ = k(x, y) − f(x) − f(y) + ‖f‖². O(q²) for f at q rows and O(q·m²) for the choice, memory O(q·m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._engine import Pursuit, single_threaded_blas
from reduset._types import Array, Indices, Report
from reduset.mean import KernelMean
from reduset.select import Greedy, Selector
from reduset.select.contract import Traversal


@dataclass(frozen=True)
class AffineGreedy(Selector):
    """Each row the one that lowers the error most under weights that sum to one; f is looked at in every row."""

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _AffinePursuit(mean, rng)

    def __str__(self) -> str:
        return "Greedy"


class _AffinePursuit(Traversal):
    def __init__(self, mean: KernelMean, rng: np.random.Generator) -> None:
        self._mean, self._rng = mean, rng
        self._able = np.flatnonzero(mean.weights)
        self._pursuit: Pursuit | None = None
        self._others: Traversal | None = None

    def extend(self, size: int, report: Report | None = None) -> None:
        if self._pursuit is None:
            self._pursuit = self._pursued()
        with single_threaded_blas():
            while self._others is None and len(self._pursuit.chosen) < size:
                if not self._pursuit.choose():
                    # the flat meets f up to rounding, or has all directions; rows may be left that are no combination of these
                    self._others = Greedy(after=tuple(self.indices.tolist())).begin(self._mean, self._rng)
                elif report is not None:
                    report(len(self._pursuit.chosen), size)
        if self._others is not None:
            self._others.extend(size, report)

    def _pursued(self) -> Pursuit:
        kernel, points = self._mean.kernel, np.asarray(self._mean.atoms[self._able], np.float64)
        weights = self._mean.weights[self._able]
        values = kernel.product_sums(points, weights / weights.sum(), points)
        energy = float(weights @ values) / float(weights.sum())
        row = kernel.product_rows(points)

        def seen_from_f(place: int) -> Array:
            return np.asarray(row(place) - (values + (values[place] - energy)))

        return Pursuit(np.ones(len(points)), seen_from_f, 1.0 - 2.0 * values + energy)

    @property
    def indices(self) -> Indices:
        if self._others is not None and self._others.indices is not None:
            return self._others.indices
        return self._able[:0] if self._pursuit is None else self._able[np.array(self._pursuit.chosen, dtype=np.int64)]
