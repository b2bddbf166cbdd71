"""Edges of compress, where a promise of the pages breaks first: memory, rows that repeat themselves, many columns, many atoms.

Each case runs in a process of its own, so that memory is its own and a first call is one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.growth import memory
from benchmarks._lib import table

TITLE = "Edges"

ROWS, COLUMNS, FIXED = 1_000_000, 5, 60e6  # of memory; bytes beside the formula of docs/scaling.md
WIDE = 5, 10_000
REFINED, ATOMS = 248_000, 2_000
UNREACHED, TOL = 62_000, 0.01
LIMIT = 400.0  # seconds for a case


def rows_of(kind: str, n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "duplicated":
        return rng.normal(size=(50, d))[rng.integers(50, size=n)]
    if kind == "integer":
        return rng.integers(0, 256, size=(n, d)).astype(np.float64)
    if kind == "clusters":
        return rng.normal(size=(n, d)) + 4.0 * rng.normal(size=(12, d))[rng.integers(12, size=n)]
    return rng.normal(size=(n, d))


def peak(kind: str, goal: str) -> dict[str, Any]:
    """The peak beyond what was there with the input in memory."""
    from reduset import compress

    options: dict[str, Any] = {"size": {"size": 100}, "tol": {"tol": 0.02}}[goal]
    compress(rows_of(kind, 3000, COLUMNS), rng=0, **options)
    X = rows_of(kind, ROWS, COLUMNS)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    begun = time.perf_counter()
    small = compress(X, rng=0, **options)
    return {"seconds": time.perf_counter() - begun, "extra": memory("VmHWM") - before, "input": X.nbytes, "size": small.size}


def wide() -> dict[str, Any]:
    """Few rows of many columns, twice."""
    from reduset import compress

    X, times = rows_of("normal", *WIDE), []
    for _ in range(2):
        begun = time.perf_counter()
        small = compress(X, size=3, rng=0)
        times.append(time.perf_counter() - begun)
    return {"times": times, "error": small.certificate.relative_error}


def refined() -> dict[str, Any]:
    """Many atoms moved, with weights that are shares."""
    return _stages(rows_of("clusters", REFINED, COLUMNS), size=ATOMS, refine=True, weights="simplex")


def unreached() -> dict[str, Any]:
    """A tolerance that a narrow bandwidth does not allow."""
    from reduset import Gaussian

    return _stages(rows_of("clusters", UNREACHED, COLUMNS), Gaussian("scott"), tol=TOL)


def _stages(X: np.ndarray, *kernel: Any, **options: Any) -> dict[str, Any]:
    from reduset import compress

    compress(X[:4000], *kernel, rng=0, **{**options, **({"size": 20} if "size" in options else {})})  # compiles
    begun = time.perf_counter()
    small = compress(X, *kernel, rng=0, **options)
    seconds, error = time.perf_counter() - begun, small.certificate.relative_error
    return {"seconds": seconds, "timings": small.timings, "reached": small.reached, "size": small.size, "error": error}


CASES: dict[str, Callable[..., dict[str, Any]]] = {"peak": peak, "wide": wide, "refined": refined, "unreached": unreached}


def _child(*words: str) -> dict[str, Any] | None:
    """What a case found; None where it took too long."""
    try:
        out = subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(out.stdout)


def _memory() -> str:
    promised = ROWS * (4 * COLUMNS + 24)
    lines, most = [], 0.0
    for kind in ("normal", "duplicated", "integer"):
        for goal in ("size", "tol"):
            found = _child("peak", kind, goal)
            if found is None:
                lines.append([kind, goal, "", "", f"> {LIMIT:.0f} s"])
                continue
            most = max(most, found["extra"] - promised)
            extra = f"{found['extra'] / 1e6:.0f} MB, {found['extra'] / found['input']:.2f}×"
            lines.append([kind, goal, f"{found['size']:,}", extra, f"{found['seconds']:.2f} s"])
    kept = "kept" if most <= FIXED else "NOT kept"
    return (
        f"{ROWS:,} rows of {COLUMNS} columns ({8e-6 * ROWS * COLUMNS:.0f} MB), `size=100` or `tol=0.02`:\n\n"
        + table(["rows", "goal", "atoms", "peak beyond the input", "time"], lines)
        + f"\n\nThe pages promise 4·n·d + 24·n, here {promised / 1e6:.0f} MB, and some {FIXED / 1e6:.0f} MB: {kept},"
        + f" with {most / 1e6:+.0f} MB beside the formula at most."
    )


def _stage_line(name: str, found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return [name, f"> {LIMIT:.0f} s", "", "", "", ""]
    stages = {stage: value for stage, value in found["timings"].items() if stage != "total"}
    said = ", ".join(f"{stage} {value:.2f}" for stage, value in stages.items() if value >= 0.005)
    share = sum(stages.values()) / found["timings"]["total"]
    reached = {True: "yes", False: "no"}.get(found["reached"], "")
    return [name, f"{found['seconds']:.1f} s", said, f"{100 * share:.1f} %", f"{found['size']:,}, {found['error']:.2g}", reached]


def run() -> str:
    """All cases, one after the other."""
    memory_said = _memory()
    few = _child("wide") or {"times": [LIMIT, LIMIT], "error": float("nan")}
    lines = [
        _stage_line(f'{ATOMS:,} atoms of {REFINED:,} rows, `refine=True`, `weights="simplex"`', _child("refined")),
        _stage_line(f'`tol={TOL}`, `Gaussian("scott")`, {UNREACHED:,} rows', _child("unreached")),
    ]
    return (
        memory_said
        + f"\n\n{WIDE[0]} rows of {WIDE[1]:,} columns to 3 atoms: {few['times'][0]:.2f} s at the first call of a process,"
        + f" {1000 * few['times'][1]:.0f} ms at the second.\n\n"
        + table(["clusters in 5 columns", "time", "stages (s)", "sum of stages", "atoms, error", "reached"], lines)
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(CASES[sys.argv[1]](*sys.argv[2:])))
