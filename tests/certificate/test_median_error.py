"""The error at the median distance, at which results of different bandwidths are compared, and the bandwidth of a certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reduset import Certificate, Gaussian, KernelMean, Laplacian, compress
from reduset.bandwidth.rules import PAIRS
from reduset.certificate.by_scale import WaveScales
from reduset.density import SparseKernelDensity
from reduset.kernels import FunctionKernel


def exact_error(X, small, bandwidth):
    kernel = replace(small.mean.kernel, bandwidth=bandwidth)
    full = KernelMean.from_samples(X, kernel)
    return full.distance(KernelMean(small.mean.atoms, small.mean.weights, kernel)) / full.norm()


def cloud(d):
    return np.random.default_rng(d).normal(size=(6000, d))


def two_clusters(d):
    """Far apart, so that in most directions the data hardly spread."""
    rows = 0.1 * cloud(d)
    rows[3000:] += 3
    return rows


@pytest.mark.parametrize(
    ("X", "kernel", "size"),
    [
        (cloud(2), Gaussian(0.9), 100),  # within reach of the frequencies of the kernel
        (cloud(10), Gaussian(0.9), 100),  # coarser than these, and most of the mass is missing
        (cloud(50), Gaussian(0.9), 100),
        (cloud(10), Laplacian(1.34), 100),
        (two_clusters(10), Gaussian(0.28), 300),
        (two_clusters(50), Gaussian(3.0), 300),
    ],
    ids=["2-D", "10-D", "50-D", "laplacian", "clusters", "many columns"],
)
def test_the_error_at_the_median_distance_is_right_whatever_the_bandwidth(X, kernel, size):
    small = compress(X, kernel, size=size, rng=0)
    error, median = small.near_median.relative_error, small.near_median.distance
    assert isinstance(small._scales, WaveScales)
    assert small.near_median.is_exact
    assert error == pytest.approx(exact_error(X, small, median), rel=0.15)


def test_bandwidths_that_no_frequencies_reach_have_the_certain_interval_only():
    small = compress(cloud(50), Gaussian(0.9), size=100, rng=0)
    far = 40 * small.near_median.distance
    profile = small.profile([0.9, small.near_median.distance, far])
    assert profile.bandwidths[0] == far
    low, high = profile.intervals[0]
    assert low <= exact_error(cloud(50), small, far) <= high
    assert (np.diff(profile.intervals, axis=1) >= 0).all()


def test_one_profile_of_two_kinds_of_frequencies_is_that_of_each():
    X = two_clusters(10)
    small = compress(X, Gaussian(0.28), size=300, rng=0)
    scales = small._scales
    median = scales.median
    asked = np.array([0.9 * median, 0.28])
    both = small.profile(asked)
    coarse, fine = scales.coarser.profile(small.mean, asked[:1], 0.975, 300), scales.profile(small.mean, asked[1:], 0.975, 300)
    np.testing.assert_array_equal(both.relative_errors, [coarse.relative_errors[0], fine.relative_errors[0]])
    np.testing.assert_array_equal(both.intervals, [coarse.intervals[0], fine.intervals[0]])
    own = replace(scales, coarser=None).profile(small.mean, scales.bandwidths[-4:], 0.95, 300)  # of the kernel's frequencies alone
    np.testing.assert_array_equal(small.profile(scales.bandwidths[-4:]).intervals, own.intervals)


@pytest.mark.parametrize("apart", [0, 1])
def test_rows_that_nearly_all_coincide_have_no_median_distance(apart):
    X = np.zeros((400_000, 1))
    seen = np.unique(np.random.default_rng(0).integers(len(X), size=(2, PAIRS)))  # of which the rule takes the distances
    X[np.setdiff1d(np.arange(len(X)), seen)[:apart]] = 1.0
    small = compress(X, Gaussian(1.0), size=1 + apart, select="kcenter", rng=0)
    assert small.near_median is None
    assert "median" not in str(small)


# -- the bandwidth of a certificate ------------------------------------------------------------------------------------------


def test_a_printed_certificate_names_its_bandwidth():
    small = compress(cloud(2), Gaussian(0.4), size=30, rng=0)
    assert small.certificate.bandwidth == 0.4
    assert "% of ‖f‖ at bandwidth 0.4 (95% interval" in str(small.certificate)
    assert small.at(10).certificate.bandwidth == 0.4
    searched = compress(cloud(2), size=30, rng=0)
    assert searched.certificate.bandwidth == searched.resolution
    assert Certificate.without_error(KernelMean.from_samples(cloud(2), Gaussian(0.7))).bandwidth == 0.7


def test_a_density_has_a_certificate_with_its_bandwidth():
    for options in ({}, {"tol": 0.05}):
        density = SparseKernelDensity(bandwidth=0.3, random_state=0, **options).fit(cloud(2))
        assert f"at bandwidth {density.certificate_.bandwidth:.3g}" in str(density.certificate_)
        assert density.certificate_.bandwidth == 0.3


def test_a_kernel_without_a_bandwidth_has_none_in_its_certificate():
    small = compress(cloud(2)[:300], FunctionKernel("rbf", gamma=0.5), size=10, rng=0)
    assert small.certificate.bandwidth is None
    assert "bandwidth" not in str(small.certificate)
