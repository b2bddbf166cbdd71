"""A radial bump as a mixture of normal laws of many widths: φ ∝ E N(·; 0, τ²), τ = factor·G^power, G gamma of some shape.

Every bump exp(−r), Matérn or Student is one (Andrews & Mallows 1974). What a normal law has in closed form is then an integral over
τ alone: over log G the integrand is analytic and decays at both ends, so that the trapezoidal rule is right to 1e-12 with some
hundred nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from reduset._types import Array

LOST = 34.0  # e to its minus is what the ends leave out
STEP = 0.25  # of log G, where the shape is 1 or less


@dataclass(frozen=True)
class ScaleLaw:
    """The law of the width τ of the normal laws that a bump of unit bandwidth mixes."""

    shape: float
    power: float
    factor: float

    def nodes(self) -> tuple[Array, Array]:
        """Widths and their shares, which sum to 1."""
        a = self.shape
        top = np.log(a + LOST + 2 * np.sqrt(LOST * a))
        s = np.arange(np.log(a) - LOST / a - 2 * np.sqrt(LOST / a), top, STEP / np.sqrt(max(1.0, a)))
        logs = a * s - np.exp(s)
        share = np.exp(logs - logs.max())
        return self.factor * np.exp(self.power * s), np.asarray(share / share.sum())

    def at(self, share: Array) -> Array:
        """The width at a share of the law, from narrow to wide."""
        gamma = special.gammaincinv(self.shape, np.clip(share, 1e-300, 1 - 1e-16) if self.power > 0 else 1 - share)
        return np.asarray(self.factor * np.maximum(gamma, 1e-300) ** self.power)
