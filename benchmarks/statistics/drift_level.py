"""How often drift is found where there is none: shares of p ≤ 0.05 and p ≤ 0.01 for eight laws, by rows tested and rows kept.

`python benchmarks/drift_level.py --repetitions 200 --laws "normal, d=5"` is a shorter look. All of it takes hours: what was
measured is kept in `drift_level.json`, from which it goes on; remove that to measure anew.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import binom

from benchmarks._lib import table

TITLE = "Drift: level"

KEPT = Path(__file__).with_name("drift_level.json")
DRAWS = 199  # of chance, in place of 999: the level does not depend on them, the time does
REPETITIONS = 2000
SIZES = (20, 100, 500, 2000, 10_000)
REFERENCES = {20_000: 20}  # rows, and new samples of each size that one reference is tested with
LEVELS = (0.05, 0.01)
OUTSIDE = 0.001  # chance that a share falls outside its bounds where the level holds

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
    """Four narrow groups in 2 columns, of shares from 1 to 50 %."""
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


def p_values(law: str, rows: int, repetitions: int) -> np.ndarray:
    """Of every repetition and each size; a reference is tested with all sizes, and with as many of each as it may be."""
    from reduset.drift import DriftTest

    found: list[list[float]] = []
    while len(found) < repetitions:
        seed = len(found)
        rng = np.random.default_rng([list(LAWS).index(law), rows, seed])
        test = DriftTest(random_state=seed, n_resamples=DRAWS).fit(LAWS[law](rng, rows))
        for _ in range(REFERENCES[rows]):
            found.append([test.test(LAWS[law](rng, n)).p_value for n in SIZES])
    return np.array(found[:repetitions])


def bounds(level: float, repetitions: int) -> tuple[int, int]:
    """The fewest and the most of so many that a test which holds its level finds, but for a chance of `OUTSIDE`."""
    return int(binom.ppf(OUTSIDE / 2, repetitions, level)), int(binom.ppf(1 - OUTSIDE / 2, repetitions, level))


def summary(found: dict[str, dict[str, list[int]]], repetitions: int) -> str:
    """Tables by level; ``found`` has the counts of each law and reference, at each level a list over sizes."""
    parts, often, seldom, cells = [], 0, 0, 0
    for level in LEVELS:
        low, high = bounds(level, repetitions)
        rows = []
        for law in LAWS:
            for kept in REFERENCES:
                counts = found.get(f"{law} | {kept}", {}).get(str(level))
                if counts is None:
                    continue
                marks = ["**" if count > high else "*" if count < low else "" for count in counts]
                often, seldom, cells = often + marks.count("**"), seldom + marks.count("*"), cells + len(counts)
                shares = [f"{mark}{count / repetitions:.2%}{mark}" for count, mark in zip(counts, marks, strict=True)]
                rows.append([law, f"{kept:,}", *shares])
        head = ["law", "reference", *(f"n' = {n:,}" for n in SIZES)]
        parts.append(
            f"Level {level:.0%}; {low / repetitions:.2%} to {high / repetitions:.2%} is within chance\n\n" + table(head, rows)
        )
    text = (
        f"Shares of p-values of at most the level where reference and new rows are of one law; {repetitions:,} repetitions, bounds "
        f"that hold a share with a probability of {1 - OUTSIDE:.1%} in each cell. Of {cells} cells, {often} lie above (**bold**: "
        f"drift found too often) and {seldom} below (*italic*: too seldom, so power is lost); chance alone gives "
        f"{OUTSIDE * cells:.1f}. A reference of {max(REFERENCES):,} rows is tested with {REFERENCES[max(REFERENCES)]} new samples "
        "of each size, which are not quite independent of each other, so that shares scatter a little more than bounds say. The "
        f"sizes of a row share references; {DRAWS} draws of chance. References whose rows are all kept go by "
        "permutations, which are exact, and are looked at in the tests of the library.\n\n"
    )
    return text + "\n\n".join(parts)


def measure(laws: list[str], repetitions: int, resume: bool) -> str:
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if resume and KEPT.exists() else {}
    found = kept.get("found", {}) if kept.get("repetitions") == repetitions else {}
    for law in laws:
        for rows in REFERENCES:
            key = f"{law} | {rows}"
            if key in found:
                continue
            begun = time.perf_counter()
            p = p_values(law, rows, repetitions)
            found[key] = {str(level): (p <= level).sum(axis=0).tolist() for level in LEVELS}
            KEPT.parent.mkdir(exist_ok=True)
            KEPT.write_text(json.dumps({"repetitions": repetitions, "found": found}), encoding="utf-8")
            print(f"{key}: {found[key]} of {repetitions} ({time.perf_counter() - begun:.0f} s)", flush=True)
    return summary(found, repetitions)


def run() -> str:
    return measure(list(LAWS), REPETITIONS, resume=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    print(measure(given.laws, given.repetitions, given.resume))
