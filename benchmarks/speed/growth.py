"""How do the time and peak memory of `compress` at size 500 grow with the number of rows?

Each number of rows is measured in a process of its own. Goals: exponent of time at most 1.05, peak memory beyond the input at most
1.5 times the input.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import medians, own_process, table, verdict

TITLE = "Growth with the number of rows, 500 atoms, d = 5"
SOURCES = ("compression", "_engine/farthest.py", "select/kcenter.py", "certificate")

FULL = {"rows": (100_000, 400_000, 1_000_000, 2_000_000, 4_000_000), "size": 500}
QUICK = {"rows": (10_000, 20_000), "size": 50}
MOST_EXPONENT, MOST_MEMORY = 1.05, 1.5


def timed(n: int, size: int) -> dict[str, float]:
    """Seconds, and peak memory beyond that with the input in memory, of this process."""
    from reduset import compress

    rng = np.random.default_rng(0)
    compress(rng.normal(size=(min(n, 20_000), 5)), size=size, select="kcenter", rng=0)
    X = np.empty((n, 5))
    for a in range(0, n, 1 << 16):
        X[a : a + (1 << 16)] = rng.normal(size=X[a : a + (1 << 16)].shape)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak: a child starts with its parent's
    spent = medians(3, compress=lambda: compress(X, size=size, select="kcenter", rng=0))["compress"]
    return {"seconds": spent, "extra": (memory("VmHWM") - before) / X.nbytes, "megabytes": X.nbytes / 1e6}


def memory(field: str) -> int:
    """A field of this process's memory in bytes, as Linux counts it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def measure(quick: bool) -> dict[str, Any]:
    sizes, size = (QUICK if quick else FULL).values()
    found = [json.loads(own_process(__file__, str(n), str(size)).stdout) for n in sizes]
    seconds = np.array([each["seconds"] for each in found])
    exponent = float(np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]))
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    worst = max(each["extra"] for each in found)
    rows = [
        [f"{n:,}", f"{f['megabytes']:.0f} MB", f"{f['seconds']:.2f} s", f"{1e9 * f['seconds'] / n:.0f} ns", f"{f['extra']:.2f}×"]
        for n, f in zip(sizes, found, strict=True)
    ]
    most = verdict(-exponent, -MOST_EXPONENT), verdict(-worst, -MOST_MEMORY)
    return {
        "summary": [
            [f"Exponent of time, {sizes[0]:,} to {sizes[-1]:,} rows", f"{exponent:.3f}", f"≤ {MOST_EXPONENT}", most[0]],
            ["Peak memory beyond the input, of the input", f"{worst:.2f}×", f"≤ {MOST_MEMORY}×", most[1]],
            [f"Time of {sizes[-1]:,} rows", f"{seconds[-1]:.2f} s", "", ""],
        ],
        "details": table(["rows", "input", "time", "time of a row", "peak beyond the input"], rows)
        + f"\n\nExponent of time from the first to the last size: {exponent:.3f} (least squares: {slope:.3f}).",
    }


if __name__ == "__main__":
    print(json.dumps(timed(*map(int, sys.argv[1:]))))
