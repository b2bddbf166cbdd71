"""Calls of same_digits.py on small data with fixed seeds: kernels, means, bandwidths, compressions, certificates."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Matern

import reduset
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, bandwidth, compress
from reduset.select import Auto, Cholesky, ColumnNorm, Greedy, Herding, KCenter, KMeans, Paring, Random, Shadow, Thinning

CALLS: dict[str, Callable[[], Any]] = {}


def add(name: str, function: Callable[..., Any], *given: Any, **options: Any) -> None:
    if name in CALLS:
        raise KeyError(f"{name} twice")
    CALLS[name] = partial(function, *given, **options)


@cache
def cloud(n: int = 500, d: int = 2, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.uniform(0.5, 1.5, d) + 3 * rng.normal(size=(4, d))[rng.integers(0, 4, n)]


@cache
def shares(n: int = 500) -> np.ndarray:
    return np.random.default_rng(1).exponential(size=n)


@cache
def bags(count: int = 6, n: int = 150, d: int = 2) -> list[np.ndarray]:
    return [cloud(n + k, d, seed=k % 3) * (1 + 0.1 * k) + 0.2 * k for k in range(count)]


def refused(function: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """What it returns, or why it refuses."""
    try:
        return function(*given, **options)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


# -- kernels, means, bandwidths ---------------------------------------------------------------------------------------------

KERNELS: dict[str, Callable[..., Any]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "cityblock": partial(Laplacian, metric="cityblock"),
    "student": Student,
    "student 2.5": partial(Student, exponent=2.5),
}
COVARIANCES = {"plain": None, "axes": np.array([1.5, 0.7]), "oblique": np.array([[1.5, 0.4], [0.4, 0.7]])}
RULES = ("scott", "silverman", "median", "iqr", "jaakkola", "neighbour", "mode_clustering")


def of_kernel(make: Callable[..., Any], **options: Any) -> Any:
    kernel, Q = make(0.8, **options), cloud(40, seed=2) * 2
    f, g = KernelMean.from_samples(cloud(), kernel), KernelMean.from_samples(cloud(seed=3), kernel, shares())
    small = compress(f, size=12, select="kcenter", rng=0)
    values = [h(Q, precision=precision) for h in (f, f - g / 3) for precision in ("auto", "single", "double")]
    slopes = [f.gradient(Q), f.log_density(Q), f.log_density(Q * 1e3), (f - 2 * g).log_density(Q)]
    return values, slopes, [f.inner(g), f.norm(), f.distance(g), f.mass], f.sample(20, rng=0), small, small.at(5)


def of_file() -> Any:
    f = KernelMean.from_samples(cloud(), Student("iqr", covariance=COVARIANCES["oblique"], exponent=2.0), shares())
    f.save("f.npz")
    return f, KernelMean.load("f.npz"), Path("f.npz").read_bytes(), pickle.loads(pickle.dumps(f))


def of_mean(X: np.ndarray, kernel: Any) -> Any:
    f, Q = KernelMean.from_samples(X, kernel), X[:40] + 0.5
    return [f, f.norm(), f.inner(f)], f(Q), *((f.gradient(Q), f.log_density(Q)) if isinstance(kernel, Gaussian) else ())


def function_file() -> Any:
    KernelMean.from_samples(cloud(50), FunctionKernel("laplacian", gamma=0.3)).save("f.npz")
    return KernelMean.load("f.npz"), KernelMean.load("f.npz")(cloud(30))


def of_sums() -> Any:
    f, g = (KernelMean.from_samples(cloud(50, seed=seed), Gaussian(1.0)) for seed in (0, 1))
    return f + g, f - g, f * 3, 2 * f, f / 7, -f, str(f)


for (name, make), space, normalized, (shape, covariance) in product(
    KERNELS.items(), ("rkhs", "l2"), (False, True), COVARIANCES.items()
):
    options = {"space": space, "normalized": normalized, "covariance": covariance}
    add(f"kernel/{name}/{space}{'/normalized' * normalized}/{shape}", refused, of_kernel, make, **options)
for name, make in KERNELS.items():
    for n, d in ((6000, 1), (5000, 5), (1200, 45)):  # 40 columns and more go by matrix products
        X, kernel = partial(cloud, n, d), partial(make, 1.5 * d**0.5)
        add(f"kernel/{name}/{d} columns", lambda X, kernel: compress(X(), kernel(), size=15, select="kcenter", rng=0), X, kernel)
add("mean/file", of_file)
add("mean/arithmetic", of_sums)
add("mean/function kernel by name", function_file)
add("mean/function kernel", lambda: of_mean(cloud(), FunctionKernel("rbf", gamma=0.3)))
add("mean/float32", lambda: of_mean(cloud(9000, 3).astype(np.float32), Gaussian("median")))
add("mean/far from zero", lambda: of_mean(cloud() + 1e6, Gaussian(0.5)))
add("mean/45 columns", lambda: of_mean(cloud(500, 45), Gaussian(9.0)))
for rule in RULES:
    find = getattr(bandwidth, rule)
    add(f"bandwidth/{rule}", lambda find: find(cloud()), find)
    add(f"bandwidth/{rule}/weighted", lambda find: find(cloud(), sample_weight=shares()), find)
    add(f"bandwidth/{rule}/counted", lambda find: find(cloud(), sample_weight=np.arange(500) % 3), find)
    add(f"bandwidth/{rule}/many rows", lambda find: find(cloud(25_000, 3).astype(np.float32)), find)
    add(f"bandwidth/{rule}/many columns", lambda find: find(cloud(2500, 20)), find)
    add(f"bandwidth/{rule}/repeated", lambda find: find(cloud(1000).round(1)), find)
    add(f"bandwidth/{rule}/resolved", lambda rule: Laplacian(rule).resolve(cloud(300), shares(300)), rule)
add("bandwidth/jaakkola/classes", lambda: bandwidth.jaakkola(cloud(), None, cloud()[:, 0] > 0))
add("bandwidth/jaakkola/weighted classes", lambda: bandwidth.jaakkola(cloud(), shares(), cloud()[:, 0] > 0))
for rule in ("jaakkola", "neighbour"):
    add(f"bandwidth/{rule}/many repeated", lambda find: find(cloud(25_000).round(1)), getattr(bandwidth, rule))
    add(f"bandwidth/{rule}/mostly repeated", lambda find: find(cloud(25_000).round(0)), getattr(bandwidth, rule))
add("bandwidth/coincident", lambda: Gaussian("scott").resolve(np.ones((9, 2))))

# -- compress ---------------------------------------------------------------------------------------------------------------

SELECTORS = {
    "auto": Auto(), "auto, little time": Auto(budget=0.001), "cholesky": Cholesky(), "columnnorm": ColumnNorm(),
    "greedy": Greedy(), "herding": Herding(), "plain herding": Herding(line_search=False), "kcenter": KCenter(),
    "kcenter mean": KCenter(first="mean"), "kcenter 7": KCenter(first=7), "kmeans": KMeans(), "kmeans of 300": KMeans(rows=300),
    "paring": Paring(), "blurred paring": Paring(blur=0.5), "random": Random(), "shadow": Shadow(),
    "narrow shadow": Shadow(ell=2.5), "thinning": Thinning(),
}  # fmt: skip
WEIGHTS = ("free", "sum_to_one", "clipped", "simplex_projection", "simplex", "own")
GOALS = {"size": {"size": 14}, "tol": {"tol": 0.15, "max_size": 60}, "plateau": {"plateau": 1e-3, "max_size": 60}}


def pressed(X: Callable[[], Any], kernel: Any = None, at: int | None = None, **options: Any) -> Any:
    small = compress(X(), kernel, **{"rng": 0} | options)
    return small if at is None else (small, small.at(at))


def reweighed(kernel: Any, weights: str) -> Any:
    full = KernelMean.from_samples(cloud(), Gaussian(0.8))
    return refused(compress(full, size=20, rng=0).reweigh, full, kernel=kernel, weights=weights, rng=1)


def signed() -> KernelMean:
    return KernelMean(cloud(), np.where(cloud()[:, 1] > 0, 1.0, -0.5) * shares(), Gaussian(0.8, normalized=True))


def very_many(weights: str) -> Any:
    small = compress(cloud(8100, 3), Gaussian(0.002), size=8001, select="random", weights=weights, rng=0)
    return small.mean, small.certificate, small.indices, small.remark  # without its path, which takes long


def progress() -> Any:
    heard: list[tuple[str, int, int]] = []
    compress(cloud(9000), size=20, refine=3, rng=0, progress=lambda *step: heard.append(step))
    return heard


def threads(count: int, function: Callable[..., Any], *given: Any, **options: Any) -> Any:
    reduset.set_threads(count)
    try:
        return function(*given, **options)
    finally:
        reduset.set_threads(None)


for (name, selector), weights in product(SELECTORS.items(), WEIGHTS):
    add(f"select/{name}/{weights}", refused, pressed, cloud, Gaussian(0.8), select=selector, weights=weights, size=12, at=5)
for name, selector in SELECTORS.items():
    for goal in ("tol", "plateau"):
        add(f"select/{name}/{goal}", pressed, cloud, Laplacian(1.5, space="l2"), select=selector, **GOALS[goal])
    add(f"select/{name}/many rows", pressed, partial(cloud, 20_000, 3), Gaussian(0.7), select=selector, size=40)
    add(f"select/{name}/weighted", pressed, cloud, Student(0.8), select=selector, size=12, sample_weight=shares())
    add(f"select/{name}/function", refused, pressed, cloud, FunctionKernel("laplacian", gamma=0.5), select=selector, size=12)
    add(f"select/{name}/signed", refused, pressed, signed, select=selector, size=12)
    add(f"select/{name}/alone", lambda each: each.select(KernelMean.from_samples(cloud(), Gaussian(0.8)), 15, rng=3), selector)
for name in ("auto", "cholesky", "columnnorm", "greedy", "herding", "kcenter", "kmeans", "paring", "random", "shadow", "thinning"):
    add(f"select/{name}/by name", pressed, cloud, Gaussian("scott"), select=name, size=9)
for name in ("auto", "greedy", "kcenter", "kmeans", "cholesky"):
    add(f"select/{name}/64 columns", pressed, partial(cloud, 3000, 64), Gaussian(8.0), select=name, size=20)
add("select/groups", lambda: pressed(signed, select=KCenter(groups=cloud()[:, 0] > -2), size=12))
add("select/shadow/its own end", pressed, partial(cloud, 3000), Gaussian(1.0), select=Shadow(ell=1.5))
add(
    "select/shadow/its own end, refined",
    pressed,
    partial(cloud, 3000),
    Gaussian(1.0),
    select=Shadow(ell=1.5),
    refine=3,
    max_size=20,
)
add("select/kcenter/repeated points", pressed, lambda: cloud(800).round(0), Gaussian(0.5), select="kcenter", size=100)
for name, goal in GOALS.items():
    add(f"compress/{name}/default kernel", pressed, cloud, **goal)
    add(f"compress/{name}/refined", pressed, cloud, Gaussian(0.8), refine=6, **goal)
    add(f"compress/{name}/many rows", pressed, partial(cloud, 15_000), Gaussian(0.8), **goal)
add("compress/not reached", pressed, cloud, Gaussian(0.05), tol=0.01, max_size=20)
for (name, make), weights in product(KERNELS.items(), ("free", "simplex")):
    add(f"refine/{name}/{weights}", pressed, cloud, make(1.0, normalized=True), size=8, refine=5, weights=weights)
for weights in WEIGHTS:
    add(f"refine/{weights}/kmeans", refused, pressed, cloud, Gaussian(0.8), size=8, select="kmeans", refine=4, weights=weights)
    add(f"compress/reweigh/{weights}", reweighed, Gaussian(1.2), weights)
add("refine/l2, oblique", pressed, cloud, Gaussian(0.5, COVARIANCES["oblique"], space="l2"), size=8, refine=5)
add("refine/as long as it takes", pressed, cloud, Gaussian(0.8), size=8, refine=True, at=3)
add("refine/many rows", pressed, partial(cloud, 12_000, 3), Gaussian("median"), size=25, refine=8)
add("refine/signed", pressed, signed, size=10, refine=5)
add("compress/reweigh/laplacian", reweighed, Laplacian("scott"), "free")
add("compress/again", lambda: compress(compress(cloud(), Gaussian(0.8), size=60, rng=0).mean, size=10, rng=1))
add("compress/frame", pressed, lambda: pd.DataFrame(cloud(), columns=["a", "b"]), Gaussian(0.8), size=10)
add("compress/generator", lambda: pressed(cloud, Gaussian(0.8), size=10, rng=np.random.default_rng(5)))
add("compress/callable", pressed, cloud, Matern(length_scale=1.0, nu=1.5), size=10)
add("compress/pickled", lambda: pickle.loads(pickle.dumps(compress(cloud(), Gaussian(0.8), size=10, rng=0))).at(4))
for weights in WEIGHTS[:5]:
    add(f"compress/long path/{weights}", pressed, partial(cloud, 2000), Gaussian(0.3), size=330, weights=weights, select="kcenter")
for weights in ("free", "own"):
    add(f"compress/beyond 8,000 atoms/{weights}", very_many, weights)
for weights in WEIGHTS:
    add(f"compress/redundant atoms/{weights}", pressed, cloud, Gaussian(30.0), size=40, select="random", weights=weights)
add(
    "compress/rows of no weight",
    pressed,
    cloud,
    Gaussian(0.8),
    size=9,
    select="kcenter",
    refine=4,
    sample_weight=np.arange(500) % 3,
)
add("compress/refined to a tolerance", pressed, cloud, Gaussian(1.5), tol=0.02, refine=4, select="kcenter")
add("compress/refined, doubled", pressed, cloud, Gaussian(0.5), tol=0.02, refine=2, select="kcenter")
add("compress/refined, not reached", pressed, cloud, Gaussian(0.5), tol=1e-3, refine=2, max_size=12)
add("compress/progress", progress)
for count in (1, 2, 3):
    add(f"threads/{count}", threads, count, pressed, partial(cloud, 20_000, 3), Gaussian(0.7), size=60, refine=5)

# -- certificates -----------------------------------------------------------------------------------------------------------

for (name, make), space in product(KERNELS.items(), ("rkhs", "l2")):
    add(f"certificate/frequencies/{name}/{space}", pressed, partial(cloud, 5000), make(1.0, space=space), size=30, select="kcenter")
    add(
        f"certificate/wide mass missing/{name}/{space}",
        pressed,
        partial(cloud, 5000),
        make(0.02, space=space),
        size=30,
        select="random",
    )
add("certificate/exact", pressed, partial(cloud, 4096), Gaussian(0.8), size=30, select="kcenter", confidence=0.9)
add("certificate/exact to rounding", pressed, cloud, Gaussian(30.0), size=25, select="greedy")
add("certificate/function kernel", pressed, partial(cloud, 5000), FunctionKernel("rbf", gamma=0.5), size=12, select="kcenter")
add("certificate/student of exponent 60", pressed, partial(cloud, 5000), Student(20.0, exponent=60.0), size=20, select="kcenter")
add("certificate/beyond phases", pressed, partial(cloud, 5000), Gaussian(1e-10), size=12, select="random")
add(
    "certificate/oblique",
    pressed,
    partial(cloud, 5000),
    Gaussian(0.5, COVARIANCES["oblique"]),
    size=30,
    select="kcenter",
    confidence=0.999,
)
add("certificate/density", pressed, partial(cloud, 5000), Gaussian(0.8, normalized=True), size=30, weights="simplex", at=10)
add("certificate/one wide column", pressed, lambda: cloud(5000, 3) * [1e4, 1.0, 1e-3], Gaussian(50.0), size=20, select="kcenter")
