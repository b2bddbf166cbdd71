"""The error at other scales than the kernel's own: what it is by definition, and intervals that hold at all scales at once."""

from dataclasses import replace

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, bandwidth, compress
from reduset.certificate import rule
from reduset.certificate.by_frequencies import FrequencyProbe

REPETITIONS = 12


def clumps(n, d, seed):
    rng = np.random.default_rng(seed)
    return 0.3 * rng.normal(size=(n, d)) + 3 * rng.normal(size=(8, d))[rng.integers(0, 8, n)]


def by_definition(full, small, width):
    """‖f − f_m‖ / ‖f‖ with bumps of another bandwidth, by three sums of products."""
    kernel = replace(full.kernel, bandwidth=width)
    f, g = (KernelMean(each.atoms, each.weights, kernel) for each in (full, small))
    return f.distance(g) / f.norm()


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.7), Laplacian(0.7), Student(0.7), Gaussian(0.7, covariance=[2.0, 1.0, 0.5])], ids=repr
)
@pytest.mark.parametrize("weights", ["free", "simplex"])
def test_of_few_rows_the_profile_is_exact(kernel, weights):
    full = KernelMean.from_samples(clumps(300, 3, 0), kernel)
    small = compress(full, size=20, weights=weights, rng=0)
    profile = small.profile()
    assert len(profile.bandwidths) >= 13  # two an octave, over six
    assert (np.diff(profile.bandwidths) < 0).all()
    expected = [by_definition(full, small.mean, width) for width in profile.bandwidths]
    np.testing.assert_allclose(profile.relative_errors, expected, rtol=1e-6, atol=1e-7)
    own = small.profile([0.7])
    assert own.relative_errors[0] == pytest.approx(small.certificate.relative_error, rel=1e-6)


@pytest.mark.parametrize(("kernel", "d"), [(Gaussian, 1), (Gaussian, 5), (Student, 2)])
def test_intervals_of_all_scales_hold_at_once(kernel, d, monkeypatch):
    monkeypatch.setattr(rule, "EXACT_UP_TO", 0)
    held = 0
    for seed in range(REPETITIONS):
        X = clumps(500, d, seed)
        full = KernelMean.from_samples(X, kernel(0.3 * bandwidth.median(X)))
        small = compress(full, size=30, select="kmeans", weights="simplex", rng=seed)
        scales = small.profile().bandwidths
        profile = small.profile(scales[np.linspace(0, len(scales) - 1, 8).round().astype(int)])
        truth = np.array([by_definition(full, small.mean, width) for width in profile.bandwidths])
        held += bool(((profile.intervals[:, 0] <= truth + 1e-7) & (truth <= profile.intervals[:, 1] + 1e-7)).all())
    assert held >= REPETITIONS - 2


def test_the_same_waves_serve_every_bandwidth():
    mean = KernelMean.from_samples(clumps(400, 2, 0), Gaussian(0.5))
    ladders = FrequencyProbe(mean, 0.95, np.random.default_rng(0))._bank(64, 20)[0]
    np.testing.assert_allclose(ladders.log_weights_at(1.0), ladders.log_weights, atol=1e-12)
    waves = ladders.waves(mean.atoms, mean.weights, FrequencyProbe(mean, 0.95, np.random.default_rng(0)).frame)
    for ratio in (0.25, 0.5, 2.0, 4.0):  # of ‖f‖² itself
        wider = KernelMean(mean.atoms, mean.weights, Gaussian(0.5 * ratio))
        found = float((np.exp(ladders.log_weights_at(ratio)) * np.abs(waves) ** 2).sum(axis=1).mean())
        assert found == pytest.approx(wider.norm() ** 2, rel=0.2)


@pytest.mark.parametrize("weighted", [False, True])
def test_random_rows_lose_what_is_said(weighted):
    rng = np.random.default_rng(0)
    X = clumps(400, 2, 0)
    w = rng.random(400) if weighted else None
    full = KernelMean.from_samples(X, Gaussian(0.6), w)
    profile = compress(full, size=25, rng=0).profile([1.5, 0.6])
    for k, width in enumerate(profile.bandwidths):
        f = KernelMean(full.atoms, full.weights, Gaussian(width))
        lost = [
            f.distance(KernelMean.from_samples(X[rng.choice(400, 25, replace=weighted, p=full.weights)], Gaussian(width)))
            for _ in range(200)
        ]
        assert np.sqrt(np.mean(np.square(lost))) / f.norm() == pytest.approx(profile.random_rows[k], rel=0.12)


def test_a_smaller_size_has_a_profile_of_its_own():
    small = compress(clumps(600, 2, 0), Gaussian(0.6), size=40, rng=0)
    assert (small.at(10).profile([0.6, 1.2]).relative_errors > small.profile([0.6, 1.2]).relative_errors).all()
    one, other = (compress(clumps(600, 2, 0), Gaussian(0.6), size=40, rng=0).profile() for _ in range(2))
    np.testing.assert_array_equal(one.intervals, other.intervals)


def test_where_there_is_no_bandwidth_to_change_the_profile_says_so():
    small = compress(clumps(200, 2, 0), FunctionKernel("rbf", gamma=1.0), size=5, rng=0)
    with pytest.raises(ValueError, match="profile is not available for this result"):
        small.profile()


@pytest.mark.parametrize("bad", [0.0, -1.0, [1.0, np.nan], [], np.inf])
def test_bandwidths_are_positive_numbers(bad):
    small = compress(clumps(100, 2, 0), Gaussian(0.6), size=5, rng=0)
    with pytest.raises(ValueError, match="bandwidths must be"):
        small.profile(bad)
