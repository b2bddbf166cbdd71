"""How fast and how exact is mean shift on few atoms or components, for photographs?

Against plain mean shift on the same engine, where every point climbs on all points, and against scikit-learn. That takes hours for
a photograph, so it is timed from some pixels and scaled; on every fourth pixel it runs whole, and results are compared. Goals:
1,000 times as fast as plain, 20 times as scikit-learn; discrepancy and Hausdorff distance as in the 2017 paper (0.006 and 0.015;
0.02 for colours)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import MeanShift

from benchmarks._lib import data_folder, medians, seconds, table, verdict
from reduset import Gaussian, KernelMean
from reduset.modes import SparseMeanShift, clustering_distance, discrepancy_index
from reduset.modes.mean_shift import find_modes, mean_shift
from reduset.modes.segmentation import features, pixels

TITLE = "Mean shift"
SOURCES = ("modes", "compression", "simplification", "mixture")


class Sizes(NamedTuple):
    """What is measured."""

    whole: int  # every so many pixels of a whole image, in both directions
    every: int  # and of a reduced one
    starts: int  # pixels from which the full climb is timed
    reduced: tuple[str, ...]  # images in colours and places
    colours: tuple[str, ...]  # images in colours alone
    rows: int  # against scikit-learn
    repeats: int


FULL = Sizes(1, 4, 150, ("china", "mondrian_painting"), ("china", "chelsea", "mondrian_painting", "coffee"), 50_000, 3)
QUICK = Sizes(12, 20, 10, ("china",), ("coffee",), 1_000, 1)
FASTER, AGAINST_SKLEARN = 1000.0, 20.0
DISCREPANCY, HAUSDORFF, COLOURS_HAUSDORFF = 0.006, 0.015, 0.02
RADIUS = 25 / 255  # of groups of colours, as in Table I of the 2010 paper
FINE = 0.03  # a bandwidth at which images have many modes
TABLE_I = (
    "squirrel 60,192 pixels, 81 components, 6,754×; hand 73,386, 120, 4,799×; house 48,960, 159, 5,839×; lake 262,144, 440, 911×"
)
WHOLE = ["image", "SparseMeanShift", "full"], ["faster by", "goal", "Hausdorff", "at most", "met"]
REDUCED = ["image", "SparseMeanShift", "full"], ["discrepancy", "at most", "Hausdorff", "at most", "met"]  # heads of tables


def photograph(name: str, every: int = 1, spatial: float = 1.0) -> np.ndarray:
    with np.load(data_folder() / "images_std.npz", allow_pickle=False) as file:
        return features(pixels(file[name][::every, ::every]), spatial)


def by_mixture(**options: Any) -> SparseMeanShift:
    """Components; by default the 2010 paper's method: groups of one radius, whose modes are final."""
    return SparseMeanShift(**{"via": "mixture", "radius": RADIUS, "finish": False, "random_state": 0} | options)


def at_the_resolution() -> SparseMeanShift:
    """The default of components, at the narrow bandwidth: groups of two bandwidths, and modes of the density of all rows."""
    return by_mixture(bandwidth=FINE, radius=None, finish=None)


def described(shift: SparseMeanShift) -> str:
    few = f"{shift.mean_.size} atoms" if shift.mixture_ is None else f"{shift.mixture_.size} components"
    return f"{few}, error {shift.certificate_.relative_error:.2g}, {len(shift.cluster_centers_)} modes"


def whole_photograph(name: str, shift: SparseMeanShift, sizes: Sizes, spatial: float = 1.0) -> tuple[list[str], float]:
    """A row of the table, and how many times faster than the full climb."""
    X = photograph(name, sizes.whole, spatial)
    shift.fit(X)  # compiles
    full = KernelMean.from_samples(X, Gaussian(shift.bandwidth_))
    some = X[np.random.default_rng(0).choice(len(X), sizes.starts, replace=False)]
    times = medians(sizes.repeats, mine=lambda: shift.fit(X), whole=lambda: mean_shift(full, some, merge_distance=0.0))
    mine, whole = times["mine"], times["whole"] * len(X) / sizes.starts
    cells = [f"{name}, {len(X):,} pixels", f"{mine:.2f} s, {described(shift)}"]
    cells += [f"{whole:,.0f} s (from {sizes.starts} pixels, scaled)", f"{whole / mine:,.0f}×", f"{FASTER:,.0f}×"]
    return [*cells, verdict(whole / mine, FASTER)], whole / mine


def whole_colours(name: str, shift: SparseMeanShift, sizes: Sizes) -> tuple[list[str], float, float]:
    """A row of the table, how many times faster, and the distance to all colours climbed on the density of all pixels."""
    row, faster = whole_photograph(name, shift, sizes, 0.0)
    X = photograph(name, sizes.whole, 0.0)
    colours, which, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    full = KernelMean(colours, counts / len(X), Gaussian(shift.bandwidth_, normalized=True))
    ran = mean_shift(full, colours)
    modes, mode_of = find_modes(full, ran.limits, shift.merge)
    row[2] += f", {len(modes)} modes"
    distance = clustering_distance(shift.labels_, mode_of[ran.assignments][which.ravel()])
    met = "yes" if row.pop() == "yes" and distance <= COLOURS_HAUSDORFF else "NO"
    return [*row, f"{distance:.4f}", f"{COLOURS_HAUSDORFF}", met], faster, distance


def reduced(name: str, shift: SparseMeanShift, most: float, every: int, spatial: float = 1.0) -> tuple[list[str], float, float]:
    """A row of the table, the discrepancy and the Hausdorff distance."""
    X = photograph(name, every, spatial)
    shift.fit(X)
    mine = seconds(lambda: shift.fit(X))
    ends, labels, whole = plain(name, spatial, shift.bandwidth_, every)
    index = discrepancy_index(shift.ends_, ends, 3 * shift.bandwidth_)
    distance = clustering_distance(shift.labels_, labels)
    cells = [
        f"{name}, every {every}th pixel, {len(X):,}",
        f"{mine:.2f} s, {described(shift)}",
        f"{whole:.1f} s, {labels.max() + 1} modes",
    ]
    cells += [f"{index:.4f}", f"{DISCREPANCY}", f"{distance:.4f}", f"{most}"]
    return [*cells, "yes" if index <= DISCREPANCY and distance <= most else "NO"], index, distance


@cache
def plain(name: str, spatial: float, bandwidth: float, every: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The plain algorithm on a reduced image: ends, labels and seconds."""
    X = photograph(name, every, spatial)
    full = KernelMean.from_samples(X, Gaussian(bandwidth, normalized=True))
    ran: list[Any] = []
    whole = seconds(lambda: ran.append(mean_shift(full, X, merge_distance=0.0)))
    _, mode_of = find_modes(full, ran[0].limits, SparseMeanShift().merge)
    return ran[0].ends, mode_of[ran[0].assignments], whole


def against_sklearn(sizes: Sizes) -> tuple[list[str], float]:
    rng, bandwidth = np.random.default_rng(0), 1.0
    centres = rng.uniform(-10, 10, size=(12, 3))
    X = centres[rng.integers(12, size=sizes.rows)] + rng.normal(size=(sizes.rows, 3))
    ours, theirs = SparseMeanShift(bandwidth=bandwidth, random_state=0), MeanShift(bandwidth=bandwidth, bin_seeding=True)
    ours.fit(X)
    mine = medians(sizes.repeats, ours=lambda: ours.fit(X))["ours"]
    other = seconds(lambda: theirs.fit(X))
    return [
        f"{sizes.rows:,} × 3, twelve clusters, bandwidth {bandwidth}", f"{mine:.2f} s, {len(ours.cluster_centers_)} modes",
        f"{other:.1f} s, {len(theirs.cluster_centers_)} modes", f"{other / mine:.0f}×", f"{AGAINST_SKLEARN:.0f}×",
        verdict(other / mine, AGAINST_SKLEARN),
    ], other / mine  # fmt: skip


def narrow_ways() -> dict[str, SparseMeanShift]:
    return {
        "25/255, as in the paper": by_mixture(bandwidth=FINE),
        "25/255, modes of all rows": by_mixture(bandwidth=FINE, finish=True),
        "two bandwidths, as in the paper": by_mixture(bandwidth=FINE, radius=2 * FINE),
        "by default: two bandwidths, modes of all rows": at_the_resolution(),
    }


def measure(quick: bool) -> dict[str, Any]:
    sizes = QUICK if quick else FULL
    every, colours = sizes.every, sizes.colours
    first, faster = whole_photograph("china", SparseMeanShift(random_state=0), sizes)
    second = [reduced(name, SparseMeanShift(random_state=0), HAUSDORFF, every) for name in sizes.reduced]
    third, than_sklearn = against_sklearn(sizes)
    wide, narrow = ([whole_colours(name, way(), sizes) for name in colours] for way in (by_mixture, at_the_resolution))
    reduced_colours = [reduced(name, by_mixture(), COLOURS_HAUSDORFF, every, 0.0) for name in colours]
    ways = {
        what: [reduced(name, shift, COLOURS_HAUSDORFF, every, 0.0) for name in colours] for what, shift in narrow_ways().items()
    }
    worst = max(index for _, index, _ in second), max(distance for *_, distance in second)
    slowest, farthest = min(ratio for _, ratio, _ in wide + narrow), max(distance for *_, distance in wide + narrow)
    default = list(ways.values())[-1]
    good = sum(row[-1] == "yes" for row, *_ in default)
    ran = {
        name: table([*names, *goals], rows)
        for name, names, goals, rows in (
            ("first", ["image", "SparseMeanShift", "full"], ["faster by", "goal", "met"], [first]),
            ("colours", *WHOLE, [row for row, *_ in wide]),
            ("narrow", *WHOLE, [row for row, *_ in narrow]),
            ("second", *REDUCED, [row for row, *_ in second]),
            ("reduced", *REDUCED, [row for row, *_ in reduced_colours]),
            ("finer", ["radius", *REDUCED[0]], REDUCED[1], [[what, *row] for what, rows in ways.items() for row, *_ in rows]),
            ("third", ["points", "SparseMeanShift", "MeanShift(bin_seeding=True)"], ["faster by", "goal", "met"], [third]),
        )
    }
    return {
        "summary": [
            ["Photograph on atoms: faster than plain", f"{faster:,.0f}×", f"{FASTER:,.0f}×", verdict(faster, FASTER)],
            ["Reduced photographs: discrepancy, Hausdorff at most", f"{worst[0]:.4f}, {worst[1]:.4f}",
             f"≤ {DISCREPANCY}, {HAUSDORFF}", "yes" if all(row[-1] == "yes" for row, *_ in second) else "NO"],
            ["Faster than scikit-learn", f"{than_sklearn:.0f}×", f"{AGAINST_SKLEARN:.0f}×", verdict(than_sklearn, AGAINST_SKLEARN)],
            ["Colours on components: faster than plain, at least", f"{slowest:,.0f}×", f"{FASTER:,.0f}×", verdict(slowest, FASTER)],
            ["The same: Hausdorff at most", f"{farthest:.4f}", f"≤ {COLOURS_HAUSDORFF}", verdict(-farthest, -COLOURS_HAUSDORFF)],
            [f"Narrow bandwidth, every {every}th pixel: images within both", f"{good} of {len(default)}", "all",
             verdict(good, len(default))],
        ],
        "details": f"{ran['first']}\n\n{ran['second']}\n\n{ran['third']}\n\nDefault settings, fitting included; bandwidth by the "
        "rule `mode_clustering`. The limits of discrepancy (δ three bandwidths) and of Hausdorff distance are the values of the "
        "2017 paper's Table III, for another painting.\n\nWith components, colours alone, `radius=25/255`, otherwise the "
        f"same:\n\n{ran['colours']}\n\n{ran['reduced']}\n\nOn whole images the distance is to the density of all pixels, climbed "
        f"from all colours, trajectories that meet treated as one; on reduced ones to the plain algorithm. A bandwidth of {FINE} "
        "gives more modes, and a radius of several bandwidths is too coarse. Components at the resolution, the default, have "
        "groups of two bandwidths, and the points where trajectories end climb on, on the density of all rows. On whole "
        f"images:\n\n{ran['narrow']}\n\nOn reduced ones, with the paper's method for comparison:\n\n{ran['finer']}\n\nThe 2010 "
        f"paper's Table I, with groups of this radius, on other images and computers: {TABLE_I}.",
    }  # fmt: skip
