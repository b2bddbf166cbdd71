"""Signed weights that cancel: where ‖f‖ is 0 up to rounding there is nothing to compare an error with.

‖f‖² is measured by frequencies, whose terms are squares: down to the rounding of a wave, some ε·Σ|w|. Kernels without frequencies
are looked at row by row where rows are few. One pass over the data, for means of both signs alone.
"""

from __future__ import annotations

import numpy as np

from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.rule import EXACT_UP_TO
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean

NOTHING = 64 * float(np.finfo(np.float64).eps)  # of Σ|w|: a norm of rounding alone
CONFIDENCE = 0.95


def require_norm(mean: KernelMean) -> None:
    """Refuse a mean whose bumps cancel."""
    if not mean.stored_weights.min() < 0 < mean.stored_weights.max():
        return
    total = mean.total
    share = _norm(mean) / total
    if share <= NOTHING:
        raise ValueError(
            f"weights must not cancel: the norm of the mean is {share:.2g} of the sum of |weights|, which is rounding, got "
            f"{mean.size:,} bumps of both signs that add up to nothing, and nothing to compare an error with; "
            "compress the positive and the negative part by themselves"
        )


def _norm(mean: KernelMean) -> float:
    """‖f‖ in units where every bump has norm 1, infinite where it is not looked at."""
    nothing = np.asarray(mean.atoms[:1], np.float64), np.zeros(1), np.zeros(1)
    if isinstance(mean.kernel, RadialKernel):
        probe = FrequencyProbe(mean, CONFIDENCE, np.random.default_rng(0))
        if probe.resolved:
            return float(np.sqrt(probe.glance(*nothing).square))
    if mean.size > EXACT_UP_TO:
        return np.inf
    square = float(mean.weights @ mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms))
    rounding = NOTHING * mean.total**2
    return 0.0 if square <= rounding else float(np.sqrt(square))
