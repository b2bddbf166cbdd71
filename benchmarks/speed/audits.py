"""How fast are audits and memory banks on the processor?

An audit of a million rows with a list of random kept rows, with its comparisons. Goal: 30 s for 10,000 kept rows. A memory bank of
patch embeddings as in PatchCore: k-centre by the definition as anomalib computes it, in NumPy. Each step computes the distances of
all rows to the last selected row. Steps take equal times, so that the total is extrapolated from the first steps. Goal: the same
rows, and 5 times as fast at 1 %.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, seconds, table, verdict
from reduset import cover
from reduset.covers import audit

TITLE = "Audits and memory banks on the processor"
SOURCES = (
    "covers/auditing.py",
    "covers/covering.py",
    "covers/rows.py",
    "_engine/lazy_cover.py",
    "_engine/host_rows.py",
    "_engine/radius_search.py",
)

AUDITED, COLUMNS, KEPT, CLUSTERS, WITHIN = 1_000_000, 128, 10_000, 1000, 0.3
BANK, FEATURES, PROPORTION, STEPS = 219_520, 1536, 0.01, 40
PATCH, STRIDE = 16, 2
IMAGES = ("astronaut", "coffee", "chelsea", "hubble", "rocket", "china", "flower")
GOAL_SECONDS, GOAL_FACTOR = 30.0, 5.0
NOTE = f"""Rows in {CLUSTERS:,} clusters, and unstructured normal rows. *Nearest* is the time without comparisons: the nearest kept
row of every row. The audit adds the radii of as many random and farthest-first rows."""
BANK_NOTE = f"""Patches of {PATCH} × {PATCH} pixels of {len(IMAGES)} photographs, every {STRIDE} pixels, as {FEATURES} random
ReLU features in float32. The time of the definition is that of its first {STEPS} steps, times the number of steps."""


def drawn(distribution: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    if distribution == "clustered":
        centres = rng.normal(size=(CLUSTERS, COLUMNS)).astype(np.float32)
        rows = centres[rng.integers(0, CLUSTERS, n)] + np.float32(WITHIN) * rows
    return rows


def patches(n: int) -> np.ndarray:
    """(n, features) random features of the patches of photographs."""
    rng = np.random.default_rng(0)
    parts = []
    with np.load(data_folder() / "images_std.npz") as file:
        for name in IMAGES:
            windows = np.lib.stride_tricks.sliding_window_view(file[name], (PATCH, PATCH), axis=(0, 1))[::STRIDE, ::STRIDE]
            parts.append(windows.reshape(-1, 3 * PATCH * PATCH))
    chosen = np.sort(rng.choice(sum(map(len, parts)), n, replace=False))
    weights = rng.normal(size=(3 * PATCH * PATCH, FEATURES)).astype(np.float32) / np.float32(PATCH)
    rows = np.concatenate(parts)[chosen]
    out = np.empty((n, FEATURES), np.float32)
    for a in range(0, n, 8192):
        out[a : a + 8192] = np.maximum((rows[a : a + 8192] / np.float32(255) - np.float32(0.5)) @ weights, 0)
    return out


def by_definition(rows: np.ndarray, size: int, first: int) -> list[int]:
    """The farthest row from all earlier ones, step by step; the first row is not returned."""
    chosen, row = [], first
    least = np.full(len(rows), np.inf)
    for _ in range(size):
        np.minimum(least, np.linalg.norm(rows - rows[row], axis=1), out=least)
        row = int(least.argmax())
        chosen.append(row)
    return chosen


def is_farthest(rows: np.ndarray, chosen: list[int], first: int) -> int:
    """How many of the chosen rows are the farthest from all earlier ones, in double precision."""
    least, correct, row = np.full(len(rows), np.inf), 0, first
    for following in chosen:
        for a in range(0, len(rows), 8192):
            gaps = rows[a : a + 8192].astype(float) - rows[row]
            least[a : a + 8192] = np.minimum(least[a : a + 8192], np.einsum("ij,ij->i", gaps, gaps))
        correct += int(least[following] >= least.max() * (1 - 1e-12))
        row = following
    return correct


def audits(quick: bool) -> list[dict[str, Any]]:
    n, m = (20_000, 200) if quick else (AUDITED, KEPT)
    figures = []
    for distribution in ("clustered", "unstructured"):
        rows = drawn(distribution, n)
        kept = np.random.default_rng(1).choice(n, m, replace=False)
        audit(rows[:2000], np.arange(20))
        nearest = seconds(lambda rows=rows, kept=kept: audit(rows, kept, compare=False))
        begun = time.perf_counter()
        found = audit(rows, kept)
        total = time.perf_counter() - begun
        some = np.random.default_rng(2).choice(n, 200, replace=False)
        exact = [np.linalg.norm(rows[kept].astype(float) - rows[row], axis=1).min() for row in some]
        figures.append(
            {
                "rows": n,
                "kept": m,
                "distribution": distribution,
                "nearest": nearest,
                "audit": total,
                "radius": found.radius,
                "exact": bool(np.allclose(found.distances[some], exact, rtol=1e-9)),
            }
        )
    return figures


def banks(quick: bool) -> dict[str, Any]:
    rows = patches(6_000 if quick else BANK)
    size = int(len(rows) * PROPORTION)
    steps = min(STEPS, size)
    cover(rows[:2000], 10)
    begun = time.perf_counter()
    chosen = cover(rows, size, start=[0], assignments=False)
    own = time.perf_counter() - begun
    begun = time.perf_counter()
    by_definition(rows, steps, 0)
    step = (time.perf_counter() - begun) / steps
    return {
        "rows": len(rows),
        "size": size,
        "seconds": own,
        "step": step,
        "same": is_farthest(rows, chosen.indices[:steps].tolist(), 0),
        "steps": steps,
    }


def measure(quick: bool) -> dict[str, Any]:
    return {"audits": audits(quick), "bank": banks(quick)}


def factor(bank: dict[str, Any]) -> float:
    return float(bank["step"] * bank["size"] / bank["seconds"])


def summary(figures: dict[str, Any]) -> list[list[str]]:
    rows = []
    for each in figures["audits"]:
        what = f"Audit of {each['rows']:,} × {COLUMNS} {each['distribution']} rows, {each['kept']:,} kept"
        met = "yes" if each["audit"] <= GOAL_SECONDS else "NO"
        rows.append([what, f"{each['audit']:.1f} s", f"{GOAL_SECONDS:.0f} s", met])
    bank = figures["bank"]
    what = f"Memory bank, {bank['size']:,} of {bank['rows']:,} × {FEATURES}"
    same = f"{bank['same']} of the first {bank['steps']}"
    return [
        *rows,
        [what, f"{factor(bank):.1f} times as fast", f"{GOAL_FACTOR:g} times", verdict(factor(bank), GOAL_FACTOR)],
        ["Same rows as the definition", same, "all", "yes" if bank["same"] == bank["steps"] else "NO"],
    ]


def details(figures: dict[str, Any]) -> str:
    lines = [
        [
            f"{each['rows']:,} {each['distribution']}",
            f"{each['kept']:,}",
            f"{each['radius']:.4g}",
            f"{each['nearest']:.1f} s",
            f"{each['audit']:.1f} s",
            "yes" if each["exact"] else "NO",
        ]
        for each in figures["audits"]
    ]
    head = [f"rows × {COLUMNS}", "kept", "radius", "nearest", "audit", "200 distances exact"]
    bank = figures["bank"]
    line = [
        f"{bank['rows']:,} × {FEATURES}",
        f"{bank['size']:,}",
        f"{bank['seconds']:.1f} s",
        f"{bank['step']:.3f} s",
        f"{bank['step'] * bank['size']:.0f} s",
        f"{factor(bank):.1f}",
    ]
    bank_head = ["patches", "memory bank", "cover", "step of the definition", "all steps, extrapolated", "definition over cover"]
    notes = [" ".join(note.splitlines()) for note in (NOTE, BANK_NOTE)]
    return "\n\n".join([notes[0], table(head, lines), notes[1], table(bank_head, [line])])
