"""Threads: how many, and how work is dealt to them.

Work is cut into blocks whose bounds depend on the problem alone, and partial results are added in the order of the blocks:
the number of threads changes the time, never the result. Blocks are short, so that an interrupt is answered soon.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

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
def threads_here(count: int) -> Iterator[None]:
    """Use ``count`` threads for what the calling thread does inside, whatever the rest of the process uses.

    For whoever runs in one of many threads or processes that share the cores already.
    """
    token = _here.set(count)
    try:
        yield
    finally:
        _here.reset(token)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_lock = threading.Lock()
_inside = 0
_limits: Any = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread while our own threads call it: faster, and the same result whatever their number.

    The limit is the process's. The first of several callers sets it and the last lifts it, or one would restore another's.
    """
    global _inside, _limits
    with _lock:
        if _inside == 0:
            _limits = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.restore_original_limits()


def run_all(tasks: Sequence[Callable[[], None]], in_turn: bool = False, most: int | None = None, blas: bool = False) -> None:
    """Run every task; raise the first exception. An interrupt waits only for the tasks that have begun.

    ``in_turn`` keeps to one thread: for tasks that call a user's function, which may not bear more. ``most`` is the most threads.
    ``blas`` is for tasks that call BLAS, which is held to one thread meanwhile.
    """
    if blas:
        with single_threaded_blas():
            return run_all(tasks, in_turn, most)
    count = 1 if in_turn else min(get_threads() if most is None else most, len(tasks))
    if count <= 1:
        for task in tasks:
            task()
        return
    with ThreadPoolExecutor(count) as pool:
        try:  # from the first task on: an interrupt while they are handed out must not wait for all of these either
            futures = [pool.submit(task) for task in tasks]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def row_blocks(rows: Sized, dimension: int) -> list[tuple[int, int]]:
    """Cut the rows of a table into blocks of a quarter of a megabyte, whatever the dimension."""
    return blocks(len(rows), max(256, BLOCK_ENTRIES // dimension))


def blocks(count: int, length: int) -> list[tuple[int, int]]:
    """Cut range(count) into consecutive (start, stop) of ``length`` (the last may be shorter)."""
    return [(start, min(count, start + length)) for start in range(0, count, length)]
