"""Streams that were made to break things: rows far out, odd weights, edited files, interrupts."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from reduset import Gaussian, Laplacian
from reduset.covering import Covering
from reduset.stream import StreamCompressor


def exact_error(X, w, mean):
    """‖f − f_m‖ / ‖f‖ by the definition, in float64 from all pairs; Gaussians alone."""
    h = mean.kernel.bandwidth

    def gram(A, B):
        return np.exp(-cdist(A, B, "sqeuclidean") / (2 * h * h))

    w = w / w.sum()
    square, across = float(w @ gram(X, X) @ w), float(mean.weights @ gram(mean.atoms, X) @ w)
    return np.sqrt(max(square - 2 * across + float(mean.weights @ gram(mean.atoms, mean.atoms) @ mean.weights), 0.0) / square)


def covering_radius(X, atoms):
    return float(cdist(X, atoms).min(axis=1).max())


@pytest.fixture
def few_rises(monkeypatch):
    """Ends a covering that goes round in circles."""
    raised, rose = Covering._raised, []

    def counted(covering):
        rose.append(covering.threshold)
        assert len(rose) < 300, "the covering does not end"
        return raised(covering)

    monkeypatch.setattr(Covering, "_raised", counted)


@pytest.mark.parametrize("far", [1e6, 1e12, 1e18, 1e36, 1e100])
@pytest.mark.parametrize("place", [0, 1500])
@pytest.mark.parametrize("d", [2, 45])
def test_a_row_far_out_does_not_blur_the_others(far, place, d, few_rises):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, d)) / np.sqrt(d)
    X[place] = far
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = StreamCompressor(Gaussian(0.5), 20, 0, buffer=500)
        for a in range(0, len(X), 700):
            stream.partial_fit(X[a : a + 700])
        small = stream.result()
    error, (low, high) = exact_error(X, np.ones(len(X)), small.mean), small.certificate.interval
    assert 0.95 * low <= error <= 1.05 * high
    assert covering_radius(X, small.mean.atoms) < 20  # the row far out is an atom, or close to one


@pytest.mark.parametrize("apart", [1e6, 1e9, 1e12])
def test_clusters_far_apart_are_covered_as_well_as_near_ones(apart, few_rises):
    rng = np.random.default_rng(1)
    for kernel, metric in ((Gaussian(1.0), "euclidean"), (Laplacian(1.0, metric="cityblock"), "cityblock")):
        X = rng.normal(size=(2000, 2))
        X[rng.random(2000) < 0.5] += apart
        covering = Covering.empty(kernel, 20, 2)
        for a in range(0, len(X), 500):
            covering = covering.absorb(X[a : a + 500], np.ones(500))
        unit = kernel.product(2).stretch
        assert cdist(X, covering.centres, metric).min(axis=1).max() * unit <= covering.radius * (1 + 1e-6)
        assert covering.radius <= 8 * 2 * unit  # twenty discs of radius 2 cover both clusters
