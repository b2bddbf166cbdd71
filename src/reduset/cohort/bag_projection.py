"""A bag projected onto the span of some atoms: the evidence from which its compression is put together, without its points.

κ, the products of the bag's mean f with the bumps of the atoms, says where Pf is; the residual ‖f − Pf‖² is measured once, for all
of the atoms. One pass over the points each: O(n·m), and that of the probe.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array
from reduset.certificate.probe import Measurement, Probe
from reduset.certificate.rule import probe_for
from reduset.compression import Prefixes
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.weights import Span


@dataclass(frozen=True)
class BagEvidence:
    """What is known of a bag on the atoms of a span.

    Attributes
    ----------
    kappa : (k,) its products with the bumps of the atoms given; residual : ‖f − Pf‖²
    size : of its points; mass, total : Σw and Σ|w|
    """

    kappa: Array
    residual: Measurement
    size: int
    mass: float
    total: float

    def prefixes(self, span: Span, kernel: Kernel, kind: str, confidence: float) -> Prefixes:
        """The bag on every prefix of these atoms, with weights of that kind."""
        mine = span.facing(self.kappa)
        shares = np.zeros(len(mine.atoms))
        return Prefixes(kernel, mine, self.residual, kind, self.mass, self.total, shares, None, confidence)


class BagProjector:
    """One bag with its points, its κ at the atoms so far, and its probe."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._confidence, self._rng = mean, confidence, rng
        self._probe: Probe | None = None
        self._places: Array = np.empty((0, mean.dimension))
        self._kappa: Array = np.empty(0)

    def project(self, span: Span) -> BagEvidence:
        """Project onto these atoms; κ at those that they begin with and that were given before is not summed again."""
        mean, known = self._mean, len(self._places)
        if not np.array_equal(span.given[:known], self._places):
            known = 0
        fresh = mean.kernel.product_sums(mean.atoms, mean.weights, span.given[known:]) if len(span.given) > known else np.empty(0)
        self._places = span.given
        self._kappa = np.concatenate([self._kappa[:known], fresh])[: len(span.given)]
        kappa = self._kappa.copy()
        mine = span.facing(kappa)
        if self._probe is None:
            self._probe = probe_for(mean, self._confidence, self._rng)
        residual = self._probe.measure(mine.atoms, mine.weights("free", mean.mass, mine.size), mine.kappa)
        return BagEvidence(kappa, residual, mean.size, mean.mass, mean.total)
