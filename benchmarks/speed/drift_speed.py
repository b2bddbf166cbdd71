"""What does a drift reference of a million rows cost to fit, to keep and to test?

Against alibi-detect's MMDDrift, at the largest size that it holds in memory. Goals: a test in less than 0.1 s, a saved reference
below 5 MB; 100 times as fast and 100 times less memory than MMDDrift. Memory is the peak of a process, less its memory before.

``python -m benchmarks.speed.drift_speed N`` measures reduset with N rows in each sample, in a process of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import medians, own_process, python_of, seconds, table, verdict
from benchmarks.peers import drift_peers

TITLE = "Drift: speed"
SOURCES = ("drift",)

COLUMNS, SHIFT = 10, 0.1
FULL = {"rows": 1_000_000, "new": 10_000, "repeats": 5}
QUICK = {"rows": 20_000, "new": 1_000, "repeats": 1}
MOST_SECONDS, MOST_MEGABYTES, LEAST_RATIO = 0.1, 5.0, 100.0
TRIED, QUICK_TRIED = (1000, 2000, 5000, 10_000), (500,)  # rows in each sample; at 14,000 a permutation takes minutes
PERMUTATIONS = 10  # at the largest size; the default, 100, takes a quarter of an hour at 10,000 rows
MEMORY = 18  # GB for the peer: the machine has other work


def large_reference(rows: int, new: int, repeats: int) -> tuple[list[list[str]], str]:
    from reduset.drift import DriftTest

    rng = np.random.default_rng(0)
    X, same, moved = rng.normal(size=(rows, COLUMNS)), rng.normal(size=(new, COLUMNS)), rng.normal(size=(new, COLUMNS))
    moved[:, 0] += SHIFT
    DriftTest(random_state=0).fit(X[:2000]).test(same[:100])  # compiles
    test = DriftTest(random_state=0)
    fitted = seconds(lambda: test.fit(X))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reference.npz"
        test.save(path)
        size = path.stat().st_size / 1e6
    once = medians(repeats, same=lambda: test.test(same), moved=lambda: test.test(moved))
    slowest = max(once.values())
    tested = [f"{1e3 * each:.1f} ms" for each in once.values()]
    cells = [f"{rows:,} × {COLUMNS}", f"{new:,}", f"{fitted:.2f} s", f"{size:.2f} MB", *tested]
    head = ["reference", "new rows", "fit, once", "saved", "a test, no drift", "a test, drift"]
    return [
        [f"Fit {rows:,} × {COLUMNS} reference rows", f"{fitted:.2f} s", "", ""],
        ["Saved reference", f"{size:.2f} MB", f"< {MOST_MEGABYTES:g} MB", verdict(-size, -MOST_MEGABYTES)],
        [f"Test of {new:,} new rows", f"{1e3 * slowest:.1f} ms", f"< {1e3 * MOST_SECONDS:g} ms", verdict(-slowest, -MOST_SECONDS)],
    ], f"**A test against a large reference**, medians of {repeats}.\n\n" + table(head, [cells])


def own_cost(n: int) -> dict[str, float]:
    """Time and memory with n rows in each sample, as the peer has them."""
    from reduset.drift import DriftTest

    X, Y = np.random.default_rng(0).normal(size=(2, n, COLUMNS)).astype(np.float32)
    DriftTest(random_state=0).fit(X[:500]).test(Y[:100])  # compiles
    begun = time.perf_counter()
    test = DriftTest(random_state=0).fit(X)
    prepared = time.perf_counter() - begun
    once = medians(3, test=lambda: test.test(Y))["test"]
    tracemalloc.start()  # compiled code needs more memory than the test, so the memory of the process would hide it
    DriftTest(random_state=0).fit(X).test(Y)
    return {"prepare": prepared, "test": once, "peak": tracemalloc.get_traced_memory()[1] / 2**20}


def of_peer(tried: tuple[int, ...]) -> list[tuple[int, dict[str, float] | str]]:
    """Cost of MMDDrift at each size, up to the first that it cannot hold; the largest with more permutations."""
    found: list[tuple[int, dict[str, float] | str]] = []
    for n in tried:
        try:
            first = drift_peers.call("mmd_drift", n=n, columns=COLUMNS, permutations=1, repeats=1, memory=MEMORY)
        except drift_peers.Failed as error:
            found.append((n, str(error).splitlines()[-1][:100]))
            break
        found.append((n, first))
    held = [n for n, result in found if not isinstance(result, str)][-1]
    whole = drift_peers.call("mmd_drift", n=held, columns=COLUMNS, permutations=PERMUTATIONS, repeats=1, memory=MEMORY)
    return [(n, whole if n == held else result) for n, result in found]


def against_peer(tried: tuple[int, ...]) -> tuple[list[list[str]], str]:
    rows, summary = [], []
    for n, peer in of_peer(tried):
        if isinstance(peer, str):
            rows.append([f"{n:,}", f"fails: {peer}", *[""] * 7])
            continue
        ours = json.loads(own_process(__file__, str(n)).stdout)
        used, held = peer["peak"] - peer["idle"], max(ours["peak"], 0.1)
        faster, less = peer["test"] / ours["test"], used / held
        rows.append([
            f"{n:,}", peer["permutations"], f"{peer['prepare']:.2f} s", f"{peer['test']:.2f} s", f"{used:,.0f} MB",
            f"{1e3 * ours['test']:.1f} ms", f"{held:,.1f} MB", f"{faster:,.0f}×", f"{less:,.0f}×",
        ])  # fmt: skip
        if peer["permutations"] == PERMUTATIONS:
            summary = [[
                f"Against MMDDrift, {n:,} rows: time, memory",
                f"{faster:,.0f}× faster, {less:,.0f}× less", f"{LEAST_RATIO:g}× both", verdict(min(faster, less), LEAST_RATIO),
            ]]  # fmt: skip
    head = ["rows in each sample", "permutations", "MMDDrift: prepare", "a test", "memory", "reduset: a test", "memory", "faster"]
    return summary, (
        f"**alibi-detect's MMDDrift** (torch, no KeOps) with {COLUMNS} columns and at most {MEMORY} GB. The largest size that it "
        f"holds has {PERMUTATIONS} permutations (its default is 100), the others one.\n\n" + table([*head, "less memory"], rows)
    )


def measure(quick: bool) -> dict[str, Any]:
    summary, details = large_reference(**(QUICK if quick else FULL))
    try:
        python_of("drift")
    except SystemExit as missing:
        if not quick:
            raise
        return {"summary": summary, "details": f"{details}\n\nWithout MMDDrift: {missing}."}
    rows, more = against_peer(QUICK_TRIED if quick else TRIED)
    return {"summary": summary + rows, "details": f"{details}\n\n{more}"}


if __name__ == "__main__":
    print(json.dumps(own_cost(int(sys.argv[1]))))
