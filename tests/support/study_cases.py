"""A small cohort study: twelve samples of 400 cells, half with twice as many of a rare population, from memory or files."""

from __future__ import annotations

from functools import cache

import numpy as np

from io_cases import write_fcs
from reduset.cytometry import CohortStudy, SampleSet, read_cohort

SAMPLES, CELLS = 12, 400
MARKERS = ("CD3", "HLA/DR", "Ki67")
CHANNELS = ("Time", "FSC-A", "FITC-A", "PE-A", "APC-A")
COMMON, RARE = (6.0, 1.0, 3.0), (1.0, 6.0, 3.0)


def sample_cells(k, cells=CELLS):
    """Cells of two populations; the later half of the samples have twice as many of the rare one."""
    rng = np.random.default_rng(k)
    rare = rng.random(cells) < (0.1 if k < SAMPLES // 2 else 0.2)
    return np.where(rare[:, None], RARE, COMMON) + rng.normal(0, 0.4, (cells, len(MARKERS)))


def sample_table(names):
    """Texts, numbers, flags and missing entries, under names that files do not like."""
    return {
        "sample_id": list(names),
        "condition": ["healthy"] * 6 + ["ill"] * 6,
        "run": ["a", "b"] * 6,
        "age": [40 + k for k in range(SAMPLES)],
        "weight/kg": [None if k == 3 else 60.5 + k for k in range(SAMPLES)],
        "site": [None if k == 4 else f"clinic {k % 3}" for k in range(SAMPLES)],
        "n_cells": ["many"] * SAMPLES,
        "treated": [k % 2 == 0 for k in range(SAMPLES)],
        "ward": [None] * SAMPLES,
    }


@cache
def study_in_memory():
    """A study of arrays; do not change it."""
    names = [f"p{k}" for k in range(SAMPLES)]
    cells = tuple(sample_cells(k) for k in range(SAMPLES))
    table = {name: tuple(column) for name, column in sample_table(names).items()}
    samples = SampleSet(tuple(names), cells, MARKERS, table, frozenset({"Ki67"}), left_out={"p99": "has no cells"})
    options = {"test": "condition", "batch": "run", "covariates": ("age",), "n_atoms": 60, "random_state": 0}
    return CohortStudy(**options).fit(samples)


@cache
def plain_study():
    """A study of two samples in which nothing is compared."""
    return CohortStudy(n_atoms=20, random_state=0).fit([sample_cells(k, 100) for k in (0, 7)])


def linear_events(k, cells=CELLS):
    """Events as an instrument writes them, time and scatter before the markers."""
    rng = np.random.default_rng(100 + k)
    markers = 150 * np.sinh(sample_cells(k, cells))
    return np.column_stack([np.arange(cells), rng.uniform(2e4, 1e5, cells), markers]).astype(np.float32)


def write_lab(folder, samples=SAMPLES, channels=None):
    """The files of a lab, s0.fcs and so on, with labels of markers; ``channels`` are those of a file, by its number."""
    folder.mkdir(exist_ok=True)
    for k in range(samples):
        names = (channels or {}).get(k, CHANNELS)
        labels = {f"$P{n}S": marker for n, marker in enumerate(MARKERS, 3)}
        write_fcs(folder / f"s{k}.fcs", linear_events(k), names, ranges=[262144] * len(names), extra=labels)
    return folder


def study_of_files(folder, **read):
    """A study of such a folder, of groups where all samples are there."""
    count = len(list(folder.iterdir()))
    names = [f"s{k}" for k in range(count)]
    table = sample_table([*names, *[""] * (SAMPLES - count)]) | {"file_name": [f"{name}.fcs" for name in names]}
    table = {name: ["" if entry is None else str(entry) for entry in column[:count]] for name, column in table.items()}
    samples = read_cohort(folder, samples=table, **({"transform": "asinh:150", "clean": ("margin",)} | read))
    return CohortStudy(test="condition" if count == SAMPLES else None, n_atoms=30, random_state=0).fit(samples)
