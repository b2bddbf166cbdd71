"""How often a planted population is found: 0.5 % of real cells doubled, 8 samples against 8, ours beside FlowSOM and Milo.

Each repetition is a cohort of `cohort_real_data` of its own seed. The population found must be one whose cells are mostly planted
(at least half of them are); whatever else is found counts as false where less than a tenth of its cells were planted. What was
measured is kept in `study_power.csv`, from which it goes on, and is summarised by `run.py`. To measure a part of it:
`python benchmarks/study_power.py METHOD [SPREAD …]`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from benchmarks._lib.cohort_real_data import PlantedCohort, real_cohort
from benchmarks._lib import data_folder, table
from reduset.differences import compare, design_of
from reduset.populations import find_populations
from benchmarks.statistics.study_repetitions import Kept, Row, column, told
from benchmarks.peers.study_rivals import answers, pins

TITLE = "A study's power: a planted population of 0.5 % that doubles, 8 against 8"

REPETITIONS, FLOWSOM_REPETITIONS, MILO_REPETITIONS = 100, 30, 3
SPREADS = (0.0, 0.15, 0.3)
RATE, GOAL = 0.05, 0.9
COLUMNS = ("method", "spread", "seed", "k", "recall", "purity", "found", "named", "false", "effect", "low", "high", "own", "p", "q",
           "p_truth", "q_truth", "seconds")  # fmt: skip
KEPT = Path(__file__).with_name("study_power.csv")
METHODS = {
    "ours": "reduset",
    "metaclusters": "FlowSOM, 20 metaclusters, our test",
    "clusters": "FlowSOM, 100 clusters, our test",
    "milo": "Milo (pertpy, pydeseq2), 60 neighbours, FDR 10 %",
    "milo, wide": "Milo (pertpy, pydeseq2), 150 neighbours, FDR 10 %",
}


def cohort_of(spread: float, seed: int) -> PlantedCohort:
    return real_cohort(data_folder(), np.random.default_rng([seed, round(100 * spread)]), spread=spread)


def ours(spread: float, seed: int) -> Row:
    """One repetition of all that is ours."""
    cohort = cohort_of(spread, seed)
    begun = time.process_time()
    found = find_populations(cohort.bags, cohort.markers, rng=seed)
    seconds = time.process_time() - begun
    row = judged(found.counts, _planted(found.owners(), cohort), cohort.labels, seed) | {"seconds": seconds}
    marked = found.marked(int(row.pop("place")))
    row["named"] = {f"{marker}+" for marker in cohort.moved} <= set(marked)
    return {"method": "ours", "spread": spread, "seed": seed, **row}


def judged(counts: np.ndarray, planted: np.ndarray, labels: np.ndarray, seed: int) -> Row:
    """What the test says of (N, k) cells of each population, as many of which were planted."""
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


def measure_ours(kept: Kept, spread: float) -> None:
    for seed in range(REPETITIONS):
        if not kept.has("ours", spread, seed):
            kept.add(ours(spread, seed))


def measure_flowsom(kept: Kept, spread: float) -> None:
    kinds = {"metaclustering": "metaclusters", "clustering": "clusters"}
    missing = [seed for seed in range(FLOWSOM_REPETITIONS) if not all(kept.has(name, spread, seed) for name in kinds.values())]
    for answer in answers("flowsom", spread, missing) if missing else ():
        labels = cohort_of(spread, answer["seed"]).labels
        for kind, name in kinds.items():
            row = judged(np.array(answer[kind]["counts"]), np.array(answer[kind]["planted"]), labels, answer["seed"])
            del row["place"]
            kept.add({"method": name, "spread": spread, "seed": answer["seed"], **row, "seconds": answer["seconds"]})


def measure_milo(kept: Kept, spread: float) -> None:
    """Minutes a cohort: where the planted cells are easiest to find, and no more."""
    if spread != SPREADS[0]:
        return
    for method in ("milo", "milo, wide"):
        missing = [seed for seed in range(MILO_REPETITIONS) if not kept.has(method, spread, seed)]
        for answer in answers(method, spread, missing) if missing else ():
            answer.pop("size")
            kept.add({"method": method, "spread": spread, **answer})


MEASURES = {"ours": measure_ours, "flowsom": measure_flowsom, "milo": measure_milo}


def summary(rows: Sequence[Row], method: str, spread: float) -> list[Any]:
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
        told(rows, "found"),
        told(rows, "named"),
        f"{(false > 0).mean():.0%}" + (f", {false.mean():.0f} at once" if method.startswith("milo") else ""),
        apart,
        f"{np.median(effects):.2f}" + (f" ({np.median(own):.2f})" if len(own) else "") if len(effects) else "",
        f"{np.mean(covered):.0%}" if covered else "",
        f"{np.median(column(rows, 'seconds')):.1f} s",
    ]


def ceiling(rows: Sequence[Row], spread: float) -> list[Any]:
    by_t = [{"x": int(row["p_truth"] <= RATE)} for row in rows]
    by_ours = [{"x": int(row["q_truth"] <= RATE)} for row in rows]
    merged = [row for row in rows if row["purity"] < 0.5]
    missed = [row for row in rows if not row["found"]]
    without = sum(row["q_truth"] > RATE for row in missed)
    return [
        f"{spread:g}",
        told(by_t, "x"),
        told(by_ours, "x"),
        told(rows, "found"),
        len(missed),
        len(merged),
        without,
        len(missed) - without - sum(row["q_truth"] <= RATE for row in merged),
        "yes" if np.mean(column(rows, "found")) >= GOAL else "NO",
    ]


NOTE = """Into samples of 5,000 cells go 0.5 % of activated CD8 T cells in one group, 1 % in the other; *spread* is the standard
deviation of the logarithm of a sample's own share of them, on top of the chance of {cells} cells and of cells of the
patients' own that look the same. *Found*: at a false discovery rate of 5 %, a population at least half of whose cells
were planted, with 95 % limits of the share. *Named*: CD69+ and HLADr+ are among the four markers that tell it from
the rest. *False*: repetitions with a finding besides, less than a tenth of whose cells were planted. *Has of planted,
pure*: the share of all planted cells that it holds, and of its cells that were planted. The effect is the median log2
fold change, beside that of a population with its background, which its 95 % interval is to cover. Milo finds
neighbourhoods, {milo} repetitions; FlowSOM {flowsom}, pertpy {pertpy}."""
CEILING = """**What can be found at all.** A t-test on the true numbers of planted cells, as if somebody had labelled them, at 5 %
over the number of populations (Bonferroni), and our test on the same numbers; no method that looks for the population
first has more to go by. *Missed for the population*: our test would have found the true numbers; *for the test*: not
even these."""


BESIDE = """**Beside the rivals.** Theirs are the first {count} cohorts of each spread, of which ours finds {same}. FlowSOM's
clusters are tested by our own test; each of 100 of them must pass among more. Milo's few repetitions show little but what it
costs."""


def _beside(kept: Kept) -> list[str]:
    """What ours finds of the cohorts that the rivals had, and what was not measured."""
    told, count = [], 0
    for spread in SPREADS:
        rivals = {row["seed"] for row in kept.where(spread=spread, method="metaclusters")}
        same = [row for row in kept.where(method="ours", spread=spread) if row["seed"] in rivals]
        count = max(count, len(rivals))
        told += [f"{sum(row['found'] for row in same)} of {len(same)} at a spread of {spread:g}"] if same else []
    left = [f"a spread of {spread:g}" for spread in SPREADS if not kept.where(method="ours", spread=spread)]
    left += [words for method, words in METHODS.items() if not kept.where(method=method)]
    parts = [BESIDE.format(count=count, same=", ".join(told))] if told else []
    return [*parts, *([f"Not measured: {'; '.join(left)}."] if left else [])]


def run() -> str:
    kept = Kept(KEPT, COLUMNS, 3)
    measured = [spread for spread in SPREADS if kept.where(method="ours", spread=spread)]
    lines, tops = [], []
    for spread in measured:
        for method in METHODS:
            rows = kept.where(method=method, spread=spread)
            lines += [summary(rows, method, spread)] if rows else []
        tops.append(ceiling(kept.where(method="ours", spread=spread), spread))
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
    high = ["spread", "t-test, true numbers", "our test, true numbers", "ours", "missed", "of these merged with others",
            "missed for the test", "missed for the population", "90 %"]  # fmt: skip
    note = NOTE.format(cells="5,000", milo=MILO_REPETITIONS, **{name: pins()[name] for name in ("flowsom", "pertpy")})
    parts = [note, table(head, lines), CEILING, table(high, tops), *_beside(kept)]
    return "\n\n".join(" ".join(part.splitlines()) if not part.startswith("|") else part for part in parts)


if __name__ == "__main__":
    for wanted in [float(each) for each in sys.argv[2:]] or SPREADS:
        MEASURES[sys.argv[1]](Kept(KEPT, COLUMNS, 3), wanted)
