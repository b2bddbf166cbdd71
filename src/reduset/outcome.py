"""What an estimator evaluates in the end: the compressed mean, or all points where nothing was compressed."""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset.certificate import Certificate
from reduset.compression import Compression, compress, quietly
from reduset.mean import KernelMean


def compress_quietly(full: KernelMean, **options: Any) -> Compression:
    """`compress` without its warning: whoever calls looks at ``reached``, and says what that means to its users."""
    with quietly():
        return compress(full, **options)


def evaluated(full: KernelMean, compression: Compression | None) -> tuple[KernelMean, Certificate]:
    """The mean to keep and what it lost; without a compression a copy, since the data are the caller's and may change."""
    if compression is not None:
        return compression.mean, compression.certificate
    return KernelMean(np.array(full.atoms), full.weights, full.kernel), Certificate.of_nothing_lost(full)
