"""Cruz Cortés & Scott 2017, Table III: mean shift on an image with all pixels (B), with SKM and with locality-sensitive hashing.

SKM is the paper's setting: at most √n k-centre atoms, ε = 10⁻⁸, weights projected onto the simplex. LSH is E2LSH with three tables
(Andoni & Indyk 2006): a step goes to the kernel-weighted mean of about five nearest pixels. It is implemented here, because no
library on PyPI has p-stable hash tables. Compared are times, the discrepancy index (ends more than three bandwidths apart) and the
Hausdorff distance between the clusterings.

Goal: SKM is faster than LSH, with the smaller discrepancy and a Hausdorff distance of at most 0.02.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numba import njit

from benchmarks._lib import table, verdict
from benchmarks.applications.mean_shift import photograph
from benchmarks.papers.cruz2017_table1 import timed
from reduset import Gaussian, KernelMean, NotReachedWarning, compress
from reduset.modes import SparseMeanShift, clustering_distance, discrepancy_index
from reduset.modes.mean_shift import find_modes, mean_shift

TITLE = "Cruz Cortés & Scott 2017, Table III: mean shift with SKM and with LSH"
TIMED = True
SOURCES = ("modes/mean_shift.py", "modes/estimator.py", "modes/clustering_metrics.py", "select/kcenter.py", "weights/weightings.py",
           "_engine/farthest.py", "_engine/sums.py")  # fmt: skip

IMAGES = ("mondrian_painting", "china")
EVERY, QUICK_EVERY = 4, 20
PAPER_ATOMS = 493  # √n of the paper's image
TABLES, NEIGHBOURS = 3, 5  # the paper's
PROJECTIONS, WIDTH = 4, 1.0  # of a table, and the width of a cell in bandwidths; the paper does not state them
STOP, MOST_STEPS = 1e-3, 300  # of a bandwidth
MORE_ATOMS = f"SKM, {PAPER_ATOMS} atoms"
PAPER = {  # seconds to prepare, seconds of mean shift, discrepancy index, Hausdorff distance
    "B, all pixels": (0.0, 7560.0, 0.0, 0.0),
    "SKM": (15.65, 39.12, 0.006, 0.015),
    "LSH": (12.7, 426.0, 0.034, 0.02),
}


@njit(cache=True)
def hashed(point: np.ndarray, directions: np.ndarray, offsets: np.ndarray, cell: float) -> int:
    """The cell of a point by p-stable projections, folded into one number."""
    key = np.int64(1469598103)
    for j in range(len(offsets)):
        total = offsets[j]
        for c in range(len(point)):
            total += directions[j, c] * point[c]
        key = (key * np.int64(1000003)) ^ np.int64(np.floor(total / cell))
    return key


@njit(cache=True)
def keys_of(X: np.ndarray, directions: np.ndarray, offsets: np.ndarray, cell: float) -> np.ndarray:
    out = np.empty((len(directions), len(X)), np.int64)
    for t in range(len(directions)):
        for i in range(len(X)):
            out[t, i] = hashed(X[i], directions[t], offsets[t], cell)
    return out


@njit(cache=True)
def climb(
    X: np.ndarray, keys: np.ndarray, order: np.ndarray, directions: np.ndarray, offsets: np.ndarray, cell: float, h: float,
    wanted: int, stop: float, most: int,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Where every row of X comes to rest, and how often no row was in any of its cells."""
    n, d = X.shape
    ends, empty = np.empty_like(X), 0
    for start in range(n):
        x = X[start].copy()
        for _ in range(most):
            near, rows = np.full(wanted, np.inf), np.full(wanted, -1)
            for t in range(len(keys)):
                key = hashed(x, directions[t], offsets[t], cell)
                k = np.searchsorted(keys[t], key)
                while k < n and keys[t, k] == key:
                    i = order[t, k]
                    k += 1
                    r2 = 0.0
                    for c in range(d):
                        r2 += (X[i, c] - x[c]) ** 2
                    if r2 < near[wanted - 1] and not (rows == i).any():
                        place = wanted - 1
                        while place > 0 and near[place - 1] > r2:
                            near[place], rows[place] = near[place - 1], rows[place - 1]
                            place -= 1
                        near[place], rows[place] = r2, i
            if rows[0] < 0:
                empty += 1
                break
            total, target = 0.0, np.zeros(d)
            for k in range(wanted):
                if rows[k] >= 0:
                    weight = np.exp(-(near[k] - near[0]) / (2 * h * h))
                    total += weight
                    target += weight * X[rows[k]]
            target /= total
            moved = np.sqrt(np.sum((target - x) ** 2))
            x = target
            if moved < stop * h:
                break
        ends[start] = x
    return ends, empty


@njit(cache=True)
def merged(ends: np.ndarray, radius: float) -> np.ndarray:
    """Labels: an end joins the first centre within the radius, or is a new one (Comaniciu & Meer's merging, in order)."""
    labels, centres, count = np.empty(len(ends), np.int64), np.empty_like(ends), 0
    for i in range(len(ends)):
        labels[i] = -1
        for k in range(count):
            if np.sum((ends[i] - centres[k]) ** 2) <= radius * radius:
                labels[i] = k
                break
        if labels[i] < 0:
            centres[count] = ends[i]
            labels[i] = count
            count += 1
    return labels


class HashTables:
    """E2LSH: in each of three tables, rows in the same cell of four projections."""

    def __init__(self, X: np.ndarray, h: float, rng: np.random.Generator) -> None:
        self.X, self.h, self.cell = np.ascontiguousarray(X), h, WIDTH * h
        self.directions = rng.normal(size=(TABLES, PROJECTIONS, X.shape[1]))
        self.offsets = rng.uniform(0, self.cell, size=(TABLES, PROJECTIONS))
        keys = keys_of(self.X, self.directions, self.offsets, self.cell)
        self.order = np.argsort(keys, axis=1, kind="stable")
        self.keys = np.take_along_axis(keys, self.order, axis=1)

    def climb(self) -> tuple[np.ndarray, int]:
        ways = (self.directions, self.offsets, self.cell, self.h, NEIGHBOURS, STOP, MOST_STEPS)
        return climb(self.X, self.keys, self.order, *ways)


def skm(X: np.ndarray, **goal: Any) -> SparseMeanShift:
    goal = goal or {"plateau": 1e-8, "max_size": "sqrt"}
    shift = SparseMeanShift(select="kcenter", weights="simplex_projection", finish=False, random_state=0, **goal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotReachedWarning)  # √n atoms are a limit here, as in the paper
        return shift.fit(X)


def compressed(full: KernelMean, **goal: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotReachedWarning)
        return compress(full, select="kcenter", weights="simplex_projection", rng=0, **goal)


def of_image(name: str, every: int) -> dict[str, Any]:
    X = photograph(name, every)
    skm(X[::50])  # compiles
    ways: dict[str, dict[str, Any]] = {"SKM": {}}
    if len(X) > 2 * PAPER_ATOMS:
        ways[MORE_ATOMS] = {"size": PAPER_ATOMS}
    shifts = {way: timed(lambda g=goal: skm(X, **g)) for way, goal in ways.items()}
    h = shifts["SKM"][0].bandwidth_
    full = KernelMean.from_samples(X, Gaussian(h, normalized=True, space="l2"))
    ran, full_time = timed(lambda: mean_shift(full, X, merge_distance=0.0))
    _, mode_of = find_modes(full, ran.limits, 1.0)
    labels = mode_of[ran.assignments]
    found: dict[str, Any] = {"image": name, "pixels": len(X), "bandwidth": h}
    found["B, all pixels"] = [0.0, full_time, 0.0, 0.0, int(labels.max()) + 1]
    for way, (shift, whole) in shifts.items():
        goal = ways[way] or {"plateau": 1e-8, "max_size": math.isqrt(len(X) - 1)}
        _, prepared = timed(lambda g=goal: compressed(full, **g))
        index, distance = discrepancy_index(shift.ends_, ran.ends, 3 * h), clustering_distance(shift.labels_, labels)
        found[way] = [prepared, whole - prepared, index, distance, len(shift.cluster_centers_)]
        found[f"{way}, atoms"] = [shift.compression_.selected, shift.certificate_.relative_error]
    HashTables(X[:100], h, np.random.default_rng(0)).climb()  # compiles
    tables, prepared = timed(lambda: HashTables(X, h, np.random.default_rng(0)))
    (ends, _), climbed = timed(tables.climb)
    lsh_labels = merged(ends, h)
    index, distance = discrepancy_index(ends, ran.ends, 3 * h), clustering_distance(lsh_labels, labels)
    found["LSH"] = [prepared, climbed, index, distance, int(lsh_labels.max()) + 1]
    return found


def measure(quick: bool) -> dict[str, Any]:
    names = IMAGES[:1] if quick else IMAGES
    return {"images": [of_image(name, QUICK_EVERY if quick else EVERY) for name in names]}


def summary(figures: dict[str, Any]) -> list[list[str]]:
    images = figures["images"]
    pairs = [(found["SKM"], found["LSH"]) for found in images]
    seconds = [(sum(skm[:2]), sum(lsh[:2])) for skm, lsh in pairs]
    off = [(skm[2], lsh[2]) for skm, lsh in pairs]

    def lower(values: list[tuple[float, float]]) -> str:
        return verdict(min(lsh - skm for skm, lsh in values), 0.0)

    def shown(values: list[tuple[float, float]], digits: int) -> str:
        return "; ".join(f"{skm:.{digits}f}, {lsh:.{digits}f}" for skm, lsh in values)

    rows = [
        ["seconds: SKM, LSH, each image", shown(seconds, 2), "SKM lower", lower(seconds)],
        ["discrepancy: SKM, LSH", shown(off, 4), "SKM lower", lower(off)],
        ["Hausdorff distance of SKM", "; ".join(f"{skm[3]:.4f}" for skm, _ in pairs), "≤ 0.02",
         verdict(0.02, max(skm[3] for skm, _ in pairs))],
    ]  # fmt: skip
    more = [f"{found[MORE_ATOMS][3]:.4f}" for found in images if MORE_ATOMS in found]
    return [*rows, [f"the same with {PAPER_ATOMS} atoms", "; ".join(more), "", ""]] if more else rows


def details(figures: dict[str, Any]) -> str:
    rows, goals, sizes = [], [], []
    for found in figures["images"]:
        for name in ("B, all pixels", "SKM", MORE_ATOMS, "LSH"):
            if name not in found:
                continue
            paper, ours = PAPER.get(name, PAPER["SKM"]), found[name]
            rows.append([found["image"], name, f"{paper[0]:g} → {ours[0]:.2f}", f"{paper[1]:,g} → {ours[1]:.2f}"])
            rows[-1] += [f"{paper[0] + paper[1]:,.0f} → {ours[0] + ours[1]:.2f}", f"{paper[2]:g} → {ours[2]:.4f}"]
            rows[-1] += [f"{paper[3]:g} → {ours[3]:.4f}", str(ours[4])]
        sparse, hashed_ = found["SKM"], found["LSH"]
        goals.append(
            f"{found['image']}: SKM faster than LSH {verdict(sum(hashed_[:2]), sum(sparse[:2]))}, smaller discrepancy "
            f"{verdict(hashed_[2], sparse[2])}, Hausdorff distance at most 0.02 {verdict(0.02, sparse[3])}"
        )
        atoms, error = found["SKM, atoms"]
        sizes.append(f"{found['image']} {found['pixels']:,} pixels, {atoms} atoms, error {error:.2g}")
        if MORE_ATOMS in found:
            sizes[-1] += f" (with {found[f'{MORE_ATOMS}, atoms'][0]}: {found[f'{MORE_ATOMS}, atoms'][1]:.2g})"
    head = ["image", "density", "preparation, s", "mean shift, s", "total, s", "discrepancy", "Hausdorff", "modes"]
    return (
        "Paper → ours.\n\n"
        + table(head, rows)
        + f"\n\n{'. '.join(goals)}.\n\nEvery {EVERY}th pixel of each image, bandwidth by equation (18) of Chen et al.: "
        + "; ".join(sizes)
        + ". Seconds of processor time. Causes of the differences: the paper's image, 500 × 487 pixels of another painting, has "
        "some ten times as many pixels; its times are Matlab's. √n is three times as many atoms there, as in the row of 493. "
        "More atoms need not lower the error: the projection of free weights onto the simplex can be far from the best weights; "
        "the section on mean shift has these, and meets the paper's distances. LSH uses five pixels of thousands: its density is "
        "much rougher than the kernel's, its ends stay near their own pixel, and it has many more modes. The paper merges modes "
        "over a larger, unstated distance; here it is one bandwidth for all. Its hash functions are not stated either: here "
        f"{PROJECTIONS} projections in cells of {WIDTH:g} bandwidth."
    )
