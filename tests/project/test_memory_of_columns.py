"""Peak memory of every public call on few rows with many columns: within 20 times the input, so that nothing grows as d².

Calls that need more by definition are not here, each for a reason:

- `pieces="components"` and `simplify(covariance="full")`: their result holds a (d, d) covariance for each component;
- a (d, d) `covariance=` of a kernel, and `whiten=True`: the matrix is the input;
- `CohortStudy` and `find_populations` raise an error above 2,000 markers: they keep a (d, d) covariance for each group of cells,
  2,750 times the input at 2,000 markers and 30 cells; `CohortMap` is here;
- `simplify` and `compress_svm` raise an error above 2,000 columns, where densities underflow in L2. With diagonal covariances
  `simplify` takes 35 times its input, whatever the columns: the steps that its descent remembers;
- `MeanMapFeatures` holds n_point_components / 2 frequencies of d numbers, 17 times this input by default; it is called with 200;
- `DriftMonitor` needs 50 rows; `DriftTest` holds for it what is here;
- `HistogramFeatures` and `DensityFeatures` are for few columns: their grids have b^d cells.
"""

import gc
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from reduset import Gaussian, Laplacian, Matern, Mixture, compress, cover, simplify, sketch, weigh
from reduset.cohort import CohortMap
from reduset.cytometry import CohortStudy, find_populations
from reduset.density import SparseKernelDensity
from reduset.drift import DriftTest, two_sample
from reduset.explain import background
from reduset.features import MeanMapFeatures, NeighbourKLKernel
from reduset.modes import SparseMeanShift
from reduset.proportions import ClassProportions
from reduset.spectral import (
    Nystroem,
    ReducedDiffusionMap,
    ReducedKernelPCA,
    ReducedLaplacianEigenmap,
    ReducedSpectralClustering,
    WeightedNystroem,
)
from reduset.stream import StreamCompressor
from reduset.svm import compress_svm

pytestmark = pytest.mark.slow

ROWS, COLUMNS, TIMES = 30, 8000, 20


def bags(X):
    return [X[:10], X[10:20], X[20:]]


def halves(X):
    return np.arange(len(X)) % 2


CALLS = {
    "sketch": lambda X: sketch(X, 10, rng=0),
    "sketch, robust scales": lambda X: sketch(X, 10, scales="robust", rng=0),
    "sketch of a frame": lambda X: sketch(pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])]), 10, rng=0),
    "sketch, groups": lambda X: sketch(X, 10, groups=np.arange(len(X)) % 3, rng=0),
    "compress": lambda X: compress(X, size=10, rng=0),
    "compress, tol": lambda X: compress(X, tol=0.2, rng=0),
    "compress, kernel and tol": lambda X: compress(X, Gaussian("median"), tol=0.2, rng=0),
    "compress, robust scales": lambda X: compress(X, Gaussian("median", scales="robust"), size=10, rng=0),
    "compress, open bandwidth": lambda X: compress(X, Gaussian(scales="standard"), size=10, rng=0),
    "compress, variances": lambda X: compress(X, Gaussian("median", covariance=np.full(X.shape[1], 2.0)), size=10, rng=0),
    "compress, refined": lambda X: compress(X, Gaussian("median", scales="robust"), size=5, refine=3, rng=0),
    "compress, shadow": lambda X: compress(X, Gaussian("median", scales="robust"), select="shadow", rng=0),
    "compress, Laplacian": lambda X: compress(X, Laplacian("median", scales="robust"), size=10, rng=0),
    "compress, Matérn": lambda X: compress(X, Matern("median", scales="robust"), size=10, rng=0),
    "cover": lambda X: cover(X, 10),
    "cover, cosine": lambda X: cover(X, 10, metric="cosine"),
    "weigh": lambda X: weigh(X, X[:5], Gaussian("median", scales="robust")),
    "DriftTest": lambda X: DriftTest(random_state=0).fit(X[:15]).test(X[15:]),
    "two_sample": lambda X: two_sample(X[:15], X[15:], rng=0),
    "two_sample, printed": lambda X: str(two_sample(X[:15], X[15:] + 0.5, rng=0)),
    "SparseKernelDensity": lambda X: SparseKernelDensity(bandwidth="scott").fit(X).score_samples(X[:3]),
    "SparseKernelDensity, tol": lambda X: SparseKernelDensity(bandwidth="scott", tol=0.05).fit(X).score_samples(X[:3]),
    "SparseMeanShift": lambda X: SparseMeanShift(bandwidth=100.0).fit(X),
    "ReducedKernelPCA": lambda X: ReducedKernelPCA(2).fit(X).transform(X),
    "ReducedDiffusionMap": lambda X: ReducedDiffusionMap(2).fit(X).transform(X),
    "ReducedLaplacianEigenmap": lambda X: ReducedLaplacianEigenmap(2).fit(X).transform(X),
    "ReducedSpectralClustering": lambda X: ReducedSpectralClustering(2, random_state=0).fit(X).predict(X),
    "Nystroem": lambda X: Nystroem(n_components=5, random_state=0).fit_transform(X),
    "WeightedNystroem": lambda X: WeightedNystroem(n_components=5, random_state=0).fit_transform(X),
    "StreamCompressor": lambda X: StreamCompressor(Gaussian(100.0), size=10).partial_fit(X[:15]).partial_fit(X[15:]).result(),
    "background": lambda X: background(X, 5, rng=0),
    "ClassProportions": lambda X: ClassProportions(random_state=0).fit(X, halves(X)).predict_proportions(X),
    "ClassProportions, matching": lambda X: ClassProportions(method="matching").fit(X, halves(X)).predict_proportions(X),
    "CohortMap": lambda X: CohortMap(random_state=0).fit(bags(X)),
    "MeanMapFeatures": lambda X: MeanMapFeatures(n_point_components=200, random_state=0).fit_transform(bags(X)),
    "NeighbourKLKernel": lambda X: NeighbourKLKernel().fit_transform(bags(X)),
}
MIXTURES = {
    "simplify": lambda X: simplify(Mixture(np.ones(len(X)), X, np.ones(X.shape)), 5, covariance="diag", rng=0),
    "compress_svm": lambda X: compress_svm(SVC().fit(X, halves(X)), size=3),
}


def rows(columns):
    return np.random.default_rng(0).normal(size=(ROWS, columns))


def peak_over_input(call, columns):
    """Peak memory of a call in units of its input; a call of the same size goes first, for imports and compiled code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(rows(columns))
        X = rows(columns)
        gc.collect()
        tracemalloc.start()
        try:
            call(X)
            return tracemalloc.get_traced_memory()[1] / X.nbytes
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("name", CALLS)
def test_memory_does_not_grow_as_the_square_of_the_columns(name):
    assert peak_over_input(CALLS[name], COLUMNS) < TIMES


def test_diagonal_mixtures_take_memory_in_proportion_to_the_columns():
    few, many = (peak_over_input(MIXTURES["simplify"], columns) for columns in (500, 1000))
    assert many < 1.1 * few


def test_machines_keep_to_it_with_as_many_columns_as_they_take():
    assert peak_over_input(MIXTURES["compress_svm"], 2000) < TIMES


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_with_more_columns_raise_an_error_that_names_the_limit(name):
    with pytest.raises(ValueError, match="mixture must have at most 2,000 columns"):
        MIXTURES[name](rows(2001))


@pytest.mark.parametrize("call", [find_populations, lambda bags: CohortStudy().fit(bags)], ids=["find_populations", "CohortStudy"])
def test_studies_of_more_markers_raise_an_error_that_names_the_limit(call):
    with pytest.raises(ValueError, match="at most 2,000 markers may define populations, got 2,001"):
        call(bags(rows(2001)))
