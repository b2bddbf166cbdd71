"""A simulated study: FCS samples of two conditions with a panel, a table of samples, and the true populations.

Fourteen populations of blood are normal distributions with correlated markers on the scale asinh(x/150). Their proportions vary
between patients by 20 to 50 %. Three runs of the instrument differ slightly; each has a control sample of one donor. There are
doublets, events at the margin, and a drift in two samples. Values are put on a linear scale and mixed by a spillover matrix, which
the files contain. Two populations differ by condition: one of 0.5 % doubles, one of 5 % halves. The same seed gives the same files.
`cohort_real_data` has cohorts of real cells.

    >>> study = make("folder", seed=0, samples=11, cells=40_000)
    >>> sorted(path.name for path in study.folder.iterdir())[-4:]
    ['sample10.fcs', 'sample11.fcs', 'samples.csv', 'truth.csv']
    >>> study.changed
    ('B naive', 'CD8 T activated')
    >>> study.population["sample01.fcs"].shape  # of each event, an index into POPULATIONS
    (9090,)

The whole study: ``python -m benchmarks._lib.cohort_study_data FOLDER [SEED [SAMPLES CELLS]]``.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reduset.io import write_fcs

COFACTOR = 150.0
TOP = 262_144  # of every channel; larger values are recorded as one less
STEP = 0.01  # seconds of the clock
CONDITIONS = ("base", "stimulated")
DOUBLETS, MARGINS = 0.03, 0.005
TYPE = ("CD3", "CD4", "CD8", "CD19", "CD14", "CD16", "CD56", "HLA-DR", "CD45RA", "CCR7", "CD127", "CD25", "CD11c", "CD123")
STATE = ("CD69", "CD38", "PD-1", "Ki67", "ICOS", "GzmB")
MARKERS = TYPE + STATE
DYES = (
    *("BUV395-A", "BUV496-A", "BUV563-A", "BUV661-A", "BUV737-A", "BUV805-A", "BV421-A", "BV510-A", "BV605-A", "BV650-A"),
    *("BV711-A", "BV786-A", "FITC-A", "BB700-A", "PE-A", "PE-CF594-A", "PE-Cy5-A", "PE-Cy7-A", "APC-A", "APC-R700-A"),
)
CHANNELS = ("FSC-A", "FSC-H", "SSC-A", *DYES, "Time")

# Proportion in blood, its variation between patients, forward and side scatter, and the means of markers that are not 0.
POPULATIONS: dict[str, tuple[float, float, float, float, dict[str, float]]] = {
    "CD4 T naive": (0.35, 0.20, 60e3, 22e3, {"CD3": 4.5, "CD4": 4.6, "CD45RA": 4.4, "CCR7": 3.6, "CD127": 3.4}),
    "CD4 T memory": (
        0.15,
        0.22,
        63e3,
        24e3,
        {"CD3": 4.4, "CD4": 4.5, "CCR7": 2.0, "CD127": 3.6, "CD69": 0.8, "ICOS": 1.6, "PD-1": 1.2},
    ),
    "CD14 monocytes": (0.13, 0.30, 110e3, 80e3, {"CD14": 5.0, "HLA-DR": 4.2, "CD11c": 4.3, "CD4": 2.0, "CD38": 2.4, "CD123": 1.2}),
    "CD8 T naive": (0.09, 0.28, 60e3, 22e3, {"CD3": 4.5, "CD8": 4.8, "CD45RA": 4.6, "CCR7": 3.4, "CD127": 3.0}),
    "NK": (0.08, 0.35, 64e3, 30e3, {"CD56": 3.6, "CD16": 4.2, "CD45RA": 3.8, "GzmB": 4.0, "CD38": 2.2}),
    "CD8 T memory": (0.055, 0.30, 62e3, 25e3, {"CD3": 4.4, "CD8": 4.6, "CD127": 2.8, "CCR7": 0.8, "PD-1": 1.8, "GzmB": 1.4}),
    "B naive": (0.05, 0.30, 58e3, 21e3, {"CD19": 4.4, "HLA-DR": 4.0, "CD45RA": 4.4, "CCR7": 2.2, "CD38": 2.6}),
    "CD8 T effector": (0.03, 0.40, 64e3, 30e3, {"CD3": 4.2, "CD8": 4.6, "CD45RA": 4.2, "GzmB": 4.4, "CD16": 0.6}),
    "B memory": (0.02, 0.30, 60e3, 23e3, {"CD19": 4.6, "HLA-DR": 4.2, "CD45RA": 3.0, "CD38": 0.8, "CD25": 0.8}),
    "Treg": (0.018, 0.25, 62e3, 24e3, {"CD3": 4.3, "CD4": 4.4, "CD25": 4.2, "CD127": 0.6, "ICOS": 2.2, "CCR7": 2.2}),
    "CD16 monocytes": (0.012, 0.40, 95e3, 60e3, {"CD14": 1.6, "CD16": 4.6, "HLA-DR": 4.6, "CD11c": 4.6, "CD4": 1.4}),
    "cDC": (0.007, 0.35, 90e3, 45e3, {"HLA-DR": 5.4, "CD11c": 5.0, "CD4": 1.6, "CD38": 1.8}),
    "CD8 T activated": (
        0.005,
        0.40,
        70e3,
        32e3,
        {"CD3": 4.2, "CD8": 4.6, "HLA-DR": 3.8, "CD38": 4.4, "Ki67": 3.2, "GzmB": 3.6, "CD69": 1.8},
    ),
    "pDC": (0.003, 0.45, 75e3, 35e3, {"HLA-DR": 4.4, "CD123": 5.2, "CD45RA": 4.0, "CD4": 2.4}),
}
CHANGES = {"B naive": 0.5, "CD8 T activated": 2.0}  # in the second condition
NAMES = tuple(POPULATIONS)


@dataclass(frozen=True)
class MadeStudy:
    """The folder, and the truth about its events.

    Attributes
    ----------
    folder : with the FCS files, panel.csv, samples.csv and truth.csv
    files : their names, in the order of samples.csv
    changed : the populations that differ by condition
    drifting : the files with a drift in time
    population : by file, the index in POPULATIONS of each event (of a doublet, that of its first cell)
    doublet, margin, drifted : by file, whether each event is one
    """

    folder: Path
    files: tuple[str, ...]
    changed: tuple[str, ...]
    drifting: tuple[str, ...]
    population: dict[str, np.ndarray] = field(repr=False)
    doublet: dict[str, np.ndarray] = field(repr=False)
    margin: dict[str, np.ndarray] = field(repr=False)
    drifted: dict[str, np.ndarray] = field(repr=False)


@dataclass(frozen=True)
class Donor:
    """The donor of a sample: name, proportions of populations (K,), and the shift of their markers (K, 20)."""

    name: str
    shares: np.ndarray
    shift: np.ndarray


def make(
    folder: Any, seed: int = 0, samples: int = 37, cells: int = 2_200_000, paired: bool = True, runs: int = 3, changed: bool = True
) -> MadeStudy:
    """Write a study into a folder, which is created if necessary.

    One sample of each run is from the control donor, without a condition and with "yes" in column `control`. Half of the others are
    of each condition: two of each patient, in the same run, if ``paired``, otherwise each of a different patient. The conditions
    are balanced over the runs. With ``changed=False`` no population differs by condition.
    """
    others = samples - runs
    if others < 4 or others % 2 or cells < 200 * samples:
        raise ValueError(
            f"samples must be {runs} controls and an even number, at least 4, of 200 cells or more; got {samples}, {cells}"
        )
    rng, target = np.random.default_rng(seed), Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    laws, mixing = _laws(rng), _spillover(rng)
    shift = rng.normal(0, 0.12, (runs, len(MARKERS)))
    rows = _sample_rows(rng, others, paired, runs)
    sizes = _sizes(rng, samples, cells)
    drifting = set(rng.permutation(others)[: 2 if others >= 8 else 1].tolist())
    made = MadeStudy(
        target,
        tuple(f"sample{k + 1:02d}.fcs" for k in range(samples)),
        tuple(CHANGES) if changed else (),
        tuple(f"sample{k + 1:02d}.fcs" for k in sorted(drifting)),
        {},
        {},
        {},
        {},
    )
    for k, ((condition, donor, run), name) in enumerate(zip(rows, made.files, strict=True)):
        shares = _shares(rng, donor.shares, changed and condition == CONDITIONS[1], 0.1)
        events = _Events(rng, int(sizes[k]), shares, donor.shift + shift[run], laws, k in drifting)
        _write(target / name, events.mixed(mixing), mixing, run)
        made.population[name], made.doublet[name] = events.population.astype(np.uint8), events.doublet
        made.margin[name], made.drifted[name] = events.margin, events.drifted
    _write_tables(made, rows, laws, changed)
    return made


def _laws(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Mean (20,) and factor (20, 20) of each population: a common brightness, two more directions, and independent noise."""
    laws = []
    for *_, above in POPULATIONS.values():
        mean = np.array([above.get(marker, 0.0) for marker in MARKERS])
        spread = np.where(mean > 0, 0.42, 0.33)
        loads = np.column_stack([np.full(len(MARKERS), 0.35), rng.normal(0, 0.3, (len(MARKERS), 2))])
        covariance = spread[:, None] * (loads @ loads.T + np.diag(1 - np.minimum((loads**2).sum(axis=1), 0.7))) * spread
        laws.append((mean, np.linalg.cholesky(covariance).T))
    return laws


def _spillover(rng: np.random.Generator) -> np.ndarray:
    """A few percent between neighbours, less between the next, with four digits."""
    count = len(DYES)
    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    share = np.where(
        apart == 1, rng.uniform(0.01, 0.09, (count, count)), np.where(apart == 2, rng.uniform(0, 0.015, (count, count)), 0)
    )
    return np.round(np.where(apart == 0, 1.0, share), 4)


def _shares(rng: np.random.Generator, shares: np.ndarray, changed: bool, spread: float) -> np.ndarray:
    factors = [CHANGES.get(name, 1.0) if changed else 1.0 for name in NAMES]
    drawn = shares * factors * np.exp(rng.normal(0, spread, len(shares)))
    return drawn / drawn.sum()


def _donor(rng: np.random.Generator, name: str) -> Donor:
    base, spread = (np.array([law[place] for law in POPULATIONS.values()]) for place in (0, 1))
    shares = base * np.exp(rng.normal(0, 1.25 * spread))
    return Donor(name, shares / shares.sum(), rng.normal(0, 0.08, (len(NAMES), len(MARKERS))))


def _sample_rows(rng: np.random.Generator, others: int, paired: bool, runs: int) -> list[tuple[str, Donor, int]]:
    """Condition, donor and run of every sample, the controls last."""
    rows = []
    for k in range(others // 2):
        first = _donor(rng, f"patient{k + 1:02d}")
        second = first if paired else _donor(rng, f"patient{k + 1 + others // 2:02d}")
        rows += [(CONDITIONS[0], first, k % runs), (CONDITIONS[1], second, k % runs)]
    control = _donor(rng, "donor")
    return rows + [("", control, run) for run in range(runs)]


def _sizes(rng: np.random.Generator, samples: int, cells: int) -> np.ndarray:
    """Lognormal numbers with the right sum, each between a sixth and two and a half times the mean."""
    mean = cells / samples
    sizes = mean * np.exp(rng.normal(0, 0.8, samples))
    for _ in range(20):
        sizes = np.clip(sizes * (cells / sizes.sum()), mean / 6, 2.5 * mean)
    whole = np.floor(sizes).astype(int)
    whole[np.argsort(whole)[samples // 2]] += cells - whole.sum()
    return whole


class _Events:
    """The events of one sample in the order of their time, before dyes are mixed."""

    def __init__(
        self, rng: np.random.Generator, count: int, shares: np.ndarray, shift: np.ndarray, laws: Sequence[Any], drifts: bool
    ) -> None:
        self._rng = rng
        self.population = rng.choice(len(shares), count, p=shares)
        self.doublet = rng.random(count) < DOUBLETS
        self.margin = rng.random(count) < MARGINS
        self.time = np.sort(rng.uniform(0, count / 500.0, count))  # 500 cells a second
        late = self.time > 0.65 * self.time[-1]
        self.drifted = late & (self.time < 0.9 * self.time[-1]) if drifts else np.zeros(count, bool)
        self.dyes, self.scatter = self._cells(self.population, laws, shift, np.where(self.drifted, 0.6, 0.0))
        second = rng.choice(len(shares), int(self.doublet.sum()), p=shares)
        dyes, scatter = self._cells(second, laws, shift, np.where(self.drifted[self.doublet], 0.6, 0.0))
        self.dyes[self.doublet] += dyes
        height = self.scatter[:, 0].copy()
        height[self.doublet] = np.maximum(height[self.doublet], scatter[:, 0]) * 1.05  # two cells in a row are longer, not higher
        self.height = 0.85 * height * (1 + rng.normal(0, 0.03, count))
        self.scatter[self.doublet] += scatter

    def _cells(
        self, population: np.ndarray, laws: Sequence[Any], shift: np.ndarray, lifted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Dyes (n, 20) and scatter (n, 2) on a linear scale; ``lifted`` is added to all dyes of an event."""
        dyes = self._rng.standard_normal((len(population), len(MARKERS)), np.float32)
        for k, (mean, factor) in enumerate(laws):
            mine = population == k
            dyes[mine] = dyes[mine] @ factor.astype(np.float32) + (mean + shift[k]).astype(np.float32)
        dyes += lifted[:, None].astype(np.float32)
        sizes = np.array([[forward, side] for _, _, forward, side, _ in POPULATIONS.values()])
        scatter = sizes[population] * np.exp(self._rng.normal(0, [0.10, 0.18], (len(population), 2)))
        return COFACTOR * np.sinh(dyes), scatter

    def mixed(self, mixing: np.ndarray) -> np.ndarray:
        """(n, 24) the values of the detectors."""
        columns = [self.scatter[:, 0], self.height, self.scatter[:, 1], self.dyes @ mixing.astype(np.float32), self.time / STEP]
        events = np.column_stack(columns).astype(np.float32)
        where = self._rng.choice([0, 2, 3 + len(DYES) // 2], int(self.margin.sum()), p=[0.5, 0.3, 0.2])
        events[np.flatnonzero(self.margin), where] = TOP
        events[:, :-1] = np.minimum(events[:, :-1], TOP - 1)
        return events


def _write(path: Path, events: np.ndarray, mixing: np.ndarray, run: int) -> None:
    spill = ",".join([str(len(DYES)), *DYES, *(f"{share:g}" for share in mixing.ravel())])
    tops = {f"$P{n}R": TOP for n in range(1, len(CHANNELS))}
    keywords = {"$SPILLOVER": spill, "$TIMESTEP": STEP, "$CYT": "made", "$EXP": f"run {run + 1}", **tops}
    write_fcs(path, events, CHANNELS, ["", "", "", *MARKERS, ""], keywords)


def _write_tables(made: MadeStudy, rows: list[tuple[str, Donor, int]], laws: Sequence[Any], changed: bool) -> None:
    kinds = ["type" if marker in TYPE else "state" for marker in MARKERS]
    _write_csv(made.folder / "panel.csv", ["fcs_colname", "antigen", "marker_class"], zip(DYES, MARKERS, kinds, strict=True))
    lines = [
        [name, name.removesuffix(".fcs"), condition, donor.name, f"run{run + 1}", "" if condition else "yes"]
        for name, (condition, donor, run) in zip(made.files, rows, strict=True)
    ]
    _write_csv(made.folder / "samples.csv", ["file_name", "sample_id", "condition", "patient_id", "run", "control"], lines)
    base = np.array([law[0] for law in POPULATIONS.values()])
    other = base * [CHANGES.get(name, 1.0) if changed else 1.0 for name in NAMES]
    shares = zip(NAMES, base, other / other.sum(), laws, strict=True)
    truth = [[name, one, round(two, 6), "yes" if name in made.changed else "no", *law[0]] for name, one, two, law in shares]
    _write_csv(made.folder / "truth.csv", ["population", *CONDITIONS, "changed", *MARKERS], truth)


def _write_csv(path: Path, head: Sequence[str], lines: Any) -> None:
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([head, *lines])


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:]))
