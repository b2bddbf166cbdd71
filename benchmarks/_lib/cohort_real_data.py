"""Cohorts of real cells with a planted population: groups of samples with a known difference and real variability.

Fifteen blood samples of 10,000 cells (`cyto_itn15.npz`, three patient groups of five) are cut into samples that share no cells.
A proportion of each is activated CD8 T cells: real cells that are in no sample, shifted to the staining of the patient (minus the
median of the donor's CD8 T cells, plus that of the patient's) and raised in CD69 and HLADr. With factor=1 the groups are
exchangeable.

    >>> cohort = real_cohort(data_folder(), np.random.default_rng(0))
    >>> len(cohort.bags), cohort.bags[0].shape, cohort.moved
    (16, (5000, 7), {'CD69': 2.0, 'HLADr': 2.5})
    >>> [float(planted.mean()) for planted in cohort.planted][:2]
    [0.008, 0.0036]
    >>> pairs = paired_cohort(data_folder(), np.random.default_rng(0), pairs=8)
    >>> pairs.labels[:4].tolist(), pairs.patients[:4].tolist()
    (['A', 'B', 'A', 'B'], ['pid01034', 'pid01034', 'pid04045', 'pid04045'])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

MARKERS = ("FSC", "SSC", "CD8", "CD69", "CD4", "CD3", "HLADr")
SCATTER = 200.0  # divides FSC and SSC, of 0 to 1023, to the units of the others
COFACTOR = 5.0  # of asinh, for fluorescences of 1 to 10,000
MOVED = {"CD69": 2.0, "HLADr": 2.5}
GROUPS = ("A", "B")


@dataclass(frozen=True)
class PlantedCohort:
    """Samples of two groups.

    Attributes
    ----------
    bags : (n, 7) for each sample, fluorescences as asinh(x/5), scatter over 200
    labels : (N,) the group, "A" or "B"; planted cells are `factor` times as many in B
    patients : (N,) the patient, which is the block of a paired design
    planted : (n,) for each sample, whether a cell was planted
    moved : by marker, how far planted cells are raised
    markers : the names of the columns
    """

    bags: list[np.ndarray] = field(repr=False)
    labels: np.ndarray
    patients: np.ndarray
    planted: list[np.ndarray] = field(repr=False)
    moved: Mapping[str, float]
    markers: tuple[str, ...] = MARKERS


@dataclass(frozen=True)
class Blood:
    """The cells (P, n, 7), the patients and their groups (P,), and whether each cell is a small CD8 T cell (P, n)."""

    cells: np.ndarray
    patients: np.ndarray
    groups: np.ndarray
    killers: np.ndarray

    @property
    def centres(self) -> np.ndarray:
        """(P, 7) medians of the CD8 T cells."""
        return np.array([np.median(cells[chosen], axis=0) for cells, chosen in zip(self.cells, self.killers, strict=True)])


@lru_cache(maxsize=2)
def blood(data_folder: Path) -> Blood:
    with np.load(Path(data_folder) / "cyto_itn15.npz", allow_pickle=False) as stored:
        raw, patients, groups = stored["X"][:, :, :7].astype(np.float64), stored["patient"], stored["patient_group"]
    cells = np.concatenate([raw[:, :, :2] / SCATTER, np.arcsinh(raw[:, :, 2:] / COFACTOR)], axis=2)
    side, cd8, cd4, cd3 = (cells[:, :, MARKERS.index(name)] for name in ("SSC", "CD8", "CD4", "CD3"))
    return Blood(cells, patients, groups, (side < 2.0) & (cd8 > 2.6) & (cd4 < 2.2) & (cd3 > 2.2))


def real_cohort(
    data_folder: Path,
    rng: np.random.Generator,
    groups: tuple[int, int] = (8, 8),
    share: float = 0.005,
    factor: float = 2.0,
    spread: float = 0.3,
    cells: int = 5000,
    moved: Mapping[str, float] = MOVED,
) -> PlantedCohort:
    """Samples of different patients as long as there are enough; two samples of one patient share no cells.

    Each group has the same mixture of patient groups (if they have the same size); within a patient group, samples go to A and B at
    random. The proportion of planted cells is share·exp(N(0, spread²)) in A, factor times that in B.
    """
    source = blood(Path(data_folder))
    rows, order = source.cells.shape[1], rng.permutation(len(np.unique(source.groups)))
    slots = [(patient, half) for half in range(rows // cells) for patient in rng.permutation(len(source.cells))]
    chosen: list[tuple[int, int, str]] = []
    for place, code in enumerate(order):
        mine = [slot for slot in slots if source.groups[slot[0]] == np.unique(source.groups)[code]]
        wanted = [group for group, size in zip(GROUPS, groups, strict=True) for _ in range(_dealt(size, len(order), place))]
        if len(wanted) > len(mine):
            raise ValueError(f"groups must be of at most {len(slots)} samples of {cells} cells, got {groups}")
        drawn = rng.permutation(len(wanted))  # a random assignment of the first slots
        chosen += [(*mine[slot], group) for slot, group in zip(drawn, wanted, strict=True)]
    chosen = [chosen[k] for k in rng.permutation(len(chosen))]
    means = [share * np.exp(rng.normal(0, spread)) * (factor if group == "B" else 1.0) for _, _, group in chosen]
    return _planted(source, rng, chosen, means, cells, moved)


def paired_cohort(
    data_folder: Path,
    rng: np.random.Generator,
    pairs: int = 8,
    share: float = 0.005,
    factor: float = 2.0,
    spread: float = 0.8,
    within: float = 0.15,
    cells: int = 4500,
    moved: Mapping[str, float] = MOVED,
) -> PlantedCohort:
    """Two samples of each patient, one in A and one in B, which share no cells.

    A patient's proportion of planted cells is share·exp(N(0, spread²)), which varies so much that the factor shows only within
    pairs. Each of the two samples varies from it by exp(N(0, within²)); the one in B is multiplied by factor as well.
    """
    source = blood(Path(data_folder))
    if pairs > len(source.cells) or 2 * cells > source.cells.shape[1]:
        raise ValueError(
            f"pairs must be at most {len(source.cells)}, of at most {source.cells.shape[1] // 2} cells; got {pairs}, {cells}"
        )
    patients = rng.permutation(len(source.cells))[:pairs]
    chosen = [(int(patient), half, GROUPS[half]) for patient in patients for half in range(2)]
    own = np.repeat(share * np.exp(rng.normal(0, spread, pairs)), 2) * np.exp(rng.normal(0, within, 2 * pairs))
    means = [float(mean) * (factor if group == "B" else 1.0) for mean, (_, _, group) in zip(own, chosen, strict=True)]
    return _planted(source, rng, chosen, means, cells, moved)


def dense_cohort(
    data_folder: Path,
    rng: np.random.Generator,
    spread: float,
    pairs: int = 8,
    shares: tuple[float, float] = (0.005, 0.0125),
    within: float = 0.15,
    cells: int = 6000,
) -> PlantedCohort:
    """Two samples of each patient, drawn with replacement, with a dense cluster whose proportion is larger in B.

    The cluster is at a random place near the cells, and normal with ``spread`` standard deviations of each marker. Its proportion
    in a sample varies by exp(N(0, within²)).
    """
    source, columns = blood(Path(data_folder)), np.arange(1, len(MARKERS))
    every = source.cells[:, :, columns].reshape(-1, len(columns))
    scale = every.std(axis=0)
    centre = every[rng.integers(len(every))] + rng.normal(0, 0.5, len(columns)) * scale
    bags, planted, chosen = [], [], rng.permutation(len(source.cells))[:pairs]
    for patient in chosen:
        for share in shares:
            bag = source.cells[patient][rng.integers(source.cells.shape[1], size=cells)][:, columns]
            bag += rng.normal(0, 0.02, bag.shape) * scale  # cells that are drawn twice differ
            there = rng.random(cells) < share * np.exp(rng.normal(0, within))
            bag[there] = centre + rng.normal(0, spread, (int(there.sum()), len(columns))) * scale
            bags.append(bag)
            planted.append(there)
    return PlantedCohort(bags, np.array(list(GROUPS) * pairs), source.patients[np.repeat(chosen, 2)], planted, {}, MARKERS[1:])


def _dealt(size: int, parts: int, place: int) -> int:
    """The number of ``size`` items in one of several parts of nearly equal size."""
    return size // parts + (place < size % parts)


def _planted(
    source: Blood,
    rng: np.random.Generator,
    chosen: list[tuple[int, int, str]],
    means: list[float],
    cells: int,
    moved: Mapping[str, float],
) -> PlantedCohort:
    """Samples (patient, part of the patient's cells, group), with planted cells in place of as many others."""
    order = [rng.permutation(source.cells.shape[1]) for _ in source.cells]
    used = np.zeros(source.killers.shape, bool)
    for patient, part, _ in chosen:
        used[patient, order[patient][part * cells : (part + 1) * cells]] = True
    donors, places = np.nonzero(source.killers & ~used)
    centres = source.centres
    pool = source.cells[donors, places] - centres[donors]
    pool = pool[np.argsort((pool**2).sum(axis=1))[: len(pool) // 2]]  # a small neighbourhood
    shift = np.array([moved.get(name, 0.0) for name in MARKERS])
    bags, planted = [], []
    for (patient, part, _), mean in zip(chosen, means, strict=True):
        bag = source.cells[patient, order[patient][part * cells : (part + 1) * cells]].copy()
        count = min(int(rng.binomial(cells, min(mean, 0.5))), len(pool))
        there = np.zeros(cells, bool)
        there[rng.permutation(cells)[:count]] = True
        bag[there] = pool[rng.permutation(len(pool))[:count]] + centres[patient] + shift
        bags.append(bag)
        planted.append(there)
    labels, patients = np.array([group for *_, group in chosen]), source.patients[[patient for patient, *_ in chosen]]
    return PlantedCohort(bags, labels, patients, planted, dict(moved))
