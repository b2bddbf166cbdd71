"""How fast is a farthest-first cover of embeddings on the processor, and does it choose the right rows?

Against fpsample, and against the traversal in leaves that `KCenter` uses. Goal: the same rows as the traversal in leaves. Float16
rows are converted to float32 for both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks._lib import medians, table
from reduset._engine import FarthestFirst, Frame, HostRows, LazyCover

TITLE = "Covers of embeddings on the processor"
SOURCES = ("_engine/lazy_cover.py", "_engine/farthest.py", "_engine/host_rows.py")

# distribution, rows, columns, type, rows chosen
FULL = [
    ("normal", 50_000, 384, "float16", 500),
    ("clustered", 50_000, 384, "float16", 500),
    ("clustered", 50_000, 768, "float32", 300),
    ("normal", 1_000_000, 16, "float32", 300),
]
QUICK = [("normal", 2_000, 64, "float16", 50), ("clustered", 5_000, 16, "float32", 50)]
CLUSTERS, WITHIN = 200, 0.3


def drawn(distribution: str, n: int, d: int, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, d)).astype(np.float32)
    if distribution == "clustered":
        rows = rng.normal(size=(CLUSTERS, d)).astype(np.float32)[rng.integers(0, CLUSTERS, n)] + np.float32(WITHIN) * rows
    return rows.astype(dtype)


def lazily(rows: np.ndarray, size: int) -> list[int]:
    cover = LazyCover(HostRows(rows))
    cover.add_rows(np.array([0]))
    cover.extend(size - 1)
    return [0, *cover.indices]


def in_leaves(rows: np.ndarray, size: int) -> list[int]:
    single = rows.astype(np.float32)
    traversal = FarthestFirst(single, Frame.around(single, 1.0), 0)
    traversal.extend(size)
    return traversal.indices.tolist()


def by_fpsample(rows: np.ndarray, size: int) -> list[int]:
    import fpsample

    return fpsample.fps_sampling(rows.astype(np.float32), size, start_idx=0).tolist()


NOTE = """Farthest-first from the same row. *Leaves* is the traversal that `KCenter` uses. *Same as fpsample* is the proportion of
rows that fpsample chooses too; its distances are in single precision."""


def ratios(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f} times as fast" if values else "not installed"


def measure(quick: bool) -> dict[str, Any]:
    methods: dict[str, Callable[[np.ndarray, int], list[int]]] = {"cover": lazily, "leaves": in_leaves}
    if not quick or find_spec("fpsample"):
        methods["fpsample"] = by_fpsample
    lines, equal, faster = [], [], {name: [] for name in ("leaves", "fpsample")}
    for distribution, n, d, dtype, size in QUICK if quick else FULL:
        rows = drawn(distribution, n, d, dtype)
        for method in methods.values():
            method(rows[:2000], 20)
        seconds = medians(1 if quick else 3, **{name: partial(method, rows, size) for name, method in methods.items()})
        chosen = {name: method(rows, size) for name, method in methods.items()}
        equal.append(chosen["cover"] == chosen["leaves"])
        line = [f"{distribution}, {n:,} × {d} {dtype}", f"{size:,}", *(f"{each:.2f} s" for each in seconds.values())]
        for name in list(methods)[1:]:
            faster[name].append(seconds[name] / seconds["cover"])
            line.append(f"{faster[name][-1]:.1f}")
        line.append("yes" if equal[-1] else "NO")
        if "fpsample" in methods:
            line.append(f"{np.mean(np.array(chosen['cover']) == chosen['fpsample']):.0%}")
        lines.append(line)
    head = ["rows", "chosen", *methods, *(f"{name} over cover" for name in list(methods)[1:]), "same as leaves", "same as fpsample"]
    return {
        "summary": [
            ["Same rows as the traversal in leaves", f"{sum(equal)} of {len(equal)} cases", "all", "yes" if all(equal) else "NO"],
            ["Against fpsample", ratios(faster["fpsample"]), "", ""],
            ["Against the traversal in leaves", ratios(faster["leaves"]), "", ""],
        ],
        "details": f"{' '.join(NOTE.splitlines())}\n\n{table(head[: len(lines[0])], lines)}"
        + ("" if "fpsample" in methods else "\n\nfpsample is not installed."),
    }
