"""BLAS held to one thread, and looked at whether it obeyed: with more threads it adds in another order, and digits change.

OpenBLAS on threads of its own has one limit for the whole process, so that the first of several callers sets it and the last lifts
it; OpenBLAS on OpenMP has one for each thread that calls it, so that each sets its own. Somebody else's code may lift a limit
meanwhile: it is set again whenever one of ours begins. A forked child has one thread, and with it that thread's share of the limit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from reduset._messages import warn

Counts = list[int | None]


class _Process:
    """Who holds the limit of the whole process, and what it was before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.before: Counts = []


class _Thread(threading.local):
    """The same for the calling thread."""

    depth = 0
    before: Counts = []  # noqa: RUF012  # replaced, never changed


_process = _Process()
_thread = _Thread()


@cache
def _libraries() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The BLAS libraries that are loaded: those with a limit for the process, and those with one for each thread."""
    import scipy.linalg  # noqa: F401  # it brings a BLAS of its own, which must be there when they are counted

    found = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    by_thread = tuple(library for library in found if getattr(library, "threading_layer", None) == "openmp")
    return tuple(library for library in found if library not in by_thread), by_thread


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread: the same result whatever the number of threads, and faster where our own threads call it."""
    everybody, own = _libraries()
    counted = deep = False  # an interrupt may strike between any two calls, and what was begun is ended then, too
    try:
        with _process.lock:
            before = _hold(everybody)
            if _process.inside == 0:
                _process.before = before
            _process.inside += 1
            counted = True
        before = _hold(own)
        if _thread.depth == 0:
            _thread.before = before
        _thread.depth += 1
        deep = True
        yield
    finally:
        if deep:
            _thread.depth -= 1
            if _thread.depth == 0:
                _set(own, _thread.before)
        if counted:
            with _process.lock:
                _process.inside -= 1
                if _process.inside == 0:
                    _set(everybody, _process.before)


def is_held() -> bool:
    """Whether the calling thread holds BLAS: then threads that work for it must, too."""
    return _thread.depth > 0


def _hold(libraries: Sequence[Any]) -> Counts:
    """One thread each from now on; how many they had."""
    before: Counts = [library.get_num_threads() for library in libraries]
    if any(count not in (1, None) for count in before):
        _set(libraries, [1] * len(libraries))
        if any(library.get_num_threads() not in (1, None) for library in libraries):
            names = ", ".join(sorted({library.internal_api for library in libraries}))
            warn(
                f"BLAS ({names}) cannot be held to one thread here, so that the last digits of results may differ from one "
                "run to the next; set OPENBLAS_NUM_THREADS=1 (or MKL_NUM_THREADS=1) before Python is started",
                RuntimeWarning,
            )
    return before


def _set(libraries: Sequence[Any], counts: Sequence[int | None]) -> None:
    for library, count in zip(libraries, counts, strict=True):
        # threadpoolctl 3.8 lets the first thread that asks set a process's limit and ignores the others without a word
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        if count is not None:
            library.set_num_threads(count)
        release(force=True)


def _begin_child() -> None:
    """After a fork: the threads that held the limit are gone, but for the one that forked."""
    _process.lock = threading.Lock()
    if _process.inside > 0 and _thread.depth == 0:
        _set(_libraries()[0], _process.before)
    _process.inside = _thread.depth


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(  # no other thread is in the middle of setting limits while the lock is held
        before=lambda: _process.lock.acquire(), after_in_parent=lambda: _process.lock.release(), after_in_child=_begin_child
    )
