"""Calls of same_digits.py, continued: mixtures, densities, modes, proportions, cohorts, streams, Dask."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Mixture, Student, compress, simplify
from reduset.cohort import CohortMap, distances, divergences, procrustes
from reduset.density import SparseKernelDensity
from reduset.modes import SparseMeanShift, clustering_distance, discrepancy_index, segment
from reduset.proportions import ClassProportions
from reduset.stream import StreamCompressor
from same_digits_calls import COVARIANCES, KERNELS, RULES, WEIGHTS, add, bags, cloud, shares, threads

# -- mixtures ---------------------------------------------------------------------------------------------------------------


@cache
def mixture(shape: str = "full", n: int = 60, d: int = 2, signed: bool = False) -> Mixture:
    rng = np.random.default_rng(4)
    roots = rng.normal(size=(n, d, d)) * 0.4
    covariances = roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(d)
    diagonal = np.ascontiguousarray(np.diagonal(covariances, axis1=1, axis2=2))
    weights = rng.exponential(size=n)
    weights = weights / weights.sum() if not signed else weights * rng.choice([-0.3, 1.0], n)
    return Mixture(weights, cloud(n, d), {"full": covariances, "diag": diagonal, "spherical": diagonal[:, 0]}[shape])


def of_mixture(shape: str) -> Any:
    f, g, Q = mixture(shape), mixture(shape, 25), cloud(40, seed=2)
    f.save("f.npz")
    loaded, cut = Mixture.load("f.npz"), [f.marginal([1]), f.conditional([1], [0.3])]
    values = [
        f(Q),
        f.gradient(Q),
        f.log_density(Q),
        f.log_density(Q * 1e3),
        f.inner(g),
        f.norm(),
        f.distance(g),
        f.mean(),
        f.covariance(),
    ]
    return f, values, f.kl(g, count=500, rng=0), f.sample(30, rng=0), cut, [f + g, f - g, f * 2, f / 3, -f], loaded, f.is_density


def of_sklearn(shape: str) -> Any:
    f = Mixture.from_sklearn(GaussianMixture(4, covariance_type=shape, random_state=0).fit(cloud()))
    return f, f.to_sklearn().score_samples(cloud(30))


def few(f: Callable[[], Any], size: int | None = None, **options: Any) -> Any:
    return simplify(f(), size, **{"rng": 0} | options)


for shape in ("full", "diag", "spherical"):
    add(f"mixture/{shape}", of_mixture, shape)
    add(f"mixture/{shape}/scikit-learn", of_sklearn, shape)
    for covariance, method in product(("full", "diag", "spherical"), ("l2", "kl")):
        add(
            f"simplify/{shape} to {covariance}/{method}",
            few,
            partial(mixture, shape),
            6,
            covariance=covariance,
            method=method,
            polish=8,
        )
    add(f"simplify/{shape}/signed", few, partial(mixture, shape, signed=True), 8, polish=5)
add("mixture/scikit-learn/tied", of_sklearn, "tied")
add(
    "mixture/of a mean",
    lambda f: [Mixture.from_mean(f()), Mixture.from_mean(f()).to_mean()],
    lambda: KernelMean.from_samples(cloud(80), Gaussian(0.5, COVARIANCES["oblique"], normalized=True)),
)
add("simplify/as the paper", few, mixture, 6, refit=False, polish=False)
add("simplify/refit", few, mixture, 6, polish=False)
add("simplify/polished", few, mixture, 6)
add("simplify/free weights", few, mixture, 6, density=False, polish=5)
add("simplify/labels", few, mixture, start=np.arange(60) % 5, polish=5)
add("simplify/radius", few, mixture, radius=1.5, polish=5)
add("simplify/tol", few, mixture, tol=0.05, polish=5)
add("simplify/as many", few, mixture, 60, covariance="full")
add("simplify/small radius", few, partial(mixture, n=200), radius=0.05, polish=2)
add("simplify/signed labels", few, partial(mixture, signed=True), start=np.arange(60) % 5, polish=3)
add("simplify/signed, one", few, partial(mixture, signed=True), 1, polish=3)
add("simplify/on a line", few, lambda: Mixture(np.ones(50), np.outer(np.arange(50.0), [1, 2]), np.full(50, 1e-12)), 4, polish=3)
add("simplify/one place", few, lambda: Mixture(np.ones(30), np.zeros((30, 2)), 2.0 ** np.arange(30)), 5, polish=3)
add("simplify/tol not reached", few, mixture, tol=1e-6, max_size=4, polish=3)
add(
    "simplify/weights that differ", few, lambda: Mixture(2.0 ** -np.arange(60), cloud(60), 4.0 ** -(np.arange(60) % 5)), 8, polish=5
)
add(
    "simplify/a mean",
    few,
    lambda: KernelMean.from_samples(cloud(3000), Gaussian("scott", normalized=True, space="l2")),
    10,
    polish=8,
)
add("simplify/five columns", few, partial(mixture, "full", 80, 5), 8, polish=5)
add("simplify/33 columns", few, partial(mixture, "diag", 40, 33), 5, polish=3, covariance="diag")
add("simplify/estimated error", few, lambda: KernelMean.from_samples(cloud(21_000), Gaussian(0.3)), 12, polish=3)

# -- densities, modes, proportions ------------------------------------------------------------------------------------------


def density(n: int = 500, weight: Any = None, slices: bool = True, **options: Any) -> Any:
    found = SparseKernelDensity(random_state=0, **options).fit(cloud(n), sample_weight=weight)
    values = [found.score_samples(cloud(30)), found.score(cloud(30)), found.sample(10, random_state=1)]
    return found, values, [found.marginal([1]), found.conditional([0], [1.0])] if slices else None


def modes(n: int = 500, weight: Any = None, **options: Any) -> Any:
    found = SparseMeanShift(random_state=0, **options).fit(cloud(n), sample_weight=weight)
    return found, found.predict(cloud(60, seed=2)), found.predict(cloud(20) * 50)


def compared() -> Any:
    small, full = (SparseMeanShift(bandwidth=0.6, size=size, random_state=0).fit(cloud()) for size in (20, 500))
    shifted = discrepancy_index(small.ends_, full.ends_, radius=0.3)
    return shifted, clustering_distance(small.labels_, full.labels_), clustering_distance(cloud()[:, 0] > 0, full.labels_, shares())


@cache
def picture(grey: bool = False) -> np.ndarray:
    rng = np.random.default_rng(0)
    image = np.zeros((24, 36, 3), np.uint8)
    image[:, :18], image[8:16, 9:27] = (200, 30, 30), (240, 220, 90)
    image = np.clip(image + rng.normal(0, 12, image.shape), 0, 255).astype(np.uint8)
    return image[..., 0].copy() if grey else image


def cells(n: int = 300, d: int = 3, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())
    return rng.normal(size=(n, d)) + 1.5 * np.eye(d)[y % d], np.array(["ant", "bee", "cat", "dog"])[y]


def proportions(weight: Any = None, **options: Any) -> Any:
    X, y = cells()
    found = ClassProportions(random_state=0, **options).fit(X, y, sample_weight=weight)
    sample = cells(120, seed=5)[0]
    told = [found.estimate(sample), found.estimate(sample + 2, confidence=0.8)]
    return found, found.predict_proportions(sample), told, [each.fits for each in told]


for kernel in ("gaussian", "exponential", "student"):
    for name, more in {"rule": {}, "search": {"bandwidth": "likelihood"}}.items():
        add(f"density/{kernel}/{name}", density, kernel=kernel, slices=kernel == "gaussian", tol=0.1, **more)
        add(f"density/{kernel}/{name}, size", density, kernel=kernel, slices=kernel == "gaussian", size=20, **more)
add("density/default", density, n=3000)
add("density/exact", density, size=500)
add("density/not reached", density, tol=1e-4, max_size=20)
add("density/whitened", density, size=20, whiten=True)
add("density/whitened search", density, n=800, size=20, whiten=True, bandwidth="likelihood")
add("density/weighted", density, weight=shares(), size=20, bandwidth="likelihood")
add("density/weighted, exact", density, weight=shares(), bandwidth="likelihood")
add("density/given bandwidths", density, bandwidth=np.linspace(0.2, 1.0, 5), tol=0.1)
add("density/refined", density, size=12, refine=4, select="kmeans", weights="sum_to_one")
add("density/search beyond 10,000 rows", density, n=12_000, bandwidth="likelihood", size=40)
add("density/search ends at an end", density, bandwidth=np.linspace(0.01, 0.03, 3), size=20)
add("density/weights that differ", density, n=12_000, weight=shares(12_000) ** 3, bandwidth="likelihood", size=20)
add("density/cityblock search", density, kernel=Laplacian(metric="cityblock"), bandwidth="likelihood", size=20, slices=False)
add(
    "density/frame",
    lambda: SparseKernelDensity(size=20, random_state=0).fit(pd.DataFrame(cloud(), columns=["a", "b"])).conditional("a", [1.0]),
)
add("density/kernel object", density, kernel=Gaussian(0.5, COVARIANCES["oblique"]), size=20)
for via in ("atoms", "mixture"):
    add(f"modes/{via}/default", modes, via=via)
    add(f"modes/{via}/size", modes, via=via, bandwidth=0.5, size=25)
    add(f"modes/{via}/tol", modes, via=via, bandwidth="scott", tol=0.1)
    add(f"modes/{via}/weighted", modes, via=via, bandwidth=0.5, size=25, weight=shares())
    add(f"modes/{via}/orphans", modes, via=via, bandwidth=0.3, size=25, merge=0.5, cluster_all=False, orphan=0.5)
    add(f"modes/{via}/few steps", modes, via=via, bandwidth=0.5, size=25, max_iter=3)
    add(f"modes/{via}/many rows", modes, n=12_000, via=via, bandwidth=0.6, size=60)
    add(f"modes/segment/{via}", lambda via: segment(picture(), bandwidth=0.15, via=via, size=40, random_state=0), via)
    add(f"modes/{via}/full", modes, via=via, bandwidth=0.5, size=500)
    add(f"modes/{via}/not reached", modes, via=via, bandwidth=0.1, tol=0.001, max_size=20)
add("modes/mixture/wide radius", modes, via="mixture", bandwidth=0.5, radius=100.0)
add("modes/mixture/radius", modes, via="mixture", bandwidth=0.5, radius=1.0)
add("modes/mixture/certificate by components", modes, n=25_000, via="mixture", bandwidth=0.003, size=20)
add("modes/compared", compared)
add(
    "modes/segment/colours",
    lambda: segment(picture(), bandwidth=0.1, spatial=0, min_size=5, via="mixture", radius=0.1, random_state=0),
)
add("modes/segment/grey", lambda: segment(picture(grey=True), spatial=0.5, size=40, random_state=0))
for name, options in {
    "search": {}, "search, size": {"size": 30}, "tol": {"kernel": Gaussian(1.0), "tol": 0.1},
    "kernel norm": {"kernel": Gaussian(1.0), "norm": "kernel", "size": 30},
    "all": {"kernel": Gaussian(1.0), "norm": "kernel", "size": "all"}, "all, search": {"norm": "kernel", "size": "all"},
    "l2": {"kernel": Gaussian(0.8), "space": "l2", "size": 30},
    "l2, kernel norm": {"kernel": Laplacian(0.8), "space": "l2", "norm": "kernel", "size": 30},
    "projection": {"kernel": Gaussian(1.0), "solver": "projection", "size": 30},
    "ridge": {"kernel": Gaussian(1.0), "ridge": 1e-3, "size": 30},
    "search around": {"kernel": Student(1.0), "bandwidth_search": True, "size": 30, "ridge": 1e-2},
    "no search": {"bandwidth_search": False, "size": 30}, "function": {"kernel": FunctionKernel("rbf", gamma=0.5), "size": 30},
    "kcenter": {"kernel": Gaussian(1.0), "size": 30, "select": "kcenter"},
    "weighted": {"kernel": Gaussian(1.0), "size": 30, "weight": shares(300)},
    "weighted search": {"size": 30, "weight": shares(300)}, "rows of no weight": {"size": 30, "weight": np.arange(300) % 3},
    "classifier": {"classifier": LogisticRegression(), "size": 30},
}.items():  # fmt: skip
    add(f"proportions/{name}", proportions, **options)

# -- cohorts ----------------------------------------------------------------------------------------------------------------


def cohort(distance: str, layout: str, given: Any = None, **options: Any) -> Any:
    found = CohortMap(distance, layout, random_state=0, n_neighbors=3, draws=200, **options).fit(bags() if given is None else given)
    return found, found.transform(bags()[1:3]), found.distances_to_fitted([bags()[0] + 0.3, bags()[2] + 40.0])


def aligned() -> Any:
    one, other = (
        CohortMap(layout="mds", atoms=atoms, size=size, random_state=0).fit(bags())
        for atoms, size in (("shared", 20), ("all", None))
    )
    return procrustes(one.embedding_, other.embedding_)


def between(function: Callable[..., Any], small: bool, **options: Any) -> Any:
    means = [KernelMean.from_samples(bag, Gaussian(1.0, normalized=True)) for bag in bags()]
    means = [compress(mean, size=15, weights="simplex", rng=0).mean for mean in means] if small else means
    return function(means, **options), function(means[:2], means[3:], **options)


def named() -> Any:
    frames = {f"p{k}": pd.DataFrame(bag, columns=["u", "v"]) for k, bag in enumerate(bags())}
    table = pd.concat([frame.assign(patient=name) for name, frame in frames.items()])
    return [
        CohortMap(layout="mds", size=20, random_state=0).fit(frames),
        CohortMap(layout="mds", size=20).fit(table, sample="patient"),
    ]


for distance, layout, atoms in product(("mmd", "kl"), ("isomap", "mds"), ("shared", "own", "all")):
    more = {} if atoms == "all" else {"size": 20}
    add(f"cohort/{distance}/{layout}/{atoms}", cohort, distance, layout, atoms=atoms, **more)
for distance, atoms in product(("mmd", "kl"), ("shared", "own")):
    add(f"cohort/{distance}/{atoms}/default", cohort, distance, "mds", atoms=atoms, max_size=60)
    add(f"cohort/{distance}/{atoms}/tol", cohort, distance, "mds", atoms=atoms, tol=0.2)
for name in ("kmeans", "kcenter", "auto"):
    add(f"cohort/select {name}", cohort, "mmd", "mds", size=20, select=name)
for name, kernel in {
    "laplacian": Laplacian("iqr"),
    "l2": Gaussian(1.0, space="l2", normalized=True),
    "student": Student(1.0),
}.items():
    add(f"cohort/{name}", cohort, "mmd", "mds", kernel=kernel, size=20, n_components=1, confidence=0.8)
for count in (1, 2, 3):
    add(f"threads/{count}/cohort", threads, count, cohort, "mmd", "mds", size=20)
add("cohort/names", named)
add("cohort/alike", cohort, "mmd", "mds", given=[cloud(200), cloud(200) + 1e-4, cloud(200), cloud(200)])
add("cohort/coincident", cohort, "mmd", "mds", given=[cloud(200)] * 4, atoms="all")
add("cohort/not reached", cohort, "mmd", "mds", kernel=Gaussian(0.1), max_size=10)
add("cohort/tol not reached", cohort, "mmd", "mds", kernel=Gaussian(0.1), tol=0.01, max_size=10)
add("cohort/function", cohort, "mmd", "mds", kernel=FunctionKernel("rbf", gamma=0.3), size=15)
add("cohort/large bags", lambda: CohortMap(layout="mds", size=20, random_state=0).fit([cloud(12_000, seed=k) for k in range(3)]))
add("cohort/procrustes", aligned)
for small in (False, True):
    add(f"cohort/distances/{'compressed' if small else 'full'}", between, distances, small)
    add(f"cohort/divergences/{'compressed' if small else 'full'}", between, divergences, small, draws=200, rng=0)

# -- streams, clusters ------------------------------------------------------------------------------------------------------

ORDERS = {"as they come": lambda X: X, "sorted": lambda X: X[np.argsort(X[:, 0], kind="stable")], "back": lambda X: X[::-1]}


def flow(rows: Any = None, chunk: int = 700, weight: Any = None, **options: Any) -> StreamCompressor:
    X = cloud(6000) if rows is None else rows
    stream = StreamCompressor(**{"kernel": Gaussian(1.0), "size": 30, "random_state": 0, "buffer": 500} | options)
    for start in range(0, len(X), chunk):
        stream.partial_fit(X[start : start + chunk], sample_weight=None if weight is None else weight[start : start + chunk])
    return stream


def ended(*given: Any, **options: Any) -> Any:
    stream = flow(*given, **options)
    return stream.n_samples_seen_, getattr(stream, "kernel_", None), stream.result(), stream.result().at(7), stream.sample()


def merged(kind: str) -> Any:
    weights = "simplex" if kind == "simplex" else "free"
    first = flow(kernel=Gaussian("median" if kind == "sibling" else 1.0), weights=weights)
    for part in (1, 2):
        rows = cloud(3000, seed=part)
        first.merge(first.sibling().partial_fit(rows) if kind == "sibling" else flow(rows, random_state=part))
    return first.n_samples_seen_, first.result(), first.sample()


def resumed() -> Any:
    stream = flow(half_life=4000.0, weights="simplex", chunk=333)
    stream.checkpoint("stream.kept", about={"rows": 6000})
    again = StreamCompressor.resume("stream.kept")
    copies = [each.partial_fit(cloud(900, seed=7)).result() for each in (stream, again, pickle.loads(pickle.dumps(again)))]
    return Path("stream.kept").read_bytes(), again.about_, copies


def apart(rows: int = 3000, **options: Any) -> Any:
    return compress(da.from_array(cloud(9000), chunks=(rows, 2)), **{"kernel": Gaussian(1.0), "rng": 0} | options)


def apart_weighted() -> Any:
    rows, weights = da.from_array(cloud(9000), chunks=(3000, 1)), da.from_array(shares(9000), chunks=2000)
    parts = [cloud(1500), cloud(10)[:0], cloud(900, seed=3)]
    weighed, lazy = [dask.delayed(shares)(len(part)) for part in parts], [dask.delayed(part) for part in parts]
    listed = compress(lazy, Gaussian(1.0, normalized=True), size=20, sample_weight=weighed, rng=0)
    return compress(rows, Gaussian(1.0, normalized=True), size=20, sample_weight=weights, rng=0), listed


def tables() -> Any:
    frame = pd.DataFrame(cloud(6000), columns=["a", "b"]).assign(weight=shares(6000))
    delayed = [dask.delayed(cloud)(1500, 2, seed) for seed in range(3)]
    found = compress(dd.from_pandas(frame, npartitions=3), Gaussian(1.0), size=20, sample_weight="weight", rng=0)
    return found, compress(delayed, Gaussian("scott"), size=20, rng=0)


def cluster() -> Any:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as made, Client(made):
        return apart(size=25)


for chunk in (1, 256, 700, 6000):
    add(f"stream/chunks of {chunk}", ended, cloud(1500) if chunk == 1 else None, chunk=chunk)
for name, order in ORDERS.items():
    add(f"stream/{name}", lambda order: ended(order(cloud(6000))), order)
for (name, make), space in product(KERNELS.items(), ("rkhs", "l2")):
    add(f"stream/{name}/{space}", ended, kernel=make(0.8, space=space))
for weights in WEIGHTS[:5]:
    add(f"stream/{weights}", ended, weights=weights, confidence=0.9)
for rule in RULES:
    add(f"stream/rule {rule}", ended, kernel=Gaussian(rule))
for name, options in {
    "half life": {"half_life": 1500.0}, "weighted": {"weight": shares(6000)}, "one block": {"buffer": 65536},
    "narrow, by the sample": {"kernel": Gaussian(0.004)}, "beyond phases": {"kernel": Gaussian(1e-10)},
    "kcenter": {"select": "kcenter"}, "oblique": {"kernel": Gaussian(0.6, COVARIANCES["oblique"])},
    "more rows than the sample": {"rows": cloud(20_000, 3), "chunk": 5000, "buffer": 4096},
    "drift": {"rows": cloud(6000) + np.linspace(0, 40, 6000)[:, None], "half_life": 800.0},
}.items():  # fmt: skip
    add(f"stream/{name}", ended, **options)
add("stream/merged", merged, "merged")
add("stream/merged, simplex", merged, "simplex")
add("stream/sibling", merged, "sibling")
add("stream/resumed", resumed)
add(
    "stream/fit",
    lambda: (lambda one, other: [one.result(), other.merge(one).result()])(
        StreamCompressor(Gaussian(1.0), 30, 0, buffer=500).fit(cloud(2000)), StreamCompressor(Gaussian(1.0), 30, 1, buffer=500)
    ),
)
add("stream/simplex, forgetting", ended, weights="simplex", half_life=900.0, rows=cloud(6000) + np.linspace(0, 40, 6000)[:, None])
add("stream/repeated rows", ended, rows=cloud(6000).round(0))
add("stream/frame", lambda: flow(pd.DataFrame(cloud(2000), columns=["a", "b"])))
for name, options in {
    "size": {"size": 25}, "tol": {"tol": 0.05}, "not reached": {"tol": 1e-6, "max_size": 15},
    "rule": {"kernel": Laplacian("median"), "size": 25}, "simplex": {"size": 25, "weights": "simplex"},
    "student l2": {"kernel": Student(1.0, space="l2"), "size": 25, "confidence": 0.9},
    "small partitions": {"size": 25, "rows": 400}, "narrow": {"kernel": Gaussian(0.01), "size": 25},
    "default": {"kernel": None, "size": 25},
}.items():  # fmt: skip
    add(f"dask/{name}", apart, **options)
add("dask/tables", tables)
add("dask/weights", apart_weighted)
add("dask/cluster", cluster)
for distance, atoms in (("mmd", "shared"), ("mmd", "own"), ("kl", "shared")):
    lazy = partial(cohort, distance, "mds", size=20, atoms=atoms)
    add(f"dask/cohort/{distance}/{atoms}", lambda lazy: lazy(given=[dask.delayed(bag) for bag in bags()]), lazy)
