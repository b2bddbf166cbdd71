"""How fast does a process start: the first one, which compiles, and a second one, which loads cached code?

Against Python alone. Goals: 0.9 s to import `compress`, 2.5 s to compress 10,000 rows as well, and at most 15 s of processor time
to compile what a first use needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import medians, table, verdict

TITLE = "A first and a second process"
SOURCES = ("__init__.py", "_engine/compiled.py", "_engine/cached.py")

IMPORT = "from reduset import compress"  # `import reduset` alone imports nothing else
COMPRESS = """
import numpy as np, reduset
reduset.compress(np.random.default_rng(0).normal(size=(10_000, 5)), size=100, select='kcenter', rng=0)
"""
FIRST = """
import numpy as np, reduset
reduset.compress(np.random.default_rng(0).normal(size=(100_000, 5)), size=500, tol=0.05, rng=0)
"""
MOST_IMPORT, MOST_COMPRESS, MOST_COMPILING = 0.9, 2.5, 15.0  # seconds, the last of a processor


def process(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def spent(arguments: list[str], cache: Path) -> tuple[float, float]:
    """Wall time and processor time of a process with this cache of compiled code."""
    before, begun = os.times(), time.perf_counter()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def first_uses(folder: Path, quick: bool) -> dict[str, list[str]]:
    """The arguments of Python for each first use."""
    if quick:
        return {"`reduset --help`": ["-m", "reduset", "--help"]}
    from reduset import io

    io.write_rows(folder / "table.parquet", list("abcde"), np.random.default_rng(0).normal(size=(100_000, 5)))
    files = [str(folder / "table.parquet"), "-o", str(folder / "small.npz")]
    return {
        "`compress`": ["-c", FIRST],
        "`reduset compress`": ["-m", "reduset", "compress", *files, "--size", "500", "--quiet"],
        "`reduset demo`": ["-m", "reduset", "demo", "--folder", str(folder / "out"), "--quiet"],
    }


def measure(quick: bool) -> dict[str, Any]:
    process(COMPRESS)  # the first process compiles
    times = medians(
        1 if quick else 5, imported=lambda: process(IMPORT), compressed=lambda: process(COMPRESS), python=lambda: process("pass")
    )
    summary = [
        [what, f"{times[name]:.2f} s", f"< {most} s", verdict(-times[name], -most)]
        for what, name, most in (
            ("`from reduset import compress`", "imported", MOST_IMPORT),
            ("The same, and compress 10,000 rows", "compressed", MOST_COMPRESS),
        )
    ]
    details = table(["what", "wall time", "goal", "met"], [["Python alone", f"{times['python']:.2f} s", "", ""], *summary])
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for number, (what, arguments) in enumerate(first_uses(Path(name), quick).items()):
            (first, busy), (later, idle) = (spent(arguments, Path(name) / str(number)) for _ in range(2))
            rows.append([what, *(f"{seconds:.1f} s" for seconds in (first, later, busy, idle, busy - idle))])
            summary.append([
                f"Compiling at first use: {what}", f"{busy - idle:.1f} s", f"< {MOST_COMPILING:g} s",
                verdict(idle - busy, -MOST_COMPILING),
            ])  # fmt: skip
    head = ["first use", "wall time", "the second time", "processor time", "the second time", "compiling"]
    return {
        "summary": summary,
        "details": details
        + "\n\nThe first use on a machine compiles the loops that it needs: for 100,000 rows of 5 columns at size 500, and for "
        "the photograph of the demo. The time of compiling is the processor time of a process with an empty cache less that of "
        "the next one. Other processes on the machine change it less than the wall time:\n\n" + table(head, rows),
    }
