"""Threads: their number, the division of work among them, and BLAS limited to one thread.

Work is cut into blocks with bounds that depend on the problem alone. Partial results are added in the order of the blocks. The
number of threads changes the time, never the result. Blocks are short, so that an interrupt takes effect soon.

With more threads, BLAS adds in another order, and digits change. OpenBLAS with native threads has one limit for the process: the
first of several callers sets it and the last one restores it. OpenBLAS on OpenMP has one limit for each calling thread. Other code
may lift a limit meanwhile, so it is set again whenever a task begins. A forked child has one thread, and keeps only that thread's
part of the limit.
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
    """The number of holders of the limit for the process, and the previous limit."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self.before: Counts = []


class _Thread(threading.local):
    """The same for the calling thread."""

    depth = 0
    before: Counts = []  # noqa: RUF012  # replaced, never changed


_process = _Process()
_thread = _Thread()


@cache
def _libraries() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The loaded BLAS libraries: those with a limit for the process, and those with one for each thread."""
    import scipy.linalg  # noqa: F401  # scipy loads a separate BLAS, which must be counted, too

    libraries = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    by_thread = tuple(library for library in libraries if getattr(library, "threading_layer", None) == "openmp")
    return tuple(library for library in libraries if library not in by_thread), by_thread


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread. Results then do not depend on the number of threads, and calls from several threads are faster."""
    per_process, per_thread = _libraries()
    in_process = in_thread = False  # an interrupt may occur between any two calls, and the cleanup must undo only completed steps
    try:
        with _process.lock:
            before = _hold(per_process)
            if _process.holders == 0:
                _process.before = before
            _process.holders += 1
            in_process = True
        before = _hold(per_thread)
        if _thread.depth == 0:
            _thread.before = before
        _thread.depth += 1
        in_thread = True
        yield
    finally:
        if in_thread:
            _thread.depth -= 1
            if _thread.depth == 0:
                _set(per_thread, _thread.before)
        if in_process:
            with _process.lock:
                _process.holders -= 1
                if _process.holders == 0:
                    _set(per_process, _process.before)


def _hold(libraries: Sequence[Any]) -> Counts:
    """Limit each library to one thread; return the previous numbers."""
    before: Counts = [library.get_num_threads() for library in libraries]
    if any(count not in (1, None) for count in before):
        _set(libraries, [1] * len(libraries))
        if any(library.get_num_threads() not in (1, None) for library in libraries):
            names = ", ".join(sorted({library.internal_api for library in libraries}))
            warn(
                f"BLAS ({names}) cannot be limited to one thread here, so that the last digits of results may differ between runs; "
                "set OPENBLAS_NUM_THREADS=1 (or MKL_NUM_THREADS=1) before Python starts",
                RuntimeWarning,
            )
    return before


def _set(libraries: Sequence[Any], counts: Sequence[int | None]) -> None:
    for library, count in zip(libraries, counts, strict=True):
        # threadpoolctl 3.8 allows only the first thread to set a process's limit and silently ignores others.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        if count is not None:
            library.set_num_threads(count)
        release(force=True)


def _after_fork() -> None:
    """After a fork, only the forking thread still exists and may hold the limit."""
    _process.lock = threading.Lock()
    if _process.holders > 0 and _thread.depth == 0:
        _set(_libraries()[0], _process.before)
    _process.holders = _thread.depth


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(  # the lock ensures that no other thread is setting limits during the fork
        before=lambda: _process.lock.acquire(), after_in_parent=lambda: _process.lock.release(), after_in_child=_after_fork
    )


BLOCK_ENTRIES = 1 << 15

_VARIABLE = "REDUSET_NUM_THREADS"
_chosen: int | None = None
_override: ContextVar[int | None] = ContextVar("reduset_threads", default=None)


def set_threads(count: int | None) -> None:
    """Use ``count`` threads from now on; None restores the default (``REDUSET_NUM_THREADS``, or all available cores)."""
    global _chosen
    if count is not None and (isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1):
        raise ValueError(f"count must be a whole number of at least 1, or None; got {count!r}")
    _chosen = None if count is None else int(count)


def get_threads() -> int:
    """The number of threads in use."""
    override = _override.get()
    if override is not None:
        return override
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
    """Use ``count`` threads in the calling thread inside this context; other threads are not affected.

    This is for code in one of many threads or processes that already share the cores.
    """
    token = _override.set(count)
    try:
        yield
    finally:
        _override.reset(token)


def run_all(tasks: Sequence[Callable[[], None]], in_turn: bool = False, most: int | None = None, blas: bool = False) -> None:
    """Run every task; raise the first exception. An interrupt waits only for the tasks that have begun.

    ``in_turn`` uses one thread, for tasks that call a user's function, which may not be thread-safe. ``most`` is the largest number
    of threads. ``blas`` is for tasks that call BLAS, which is limited to one thread meanwhile.
    """
    if blas:
        with single_threaded_blas():
            return run_all(tasks, in_turn, most)
    count = 1 if in_turn or len(tasks) == 1 else min(get_threads() if most is None else most, len(tasks))
    if count <= 1:
        for task in tasks:
            task()
        return
    queue = _WorkQueue(tasks, count)
    try:
        for _ in range(count):
            start_new_thread(queue.work, ())
        queue.finished.acquire()
    except BaseException:
        queue.abandon()
        raise
    if queue.failures:
        raise queue.failures[0]


class _WorkQueue:
    """A work queue: several threads take tasks one after another, until the queue is empty or a task fails.

    An interrupt may hit the waiting thread at any step, so that no step may hold anything that a worker waits for. The thread uses
    only a deque and lists, with atomic operations, and a lock that the last worker opens. In a standard executor, an interrupt may
    hit its condition variables, which then stay locked forever. It may also hit a callback of its weak references, which drops the
    interrupt.
    """

    def __init__(self, tasks: Sequence[Callable[[], None]], count: int) -> None:
        self.count = count
        self.waiting = deque(tasks)
        self.begun: list[bool] = []
        self.ended: list[bool] = []
        self.failures: list[BaseException] = []
        self.blas = single_threaded_blas if _thread.depth > 0 else nullcontext  # as the calling thread does
        self.finished = allocate_lock()
        self.finished.acquire()

    def work(self) -> None:
        """The work of each thread; the last one to end opens ``finished``."""
        self.begun.append(True)
        try:
            with self.blas():
                while (task := self._next()) is not None:
                    task()
        except BaseException as error:
            self.failures.append(error)
            self.waiting.clear()
        self.ended.append(True)
        if len(self.ended) == self.count:
            with suppress(RuntimeError):  # two threads that end together may both count as the last
                self.finished.release()

    def abandon(self) -> None:
        """Drop the remaining tasks and wait for running ones; a thread that starts later finds an empty queue."""
        self.waiting.clear()
        while len(self.ended) < len(self.begun):
            time.sleep(0.002)

    def _next(self) -> Callable[[], None] | None:
        try:
            return self.waiting.popleft()
        except IndexError:
            return None


def row_blocks(rows: Sized, dimension: int) -> list[tuple[int, int]]:
    """Cut the rows of a table into blocks of a quarter of a megabyte, for any dimension."""
    return blocks(len(rows), max(256, BLOCK_ENTRIES // dimension))


def blocks(count: int, length: int) -> list[tuple[int, int]]:
    """Cut range(count) into consecutive (start, stop) of ``length``; the last may be shorter."""
    return [(start, min(count, start + length)) for start in range(0, count, length)]
