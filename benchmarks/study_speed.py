"""A whole study, timed part by part: 37 FCS files with 2.2 million cells, from files to differences, in a process of its own.

The files are made (`cohort_study_data`), so that the truth is known: whether populations are those that were put there, whether
those found to differ are the two that do, and what cleaning took of what it should. A first process on a small study compiles, as
every first use does; the second one is measured from its start. `python benchmarks/study_speed.py FOLDER OUT.npz` is that process.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

BORN = time.perf_counter()
TITLE = "A study of 37 samples, 2.2 million cells"
SECONDS, GIGABYTES = 60.0, 2.0
WARM = {"samples": 11, "cells": 30_000}
# the calls within CohortStudy.fit that are timed one by one, by their names in reduset.cohort.study
INSIDE = {
    "find_populations": "populations",
    "CohortMap": "map",
    "compare": "tests of populations",
    "compare_whole": "test of the whole",
    "witness_of": "witness",
    "check_batches": "batches",
}


class Measured:
    """Seconds by part, and what parts hand on to each other."""

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
    from reduset.cohort import study

    for name, title in INSIDE.items():
        setattr(study, name, _timed(getattr(study, name), measured, title))
    measured.study = study.CohortStudy("condition", "patient_id", "run", control="control", random_state=0).fit(measured.samples)


def reporting(measured: Measured) -> None:
    from reduset.report.study import write_study

    write_study(measured.target.with_name("cohort.html"), measured.study)


def writing(measured: Measured) -> None:
    from reduset.anndata import cells_of_study, from_study
    from reduset.cytometry import write_sketch_fcs, write_tables

    from_study(measured.study).write_h5ad(measured.target.with_name("cohort.h5ad"))
    cells_of_study(measured.study).write_h5ad(measured.target.with_name("cells.h5ad"))
    write_tables(measured.target.with_name("tables"), measured.study)
    write_sketch_fcs(measured.target.with_name("cells.fcs"), measured.study)


def _timed(function: Any, measured: Measured, title: str) -> Any:
    if isinstance(function, type):  # an estimator: its fit is what takes time
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


# What a study is, in order; parts of the second are told one by one. Another report or file is one line more.
STEPS: list[tuple[str, Callable[[Measured], None]]] = [
    ("reading and cleaning", reading),
    ("study", fitting),
    ("report", reporting),
    ("AnnData, tables and FCS of the sketched cells", writing),
]


def highest() -> int:
    """The most memory that this process held, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def main(folder: str, target: str) -> None:
    measured = Measured(Path(folder), Path(target))
    with measured.part("starting"):
        from reduset import cohort, cytometry  # noqa: F401
    for name, step in STEPS:
        with measured.part(name):
            step(measured)
    whole, peak, busy = time.perf_counter() - BORN, highest(), time.process_time()
    study, known = measured.study, measured.samples
    found, differ = study.populations_, study.differences_
    np.savez(target, owners=found.owners(), **{f"events {k}": events for k, events in enumerate(known.events)})
    said = {
        "parts": measured.parts, "whole": whole, "busy": busy, "peak": peak, "names": found.names,
        "found": np.flatnonzero(differ.found).tolist(),
        "told": [differ.told(int(k)) for k in np.flatnonzero(differ.found)], "atoms": len(found.atoms),
        "counted": {step: int(counts.sum()) for step, counts in known.counted.items()},
        "samples": list(known.names), "whole_p": study.whole_.p_value, "witness": int(study.witness_.found.sum()),
    }  # fmt: skip
    print("answer " + json.dumps(said))


def measure(folder: Path, threads: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The process, and what it wrote."""
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "found.npz"
        many = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "REDUSET_NUM_THREADS")}
        process = subprocess.run(
            [sys.executable, __file__, str(folder), str(target)], capture_output=True, text=True, env=os.environ | many
        )
        if process.returncode:
            raise RuntimeError(process.stderr[-2000:])
        said = next(line for line in process.stdout.splitlines() if line.startswith("answer "))
        with np.load(target) as file:
            return json.loads(said.removeprefix("answer ")), {name: file[name] for name in file.files}


def truth_of(made: Any, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Of every cell kept its true population, and whether it is one cell alone."""
    kept = [arrays[f"events {k}"] for k in range(len(made.files))]
    population = np.concatenate([made.population[name][events] for name, events in zip(made.files, kept, strict=True)])
    single = np.concatenate([~made.doublet[name][events] for name, events in zip(made.files, kept, strict=True)])
    return population, single


def cleaned(made: Any, arrays: dict[str, np.ndarray]) -> list[list[Any]]:
    """What cleaning took, by what events are."""
    totals: dict[str, list[int]] = {}
    for k, name in enumerate(made.files):
        gone = np.ones(len(made.population[name]), bool)
        gone[arrays[f"events {k}"]] = False
        doublet, margin, drifted = made.doublet[name], made.margin[name], made.drifted[name]
        kinds = {
            "margin": margin,
            "doublets": doublet & ~margin,
            "drifted": drifted & ~doublet & ~margin,
            "none of these, files with a drift": ~(doublet | margin | drifted) & (name in made.drifting),
            "none of these, other files": ~(doublet | margin | drifted) & (name not in made.drifting),
        }
        for kind, chosen in kinds.items():
            each = totals.setdefault(kind, [0, 0])
            each[0] += int(chosen.sum())
            each[1] += int((gone & chosen).sum())
    return [[kind, f"{there:,}", f"{gone:,}", f"{gone / max(there, 1):.1%}"] for kind, (there, gone) in totals.items()]


def populations_of(
    said: dict[str, Any], arrays: dict[str, np.ndarray], made: Any, names: tuple[str, ...]
) -> tuple[str, list[list[Any]], bool]:
    """Agreement of populations with the truth in words, a line a true population, and whether those that changed were found."""
    from sklearn.metrics import adjusted_rand_score

    population, single = truth_of(made, arrays)
    owners = arrays["owners"][single]
    both = np.bincount(population[single] * len(said["names"]) + owners, minlength=len(names) * len(said["names"]))
    both = both.reshape(len(names), -1)
    main_of = both.argmax(axis=0)  # of each found one, the true one that most of its cells are of
    lines = []
    for k in np.argsort(-both.sum(axis=1)):
        mine = [j for j in range(both.shape[1]) if main_of[j] == k]
        place = int(both[k].argmax())
        lines.append([
            names[k], "yes" if names[k] in made.changed else "", f"{both[k].sum():,}", said["names"][place],
            f"{both[k, place] / both[k].sum():.1%}",
            f"{both[k, place] / both[:, place].sum():.1%}", len(mine), "yes" if set(mine) & set(said["found"]) else "",
        ])  # fmt: skip
    found = {names[main_of[j]] for j in said["found"]}
    index = adjusted_rand_score(population[single], owners)
    words = (
        f"{len(said['names'])} populations on {said['atoms']:,} atoms, where {len(names)} were put: adjusted Rand index "
        f"{index:.3f} over {int(single.sum()):,} single cells."
    )
    return words, lines, found == set(made.changed)


NOTE = """{samples} FCS files with {cells:,} events in 24 channels, two conditions in pairs, three runs with a control each:
files are read, compensated, cleaned and put on logicle scales, populations found, samples mapped, populations, atoms
and the whole tested within pairs, runs compared. Seconds from the start of a process, on {threads} threads, code
compiled before."""


def run() -> str:
    from cohort_study_data import NAMES, make
    from harness import table
    from reduset import get_threads

    with tempfile.TemporaryDirectory() as place:
        small = make(Path(place) / "small", seed=1, **WARM)
        measure(small.folder, get_threads())
        made = make(Path(place) / "whole", seed=0)
        said, arrays = measure(made.folder, get_threads())
    total = sum(len(each) for each in made.population.values())
    words, lines, exact = populations_of(said, arrays, made, NAMES)
    parts = said["parts"]
    peak = said["peak"] / 1e9
    times = [[name, f"{seconds:.1f} s", ""] for name, seconds in parts.items() if name != "study"]
    times.append(["whole", f"**{said['whole']:.1f} s**", "yes" if said["whole"] <= SECONDS else "NO"])
    times.append(["time of processors, all threads", f"{said['busy']:.1f} s", ""])
    times.append(["peak memory of the process", f"**{peak:.2f} GB**", "yes" if peak < GIGABYTES else "NO"])
    note = " ".join(NOTE.format(samples=len(made.files), cells=total, threads=get_threads()).splitlines())
    counted = ", ".join(f"{step} {count:,}" for step, count in said["counted"].items())
    return "\n\n".join([
        note,
        table(["part", "measured", f"≤ {SECONDS:g} s, < {GIGABYTES:g} GB"], times),
        f"**Populations.** {words} *Holds* is the share of the true population's cells that the found one has, *pure* the share of "
        "the found one's cells that are of it.",
        table(["true population", "changed", "cells", "found as", "holds", "pure", "found ones of it", "found to differ"], lines),
        f"Exactly the two that were changed are found to differ: {'yes' if exact else 'NO'}; the whole has p = "
        f"{said['whole_p']:.2g}; {said['witness']} atoms of the witness. " + "; ".join(said["told"]) + ".",
        f"**Cleaning** ({counted}).",
        table(["events", "there", "taken", "share"], cleaned(made, arrays)),
    ])  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
