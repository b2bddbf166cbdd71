"""A digest of what several uses return, computed in the ways that are named: a line for each way, with what each time gave."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
import threading
import time
import warnings

import numpy as np

from reduset import Gaussian, KernelMean, Laplacian, compress, simplify
from reduset._engine import single_threaded_blas
from reduset.cohort import CohortMap
from reduset.cytometry import CohortStudy
from reduset.density import SparseKernelDensity
from reduset.features import MeanMapFeatures
from reduset.spectral import ReducedKernelPCA

TIMES = 4


def digest() -> str:
    """Every array that comes of these calls, to the last bit."""
    warnings.simplefilter("error")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)) + 3 * rng.normal(size=(4, 3))[rng.integers(0, 4, 900)]
    wide = rng.normal(size=(900, 60)) @ np.diag(0.9 ** np.arange(60))
    bags = [rng.normal(k % 3, 1.0, size=(120, 3)) for k in range(12)]
    found = []
    for rows, kernel, how in (
        (X, Gaussian("median"), {"size": 150}),
        (X, Gaussian("median"), {"size": 120, "refine": 5}),
        (X, Gaussian("scott"), {"size": 150, "select": "cholesky", "weights": "simplex"}),
        (X, Laplacian("median"), {"tol": 0.05}),
        (wide, Gaussian("median"), {"size": 130, "select": "greedy"}),
        (wide, Gaussian("median"), {"size": 100, "refine": 5}),
    ):
        small = compress(rows, kernel, rng=0, **how)
        found += [small.mean.atoms, small.mean.weights, np.array([small.certificate.relative_error, *small.certificate.interval])]
    found.append(KernelMean.from_samples(wide, Gaussian("median"))(wide[:50]))
    found.append(SparseKernelDensity(size=100, random_state=0).fit(X).score_samples(X[:99]))
    found.append(ReducedKernelPCA(n_components=3, reduce="kcenter", size=120, random_state=0).fit(wide).transform(wide[:40]))
    found.append(MeanMapFeatures(200, random_state=0).fit_transform(bags))
    found.append(CohortMap(random_state=0).fit(bags).distances_)
    table = {"group": ["a", "b"] * 4, "run": ["x", "x", "y", "y"] * 2}
    study = CohortStudy("group", batch="run", n_atoms=15, random_state=0).fit(bags[:8], table)
    differences, witness, clusters = study.differences_, study.witness_, study.clusters_
    found += [study.populations_.counts, study.populations_.medians, differences.p_values, differences.intervals]
    found += [witness.values, witness.fold_changes, clusters.p_values, np.array([study.whole_.statistic, study.whole_.p_value])]
    pieces = simplify(compress(X, Gaussian("scott"), size=60, rng=0).mean, size=8, polish=10, rng=0).mixture
    found += [pieces.means, pieces.covariances, pieces.weights]
    return hashlib.sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in found)).hexdigest()


def in_threads(count: int) -> list[str]:
    """By so many threads at once."""
    out: list[str] = []
    threads = [threading.Thread(target=lambda: out.append(digest())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


def in_processes(kind: str) -> list[str]:
    with multiprocessing.get_context(kind).Pool(1) as pool:
        return [pool.apply(digest), pool.apply(digest)]


def by_loky() -> list[str]:
    from joblib import Parallel, delayed

    return Parallel(n_jobs=2)(delayed(digest)() for _ in range(2))


def after_forks() -> list[str]:
    """In children that are forked while another thread computes."""
    over = threading.Event()

    def compute() -> None:
        while not over.is_set():
            digest()

    found = [digest()]  # all is imported and compiled: a child of a thread that imports would wait for ever for its lock
    other = threading.Thread(target=compute)
    other.start()
    children = []
    try:
        for k in range(TIMES):
            time.sleep(0.05 + 0.1 * k)
            children.append(_fork(digest))
    finally:
        over.set()  # what the children have of it does not change any more
        other.join()
    return found + [each for child in children for each in _end(*child)]


def _fork(function) -> tuple[int, int]:
    """A child that computes a function, and where it writes what that returns."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(theirs, " ".join(np.atleast_1d(function())).encode())
        finally:
            os._exit(0)  # without what it inherited being cleaned up twice
    os.close(theirs)
    return child, ours


def _end(child: int, ours: int) -> list[str]:
    """What a child wrote."""
    with os.fdopen(ours) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text.split() or ["nothing"]


def counts() -> list[int]:
    from threadpoolctl import ThreadpoolController

    return [each["num_threads"] for each in ThreadpoolController().info() if each["user_api"] == "blas"]


def limits() -> list[str]:
    """Whether the limit holds inside, however often, and is lifted outside."""
    import scipy.linalg  # noqa: F401

    before = counts()
    with single_threaded_blas():
        with single_threaded_blas():
            inside = counts()
        inside += counts()
    return ["held" if set(inside) == {1} else f"not-held:{inside}", "lifted" if counts() == before else f"not-lifted:{counts()}"]


def limits_in_a_thread() -> list[str]:
    """After the main thread has set a limit of its own, as scikit-learn does."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=3):
        out: list[str] = []
        thread = threading.Thread(target=lambda: out.extend(limits()))
        thread.start()
        thread.join()
    return out


def limits_after_a_fork() -> list[str]:
    """In a child of this thread while another one holds the limit."""
    import scipy.linalg  # noqa: F401

    before = counts()
    holds, over = threading.Event(), threading.Event()

    def hold() -> None:
        with single_threaded_blas():
            holds.set()
            over.wait()

    other = threading.Thread(target=hold)
    other.start()
    holds.wait()
    found = _end(*_fork(lambda: [*limits(), "lifted" if counts() == before else f"not-lifted:{counts()}"]))
    over.set()
    other.join()
    return found


def limits_lifted_by_others() -> list[str]:
    """Where other code sets the threads while ours are inside, the next of ours sets them again."""
    from threadpoolctl import ThreadpoolController

    controller = ThreadpoolController()
    with single_threaded_blas():
        thread = threading.Thread(target=lambda: controller.limit(limits=2))
        thread.start()
        thread.join()
        with single_threaded_blas():
            inside = counts()
    return ["held" if set(inside) == {1} else f"not-held:{inside}", *limits()[1:]]


WAYS = {
    "main": lambda: [digest()],
    "threads": lambda: [digest(), *in_threads(1), digest(), *in_threads(1)],
    "crowd": lambda: in_threads(TIMES),
    "fork": after_forks,
    "spawn": lambda: in_processes("spawn"),
    "loky": by_loky,
    "limits": limits,
    "limits in a thread": limits_in_a_thread,
    "limits after a fork": limits_after_a_fork,
    "limits lifted by others": limits_lifted_by_others,
}

if __name__ == "__main__":
    for way in sys.argv[1:]:
        print(way, *WAYS[way](), sep="\t", flush=True)
