"""The power to find a planted population: 0.5 % of real cells doubled, 8 samples against 8, against FlowSOM and Milo.

Each repetition is a cohort of `cohort_real_data`. A population counts as found if at least half of its cells were planted, and
another finding as false if less than a tenth were. Repetitions are kept in `results/study_power.csv`. A run measures reduset;
`python -m benchmarks.statistics.study_power flowsom|milo [SPREAD …]` measures the peers. Goal: a power of 90 %.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from benchmarks._lib import data_folder, pins, table, verdict
from benchmarks._lib.cohort_real_data import PlantedCohort, real_cohort
from benchmarks.peers.study_rivals import answers
from benchmarks.statistics._repetitions import DIGEST, Kept, Row, column, proportion, with_limits
from reduset.cytometry import compare, design_of, find_populations

TITLE = "A study's power: a planted population of 0.5 % that doubles, 8 against 8"
SOURCES = ("cytometry",)

QUICK_REPETITIONS, QUICK_SIZE = 2, {"cells": 500}
REPETITIONS, FLOWSOM_REPETITIONS, MILO_REPETITIONS = 100, 30, 3
SPREADS = (0.0, 0.15, 0.3)
RATE, GOAL = 0.05, 0.9
COLUMNS = ("method", "spread", "seed", "k", "recall", "purity", "found", "named", "false", "effect", "low", "high", "own", "p", "q",
           "p_truth", "q_truth", "seconds")  # fmt: skip
KEPT = Path(__file__).with_name("results") / "study_power.csv"
METHODS = {
    "ours": "reduset",
    "metaclusters": "FlowSOM, 20 metaclusters, test of reduset",
    "clusters": "FlowSOM, 100 clusters, test of reduset",
    "milo": "Milo (pertpy, pydeseq2), 60 neighbours, FDR 10 %",
    "milo, wide": "Milo (pertpy, pydeseq2), 150 neighbours, FDR 10 %",
}


def cohort_of(spread: float, seed: int, **size: int) -> PlantedCohort:
    return real_cohort(data_folder(), np.random.default_rng([seed, round(100 * spread)]), spread=spread, **size)


def ours(spread: float, seed: int, **size: int) -> Row:
    """One repetition of reduset."""
    cohort = cohort_of(spread, seed, **size)
    begun = time.process_time()
    found = find_populations(cohort.bags, cohort.markers, rng=seed)
    seconds = time.process_time() - begun
    row = judged(found.counts, _planted(found.assignments(), cohort), cohort.labels, seed) | {"seconds": seconds}
    marked = found.marked(int(row.pop("place")))
    row["named"] = {f"{marker}+" for marker in cohort.moved} <= set(marked)
    return {"method": "ours", "spread": spread, "seed": seed, **row}


def judged(counts: np.ndarray, planted: np.ndarray, labels: np.ndarray, seed: int) -> Row:
    """The result of the test on (N, k) cells of each population, of which ``planted`` were planted."""
    sizes, design = counts.sum(axis=1), design_of(labels)
    result = compare(counts, sizes, design, fdr=RATE, rng=seed)
    purity = planted.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    right = result.found & (purity >= 0.5) & (result.effects[0] > 0)
    place = int((planted.sum(axis=0) * (right if right.any() else True)).argmax())
    truth = planted.sum(axis=1)
    with_truth = np.column_stack([truth, np.delete(counts - planted, place, axis=1)])
    logs = np.log((truth + 0.5) / (sizes + 1))
    groups = design.codes
    shares = [(counts[groups == g, place] / sizes[groups == g]).mean() for g in (0, 1)]
    grown = [(planted[groups == g, place] / sizes[groups == g]).mean() for g in (0, 1)]
    background = sum(shares) / 2 - sum(grown) / 2
    expected = [background + step * 0.005 * planted[:, place].sum() / truth.sum() for step in (1, 2)]
    return {
        "place": place,
        "k": counts.shape[1],
        "recall": planted[:, place].sum() / truth.sum(),
        "purity": purity[place],
        "found": right.any(),
        "false": int((result.found & (purity < 0.1)).sum()),
        "effect": result.effects[0, place],
        "low": result.intervals[0, place, 0],
        "high": result.intervals[0, place, 1],
        "own": np.log2(expected[1] / expected[0]),
        "p": result.p_values[place],
        "q": result.q_values[place],
        "p_truth": ttest_ind(logs[groups == 0], logs[groups == 1]).pvalue * counts.shape[1],
        "q_truth": compare(with_truth, sizes, design, fdr=RATE, rng=seed).q_values[0],
    }


def _planted(owners: np.ndarray, cohort: PlantedCohort) -> np.ndarray:
    """(N, k) planted cells of each sample in each population."""
    many, chosen = int(owners.max()) + 1, np.concatenate(cohort.planted)
    sample = np.repeat(np.arange(len(cohort.bags)), [len(bag) for bag in cohort.bags])
    return np.bincount(sample[chosen] * many + owners[chosen], minlength=len(cohort.bags) * many).reshape(-1, many)


def measure_ours(kept: Kept, spread: float, repetitions: int = REPETITIONS, **size: int) -> None:
    for seed in range(repetitions):
        if not kept.has("ours", spread, seed):
            kept.add(ours(spread, seed, **size))


def measure_flowsom(kept: Kept, spread: float) -> None:
    kinds = {"metaclustering": "metaclusters", "clustering": "clusters"}
    missing = [seed for seed in range(FLOWSOM_REPETITIONS) if not all(kept.has(name, spread, seed) for name in kinds.values())]
    for answer in answers("flowsom", spread, missing) if missing else ():
        labels = cohort_of(spread, answer["seed"]).labels
        for kind, name in kinds.items():
            row = judged(np.array(answer[kind]["counts"]), np.array(answer[kind]["planted"]), labels, answer["seed"])
            del row["place"]
            kept.add({"method": name, "spread": spread, "seed": answer["seed"], **row, "seconds": answer["seconds"], DIGEST: ""})


def measure_milo(kept: Kept, spread: float) -> None:
    """Only at the spread at which the planted cells are easiest to find, because a cohort takes minutes."""
    if spread != SPREADS[0]:
        return
    for method in ("milo", "milo, wide"):
        missing = [seed for seed in range(MILO_REPETITIONS) if not kept.has(method, spread, seed)]
        for answer in answers(method, spread, missing) if missing else ():
            answer.pop("size")
            kept.add({"method": method, "spread": spread, **answer, DIGEST: ""})


MEASURES = {"ours": measure_ours, "flowsom": measure_flowsom, "milo": measure_milo}


def method_line(rows: Sequence[Row], method: str, spread: float) -> list[Any]:
    k, effects, own = (column(rows, name) for name in ("k", "effect", "own"))
    covered = [row["low"] <= row["own"] <= row["high"] for row in rows if row["own"] != ""]
    apart = (
        ""
        if method.startswith("milo")
        else f"{100 * column(rows, 'recall').mean():.0f} %, {100 * column(rows, 'purity').mean():.0f} %"
    )
    false = column(rows, "false")
    return [
        f"{spread:g}",
        METHODS[method],
        len(rows),
        f"{np.median(k):.0f}",
        proportion(rows, "found"),
        proportion(rows, "named"),
        f"{(false > 0).mean():.0%}" + (f", {false.mean():.0f} at once" if method.startswith("milo") else ""),
        apart,
        f"{np.median(effects):.2f}" + (f" ({np.median(own):.2f})" if len(own) else "") if len(effects) else "",
        f"{np.mean(covered):.0%}" if covered else "",
        f"{np.median(column(rows, 'seconds')):.1f} s",
    ]


def ceiling_line(rows: Sequence[Row], spread: float) -> list[Any]:
    merged = [row for row in rows if row["purity"] < 0.5]
    missed = [row for row in rows if not row["found"]]
    without = sum(row["q_truth"] > RATE for row in missed)
    return [
        f"{spread:g}",
        with_limits(column(rows, "p_truth") <= RATE),
        with_limits(column(rows, "q_truth") <= RATE),
        proportion(rows, "found"),
        len(missed),
        len(merged),
        without,
        len(missed) - without - sum(row["q_truth"] <= RATE for row in merged),
        verdict(float(np.mean(column(rows, "found"))), GOAL),
    ]


NOTE = """Samples of 5,000 cells contain 0.5 % of activated CD8 T cells in one group and 1 % in the other. *Spread* is the
standard deviation of the log proportion between samples, in addition to sampling variation and to other cells with the same
staining. *Found*: at a false discovery rate of 5 %, a population of which at least half of the cells were planted, with 95 %
limits of the proportion. *Named*: CD69+ and HLADr+ are among its four markers. *False*: repetitions with a finding of which
less than a tenth of the cells were planted. *Has of planted, pure*: the proportion of all planted cells in it, and of planted
cells among its cells. The effect is the median log2 fold change, with that of a population with its background, which its 95
% interval should cover. Milo finds neighbourhoods, {milo} repetitions; FlowSOM {flowsom}, pertpy {pertpy}."""
CEILING = """**The best possible power.** A t-test on the true numbers of planted cells at 5 % over the number of populations
(Bonferroni), and the test of reduset on the same numbers. *Missed for the population*: the test finds the true numbers. *For
the test*: it does not."""


PEERS = """**Compared with the peers.** They have the first {count} cohorts of each spread, of which reduset finds {same}.
FlowSOM's clusters are tested by the test of reduset, which corrects for 100 of them. Milo has few repetitions because of its
time."""


def _peers(kept: Kept) -> list[str]:
    """The cohorts of the peers in which reduset finds the population, and the methods without results."""
    found, count = [], 0
    for spread in SPREADS:
        seeds = {row["seed"] for row in kept.where(spread=spread, method="metaclusters")}
        same = [row for row in kept.where(method="ours", spread=spread) if row["seed"] in seeds]
        count = max(count, len(seeds))
        found += [f"{sum(row['found'] for row in same)} of {len(same)} at a spread of {spread:g}"] if same else []
    missing = [name for method, name in METHODS.items() if not kept.where(method=method)]
    parts = [PEERS.format(count=count, same=", ".join(found))] if found else []
    return [*parts, *([f"Not measured: {'; '.join(missing)}."] if missing else [])]


def measure(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder) / KEPT.name if quick else KEPT, COLUMNS, 3, SOURCES)
        spreads = SPREADS[:1] if quick else SPREADS
        for spread in spreads:
            measure_ours(kept, spread, **({"repetitions": QUICK_REPETITIONS, **QUICK_SIZE} if quick else {}))
        return report(kept, spreads)


def report(kept: Kept, spreads: Sequence[float]) -> dict[str, Any]:
    lines, tops, summary = [], [], []
    for spread in spreads:
        found = {method: kept.where(method=method, spread=spread) for method in METHODS}
        lines += [method_line(rows, method, spread) for method, rows in found.items() if rows]
        tops.append(ceiling_line(found["ours"], spread))
        power = {method: f"{column(rows, 'found').mean():.0%}" for method, rows in found.items() if rows}
        both = ("ours", *(method for method in ("metaclusters", "clusters") if method in power))
        names = "reduset, FlowSOM with 20, 100 clusters" if len(both) > 1 else "reduset"
        summary.append(
            [f"power, spread {spread:g}: {names}", ", ".join(power[method] for method in both), f"≥ {GOAL:.0%}", tops[-1][-1]]
        )
    head = [
        "spread",
        "method",
        "repetitions",
        "populations",
        "found",
        "named",
        "false",
        "has of planted, pure",
        "effect",
        "covered",
        "seconds",
    ]
    high = ["spread", "t-test, true numbers", "test of reduset, true numbers", "found", "missed", "of these merged with others",
            "missed for the test", "missed for the population", "90 %"]  # fmt: skip
    note = NOTE.format(milo=MILO_REPETITIONS, **{name: pins("study")[name] for name in ("flowsom", "pertpy")})
    parts = [note, table(head, lines), CEILING, table(high, tops), *_peers(kept)]
    details = "\n\n".join(" ".join(part.splitlines()) if not part.startswith("|") else part for part in parts)
    return {"summary": summary, "details": details}


if __name__ == "__main__":
    for wanted in [float(each) for each in sys.argv[2:]] or SPREADS:
        MEASURES[sys.argv[1]](Kept(KEPT, COLUMNS, 3, SOURCES), wanted)
