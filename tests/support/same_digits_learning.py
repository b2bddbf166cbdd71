"""Calls of same_digits.py, continued: SVMs, spectra, features of bags."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs, make_moons
from sklearn.gaussian_process.kernels import Matern
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from reduset import Gaussian, KernelMean, compress
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures, NeighbourKLKernel, pairwise
from reduset.select import Herding
from reduset.spectral import (
    Nystroem,
    ReducedDiffusionMap,
    ReducedKernelPCA,
    ReducedLaplacianEigenmap,
    ReducedSpectralClustering,
    WeightedNystroem,
)
from reduset.svm import CompressedOneClassSVM, CompressedSVC, CompressedSVR, compress_svm
from same_digits_calls import add, bags, cloud, shares

# -- SVMs -------------------------------------------------------------------------------------------------------------------


@cache
def task(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "moons":
        return make_moons(160, noise=0.25, random_state=0)
    if name == "blobs":
        X, y = make_blobs(200, centers=4, cluster_std=2.5, random_state=1)
        return X, np.array(["ant", "bee", "cat", "dog"])[y]
    X = cloud(120, 3)
    return X, np.sin(X[:, 0]) + X[:, 1]


MACHINES = {
    "two classes": (SVC(gamma=1.0), "moons"), "nu, two classes": (NuSVC(nu=0.3), "moons"),
    "four classes": (SVC(gamma=0.1, C=3.0), "blobs"), "pairs": (SVC(gamma=0.1, decision_function_shape="ovo"), "blobs"),
    "ties": (NuSVC(nu=0.3, gamma=0.1, break_ties=True), "blobs"), "regression": (SVR(gamma=0.4, C=5.0), "waves"),
    "nu regression": (NuSVR(gamma="auto", C=2.0), "waves"), "outliers": (OneClassSVM(gamma=0.5, nu=0.4), "moons"),
}  # fmt: skip
METHODS = ("auto", "mixture", "refine", "kcenter", "kl")
HOMES = {
    "classes": CompressedSVC,
    "pairs": CompressedSVC,
    "ties": CompressedSVC,
    "regression": CompressedSVR,
    "outliers": CompressedOneClassSVM,
}


def machine(name: str, blind: bool = False, scored: bool = False, **options: Any) -> Any:
    model, (X, y) = MACHINES[name][0], task(MACHINES[name][1])
    small = compress_svm(model.fit(X, y), X=None if blind else X, y=y if scored else None, **{"rng": 0} | options)
    return small, svm_values(small, X[:40] + 0.1)


def svm_values(small: Any, Q: np.ndarray) -> Any:
    more = [small.score_samples(Q)] if hasattr(small, "score_samples") else []
    return [small.predict(Q), small.decision_function(Q), small.predict(csr_array(Q)), small.expansion_(Q), str(small), *more]


def svm_file(name: str) -> Any:
    small = machine(name, size=9, method="mixture", polish=5)[0]
    small.save("svm.npz")
    again = HOMES[name.split(" ")[-1]].load("svm.npz")
    return (
        again,
        svm_values(again, task(MACHINES[name][1])[0][:40]),
        Path("svm.npz").read_bytes(),
        small.to_onnx().SerializeToString(),
    )


for name, method in product(MACHINES, METHODS):
    add(f"svm/{name}/{method}", machine, name, size=9, method=method, polish=6, scored=name != "outliers")
for name in MACHINES:
    add(f"svm/{name}/blind", machine, name, blind=True, fraction=0.15, method="mixture", polish=6)
    add(f"svm/{name}/as the paper", machine, name, size=9, method="mixture", refit=False, polish=False)
    add(f"svm/{name}/file", svm_file, name)
    add(f"svm/{name}/all", machine, name, fraction=1.0)
for name in ("two classes", "regression"):
    add(f"svm/{name}/not reached", machine, name, tol=1e-9, method="kcenter")
    add(f"svm/{name}/tol", machine, name, tol=0.1, method="mixture", polish=6)
    add(f"svm/{name}/polished", machine, name, size=6)
    add(f"svm/{name}/kl as the paper", machine, name, size=9, method="kl", refit=False, polish=False)

# -- spectra ----------------------------------------------------------------------------------------------------------------

REDUCE = {
    "shadow": {"ell": 2.5}, "capped shadow": {"size": 25}, "kmeans": {"reduce": "kmeans", "size": 25},
    "all": {"reduce": None, "size": None}, "kcenter": {"reduce": "kcenter", "size": 25},
    "herding": {"reduce": Herding(), "size": 25}, "random": {"reduce": "random", "size": 25},
    "paring": {"reduce": "paring", "size": 25}, "nearest": {"reduce": "random", "size": 25, "weights": "nearest"},
}  # fmt: skip
ESTIMATORS = {
    "pca": partial(ReducedKernelPCA, 3), "plain pca": partial(ReducedKernelPCA, 3, refine=False, centre=False),
    "diffusion": partial(ReducedDiffusionMap, 2), "laplacian": partial(ReducedLaplacianEigenmap, 2),
    "clusters": partial(ReducedSpectralClustering, 3), "weighted nystroem": partial(WeightedNystroem, n_components=5),
}  # fmt: skip


def embedded(make: Any, n: int = 400, weight: Any = None, back: bool = False, **options: Any) -> Any:
    fitted = {} if weight is None else {"sample_weight": weight}
    found = make(**{"kernel": Gaussian(1.0), "random_state": 0} | options).fit(cloud(n), **fitted)
    places = found.transform(cloud(60, seed=2)) if hasattr(found, "transform") else found.predict(cloud(60, seed=2))
    return found, places, found.inverse_transform(places) if back else None


for (name, make), (how, options) in product(ESTIMATORS.items(), REDUCE.items()):
    add(f"spectral/{name}/{how}", embedded, make, **options)
for name, make in ESTIMATORS.items():
    for kernel in ("rbf", "laplacian", "gaussian", "student", None):
        add(f"spectral/{name}/kernel {kernel}", embedded, make, kernel=kernel, reduce="kmeans", size=20)
    if "nystroem" not in name:
        add(f"spectral/{name}/weighted", embedded, make, weight=shares(400), reduce="kmeans", size=20)
add("spectral/pca/cosine", embedded, ESTIMATORS["pca"], kernel="cosine", reduce="random", size=20)
add("spectral/pca/function", embedded, ESTIMATORS["pca"], kernel=Matern(1.0, nu=1.5), reduce="kcenter", size=20)
add("spectral/pca/gamma", embedded, ESTIMATORS["pca"], kernel="rbf", gamma=0.7, reduce="kcenter", size=20)
add("spectral/pca/back", embedded, partial(ReducedKernelPCA, 3, fit_inverse_transform=True, alpha=0.1), back=True, ell=2.5)
add("spectral/pca/every component", embedded, ReducedKernelPCA, reduce="kmeans", size=12)
add(
    "spectral/pca/compression",
    lambda: embedded(ESTIMATORS["pca"], reduce=compress(cloud(400), Gaussian(1.0), size=25, weights="simplex", rng=0)),
)
for solver in ("dense", "arpack"):
    add(f"spectral/pca/{solver}", embedded, ESTIMATORS["pca"], n=1500, reduce="random", size=700, eigen_solver=solver)
add("spectral/pca/700 atoms", embedded, ESTIMATORS["pca"], n=1500, reduce="random", size=700)
add("spectral/pca/1,500 atoms", embedded, ESTIMATORS["pca"], n=2500, reduce="random", size=1500)
add("spectral/pca/shadow of a function", embedded, ESTIMATORS["pca"], kernel=Matern(1.0, nu=1.5), ell=2.5)
add("spectral/pca/mean", lambda: embedded(ESTIMATORS["pca"], reduce=KernelMean.from_samples(cloud(40), Gaussian(1.0)), kernel=None))
add("spectral/pca/rows of no weight", embedded, ESTIMATORS["pca"], weight=np.arange(400) % 3, reduce=None)
add("spectral/diffusion/time", embedded, partial(ReducedDiffusionMap, 2, alpha=0.5, time=3.0), ell=2.5)
add("spectral/diffusion/parts", lambda: embedded(ESTIMATORS["diffusion"], kernel=Gaussian(0.1), reduce="kmeans", size=25))
add("spectral/clusters/default", embedded, ReducedSpectralClustering, ell=2.5, n_init=3)
for how in ("random", "kmeans", "kcenter", "shadow"):
    add(f"spectral/nystroem/{how}", embedded, Nystroem, n_components=20, reduce=how)

# -- features of bags -------------------------------------------------------------------------------------------------------

DISTANCES = ("js", "hellinger", "tv", "chi2", "l2")


def features(make: Any, d: int = 2, given: Any = None, **options: Any) -> Any:
    fitted = bags(d=d) if given is None else given
    found = make(**({"random_state": 0} if make is not NeighbourKLKernel else {}) | options).fit(fitted)
    more = [] if make is not NeighbourKLKernel else [found.divergences_to_fitted(bags(d=d)[1:3])]
    return found, found.transform(fitted), found.transform(bags(d=d)[1:3]) if options.get("group") is None else None, more


LISTS: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.Series,
    "polars": lambda given: pl.Series([bag.tolist() for bag in given]),
    "arrow": lambda given: pa.chunked_array([[bag.tolist() for bag in given]]),
}


def large(**options: Any) -> Any:
    rows = [cloud(11_000, 5, seed) for seed in (0, 1)]
    return DensityFeatures("js", output="distance", bandwidth=0.08, n_nodes=512, random_state=0, **options).fit_transform(rows)


for distance in DISTANCES:
    for d in (1, 2, 3, 4):
        add(
            f"features/density/{distance}/{d} columns",
            features,
            partial(DensityFeatures, distance, n_components=40),
            d=d,
            n_nodes=512 if d > 3 else None,
        )
    add(
        f"features/density/{distance}/marginals", features, partial(DensityFeatures, distance, n_components=40), d=8, marginals=True
    )
    add(
        f"features/density/{distance}/random",
        features,
        partial(DensityFeatures, distance, frequencies="random", orthogonal=False),
        n_components=40,
    )
    add(f"features/histogram/{distance}", features, partial(HistogramFeatures, distance, n_components=40), n_bins=5)
    add(f"features/pairwise/{distance}", lambda distance: pairwise(bags(), distance, margin=0.1), distance)
for name, options in {
    "fourier": {"basis": "fourier"}, "values": {"basis": "values"}, "sobol": {"integration": "sobol", "n_nodes": 512},
    "vectors": {"output": "distance"}, "uniform": {"integration": "uniform", "n_nodes": 300},
    "bandwidth": {"bandwidth": 0.1, "kernel_width": 0.5}, "nodes": {"n_nodes": 24},
    "frequencies": {"n_frequencies": 9, "n_basis": 5}, "margin": {"margin": 0.3, "n_jobs": 2},
}.items():  # fmt: skip
    add(f"features/density/{name}", features, partial(DensityFeatures, "js"), **{"n_components": 40} | options)
for (name, make), psd in product(LISTS.items(), ("clip", "flip", "shift")):
    add(
        f"features/neighbour/{name}/{psd}",
        lambda make, psd: NeighbourKLKernel(psd=psd, kernel_width=3.0).fit(make(bags(12, 30))).transform(bags(3, 30)),
        make,
        psd,
    )
add("features/density/large bags", large)
add("features/density/large bags, not merged", large, tol=None)
add(
    "features/density/weighted",
    lambda: features(DensityFeatures, given=[compress(bag, Gaussian(1.0), size=20, rng=0) for bag in bags()], n_components=40),
)
add(
    "features/density/table",
    lambda: features(
        DensityFeatures,
        given=pd.concat([pd.DataFrame(bag, columns=["u", "v"]).assign(bag=k) for k, bag in enumerate(bags())]),
        group="bag",
        n_components=40,
    ),
)
for rule in ("median", "scott", 1.5):
    add(f"features/mean map/{rule}", features, MeanMapFeatures, n_components=40, n_point_components=60, bandwidth=rule)
add("features/mean map/vectors", features, MeanMapFeatures, n_point_components=60, output="distance", orthogonal=False)
add("features/histogram/marginals", features, HistogramFeatures, d=5, marginals=True, n_components=40, margin=0.1)
for divergence, psd in product(("kl", "renyi", "hellinger"), ("clip", "flip", "shift", None)):
    options = {"divergence": divergence, "psd": psd, "kernel_width": 3.0}  # wide enough to be indefinite
    add(f"features/neighbour/{divergence}/{psd}", features, NeighbourKLKernel, given=bags(20, 40), **options)
add("features/neighbour/options", features, NeighbourKLKernel, divergence="renyi", alpha=0.5, n_neighbors=2, kernel_width=1.0)
