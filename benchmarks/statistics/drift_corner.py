"""Drift of 1 % of the rows into a corner: is it found, where, and in which columns?

The reference is normal. In the new rows, 1 % are uniform in a box from 2 to 3 standard deviations in each of 6 columns, which has a
probability of 0.02⁶ under the reference. The table has no other columns, or four more that do not change. Goal: in at least 95 % of
the repetitions the test, the location and all columns are right.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.statistics import drift_level

TITLE = "Drift: a corner"
SOURCES = (*drift_level.SOURCES, "drift/regions.py")

REFERENCE, NEW, SHARE = 100_000, 20_000, 0.01
QUICK_REFERENCE, QUICK_NEW, QUICK_REPETITIONS = 10_000, 5_000, 3
GOAL = 0.95
CORNER, OTHERS = 6, (0, 4)
LOW, HIGH = 2.0, 3.0
REPETITIONS, REUSED = 100, 10  # the latter share a reference


def new_rows(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    X = rng.normal(size=(rows, columns))
    moved = rng.random(rows) < SHARE
    X[moved, :CORNER] = rng.uniform(LOW, HIGH, (moved.sum(), CORNER))
    return X


def located(found: Any) -> bool:
    """Whether a region with more rows than before has its centre within the corner."""
    centres = [np.asarray(region.centre, dtype=np.float64)[:CORNER] for region in found.where() if region.change > 0]
    return any(bool(np.all((centre >= LOW) & (centre <= HIGH))) for centre in centres)


def named(found: Any) -> set[int]:
    """The columns that changed by Holm's procedure at 5 %."""
    return {column.position for column in found.columns() if column.p_value <= 0.05}


def rates(others: int, reference: int, rows: int, repetitions: int) -> tuple[list[float], float]:
    """The proportions of repetitions (found, located, named, all three, no other), and the median seconds."""
    from reduset.drift import DriftTest

    rng = np.random.default_rng(others)
    corner = set(range(CORNER))
    sure, where, all_named, only, seconds = [], [], [], [], []
    test = None
    for r in range(repetitions):
        if r % REUSED == 0:
            test = DriftTest(random_state=r).fit(rng.normal(size=(reference, CORNER + others)))
        X = new_rows(rng, rows, CORNER + others)
        begun = time.perf_counter()
        found = test.test(X)
        sure.append(found.p_value < 0.01)
        where.append(located(found))
        columns = named(found)
        seconds.append(time.perf_counter() - begun)
        all_named.append(corner <= columns)
        only.append(not columns - corner)
    every = [a and b and c for a, b, c in zip(sure, where, all_named, strict=True)]
    return [float(np.mean(each)) for each in (sure, where, all_named, every, only)], float(np.median(seconds))


def measure(quick: bool) -> dict[str, Any]:
    sizes = (QUICK_REFERENCE, QUICK_NEW, QUICK_REPETITIONS) if quick else (REFERENCE, NEW, REPETITIONS)
    reference, rows, repetitions = sizes
    found = {CORNER + others: rates(others, *sizes) for others in OTHERS}
    text = (
        f"{SHARE:.0%} of {rows:,} new rows moved into a corner of {CORNER} columns ({LOW:g} to {HIGH:g} deviations in each), "
        f"{reference:,} rows of reference, {repetitions} repetitions ({REUSED} to a reference). *Found*: p < 0.01. *Located*: the "
        "centre of a region with more rows lies within the corner. *Named*: all its columns, by Holm's procedure at 5 %. *No "
        "other*: "
        "no column that did not change.\n\n"
    )
    head = ["columns", "found", "located", "named", "all three", "no other", "test, where, columns", "95 %"]
    lines = [
        [columns, *(f"{each:.0%}" for each in proportions), f"{seconds:.2f} s", verdict(proportions[3], GOAL)]
        for columns, (proportions, seconds) in found.items()
    ]
    summary = [
        [f"{columns} columns: found, located, named, all three", ", ".join(f"{each:.0%}" for each in proportions[:4]),
         f"≥ {GOAL:.0%}", verdict(proportions[3], GOAL)]
        for columns, (proportions, _) in found.items()
    ]  # fmt: skip
    return {"summary": summary, "details": text + table(head, lines)}
