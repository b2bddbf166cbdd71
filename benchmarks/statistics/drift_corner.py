"""One row in a hundred moved into a corner: is it found, where, and in which columns?

The reference is normal. In the new rows, 1 % are drawn anew within a box from 2 to 3 deviations in each of 6 columns, where next to
nothing was (a share of 0.02⁶), once with no other columns and once with four more that do not change.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict

TITLE = "Drift: a corner"

REFERENCE, NEW, SHARE = 100_000, 20_000, 0.01
CORNER, OTHERS = 6, (0, 4)
LOW, HIGH = 2.0, 3.0
REPETITIONS, REUSED = 100, 10  # and repetitions that share a reference


def new_rows(rng: np.random.Generator, columns: int) -> np.ndarray:
    X = rng.normal(size=(NEW, columns))
    moved = rng.random(NEW) < SHARE
    X[moved, :CORNER] = rng.uniform(LOW, HIGH, (moved.sum(), CORNER))
    return X


def located(found: Any) -> bool:
    """Whether some region that gained has its centre within the corner."""
    centres = [np.asarray(region.centre, dtype=np.float64)[:CORNER] for region in found.where() if region.change > 0]
    return any(bool(np.all((centre >= LOW) & (centre <= HIGH))) for centre in centres)


def named(found: Any) -> set[int]:
    """The columns that changed, by Holm's procedure at 5 %: their corrected p-values are at most that."""
    return {column.position for column in found.columns() if column.p_value <= 0.05}


def measure(others: int) -> list[Any]:
    from reduset.drift import DriftTest

    rng = np.random.default_rng(others)
    corner = set(range(CORNER))
    sure, where, all_named, only, seconds = [], [], [], [], []
    test = None
    for r in range(REPETITIONS):
        if r % REUSED == 0:
            test = DriftTest(random_state=r).fit(rng.normal(size=(REFERENCE, CORNER + others)))
        X = new_rows(rng, CORNER + others)
        begun = time.perf_counter()
        found = test.test(X)
        sure.append(found.p_value < 0.01)
        where.append(located(found))
        columns = named(found)
        seconds.append(time.perf_counter() - begun)
        all_named.append(corner <= columns)
        only.append(not columns - corner)
    every = np.mean([a and b and c for a, b, c in zip(sure, where, all_named, strict=True)])
    shares = [np.mean(sure), np.mean(where), np.mean(all_named), every]
    return [CORNER + others, *(f"{share:.0%}" for share in shares), f"{np.mean(only):.0%}", f"{np.median(seconds):.2f} s",
            verdict(float(every), 0.95)]  # fmt: skip


def run() -> str:
    text = (
        f"{SHARE:.0%} of {NEW:,} new rows moved into a corner of {CORNER} columns ({LOW:g} to {HIGH:g} deviations in each), "
        f"{REFERENCE:,} rows of reference, {REPETITIONS} repetitions ({REUSED} to a reference). *Found*: p < 0.01; *located*: the "
        "centre of a region that gained lies within the corner; *named*: all its columns, by Holm's procedure at 5 %; *no other*: "
        "none but those.\n\n"
    )
    head = ["columns", "found", "located", "named", "all three", "no other", "test, where, columns", "95 %"]
    return text + table(head, [measure(others) for others in OTHERS])


if __name__ == "__main__":
    print(run())
