"""How fast are duplicates, audits and memory banks on one GPU, for rows on the device, or in main memory and too large for it?

Duplicates: `cover(E, radius=)` where 95 % of the rows are kept. All pairs of 10⁶ rows are also found by products of all columns.
Memory banks are compared with the loop of anomalib in torch: the distances of all rows to each new centre, the running minimum, the
largest. Goals: no pair missed, the same rows, and the times and ratios in `FULL` and `GOALS`.

Needs a CUDA device, cupy and torch, for the full version 20 GB of main memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import reduset
from benchmarks._lib import table, verdict
from benchmarks.gpu.gpu_cover import card, free_memory
from reduset import cover
from reduset.covers import audit

TITLE = "Duplicates, audits and memory banks on a GPU"
SOURCES = (
    "_engine/lazy_cover.py",
    "_engine/radius_search.py",
    "_engine/cuda/chunks.py",
    "_engine/cuda/device_rows.py",
    "_engine/cuda/radius_search.py",
    "_engine/cuda/sent_rows.py",
    "covers",
)

COLUMNS, COPIES, NOISE, RADIUS = 768, 0.05, 0.01, 0.5
CLUSTERS, WITHIN, PART = 1000, 0.3, 1 << 19
# distribution, rows, goal in seconds
FULL = [("unstructured", 10**6, 5.0), ("unstructured", 10**7, 200.0), ("clustered", 10**7, 60.0)]
QUICK = [("unstructured", 10**5, 5.0), ("clustered", 10**5, 60.0)]
SENT = (2 * 10**6, 4096)  # 16 GB, with half of that on the device
LEAST_POOL = 4 * 10**9  # bytes of the smallest blocks of work, which a quick run needs
BANK = (219_520, 1536)
AUDITED, KEPT = 10**7, 10**4
GOALS = {"bank": 20.0, "audit": 5.0, "link": 0.7}


def drawn(distribution: str, n: int, d: int = COLUMNS, out: Any = None) -> Any:
    """Rows in half precision, the last 5 % near copies of others; on the device, or in an array ``out`` in main memory."""
    import cupy

    rng = cupy.random.default_rng(0)
    rows = cupy.empty((n, d), np.float16) if out is None else out
    centres = rng.standard_normal((CLUSTERS, d), dtype=cupy.float32)
    first_copy = int(n * (1 - COPIES))
    originals = None
    for a in range(0, n, PART):
        some = rng.standard_normal((min(PART, n - a), d), dtype=cupy.float32)
        if distribution == "clustered":
            some = centres[rng.integers(0, CLUSTERS, len(some))] + np.float32(WITHIN) * some
        originals = some if originals is None else originals
        copies = max(0, min(len(some), a + len(some) - first_copy))
        if copies:
            noise = rng.standard_normal((copies, d), dtype=cupy.float32)
            some[len(some) - copies :] = (
                originals[rng.integers(0, min(len(originals), first_copy), copies)] + np.float32(NOISE) * noise
            )
        if out is None:
            rows[a : a + PART] = some
        else:
            some.astype(np.float16).get(out=rows[a : a + PART])
    return rows


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    import cupy

    cupy.cuda.Device().synchronize()
    begun = time.perf_counter()
    found = call()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - begun, found


def all_pairs(rows: Any, radius: float) -> set[tuple[int, int]]:
    """All pairs within the radius, by products of all columns and differences in double precision."""
    import cupy

    from reduset._engine.cuda.device_rows import half_products

    n, length, found = len(rows), 1 << 14, set()
    squares = cupy.concatenate([cupy.square(rows[a : a + PART].astype(np.float32)).sum(axis=1) for a in range(0, n, PART)])
    for a in range(0, n, length):
        for b in range(a, n, length):
            products = half_products(rows[a : a + length], rows[b : b + length])
            near = products >= (squares[a : a + length, None] + squares[b : b + length] - radius**2 - 1) / 2
            one, other = (each.get() for each in cupy.nonzero(near))
            one, other = (a + one)[a + one < b + other], (b + other)[a + one < b + other]
            for c in range(0, len(one), 1 << 15):
                i, j = one[c : c + (1 << 15)], other[c : c + (1 << 15)]
                distances = cupy.linalg.norm(rows[i].astype(np.float64) - rows[j].astype(np.float64), axis=1).get()
                found.update(zip(i[distances <= radius].tolist(), j[distances <= radius].tolist(), strict=True))
    return found


def duplicates(distribution: str, n: int) -> dict[str, Any]:
    """Seconds of a cover, how many rows are kept, and for up to 10⁶ rows how many pairs are missed."""
    free_memory()
    rows = drawn(distribution, n)
    cover(rows[:40_000], radius=RADIUS)  # compiles
    seconds, found = timed(partial(cover, rows, radius=RADIUS))
    result = {"seconds": seconds, "kept": found.size / n, "largest": found.radius}
    if n <= 10**6:
        pairs, expected = found.pairs(), all_pairs(rows, RADIUS)
        ours = set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
        kept = np.zeros(n, bool)
        kept[found.indices] = True
        result |= {"pairs": len(expected), "missed": len(expected - ours), "wrong": len(ours - expected)}
        result["apart"] = not any(kept[one] and kept[other] for one, other in expected)
    return result


def sent(n: int, d: int) -> dict[str, Any]:
    """Rows in main memory: seconds with half as much memory on the device, and the same on the device; rates of the link."""
    import cupy

    from reduset._engine.cuda import guard
    from reduset._engine.cuda.chunks import pinned_array
    from reduset._engine.cuda.sent_rows import SentRows

    free_memory()
    rows = drawn("unstructured", n, d, np.empty((n, d), np.float16))
    radius = RADIUS * float(np.sqrt(d / COLUMNS))
    block = pinned_array((1 << 18, 1024), np.dtype(np.float32))
    there = cupy.empty(block.shape, block.dtype)
    link = block.nbytes / min(timed(partial(there.set, block))[0] for _ in range(3))
    pool, guard._limit = cupy.get_default_memory_pool(), rows.nbytes // 2
    del there
    free_memory()
    pool.set_limit(size=max(guard._limit, LEAST_POOL))
    reduset.set_device("cuda")
    try:
        cover(rows[:40_000], radius=radius)
        store = SentRows(rows)
        rate = rows.nbytes / timed(lambda: [part.max() for _, _, part in store.parts(n)])[0]
        seconds, found = timed(partial(cover, rows, radius=radius))
        few_seconds, few = timed(partial(cover, rows, 1000, assignments=False))
    finally:
        reduset.set_device(None)
        guard._limit = None
        pool.set_limit(size=0)
    free_memory()
    held = cupy.empty(rows.shape, rows.dtype)
    for a, b, part in store.parts(n):
        held[a:b] = part
    held_seconds, expected = timed(partial(cover, held, radius=radius))
    same = np.array_equal(found.indices, expected.indices) and np.array_equal(found.assignments, expected.assignments)
    expected_few = cover(held, 1000, assignments=False)
    return {
        "bytes": rows.nbytes,
        "limit": rows.nbytes // 2,
        "link": link / 1e9,
        "rate": rate / 1e9,
        "seconds": seconds,
        "held": held_seconds,
        "few": few_seconds,
        "same": bool(same and np.array_equal(few.indices, expected_few.indices)),
    }


def bank(n: int, d: int, fraction: float) -> dict[str, Any]:
    """Seconds of a memory bank of random patches of rank 40, and of the loop in torch."""
    import cupy
    import torch

    free_memory()
    rng = cupy.random.default_rng(0)
    factors, mixing = rng.standard_normal((n, 40), dtype=np.float32), rng.standard_normal((40, d), dtype=np.float32)
    rows = cupy.maximum(factors @ mixing / 6, 0) + np.float32(0.05) * rng.standard_normal((n, d), dtype=np.float32)
    values, size = torch.from_dlpack(rows), int(n * fraction)

    def loop(count: int) -> list[int]:
        chosen, least = [0], torch.full((n, 1), torch.inf, device=values.device)
        for _ in range(count - 1):
            latest = torch.nn.functional.pairwise_distance(values, values[chosen[-1] : chosen[-1] + 1], p=2).reshape(-1, 1)
            least = torch.minimum(least, latest)
            chosen.append(int(torch.argmax(least)))
        return chosen

    loop(10)
    cover(rows, 100, start=[0], assignments=False)
    seconds, found = timed(partial(cover, rows, size - 1, start=[0], assignments=False))
    loop_seconds, chosen = timed(partial(loop, size))
    ours = [0, *found.indices.tolist()]
    return {
        "size": size,
        "seconds": seconds,
        "torch": loop_seconds,
        "in order": float(np.mean(np.array(ours) == chosen)),
        "in common": len(set(ours) & set(chosen)) / size,
    }


def audited(n: int, size: int) -> dict[str, Any]:
    """Seconds of an audit of random rows, and whether the radius is that of all products for a sample of rows."""
    import cupy

    free_memory()
    rows = drawn("unstructured", n)
    keep = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    audit(rows[: max(n // 10, 10 * size)], np.arange(size))  # compiles
    seconds, found = timed(partial(audit, rows, keep))
    worst = found.worst(50)
    kept = rows[cupy.asarray(keep)].astype(np.float64)
    exact = [float(cupy.linalg.norm(kept - rows[int(row)].astype(np.float64), axis=1).min()) for row in worst]
    return {"seconds": seconds, "radius": found.radius, "confirmed": bool(np.allclose(exact, found.distances[worst], rtol=1e-6))}


NOTE = """Rows of standard normal numbers (*unstructured*), or in {clusters:,} clusters with standard deviation {within}
(*clustered*), in half precision; the last 5 % are others plus noise of standard deviation {noise}, within the radius {radius}.
Times are of one whole call after a small one, with checks and assignments. *Missed*: pairs that products of all columns find.
Rows in main memory have 4,096 columns and are twice as large as the memory that may be used on the device (*limit*).
*Link*: one transfer from pinned memory;
*pass*: all rows, from pageable memory. The memory bank is of {bank_rows:,} × {bank_columns:,} float32 rows; torch computes
`pairwise_distance` for each centre."""


def measure(quick: bool) -> dict[str, Any]:
    """The figures of all parts."""
    return {
        "duplicates": [[*case, duplicates(*case[:2])] for case in (QUICK if quick else FULL)],
        "sent": sent(10**5, 512) if quick else sent(*SENT),
        "banks": [bank(*((20_000, 256) if quick else BANK), fraction) for fraction in (0.01, 0.1)],
        "audit": audited(10**5, 1000) if quick else audited(AUDITED, KEPT),
        "card": card(),
    }


def summary(figures: dict[str, Any]) -> list[list[str]]:
    rows = []
    for distribution, n, goal, found in figures["duplicates"]:
        met = verdict(-found["seconds"], -goal)
        rows.append([f"Duplicates of {n:,} × {COLUMNS} float16, {distribution}", f"{found['seconds']:.3g} s", f"≤ {goal:g} s", met])
    missed = sum(each.get("missed", 0) + each.get("wrong", 0) + (not each.get("apart", True)) for *_, each in figures["duplicates"])
    there, check = figures["sent"], figures["audit"]
    rate, same = there["rate"] / there["link"], min(each["in common"] for each in figures["banks"])
    rows += [
        ["Pairs missed or wrong", str(missed), "0", verdict(-missed, 0)],
        ["Rate of a pass over sent rows, of the link", f"{rate:.0%}", f"≥ {GOALS['link']:.0%}", verdict(rate, GOALS["link"])],
        ["Sent rows give the same cover", "yes" if there["same"] else "no", "yes", "yes" if there["same"] else "NO"],
    ]
    for each in figures["banks"]:
        ratio, goal = each["torch"] / each["seconds"], GOALS["bank"] if each is figures["banks"][-1] else 0.0
        rows.append(
            [
                f"Memory bank of {each['size']:,} rows: faster than torch",
                f"{ratio:.0f}×",
                f"≥ {goal:g}×" if goal else "",
                verdict(ratio, goal) if goal else "",
            ]
        )
    met = verdict(-check["seconds"] if check["confirmed"] else -np.inf, -GOALS["audit"])
    rows += [
        ["The same rows as torch", f"{same:.2%}", "100 %", verdict(same, 1.0)],
        [f"Audit of {AUDITED:,} × {COLUMNS}, {KEPT:,} kept", f"{check['seconds']:.2f} s", f"≤ {GOALS['audit']:g} s", met],
    ]
    return rows


def details(figures: dict[str, Any]) -> str:
    note = NOTE.format(clusters=CLUSTERS, within=WITHIN, noise=NOISE, radius=RADIUS, bank_rows=BANK[0], bank_columns=BANK[1])
    lines = []
    for distribution, n, _, found in figures["duplicates"]:
        pairs = [f"{found[name]:,}" if name in found else "" for name in ("pairs", "missed", "wrong")]
        lines.append([f"{distribution}, {n:,}", f"{found['seconds']:.2f} s", f"{found['kept']:.2%}", *pairs])
    there = figures["sent"]
    line = [
        *(f"{there[name] / 1e9:.0f} GB" for name in ("bytes", "limit")),
        *(f"{there[name]:.0f} GB/s" for name in ("link", "rate")),
        *(f"{there[name]:.1f} s" for name in ("seconds", "held", "few")),
        "yes" if there["same"] else "NO",
    ]
    banks = [
        [
            f"{each['size']:,}",
            f"{each['seconds']:.2f} s",
            f"{each['torch']:.1f} s",
            f"{each['torch'] / each['seconds']:.0f}",
            f"{each['in order']:.2%}",
            f"{each['in common']:.2%}",
        ]
        for each in figures["banks"]
    ]
    tables = (
        table(["rows", "seconds", "kept", "pairs", "missed", "wrong"], lines),
        table(["rows", "limit", "link", "pass", "cover of a radius", "the same on the device", "1,000 rows", "same"], [line]),
        table(["kept", "seconds", "torch", "torch over ours", "same row at each step", "rows in common"], banks),
    )
    return "\n\n".join([f"{' '.join(note.splitlines())} {figures['card']}.", *tables])
