"""Are selectors faster than peers with the same algorithm, at 100,000 rows, and as good?

Peers: k-means of scikit-learn, pivoted Cholesky of coreax and goodpoints, kernel thinning of both; shadows against the algorithm of
the paper in plain NumPy. Goal: not slower than the fastest peer. Quality is shown with each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min

from benchmarks._lib import pins, seconds, table, verdict
from benchmarks._lib.remote import Failed, TooLong, Worker, omitted, peers_worker
from benchmarks.peers import peer_data
from benchmarks.peers.peers import evaluator, weigh_optimally
from reduset import Gaussian, KernelMean, bandwidth
from reduset.select import Cholesky, KMeans, Selector, Shadow, Thinning

TITLE = "Selectors at 100,000 rows against peers with the same algorithm"
TIMED = True
SOURCES = (
    "select/cholesky.py",
    "select/kmeans.py",
    "select/shadow.py",
    "select/thinning.py",
    "_engine/k_means.py",
    "_engine/balance.py",
)

ROWS, QUICK_ROWS = 100_000, 4000
SIZES, QUICK_SIZES = (256, 500), (32,)
ELL = 4.0
REPEATS = 3
LIMIT = 120.0  # seconds of a run
LONG = 3.0  # seconds of a timed run, beyond which it is not repeated
AS_GOOD = 1.05  # largest ratio of measures that counts as equally good

Contestant = Callable[[], tuple[np.ndarray, float]]  # atoms and seconds


@dataclass(frozen=True)
class Algorithm:
    """One of our selectors, the peers with the same algorithm, and the measure of quality."""

    selector: Selector
    measure: str
    peers: tuple[str, ...]


ALGORITHMS = (
    Algorithm(KMeans(), "inertia", ("kmeans", "minibatch-kmeans")),
    Algorithm(KMeans(rows=None), "inertia", ("kmeans",)),
    Algorithm(Cholesky(), "error, optimal weights", ("coreax-cholesky-float32", "coreax-cholesky-float64", "goodpoints-cholesky")),
    Algorithm(
        Thinning(),
        "error, equal weights",
        ("goodpoints-compresspp-g0", "goodpoints-compresspp-g4", "goodpoints-compress", "coreax-compress"),
    ),
)


@dataclass(frozen=True)
class Comparison:
    """A selector and its peers on one set of rows: seconds and quality (lower is better) of each, and why some failed.

    ``measured`` has None for the quality of shadows, which must be equal.
    """

    case: str
    selector: str
    measure: str
    times: dict[str, float]
    measured: dict[str, float | None]
    failed: dict[str, str]

    @property
    def ratio(self) -> float | None:
        """The time of the fastest peer relative to ours; None without a peer."""
        theirs = [took for who, took in self.times.items() if who != "reduset"]
        return min(theirs) / self.times["reduset"] if theirs else None

    @property
    def as_good_ratio(self) -> float | None:
        """The same for the fastest peer with a result as good as ours."""
        least = self.measured["reduset"]
        theirs = [
            took
            for who, took in self.times.items()
            if who != "reduset" and (least is None or self.measured[who] <= AS_GOOD * least)
        ]
        return min(theirs) / self.times["reduset"] if theirs else None


def measure(quick: bool) -> dict[str, Any]:
    found = []
    with peers_worker(quick) as worker:
        for name, X in data_sets(QUICK_ROWS)[:1] if quick else data_sets(ROWS):
            h = float(bandwidth.median(X))
            mean = KernelMean.from_samples(X, Gaussian(h))
            if worker is not None:
                worker.load(X)
            found.append(compare_shadows(name, mean, h))
            relative = evaluator(mean)
            for algorithm in ALGORITHMS:
                found += [compare(name, mean, relative, algorithm, size, worker) for size in (QUICK_SIZES if quick else SIZES)]
    return {"summary": rows_of(found), "details": text_of(found) + omitted("peers") * quick}


def data_sets(rows: int) -> list[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    centres, scales = 4 * rng.normal(size=(12, 5)), rng.uniform(0.3, 1.5, size=(12, 5))
    which = rng.integers(12, size=rows)
    mixture = centres[which] + scales[which] * rng.normal(size=(rows, 5))
    return [("mixture", mixture), ("cytometry", peer_data.load("cyto_itn15")[:rows])]


def in_turns(contestants: dict[str, Contestant]) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, str]]:
    """Atoms, median times after a warm-up, and errors of those that failed. They take turns, so that load affects all of them.

    Runs of more than `LONG` seconds are not repeated.
    """
    atoms: dict[str, np.ndarray] = {}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    failed: dict[str, str] = {}
    for _ in range(1 + REPEATS):
        for name, run in contestants.items():
            if name in failed or (len(times[name]) > 1 and times[name][-1] > LONG):
                continue
            try:
                atoms[name], took = run()
                times[name].append(took)
            except (Failed, TooLong) as error:
                failed[name] = str(error)
    return atoms, {name: float(np.median(took[1:])) for name, took in times.items() if name not in failed}, failed


def by_us(selector: Selector, mean: KernelMean, size: int) -> tuple[np.ndarray, float]:
    kept = []
    took = seconds(lambda: kept.append(selector.select(mean, size, rng=0)))
    return kept[0].atoms, took


def by_peer(worker: Worker, peer: str, mean: KernelMean, size: int) -> tuple[np.ndarray, float]:
    atoms, _, took = worker.run(peer, size, mean.kernel.width, LIMIT)
    return atoms, took


def shadows_by_definition(X: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    """In the order of the rows: a row that no atom covers becomes an atom, and covers all rows within the radius."""
    chosen: list[int] = []

    def cast() -> None:
        left = np.arange(len(X))
        while len(left):
            chosen.append(int(left[0]))
            left = left[np.square(X[left] - X[left[0]]).sum(axis=1) >= radius**2]

    took = seconds(cast)
    return X[chosen], took


def quality(measure: str, mean: KernelMean, relative: Callable, atoms: np.ndarray, size: int) -> float:
    """Lower is better."""
    if measure == "inertia":
        return float(np.square(pairwise_distances_argmin_min(mean.atoms, atoms)[1]).sum())
    if measure == "error, equal weights":
        return relative(atoms, np.full(len(atoms), 1 / len(atoms)), size)
    return weigh_optimally(mean, relative, atoms, size).error


def compare(name: str, mean: KernelMean, relative: Callable, algorithm: Algorithm, size: int, worker: Worker | None) -> Comparison:
    contestants: dict[str, Contestant] = {"reduset": partial(by_us, algorithm.selector, mean, size)}
    contestants |= {peer: partial(by_peer, worker, peer, mean, size) for peer in algorithm.peers if worker is not None}
    atoms, times, failed = in_turns(contestants)
    measured = {who: quality(algorithm.measure, mean, relative, atoms[who], size) for who in times}
    case = f"{name} {mean.size:,}×{mean.dimension}, {size}"
    return Comparison(case, repr(algorithm.selector), algorithm.measure, times, measured, failed)


def compare_shadows(name: str, mean: KernelMean, h: float) -> Comparison:
    atoms, times, _ = in_turns(
        {
            "reduset": partial(by_us, Shadow(ell=ELL), mean, mean.size),
            "plain NumPy": partial(shadows_by_definition, mean.atoms, h / ELL),
        }
    )
    if not np.array_equal(*(np.unique(found, axis=0) for found in atoms.values())):
        raise AssertionError("Shadow finds other atoms than its definition")
    case = f"{name} {mean.size:,}×{mean.dimension}, {len(atoms['reduset']):,}"
    return Comparison(case, f"Shadow(ell={ELL:g})", "the same atoms", times, dict.fromkeys(times), {})


def rows_of(found: list[Comparison]) -> list[list[str]]:
    ratios = [each.ratio for each in found if each.ratio is not None]
    as_good = [each.as_good_ratio for each in found if each.as_good_ratio is not None]
    faster = sum(ratio >= 1 for ratio in ratios)
    return [
        ["not slower than the fastest peer, of all cases", f"{faster} of {len(ratios)}", "all", verdict(faster, len(ratios))],
        ["time of the fastest peer relative to ours, median", f"{np.median(ratios):.1f}", "", ""],
        ["the same, smallest", f"{min(ratios):.2f}", "≥ 1", verdict(min(ratios), 1)],
        [f"smallest among peers at most {AS_GOOD - 1:.0%} worse", f"{min(as_good):.2f}", "≥ 1", verdict(min(as_good), 1)],
    ]


def text_of(found: list[Comparison]) -> str:
    def shown(each: Comparison, who: str) -> str:
        quality = each.measured[who]
        return f"{each.times[who]:.3f} s" + ("" if quality is None else f", {quality:.4g}")

    rows = []
    for each in found:
        peers = [f"{who} {shown(each, who)}" for who in each.times if who != "reduset"]
        peers += [f"{who}: {why}" for who, why in each.failed.items()]
        first, second = (f"{ratio:.2f}×" if ratio is not None else "none" for ratio in (each.ratio, each.as_good_ratio))
        met = "" if each.ratio is None else verdict(each.ratio, 1.0)
        rows.append([each.case, each.selector, each.measure, shown(each, "reduset"), "; ".join(peers), first, "1×", met, second])
    head = ["data, atoms", "algorithm", "measure", "reduset", "peers", "fastest peer's time / ours", "goal", "met",
            "the same, of those as good"]  # fmt: skip
    versions = ", ".join(f"{package} {version}" for package, version in pins("peers").items())
    return (
        table(head, rows)
        + "\n\nTimes are of the selection alone, at the median distance as bandwidth: no weights, no certificate. Lower is better "
        f"in every measure; errors are relative and squared. *As good* is at most {AS_GOOD - 1:.0%} worse. compresspp is a "
        "function of goodpoints, with g in its name; its size must be a power of two. compress consists of its two steps and gives "
        f"any size. Versions of the peers: {versions}."
    )
