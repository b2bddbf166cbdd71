"""Values of a kernel mean at queries on a GPU, beside torch and beside the processor of the same machine.

`python benchmarks/run.py gpu_sums` on a machine with a CUDA device and cupy; torch is taken where it is there.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from gpu_cover import best_of, card
from harness import table
from reduset import Gaussian, KernelMean

TITLE = "Kernel sums on a GPU"

ATOMS = 1000
CASES = [(2, 10**8), (16, 10**7), (16, 10**8), (64, 10**7), (768, 10**6)]  # columns, queries
WISHED = 1e12  # pairs a second, of 16 columns in single precision
TORCH_BLOCK = 10**6  # queries at a time
HOST = 10**7  # queries on the processor
CHECKED = 10**5


def by_torch(queries: Any, atoms: np.ndarray, width: float) -> Any:
    """What people write: distances by torch.cdist, a block at a time."""
    import torch

    Q, A = torch.from_dlpack(queries), torch.from_numpy(atoms.astype(np.float32)).cuda()
    out = torch.empty(len(Q), device="cuda")
    for a in range(0, len(Q), TORCH_BLOCK):
        gaps = torch.cdist(Q[a : a + TORCH_BLOCK], A)
        out[a : a + TORCH_BLOCK] = torch.exp(-0.5 * (gaps / width) ** 2).mean(dim=1)
    torch.cuda.synchronize()
    return out


def by_keops(queries: Any, atoms: np.ndarray, width: float, ours: float) -> str:
    """The same by KeOps, where it is installed and compiles."""
    try:
        import torch
        from pykeops.torch import LazyTensor
    except Exception:  # it is not there, or finds no compiler
        return "not installed"
    Q, A = torch.from_dlpack(queries), torch.from_numpy(atoms.astype(np.float32)).cuda()

    def sums() -> Any:
        gaps = ((LazyTensor(Q[:, None, :]) - LazyTensor(A[None, :, :])) ** 2).sum(-1)
        found = (-gaps / (2 * width**2)).exp().sum(1) / len(A)
        torch.cuda.synchronize()
        return found

    sums()
    seconds, _ = best_of(2, sums)
    return f"{seconds:.3f} s, {seconds / ours:.1f}"


def lines(d: int, n: int) -> list[list[str]]:
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    atoms = np.random.default_rng(0).normal(size=(ATOMS, d))
    mean = KernelMean(atoms, np.full(ATOMS, 1 / ATOMS), Gaussian(float(np.sqrt(d))))
    queries = cupy.random.default_rng(1).standard_normal((n, d), dtype=cupy.float32)
    some = queries[:CHECKED].get()
    exact = mean(some, "double")
    found = []
    for name, call, true in (
        ("values", partial(mean, queries), exact),
        ("values in double", partial(mean, queries, "double"), exact),
        ("logarithms", partial(mean.log_density, queries), mean.log_density(some, "double")),
        ("logarithms in double", partial(mean.log_density, queries, "double"), mean.log_density(some, "double")),
    ):
        call()
        seconds, values = best_of(3, call)
        error = np.abs(values[:CHECKED].get() / true - 1).max()
        found.append([f"{n:,} × {d}", name, f"{seconds:.3f} s", f"{n * ATOMS / seconds:.2g}", f"{error:.1g}", "", "", ""])
        if name == "values":
            by_torch(queries[:TORCH_BLOCK], atoms, float(np.sqrt(d)))
            theirs, _ = best_of(1, partial(by_torch, queries, atoms, float(np.sqrt(d))))
            found[-1][5] = f"{theirs:.2f} s, {theirs / seconds:.1f}"
            found[-1][6] = by_keops(queries, atoms, float(np.sqrt(d)), seconds)
            if n == HOST:
                host = queries.get()
                mean(host[:1000])
                begun = time.perf_counter()
                mean(host)
                slower = time.perf_counter() - begun
                found[-1][7] = f"{slower:.2f} s, {slower / seconds:.0f}"
    return found


NOTE = """A Gaussian mean of {atoms:,} atoms at queries on the device, the check for finite numbers and the result included;
medians of 3. *Error*: the largest relative one of {checked:,} values, against double precision on the processor. *torch*: cdist, a
million queries at a time, and how many times ours that takes; *processor*: the same call on all cores of the machine.
Of more than 64 columns products of matrices on the tensor cores, of halves for single precision. Wished for, of 16 columns:
{wished:.0e} pairs a second; {met}; logarithms at 10⁸ queries in 0.2 s; {logs}."""


def run() -> str:
    rows = [line for case in CASES for line in lines(*case)]
    best = max(float(row[3]) for row in rows if row[0].endswith("× 16") and row[1] == "values")
    met = f"reached: {'yes' if best >= WISHED else 'NO'}, {best:.2g}"
    slowest = next(float(row[2].split()[0]) for row in rows if row[:2] == [f"{10**8:,} × 16", "logarithms"])
    logs = f"reached: {'yes' if slowest <= 0.2 else 'NO'}, {slowest:.2f} s"
    note = " ".join(NOTE.format(atoms=ATOMS, checked=CHECKED, wished=WISHED, met=met, logs=logs).splitlines())
    head = [
        "queries",
        "what",
        "seconds",
        "pairs a second",
        "error",
        "torch, times ours",
        "KeOps, times ours",
        "processor, times ours",
    ]
    return f"{note} {card()}.\n\n{table(head, rows)}"
