"""Misspelled names of options get the name that was meant, wherever a name is taken: options, registries, the command."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC
from typer.testing import CliRunner

import reduset
from reduset import Gaussian, Laplacian, Mixture, bandwidth, compress, cover, kernels, select, simplify, sketch, weigh, weights
from reduset._messages import closest
from reduset.cli.entry import app
from reduset.cohort import CohortMap
from reduset.cytometry import CohortStudy
from reduset.density import SparseKernelDensity
from reduset.drift import DriftTest, two_sample
from reduset.explain import background
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures, NeighbourKLKernel, pairwise
from reduset.io import as_table
from reduset.modes import SparseMeanShift
from reduset.proportions import ClassProportions
from reduset.report import PathDisplay
from reduset.spectral import Nystroem, ReducedDiffusionMap, ReducedKernelPCA, ReducedSpectralClustering
from reduset.stream import StreamCompressor
from reduset.svm import compress_svm

X = np.random.default_rng(0).normal(size=(60, 2))
Y = np.repeat([0, 1], 30)
BAGS = [X[:20], X[20:40], X[40:]]
MIXTURE = Mixture([0.5, 0.5], X[:2], np.ones(2))
FRAME = pd.DataFrame({"city": list("ab") * 5, "x": np.arange(10.0)})
SVM = SVC().fit(X, Y)


def _per_name(registry, call):
    """A case a name, its last letter missing."""
    return [(lambda wrong=name[:-1]: call(wrong), name) for name in registry if len(name) > 3]


CASES = {
    "select": [
        (lambda: compress(X, Gaussian(1.0), size=5, select="k-means"), "kmeans"),
        *_per_name(select.BY_NAME, select.as_selector),
    ],
    "weights": _per_name(weights.KINDS, lambda wrong: compress(X, Gaussian(1.0), size=5, weights=wrong)),
    "kernel": _per_name(kernels.FAMILIES, lambda wrong: compress(X, wrong, size=5)),
    "pieces": [(lambda: compress(X, size=5, pieces="component"), "components")],
    "quotas": [
        (lambda: compress(X, size=5, groups=Y, quotas="sqrt"), "square root"),
        (lambda: sketch(X, 5, groups=Y, quotas="square-root"), "square root"),
        (lambda: sketch(X, 5, groups=Y, quotas="proportion"), "proportional"),
    ],
    "scales": [
        (lambda: Gaussian(scales="std"), "standard"),
        (lambda: sketch(X, 5, scales="atuo"), "auto"),
        (lambda: sketch(X, 5, scales="Robust"), "robust"),
        (lambda: DriftTest(scales="robst").fit(X), "robust"),
        (lambda: two_sample(X, X, scales="standart"), "standard"),
        (lambda: bandwidth.column_scales(X, rule="robst"), "robust"),
    ],
    "bandwidth": [
        *_per_name(bandwidth.RULES, Gaussian),
        (lambda: SparseKernelDensity(bandwidth="scot").fit(X), "scott"),
        (lambda: DensityFeatures(bandwidth="Scott's").fit(BAGS), "scott"),
    ],
    "kernel_width": [(lambda: MeanMapFeatures(kernel_width="meadian").fit(BAGS), "median")],
    "space": [(lambda: Gaussian(1.0, space="L2"), "l2")],
    "metric": [
        (lambda: cover(X, 5, metric="cos"), "cosine"),
        (lambda: Laplacian(metric="city-block"), "cityblock"),
        (lambda: SparseKernelDensity(metric="euclidian").fit(X), "euclidean"),
        (lambda: pairwise(BAGS, metric="helinger"), "hellinger"),
    ],
    "density kernel": [(lambda: SparseKernelDensity(kernel="gausian").fit(X), "gaussian")],
    "explain weights": [(lambda: background(X, 5, weights="equl"), "equal")],
    "stream": [
        (lambda: StreamCompressor(Gaussian(1.0), weights="fre").fit(X).result(), "free"),
        (lambda: StreamCompressor(Gaussian(1.0), size=5, select="gredy", buffer=16).fit(X).result(), "greedy"),
    ],
    "weigh": [(lambda: weigh(X, X[:5], Gaussian(1.0), weights="simplx"), "simplex")],
    "simplify": [
        (lambda: simplify(MIXTURE, size=1, method="zang"), "zhang"),
        (lambda: simplify(MIXTURE, size=1, covariance="diagonal"), "diag"),
        (lambda: simplify(MIXTURE, size=1, start="k-means"), "kmeans"),
    ],
    "proportions": [
        (lambda: ClassProportions(method="likelyhood").fit(X, Y), "likelihood"),
        (lambda: ClassProportions(norm="whitend").fit(X, Y), "whitened"),
        (lambda: ClassProportions(solver="simplx").fit(X, Y), "simplex"),
        (lambda: ClassProportions(select="k_means").fit(X, Y), "kmeans"),
    ],
    "modes": [(lambda: SparseMeanShift(via="mixtures").fit(X), "mixture")],
    "cohort": [
        (lambda: CohortMap(distance="MMD").fit(BAGS), "mmd"),
        (lambda: CohortMap(layout="isomaps").fit(BAGS), "isomap"),
        (lambda: CohortStudy(null="atuo").fit(BAGS), "auto"),
        (lambda: CohortStudy(scales="robst").fit(BAGS), "robust"),
        (lambda: CohortMap().fit(pd.DataFrame({"donor": Y, "x": X[:, 0]}), sample="doner"), "donor"),
    ],
    "features": [
        (lambda: DensityFeatures("helinger").fit(BAGS), "hellinger"),
        (lambda: HistogramFeatures(output="feature").fit(BAGS), "features"),
        (lambda: DensityFeatures(outside="clipp").fit(BAGS), "clip"),
        (lambda: NeighbourKLKernel(divergence="reny").fit(BAGS), "renyi"),
    ],
    "spectral": [
        (lambda: ReducedKernelPCA(reduce="shadows").fit(X), "shadow"),
        (lambda: ReducedKernelPCA(kernel="laplace").fit(X), "laplacian"),
        (lambda: ReducedKernelPCA(eigen_solver="randomised").fit(X), "randomized"),
        (lambda: ReducedDiffusionMap(weights="nearst").fit(X), "nearest"),
        (lambda: ReducedSpectralClustering(2, assign_labels="k-means").fit(X), "kmeans"),
        (lambda: Nystroem(kernel="RBF").fit(X), "rbf"),
    ],
    "svm": [(lambda: compress_svm(SVM, size=5, method="zang"), "zhang")],
    "io": [
        (lambda: as_table(FRAME, encode="atuo"), "auto"),
        (lambda: as_table(FRAME, encode="city=one-hot"), "onehot"),
        (lambda: as_table(FRAME, encode={"city": "one_hot"}), "onehot"),
        (lambda: as_table(FRAME, encode="auto", missing="dropp"), "drop"),
        (lambda: as_table(FRAME[["x"]], transform="arcsin:5"), "asinh"),
    ],
    "precision": [(lambda: compress(X, Gaussian(1.0), size=5).mean(X, precision="singel"), "single")],
    "device": [(lambda: reduset.set_device("gpu:cuda"), "cuda")],
    "display": [(lambda: PathDisplay._check("ful", ("full", "small")), "full")],
}
FLAT = [pytest.param(call, meant, id=f"{group}-{k}") for group, cases in CASES.items() for k, (call, meant) in enumerate(cases)]


@pytest.mark.parametrize(("call", "meant"), FLAT)
def test_the_name_that_was_meant_is_named(call, meant):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert f"did you mean {meant!r}?" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: compress(X, size=5, weights="count"), "use sketch"),
        (lambda: compress(X, size=5, weights="counts"), "use sketch"),
        (lambda: compress(X, size=5, select="balance"), "use sketch"),
        (lambda: compress(X, size=5, pieces="row"), "use sketch"),
    ],
)
def test_names_near_one_that_is_elsewhere_get_its_advice(call, advice):
    with pytest.raises(ValueError, match=advice):
        call()


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        (["sketch", "{}", "-o", "out.csv", "--size", "5", "--quotas", "sqrt"], "square root"),
        (["sketch", "{}", "-o", "out.csv", "--size", "5", "--scales", "robst"], "robust"),
        (["cover", "{}", "-o", "out.csv", "--size", "5", "--metric", "cos"], "cosine"),
        (["compress", "{}", "-o", "out.npz", "--pieces", "component"], "components"),
        (["compress", "{}", "-o", "out.npz", "--kernel", "gausian"], "gaussian"),
        (["compress", "{}", "-o", "out.npz", "--select", "k-means"], "kmeans"),
        (["compress", "{}", "-o", "out.npz", "--weights", "simplx", "--bandwidth", "1"], "simplex"),
        (["compress", "{}", "-o", "out.npz", "--bandwidth", "scot"], "scott"),
    ],
)
def test_the_command_names_it_too(options, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=["a", "b"]).to_csv("data.csv", index=False)
    result = CliRunner().invoke(app, [each.format("data.csv") for each in options])
    assert result.exit_code
    assert f"did you mean {meant!r}?" in f"{result.exception} {result.output}"


def test_what_is_close_is_close_up_to_case_hyphens_underscores_and_spaces():
    names = ("square root", "proportional", "sum_to_one", "kmeans")
    assert closest("Sum-To-One", names) == "sum_to_one"
    assert closest("sqrt", names) == "square root"
    assert closest("prop", names) == "proportional"
    assert closest("zebra", names) is None
    assert closest("s", names) is None
    assert closest(3, names) is None
