"""How often something is found where nothing differs: labels of samples shuffled, 200 times for each of several designs.

Populations are found without a look at labels, so once for each cohort. Cohorts are of real cells (`cohort_real_data`) in which the
planted population does not change, or made (`cohort_study_data`, 37 samples, 2.2 million cells). Where nothing differs a false
discovery rate is the chance of any discovery. What was measured is kept in `study_level.csv`, from which it goes on, and is
summarised by `run.py`. To measure some designs: `python benchmarks/study_level.py DESIGN …`.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.cohort_real_data import paired_cohort, real_cohort
from benchmarks._lib.cohort_study_data import make
from benchmarks._lib import data_folder, table
from reduset.cohort import CohortMap
from reduset.cohort.witness import witness_of
from reduset.cytometry import read_cohort
from reduset.differences import Design, compare, compare_whole, design_of
from reduset.populations import Populations, find_populations
from benchmarks.statistics.study_repetitions import Kept, Row, column, interval

TITLE = "A study's level: labels shuffled"

REPETITIONS = 200
RATES = (0.05, 0.10)
COLUMNS = ("design", "cohort", "shuffle", "k", "q5", "q10", "atoms", "whole")
KEPT = Path(__file__).with_name("study_level.csv")
Rng = np.random.Generator


@dataclass(frozen=True)
class Cohort:
    """Samples with their populations and distances; what they are labelled by may be anything."""

    found: Populations
    distances: np.ndarray
    errors: np.ndarray
    blocks: np.ndarray
    runs: np.ndarray
    compared: np.ndarray = field(repr=False)  # which samples: all but controls


@dataclass(frozen=True)
class Shuffled:
    """A design of shuffled labels, and the populations that it is tried on."""

    design: Design
    found: Populations


def of_bags(
    bags: Any, markers: Any, seed: int, blocks: np.ndarray, runs: np.ndarray, compared: np.ndarray, defining: Any = None
) -> Cohort:
    found = find_populations(bags, markers, defining=defining, rng=seed)
    kept = [bag if defining is None else bag[:, defining] for bag in bags]
    located = CohortMap(n_components=2, random_state=seed).fit({f"s{k}": bag for k, bag in enumerate(kept)})
    return Cohort(found, located.distances_, located.errors_, blocks, runs, compared)


def real(groups: tuple[int, int]) -> Callable[[int], Cohort]:
    def drawn(seed: int) -> Cohort:
        cohort = real_cohort(data_folder(), np.random.default_rng([seed, sum(groups)]), groups, factor=1.0)
        none = np.zeros(len(cohort.bags), int)
        return of_bags(cohort.bags, cohort.markers, seed, none, none, none == 0)

    return drawn


def pairs(seed: int) -> Cohort:
    cohort = paired_cohort(data_folder(), np.random.default_rng([seed, 2]), factor=1.0)
    none = np.zeros(len(cohort.bags), int)
    return of_bags(cohort.bags, cohort.markers, seed, cohort.patients, none, none == 0)


def made(paired: bool) -> Callable[[int], Cohort]:
    def drawn(seed: int) -> Cohort:
        with tempfile.TemporaryDirectory() as place:
            folder = make(place, seed=seed, paired=paired, changed=False).folder
            known = read_cohort(folder, panel=folder / "panel.csv", samples=folder / "samples.csv")
        defining = [j for j, marker in enumerate(known.markers) if marker not in known.state]
        blocks, runs = (np.array(known.column(name)) for name in ("patient_id", "run"))
        compared = np.array([each != "yes" for each in known.column("control")])
        return of_bags(known.cells, known.markers, seed, blocks, runs, compared, defining)

    return drawn


def halves(cohort: Cohort, rng: Rng) -> np.ndarray:
    """A and B, as many of each, anywhere."""
    labels = np.full(len(cohort.compared), None, object)
    rows = np.flatnonzero(cohort.compared)
    labels[rows] = rng.permutation(np.where(np.arange(len(rows)) % 2, "B", "A"))
    return labels


def freely(cohort: Cohort, rng: Rng) -> Shuffled:
    return Shuffled(design_of(halves(cohort, rng)), cohort.found)


def within_runs(cohort: Cohort, rng: Rng) -> Shuffled:
    """Labels anywhere, the run held fixed."""
    return Shuffled(design_of(halves(cohort, rng), batch=cohort.runs), cohort.found)


def three_groups(cohort: Cohort, rng: Rng) -> Shuffled:
    return Shuffled(design_of(rng.permutation(np.array(list("ABC"))[np.arange(len(cohort.compared)) % 3])), cohort.found)


def flipped(cohort: Cohort, rng: Rng) -> Shuffled:
    """A and B in every pair, either way round."""
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


# name: how cohorts are drawn, how many of them, how labels are shuffled, and whether the level is to be held
DESIGNS: dict[str, tuple[Callable[[int], Cohort], int, Callable[[Cohort, Rng], Shuffled], bool]] = {
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
        "atoms": witness_of(found, design, RATES[0], rng).q_values.min(),
        "whole": compare_whole(cohort.distances, cohort.errors, design, rng).p_value,
    }


def measure(kept: Kept, name: str) -> None:
    draw, cohorts, shuffle, _ = DESIGNS[name]
    each = REPETITIONS // cohorts
    for seed in range(cohorts):
        if all(kept.has(name, seed, place) for place in range(each)):
            continue
        cohort = draw(seed)
        for place in range(each):
            if not kept.has(name, seed, place):
                rng = np.random.default_rng([seed, place, list(DESIGNS).index(name)])
                kept.add({"design": name, "cohort": seed, "shuffle": place, **shuffle_once(cohort, shuffle(cohort, rng), rng)})


def judged(count: int, of: int, rate: float, held: bool) -> str:
    """A share with its interval, bold where it is more than the rate allows."""
    low, high = interval(count, of)
    words = f"{count / of:.1%} ({100 * low:.1f} to {100 * high:.1f})"
    return f"**{words}**" if low > rate and held else words


def line(name: str, rows: list[Row], broken: list[str]) -> list[Any]:
    held, said = DESIGNS[name][3], []
    for title, rate in (("q5", 0.05), ("q10", 0.10), ("atoms", 0.05), ("atoms", 0.10), ("whole", 0.05)):
        values = column(rows, title)
        count = int((values <= rate).sum())
        said.append(judged(count, len(values), rate, held))
        if held and interval(count, len(values))[0] > rate:
            broken.append(f"{name}, {title} at {rate:.0%}")
    return [name, len(rows), f"{np.median(column(rows, 'k')):.0f}", *said]


NOTE = """Shares of up to {repetitions} repetitions (as the table says)
in which anything is found although labels mean nothing, with 95 % limits (Clopper and
Pearson); a share is in bold where even its lower limit is above the rate. Populations and atoms of the witness at false
discovery rates of 5 and 10 %, the test of the whole at p ≤ 0.05. Cohorts are of real cells, {cells} a sample, or made;
labels are exchanged freely, or within pairs. The covariate is 1 larger in B with a standard deviation of 0.8, and half of
the small populations follow it; ignored, it is what the groups differ by, and is to be found."""


def run() -> str:
    kept, broken = Kept(KEPT, COLUMNS, 3), []
    measured = [name for name in DESIGNS if kept.where(design=name)]
    lines = [line(name, kept.where(design=name), broken) for name in measured]
    head = ["design", "repetitions", "populations", "populations, 5 %", "10 %", "atoms, 5 %", "10 %", "whole, p ≤ 5 %"]
    verdict = f"Levels held in what was measured: {'yes' if not broken else 'NO: ' + '; '.join(broken)}."
    looks = 5 * sum(DESIGNS[name][3] for name in measured)
    verdict += f" Of {looks} shares that hold, {0.025 * looks:.1f} would be above their limits by chance alone."
    few = [name for name in measured if len(kept.where(design=name)) < REPETITIONS]
    verdict += f" Fewer repetitions than asked for: {'; '.join(few)}." if few else ""
    left = [name for name in DESIGNS if name not in measured]
    verdict += f" Not measured: {'; '.join(left)}." if left else ""
    note = " ".join(NOTE.format(repetitions=REPETITIONS, cells="4,500 to 5,000").splitlines())
    return "\n\n".join([note, table(head, lines), verdict])


if __name__ == "__main__":
    for wanted in sys.argv[1:] or DESIGNS:
        measure(Kept(KEPT, COLUMNS, 3), wanted)
