"""Paired samples: power and level of tests within pairs and of tests of groups, with large differences between patients.

Cohorts of real cells (`cohort_real_data.paired_cohort`): the proportion of planted cells of a patient is 0.5 %·exp(N(0, 0.8²)),
doubled in the second sample. The same populations are tested with and without pairs. Repetitions are kept in
`results/study_paired.csv`. Goals: more power within pairs, and the level holds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, table
from benchmarks._lib.cohort_real_data import PlantedCohort, paired_cohort
from benchmarks.statistics._repetitions import Kept, Row, column, interval, proportion, with_limits
from reduset.cytometry import Populations, compare, design_of, find_populations

TITLE = "A study of pairs: power and level with strong effects of patients"
SOURCES = ("cytometry",)

FULL = {"repetitions": 50, "cohorts": 10, "flips": 20, "factors": (2.0, 1.5), "cells": 4500}
QUICK = {"repetitions": 1, "cohorts": 1, "flips": 2, "factors": (2.0,), "cells": 500}
RATES = (0.05, 0.10)
TESTS = ("pairs", "groups")
WITH = {"pairs": "within", "groups": "without"}
COLUMNS = ("factor", "cohort", "flip", "test", "k", "found", "false", "q5", "q10", "effect", "low", "high", "truth")
KEPT = Path(__file__).with_name("results") / "study_paired.csv"


def cohort_of(factor: float, seed: int, cells: int) -> PlantedCohort:
    return paired_cohort(data_folder(), np.random.default_rng([seed, round(100 * factor)]), factor=factor, cells=cells)


def planted_in(found: Populations, cohort: PlantedCohort) -> np.ndarray:
    """(N, k) planted cells of each sample in each population."""
    k, chosen = len(found), np.concatenate(cohort.planted)
    sample = np.repeat(np.arange(len(cohort.bags)), [len(bag) for bag in cohort.bags])
    return np.bincount(sample[chosen] * k + found.assignments()[chosen], minlength=len(cohort.bags) * k).reshape(-1, k)


def tested(found: Populations, planted: np.ndarray, labels: np.ndarray, blocks: np.ndarray | None, seed: int) -> Row:
    """The result of one of the two tests with one labelling."""
    design, counts, sizes = design_of(labels, block=blocks), found.counts, found.sizes
    at = [compare(counts, sizes, design, fdr=rate, rng=seed) for rate in RATES]
    purity = planted.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    right = at[0].found & (purity >= 0.5) & (at[0].effects[0] > 0)
    at_planted = int(planted.sum(axis=0).argmax())
    true_counts = np.column_stack([planted.sum(axis=1), np.delete(counts - planted, at_planted, axis=1)])
    return {
        "k": len(found),
        "found": right.any(),
        "false": int((at[0].found & (purity < 0.1)).sum()),
        "q5": at[0].q_values.min(),
        "q10": at[1].q_values.min(),
        "effect": at[0].effects[0, at_planted],
        "low": at[0].intervals[0, at_planted, 0],
        "high": at[0].intervals[0, at_planted, 1],
        "truth": compare(true_counts, sizes, design, rng=seed).q_values[0],
    }


def measure_cohort(kept: Kept, factor: float, seed: int, flips: int, cells: int) -> None:
    """Both tests of one cohort, with its labels, or without a change with labels exchanged ``flips`` times within pairs."""
    wanted = [(flip, test) for flip in range(flips) for test in TESTS if not kept.has(factor, seed, flip, test)]
    if not wanted:
        return
    cohort = cohort_of(factor, seed, cells)
    found = find_populations(cohort.bags, cohort.markers, rng=seed)
    planted = planted_in(found, cohort)
    for flip, test in wanted:
        swaps = np.repeat(np.random.default_rng([seed, flip]).random(len(cohort.labels) // 2) < 0.5, 2) & (factor == 1.0)
        labels = np.where(swaps, np.where(cohort.labels == "A", "B", "A"), cohort.labels)
        row = tested(found, planted, labels, cohort.patients if test == "pairs" else None, seed)
        kept.add({"factor": factor, "cohort": seed, "flip": flip, "test": test, **row})


def power_line(rows: list[Row], factor: float, test: str) -> list[Any]:
    covered = np.mean([row["low"] <= np.log2(factor) <= row["high"] for row in rows])
    return [
        f"{factor:g}", f"{WITH[test]} pairs", len(rows), f"{np.median(column(rows, 'k')):.0f}", proportion(rows, "found"),
        with_limits(column(rows, "truth") <= RATES[0]), f"{(column(rows, 'false') > 0).mean():.0%}",
        f"{np.median(column(rows, 'effect')):.2f}", f"{covered:.0%}",
        f"{np.median(column(rows, 'high') - column(rows, 'low')):.2f}",
    ]  # fmt: skip


def level_line(rows: list[Row], test: str) -> list[Any]:
    hits = [column(rows, name) <= rate for name, rate in zip(("q5", "q10"), RATES, strict=True)]
    held = all(interval(int(each.sum()), len(each))[0] <= rate for each, rate in zip(hits, RATES, strict=True))
    return [f"{WITH[test]} pairs", len(rows), *(with_limits(each, 1) for each in hits), "yes" if held else "NO"]


NOTE = """Eight patients, two samples of {cells:,} cells each. *Found*: at a false discovery rate of 5 %, a population of which at
least half of the cells were planted, with 95 % limits of the proportion. *True numbers*: the same test with known
planted cells. *False*: repetitions with another finding. The effect is the median log2 fold change ({expected}), with the
proportion of intervals that cover it and their median length. A population also has cells that were not planted, which
shrink its effect towards 0."""


def measure(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder) / KEPT.name if quick else KEPT, COLUMNS, 4, SOURCES)
        return repeated(kept, **(QUICK if quick else FULL))


def repeated(kept: Kept, repetitions: int, cohorts: int, flips: int, factors: tuple[float, ...], cells: int) -> dict[str, Any]:
    """Measure what is not kept, and report all."""
    for factor in factors:
        for seed in range(repetitions):
            measure_cohort(kept, factor, seed, 1, cells)
    for seed in range(cohorts):
        measure_cohort(kept, 1.0, seed, flips, cells)
    found = {(factor, test): kept.where(factor=factor, test=test) for factor in factors for test in TESTS}
    lines = [power_line(rows, factor, test) for (factor, test), rows in found.items()]
    levels = [level_line(kept.where(factor=1.0, test=test), test) for test in TESTS]
    head = ["change", "tested", "repetitions", "populations", "found", "true numbers", "false", "effect", "covered", "length"]
    expected = ", ".join(f"{np.log2(factor):.2f} for {factor:g}-fold" for factor in factors)
    power = {key: float(np.mean(column(rows, "found"))) for key, rows in found.items()}
    more = ["yes" if power[factor, "pairs"] > power[factor, "groups"] else "NO" for factor in factors]
    details = "\n\n".join([
        " ".join(NOTE.format(expected=expected, cells=cells).splitlines()),
        table(head, lines),
        f"More is found within pairs than without: {more[0]}.",
        f"**Level**: any finding without a change, with labels exchanged within pairs {flips} times in {cohorts} cohorts.",
        table(["tested", "repetitions", "5 %", "10 %", "held"], levels),
    ])  # fmt: skip
    summary = [
        [f"power, {factor:g}-fold change: within pairs, without", f"{power[factor, 'pairs']:.0%}, {power[factor, 'groups']:.0%}",
         "more within pairs", met]
        for factor, met in zip(factors, more, strict=True)
    ]  # fmt: skip
    summary.append(["false findings within pairs at 5 %, 10 %", ", ".join(levels[0][2:4]), "level holds", levels[0][4]])
    return {"summary": summary, "details": details}
