"""What those who come from SciPy, KDEpy and scikit-learn ask of a density: boxes, its names of metrics, kernels that end."""

import numpy as np
import pytest
from scipy import stats

from reduset.density import SparseKernelDensity


@pytest.mark.parametrize("pieces", ["atoms", "components"])
def test_boxes_hold_about_the_share_of_the_rows(pieces):
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    density = SparseKernelDensity(size=50, pieces=pieces, random_state=0).fit(X)
    low, high = [-1.0, -np.inf], [0.5, 0.3]
    share = ((low < X) & (high > X)).all(axis=1).mean()
    assert density.integrate_box(low, high) == pytest.approx(share, abs=0.02)
    assert density.cdf([[0.5, 0.3], [np.inf, np.inf]])[1] == pytest.approx(1.0, abs=1e-12)


def test_exactly_whitened_it_is_scipys_density_and_its_boxes():
    X, w = np.random.default_rng(0).normal(size=(300, 2)) @ [[1.0, 0.5], [0.0, 0.7]], np.random.default_rng(1).uniform(size=300)
    theirs = stats.gaussian_kde(X.T, weights=w)
    ours = SparseKernelDensity(bandwidth="scott", whiten=True, size=len(X)).fit(X, sample_weight=w)
    assert np.abs(np.exp(ours.score_samples(X)) - theirs(X.T)).max() < 1e-5
    assert np.abs(np.exp(ours.mean_.log_density(X, "double")) - theirs(X.T)).max() < 1e-12
    assert ours.integrate_box([-1, -1], [0.5, 1]) == pytest.approx(theirs.integrate_box([-1, -1], [0.5, 1]), abs=1e-10)


@pytest.mark.parametrize(
    ("name", "d", "share"), [("tophat", 1, 0.577), ("epanechnikov", 1, 0.447), ("linear", 1, 0.408), ("epanechnikov", 2, 0.408)]
)
def test_kernels_that_end_are_refused_with_the_gaussian_that_is_as_wide(name, d, share):
    with pytest.raises(ValueError, match=rf"{name}.*0 beyond its bandwidth.*{share:.3f} times the bandwidth"):
        SparseKernelDensity(kernel=name, bandwidth=1.0).fit(np.random.default_rng(0).normal(size=(50, d)))


@pytest.mark.parametrize("metric", ["euclidean", "l2", "minkowski"])
def test_the_names_of_the_euclidean_metric_change_nothing(metric):
    X = np.random.default_rng(0).normal(size=(200, 2))
    one, other = (SparseKernelDensity(bandwidth=0.5, size=50, random_state=0, **given).fit(X) for given in ({}, {"metric": metric}))
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(X))


def test_other_metrics_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"metric .*got 'haversine'"):
        SparseKernelDensity(metric="haversine").fit(np.zeros((5, 2)))
