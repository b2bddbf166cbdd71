"""Sampling by the squared norms of the kernel matrix's columns (Drineas & Mahoney 2005; the L2 of Cruz Cortés & Scott 2017).

Row j is drawn with a chance proportional to |wⱼ| Σₖ |wₖ| g(xₖ, xⱼ)²: points in dense places first. Without replacement, by
exponential clocks as in `random`, so that draws nest. The sum runs over every row up to `EXACT_UP_TO` of them and over a sample of
`SAMPLED` beyond, O(n) in all. It is a rival to compare with: dense places are where atoms are least needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine import blocks
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal
from reduset.select.random import Clocks

EXACT_UP_TO, SAMPLED = 4096, 1024
ENTRIES = 1 << 21  # of the kernel matrix that are held at a time


@dataclass(frozen=True)
class ColumnNorm(Selector):
    """Random atoms, with chances proportional to the squared norms of the kernel matrix's columns.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import ColumnNorm
    >>> crowd_and_hermit = np.append(np.linspace(0, 0.1, 999), 50.0).reshape(-1, 1)
    >>> f = KernelMean.from_samples(crowd_and_hermit, kernel=Gaussian(1.0))
    >>> 999 in ColumnNorm().select(f, 20, rng=0).indices
    False
    """

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return Clocks(mean, column_norms(mean, rng), rng)


def column_norms(mean: KernelMean, rng: np.random.Generator) -> NDArray[np.float64]:
    """|wⱼ| Σₖ |wₖ| g(xₖ, xⱼ)² for every row j, (n,); from a sample of the rows k where there are many."""
    magnitudes = mean.magnitudes
    total = float(magnitudes.sum())
    if mean.size <= EXACT_UP_TO:
        others, shares = mean.atoms, np.asarray(magnitudes)
    else:
        others, shares = mean.atoms[mean.draw_rows(SAMPLED, rng)], np.full(SAMPLED, 1.0 / SAMPLED)
    norms = np.empty(mean.size)
    for a, b in blocks(mean.size, max(1, ENTRIES // len(others))):
        norms[a:b] = np.square(mean.kernel.product_gram(mean.atoms[a:b], others)) @ shares
        if len(others) < mean.size:  # a sample seldom holds the row itself
            norms[a:b] += magnitudes[a:b] / total
    return magnitudes * norms
