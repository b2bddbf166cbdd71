"""How fast are features of bags, how does their time grow with the number of bags, and what does merging points into cells save?

Against a kernel matrix of all pairs of bags (`NeighbourKLKernel`), and against the same features of all points. Goals: less than
1 ms for a bag of 2,500 points; exponent of growth at most 1.05; 20 times as fast as the kernel matrix of 4,000 bags; bags of 10⁵
points 10 times as fast when merged, with distances within 1 %.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks._lib import data_folder, medians, seconds, table, verdict
from reduset.features import DensityFeatures, NeighbourKLKernel

TITLE = "Features of bags: speed"
SOURCES = ("features",)


class Sizes(NamedTuple):
    bags: int  # timed one by one, of so many points
    points: int
    many: tuple[int, ...]  # bags, whose time grows, of so few points
    few: int
    paired: tuple[int, ...]  # bags of the kernel matrix, and how many it is extrapolated to
    all_paired: int
    components: tuple[int, ...]
    large: int  # points of a large bag
    repeats: int


FULL = Sizes(2000, 2500, (500, 1000, 2000, 4000, 8000), 200, (250, 500, 1000), 4000, (1000, 5000), 100_000, 5)
QUICK = Sizes(10, 300, (20, 40), 50, (10, 20), 40, (200,), 2_000, 1)
LONGEST = 300.0  # seconds: below that, the kernel matrix of all bags is measured
WIDE, LARGE_BAGS = 5, 6
METRICS = ("js", "hellinger", "tv")
MOST_MS, MOST_EXPONENT, LEAST_RATIO, LEAST_MERGED, MOST_CHANGE = 1.0, 1.05, 20.0, 10.0, 0.01

Part = tuple[list[list[str]], str]  # rows of the summary, and the details


def mixtures(count: int, points: int, rng: np.random.Generator, dimension: int = 2) -> list[np.ndarray]:
    """Bags of three Gaussians each, of random means and spreads."""
    means = rng.uniform(-3, 3, size=(count, 3, dimension))
    spreads = rng.uniform(0.3, 1.0, size=(count, 3, dimension))
    bags = []
    for k in range(count):
        cluster = rng.integers(3, size=points)
        bags.append(means[k, cluster] + spreads[k, cluster] * rng.normal(size=(points, dimension)))
    return bags


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def single_bags(sizes: Sizes) -> Part:
    bags = mixtures(sizes.bags, sizes.points, np.random.default_rng(0))
    rows, times = [], []
    for metric in (*METRICS, "l2"):
        for bandwidth in ("scott", 0.05):
            model = DensityFeatures(metric, output="distance", bandwidth=bandwidth).fit(bags)
            model.transform(bags[:50])
            times.append(1e3 * medians(3, features=partial(model.transform, bags))["features"] / sizes.bags)
            h = " and ".join(f"{each:.3f}" for each in model.bandwidth_) if bandwidth == "scott" else bandwidth
            nodes = f"{model.views_[0].nodes.per_axis}²"
            rows.append((metric, h, nodes, f"{times[-1]:.2f}", verdict(-times[-1], -MOST_MS)))
    figure = f"{min(times):.2f} to {max(times):.2f} ms"
    return [[f"Features of a bag of {sizes.points:,} points", figure, f"< {MOST_MS:g} ms", verdict(-max(times), -MOST_MS)]], (
        f"A features of {sizes.points:,} points in two dimensions, defaults, {sizes.bags:,} bags:\n\n"
        + table(("distance", "bandwidth", "nodes", "ms a bag", f"< {MOST_MS:g}"), rows)
    )


def growth(sizes: Sizes) -> Part:
    bags = mixtures(max(sizes.many), sizes.few, np.random.default_rng(1))
    rows, rates = [], []
    for metric in METRICS:
        model = DensityFeatures(metric, margin=0.2, random_state=0).fit(bags[:500])
        model.transform(bags[:100])
        times = medians(sizes.repeats, **{str(n): partial(model.transform, bags[:n]) for n in sizes.many})
        rates.append(exponent(sizes.many, list(times.values())))
        rows.append((metric, *(f"{each:.2f}" for each in times.values()), f"{rates[-1]:.3f}", verdict(-rates[-1], -MOST_EXPONENT)))
    head = ("distance", *(f"{n:,} bags, s" for n in sizes.many), "exponent", f"≤ {MOST_EXPONENT}")
    figure = f"{min(rates):.3f} to {max(rates):.3f}"
    return [["Exponent of time in the bags", figure, f"≤ {MOST_EXPONENT}", verdict(-max(rates), -MOST_EXPONENT)]], (
        f"Growth: features (D = 1,000) of bags of {sizes.few} points, medians of {sizes.repeats}:\n\n" + table(head, rows)
    )


def against_pairs(sizes: Sizes) -> Part:
    bags = mixtures(sizes.all_paired, sizes.few, np.random.default_rng(2))
    NeighbourKLKernel().fit(bags[:20])
    slow = [seconds(partial(NeighbourKLKernel().fit_transform, bags[:n])) for n in sizes.paired]
    rate = exponent(sizes.paired, slow)
    full = slow[-1] * (sizes.all_paired / sizes.paired[-1]) ** rate
    measured = full < LONGEST
    if measured:
        full = seconds(partial(NeighbourKLKernel().fit_transform, bags))
    rows, ratios = [], []
    for metric in METRICS:
        for D in sizes.components:
            model = DensityFeatures(metric, n_components=D, random_state=0)
            spent = medians(3, ours=partial(model.fit_transform, bags))["ours"]
            ratios.append(full / spent)
            rows.append((metric, f"{D:,}", f"{spent:.1f}", f"{ratios[-1]:.0f}×", verdict(ratios[-1], LEAST_RATIO)))
    how = "measured" if measured else f"extrapolated from {sizes.paired[-1]:,} bags, since it is above {LONGEST:.0f} s"
    figure = f"{min(ratios):.0f} to {max(ratios):.0f}×"
    return [
        [f"{sizes.all_paired:,} bags: faster than a kernel matrix", figure, f"{LEAST_RATIO:g}×", verdict(min(ratios), LEAST_RATIO)]
    ], (
        f"{sizes.all_paired:,} bags of {sizes.few} points, fit and transform, against `NeighbourKLKernel` (k = 4): "
        + ", ".join(f"{each:.1f} s for {n:,} bags" for n, each in zip(sizes.paired, slow, strict=True))
        + f", exponent {rate:.2f}; {full:.0f} s for {sizes.all_paired:,} ({how}):\n\n"
        + table(("distance", "D", "features, s", "faster by", f"{LEAST_RATIO:g}×"), rows)
    )


def cytometry(points: int) -> list[np.ndarray]:
    """Five channels of six patients, drawn with replacement, with noise of 1/50 of the channel's standard deviation."""
    data = np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False)
    X = np.asarray(data["X"], np.float64)[:: 15 // LARGE_BAGS][:LARGE_BAGS, :, :WIDE]
    X[:, :, 2:] = np.log10(X[:, :, 2:])
    rng = np.random.default_rng(3)
    spread = X.reshape(-1, WIDE).std(axis=0)
    return [bag[rng.integers(len(bag), size=points)] + spread / 50 * rng.normal(size=(points, WIDE)) for bag in X]


def populations(points: int) -> list[np.ndarray]:
    """Bags of ten common Gaussians with different axes; proportions and centres vary from bag to bag."""
    rng = np.random.default_rng(4)
    centres = rng.normal(0, 1.6, (10, WIDE))
    axes = [np.linalg.qr(rng.normal(size=(WIDE, WIDE)))[0] * rng.uniform(0.2, 0.9, WIDE) for _ in range(10)]
    bags = []
    for _ in range(LARGE_BAGS):
        counts = rng.multinomial(points, rng.dirichlet(np.full(10, 3.0)))
        moved = centres + rng.normal(0, 0.15, centres.shape)
        parts = [moved[j] + rng.normal(size=(counts[j], WIDE)) @ axes[j].T for j in range(10)]
        bags.append(rng.permutation(np.concatenate(parts)))
    return bags


def distances(vectors: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(len(vectors), 1)
    return np.linalg.norm(vectors[first] - vectors[second], axis=1)


def large_bags(sizes: Sizes) -> Part:
    rows, ratios, changes = [], [], []
    for name, bags in (("ten Gaussians", populations(sizes.large)), ("cytometry", cytometry(sizes.large))):
        for bandwidth in ("scott", 0.05, 0.1):
            found, spent = {}, {}
            for tol in (0.05, None):
                model = DensityFeatures("js", output="distance", bandwidth=bandwidth, tol=tol, random_state=0).fit(bags)
                model.transform([bag[:11_000] for bag in bags[:2]])

                def keep(tol=tol, model=model, bags=bags, found=found) -> None:
                    found[tol] = distances(model.transform(bags))

                spent[tol] = medians(3 if tol else 1, features=keep)["features"] / LARGE_BAGS
            change, ratio = np.max(np.abs(found[0.05] / found[None] - 1)), spent[None] / spent[0.05]
            changes.append(change)
            ratios.append(ratio)
            h = f"{model.bandwidth_.min():.3f} to {model.bandwidth_.max():.3f}" if bandwidth == "scott" else bandwidth
            rows.append((name, h, f"{spent[None]:.2f}", f"{spent[0.05]:.3f}", f"{ratio:.1f}×", verdict(ratio, LEAST_MERGED)))
            rows[-1] += (f"{change:.2%}", verdict(-change, -MOST_CHANGE))
    head = ("bags", "bandwidth", "direct, s a bag", "merged, s a bag", "faster by", f"{LEAST_MERGED:g}×")
    figure = f"{min(ratios):.1f} to {max(ratios):.1f}×"
    return [
        [f"Bags of {sizes.large:,} points: faster if merged", figure, f"{LEAST_MERGED:g}×", verdict(min(ratios), LEAST_MERGED)],
        ["Largest change of a distance", f"{max(changes):.2%}", f"≤ {MOST_CHANGE:.0%}", verdict(-max(changes), -MOST_CHANGE)],
    ], (
        f"Bags of {sizes.large:,} points in five dimensions, {LARGE_BAGS} of each kind, A features of Jensen–Shannon (8,192 Sobol "
        "nodes): points merged into cells (tol = 0.05, the default) against all points (tol=None). Cytometry: the first five "
        "channels of `cyto_itn15`, logarithms of fluorescence. Patients have 10,000 cells; larger bags are drawn from them with "
        "noise of 1/50 of the standard deviation:\n\n"
        + table((*head, "largest change of a distance", f"≤ {MOST_CHANGE:.0%}"), rows)
    )


def measure(quick: bool) -> dict[str, Any]:
    parts = [part(QUICK if quick else FULL) for part in (single_bags, growth, against_pairs, large_bags)]
    return {"summary": [row for rows, _ in parts for row in rows], "details": "\n\n".join(text for _, text in parts)}
