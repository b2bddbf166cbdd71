"""Threads: their number, how work is divided among them, and BLAS held to one thread.

Work is cut into blocks whose bounds depend on the problem alone, and partial results are added in the order of the blocks. The
number of threads changes the time, never the result. Blocks are short, so that an interrupt takes effect soon.

With more threads BLAS adds in another order, and digits change. OpenBLAS on its own threads has one limit for the process: the
first of several callers sets it and the last lifts it. OpenBLAS on OpenMP has one limit for each calling thread. Other code may
lift a limit meanwhile, so it is set again whenever a task begins. A forked child has one thread, and with it that thread's share of
the limit.
"""

from __future__ import annotations

import os
import threading
import time
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
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


BLOCK_ENTRIES = 1 << 15

_VARIABLE = "REDUSET_NUM_THREADS"
_chosen: int | None = None
_here: ContextVar[int | None] = ContextVar("reduset_threads", default=None)


def set_threads(count: int | None) -> None:
    """Use ``count`` threads from now on; None returns to the default (``REDUSET_NUM_THREADS``, or every core allowed)."""
    global _chosen
    if count is not None and (isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1):
        raise ValueError(f"count must be a whole number of at least 1, or None; got {count!r}")
    _chosen = None if count is None else int(count)


def get_threads() -> int:
    """The number of threads in use."""
    here = _here.get()
    if here is not None:
        return here
    if _chosen is not None:
        return _chosen
    text = os.environ.get(_VARIABLE)
    if text is None:
        allowed = getattr(os, "sched_getaffinity", None)
        return len(allowed(0)) if allowed else (os.cpu_count() or 1)
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"{_VARIABLE} must be a whole number of at least 1; got {text!r}. Unset it to use every core")
    return int(text)


@contextmanager
def thread_limit(count: int) -> Iterator[None]:
    """Use ``count`` threads for what the calling thread does inside, whatever the rest of the process uses.

    For whoever runs in one of many threads or processes that share the cores already.
    """
    token = _here.set(count)
    try:
        yield
    finally:
        _here.reset(token)


def run_all(tasks: Sequence[Callable[[], None]], in_turn: bool = False, most: int | None = None, blas: bool = False) -> None:
    """Run every task; raise the first exception. An interrupt waits only for the tasks that have begun.

    ``in_turn`` keeps to one thread: for tasks that call a user's function, which may not bear more. ``most`` is the most threads.
    ``blas`` is for tasks that call BLAS, which is held to one thread meanwhile.
    """
    if blas:
        with single_threaded_blas():
            return run_all(tasks, in_turn, most)
    count = 1 if in_turn or len(tasks) == 1 else min(get_threads() if most is None else most, len(tasks))
    if count <= 1:
        for task in tasks:
            task()
        return
    shared = _Shared(tasks, count)
    try:
        for _ in range(count):
            start_new_thread(shared.work, ())
        shared.over.acquire()
    except BaseException:
        shared.abandon()
        raise
    if shared.failures:
        raise shared.failures[0]


class _Shared:
    """A work queue: tasks that several threads take one after another, until none is left or one has failed.

    An interrupt may strike the waiting thread between any two steps, so that no step of it may hold what a worker waits for: it
    takes part in nothing but a deque and lists, whose single operations are whole, and a lock that the last worker opens. An
    executor of the standard library is struck in the middle of its condition variables, which then stay locked for ever, or in a
    callback of its weak references, where the interrupt is dropped.
    """

    def __init__(self, tasks: Sequence[Callable[[], None]], count: int) -> None:
        self.count = count
        self.left = deque(tasks)
        self.begun: list[bool] = []
        self.ended: list[bool] = []
        self.failures: list[BaseException] = []
        self.blas = single_threaded_blas if is_held() else nullcontext
        self.over = allocate_lock()
        self.over.acquire()

    def work(self) -> None:
        """What each thread does; the last one to end opens ``over``."""
        self.begun.append(True)
        try:
            with self.blas():
                while (task := self._next()) is not None:
                    task()
        except BaseException as error:
            self.failures.append(error)
            self.left.clear()
        self.ended.append(True)
        if len(self.ended) == self.count:
            with suppress(RuntimeError):  # two that end together may both see that they are the last
                self.over.release()

    def abandon(self) -> None:
        """Give up what is left and wait for what has begun; a thread that only begins now finds nothing to do."""
        self.left.clear()
        while len(self.ended) < len(self.begun):
            time.sleep(0.002)

    def _next(self) -> Callable[[], None] | None:
        try:
            return self.left.popleft()
        except IndexError:
            return None


def row_blocks(rows: Sized, dimension: int) -> list[tuple[int, int]]:
    """Cut the rows of a table into blocks of a quarter of a megabyte, whatever the dimension."""
    return blocks(len(rows), max(256, BLOCK_ENTRIES // dimension))


def blocks(count: int, length: int) -> list[tuple[int, int]]:
    """Cut range(count) into consecutive (start, stop) of ``length`` (the last may be shorter)."""
    return [(start, min(count, start + length)) for start in range(0, count, length)]
