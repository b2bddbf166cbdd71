"""Error and time at equal size, against the peers, over data sets × bandwidths × sizes.

Measures what `peers.csv` lacks (`python benchmarks/peers.py`, with --data, --bandwidth, --sizes and --methods to do a part), a
row as soon as it is known, so that a run can be stopped and continued. `--summary` turns the file into the section `peers` of
RESULTS.md and into `peers.png`.

Every method is given the same points and the same Gaussian bandwidth, and is asked for the same number of atoms. Its error is the
relative squared error ‖f − f_m‖²/‖f‖² from one evaluator (`evaluator`). Its time is that of a second run, when everything is
compiled; a first run of more than `LONG` seconds stands where nothing compiles on the way. Atoms of peers are weighed twice:
equally, which is how these libraries give them, and optimally, α = K⁻¹κ, by us and in the same way for all; the time of that is
added.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import eigh

import peer_data
import peer_summary
from harness import machine
from reduset import Gaussian, KernelMean, bandwidth
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.exact import ExactProbe
from reduset.weights.span import span_of
from remote import Failed, TooLong, Worker

TITLE = "Error and time at equal size, against peers"

CSV = Path(__file__).with_name("peers.csv")
COLUMNS = ("data", "n", "d", "bandwidth", "h", "size", "method", "weights", "status", "error", "seconds", "atoms")
BANDWIDTHS = ("median", "scott")
SIZES = (25, 50, 100, 200, 500)
LIMIT, LONG = 20.0, 5.0  # seconds: a run that takes longer is given up; one that takes longer is not repeated
COMPILING = 60.0  # seconds allowed to a first run that compiles
QUADRATIC_UP_TO = 10_000  # rows
EIGENVALUES_FROM = 1e-15  # of the largest; the best of 1e-11, 1e-12 … 1e-15 on three random draws of 500 from banana

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
OURS = "reduset-"
OWN = ("kcenter", "random", "kmeans", "columnnorm", "herding", "cholesky", "thinning", "greedy", "auto", "auto+refine")
NOTHING_TO_COMPILE = ("goodpoints", "fpsample", "kmeans", "minibatch", "uniform")
QUADRATIC = ("goodpoints-thin", "coreax-herding", "coreax-thinning")
FOR_MANY = ("coreax-mapreduce", "coreax-compress")  # what coreax has in their place

Measure = Callable[[np.ndarray, np.ndarray, int], float]
Key = tuple[str, str, str, str, str]


def evaluator(mean: KernelMean) -> Measure:
    """‖f − f_m‖²/‖f‖² from atoms, weights and the size asked for.

    From every pair of points, exact up to rounding. Below a thousand roundings from frequencies, whose precision is relative:
    always the same ones at one size, so that methods are compared on the same draw (atoms of weight 0 make up for those a method
    left out, because the number of atoms has a say in the frequencies).
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
    """Atoms with weights, the error that makes, and the seconds the weights took."""

    error: float
    seconds: float
    atoms: np.ndarray


def weigh_optimally(mean: KernelMean, relative: Measure, atoms: np.ndarray, size: int) -> Weighed:
    """α = K⁻¹κ, for everybody's atoms in the same way: by Cholesky, as in compress.

    Where atoms are so close that it drops some as redundant, also by the eigenvalues of K above rounding, which is what a careful
    user would do then and can be much better; the better one counts.
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
    above = vectors[:, values > EIGENVALUES_FROM * values[-1]]
    weights = above @ ((above.T @ kappa) / values[-above.shape[1] :])
    took = time.perf_counter() - resumed + between - begun
    second = Weighed(relative(atoms, weights, size), took, atoms)
    return min(first, second, key=lambda weighed: weighed.error)


def timed(worker: Worker, method: str, size: int, h: float) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Atoms, weights if the method has its own, and the seconds of a warm run."""
    compiles = not method.startswith(NOTHING_TO_COMPILE)
    found = worker.run(method, size, h, COMPILING if compiles else LIMIT)
    return worker.run(method, size, h, LIMIT) if compiles or found[2] < LONG else found


def reason_not_to(method: str, n: int) -> str | None:
    if method in QUADRATIC and n > QUADRATIC_UP_TO:
        return "not run: n² at this n"
    if method in FOR_MANY and n <= QUADRATIC_UP_TO:
        return "not run: for larger n"
    return None


class Table:
    """The file of results; a key that failed is tried again, and its last row counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done = {_key(row) for row in read(path) if not row["status"].startswith("failed")} if path.exists() else set()
        if not path.exists():
            path.write_text(f"# {machine()}\n{','.join(COLUMNS)}\n", encoding="utf-8")

    def __contains__(self, key: Key) -> bool:
        return key in self._done

    def add(self, row: dict) -> None:
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, COLUMNS).writerow(row)
        self._done.add(_key(row))
        result = f"{row['error']:.3e} in {row['seconds']:.3f} s" if row["status"] == "ok" else row["status"]
        print(f"{row['data']} {row['bandwidth']} {row['size']} {row['method']} ({row['weights']}): {result}", flush=True)


def _key(row: dict) -> Key:
    return (row["data"], row["bandwidth"], str(row["size"]), row["method"], row["weights"])


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def rows_of(
    workers: dict[bool, Worker], mean: KernelMean, measure: Callable[[], Measure], method: str, size: int
) -> Iterator[dict]:
    """One row for each kind of weights: what the method finds, how good it is, how long it took."""
    ours = method.startswith(OURS)
    kinds = (OPTIMAL,) if ours else PEERS[method]
    try:
        atoms, weights, seconds = timed(workers[ours], method, size, mean.kernel.width)
    except (TooLong, Failed) as error:
        status = f"over {LIMIT:g} s" if isinstance(error, TooLong) else f"failed: {error}"
        yield from ({"weights": kind, "status": status} for kind in kinds)
        return
    relative = measure()
    for kind in kinds:
        if weights is None and kind == OPTIMAL:
            found = weigh_optimally(mean, relative, atoms, size)
        else:
            alpha = np.full(len(atoms), 1 / len(atoms)) if weights is None else weights
            found = Weighed(relative(atoms, alpha, size), 0.0, atoms)
        more = {"error": found.error, "seconds": seconds + found.seconds, "atoms": len(found.atoms)}
        yield {"weights": kind, "status": "ok"} | more


def measure_set(
    name: str, rules: list[str], sizes: list[int], methods: list[str], table: Table, workers: dict[bool, Worker]
) -> None:
    """Everything that the table lacks about one data set."""
    X = peer_data.load(name)
    n, d = X.shape
    for worker in workers.values():
        worker.load(X)
    for rule in rules:
        h = float(getattr(bandwidth, rule)(X))
        mean = KernelMean.from_samples(X, Gaussian(h))
        prepared: list[Measure] = []

        def measure(mean: KernelMean = mean, prepared: list[Measure] = prepared) -> Measure:
            if not prepared:  # n² once a data set and bandwidth, and only if there is something to measure
                prepared.append(evaluator(mean))
            return prepared[0]

        too_long: set[str] = set()
        for size in (s for s in sizes if 2 * s < n):
            known = {"data": name, "n": n, "d": d, "bandwidth": rule, "h": h, "size": size}
            for method in methods:
                kinds = (OPTIMAL,) if method.startswith(OURS) else PEERS[method]
                if all(_key(known | {"method": method, "weights": kind}) in table for kind in kinds):
                    continue
                known["method"] = method
                reason = reason_not_to(method, n)
                if reason is None and method in too_long:
                    reason = f"over {LIMIT:g} s at a smaller size"
                if reason is not None:
                    found: Iterator[dict] = iter([{"weights": kind, "status": reason} for kind in kinds])
                else:
                    found = rows_of(workers, mean, measure, method, size)
                for row in found:
                    table.add(known | row)
                    if row["status"].startswith("over"):
                        too_long.add(method)


def run() -> str:
    """The section of RESULTS.md, from what has been measured."""
    if not CSV.exists():
        raise SystemExit(f"{CSV.name} is not there: run `make peers` first")
    recorded_on = CSV.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return peer_summary.text(read(CSV), recorded_on, CSV.with_suffix(".png"))


def main() -> None:
    everything = [*PEERS, *(OURS + name for name in OWN)]
    parser = argparse.ArgumentParser(description="Measure peers and ours at equal size, or summarise what was measured.")
    parser.add_argument("--data", nargs="+", default=peer_data.NAMES, choices=peer_data.NAMES, metavar="SET")
    parser.add_argument("--bandwidth", nargs="+", default=BANDWIDTHS, choices=sorted(bandwidth.RULES), metavar="RULE")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--methods", nargs="+", default=everything, help=f"of {', '.join(PEERS)}; {OURS}NAME for ours")
    parser.add_argument("--csv", type=Path, default=CSV, help="where the results are")
    parser.add_argument("--summary", action="store_true", help="write the section of RESULTS.md and the picture")
    options = parser.parse_args()
    if options.summary:
        import run as results

        results.main(["peers"])
        return
    unknown = [method for method in options.methods if method not in PEERS and not method.startswith(OURS)]
    if unknown:
        parser.error(f"unknown method {', '.join(unknown)}; there are {', '.join(everything)}")
    table = Table(options.csv)
    workers = {True: Worker.ours(), False: Worker.peers()}
    little = KernelMean.from_samples(np.eye(3), Gaussian(1.0))
    weigh_optimally(little, evaluator(little), np.eye(3), 3)  # what is compiled is not timed
    try:
        for name in options.data:
            measure_set(name, options.bandwidth, sorted(options.sizes), options.methods, table, workers)
    finally:
        for worker in workers.values():
            worker.stop()


if __name__ == "__main__":
    main()
