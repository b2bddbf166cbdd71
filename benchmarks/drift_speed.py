"""A reference of a million rows: what it costs to fit, to keep and to test; and alibi-detect's MMDDrift where it still can.

Memory is the peak of a process of its own, less what it held before. `--peer` measures MMDDrift alone.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

import drift_peers
from harness import medians, table, verdict

TITLE = "Drift: speed"

ROWS, NEW, COLUMNS = 1_000_000, 10_000, 10
TRIED = (1000, 2000, 5000, 10_000)  # rows a side that MMDDrift is tried with; of 14,000 it takes minutes a permutation
PERMUTATIONS = 10  # at the largest; its default, 100, takes ten times as long, some quarter of an hour at 10,000 rows
MEMORY = 18  # GB that it may have: others work on the machine


def artefact(test: object, folder: Path) -> int:
    """Bytes of the saved reference."""
    path = folder / "reference.npz"
    if hasattr(test, "save"):
        test.save(path)
        return path.stat().st_size
    return len(pickle.dumps(test))


def ours() -> str:
    from reduset.drift import DriftTest

    rng = np.random.default_rng(0)
    X, same, moved = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=(NEW, COLUMNS)), rng.normal(size=(NEW, COLUMNS))
    moved[:, 0] += 0.1
    DriftTest(random_state=0).fit(X[:2000]).test(same[:100])  # what is compiled is not timed
    begun = time.perf_counter()
    test = DriftTest(random_state=0).fit(X)
    fitted = time.perf_counter() - begun
    with tempfile.TemporaryDirectory() as folder:
        size = artefact(test, Path(folder)) / 1e6
    once = medians(5, same=lambda: test.test(same), moved=lambda: test.test(moved))
    cells = [f"{ROWS:,}×{COLUMNS}", f"{NEW:,}", f"{fitted:.2f} s", f"{size:.2f} MB", *(f"{1e3 * t:.1f} ms" for t in once.values())]
    rows = [[*cells, verdict(-max(once.values()), -0.1), verdict(-size, -5)]]
    head = ["reference", "new rows", "fit, once", "kept", "a test, no drift", "a test, drift", "under 0.1 s", "under 5 MB"]
    return "**A test against a large reference**, medians of five.\n\n" + table(head, rows)


def own_cost(n: int) -> dict[str, float]:
    """In a process of its own: n rows a side, as the peer has them."""
    from reduset.drift import DriftTest

    X, Y = np.random.default_rng(0).normal(size=(2, n, COLUMNS)).astype(np.float32)
    DriftTest(random_state=0).fit(X[:500]).test(Y[:100])  # what is compiled is neither timed nor counted
    begun = time.perf_counter()
    test = DriftTest(random_state=0).fit(X)
    prepared = time.perf_counter() - begun
    once = medians(3, test=lambda: test.test(Y))["test"]
    tracemalloc.start()  # what was compiled takes more room than the work, so that the process tells nothing
    DriftTest(random_state=0).fit(X).test(Y)
    return {"prepare": prepared, "test": once, "idle": 0.0, "peak": tracemalloc.get_traced_memory()[1] / 2**20}


def largest() -> list[tuple[int, dict[str, float] | str]]:
    """What MMDDrift takes at each size, up to the first that it cannot hold; the largest with more permutations."""
    found: list[tuple[int, dict[str, float] | str]] = []
    for n in TRIED:
        try:
            first = drift_peers.call("mmd_drift", n=n, columns=COLUMNS, permutations=1, repeats=1, memory=MEMORY)
        except drift_peers.Failed as error:
            found.append((n, str(error).splitlines()[-1][:100]))
            break
        found.append((n, first))
    held = [n for n, result in found if not isinstance(result, str)][-1]
    whole = drift_peers.call("mmd_drift", n=held, columns=COLUMNS, permutations=PERMUTATIONS, repeats=1, memory=MEMORY)
    return [(n, whole if n == held else result) for n, result in found]


def against_peer(own: bool = True) -> str:
    rows = []
    for n, peer in largest():
        if isinstance(peer, str):
            rows.append([f"{n:,}", f"cannot: {peer}", *[""] * (8 if own else 3)])
            continue
        used = peer["peak"] - peer["idle"]
        cells = [f"{n:,}", peer["permutations"], f"{peer['prepare']:.2f} s", f"{peer['test']:.2f} s", f"{used:,.0f} MB"]
        if own:
            process = subprocess.run([sys.executable, __file__, "--own", str(n)], capture_output=True, text=True, check=True)
            mine = json.loads(process.stdout.splitlines()[-1])
            held = max(mine["peak"] - mine["idle"], 0.1)
            faster, less = peer["test"] / mine["test"], used / held
            asked = peer["permutations"] == PERMUTATIONS
            cells += [f"{1e3 * mine['test']:.1f} ms", f"{held:,.1f} MB", f"{faster:,.0f}×", f"{less:,.0f}×",
                      verdict(min(faster, less), 100) if asked else ""]  # fmt: skip
        rows.append(cells)
    head = ["rows a side", "permutations", "MMDDrift: prepare", "a test", "memory"]
    head += ["ours: a test", "memory", "faster", "less memory", "100× both"] if own else []
    text = (
        f"**alibi-detect's MMDDrift** (torch, no KeOps) with {COLUMNS} columns, as many rows a side, {MEMORY} GB at most: the "
        f"last size that it holds has {PERMUTATIONS} permutations (its default is 100), others one.\n\n"
    )
    return text + table(head, rows)


def run() -> str:
    return f"{ours()}\n\n{against_peer()}"


if __name__ == "__main__":
    if "--own" in sys.argv:
        print(json.dumps(own_cost(int(sys.argv[-1]))))
    else:
        print(against_peer(own=False) if "--peer" in sys.argv else run())
