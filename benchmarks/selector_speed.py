"""Selectors at 100,000 rows against the peers that offer the same algorithm, quality beside time: neither is bought by the other.

Nobody offers shadows, so that there the opponent is the paper's algorithm in plain NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min

import peer_data
from harness import seconds, table, verdict
from peers import evaluator, weigh_optimally
from reduset import Gaussian, KernelMean, bandwidth
from reduset.select import Cholesky, KMeans, Selector, Shadow, Thinning
from remote import Failed, TooLong, Worker, pins

TITLE = "Selectors at 100,000 rows against peers with the same algorithm"

ROWS = 100_000
SIZES = (256, 500)
ELL = 4.0
REPEATS = 3
LIMIT = 120.0  # seconds a run
LONG = 3.0  # seconds of a timed run, beyond which it is not repeated
AS_GOOD = 1.05  # how much worse a result may be and still count as equally good

Contestant = Callable[[], tuple[np.ndarray, float]]  # atoms and seconds


@dataclass(frozen=True)
class Algorithm:
    """One of ours, the peers that offer the same, and what a good result is."""

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


def clouds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    centres, scales = 4 * rng.normal(size=(12, 5)), rng.uniform(0.3, 1.5, size=(12, 5))
    which = rng.integers(12, size=ROWS)
    return {"mixture": centres[which] + scales[which] * rng.normal(size=(ROWS, 5)), "cytometry": peer_data.load("cyto_itn15")}


def in_turns(contestants: dict[str, Contestant]) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, str]]:
    """Atoms and median times after a warm-up, and why some have none; they take turns, so that a busy spell hits all of them.

    Those that take long are timed once.
    """
    atoms: dict[str, np.ndarray] = {}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    out: dict[str, str] = {}
    for _ in range(1 + REPEATS):
        for name, run in contestants.items():
            if name in out or (len(times[name]) > 1 and times[name][-1] > LONG):
                continue
            try:
                atoms[name], took = run()
                times[name].append(took)
            except (Failed, TooLong) as error:
                out[name] = str(error)
    return atoms, {name: float(np.median(took[1:])) for name, took in times.items() if name not in out}, out


def ours(selector: Selector, mean: KernelMean, size: int) -> tuple[np.ndarray, float]:
    kept = []
    took = seconds(lambda: kept.append(selector.select(mean, size, rng=0)))
    return kept[0].atoms, took


def shadows_by_definition(X: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    """In the order of the rows: a point that no atom covers becomes one, and covers all within the radius."""
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


def run() -> str:
    rows = []
    worker = Worker.peers()
    try:
        for name, X in clouds().items():
            h = float(bandwidth.median(X))
            mean = KernelMean.from_samples(X, Gaussian(h))
            worker.load(X)
            rows.append(_shadow_row(name, mean, h))
            relative = evaluator(mean)
            for algorithm in ALGORITHMS:
                rows += [_row(name, mean, relative, algorithm, size, worker) for size in SIZES]
    finally:
        worker.stop()
    head = ["data, atoms", "algorithm", "measure", "reduset", "peers", "faster than the fastest by", "goal", "met"]
    head.append("than the fastest that is as good by")
    versions = ", ".join(f"{package} {version}" for package, version in pins().items())
    return (
        table(head, rows)
        + "\n\nEach selection alone, at the median bandwidth: no weights, no certificate. Lower is better in every measure; errors "
        f"are relative and squared. 'As good' means at most {AS_GOOD - 1:.0%} worse. compresspp is goodpoints' own call, with g "
        f"as named, and gives powers of two only; compress is made of its two steps, for any size. Peers: {versions}."
    )


def _row(name: str, mean: KernelMean, relative: Callable, algorithm: Algorithm, size: int, worker: Worker) -> list[str]:
    contestants: dict[str, Contestant] = {"reduset": lambda: ours(algorithm.selector, mean, size)}
    for peer in algorithm.peers:

        def ask(peer: str = peer) -> tuple[np.ndarray, float]:
            atoms, _, took = worker.run(peer, size, mean.kernel.width, LIMIT)
            return atoms, took

        contestants[peer] = ask
    atoms, times, out = in_turns(contestants)
    measured = {who: quality(algorithm.measure, mean, relative, atoms[who], size) for who in times}
    mine = times.pop("reduset")
    as_good = [took for who, took in times.items() if measured[who] <= AS_GOOD * measured["reduset"]]
    ratio = min(times.values()) / mine
    return [
        f"{name} {mean.size:,}×{mean.dimension}, {size}",
        repr(algorithm.selector),
        algorithm.measure,
        f"{mine:.3f} s, {measured['reduset']:.4g}",
        "; ".join(
            [f"{who} {took:.3f} s, {measured[who]:.4g}" for who, took in times.items()]
            + [f"{who}: {why}" for who, why in out.items()]
        ),
        f"{ratio:.2f}×",
        "1×",
        verdict(ratio, 1.0),
        f"{min(as_good) / mine:.2f}×" if as_good else "none is",
    ]


def _shadow_row(name: str, mean: KernelMean, h: float) -> list[str]:
    atoms, times, _ = in_turns(
        {
            "reduset": lambda: ours(Shadow(ell=ELL), mean, mean.size),
            "plain NumPy": lambda: shadows_by_definition(mean.atoms, h / ELL),
        }
    )
    same = np.array_equal(*(np.unique(found, axis=0) for found in atoms.values()))
    ratio = times["plain NumPy"] / times["reduset"]
    return [
        f"{name} {mean.size:,}×{mean.dimension}, {len(atoms['reduset']):,}",
        f"Shadow(ell={ELL:g})",
        "the atoms themselves",
        f"{times['reduset']:.3f} s",
        f"plain NumPy {times['plain NumPy']:.3f} s, {'the same' if same else 'OTHER'} atoms",
        f"{ratio:.2f}×",
        "1×",
        verdict(ratio, 1.0),
        f"{ratio:.2f}×" if same else "",
    ]
