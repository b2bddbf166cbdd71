"""When single precision will do for kernel sums: the limits, said once for every device."""

from __future__ import annotations

from typing import Any

import numpy as np

SINGLE_REACH = 128.0  # float32 coordinates beyond this, over the steepness of the profile, no longer give 1e-5
BLAS_REACH: dict[Any, float] = {np.float32: 6.0, np.float64: 1e3}  # |z|² · slope beyond this cancels in |z|² + |q|² − 2 z·q
SINGLE_FLOOR = 1e-7  # of Σ|w|: below, the depths are large and float32 rounds them too coarsely
FEW_PAIRS = 1 << 22  # where double costs nothing that a person would notice
