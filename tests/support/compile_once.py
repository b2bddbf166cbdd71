"""Compile once: where two processes of tests need a compiled function, one compiles it and the other takes it from the cache.

A clean clone has no compiled code. Without this both processes would compile all of it, side by side.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

try:
    import fcntl
except ImportError:  # not on Windows: each process compiles for itself there
    fcntl = None  # type: ignore[assignment]


def share_compilation() -> None:
    """From now on a function that is cached is compiled by one process at a time."""
    if fcntl is None:
        return
    compile_alone = Dispatcher.compile

    def compile_in_turn(self, sig):
        # threads of this process first, or one would hold the file and wait for the compiler, which another holds and waits for the file
        with global_compiler_lock, _held(getattr(self._cache, "cache_path", None), self.py_func.__qualname__):
            return compile_alone(self, sig)

    Dispatcher.compile = compile_in_turn


@contextlib.contextmanager
def _held(folder: str | None, name: str) -> Iterator[None]:
    """One process at a time for each function; it looks into the cache again when its turn has come."""
    if folder is None:
        yield
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        yield
