"""Compilation: numba with its result cached on disk, or without where there is nowhere to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from reduset._types import Array


def for_loops(values: Any) -> Array:
    """These values as float64 in rows, writable: the one kind of array that a loop is compiled for, of eight that there are."""
    return np.require(values, np.float64, ["C", "W"])


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Compile without the GIL, cached: the next process does not compile again."""

    def wrap(function: Any) -> Any:
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # a read-only installation and no writable home: each process compiles for itself
            return njit(nogil=True, **options)(function)

    return wrap
