"""How long does a whole study take, from 37 FCS files with 2.2 million cells to differences, and is the result right?

The files are simulated (`cohort_study_data`), so the populations, the two that differ and the events to be removed are known.
Goals: at most 60 s on two threads and less than 2 GB; exactly the two populations that differ are found. A first process on a
small study compiles, the second one is measured from its start.

``python -m benchmarks.speed.study_speed FOLDER OUT.npz`` is that process.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

BORN = time.perf_counter()  # benchmarks._lib is imported later, since it takes time and memory that are no part of a study
TITLE = "A study of 37 samples, 2.2 million cells"
SOURCES = ("cohort", "cytometry", "io/fcs.py")
SECONDS, GIGABYTES = 60.0, 2.0
SMALL = {"samples": 11, "cells": 30_000}
# calls within CohortStudy.fit that are timed one by one, by their names in reduset.cytometry.study
INSIDE = {
    "find_populations": "populations",
    "CohortMap": "map",
    "compare": "tests of populations",
    "compare_whole": "test of the whole",
    "witness_of": "witness",
    "compare_clusters": "clusters",
    "check_batches": "batches",
}


class Measured:
    """Seconds by part, and the results that later parts use."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder, self.target = folder, target
        self.parts: dict[str, float] = {}
        self.samples: Any = None
        self.study: Any = None

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.parts[name] = self.parts.get(name, 0.0) + time.perf_counter() - begun


def reading(measured: Measured) -> None:
    from reduset.cytometry import read_cohort

    folder = measured.folder
    measured.samples = read_cohort(folder, panel=folder / "panel.csv", samples=folder / "samples.csv")


def fitting(measured: Measured) -> None:
    from reduset.cytometry import study

    for name, title in INSIDE.items():
        setattr(study, name, _timed(getattr(study, name), measured, title))
    measured.study = study.CohortStudy("condition", "patient_id", "run", control="control", random_state=0).fit(measured.samples)


def reporting(measured: Measured) -> None:
    from reduset.cytometry.report import write_report

    write_report(measured.target.with_name("cohort.html"), measured.study)


def writing(measured: Measured) -> None:
    from reduset.cytometry import cells_to_anndata, to_anndata, write_sketch_fcs, write_tables

    to_anndata(measured.study).write_h5ad(measured.target.with_name("cohort.h5ad"))
    cells_to_anndata(measured.study).write_h5ad(measured.target.with_name("cells.h5ad"))
    write_tables(measured.target.with_name("tables"), measured.study)
    write_sketch_fcs(measured.target.with_name("cells.fcs"), measured.study)


def _timed(function: Any, measured: Measured, title: str) -> Any:
    if isinstance(function, type):  # an estimator, whose fit takes the time
        return lambda *given, **named: _Fitted(function(*given, **named), measured, title)

    @functools.wraps(function)
    def timed(*given: Any, **named: Any) -> Any:
        with measured.part(title):
            return function(*given, **named)

    return timed


class _Fitted:
    def __init__(self, estimator: Any, measured: Measured, title: str) -> None:
        self._estimator, self._measured, self._title = estimator, measured, title

    def fit(self, *given: Any) -> Any:
        with self._measured.part(self._title):
            return self._estimator.fit(*given)


# The parts of a study in order; those within the second are timed one by one.
STEPS: list[tuple[str, Callable[[Measured], None]]] = [
    ("reading and cleaning", reading),
    ("study", fitting),
    ("report", reporting),
    ("AnnData, tables and FCS of the sketched cells", writing),
]


def main(folder: str, target: str) -> None:
    measured = Measured(Path(folder), Path(target))
    with measured.part("starting"):
        from reduset import cohort, cytometry  # noqa: F401
    for name, step in STEPS:
        with measured.part(name):
            step(measured)
    whole, busy = time.perf_counter() - BORN, time.process_time()
    from benchmarks.speed.growth import memory

    peak, study, known = memory("VmHWM"), measured.study, measured.samples
    found, differ = study.populations_, study.differences_
    np.savez(target, owners=found.assignments(), **{f"events {k}": events for k, events in enumerate(known.events)})
    said = {
        "parts": measured.parts, "whole": whole, "busy": busy, "peak": peak, "names": found.names,
        "found": np.flatnonzero(differ.found).tolist(),
        "told": [differ.format_population(int(k)) for k in np.flatnonzero(differ.found)], "atoms": len(found.atoms),
        "counted": {step: int(counts.sum()) for step, counts in known.counted.items()},
        "samples": list(known.names), "whole_p": study.whole_.p_value, "clusters": len(study.clusters_),
    }  # fmt: skip
    print("answer " + json.dumps(said))


def run_study(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The figures of a study in a process of its own, and the arrays that it wrote."""
    from benchmarks._lib import own_process
    from reduset import get_threads

    threads = {name: str(get_threads()) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "REDUSET_NUM_THREADS")}
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "found.npz"
        process = own_process(__file__, str(folder), str(target), env=os.environ | threads)
        answer = next(line for line in process.stdout.splitlines() if line.startswith("answer "))
        with np.load(target) as file:
            return json.loads(answer.removeprefix("answer ")), {name: file[name] for name in file.files}


def truth_of(made: Any, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The true population of every cell kept, and whether it is a single cell."""
    kept = [arrays[f"events {k}"] for k in range(len(made.files))]
    population = np.concatenate([made.population[name][events] for name, events in zip(made.files, kept, strict=True)])
    single = np.concatenate([~made.doublet[name][events] for name, events in zip(made.files, kept, strict=True)])
    return population, single


def cleaned(made: Any, arrays: dict[str, np.ndarray]) -> dict[str, tuple[int, int]]:
    """Events in the files and events removed, by kind."""
    totals: dict[str, tuple[int, int]] = {}
    for k, name in enumerate(made.files):
        gone = np.ones(len(made.population[name]), bool)
        gone[arrays[f"events {k}"]] = False
        doublet, margin, drifted = made.doublet[name], made.margin[name], made.drifted[name]
        kinds = {
            "margin": margin,
            "doublets": doublet & ~margin,
            "drifted": drifted & ~doublet & ~margin,
            "good events, files with a drift": ~(doublet | margin | drifted) & (name in made.drifting),
            "good events, other files": ~(doublet | margin | drifted) & (name not in made.drifting),
        }
        for kind, chosen in kinds.items():
            there, removed = totals.get(kind, (0, 0))
            totals[kind] = there + int(chosen.sum()), removed + int((gone & chosen).sum())
    return totals


def populations_of(
    said: dict[str, Any], arrays: dict[str, np.ndarray], made: Any, names: tuple[str, ...]
) -> tuple[float, list[list[Any]], bool]:
    """The adjusted Rand index, a row for each true population, and whether exactly the changed ones were found."""
    from sklearn.metrics import adjusted_rand_score

    population, single = truth_of(made, arrays)
    found_of = arrays["owners"][single]
    both = np.bincount(population[single] * len(said["names"]) + found_of, minlength=len(names) * len(said["names"]))
    both = both.reshape(len(names), -1)
    main_of = both.argmax(axis=0)  # of each population found, the true one of most of its cells
    lines = []
    for k in np.argsort(-both.sum(axis=1)):
        mine = [j for j in range(both.shape[1]) if main_of[j] == k]
        place, total = int(both[k].argmax()), max(both[k].sum(), 1)
        lines.append([
            names[k], "yes" if names[k] in made.changed else "", f"{both[k].sum():,}", said["names"][place],
            f"{both[k, place] / total:.1%}", f"{both[k, place] / max(both[:, place].sum(), 1):.1%}", len(mine),
            "yes" if set(mine) & set(said["found"]) else "",
        ])  # fmt: skip
    found = {names[main_of[j]] for j in said["found"]}
    return adjusted_rand_score(population[single], found_of), lines, found == set(made.changed)


NOTE = """{samples} FCS files with {cells:,} events in 24 channels, two conditions in pairs, three runs with a control each. Files
are read, compensated, cleaned and put on logicle scales; populations are found, samples mapped; populations, atoms and the whole
distribution are tested within pairs, runs are compared. Seconds from the start of a process, on {threads} threads, code compiled
before."""


def measure(quick: bool) -> dict[str, Any]:
    from benchmarks._lib import table, verdict
    from benchmarks._lib.cohort_study_data import NAMES, make
    from reduset import get_threads

    with tempfile.TemporaryDirectory() as place:
        if quick:
            made = make(Path(place) / "small", seed=1, **SMALL)
        else:
            run_study(make(Path(place) / "small", seed=1, **SMALL).folder)  # compiles
            made = make(Path(place) / "whole", seed=0)
        said, arrays = run_study(made.folder)
    index, lines, exact = populations_of(said, arrays, made, NAMES)
    peak, removed = said["peak"] / 1e9, cleaned(made, arrays)
    times = [[name, f"{seconds:.1f} s"] for name, seconds in said["parts"].items() if name != "study"]
    times += [
        ["whole", f"**{said['whole']:.1f} s**"],
        ["processor time, all threads", f"{said['busy']:.1f} s"],
        ["peak memory of the process", f"**{peak:.2f} GB**"],
    ]
    events = {kind: (f"{there:,}", f"{gone:,}", f"{gone / max(there, 1):.1%}") for kind, (there, gone) in removed.items()}
    total = sum(len(each) for each in made.population.values())
    steps = ", ".join(f"{step} {count:,}" for step, count in said["counted"].items())
    found = f"{len(said['names'])} of {len(NAMES)}, {index:.3f}"
    wanted = ("margin", "doublets", "good events, other files")
    return {
        "summary": [
            ["Time of the study", f"{said['whole']:.1f} s", f"≤ {SECONDS:g} s", verdict(-said["whole"], -SECONDS)],
            ["Peak memory of the process", f"{peak:.2f} GB", f"< {GIGABYTES:g} GB", verdict(-peak, -GIGABYTES)],
            ["Populations found, adjusted Rand index", found, "", ""],
            ["Exactly the two changed populations differ", "yes" if exact else "no", "yes", "yes" if exact else "NO"],
            ["Removed: margin events, doublets, good events", ", ".join(events[kind][2] for kind in wanted), "", ""],
        ],
        "details": "\n\n".join([
            " ".join(NOTE.format(samples=len(made.files), cells=total, threads=get_threads()).splitlines()),
            table(["part", "measured"], times),
            f"**Populations.** {len(said['names'])} populations on {said['atoms']:,} atoms, {len(NAMES)} in the data: adjusted "
            f"Rand index {index:.3f} over all single cells. *Recall* is the proportion of the true population's cells that the "
            "population found has, *precision* the proportion of its cells that belong to the true one.",
            table(["true population", "changed", "cells", "found as", "recall", "precision", "found ones of it", "differs"], lines),
            f"Exactly the two changed populations are found to differ: {'yes' if exact else 'NO'}. The test of the whole has p = "
            f"{said['whole_p']:.2g}; {said['clusters']} clusters differ. " + "; ".join(said["told"]) + ".",
            f"**Cleaning** ({steps}).",
            table(["events", "in the files", "removed", "proportion"], [[kind, *values] for kind, values in events.items()]),
        ]),
    }  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
