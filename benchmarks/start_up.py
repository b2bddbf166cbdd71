"""How fast a second process starts: importing, and importing plus a small compression, with compiled code cached."""

from __future__ import annotations

import subprocess
import sys

from harness import medians, table, verdict

TITLE = "A second process"

IMPORT = "from reduset import compress"  # the package itself imports nothing before it is asked to
COMPRESS = """
import numpy as np, reduset
reduset.compress(np.random.default_rng(0).normal(size=(10_000, 5)), size=100, select='kcenter', rng=0)
"""


def process(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def run() -> str:
    process(COMPRESS)  # the first process compiles
    times = medians(5, imported=lambda: process(IMPORT), compressed=lambda: process(COMPRESS), python=lambda: process("pass"))
    rows = [
        ["python alone", f"{times['python']:.2f} s", "", ""],
        ["from reduset import compress", f"{times['imported']:.2f} s", "0.9 s", verdict(-times["imported"], -0.9)],
        ["import, and compress 10,000 points", f"{times['compressed']:.2f} s", "2.5 s", verdict(-times["compressed"], -2.5)],
    ]
    return table(["what", "wall time", "goal: under", "met"], rows)
