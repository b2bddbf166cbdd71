"""Extreme inputs of `compress`: does it keep the memory, the times and the tolerance that the documentation promises?

Cases: duplicated and integer rows, five rows of 10,000 columns, 2,000 refined atoms, and a tolerance that a narrow bandwidth cannot
reach. Each runs in a process of its own. Goals: peak memory within 60 MB of the formula of docs/scaling.md, and each other case
ends within 400 s.

``python -m benchmarks.statistics.edges CASE …`` runs one case.
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

from benchmarks._lib import own_process, table, verdict
from benchmarks.speed.growth import memory

TITLE = "Extreme inputs of compress"
SOURCES = (
    *("compression/stages.py", "compression/prefixes.py", "compression/refine.py", "compression/searches.py", "select/auto.py"),
    *("select/kcenter.py", "weights", "_engine/farthest.py", "_engine/leaves.py"),
)

COLUMNS, FIXED = 5, 60e6  # FIXED: bytes beyond the formula of docs/scaling.md
KINDS = [(kind, goal) for kind in ("normal", "duplicated", "integer") for goal in ("size", "tol")]
FULL = {"rows": 1_000_000, "kinds": KINDS, "wide": 10_000, "refined": (248_000, 2_000), "unreached": 62_000}
QUICK = {"rows": 20_000, "kinds": KINDS[:1], "wide": 1_000, "refined": (5_000, 50), "unreached": 500}
TOL = 0.01
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


def peak(kind: str, goal: str, n: str) -> dict[str, Any]:
    """The peak memory beyond that with the input in memory."""
    from reduset import compress

    options: dict[str, Any] = {"size": {"size": 100}, "tol": {"tol": 0.02}}[goal]
    compress(rows_of(kind, 3000, COLUMNS), rng=0, **options)
    X = rows_of(kind, int(n), COLUMNS)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    begun = time.perf_counter()
    small = compress(X, rng=0, **options)
    return {"seconds": time.perf_counter() - begun, "extra": memory("VmHWM") - before, "input": X.nbytes, "size": small.size}


def wide(columns: str) -> dict[str, Any]:
    """Few rows of many columns, twice."""
    from reduset import compress

    X, times = rows_of("normal", 5, int(columns)), []
    for _ in range(2):
        begun = time.perf_counter()
        compress(X, size=3, rng=0)
        times.append(time.perf_counter() - begun)
    return {"times": times}


def refined(rows: str, atoms: str) -> dict[str, Any]:
    """Many refined atoms, with weights on the simplex."""
    return _stages(rows_of("clusters", int(rows), COLUMNS), size=int(atoms), refine=True, weights="simplex")


def unreached(rows: str) -> dict[str, Any]:
    """A tolerance that a narrow bandwidth cannot reach."""
    from reduset import Gaussian

    return _stages(rows_of("clusters", int(rows), COLUMNS), Gaussian("scott"), tol=TOL)


def _stages(X: np.ndarray, *kernel: Any, **options: Any) -> dict[str, Any]:
    from reduset import compress

    compress(X[:4000], *kernel, rng=0, **{**options, **({"size": 20} if "size" in options else {})})  # compiles
    begun = time.perf_counter()
    small = compress(X, *kernel, rng=0, **options)
    seconds, error = time.perf_counter() - begun, small.certificate.relative_error
    return {"seconds": seconds, "timings": small.timings, "reached": small.reached, "size": small.size, "error": error}


CASES: dict[str, Callable[..., dict[str, Any]]] = {"peak": peak, "wide": wide, "refined": refined, "unreached": unreached}


def _child(*arguments: Any) -> dict[str, Any] | None:
    """The figures of a case; None after the limit."""
    try:
        return json.loads(own_process(__file__, *map(str, arguments), timeout=LIMIT).stdout)
    except subprocess.TimeoutExpired:
        return None


def _memory(n: int, kinds: list[tuple[str, str]]) -> tuple[str, float]:
    """The table with its text, and the most bytes beyond the formula."""
    promised = n * (4 * COLUMNS + 24)
    lines, most = [], 0.0
    for kind, goal in kinds:
        found = _child("peak", kind, goal, n)
        if found is None:
            lines.append([kind, goal, "", "", f"> {LIMIT:.0f} s"])
            continue
        most = max(most, found["extra"] - promised)
        extra = f"{found['extra'] / 1e6:.0f} MB, {found['extra'] / found['input']:.2f}×"
        lines.append([kind, goal, f"{found['size']:,}", extra, f"{found['seconds']:.2f} s"])
    kept = "kept" if most <= FIXED else "NOT kept"
    text = (
        f"{n:,} rows of {COLUMNS} columns ({8e-6 * n * COLUMNS:.0f} MB), `size=100` or `tol=0.02`:\n\n"
        + table(["rows", "goal", "atoms", "peak beyond the input", "time"], lines)
        + f"\n\nThe documentation promises 4·n·d + 24·n, here {promised / 1e6:.0f} MB, and about {FIXED / 1e6:.0f} MB: {kept},"
        + f" with {most / 1e6:+.0f} MB beyond the formula at most."
    )
    return text, most


def _stage_line(name: str, found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return [name, f"> {LIMIT:.0f} s", "", "", "", ""]
    stages = {stage: value for stage, value in found["timings"].items() if stage != "total"}
    shown = ", ".join(f"{stage} {value:.2f}" for stage, value in stages.items() if value >= 0.005)
    sum_of = sum(stages.values()) / found["timings"]["total"]
    reached = {True: "yes", False: "no"}.get(found["reached"], "")
    return [name, f"{found['seconds']:.1f} s", shown, f"{100 * sum_of:.1f} %", f"{found['size']:,}, {found['error']:.2g}", reached]


def measure(quick: bool) -> dict[str, Any]:
    """All cases, one after the other."""
    sizes: dict[str, Any] = QUICK if quick else FULL
    memory_text, most = _memory(sizes["rows"], sizes["kinds"])
    few = _child("wide", sizes["wide"]) or {"times": [LIMIT, LIMIT]}
    rows, atoms = sizes["refined"]
    names = {
        "refined": f'{atoms:,} atoms of {rows:,} rows, `refine=True`, `weights="simplex"`',
        "unreached": f'`tol={TOL}`, `Gaussian("scott")`, {sizes["unreached"]:,} rows',
    }
    found = {"refined": _child("refined", rows, atoms), "unreached": _child("unreached", sizes["unreached"])}
    details = (
        memory_text
        + f"\n\n5 rows of {sizes['wide']:,} columns to 3 atoms: {few['times'][0]:.2f} s at the first call of a process,"
        + f" {1000 * few['times'][1]:.0f} ms at the second.\n\n"
        + table(
            ["clusters in 5 columns", "time", "stages (s)", "sum of stages", "atoms, error", "reached"],
            [_stage_line(names[case], each) for case, each in found.items()],
        )
    )
    goal = f"≤ {LIMIT:.0f} s"
    summary = [
        ["peak memory beyond the formula", f"{most / 1e6:+.0f} MB", f"≤ {FIXED / 1e6:.0f} MB", verdict(FIXED, most)],
        *(
            [names[case], "", goal, "NO"] if each is None else [names[case], f"{each['seconds']:.1f} s", goal, "yes"]
            for case, each in found.items()
        ),
    ]
    return {"summary": summary, "details": details}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(CASES[sys.argv[1]](*sys.argv[2:])))
