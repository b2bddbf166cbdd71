"""The level of the drift test: how often p ≤ 0.05 and p ≤ 0.01 without drift, for eight distributions and five sample sizes.

2,000 repetitions of each, with a reference of 20,000 rows. The counts are kept in `results/drift_level.csv`, so that a run of
several hours can be continued. Goal: no proportion outside the limits that hold it with a probability of 99.9 % at the level.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks._lib import table, verdict
from benchmarks.statistics._repetitions import Kept

TITLE = "Drift: level"
SOURCES = (
    *("drift/comparison.py", "drift/reference.py", "drift/feature_map.py", "drift/columns.py"),
    "drift/null_distribution.py",
)

KEPT = Path(__file__).with_name("results") / "drift_level.csv"
COLUMNS = ("law", "reference", "repetitions", "size", "at 0.05", "at 0.01")
DRAWS = 199  # of the null distribution, instead of 999: the level does not depend on them, the time does
REFERENCE, TESTED = 20_000, 20  # rows, and new samples of each size that are tested with one reference
REPETITIONS, QUICK_REPETITIONS = 2000, 20
SIZES, QUICK_SIZES = (20, 100, 500, 2000, 10_000), (20, 500)
LEVELS = (0.05, 0.01)
OUTSIDE = 0.001  # probability that a proportion falls outside its limits where the level holds

Law = Callable[[np.random.Generator, int], np.ndarray]


def normal(d: int) -> Law:
    return lambda rng, n: rng.normal(size=(n, d))


def heavy(rng: np.random.Generator, n: int) -> np.ndarray:
    """Student's t with 2 degrees of freedom in each of 3 columns: no variance."""
    return rng.standard_t(2, size=(n, 3))


def discrete(rng: np.random.Generator, n: int) -> np.ndarray:
    """Counts and grades in 4 columns, with many ties and rows that repeat."""
    return np.column_stack([
        rng.poisson(1.5, n), rng.integers(0, 5, n), rng.binomial(10, 0.2, n), rng.geometric(0.5, n),
    ]).astype(np.float64)  # fmt: skip


def clusters(rng: np.random.Generator, n: int) -> np.ndarray:
    """Four narrow groups in 2 columns, with proportions from 1 to 50 %."""
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [9.0, 9.0]])
    return centres[rng.choice(4, n, p=[0.5, 0.34, 0.15, 0.01])] + rng.normal(size=(n, 2)) * 0.5


def units(rng: np.random.Generator, n: int) -> np.ndarray:
    """Lognormal in 6 columns that depend on each other, in units from thousandths to millions."""
    common = rng.normal(size=(n, 1))
    return np.exp(0.7 * common + 0.7 * rng.normal(size=(n, 6))) * 10.0 ** np.array([-3, -1, 0, 1, 3, 6])


def mixed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Four columns of zeros and ones, and four that are continuous, whose means depend on the first."""
    binary = (rng.random((n, 4)) < [0.5, 0.2, 0.05, 0.01]).astype(np.float64)
    return np.column_stack([binary, rng.normal(size=(n, 4)) + binary[:, :1]])


LAWS: dict[str, Law] = {
    "normal, d=1": normal(1),
    "normal, d=5": normal(5),
    "normal, d=50": normal(50),
    "Student's t2, d=3": heavy,
    "counts with ties, d=4": discrete,
    "clusters, d=2": clusters,
    "lognormal, mixed units, d=6": units,
    "binary and continuous, d=8": mixed,
}
QUICK_LAWS = ("normal, d=1", "counts with ties, d=4")


def p_values(law: str, repetitions: int, sizes: Sequence[int]) -> np.ndarray:
    """Of each repetition and size. One reference is tested with all sizes, `TESTED` samples of each."""
    from reduset.drift import DriftTest

    found: list[list[float]] = []
    while len(found) < repetitions:
        seed = len(found)
        rng = np.random.default_rng([list(LAWS).index(law), REFERENCE, seed])
        test = DriftTest(random_state=seed, n_resamples=DRAWS).fit(LAWS[law](rng, REFERENCE))
        for _ in range(TESTED):
            found.append([test.test(LAWS[law](rng, n)).p_value for n in sizes])
    return np.array(found[:repetitions])


def measure_law(kept: Kept, law: str, repetitions: int, sizes: Sequence[int]) -> None:
    """Count what is not kept."""
    if all(kept.has(law, REFERENCE, repetitions, n) for n in sizes):
        return
    p = p_values(law, repetitions, sizes)
    for k, n in enumerate(sizes):
        counts = {f"at {level}": int((p[:, k] <= level).sum()) for level in LEVELS}
        kept.add({"law": law, "reference": REFERENCE, "repetitions": repetitions, "size": n, **counts})


def limits(level: float, repetitions: int) -> tuple[int, int]:
    """The least and the most rejections of a test that holds its level, with a probability of 1 − `OUTSIDE`."""
    return int(binom.ppf(OUTSIDE / 2, repetitions, level)), int(binom.ppf(1 - OUTSIDE / 2, repetitions, level))


def tables(kept: Kept, laws: Sequence[str], repetitions: int, sizes: Sequence[int]) -> dict[str, Any]:
    """The tables by level, and the proportions above and below their limits."""
    parts, cells, often, seldom, ranges = [], 0, 0, 0, []
    for level in LEVELS:
        low, high = limits(level, repetitions)
        rows, every = [], []
        for law in laws:
            found = [kept.where(law=law, reference=REFERENCE, repetitions=repetitions, size=n) for n in sizes]
            counts = [each[0][f"at {level}"] for each in found]
            marks = ["**" if count > high else "*" if count < low else "" for count in counts]
            often, seldom, cells = often + marks.count("**"), seldom + marks.count("*"), cells + len(counts)
            proportions = [f"{mark}{count / repetitions:.2%}{mark}" for count, mark in zip(counts, marks, strict=True)]
            rows.append([law, f"{REFERENCE:,}", *proportions])
            every += counts
        ranges.append(f"{min(every) / repetitions:.2%} to {max(every) / repetitions:.2%}")
        head = ["distribution", "reference", *(f"n' = {n:,}" for n in sizes)]
        title = f"Level {level:.0%}; {low / repetitions:.2%} to {high / repetitions:.2%} is within sampling variation"
        parts.append(f"{title}\n\n{table(head, rows)}")
    text = (
        "Proportions of p-values of at most the level, with reference and new rows of the same distribution. "
        f"{repetitions:,} repetitions; limits that hold a proportion with a probability of {1 - OUTSIDE:.1%} in each cell. Of "
        f"{cells} cells, {often} lie above (**bold**: too many rejections) and {seldom} below (*italic*: too few, a loss of "
        "power). "
        f"{OUTSIDE * cells:.1f} are expected under the null hypothesis. A reference of {REFERENCE:,} rows is tested with {TESTED} "
        "new samples of each size. These are not quite independent, so that proportions vary a little more than the limits allow. "
        f"The sizes of a row share references; {DRAWS} draws of the null distribution. Smaller references, whose rows are all "
        "kept, "
        "use permutations, which are exact; the library's tests check them.\n\n"
    )
    summary = [
        ["cells above or below their limits", f"{often + seldom} of {cells}", "0", verdict(0, often + seldom)],
        *([f"rejections at the level of {level:.0%}", each, "", ""] for level, each in zip(LEVELS, ranges, strict=True)),
    ]
    return {"summary": summary, "details": text + "\n\n".join(parts)}


def measure(quick: bool) -> dict[str, Any]:
    laws, repetitions, sizes = (QUICK_LAWS, QUICK_REPETITIONS, QUICK_SIZES) if quick else (tuple(LAWS), REPETITIONS, SIZES)
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder) / KEPT.name if quick else KEPT, COLUMNS, 4, SOURCES)
        for law in laws:
            measure_law(kept, law, repetitions, sizes)
        return tables(kept, laws, repetitions, sizes)
