"""The certificate of a small mean that was made without a span: measured, and nothing known before measuring.

For means of so many atoms that their Gram matrix would not fit: neither energies nor bounds are computed, and ‖f‖² is estimated as
the mean of the small mean's products at atoms drawn by weight. O(n·s) for s frequencies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reduset._types import Array
from reduset.certificate.certificate import Certificate
from reduset.certificate.frequencies import two_sided
from reduset.certificate.rule import EitherProbe, probe_for
from reduset.kernels import RadialKernel
from reduset.kernels.base import exponential
from reduset.mean import KernelMean

CONFIDENCE = 0.95
NORM_ROWS = 1024


def certificate_between(full: KernelMean, small: KernelMean, kernel: RadialKernel, rng: np.random.Generator) -> Certificate:
    """How far ``small`` is from ``full``, both of ``kernel``, of equal mass and without negative weights."""
    probe = probe_for(full, CONFIDENCE, rng)
    atoms = np.asarray(small.atoms, np.float64)
    # frequencies, which measure means of equal mass, need no values at the atoms
    values: Array = np.empty(0) if isinstance(probe, EitherProbe) else kernel.product_sums(full.atoms, full.weights, atoms)
    found = probe.measure(atoms, small.weights, values)
    drawn = small.draw_rows(NORM_ROWS, rng)
    products = kernel.product_sums(small.atoms, small.weights, atoms[drawn])
    whole, half = float(products.mean()), two_sided(CONFIDENCE) * float(products.std(ddof=1)) / np.sqrt(NORM_ROWS)
    energy = exponential(kernel.log_energy(full.dimension))
    return replace(
        Certificate.of_nothing_lost(full),
        relative_error=float(np.sqrt(found.square / whole)),
        interval=(float(np.sqrt(found.low / (whole + half))), float(np.sqrt(found.high / max(whole - half, products.min())))),
        confidence=CONFIDENCE,
        method=found.method,
        norm=float(np.sqrt(whole * energy)),
        bound=None,
        theorem_bound=None,
        sup_bound=None,
        incoherence=None,
        radius=None,
    )
