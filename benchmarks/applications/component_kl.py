"""The k-NN Kullback–Leibler kernel at 4,000 training bags, on a GPU: 32 million pairs of bags a seed.

``python -m benchmarks.applications.component_kl`` needs torch, triton and numpy; it writes ``results/component_kl.csv``, which
`features_components` compares with the features. The estimate is that of `NeighbourKLKernel` (k = 4), in single precision and over
all pairs of points; it is repeated at the smaller numbers of bags that `features_components` compares on a processor, where both
must agree."""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import numpy as np
import torch
import triton
import triton.language as tl

from benchmarks.applications.component_bags import (
    KL_BAGS,
    KL_CSV,
    KL_TEST,
    POINTS,
    SEEDS,
    TEST,
    TRAINING,
    draw,
    root_mean_square,
    validated,
)  # fmt: skip

HEAD = ("points", "bags", "test_bags", "seed", "rmse", "width_factor", "alpha")
QUERIES = 256  # a program
BAGS_AT_ONCE = 512


@triton.jit
def sums_of_logs(ours, theirs, out, n, bags, SKIP: tl.constexpr, QUERIES: tl.constexpr):
    """For a bag of (n, 2) points and another: Σ log(squared distance to the 4th neighbour there, or 5th: 4th beside itself)."""
    i, j = tl.program_id(1), tl.program_id(0)
    total = 0.0
    for start in range(0, n, QUERIES):
        rows = start + tl.arange(0, QUERIES)
        inside = rows < n
        x = tl.load(ours + 2 * (i * n + rows), mask=inside, other=0.0)
        y = tl.load(ours + 2 * (i * n + rows) + 1, mask=inside, other=0.0)
        a = tl.full((QUERIES,), float("inf"), tl.float32)
        b, c, d, e = a, a, a, a
        for k in range(n):
            dx, dy = x - tl.load(theirs + 2 * (j * n + k)), y - tl.load(theirs + 2 * (j * n + k) + 1)
            r = dx * dx + dy * dy
            a, r = tl.minimum(a, r), tl.maximum(a, r)
            b, r = tl.minimum(b, r), tl.maximum(b, r)
            c, r = tl.minimum(c, r), tl.maximum(c, r)
            d, r = tl.minimum(d, r), tl.maximum(d, r)
            if SKIP:
                e = tl.minimum(e, r)
        fourth = e if SKIP else d
        total += tl.sum(tl.where(inside, tl.log(fourth), 0.0))
    tl.store(out + i * bags + j, total)


def directed(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """(M, N) estimates of ∫ p log p/q: 2/n Σ log ν/ρ + log n/(n − 1), from squares of ν and ρ."""
    n = first.shape[1]
    logs = torch.empty(len(first), len(second), device="cuda")
    for start in range(0, len(first), BAGS_AT_ONCE):
        part = first[start : start + BAGS_AT_ONCE]
        sums_of_logs[(len(second), len(part))](part, second, logs[start : start + len(part)], n, len(second), False, QUERIES)
    own = torch.empty(len(first), 1, device="cuda")
    for k, bag in enumerate(first):
        sums_of_logs[(1, 1)](bag, bag, own[k], n, 1, True, QUERIES)
    return (logs.double() - own.double()) / n + np.log(n / (n - 1))


def regression(points: int, size: int, tests: int, seed: int, drawn: int) -> tuple:
    """The row of the table for one seed; ``drawn`` bags are drawn, of which the first train and the last test."""
    bags, y = draw(drawn, points, seed)
    X = torch.tensor(np.stack(bags[:size] + bags[-tests:]), dtype=torch.float32, device="cuda")
    known, new = X[:size].contiguous(), X[size:].contiguous()
    D = directed(known, known)
    D = ((D + D.T) / 2).clamp(min=0.0).fill_diagonal_(0.0)
    to_known = ((directed(new, known) + directed(known, new).T) / 2).clamp(min=0.0)
    upper = torch.triu_indices(size, size, 1, device="cuda")
    median = float(np.median(D[upper[0], upper[1]].sqrt().cpu().numpy()))
    target = torch.tensor(y[:size], device="cuda")
    guess, factor, alpha = validated(torch, D, target, to_known, median)
    error = root_mean_square(guess.cpu().numpy() - y[-tests:])
    return points, size, tests, seed, f"{error:.6f}", f"{factor:g}", f"{alpha:g}"


def main(out: Path) -> None:
    rows = []
    for points in POINTS:
        for seed in range(SEEDS):
            begun = time.perf_counter()
            size = KL_BAGS[points]
            rows.append(regression(points, size, KL_TEST, seed, size + KL_TEST))
            rows.append(regression(points, TRAINING[0], TEST, seed, max(TRAINING) + TEST))
            print(rows[-2:], f"{time.perf_counter() - begun:.0f} s", flush=True)
            with out.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else KL_CSV)
