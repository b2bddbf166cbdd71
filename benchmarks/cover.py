"""Covers of embeddings on the processor, against fpsample and against the traversal in leaves: the same rows, in what time."""

from __future__ import annotations

from functools import partial
from typing import Any

import fpsample
import numpy as np

from harness import medians, table
from reduset._engine import FarthestFirst, Frame, HostRows, LazyCover

TITLE = "Covers of embeddings on the processor"

# law, rows, columns, type, rows chosen
CASES = [
    ("normal", 50_000, 384, "float16", 500),
    ("clustered", 50_000, 384, "float16", 500),
    ("clustered", 50_000, 768, "float32", 300),
    ("normal", 1_000_000, 16, "float32", 300),
]
CLUSTERS, WITHIN = 200, 0.3


def drawn(law: str, n: int, d: int, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, d)).astype(np.float32)
    if law == "clustered":
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
    return fpsample.fps_sampling(rows.astype(np.float32), size, start_idx=0).tolist()


METHODS: dict[str, Any] = {"cover": lazily, "leaves": in_leaves, "fpsample": by_fpsample}

NOTE = """Farthest-first from the same row; *leaves* is the traversal that `KCenter` uses. *Same* says of how many of the rows
fpsample, whose distances are in single precision, agrees."""


def run() -> str:
    lines = []
    for law, n, d, dtype, size in CASES:
        rows = drawn(law, n, d, dtype)
        for method in METHODS.values():
            method(rows[:2000], 20)
        seconds = medians(3, **{name: partial(method, rows, size) for name, method in METHODS.items()})
        chosen, leaves, theirs = (method(rows, size) for method in METHODS.values())
        lines.append([
            f"{law}, {n:,} × {d} {dtype}", f"{size:,}", *(f"{each:.2f} s" for each in seconds.values()),
            f"{seconds['leaves'] / seconds['subset']:.1f}", f"{seconds['fpsample'] / seconds['subset']:.1f}",
            "yes" if chosen == leaves else "NO", f"{np.mean(np.array(chosen) == theirs):.0%}",
        ])  # fmt: skip
    head = ["rows", "chosen", *METHODS, "leaves, times ours", "fpsample, times ours", "rows of the leaves", "same"]
    return f"{' '.join(NOTE.splitlines())}\n\n{table(head, lines)}"
