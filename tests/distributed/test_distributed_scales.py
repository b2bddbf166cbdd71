"""Dask at other bandwidths: the error at every scale and at the median distance, and the comparison with random rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dask_cases import parts
from reduset import Gaussian, KernelMean, Laplacian, compress, distributed
from reduset._messages import quietly


def rows(d, n=9000):
    return np.random.default_rng(d).normal(size=(n, d))


def clusters(d):
    X = 0.1 * rows(d)
    X[::3] += 3
    X[1::3] -= 3
    return X


def exact_error(X, small, bandwidth):
    kernel = replace(small.mean.kernel, bandwidth=bandwidth)
    full = KernelMean.from_samples(X, kernel)
    return full.distance(KernelMean(small.mean.atoms, small.mean.weights, kernel)) / full.norm()


@pytest.mark.parametrize(
    ("X", "kernel"),
    [
        (rows(2), Gaussian(0.6)),
        (rows(6), Gaussian(0.9)),  # the median distance is beyond the frequencies of this bandwidth
        (rows(10), Laplacian(1.0)),
        (clusters(10), Gaussian(0.9)),  # and in most directions the data hardly spread
    ],
    ids=["2-D", "6-D", "laplacian", "clusters"],
)
def test_the_error_at_the_median_distance_is_that_of_all_rows(X, kernel):
    small = distributed.compress(parts(X, 2000), kernel, size=60, rng=0)
    error, median = small.error_at_median
    assert median == pytest.approx(KernelMean.from_samples(X, Gaussian("median")).kernel.width, rel=0.03)
    assert error == pytest.approx(exact_error(X, small, median), rel=0.15)
    head, first, second, weights = str(small).splitlines()[:4]
    assert head.startswith(f"Compression: 9,000 rows × {X.shape[1]} columns -> {small.size} weighted atoms")
    assert first.startswith("  error       ")
    assert first.endswith(f"at bandwidth {kernel.bandwidth:g} ({type(kernel).__name__})")
    assert second.strip() == f"{100 * error:.3g} % at the median distance, {median:.3g}"
    assert weights.startswith("  weights     ")


def test_the_profile_is_that_of_all_rows():
    X = rows(2)
    small = distributed.compress(parts(X, 2000), Gaussian(0.5), size=60, rng=0)
    profile = small.profile()
    known = np.array([exact_error(X, small, width) for width in profile.bandwidths])
    np.testing.assert_allclose(profile.relative_errors[known < 0.5], known[known < 0.5], rtol=0.25)
    assert ((profile.intervals[:, 0] <= 1.05 * known) & (known <= 1.05 * profile.intervals[:, 1])).all()
    batch = compress(X, Gaussian(0.5), size=60, rng=0)
    assert small.near_median.relative_error < 2 * batch.near_median.relative_error


def test_partitions_and_order_do_not_change_the_profile():
    one, other = (distributed.compress(parts(rows(6), 2000), Gaussian(0.9), size=40, rng=0) for _ in range(2))
    np.testing.assert_array_equal(one.profile().intervals, other.profile().intervals)
    assert one.near_median == other.near_median


def test_a_result_above_the_error_of_random_rows_warns_and_names_a_better_call():
    X = np.random.default_rng(0).normal(size=(6000, 2))
    with pytest.warns(UserWarning, match=r"at bandwidth 5 is above that of \d+ random rows, .* use weights='simplex'"):
        distributed.compress(parts(X, 1500), Gaussian(5.0), size=300, weights="clipped", rng=0)
    with quietly():
        distributed.compress(parts(X, 1500), Gaussian(5.0), size=300, weights="clipped", rng=0)


@pytest.mark.filterwarnings("error:the error of")
@pytest.mark.parametrize("weights", ["free", "simplex"])
def test_better_weights_do_not_warn(weights):
    X = np.random.default_rng(0).normal(size=(6000, 2))
    distributed.compress(parts(X, 1500), Gaussian(5.0), size=300, weights=weights, rng=0)


def test_a_tolerance_that_is_not_reached_names_the_bandwidth():
    with pytest.warns(distributed.two_pass.NotReachedWarning, match=r"\(at most .*\) at bandwidth 0.3\. Raise max_size"):
        distributed.compress(parts(rows(2), 2000), Gaussian(0.3), tol=1e-5, max_size=20, rng=0)
