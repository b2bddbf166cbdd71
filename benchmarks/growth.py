"""Time and peak memory of compress at size 500 as the number of rows grows; each size in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from harness import table, verdict

TITLE = "Growth with the number of rows, 500 atoms, d = 5"

SIZES = (100_000, 400_000, 1_000_000, 2_000_000, 4_000_000)


def measure(n: int) -> dict[str, float]:
    """Run here and now: seconds, and the peak beyond what was there with the input in memory."""
    from reduset import compress

    rng = np.random.default_rng(0)
    compress(rng.normal(size=(20_000, 5)), size=500, select="kcenter", rng=0)
    X = np.empty((n, 5))
    for a in range(0, n, 1 << 16):
        X[a : a + (1 << 16)] = rng.normal(size=X[a : a + (1 << 16)].shape)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far: a child starts with its parent's
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        compress(X, size=500, select="kcenter", rng=0)
        times.append(time.perf_counter() - begun)
    return {"seconds": float(np.median(times)), "extra": (memory("VmHWM") - before) / X.nbytes, "megabytes": X.nbytes / 1e6}


def memory(field: str) -> int:
    """A field of this process's memory in bytes, as Linux counts it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def run() -> str:
    found = []
    for n in SIZES:
        out = subprocess.run([sys.executable, __file__, str(n)], check=True, capture_output=True, text=True)
        found.append(json.loads(out.stdout))
    seconds = np.array([f["seconds"] for f in found])
    exponent = float(np.log(seconds[-1] / seconds[0]) / np.log(SIZES[-1] / SIZES[0]))
    slope = float(np.polyfit(np.log(SIZES), np.log(seconds), 1)[0])
    rows = [
        [f"{n:,}", f"{f['megabytes']:.0f} MB", f"{f['seconds']:.2f} s", f"{1e9 * f['seconds'] / n:.0f} ns", f"{f['extra']:.2f}×"]
        for n, f in zip(SIZES, found, strict=True)
    ]
    worst = max(f["extra"] for f in found)
    return (
        table(["rows", "input", "time", "a row", "peak beyond the input"], rows)
        + f"\n\nExponent of time, first to last: {exponent:.3f} (least squares {slope:.3f}); "
        + f"goal at most 1.05: {verdict(-exponent, -1.05)}. "
        + f"Peak memory beyond the input at most {worst:.2f} times the input; goal at most 1.5: {verdict(-worst, -1.5)}."
    )


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
