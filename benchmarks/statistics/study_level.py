"""The level of study tests: how often anything is found with shuffled labels, 200 times for each of eight designs.

Populations are found without labels, once for each cohort. Cohorts are of real cells (`cohort_real_data`, the planted population
does not change) or simulated (`cohort_study_data`, 37 samples, 2.2 million cells). Without a difference, the false discovery rate
is the probability of any finding. Repetitions are kept in `results/study_level.csv`. Goal: no proportion is above its rate by its
95 % limits. `python -m benchmarks.statistics.study_level DESIGN …` measures some designs.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, table, verdict
from benchmarks._lib.cohort_real_data import paired_cohort, real_cohort
from benchmarks._lib.cohort_study_data import make
from benchmarks.statistics._repetitions import Kept, Row, column, interval, with_limits
from reduset.cohort import CohortMap
from reduset.cytometry import Design, Populations, compare, compare_whole, design_of, find_populations, read_cohort
from reduset.cytometry.clusters import compare_clusters

TITLE = "A study's level: labels shuffled"
SOURCES = ("cytometry", "cohort/distances.py")

REPETITIONS = 200
QUICK_DESIGNS, QUICK_REPETITIONS, QUICK_SIZE = ("4 against 4",), 3, {"cells": 500}
RATES = (0.05, 0.10)
COLUMNS = ("design", "cohort", "shuffle", "k", "q5", "q10", "clusters", "whole")
KEPT = Path(__file__).with_name("results") / "study_level.csv"
Rng = np.random.Generator


@dataclass(frozen=True)
class Cohort:
    """Samples with their populations and distances, without labels."""

    found: Populations
    distances: np.ndarray
    errors: np.ndarray
    blocks: np.ndarray
    runs: np.ndarray
    compared: np.ndarray = field(repr=False)  # samples that are not controls


@dataclass(frozen=True)
class Shuffled:
    """A design of shuffled labels, and the populations that it is tested on."""

    design: Design
    found: Populations


def of_bags(
    bags: Any, markers: Any, seed: int, blocks: np.ndarray, runs: np.ndarray, compared: np.ndarray, defining: Any = None
) -> Cohort:
    found = find_populations(bags, markers, defining=defining, rng=seed)
    kept = [bag if defining is None else bag[:, defining] for bag in bags]
    located = CohortMap(n_components=2, random_state=seed).fit({f"s{k}": bag for k, bag in enumerate(kept)})
    return Cohort(found, located.distances_, located.errors_, blocks, runs, compared)


def real(groups: tuple[int, int]) -> Callable[..., Cohort]:
    def drawn(seed: int, **size: int) -> Cohort:
        cohort = real_cohort(data_folder(), np.random.default_rng([seed, sum(groups)]), groups, factor=1.0, **size)
        none = np.zeros(len(cohort.bags), int)
        return of_bags(cohort.bags, cohort.markers, seed, none, none, none == 0)

    return drawn


def pairs(seed: int, **size: int) -> Cohort:
    cohort = paired_cohort(data_folder(), np.random.default_rng([seed, 2]), factor=1.0, **size)
    none = np.zeros(len(cohort.bags), int)
    return of_bags(cohort.bags, cohort.markers, seed, cohort.patients, none, none == 0)


def made(paired: bool) -> Callable[..., Cohort]:
    def drawn(seed: int, **size: int) -> Cohort:
        with tempfile.TemporaryDirectory() as name:
            folder = make(name, seed=seed, paired=paired, changed=False, **size).folder
            known = read_cohort(folder, panel=folder / "panel.csv", samples=folder / "samples.csv")
        defining = [j for j, marker in enumerate(known.markers) if marker not in known.state]
        blocks, runs = (np.array(known.column(name)) for name in ("patient_id", "run"))
        compared = np.array([each != "yes" for each in known.column("control")])
        return of_bags(known.cells, known.markers, seed, blocks, runs, compared, defining)

    return drawn


def halves(cohort: Cohort, rng: Rng) -> np.ndarray:
    """A and B, equal numbers of each, at random."""
    labels = np.full(len(cohort.compared), None, object)
    rows = np.flatnonzero(cohort.compared)
    labels[rows] = rng.permutation(np.where(np.arange(len(rows)) % 2, "B", "A"))
    return labels


def freely(cohort: Cohort, rng: Rng) -> Shuffled:
    return Shuffled(design_of(halves(cohort, rng)), cohort.found)


def within_runs(cohort: Cohort, rng: Rng) -> Shuffled:
    """Labels at random, adjusted for the run."""
    return Shuffled(design_of(halves(cohort, rng), batch=cohort.runs), cohort.found)


def three_groups(cohort: Cohort, rng: Rng) -> Shuffled:
    return Shuffled(design_of(rng.permutation(np.array(list("ABC"))[np.arange(len(cohort.compared)) % 3])), cohort.found)


def flipped(cohort: Cohort, rng: Rng) -> Shuffled:
    """A and B in every pair, in random order."""
    labels = np.full(len(cohort.compared), None, object)
    rows = np.flatnonzero(cohort.compared)
    for name in np.unique(cohort.blocks[rows]):
        labels[rows[cohort.blocks[rows] == name]] = rng.permutation(["A", "B"])
    runs = cohort.runs if len(np.unique(cohort.runs)) > 1 else None
    return Shuffled(design_of(labels, block=cohort.blocks, batch=runs), cohort.found)


def with_covariate(cohort: Cohort, rng: Rng, held: bool = True) -> Shuffled:
    """A covariate that is larger in B, and on which half of the populations below 5 % depend, each exp(0.5)-fold a unit."""
    labels = halves(cohort, rng)
    covariate = (labels == "B") + rng.normal(0, 0.8, len(labels))
    small = np.flatnonzero(cohort.found.mean_shares < 0.05)
    moved = np.isin(cohort.found.of_atom, rng.permutation(small)[: (len(small) + 1) // 2])
    counts = cohort.found.atom_counts.copy()
    counts[:, moved] = rng.binomial(counts[:, moved], np.exp(0.5 * (covariate - covariate.max()))[:, None])
    found = dataclasses.replace(cohort.found, atom_counts=counts)
    return Shuffled(design_of(labels, covariates={"age": covariate} if held else {}), found)


def covariate_ignored(cohort: Cohort, rng: Rng) -> Shuffled:
    return with_covariate(cohort, rng, held=False)


# name: how cohorts are drawn, their number, how labels are shuffled, and whether the level should hold
DESIGNS: dict[str, tuple[Callable[..., Cohort], int, Callable[[Cohort, Rng], Shuffled], bool]] = {
    "8 against 8": (real((8, 8)), 10, freely, True),
    "8 pairs": (pairs, 10, flipped, True),
    "4 against 4": (real((4, 4)), 20, freely, True),
    "5, 5 and 5": (real((8, 7)), 10, three_groups, True),
    "8 against 8, a covariate held fixed": (real((8, 8)), 10, with_covariate, True),
    "8 against 8, the covariate ignored": (real((8, 8)), 10, covariate_ignored, False),
    "17 pairs and 3 controls, 3 runs, made": (made(True), 1, flipped, True),
    "17 against 17, 3 runs held fixed, made": (made(False), 1, within_runs, True),
}


def shuffle_once(cohort: Cohort, shuffled: Shuffled, rng: Rng) -> Row:
    found, design = shuffled.found, shuffled.design
    q = [compare(found.counts, found.sizes, design, fdr=rate, rng=rng).q_values.min() for rate in RATES]
    return {
        "k": len(found),
        "q5": q[0],
        "q10": q[1],
        "clusters": compare_clusters(found, design, RATES[1], 0.95, "auto", rng).p_values.min(),
        "whole": compare_whole(cohort.distances, cohort.errors, design, rng).p_value,
    }


def measure_design(kept: Kept, name: str, repetitions: int, cohorts: int, size: dict[str, int]) -> None:
    """Measure what is not kept."""
    draw, _, shuffle, _ = DESIGNS[name]
    for seed in range(cohorts):
        missing = [k for k in range(repetitions // cohorts) if not kept.has(name, seed, k)]
        cohort = draw(seed, **size) if missing else None
        for k in missing:
            rng = np.random.default_rng([seed, k, list(DESIGNS).index(name)])
            kept.add({"design": name, "cohort": seed, "shuffle": k, **shuffle_once(cohort, shuffle(cohort, rng), rng)})


TESTS = {"populations at 5 %": ("q5", 0.05), "at 10 %": ("q10", 0.10), "clusters at 5 %": ("clusters", 0.05),
         "clusters at 10 %": ("clusters", 0.10), "whole at 5 %": ("whole", 0.05)}  # fmt: skip


def line(name: str, rows: list[Row]) -> tuple[list[Any], list[str]]:
    """A line of the table, bold where the lower limit is above the rate, and these tests."""
    cells, above = [], []
    for title, (key, rate) in TESTS.items():
        hits = column(rows, key) <= rate
        exceeds = DESIGNS[name][3] and interval(int(hits.sum()), len(hits))[0] > rate
        cells.append(f"**{with_limits(hits, 1)}**" if exceeds else with_limits(hits, 1))
        above += [f"{name}, {title}"] if exceeds else []
    return [name, len(rows), f"{np.median(column(rows, 'k')):.0f}", *cells], above


NOTE = """Proportions of {repetitions} repetitions with any finding, with meaningless labels, and 95 % limits (Clopper and
Pearson). A proportion is in bold if its lower limit is above the rate. Populations at false discovery
rates, and clusters at family-wise errors, of 5 and 10 %; the test of the whole at p ≤ 0.05. Cohorts
are of real cells, 4,500 to 5,000 per sample, or
simulated. Labels are exchanged freely, or within pairs. The covariate is larger by 1 in B with a standard deviation of 0.8,
and half of the small populations depend on it. If it is ignored, the groups differ by it, and findings are correct."""


def report(kept: Kept, designs: Sequence[str], repetitions: int) -> dict[str, Any]:
    lines, above = [], []
    for name in designs:
        cells, exceeding = line(name, kept.where(design=name))
        lines.append(cells)
        above += exceeding
    tests = len(TESTS) * sum(DESIGNS[name][3] for name in designs)
    text = (
        f"Levels hold: {'yes' if not above else 'NO: ' + '; '.join(above)}. Of {tests} proportions, {0.025 * tests:.1f} are "
        "expected above their limits by sampling variation."
    )
    head = ["design", "repetitions", "populations", "populations, 5 %", "10 %", "atoms, 5 %", "10 %", "whole, p ≤ 5 %"]
    details = "\n\n".join([" ".join(NOTE.format(repetitions=repetitions).splitlines()), table(head, lines), text])
    summary = [["proportions above their rate", f"{len(above)} of {tests}", "0", verdict(0, len(above))]]
    for title, (key, rate) in TESTS.items():
        if rate == RATES[0]:
            found = [(column(kept.where(design=name), key) <= rate).mean() for name in designs if DESIGNS[name][3]]
            summary.append([f"false findings by design, {title}", f"{min(found):.1%} to {max(found):.1%}", "", ""])
    return {"summary": summary, "details": details}


def measure(quick: bool) -> dict[str, Any]:
    designs, repetitions, size = (QUICK_DESIGNS, QUICK_REPETITIONS, QUICK_SIZE) if quick else (tuple(DESIGNS), REPETITIONS, {})
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder) / KEPT.name if quick else KEPT, COLUMNS, 3, SOURCES)
        for name in designs:
            measure_design(kept, name, repetitions, 1 if quick else DESIGNS[name][1], size)
        return report(kept, designs, repetitions)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or DESIGNS:
        measure_design(Kept(KEPT, COLUMNS, 3, SOURCES), wanted, REPETITIONS, DESIGNS[wanted][1], {})
