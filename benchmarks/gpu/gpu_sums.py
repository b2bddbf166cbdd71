"""How fast and how exact are the values of a kernel mean at queries on a GPU?

Against torch (cdist), KeOps if it is installed, and the processor of the same machine. Goals: 10¹² row–query pairs a second in 16
columns and single precision, and logarithms at 10⁸ queries in 0.2 s.

Needs a CUDA device and cupy; without torch that comparison is omitted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.gpu.gpu_cover import card, free_memory, median_of
from reduset import Gaussian, KernelMean

TITLE = "Kernel sums on a GPU"
SOURCES = ("_engine/cuda/sums.py", "_engine/cuda/kernels.py", "mean.py")

ATOMS = 1000
FULL = [(2, 10**8), (16, 10**7), (16, 10**8), (64, 10**7), (768, 10**6)]  # columns, queries
QUICK = [(2, 10**5), (16, 10**6), (768, 10**4)]
LEAST_PAIRS, MOST_LOGS = 1e12, 0.2  # pairs a second in 16 columns; seconds of logarithms at 10⁸ queries
TORCH_BLOCK = 10**6  # queries at a time
HOST_QUERIES = (10**6, 10**7)  # in 16 and 64 columns, on the processor too
CHECKED = 10**5
VALUES, LOGARITHMS = "values", "logarithms"


def by_torch(queries: Any, atoms: np.ndarray, width: float) -> Any:
    """The usual way: distances by torch.cdist, a block at a time."""
    import torch

    Q, A = torch.from_dlpack(queries), torch.from_numpy(atoms.astype(np.float32)).cuda()
    out = torch.empty(len(Q), device="cuda")
    for a in range(0, len(Q), TORCH_BLOCK):
        distances = torch.cdist(Q[a : a + TORCH_BLOCK], A)
        out[a : a + TORCH_BLOCK] = torch.exp(-0.5 * (distances / width) ** 2).mean(dim=1)
    torch.cuda.synchronize()
    return out


def by_keops(queries: Any, atoms: np.ndarray, width: float) -> float | None:
    """Seconds of the same by KeOps, if it is installed and compiles."""
    try:
        import torch
        from pykeops.torch import LazyTensor
    except Exception:  # it is not installed, or finds no compiler
        return None
    Q, A = torch.from_dlpack(queries), torch.from_numpy(atoms.astype(np.float32)).cuda()

    def sums() -> Any:
        squares = ((LazyTensor(Q[:, None, :]) - LazyTensor(A[None, :, :])) ** 2).sum(-1)
        found = (-squares / (2 * width**2)).exp().sum(1) / len(A)
        torch.cuda.synchronize()
        return found

    sums()
    return median_of(2, sums)[0]


def of_case(d: int, n: int) -> Iterator[dict[str, Any]]:
    """Seconds and errors of values and logarithms, in both precisions; of the peers for values in single precision."""
    free_memory()
    import cupy

    atoms, width = np.random.default_rng(0).normal(size=(ATOMS, d)), float(np.sqrt(d))
    mean = KernelMean(atoms, np.full(ATOMS, 1 / ATOMS), Gaussian(width))
    queries = cupy.random.default_rng(1).standard_normal((n, d), dtype=cupy.float32)
    some = queries[:CHECKED].get()
    for name, call in ((VALUES, mean), (LOGARITHMS, mean.log_density)):
        exact = call(some, "double")
        for precision in ("auto", "double"):
            call(queries, precision)
            seconds, values = median_of(3, partial(call, queries, precision))
            error = float(np.abs(values[:CHECKED].get() / exact - 1).max())
            found: dict[str, Any] = {"columns": d, "queries": n, "what": name, "precision": precision, "seconds": seconds}
            found |= {"error": error, "pairs": n * ATOMS / seconds}
            if (name, precision) == (VALUES, "auto"):
                if find_spec("torch"):
                    by_torch(queries[:TORCH_BLOCK], atoms, width)
                    found["torch"] = median_of(1, partial(by_torch, queries, atoms, width))[0]
                    found["KeOps"] = by_keops(queries, atoms, width)
                if n in HOST_QUERIES and d in (16, 64):
                    host = queries.get()
                    mean(host[:1000])
                    begun = time.perf_counter()
                    mean(host)
                    found["processor"] = time.perf_counter() - begun
            yield found


NOTE = """A Gaussian mean of {atoms:,} atoms at queries on the device, with the check for finite numbers and the result; medians of
3. *Error*: the largest relative error of {checked:,} values, against double precision on the processor. *torch*: cdist, a million
queries at a time. *Processor*: the same call on all cores of the machine. Beyond 64 columns sums are matrix products on the tensor
cores, of half precision for single precision."""
PEERS = ("torch", "KeOps", "processor")


def measure(quick: bool) -> dict[str, Any]:
    found = [each for case in (QUICK if quick else FULL) for each in of_case(*case)]
    lines = [
        [
            f"{each['queries']:,} × {each['columns']}", each["what"] + (" in double" if each["precision"] == "double" else ""),
            f"{each['seconds']:.3f} s", f"{each['pairs']:.2g}", f"{each['error']:.1g}",
            *(f"{each[peer]:.3f} s, {each[peer] / each['seconds']:.1f}" if each.get(peer) else "" for peer in PEERS),
        ]
        for each in found
    ]  # fmt: skip
    single = [each for each in found if each["precision"] == "auto"]
    values = [each for each in single if each["what"] == VALUES]
    best = max(each["pairs"] for each in values if each["columns"] == 16)
    most = max(each["queries"] for each in single if each["columns"] == 16)
    slowest = next(each["seconds"] for each in single if (each["what"], each["columns"], each["queries"]) == (LOGARITHMS, 16, most))
    summary = [
        ["Pairs a second, 16 columns", f"{best:.2g}", f"≥ {LEAST_PAIRS:.0e}", verdict(best, LEAST_PAIRS)],
        [f"Logarithms at {most:,} queries, 16 columns", f"{slowest:.2f} s", f"≤ {MOST_LOGS} s", verdict(-slowest, -MOST_LOGS)],
        ["Largest relative error, single precision", f"{max(each['error'] for each in single):.0e}", "", ""],
    ]
    for peer in PEERS:
        ratios = [each[peer] / each["seconds"] for each in values if each.get(peer)]
        if ratios:
            summary.append([f"Time over ours: {peer}", f"{min(ratios):.1f} to {max(ratios):.1f}×", "", ""])
    note = " ".join(NOTE.format(atoms=ATOMS, checked=CHECKED).splitlines())
    head = ["queries", "what", "seconds", "pairs a second", "error", *(f"{peer}, over ours" for peer in PEERS)]
    return {"summary": summary, "details": f"{note} {card()}.\n\n{table(head, lines)}"}
