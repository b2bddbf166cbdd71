"""Mean shift on few atoms or components, against the full density and against scikit-learn.

Full is plain mean shift on the same engine: every point climbs to the end, on all points. A photograph's would take hours, so that
it is timed from some of its pixels and scaled; on images of every fourth pixel it is run whole, and the results are compared.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.cluster import MeanShift

from benchmarks._lib import data_folder, medians, seconds, table, verdict
from reduset import Gaussian, KernelMean
from reduset.modes import SparseMeanShift, clustering_distance, discrepancy_index
from reduset.modes.mean_shift import find_modes, mean_shift
from reduset.modes.segmentation import features, pixels

TITLE = "Mean shift"

STARTS = 150  # pixels from which the full climb is timed, in turns with ours
EVERY = 4
REDUCED = ("china", "mondrian_painting")
FASTER, AGAINST_SKLEARN = 1000.0, 20.0
DISCREPANCY, HAUSDORFF = 0.006, 0.015
ROWS = 50_000

RADIUS = 25 / 255  # of groups of colours, as in Table I of the 2010 paper
COLOURS = ("china", "chelsea", "mondrian_painting", "coffee")
COLOURS_HAUSDORFF = 0.02
FINE = 0.03  # a bandwidth at which images have many modes
TABLE_I = (
    "squirrel 60,192 pixels, 81 components, 6,754×; hand 73,386, 120, 4,799×; house 48,960, 159, 5,839×; lake 262,144, 440, 911×"
)


def photograph(name: str, every: int = 1, spatial: float = 1.0) -> np.ndarray:
    with np.load(data_folder() / "images_std.npz", allow_pickle=False) as file:
        return features(pixels(file[name][::every, ::every]), spatial)


def by_mixture(**options: Any) -> SparseMeanShift:
    """Components; the 2010 paper's way, groups of one radius whose modes are taken as they are, where nothing else is said."""
    return SparseMeanShift(**{"via": "mixture", "radius": RADIUS, "finish": False, "random_state": 0} | options)


def at_the_resolution() -> SparseMeanShift:
    """The default of components, at the narrow bandwidth: groups of two bandwidths, and modes of all rows."""
    return by_mixture(bandwidth=FINE, radius=None, finish=None)


def whole_photograph(name: str, shift: SparseMeanShift, spatial: float = 1.0) -> list[str]:
    X = photograph(name, spatial=spatial)
    shift.fit(X)  # compiles
    full = KernelMean.from_samples(X, Gaussian(shift.bandwidth_))
    some = X[np.random.default_rng(0).choice(len(X), STARTS, replace=False)]
    times = medians(3, mine=lambda: shift.fit(X), whole=lambda: mean_shift(full, some, meet=0.0))
    mine, whole = times["mine"], times["whole"] * len(X) / STARTS
    return [
        f"{name}, {len(X):,} pixels",
        f"{mine:.2f} s, {described(shift)}",
        f"{whole:,.0f} s (from {STARTS} pixels, scaled)",
        f"{whole / mine:,.0f}×",
        f"{FASTER:,.0f}×",
        verdict(whole / mine, FASTER),
    ]


def whole_colours(name: str, shift: SparseMeanShift) -> list[str]:
    """As `whole_photograph`, and the distance to all colours climbed on the density of all, trajectories that meet as one."""
    row = whole_photograph(name, shift, 0.0)
    X = photograph(name, spatial=0.0)
    colours, which, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    full = KernelMean(colours, counts / len(X), Gaussian(shift.bandwidth_, normalized=True))
    ran = mean_shift(full, colours)
    modes, mode_of = find_modes(full, ran.limits, shift.merge)
    row[2] += f", {len(modes)} modes"
    distance = clustering_distance(shift.labels_, mode_of[ran.owner][which.ravel()])
    met = "yes" if row.pop() == "yes" and distance <= COLOURS_HAUSDORFF else "NO"
    return [*row, f"{distance:.4f}", f"{COLOURS_HAUSDORFF}", met]


def described(shift: SparseMeanShift) -> str:
    error = shift.certificate_.relative_error
    few = f"{shift.mean_.size} atoms" if shift.mixture_ is None else f"{shift.mixture_.size} components"
    return f"{few}, error {error:.2g}, {len(shift.cluster_centers_)} modes"


def reduced(name: str, shift: SparseMeanShift, most: float, spatial: float = 1.0) -> list[str]:
    X = photograph(name, EVERY, spatial)
    shift.fit(X)
    mine = seconds(lambda: shift.fit(X))
    ends, labels, whole = plain(name, spatial, shift.bandwidth_)
    index = discrepancy_index(shift.ends_, ends, 3 * shift.bandwidth_)
    distance = clustering_distance(shift.labels_, labels)
    return [
        f"{name}, every {EVERY}th pixel, {len(X):,}",
        f"{mine:.2f} s, {described(shift)}",
        f"{whole:.1f} s, {labels.max() + 1} modes",
        f"{index:.4f}",
        f"{DISCREPANCY}",
        f"{distance:.4f}",
        f"{most}",
        "yes" if index <= DISCREPANCY and distance <= most else "NO",
    ]


@cache
def plain(name: str, spatial: float, bandwidth: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The plain algorithm on a reduced image: ends, labels and seconds."""
    X = photograph(name, EVERY, spatial)
    full = KernelMean.from_samples(X, Gaussian(bandwidth, normalized=True))
    ran: list[Any] = []
    whole = seconds(lambda: ran.append(mean_shift(full, X, meet=0.0)))
    _, mode_of = find_modes(full, ran[0].limits, SparseMeanShift().merge)
    return ran[0].ends, mode_of[ran[0].owner], whole


def against_sklearn() -> list[str]:
    rng = np.random.default_rng(0)
    centres = rng.uniform(-10, 10, size=(12, 3))
    X = centres[rng.integers(12, size=ROWS)] + rng.normal(size=(ROWS, 3))
    bandwidth = 1.0
    ours, theirs = SparseMeanShift(bandwidth=bandwidth, random_state=0), MeanShift(bandwidth=bandwidth, bin_seeding=True)
    ours.fit(X)
    mine = float(np.median([seconds(lambda: ours.fit(X)) for _ in range(3)]))
    other = seconds(lambda: theirs.fit(X))
    return [
        f"{ROWS:,}×3, twelve clusters, bandwidth {bandwidth}",
        f"{mine:.2f} s, {len(ours.cluster_centers_)} modes",
        f"{other:.1f} s, {len(theirs.cluster_centers_)} modes",
        f"{other / mine:.0f}×",
        f"{AGAINST_SKLEARN:.0f}×",
        verdict(other / mine, AGAINST_SKLEARN),
    ]


def run() -> str:
    head = ["image", "SparseMeanShift", "full", "faster by", "goal", "met"]
    first = table(head, [whole_photograph("china", SparseMeanShift(random_state=0))])
    colours = table([*head[:-1], "Hausdorff", "at most", "met"], [whole_colours(name, by_mixture()) for name in COLOURS])
    narrow = table([*head[:-1], "Hausdorff", "at most", "met"], [whole_colours(name, at_the_resolution()) for name in COLOURS])
    head = ["image", "SparseMeanShift", "full", "discrepancy", "at most", "Hausdorff", "at most", "met"]
    second = table(head, [reduced(name, SparseMeanShift(random_state=0), HAUSDORFF) for name in REDUCED])
    reduced_colours = table(head, [reduced(name, by_mixture(), COLOURS_HAUSDORFF, 0.0) for name in COLOURS])
    ways = {
        "25/255, as in the paper": by_mixture(bandwidth=FINE),
        "25/255, modes of all rows": by_mixture(bandwidth=FINE, finish=True),
        "two bandwidths, as in the paper": by_mixture(bandwidth=FINE, radius=2 * FINE),
        "by default: two bandwidths, modes of all rows": at_the_resolution(),
    }
    fine = [[words, *reduced(name, shift, COLOURS_HAUSDORFF, 0.0)] for words, shift in ways.items() for name in COLOURS]
    finer = table(["radius", *head], fine)
    third = table(["points", "SparseMeanShift", "MeanShift(bin_seeding=True)", "faster by", "goal", "met"], [against_sklearn()])
    return (
        f"{first}\n\n{second}\n\n{third}\n\nDefault settings, fitting included; bandwidth by the rule `mode_clustering`. The "
        "limits of discrepancy (δ three bandwidths) and of Hausdorff distance are what the 2017 paper reports in its Table III, "
        "for another painting.\n\n"
        f"By way of a mixture, colours alone, `radius=25/255`, else the same:\n\n{colours}\n\n{reduced_colours}\n\n"
        "On whole images the distance is to the density of all pixels, climbed from all colours, trajectories that meet as "
        "one; on reduced ones to the plain algorithm. "
        f"At a bandwidth of {FINE}, where there are more modes to be told apart, a radius of several bandwidths is too coarse. "
        "Components at the resolution, which is the default: groups of two bandwidths, and the places where points come to rest "
        f"climb on, on the density of all rows. On whole images:\n\n{narrow}\n\n"
        f"On reduced ones, beside the paper's way:\n\n{finer}\n\n"
        f"The 2010 paper's Table I, with groups of this radius, on images and computers of its own: {TABLE_I}."
    )
