"""Readable errors of the GPU: an old driver, too little memory, a device that stops responding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NO_MEMORY, DRIVER_TOO_OLD, NO_DEVICE = 2, 35, 100  # error numbers of CUDA
MIN_ROWS = 1 << 13
_limit: int | None = None  # bytes of the GPU to use, in place of its free memory


class DeviceError(RuntimeError):
    """A GPU that cannot be used, or that failed during a computation. Input data are unchanged."""


@contextmanager
def cuda_errors() -> Iterator[None]:
    """Convert errors of CUDA to readable ones."""
    import cupy

    try:
        yield
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if getattr(error, "status", None) == NO_MEMORY:  # pinned memory, which is main memory
            raise _memory_error(error) from error
        raise DeviceError(describe_error(error)) from error
    except cupy.cuda.memory.OutOfMemoryError as error:
        cupy.get_default_memory_pool().free_all_blocks()
        raise _memory_error(error) from error


def _memory_error(error: Any) -> MemoryError:
    return MemoryError(
        f"the GPU has no memory left for a block of work ({error}); free other arrays on it, or copy X to the processor"
    )


def describe_error(error: Any) -> str:
    """The message for an error of CUDA."""
    status, text = getattr(error, "status", None), str(error)
    if status == DRIVER_TOO_OLD:
        return f"the driver of the GPU is too old for this CuPy ({text}); update the driver, or install CuPy for its CUDA version"
    if status == NO_DEVICE:
        return f"there is no GPU that CUDA can use ({text}); copy X to the processor"
    return (
        f"the GPU stopped responding ({text}); input data are unchanged. This process cannot use the GPU again: start a new "
        "process, or copy X to the processor"
    )


def free_memory() -> int:
    """Bytes that can still be allocated on the current GPU."""
    import cupy

    pool = cupy.get_default_memory_pool()
    return int(cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes()) if _limit is None else _limit


def with_fitting_blocks(work: Callable[[int], Any], rows: int, min_rows: int = MIN_ROWS) -> Any:
    """Call ``work`` with a block size of ``rows``, and with smaller sizes while the GPU runs out of memory."""
    import cupy

    while True:
        try:
            return work(rows)
        except cupy.cuda.memory.OutOfMemoryError:
            cupy.get_default_memory_pool().free_all_blocks()
            if rows <= min_rows:
                raise
            rows = max(min_rows, rows // 2 // min_rows * min_rows)
