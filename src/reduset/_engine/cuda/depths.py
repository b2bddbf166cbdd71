"""Depths of gaps that lie on a GPU (`Profile.to_exponents`), and small arrays of the processor beside values that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset._engine.cuda.arrays import on_device
from reduset._engine.cuda.chunks import uploaded_weights
from reduset._engine.cuda.kernels import kernel

THREADS = 256


def to_depths(gaps: Any, metric: int, family: int, exponent: float, table: Any, step: float) -> None:
    """Turn gaps (t,) of CuPy into depths, in place."""
    import cupy

    knots = cupy.asarray(table)
    numbers = np.int64(len(gaps)), np.float64(exponent), knots, np.int32(len(knots)), np.float64(step)
    program = kernel("depths", REAL="double", D=1, METRIC=metric, FAMILY=family)
    program(((len(gaps) + THREADS - 1) // THREADS,), (THREADS,), (gaps, *numbers))


def to_device_of(values: Any, others: Any) -> Any:
    """Other numbers where values are: weights, of which no more than one is sent where they are one number, or small tables."""
    if not on_device(values) or on_device(others):
        return others
    import cupy

    with values.device:
        weights = others.ndim == 1 and others.dtype.kind == "f"
        return uploaded_weights(others, 0, len(others), 1.0, np.float64) if weights else cupy.asarray(others)
