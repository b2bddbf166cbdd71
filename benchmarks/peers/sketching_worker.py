"""Run one method of the comparison of sketches once: `sketching_worker.py rows.npy found.npz OPTIONS`, the options as JSON.

It runs in the environment of the method (see `sketching_remote`). A first run on a thousand rows, which imports and compiles, is
not counted. The result has the seconds of one run and the increase of the process's resident memory; with ``traced``, also the peak
of what Python and NumPy allocated in a second run (tracemalloc).
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sketching_methods

FEW, FIRST = 1000, 50  # rows and size of the first run


def resident() -> int:
    """Bytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def highest() -> int:
    """The peak since the start of the process, or since `forget`."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def forget() -> None:
    with contextlib.suppress(OSError):  # not allowed on every system: the peak then includes the first run
        Path("/proc/self/clear_refs").write_text("5")


def measured(function: Callable[[], dict[str, np.ndarray]], traced: bool) -> dict[str, Any]:
    forget()
    before, begun = resident(), time.perf_counter()
    found: dict[str, Any] = function()
    found["seconds"] = time.perf_counter() - begun
    found["peak"] = max(highest() - before, 0)
    if traced:
        tracemalloc.start()
        function()
        found["traced"] = tracemalloc.get_traced_memory()[1]
    return found


def main(source: str, target: str, options: str) -> None:
    warnings.simplefilter("ignore")
    asked = json.loads(options)
    most = int(asked["memory"] * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    X = np.load(source)
    method = sketching_methods.METHODS[asked["method"]]
    size, seed = asked["size"], asked["seed"]
    method(np.ascontiguousarray(X[:FEW]), min(size, FIRST), seed)
    np.savez(target, **measured(lambda: method(X, size, seed), asked.get("traced", False)))


if __name__ == "__main__":
    main(*sys.argv[1:])
