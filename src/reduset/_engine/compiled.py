"""Compilation: numba with its result cached on disk, or without where there is nowhere to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import njit
from numba.core import event

from reduset._types import Array


def for_loops(values: Any) -> Array:
    """These values as float64 in rows, writable: the one kind of array that a loop is compiled for, of eight that there are."""
    return np.require(values, np.float64, ["C", "W"])


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Compile without the GIL, cached: the next process does not compile again.

    What takes long to compile, and is found in no loop therefore: arrays set from arrays by slices and reductions of numpy (loops
    do), and the number 0 itself as an argument, for which a function is compiled once more (`np.int64(0)` is not).
    """

    def wrap(function: Any) -> Any:
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # a read-only installation and no writable home: each process compiles for itself
            return njit(nogil=True, **options)(function)

    return wrap


def inner(**options: Any) -> Callable[[Any], Any]:
    """Compile what only compiled functions of its own file or idea call: without the way in from Python, which takes as long to
    compile as a short loop, and longer where a state of many arrays comes in.

    Python must not call it, for there is nothing to call: a test looks that it does not.
    """
    return compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


ADDRESSED = "reduset:compile"  # the event of what numba tells nothing of: loops that are called by their address


class _Ear(event.Listener):
    """Hears when compiling begins and when it is over; what is compiled on the way is part of it."""

    def __init__(self, tell: Callable[[bool], None]) -> None:
        self.tell, self.depth = tell, 0

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.tell(True)

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.tell(False)


@contextmanager
def report_compilation(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call ``tell(True)`` whenever something begins to be compiled inside, and ``tell(False)`` when it has been."""
    ear = _Ear(tell)
    with event.install_listener("numba:compile", ear), event.install_listener(ADDRESSED, ear):
        yield
