"""Which method has the lowest error at equal size, and in what time, over 26 data sets, two bandwidths and five sizes?

Peers: goodpoints, coreax, fpsample, scikit-learn and random rows (`peer_worker.py`). All get the same rows and Gaussian kernel, and
one evaluator computes all errors. Results are kept in `results/peers.csv`, so that a run can be stopped and continued; see
`result_table.py` for what is measured again.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh

from benchmarks._lib.remote import Failed, TooLong, Worker, is_installed, omitted
from benchmarks.peers import peer_data, peer_summary
from benchmarks.peers.result_table import OURS, ResultTable, Row, measured_on, read
from reduset import Gaussian, KernelMean, bandwidth
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.rule import ExactProbe
from reduset.weights import span_of

TITLE = "Error and time at equal size, against peers"
SOURCES = ("select", "weights", "compression", "certificate")

CSV = Path(__file__).parent / "results" / "peers.csv"
COLUMNS = ("data", "n", "d", "bandwidth", "h", "size", "method", "weights", "status", "error", "seconds", "atoms")
BANDWIDTHS = ("median", "scott")
SIZES = (25, 50, 100, 200, 500)
LIMIT, LONG = 20.0, 5.0  # seconds after which a run is stopped; seconds of a run that is not repeated
COMPILING = 60.0  # limit of a first run that compiles, in seconds
QUADRATIC_UP_TO = 10_000  # rows
SMALLEST_EIGENVALUE = 1e-15  # of the largest; the best of 1e-11, 1e-12 … 1e-15 on three random draws of 500 from banana

EQUAL, OPTIMAL = "equal", "optimal"
PEERS = {
    "goodpoints-thin": (EQUAL, OPTIMAL),
    "goodpoints-compress": (EQUAL, OPTIMAL),
    "coreax-herding": (EQUAL, OPTIMAL),
    "coreax-mapreduce": (EQUAL, OPTIMAL),
    "coreax-cholesky-float32": (EQUAL, OPTIMAL),
    "coreax-cholesky-float64": (EQUAL, OPTIMAL),
    "coreax-thinning": (EQUAL, OPTIMAL),
    "coreax-compress": (EQUAL, OPTIMAL),
    "fpsample": (OPTIMAL,),
    "kmeans": (OPTIMAL,),
    "minibatch-kmeans": (OPTIMAL,),
    "uniform": (EQUAL, OPTIMAL),
}
SELECTORS = ("kcenter", "random", "kmeans", "columnnorm", "herding", "cholesky", "thinning", "greedy", "auto", "auto+refine")
OWN = tuple(f"{OURS}-{name}" for name in SELECTORS)
NOTHING_TO_COMPILE = ("goodpoints", "fpsample", "kmeans", "minibatch", "uniform")
QUADRATIC = ("goodpoints-thin", "coreax-herding", "coreax-thinning")
FOR_MANY = ("coreax-mapreduce", "coreax-compress")  # the methods of coreax for more rows

Measure = Callable[[np.ndarray, np.ndarray, int], float]


@dataclass(frozen=True)
class Plan:
    """What is measured, and where the results are kept."""

    path: Path
    names: tuple[str, ...]
    bandwidths: tuple[str, ...]
    sizes: tuple[int, ...]
    methods: tuple[str, ...]


def measure(quick: bool) -> dict[str, Any]:
    if not quick:
        return measured(Plan(CSV, peer_data.NAMES, BANDWIDTHS, SIZES, (*PEERS, *OWN)))
    with tempfile.TemporaryDirectory() as folder:
        methods = (*(PEERS if is_installed("peers") else ()), "reduset-kcenter", *peer_summary.TARGETS)
        found = measured(Plan(Path(folder) / "peers.csv", ("iris",), ("median",), (25,), methods))
    return found | {"details": found["details"] + omitted("peers")}


def measured(plan: Plan) -> dict[str, Any]:
    """Measure what the file lacks, and summarise all of it."""
    key = ("data", "bandwidth", "size", "method", "weights")
    results = ResultTable(plan.path, COLUMNS, key, SOURCES, lambda row: f"{row['error']:.3e} in {row['seconds']:.3f} s")
    workers = {True: Worker.ours()}
    if any(not method.startswith(OURS) for method in plan.methods):
        workers[False] = Worker.peers()
    small = KernelMean.from_samples(np.eye(3), Gaussian(1.0))
    weigh_optimally(small, evaluator(small), np.eye(3), 3)  # compile before anything is timed
    try:
        for name in plan.names:
            measure_set(name, plan, results, workers)
    finally:
        for worker in workers.values():
            worker.stop()
    cells = peer_summary.cells_of(read(plan.path))
    details = peer_summary.text(cells, measured_on(plan.path), plan.path.with_suffix(".png"), LIMIT)
    return {"summary": peer_summary.rows_of(cells), "details": details}


def evaluator(mean: KernelMean) -> Measure:
    """A function of atoms, weights and the requested size that returns ‖f − f_m‖²/‖f‖².

    It sums over all pairs of points, which is exact up to rounding. Errors below a thousand roundings are computed from random
    frequencies, whose precision is relative. They are the same for all methods at one size: the number of frequencies depends on
    that of atoms, so missing atoms are added with weight 0.
    """
    exact = ExactProbe(mean, None)
    nothing = mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms[:1])
    whole = exact.measure(mean.atoms[:1], np.zeros(1), nothing).square
    frequencies: dict[int, FrequencyProbe] = {}

    def relative(atoms: np.ndarray, weights: np.ndarray, size: int) -> float:
        kappa = mean.kernel.product_sums(mean.atoms, mean.weights, atoms)
        found = exact.measure(atoms, weights, kappa)
        if found.square < 1e3 * (found.high - found.square):
            if size not in frequencies:
                frequencies[size] = FrequencyProbe(mean, 0.95, np.random.default_rng(0))
            lacking = size - len(atoms)
            padded = np.concatenate([atoms, np.repeat(atoms[:1], lacking, axis=0)])
            found = frequencies[size].measure(padded, np.concatenate([weights, np.zeros(lacking)]), kappa)
        return found.square / whole

    return relative


@dataclass(frozen=True)
class Weighed:
    """The error of atoms with weights, the seconds that the weights took, and the atoms."""

    error: float
    seconds: float
    atoms: np.ndarray


def weigh_optimally(mean: KernelMean, relative: Measure, atoms: np.ndarray, size: int) -> Weighed:
    """The optimal weights α = K⁻¹κ by Cholesky, as in `compress`, for the atoms of any method.

    If it drops atoms as redundant, the weights are also computed from the eigenvalues of K above rounding. The better result
    counts.
    """
    begun = time.perf_counter()
    kappa = mean.kernel.product_sums(mean.atoms, mean.weights, atoms)
    between = time.perf_counter()
    found = span_of(mean.kernel, atoms, kappa)
    weights = found.weights("free", 1.0, found.size)
    ended = time.perf_counter()
    first = Weighed(relative(found.atoms, weights, size), ended - begun, found.atoms)
    if found.size == len(atoms):
        return first
    resumed = time.perf_counter()
    values, vectors = eigh(mean.kernel.product_gram(atoms, atoms))
    above = vectors[:, values > SMALLEST_EIGENVALUE * values[-1]]
    weights = above @ ((above.T @ kappa) / values[-above.shape[1] :])
    took = time.perf_counter() - resumed + between - begun
    second = Weighed(relative(atoms, weights, size), took, atoms)
    return min(first, second, key=lambda weighed: weighed.error)


def timed(worker: Worker, method: str, size: int, h: float) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Atoms, weights if the method has its own, and the seconds of a run after compilation."""
    compiles = not method.startswith(NOTHING_TO_COMPILE)
    found = worker.run(method, size, h, COMPILING if compiles else LIMIT)
    return worker.run(method, size, h, LIMIT) if compiles or found[2] < LONG else found


def kinds_of(method: str) -> tuple[str, ...]:
    """The kinds of weights of a method."""
    return (OPTIMAL,) if method.startswith(OURS) else PEERS[method]


def reason_not_to(method: str, n: int) -> str | None:
    if method in QUADRATIC and n > QUADRATIC_UP_TO:
        return "not run: n² at this n"
    if method in FOR_MANY and n <= QUADRATIC_UP_TO:
        return "not run: for larger n"
    return None


def rows_of(
    workers: dict[bool, Worker], mean: KernelMean, evaluation: Callable[[], Measure], method: str, size: int
) -> Iterator[Row]:
    """One row of results for each kind of weights."""
    ours = method.startswith(OURS)
    kinds = kinds_of(method)
    try:
        atoms, weights, seconds = timed(workers[ours], method, size, mean.kernel.width)
    except (TooLong, Failed) as error:
        status = f"over {LIMIT:g} s" if isinstance(error, TooLong) else f"failed: {error}"
        yield from ({"weights": kind, "status": status} for kind in kinds)
        return
    relative = evaluation()
    for kind in kinds:
        if weights is None and kind == OPTIMAL:
            found = weigh_optimally(mean, relative, atoms, size)
        else:
            alpha = np.full(len(atoms), 1 / len(atoms)) if weights is None else weights
            found = Weighed(relative(atoms, alpha, size), 0.0, atoms)
        more = {"error": found.error, "seconds": seconds + found.seconds, "atoms": len(found.atoms)}
        yield {"weights": kind, "status": "ok"} | more


def measure_set(name: str, plan: Plan, results: ResultTable, workers: dict[bool, Worker]) -> None:
    """Everything that the table lacks about one data set."""
    X = peer_data.load(name)
    n, d = X.shape
    for worker in workers.values():
        worker.load(X)
    for rule in plan.bandwidths:
        h = float(getattr(bandwidth, rule)(X))
        mean = KernelMean.from_samples(X, Gaussian(h))
        prepared: list[Measure] = []

        def evaluation(mean: KernelMean = mean, prepared: list[Measure] = prepared) -> Measure:
            if not prepared:  # n² operations, only if there is something to measure
                prepared.append(evaluator(mean))
            return prepared[0]

        too_long: set[str] = set()
        for size in (s for s in plan.sizes if 2 * s < n):
            known = {"data": name, "n": n, "d": d, "bandwidth": rule, "h": h, "size": size}
            for method in plan.methods:
                kinds = kinds_of(method)
                if all(known | {"method": method, "weights": kind} in results for kind in kinds):
                    continue
                known["method"] = method
                reason = reason_not_to(method, n)
                if reason is None and method in too_long:
                    reason = f"over {LIMIT:g} s at a smaller size"
                if reason is not None:
                    found: Iterator[Row] = iter([{"weights": kind, "status": reason} for kind in kinds])
                else:
                    found = rows_of(workers, mean, evaluation, method, size)
                for row in found:
                    results.add(known | row)
                    if row["status"].startswith("over"):
                        too_long.add(method)
