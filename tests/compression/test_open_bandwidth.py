"""A bandwidth that is left open: size and tol say how fine, tol alone asks the sample's own noise."""

import numpy as np
import pandas as pd
import pytest

from reduset import Gaussian, KernelMean, Laplacian, bandwidth, compress
from reduset.compression.searches import noise_bandwidth


def clumps(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return 0.3 * rng.normal(size=(n, d)) + 2 * np.random.default_rng(9).normal(size=(6, d))[rng.integers(0, 6, n)]


def test_size_alone_is_a_size_and_five_per_cent():
    X = clumps(2000)
    alone, both = compress(X, size=60, rng=0), compress(X, size=60, tol=0.05, rng=0)
    assert alone.resolution == both.resolution
    assert alone.resolution < bandwidth.median(X)
    np.testing.assert_array_equal(alone.mean.weights, both.mean.weights)


def test_a_kernel_may_leave_its_bandwidth_open():
    X = clumps(2000) * [1.0, 100.0]
    small = compress(X, Gaussian(scales="robust"), size=60, rng=0)
    assert small.resolution == small.mean.kernel.bandwidth
    np.testing.assert_allclose(small.mean.kernel.scales, np.subtract(*np.quantile(X, [0.75, 0.25], axis=0)), rtol=1e-2)
    by_hand = compress(X / small.mean.kernel.scales, size=60, rng=0)
    assert by_hand.resolution == pytest.approx(small.resolution, rel=1e-6)
    assert isinstance(compress(X, Laplacian(), size=40, tol=0.2, rng=0).mean.kernel, Laplacian)


def test_the_median_distance_is_there_for_those_who_ask_for_it():
    X = clumps(2000)
    small = compress(X, Gaussian("median"), size=60, rng=0)
    assert small.resolution is None
    assert small.mean.kernel.bandwidth == pytest.approx(bandwidth.median(X))


@pytest.mark.parametrize("tol", [0.02, 0.1])
def test_tol_alone_looks_as_closely_as_the_noise_of_the_sample_allows(tol):
    X = clumps(4000)
    small = compress(X, tol=tol, rng=0)
    assert small.reached
    assert small.resolved.by_noise
    assert small.certificate.interval[1] <= tol
    again = compress(clumps(4000, seed=1), Gaussian(small.resolution), size=2, rng=0)  # another sample of the law
    full, other = (KernelMean.from_samples(each, again.mean.kernel) for each in (X, clumps(4000, seed=1)))
    assert full.distance(other) / full.norm() == pytest.approx(np.sqrt(2) * tol, rel=0.35)
    assert f"at finer scales the sampling error of the rows exceeds {100 * tol:g} %" in str(small)
    for width in small.resolution * 2.0 ** np.arange(0, 4):
        full = KernelMean.from_samples(X, Gaussian(width))
        assert full.distance(KernelMean(small.mean.atoms, small.mean.weights, full.kernel)) <= tol * full.norm() * (1 + 1e-9)


def test_more_rows_of_one_law_are_looked_at_more_closely():
    few, many = (compress(clumps(n), tol=0.05, rng=0).resolution for n in (500, 20_000))
    assert many < few / 2


def test_the_noise_grows_as_the_bandwidth_falls():
    mean = KernelMean.from_samples(clumps(3000))
    widths = [noise_bandwidth(mean, tol, np.random.default_rng(0)) for tol in (0.01, 0.03, 0.1, 0.3)]
    assert (np.diff(widths) < 0).all()
    doubled = KernelMean.from_samples(np.repeat(clumps(3000), 2, axis=0))  # as many rows again, and no news in them
    assert noise_bandwidth(doubled, 0.05, np.random.default_rng(0)) < noise_bandwidth(mean, 0.05, np.random.default_rng(0))


def test_where_noise_asks_for_more_than_allowed_the_most_allowed_say_how_fine():
    X = clumps(5000, 5)
    small = compress(X, tol=0.05, max_size=50, rng=0)
    assert small.reached
    assert not small.resolved.by_noise
    assert small.selected <= 50


def test_groups_share_the_bandwidth_that_all_rows_bear():
    X, labels = clumps(2000), np.repeat([0, 1], [1900, 100])
    small = compress(X, size=60, groups=labels, rng=0)
    assert small.mean.kernel.bandwidth < bandwidth.median(X) / 2
    assert small.mean.weights[small.groups == 1].sum() == pytest.approx(0.05)
    by_tol = compress(X, tol=0.1, groups=labels, rng=0)
    assert by_tol.mean.weights[by_tol.groups == 1].sum() == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 5, "max_size": 10}, "max_size .*got it with size=5"),
        ({"tol": 0.0}, "tol must be above 0"),
        ({"tol": 0.1, "plateau": 0.1}, "give exactly one of .*; got tol and plateau"),
    ],
)
def test_what_an_open_bandwidth_has_no_use_for_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        compress(clumps(30), rng=0, **options)


def test_a_column_that_drowns_the_others_is_warned_of_by_its_name():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"income": 4e4 * rng.lognormal(size=800), "age": rng.normal(50, 9, size=800)})
    with pytest.warns(UserWarning, match=r"'income'.*[\d,]+.*'age'.*scales='robust'"):
        compress(table, size=20, tol=0.2, rng=0)
    for kernel in (Gaussian(), Gaussian(scales="robust"), Gaussian(1e4)):  # what somebody has said is taken as meant
        compress(table, kernel, size=20, tol=None if kernel.bandwidth else 0.2, rng=0)
    compress(KernelMean.from_samples(table, Gaussian(1e4)), size=20, rng=0)
