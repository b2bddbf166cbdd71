"""Features of bags: time a bag, growth with the number of bags, against a kernel matrix, and large bags merged into cells."""

from __future__ import annotations

from functools import partial

import numpy as np

from harness import data_folder, medians, seconds, table, verdict
from reduset.features import DensityFeatures, NeighbourKLKernel

TITLE = "Features of bags: speed"

BAGS, POINTS = 2000, 2500
MANY = (500, 1000, 2000, 4000, 8000)
SMALL = 200
PAIRED, GOAL_BAGS = (250, 500, 1000), 4000
LONGEST = 300.0  # seconds, up to which the kernel matrix of all bags is measured and not extrapolated
COMPONENTS = (1000, 5000)
LARGE, WIDE, LARGE_BAGS = 100_000, 5, 6


def mixtures(count: int, points: int, rng: np.random.Generator, dimension: int = 2) -> list[np.ndarray]:
    """Bags of three Gaussians each, of random means and spreads."""
    means = rng.uniform(-3, 3, size=(count, 3, dimension))
    spreads = rng.uniform(0.3, 1.0, size=(count, 3, dimension))
    bags = []
    for k in range(count):
        owner = rng.integers(3, size=points)
        bags.append(means[k, owner] + spreads[k, owner] * rng.normal(size=(points, dimension)))
    return bags


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def a_bag() -> str:
    bags = mixtures(BAGS, POINTS, np.random.default_rng(0))
    rows = []
    for metric in ("js", "hellinger", "tv", "l2"):
        for bandwidth in ("scott", 0.05):
            model = DensityFeatures(metric, output="distance", bandwidth=bandwidth).fit(bags)
            model.transform(bags[:50])
            spent = 1e3 * medians(3, features=partial(model.transform, bags))["features"] / BAGS
            h = " and ".join(f"{each:.3f}" for each in model.bandwidth_) if bandwidth == "scott" else bandwidth
            rows.append((metric, h, f"{model.views_[0].nodes.an_axis}²", f"{spent:.2f}", verdict(-spent, -1.0)))
    return f"A features of {POINTS:,} points in two dimensions, defaults, {BAGS:,} bags:\n\n" + table(
        ("distance", "bandwidth", "nodes", "ms a bag", "< 1"), rows
    )


def growth() -> str:
    bags = mixtures(max(MANY), SMALL, np.random.default_rng(1))
    rows = []
    for metric in ("js", "hellinger", "tv"):
        model = DensityFeatures(metric, margin=0.2, random_state=0).fit(bags[:500])
        model.transform(bags[:100])
        times = medians(5, **{str(n): partial(model.transform, bags[:n]) for n in MANY})
        spent = [times[str(n)] for n in MANY]
        rate = exponent(MANY, spent)
        rows.append((metric, *(f"{each:.2f}" for each in spent), f"{rate:.3f}", verdict(-rate, -1.05)))
    head = ("distance", *(f"{n:,} bags, s" for n in MANY), "exponent", "≤ 1.05")
    return f"Growth: features (D = 1,000) of bags of {SMALL} points, medians of 5:\n\n" + table(head, rows)


def against_pairs() -> str:
    bags = mixtures(GOAL_BAGS, SMALL, np.random.default_rng(2))
    NeighbourKLKernel().fit(bags[:20])
    slow = [seconds(partial(NeighbourKLKernel().fit_transform, bags[:n])) for n in PAIRED]
    rate = exponent(PAIRED, slow)
    full = slow[-1] * (GOAL_BAGS / PAIRED[-1]) ** rate
    measured = full < LONGEST
    if measured:
        full = seconds(partial(NeighbourKLKernel().fit_transform, bags))
    rows = []
    for metric in ("js", "hellinger", "tv"):
        for D in COMPONENTS:
            model = DensityFeatures(metric, n_components=D, random_state=0)
            spent = medians(3, ours=partial(model.fit_transform, bags))["ours"]
            rows.append((metric, f"{D:,}", f"{spent:.1f}", f"{full / spent:.0f}×", verdict(full / spent, 20)))
    how = "measured" if measured else f"extrapolated from 1,000 bags by this exponent, since it is above {LONGEST:.0f} s"
    return (
        f"{GOAL_BAGS:,} bags of {SMALL} points, fit and transform, against `NeighbourKLKernel` (k = 4): "
        + ", ".join(f"{each:.1f} s for {n:,} bags" for n, each in zip(PAIRED, slow, strict=True))
        + f", exponent {rate:.2f}; {full:.0f} s for {GOAL_BAGS:,} ({how}):\n\n"
        + table(("distance", "D", "features, s", "faster by", "20×"), rows)
    )


def cytometry() -> list[np.ndarray]:
    """Five channels of six patients, each drawn 10⁵ times with noise of a fiftieth of the channel's spread."""
    data = np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False)
    X = np.asarray(data["X"], np.float64)[:: 15 // LARGE_BAGS][:LARGE_BAGS, :, :WIDE]
    X[:, :, 2:] = np.log10(X[:, :, 2:])
    rng = np.random.default_rng(3)
    spread = X.reshape(-1, WIDE).std(axis=0)
    return [bag[rng.integers(len(bag), size=LARGE)] + spread / 50 * rng.normal(size=(LARGE, WIDE)) for bag in X]


def populations() -> list[np.ndarray]:
    """Bags of ten common Gaussians with axes of their own, in proportions and places that differ from bag to bag."""
    rng = np.random.default_rng(4)
    centres = rng.normal(0, 1.6, (10, WIDE))
    axes = [np.linalg.qr(rng.normal(size=(WIDE, WIDE)))[0] * rng.uniform(0.2, 0.9, WIDE) for _ in range(10)]
    bags = []
    for _ in range(LARGE_BAGS):
        counts = rng.multinomial(LARGE, rng.dirichlet(np.full(10, 3.0)))
        moved = centres + rng.normal(0, 0.15, centres.shape)
        parts = [moved[j] + rng.normal(size=(counts[j], WIDE)) @ axes[j].T for j in range(10)]
        bags.append(rng.permutation(np.concatenate(parts)))
    return bags


def distances(vectors: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(len(vectors), 1)
    return np.linalg.norm(vectors[first] - vectors[second], axis=1)


def large_bags() -> str:
    rows = []
    for name, bags in (("ten Gaussians", populations()), ("cytometry", cytometry())):
        for bandwidth in ("scott", 0.05, 0.1):
            found, spent = {}, {}
            for tol in (0.05, None):
                model = DensityFeatures("js", output="distance", bandwidth=bandwidth, tol=tol, random_state=0).fit(bags)
                model.transform([bag[:11_000] for bag in bags[:2]])

                def keep(tol=tol, model=model, bags=bags, found=found) -> None:
                    found[tol] = distances(model.transform(bags))

                spent[tol] = medians(3 if tol else 1, features=keep)["features"] / LARGE_BAGS
            change = np.max(np.abs(found[0.05] / found[None] - 1))
            ratio = spent[None] / spent[0.05]
            h = f"{model.bandwidth_.min():.3f} to {model.bandwidth_.max():.3f}" if bandwidth == "scott" else bandwidth
            rows.append((name, h, f"{spent[None]:.2f}", f"{spent[0.05]:.3f}", f"{ratio:.1f}×", verdict(ratio, 10)))
            rows[-1] += (f"{change:.2%}", verdict(-change, -0.01))
    head = ("bags", "bandwidth", "direct, s a bag", "merged, s a bag", "faster by", "10×", "largest change of a distance", "≤ 1 %")
    return (
        f"Bags of 10⁵ points in five dimensions, {LARGE_BAGS} of each kind, A features of Jensen–Shannon (8,192 Sobol nodes): "
        "points merged into cells (tol = 0.05, the default) against all points (tol=None). Cytometry: first five channels of "
        "`cyto_itn15`, logarithms of fluorescence; patients have 10,000 cells, so 10⁵ are drawn from them, with noise of 1/50 of "
        "the spread:\n\n" + table(head, rows)
    )


def run() -> str:
    return "\n\n".join(part() for part in (a_bag, growth, against_pairs, large_bags))


if __name__ == "__main__":
    print(run())
