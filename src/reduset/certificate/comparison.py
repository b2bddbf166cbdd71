"""Other uses of probes: certificates of given small means, the check of the norm, and surrogates.

**Certificates between means** with too many atoms for a Gram matrix. The distance is measured. Neither energies nor bounds are
computed. ‖f‖² is estimated as the mean of the small mean's products at atoms drawn by weight. O(n·s) for s frequencies.

**Cancelling weights.** If ‖f‖ is 0 up to rounding, a relative error is not defined. ‖f‖² is measured by frequencies down to about
ε·Σ|w|, because their terms are squares. Kernels without a spectrum are evaluated at all rows, up to `EXACT_UP_TO` rows. One pass
over the data, for signed means only.

**Surrogates** are means of a few thousand atoms that replace a large mean which is evaluated repeatedly. Their atoms are rows drawn
by weight, with the best weights up to a small ridge. O(n·N + N³/3), once, in single precision if that is faster. The distance of a
surrogate to the original is measured like any other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from reduset._engine import single_threaded_blas
from reduset._types import Array
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.certificate import Certificate
from reduset.certificate.frequencies import two_sided
from reduset.certificate.rule import EXACT_UP_TO, probe_for
from reduset.kernels import RadialKernel, exponential
from reduset.mean import KernelMean

CONFIDENCE = 0.95
NORM_ROWS = 1024


def certificate_between(full: KernelMean, small: KernelMean, kernel: RadialKernel, rng: np.random.Generator) -> Certificate:
    """The certificate of ``small`` as an approximation to ``full``: both with ``kernel``, equal mass and non-negative weights."""
    probe = probe_for(full, CONFIDENCE, rng)
    atoms = np.asarray(small.atoms, np.float64)
    # For means of equal mass, this probe uses frequencies, which need no values at the atoms.
    values: Array = np.empty(0) if isinstance(probe, FrequencyProbe) else kernel.product_sums(full.atoms, full.weights, atoms)
    measured = probe.measure(atoms, small.weights, values)
    drawn = small.draw_rows(NORM_ROWS, rng)
    products = kernel.product_sums(small.atoms, small.weights, atoms[drawn])
    whole, half = float(products.mean()), two_sided(CONFIDENCE) * float(products.std(ddof=1)) / np.sqrt(NORM_ROWS)
    energy = exponential(kernel.log_energy(full.dimension))
    return replace(
        Certificate.without_error(full),
        relative_error=float(np.sqrt(measured.square / whole)),
        interval=(
            float(np.sqrt(measured.low / (whole + half))),
            float(np.sqrt(measured.high / max(whole - half, products.min()))),
        ),
        confidence=CONFIDENCE,
        method=measured.method,
        norm=float(np.sqrt(whole * energy)),
        bound=None,
        theorem_bound=None,
        sup_bound=None,
        incoherence=None,
        radius=None,
    )


ZERO_NORM = 64 * float(np.finfo(np.float64).eps)  # smaller norms, relative to Σ|w|, are rounding


def require_norm(mean: KernelMean) -> None:
    """Raise `ValueError` if the kernel functions of a mean cancel."""
    if not mean.stored_weights.min() < 0 < mean.stored_weights.max():
        return
    total = mean.total
    proportion = _norm(mean) / total
    if proportion <= ZERO_NORM:
        raise ValueError(
            f"weights must not cancel, got {mean.size:,} signed weights for which the norm of the mean is {proportion:.2g} of the "
            "sum of |weights|, which is rounding error, so that a relative error is not defined; compress the positive and the "
            "negative part separately"
        )


def _norm(mean: KernelMean) -> float:
    """‖f‖ in units where every kernel function has norm 1; infinite if it is not computed."""
    zero = np.asarray(mean.atoms[:1], np.float64), np.zeros(1), np.zeros(1)
    if isinstance(mean.kernel, RadialKernel):
        probe = FrequencyProbe(mean, CONFIDENCE, np.random.default_rng(0))
        if probe.resolved:
            return float(np.sqrt(probe.glance(*zero).square))
    if mean.size > EXACT_UP_TO:
        return np.inf
    square = float(mean.weights @ mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms))
    rounding = ZERO_NORM * mean.total**2
    return 0.0 if square <= rounding else float(np.sqrt(square))


RIDGE, FINE_RIDGE = 1e-7, 1e-11


def surrogate(mean: KernelMean, size: int, rng: np.random.Generator, fine: bool = False) -> KernelMean:
    """A mean of at most ``size`` atoms close to a given mean; the given mean itself if it is small enough.

    ``fine`` sums in double precision and shrinks the ridge to match.
    """
    if mean.size <= size:
        return mean
    rows = np.unique(mean.draw_rows(size, rng))
    atoms = np.asarray(mean.atoms[rows], np.float64)
    kappa = mean.kernel.product_sums(mean.atoms, mean.weights, atoms, "double" if fine else "auto")
    gram = mean.kernel.product_gram(atoms, atoms)
    gram[np.diag_indices(len(gram))] += FINE_RIDGE if fine else RIDGE
    with single_threaded_blas():
        weights = cho_solve(cho_factor(gram, lower=True, overwrite_a=True, check_finite=False), kappa, check_finite=False)
    return KernelMean.unchecked(atoms, weights, mean.kernel)


def distance_from(mean: KernelMean, other: KernelMean, rng: np.random.Generator) -> float:
    """The upper end of the interval of ‖mean − other‖ / ‖other‖."""
    kappa = mean.kernel.product_sums(mean.atoms, mean.weights, other.atoms)
    distance = probe_for(mean, CONFIDENCE, rng).glance(np.asarray(other.atoms, np.float64), other.weights, kappa).high
    square = float(other.weights @ other.kernel.product_sums(other.atoms, other.weights, other.atoms))
    return float(np.sqrt(distance / square)) if square > 0 else np.inf
