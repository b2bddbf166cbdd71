"""Pairs against groups: patients with two samples each, whose own shares differ by far more than the change that is looked for.

Cohorts of real cells (`cohort_real_data.paired_cohort`): a patient's share of planted cells is 0.5 %·exp(N(0, 0.8²)), doubled in
the second sample. The same populations are tested within pairs and without a look at them. What was measured is kept in
`study_paired.csv`, from which it goes on; remove that to measure anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.cohort_real_data import PlantedCohort, paired_cohort
from benchmarks._lib import data_folder, table
from reduset.differences import compare, design_of
from reduset.populations import Populations, find_populations
from benchmarks.statistics.study_repetitions import Kept, Row, column, interval, told

TITLE = "A study of pairs: power and level with strong effects of patients"

REPETITIONS, COHORTS, FLIPS = 50, 10, 20
FACTORS = (2.0, 1.5)
RATES = (0.05, 0.10)
TESTS = ("pairs", "groups")
WORDS = {"pairs": "within", "groups": "without"}
COLUMNS = ("factor", "cohort", "flip", "test", "k", "found", "false", "q5", "q10", "effect", "low", "high", "truth")
KEPT = Path(__file__).with_name("study_paired.csv")


def cohort_of(factor: float, seed: int) -> PlantedCohort:
    return paired_cohort(data_folder(), np.random.default_rng([seed, round(100 * factor)]), factor=factor)


def planted_in(found: Populations, cohort: PlantedCohort) -> np.ndarray:
    """(N, k) planted cells of each sample in each population."""
    k, chosen = len(found), np.concatenate(cohort.planted)
    sample = np.repeat(np.arange(len(cohort.bags)), [len(bag) for bag in cohort.bags])
    return np.bincount(sample[chosen] * k + found.owners()[chosen], minlength=len(cohort.bags) * k).reshape(-1, k)


def tested(found: Populations, planted: np.ndarray, labels: np.ndarray, blocks: np.ndarray | None, seed: int) -> Row:
    """What one of the two tests says of one labelling."""
    design, counts, sizes = design_of(labels, block=blocks), found.counts, found.sizes
    at = [compare(counts, sizes, design, fdr=rate, rng=seed) for rate in RATES]
    purity = planted.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    right = at[0].found & (purity >= 0.5) & (at[0].effects[0] > 0)
    place = int(planted.sum(axis=0).argmax())
    true_counts = np.column_stack([planted.sum(axis=1), np.delete(counts - planted, place, axis=1)])
    return {
        "k": len(found),
        "found": right.any(),
        "false": int((at[0].found & (purity < 0.1)).sum()),
        "q5": at[0].q_values.min(),
        "q10": at[1].q_values.min(),
        "effect": at[0].effects[0, place],
        "low": at[0].intervals[0, place, 0],
        "high": at[0].intervals[0, place, 1],
        "truth": compare(true_counts, sizes, design, rng=seed).q_values[0],
    }


def measure_cohort(kept: Kept, factor: float, seed: int, flips: int) -> None:
    """Both tests of one cohort: as it is labelled, or with labels exchanged within pairs so many times."""
    wanted = [(flip, test) for flip in range(flips) for test in TESTS if not kept.has(factor, seed, flip, test)]
    if not wanted:
        return
    cohort = cohort_of(factor, seed)
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
        f"{factor:g}", f"{WORDS[test]} pairs", len(rows), f"{np.median(column(rows, 'k')):.0f}", told(rows, "found"),
        told([{"x": int(row["truth"] <= RATES[0])} for row in rows], "x"), f"{(column(rows, 'false') > 0).mean():.0%}",
        f"{np.median(column(rows, 'effect')):.2f}", f"{covered:.0%}",
        f"{np.median(column(rows, 'high') - column(rows, 'low')):.2f}",
    ]  # fmt: skip


def level_line(rows: list[Row], test: str) -> list[Any]:
    said, held = [], True
    for name, rate in zip(("q5", "q10"), RATES, strict=True):
        count = int((column(rows, name) <= rate).sum())
        low, high = interval(count, len(rows))
        said.append(f"{count / len(rows):.1%} ({100 * low:.1f} to {100 * high:.1f})")
        held &= low <= rate
    return [f"{WORDS[test]} pairs", len(rows), *said, "yes" if held else "NO"]


NOTE = """Eight patients, two samples of 4,500 cells each. *Found*: at a false discovery rate of 5 %, a population at least half of
whose cells were planted, with 95 % limits of the share. *True numbers*: the same test, were the planted cells known.
*False*: repetitions with a finding besides. The effect is the median log2 fold change ({expected}), with the share of
intervals that cover it and their median length; a population has cells of the patients' own beside the planted ones, which
draw it towards 0."""


def run() -> str:
    kept = Kept(KEPT, COLUMNS, 4)
    for factor in FACTORS:
        for seed in range(REPETITIONS):
            measure_cohort(kept, factor, seed, 1)
    for seed in range(COHORTS):
        measure_cohort(kept, 1.0, seed, FLIPS)
    lines = [power_line(kept.where(factor=factor, test=test), factor, test) for factor in FACTORS for test in TESTS]
    levels = [level_line(kept.where(factor=1.0, test=test), test) for test in TESTS]
    first = {test: np.mean(column(kept.where(factor=FACTORS[0], test=test), "found")) for test in TESTS}
    head = ["change", "tested", "repetitions", "populations", "found", "true numbers", "false", "effect", "covered", "length"]
    expected = ", ".join(f"{np.log2(factor):.2f} for {factor:g}-fold" for factor in FACTORS)
    return "\n\n".join([
        " ".join(NOTE.format(expected=expected).splitlines()),
        table(head, lines),
        f"More is found within pairs than without: {'yes' if first['pairs'] > first['groups'] else 'NO'}.",
        f"**Level**: anything found where nothing changes, labels exchanged within pairs {FLIPS} times in {COHORTS} cohorts.",
        table(["tested", "repetitions", "5 %", "10 %", "held"], levels),
    ])  # fmt: skip


if __name__ == "__main__":
    run()
