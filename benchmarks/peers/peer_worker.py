"""The peers of the comparison as functions of (cloud, size, bandwidth) that return indices of rows, or new points.

It runs in the peers' environment, without reduset. Requests and answers are lines of standard input and output (`serve`), one timed
run each; the caller decides which runs count. `--check` compares the kernels with exp(−r²/2h²).

A few settings were tried on banana and on cytometry, and the best ones are used:

- goodpoints thins with the target kernel in both of its steps, as its Compress++ does, and keeps every row at most once, which
saves atoms with optimal weights. It halves, so m atoms come from m·2^k rows: a random subset in random order. Its Compress++ gives
powers of two only; its two steps (compress the bins, thin the result) give any size with m·2^j bins. The oversampling g is the
largest up to 4 with an affordable last step. - coreax is compiled as a whole. Pivoted Cholesky runs in float32, its default, and in
float64, which is slower and has lower errors at large bandwidths; thinning supports float32 only. For many rows, coreax offers
map-reduce (here with leaves of four times the size) in place of herding, and Compress++ in place of thinning. - fpsample uses its
fastest variant, scikit-learn its defaults.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np

PACKAGES = ("goodpoints", "coreax", "fpsample", "scikit-learn", "numpy", "jax", "jaxlib", "equinox")
MOST_KEPT = 8192  # rows in the last step of Compress++, whose matrix is then half a gigabyte
PAIRS_TIMES_DIMENSIONS = 1e10
BLAS_FROM = 16  # dimensions from which the kernel matrix is faster by matrix product than by goodpoints' own loop


@dataclass
class Cloud:
    """The data, and copies of it for the libraries; copying is not timed."""

    X: np.ndarray
    _copies: dict[str, Any] = field(default_factory=dict)

    def for_coreax(self, precision: str, order: np.ndarray | None = None) -> Any:
        key = precision + ("" if order is None else " shuffled")
        if key not in self._copies:
            import jax.numpy as jnp
            from coreax import Data

            self._copies[key] = Data(jnp.asarray(self.X if order is None else self.X[order], dtype=precision))
        return self._copies[key]


def kernel_matrix(Y: np.ndarray, h: float) -> np.ndarray:
    """exp(−r²/2h²) of all pairs; goodpoints divides r² by its parameter, without the 2."""
    if Y.shape[1] >= BLAS_FROM:
        from sklearn.metrics.pairwise import rbf_kernel

        return rbf_kernel(Y, gamma=1 / (2 * h * h))
    from goodpoints import gaussianc

    K = np.empty((len(Y), len(Y)))
    gaussianc.gaussian_kernel_same(Y, 2 * h * h, K)
    return K


def goodpoints_thin(cloud: Cloud, size: int, h: float) -> np.ndarray:
    from goodpoints import kt

    halvings = int(np.log2(len(cloud.X) / size))
    rows = np.random.default_rng(0).permutation(len(cloud.X))[: size << halvings]
    K = kernel_matrix(cloud.X[rows], h)
    return rows[kt.thin_K(K, K, halvings, seed=0, unique=True)]


def compress_plan(n: int, d: int, size: int) -> tuple[int, int, int]:
    """(bins, rows of a bin, oversampling g): as many rows as possible, in as few bins as possible.

    From g = log4(rows of a bin) on, there is nothing to compress and all rows are thinned at once; this has the lowest priority.
    """
    most_kept = max(2 * size, min(MOST_KEPT, int(np.sqrt(PAIRS_TIMES_DIMENSIONS / d))))
    whole = [size >> j for j in range(size.bit_length()) if size % (1 << j) == 0]
    plans = []
    for bins in whole + [size << j for j in range(1, 12)]:
        depth = int(np.log2(n / bins)) // 2 if bins <= n else 0
        for g in range(5):
            kept = bins * min(2 ** (g + depth), 4**depth)
            if depth > 0 and size < kept <= most_kept:
                plans.append((bins * 4**depth, g < depth, -bins, g, depth))
    _, _, bins, g, depth = max(plans)
    return -bins, 4**depth, g


def goodpoints_compress(cloud: Cloud, size: int, h: float) -> np.ndarray:
    from goodpoints import compress, kt

    bins, rows_a_bin, g = compress_plan(*cloud.X.shape, size)
    rows = np.random.default_rng(0).permutation(len(cloud.X))[: bins * rows_a_bin]
    Y = cloud.X[rows]
    kept = compress.compress_kt(Y, b"gaussian", k_params=np.array([2 * h * h]), g=g, num_bins=bins, seed=0)
    K = kernel_matrix(Y[kept], h)
    return rows[kept[kt.thin_K(K, K, int(np.log2(len(kept) // size)), seed=0, unique=True)]]


def goodpoints_compresspp(cloud: Cloud, size: int, h: float, g: int) -> np.ndarray:
    """The function of the library, for sizes that it offers."""
    from goodpoints import compress

    rows = np.random.default_rng(0).permutation(len(cloud.X))[: size * size]
    found = compress.compresspp_kt(cloud.X[rows], b"gaussian", k_params=np.array([2 * h * h]), g=g, seed=0)
    if len(found) != size:
        raise ValueError(f"compresspp_kt gives {len(found)} rows here, not {size}")
    return rows[found]


@cache
def _compiled() -> Callable[[Any, Any], Any]:
    import equinox

    return equinox.filter_jit(lambda solver, data: solver.reduce(data)[0].unweighted_indices)


def _kernel(h: float) -> Any:
    from coreax.kernels import SquaredExponentialKernel

    return SquaredExponentialKernel(length_scale=h)


def coreax_herding(cloud: Cloud, size: int, h: float) -> np.ndarray:
    from coreax.solvers import KernelHerding

    return np.asarray(_compiled()(KernelHerding(size, kernel=_kernel(h)), cloud.for_coreax("float32")))


def coreax_mapreduce(cloud: Cloud, size: int, h: float) -> np.ndarray:
    from coreax.solvers import KernelHerding, MapReduce

    solver = MapReduce(KernelHerding(size, kernel=_kernel(h)), leaf_size=4 * size)
    return np.asarray(_compiled()(solver, cloud.for_coreax("float32")))


def coreax_cholesky(cloud: Cloud, size: int, h: float, precision: str) -> np.ndarray:
    import jax
    from coreax.solvers import RPCholesky

    with jax.enable_x64(precision == "float64"):
        solver = RPCholesky(size, random_key=jax.random.key(0), kernel=_kernel(h))
        return np.asarray(_compiled()(solver, cloud.for_coreax(precision)))


def coreax_thinning(cloud: Cloud, size: int, h: float) -> np.ndarray:
    import jax
    from coreax.solvers import KernelThinning

    n = len(cloud.X)
    order = np.random.default_rng(0).permutation(n)  # it halves the first rows, so these must be random
    # not the square root of the kernel, which underflows in float32 in many dimensions; errors on banana were equal
    k = _kernel(h)
    solver = KernelThinning(size, kernel=k, sqrt_kernel=k, random_key=jax.random.key(0), delta=1 / (n * np.log(np.log(n))))
    return order[np.asarray(_compiled()(solver, cloud.for_coreax("float32", order)))]


def coreax_compress(cloud: Cloud, size: int, h: float) -> np.ndarray:
    import jax
    from coreax.solvers import CompressPlusPlus

    n, k = len(cloud.X), _kernel(h)
    used = 4 ** (int(np.log2(n)) // 2)
    g = max(2, int(np.ceil(np.log2(size / np.sqrt(used)))))
    delta = 1 / np.log(np.log(n))
    solver = CompressPlusPlus(size, g=g, kernel=k, sqrt_kernel=k, random_key=jax.random.key(0), delta=delta)
    return np.asarray(_compiled()(solver, cloud.for_coreax("float32")))


def goodpoints_cholesky(cloud: Cloud, size: int, h: float) -> np.ndarray:
    """The randomly pivoted Cholesky decomposition in goodpoints' debiasing tools."""
    import jax.numpy as jnp
    from goodpoints.jax.rpc import rpcholesky

    if "rpc" not in cloud._copies:
        cloud._copies["rpc"] = jnp.asarray(cloud.X, dtype="float32")
    points = (cloud._copies["rpc"], jnp.float32(1 / (2 * h * h)))
    return np.asarray(rpcholesky(_gaussian_column, points, jnp.ones(len(cloud.X)), size, rng_gen=np.random.default_rng(0))[1])


def _gaussian_column(j: Any, points: Any) -> Any:
    import jax.numpy as jnp

    X, gamma = points
    return jnp.exp(-gamma * jnp.square(X - X[j]).sum(axis=1))


def farthest_points(cloud: Cloud, size: int, h: float) -> np.ndarray:
    import fpsample

    n, d = cloud.X.shape
    if d > 8:  # the limit of the bucketed variants
        return fpsample.fps_sampling(cloud.X, size, start_idx=0).astype(np.int64)
    height = 7 if n >= 50_000 else 5 if n >= 5_000 else 3
    return fpsample.bucket_fps_kdline_sampling(cloud.X, size, h=height, start_idx=0).astype(np.int64)


def cluster_centres(cloud: Cloud, size: int, h: float, kind: str) -> np.ndarray:
    from sklearn import cluster

    with warnings.catch_warnings():  # about fewer distinct points than clusters
        warnings.simplefilter("ignore")
        return np.asarray(getattr(cluster, kind)(size, random_state=0).fit(cloud.X).cluster_centers_, np.float64)


def uniform(cloud: Cloud, size: int, h: float) -> np.ndarray:
    return np.random.default_rng(0).choice(len(cloud.X), size, replace=False)


METHODS: dict[str, Callable[[Cloud, int, float], np.ndarray]] = {
    "goodpoints-thin": goodpoints_thin,
    "goodpoints-compress": goodpoints_compress,
    "goodpoints-compresspp-g0": partial(goodpoints_compresspp, g=0),
    "goodpoints-compresspp-g4": partial(goodpoints_compresspp, g=4),
    "goodpoints-cholesky": goodpoints_cholesky,
    "coreax-herding": coreax_herding,
    "coreax-mapreduce": coreax_mapreduce,
    "coreax-cholesky-float32": partial(coreax_cholesky, precision="float32"),
    "coreax-cholesky-float64": partial(coreax_cholesky, precision="float64"),
    "coreax-thinning": coreax_thinning,
    "coreax-compress": coreax_compress,
    "fpsample": farthest_points,
    "kmeans": partial(cluster_centres, kind="KMeans"),
    "minibatch-kmeans": partial(cluster_centres, kind="MiniBatchKMeans"),
    "uniform": uniform,
}


def check() -> None:
    """Every library's kernel against exp(−r²/2h²), at a distance that shows a factor of 2."""
    from goodpoints import compressc, gaussianc

    rng = np.random.default_rng(0)
    Y, h = rng.normal(size=(2, 20)), 3.7
    truth = float(np.exp(-np.square(Y[0] - Y[1]).sum() / (2 * h * h)))
    K = np.empty((2, 2))
    gaussianc.gaussian_kernel_same(Y, 2 * h * h, K)
    found = {"goodpoints thinning": K[0, 1], "matrix product": kernel_matrix(Y, h)[0, 1]}
    compressc.compute_K(Y, np.arange(2), b"gaussian", np.array([2 * h * h]), K)
    found["goodpoints Compress++"] = K[0, 1]
    found["coreax"] = np.asarray(_kernel(h).compute(Y[:1].astype(np.float32), Y[1:].astype(np.float32)))[0, 0]
    wrong = {name: float(value) for name, value in found.items() if abs(value - truth) > 1e-6}
    if wrong:
        raise SystemExit(f"kernels differ from {truth}: {wrong}")
    print(f"all kernels are exp(−r²/2h²): {', '.join(found)}")


def serve(find: Callable[[str], Callable[[Cloud, int, float], Any]], packages: tuple[str, ...]) -> None:
    """Answer requests, a JSON object a line, until the input ends.

    {"load": path} reads a cloud. {"method", "size", "bandwidth", "out"} runs once, saves atoms and, if the method has them,
    weights, and answers with the seconds of the method.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # keeps output of the libraries out of the answers
    answers.write(json.dumps({"versions": {package: version(package) for package in packages}}) + "\n")
    cloud = Cloud(np.empty((0, 0)))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                cloud = Cloud(np.load(request["load"]))
                answer: dict[str, Any] = {"loaded": len(cloud.X)}
            else:
                answer = {"seconds": _once(find(request["method"]), cloud, request)}
        except Exception as error:  # an error of one method is its result
            answer = {"failed": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(answer) + "\n")


def _once(method: Callable[[Cloud, int, float], Any], cloud: Cloud, request: dict[str, Any]) -> float:
    begun = time.perf_counter()
    found = method(cloud, request["size"], request["bandwidth"])
    seconds = time.perf_counter() - begun
    atoms, weights = found if isinstance(found, tuple) else (found, None)
    atoms = cloud.X[atoms] if atoms.ndim == 1 else atoms
    np.savez(request["out"], atoms=atoms, **({} if weights is None else {"weights": weights}))
    return seconds


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        check()
    else:
        serve(METHODS.__getitem__, PACKAGES)
