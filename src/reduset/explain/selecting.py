"""Which rows: greedy ones on the simplex where they are few, thinned ones with equal weights where they are many.

A greedy choice looks at every candidate for every row, O(q·m²), so that it is made among q ≤ 8,192 rows and up to 1,000 of them;
what it needs to know of f is then of these alone, O(q²·d). The weights and the certificate come from all rows all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._types import Array, Indices, Report
from reduset.compression import Compression, compress_quietly
from reduset.explain.affine import AffineGreedy
from reduset.mean import KernelMean
from reduset.select import Selector, Thinning
from reduset.select.contract import Traversal
from reduset.weights import OWN

CHOSEN_FROM = 8192  # rows
GREEDY_UP_TO = 1000  # of them


def few_rows(full: KernelMean, size: int | None, equal: bool = False, **options: Any) -> tuple[Indices, Array, Compression]:
    """Rows of a mean and their weights, for a size, or where that is None for the ``tol`` among the options."""
    if equal or (size is not None and size > GREEDY_UP_TO):
        small = compress_quietly(full, size=size, select=Thinning(), weights=OWN, **options)
    else:
        small = compress_quietly(full, size=size, select=GreedyOfSome(), weights="simplex", **options)
    if small.indices is None:
        raise RuntimeError(f"{small.selection} chooses rows")
    return small.indices, small.mean.weights, small


@dataclass(frozen=True)
class GreedyOfSome(Selector):
    """`AffineGreedy`, where there are too many rows among a draw of them by weight."""

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        if mean.size <= CHOSEN_FROM:
            return AffineGreedy().begin(mean, rng)
        rows, counts = np.unique(mean.draw_rows(CHOSEN_FROM, rng), return_counts=True)
        some = KernelMean(mean.atoms[rows], counts / counts.sum(), mean.kernel)
        return _Among(AffineGreedy().begin(some, rng), rows)

    def __str__(self) -> str:
        return "Greedy"


class _Among(Traversal):
    """A traversal of some rows, by their numbers among all."""

    def __init__(self, traversal: Traversal, rows: Indices) -> None:
        self._traversal, self._among = traversal, rows

    def extend(self, size: int, report: Report | None = None) -> None:
        self._traversal.extend(size, report)

    @property
    def indices(self) -> Indices:
        found = self._traversal.indices
        return self._among[:0] if found is None else self._among[found]
