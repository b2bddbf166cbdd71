"""How fast a process starts: the first one, which compiles, and a second, which finds compiled code cached."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from harness import medians, table, verdict

TITLE = "A first and a second process"

IMPORT = "from reduset import compress"  # the package itself imports nothing before it is asked to
COMPRESS = """
import numpy as np, reduset
reduset.compress(np.random.default_rng(0).normal(size=(10_000, 5)), size=100, select='kcenter', rng=0)
"""
FIRST = """
import numpy as np, reduset
reduset.compress(np.random.default_rng(0).normal(size=(100_000, 5)), size=500, tol=0.05, rng=0)
"""
MOST = 15.0  # seconds of a processor, for compiling


def process(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def spent(arguments: list[str], cache: Path) -> tuple[float, float]:
    """Seconds on the clock, and of processors, of a process that keeps its compiled code there."""
    before, begun = os.times(), time.perf_counter()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def first_uses() -> str:
    """What a first use waits for: with nothing compiled, and once more with all that it compiled."""
    from reduset import io

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        io.write_rows(folder / "table.parquet", list("abcde"), np.random.default_rng(0).normal(size=(100_000, 5)))
        files = [str(folder / "table.parquet"), "-o", str(folder / "small.npz")]
        uses = {
            "`compress(X, size=500, tol=0.05, rng=0)`": ["-c", FIRST],
            "`reduset compress table.parquet --size 500`": ["-m", "reduset", "compress", *files, "--size", "500", "--quiet"],
            "`reduset demo`": ["-m", "reduset", "demo", "--folder", str(folder / "out"), "--quiet"],
        }
        for number, (what, arguments) in enumerate(uses.items()):
            (first, busy), (later, idle) = (spent(arguments, folder / str(number)) for _ in range(2))
            waited = busy - idle
            clocks = [f"{seconds:.1f} s" for seconds in (first, later, busy, idle, waited)]
            rows.append([what, *clocks, verdict(-waited, -MOST)])
    head = ["first use", "wall time", "the second time", "processor time", "the second time", "compiling", f"under {MOST:g} s"]
    return table(head, rows)


def run() -> str:
    process(COMPRESS)  # the first process compiles
    times = medians(5, imported=lambda: process(IMPORT), compressed=lambda: process(COMPRESS), python=lambda: process("pass"))
    rows = [
        ["python alone", f"{times['python']:.2f} s", "", ""],
        ["from reduset import compress", f"{times['imported']:.2f} s", "0.9 s", verdict(-times["imported"], -0.9)],
        ["import, and compress 10,000 points", f"{times['compressed']:.2f} s", "2.5 s", verdict(-times["compressed"], -2.5)],
    ]
    return (
        table(["what", "wall time", "goal: under", "met"], rows)
        + "\n\nThe first use on a machine compiles the loops that it needs; 100,000 rows of 5 columns, and the photograph of the "
        "demo. What compiling takes is the processor time of a process with an empty cache less that of the next one, which other "
        "processes on the machine change less than the wall time:\n\n" + first_uses()
    )
