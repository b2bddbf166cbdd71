"""How fast are near-duplicates found on the processor, at any proportion of kept rows?

Against NumPy in float32: blocked matrix products of all pairs, as people write it. The net keeps the first row of each pair. Goals:
3 times as fast for unstructured rows, 15 times for rows in clusters, with the same rows and pairs. For kept proportions from 1 % to
99 %, `cover` with a radius is compared with each of its algorithms. Goal: at most 1.5 times the time of the faster one.
Farthest-first selection is stopped at twice the time of the net.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._lib import medians, table, verdict
from reduset import cover

TITLE = "Near-duplicates on the processor"
SOURCES = (
    "covers/covering.py",
    "covers/near.py",
    "covers/result.py",
    "_engine/radius_search.py",
    "_engine/radius_tiles.py",
    "_engine/lazy_cover.py",
    "_engine/host_rows.py",
)

COLUMNS, KEPT, CLUSTERS, WITHIN = 128, 0.95, 1000, 0.3
RADIUS, COPY = 1.0, 0.9  # the largest distance of a copy to its original is 0.9; other rows are farther apart than the radius
GOALS = {"unstructured": 3.0, "clustered": 15.0}
BLOCK = 4096  # rows of a block of the products in NumPy
PROPORTIONS = (0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
PATIENCE, LIMIT, REPEATS = 2.0, 1.5, 2
LATENT, COLUMNS_OF_ANY = 6, 256
RADII = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.2)
NOTE = f"""Of all rows, 5 % are copies at distances up to 0.45, and the radius is 1. Clustered rows are in 1,000 clusters. NumPy
multiplies blocks of {BLOCK:,} rows in float32, each pair of blocks once, and keeps the first row of each pair. `cover` also returns
the nearest kept row of every row."""
ANY_NOTE = f"""100,000 × {COLUMNS_OF_ANY} float32. *Copies* are copies of unstructured rows. *Curved* rows have {LATENT} latent
columns, with other radii. Farthest-first selection is stopped at twice the time of the net."""


def with_copies(n: int, d: int, kept: float, distribution: str, seed: int = 0) -> np.ndarray:
    """Rows of which a proportion is kept; the others are near a random row that is kept."""
    rng = np.random.default_rng(seed)
    m = round(kept * n)
    rows = rng.normal(size=(n, d)).astype(np.float32)
    if distribution == "clustered":
        centres = 4 * rng.normal(size=(CLUSTERS, d)).astype(np.float32)
        rows[:m] = centres[rng.integers(0, CLUSTERS, m)] + np.float32(WITHIN) * rows[:m]
    steps = rows[m:] / np.linalg.norm(rows[m:], axis=1)[:, None]
    rows[m:] = rows[rng.integers(0, m, n - m)] + steps * rng.uniform(0, COPY / 2, (n - m, 1)).astype(np.float32)
    return rows[rng.permutation(n)]


def by_numpy(rows: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """The kept rows, and all pairs within the radius."""
    n, squares = len(rows), np.einsum("ij,ij->i", rows, rows)
    found = []
    for a in range(0, n, BLOCK):
        for b in range(a, n, BLOCK):
            distances = rows[a : a + BLOCK] @ rows[b : b + BLOCK].T
            distances *= -2
            distances += squares[a : a + BLOCK, None]
            distances += squares[b : b + BLOCK]
            found.append(np.argwhere(distances <= np.float32(radius**2)) + np.array([a, b]))
    pairs = np.concatenate(found)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    kept = np.ones(n, bool)
    for one, other in pairs.tolist():
        if kept[one]:
            kept[other] = False
    return np.flatnonzero(kept), pairs


def against_numpy(quick: bool) -> list[dict[str, Any]]:
    figures = []
    for n in (6_000,) if quick else (50_000, 200_000):
        for distribution in GOALS:
            rows = with_copies(n, COLUMNS, KEPT, distribution)
            cover(rows[:3000], radius=RADIUS)
            results: dict[str, Any] = {}
            functions = {
                "cover": lambda rows=rows, results=results: results.update(cover=cover(rows, radius=RADIUS)),
                "numpy": lambda rows=rows, results=results: results.update(numpy=by_numpy(rows, RADIUS)),
            }
            times = medians(1 if quick or n > 100_000 else 3, **functions)
            unique, (kept, pairs) = results["cover"], results["numpy"]
            begun = time.perf_counter()
            found = unique.pairs()
            figures.append(
                {
                    "rows": n,
                    "distribution": distribution,
                    "kept": unique.size / n,
                    "seconds": times | {"pairs": time.perf_counter() - begun},
                    "same": np.array_equal(unique.indices, kept) and np.array_equal(np.column_stack(found[:2]), pairs),
                }
            )
    return figures


class Stopped(Exception):
    """The time of a selection is over."""


def seconds_of(rows: np.ndarray, radius: float, limit: float = np.inf, **options: Any) -> tuple[float | None, float]:
    """The time of a cover, infinite above a limit, and the proportion of kept rows."""
    begun = time.perf_counter()

    def stop(*_: Any) -> None:
        if time.perf_counter() - begun > limit:
            raise Stopped

    try:
        found = cover(rows, radius=radius, progress=stop, **options)
    except Stopped:
        return None, np.nan
    return time.perf_counter() - begun, found.size / len(rows)


def at_any_proportion(quick: bool) -> list[dict[str, Any]]:
    """The time of a cover, relative to the faster of its two algorithms."""
    n = 5_000 if quick else 100_000
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(LATENT, COLUMNS_OF_ANY)).astype(np.float32) / 16
    curved = np.maximum(rng.normal(size=(n, LATENT)).astype(np.float32) @ weights, 0)
    cases = [("copies", with_copies(n, COLUMNS_OF_ANY, kept, "unstructured"), RADIUS) for kept in PROPORTIONS]
    cases += [("curved", curved, radius) for radius in RADII]
    figures = []
    for kind, rows, radius in cases[:1] + cases[-2:] if quick else cases:
        own, kept = min(seconds_of(rows, radius) for _ in range(REPEATS))
        net, _ = min(seconds_of(rows, radius, keep="first") for _ in range(REPEATS))
        farthest, _ = seconds_of(rows, radius, PATIENCE * net, size=n)
        figures.append({"kind": kind, "kept": kept, "cover": own, "net": net, "farthest": farthest})
    return figures


def relative(figure: dict[str, Any]) -> float:
    """The time of a cover relative to the faster algorithm."""
    return float(figure["cover"] / min(figure["net"], figure["farthest"] or np.inf))


def measure(quick: bool) -> dict[str, Any]:
    compared, proportions = against_numpy(quick), at_any_proportion(quick)
    summary = []
    for distribution, goal in GOALS.items():
        each = [figure for figure in compared if figure["distribution"] == distribution]
        factor = min(figure["seconds"]["numpy"] / figure["seconds"]["cover"] for figure in each)
        sizes = " and ".join(f"{figure['rows']:,}" for figure in each)
        what = f"Against NumPy, {sizes} {distribution} rows"
        summary.append([what, f"at least {factor:.1f} times as fast", f"{goal:g} times", verdict(factor, goal)])
    same = sum(figure["same"] for figure in compared)
    summary.append(
        ["Same kept rows and pairs", f"{same} of {len(compared)} cases", "all", "yes" if same == len(compared) else "NO"]
    )
    worst = max(map(relative, proportions))
    kept = [figure["kept"] for figure in proportions]
    what = f"Time relative to the faster algorithm, {min(kept):.1%} to {max(kept):.1%} kept"
    summary.append([what, f"at most {worst:.2f}", f"{LIMIT:g}", "yes" if worst <= LIMIT else "NO"])
    lines = [
        [
            f"{figure['rows']:,} {figure['distribution']}",
            f"{figure['kept']:.1%}",
            *(f"{figure['seconds'][name]:.2f} s" for name in ("cover", "pairs", "numpy")),
            f"{figure['seconds']['numpy'] / figure['seconds']['cover']:.1f}",
            "yes" if figure["same"] else "NO",
        ]
        for figure in compared
    ]
    head = [f"rows × {COLUMNS}", "kept", "cover", "its pairs", "NumPy", "NumPy over cover", "same rows and pairs"]
    others = [
        [
            figure["kind"],
            f"{figure['kept']:.1%}",
            *("stopped" if figure[name] is None else f"{figure[name]:.2f} s" for name in ("cover", "net", "farthest")),
            f"{relative(figure):.2f}",
        ]
        for figure in proportions
    ]
    other_head = ["rows", "kept", "cover", "net", "farthest first", "cover over the faster"]
    notes = [" ".join(note.splitlines()) for note in (NOTE, ANY_NOTE)]
    details = "\n\n".join([notes[0], table(head, lines), notes[1], table(other_head, others)])
    return {"summary": summary, "details": details}
