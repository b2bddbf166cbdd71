"""Streams at other bandwidths: the error at every scale and at the median distance, and the comparison with random rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, Student, compress
from reduset._messages import quietly
from reduset.stream import StreamCompressor


def rows(d, n=6000):
    return np.random.default_rng(d).normal(size=(n, d)) + 2.0 * (np.arange(n) % 2)[:, None]


def result(X, kernel, size=100, **options):
    stream = StreamCompressor(kernel, size, 0, buffer=1000, **options)
    for chunk in np.array_split(X, 7):
        stream.partial_fit(chunk)
    return stream.result()


def exact_error(X, small, bandwidth, weights=None):
    kernel = replace(small.mean.kernel, bandwidth=bandwidth)
    full = KernelMean.from_samples(X, kernel, weights)
    return full.distance(KernelMean(small.mean.atoms, small.mean.weights * full.mass, kernel)) / full.norm()


KERNELS = [Gaussian(0.4), Gaussian(1.0), Laplacian(1.0), Student(1.0), Gaussian(0.5, space="l2")]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_profile_of_a_stream_is_that_of_all_its_rows(kernel):
    X = rows(2)
    small = result(X, kernel)
    profile = small.profile()
    known = np.array([exact_error(X, small, width) for width in profile.bandwidths])
    trusted = known < 0.5
    np.testing.assert_allclose(profile.relative_errors[trusted], known[trusted], rtol=0.3)
    assert ((profile.intervals[:, 0] <= 1.05 * known) & (known <= 1.05 * profile.intervals[:, 1])).all()
    median = KernelMean.from_samples(X, replace(kernel, bandwidth="median")).kernel.width
    assert profile.bandwidths[0] < 4 * median  # the grid starts at the scale of the data


@pytest.mark.parametrize(("d", "kernel"), [(2, Gaussian(0.9)), (10, Gaussian(0.9)), (10, Laplacian(1.0)), (50, Gaussian(3.0))])
def test_a_stream_prints_the_error_at_the_median_distance_of_all_its_rows(d, kernel):
    X = rows(d)
    small = result(X, kernel)
    error, median = small.near_median.relative_error, small.near_median.distance
    assert median == pytest.approx(KernelMean.from_samples(X, Gaussian("median")).kernel.width, rel=0.02)
    assert error == pytest.approx(exact_error(X, small, median), rel=0.15)
    head, first, second, weights = str(small).splitlines()[:4]
    assert head.startswith(f"Compression: 6,000 rows × {d} columns -> {small.size} weighted atoms")
    assert first.startswith("  error       ")
    assert first.endswith(f"at bandwidth {kernel.bandwidth:g} ({type(kernel).__name__})")
    assert second.strip() == f"{100 * error:.3g} % at the median distance, {median:.3g}"
    assert weights.startswith("  weights     ")


def test_the_same_rows_have_comparable_errors_in_memory_and_as_a_stream():
    X = rows(3, 20_000)
    streamed, batch = result(X, Gaussian("median"), 300).near_median, compress(X, size=300, rng=0).near_median
    assert streamed.distance == pytest.approx(batch.distance, rel=0.05)
    assert streamed.is_exact
    assert batch.is_exact


# between two bandwidths of the frequencies, and out of their reach
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("d", "bandwidth"), [(200, 6.0), (2, 1e-4)])
def test_where_the_median_distance_is_not_measured_the_nearest_scale_is_printed(d, bandwidth):
    X = rows(d, 4000)
    small = result(X, Gaussian(bandwidth), weights="sum_to_one")
    near = small.near_median
    assert near.bandwidth != near.distance
    assert not small.near_median.is_exact
    assert near.relative_error == pytest.approx(exact_error(X, small, near.bandwidth), rel=0.2)
    text = f"% at bandwidth {near.bandwidth:.3g}, the nearest measured to the median distance, {near.distance:.3g}"
    assert text in str(small)


def test_weights_and_forgetting_count_at_the_median_distance_too():
    X = rows(2)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(X))
    stream = StreamCompressor(Gaussian(0.6), 50, 0, buffer=1000).partial_fit(X, sample_weight=weights)
    small = stream.result()
    error, median = small.near_median.relative_error, small.near_median.distance
    assert error == pytest.approx(exact_error(X, small, median, weights / weights.sum()), rel=0.2)
    forgetful = StreamCompressor(Gaussian(0.6), 50, 0, buffer=1000, half_life=2000).partial_fit(X).result()
    faded = 2.0 ** (-np.arange(len(X) - 1, -1, -1) / 2000)
    error, median = forgetful.near_median.relative_error, forgetful.near_median.distance
    assert error == pytest.approx(exact_error(X, forgetful, median, faded / faded.sum()), rel=0.2)


def test_a_result_is_the_same_whenever_it_is_taken(tmp_path):
    stream = StreamCompressor(Gaussian(0.6), 50, 0, buffer=1000).partial_fit(rows(2))
    stream.checkpoint(tmp_path / "stream.kept")
    one, other, again = stream.result(), stream.result(), StreamCompressor.resume(tmp_path / "stream.kept").result()
    for each in (other, again):
        np.testing.assert_array_equal(one.profile().intervals, each.profile().intervals)
        assert one.near_median == each.near_median


@pytest.mark.parametrize("X", [np.ones((50, 2)), np.ones((1, 2))])
def test_rows_at_one_place_have_no_median_distance(X):
    small = StreamCompressor(Gaussian(1.0), 1, 0).partial_fit(X).result()
    assert small.near_median is None
    assert "median" not in str(small)


# -- random rows -------------------------------------------------------------------------------------------------------------


def test_a_stream_above_the_error_of_random_rows_warns_and_names_a_better_call():
    X = np.random.default_rng(0).normal(size=(6000, 6))
    with pytest.warns(UserWarning, match=r"at bandwidth 4 is above that of \d+ random rows, .* use weights='simplex'"):
        bad = result(X, Gaussian(4.0), 300, weights="clipped")
    with quietly():
        result(X, Gaussian(4.0), 300, weights="clipped")
    sample = np.random.default_rng(1).choice(len(X), bad.size, replace=False)
    equal = KernelMean.from_samples(X[sample], Gaussian(4.0))
    full = KernelMean.from_samples(X, Gaussian(4.0))
    assert full.distance(equal) / full.norm() < bad.certificate.relative_error


@pytest.mark.filterwarnings("error:the error of")
@pytest.mark.parametrize("weights", ["free", "simplex"])
def test_a_better_stream_does_not_warn(weights):
    result(np.random.default_rng(0).normal(size=(6000, 6)), Gaussian(4.0), 300, weights=weights)
