"""What can go wrong on a GPU, in words: a driver too old, memory that is spent, a device that stops answering."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NO_MEMORY, DRIVER_TOO_OLD, NO_DEVICE = 2, 35, 100  # as CUDA numbers errors
FEWEST = 1 << 13


class DeviceError(RuntimeError):
    """A GPU that cannot be used, or that stopped in the middle; nothing that was given is changed."""


@contextmanager
def told() -> Iterator[None]:
    """Errors of CUDA as sentences with a way out."""
    import cupy

    try:
        yield
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if getattr(error, "status", None) == NO_MEMORY:  # pinned memory, of the processor
            raise _no_room(error) from error
        raise DeviceError(in_words(error)) from error
    except cupy.cuda.memory.OutOfMemoryError as error:
        cupy.get_default_memory_pool().free_all_blocks()
        raise _no_room(error) from error


def _no_room(error: Any) -> MemoryError:
    return MemoryError(
        f"the GPU has no room left for a block of work ({error}); free what else lies on it, or bring X to the processor"
    )


def in_words(error: Any) -> str:
    """An error of CUDA's."""
    status, told = getattr(error, "status", None), str(error)
    if status == DRIVER_TOO_OLD:
        return f"the driver of the GPU is too old for this CuPy ({told}); update the driver, or install the CuPy of its CUDA"
    if status == NO_DEVICE:
        return f"there is no GPU that CUDA can use ({told}); bring X to the processor"
    return (
        f"the GPU stopped answering ({told}); nothing that was given is changed. A process cannot go on with a device it has lost: "
        "start a new one, or bring X to the processor"
    )


def in_room(work: Callable[[int], Any], rows: int, fewest: int = FEWEST) -> Any:
    """Do work in blocks of so many rows, or of ever fewer while the GPU has no room for them."""
    import cupy

    while True:
        try:
            return work(rows)
        except cupy.cuda.memory.OutOfMemoryError:
            cupy.get_default_memory_pool().free_all_blocks()
            if rows <= fewest:
                raise
            rows = max(fewest, rows // 2 // fewest * fewest)
