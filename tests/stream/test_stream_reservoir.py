"""The sample of a stream: fair by weight, mergeable, and a measure of error with an interval that holds."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, compress
from reduset.certificate.frequencies import two_sided
from reduset.stream.reservoir import Reservoir
from stream_cases import mixture


def drawn(X, w, most, seed, chunk=97):
    rng = np.random.default_rng(seed)
    reservoir = Reservoir.empty(X.shape[1], most)
    for start in range(0, len(X), chunk):
        reservoir = reservoir.absorb(X[start : start + chunk], w[start : start + chunk], rng)
    return reservoir


def test_every_row_is_as_likely_to_stay_wherever_it_came():
    X, w = np.arange(400.0)[:, None], np.ones(400)
    counts = sum(np.isin(X[:, 0], drawn(X, w, 40, seed).points[:, 0]) for seed in range(600))
    assert counts.sum() == 600 * 40
    # 60 expected of each; the chi-square of 399 degrees of freedom
    assert np.sum((counts - 60) ** 2) / (60 * 0.9) < 399 + 5 * np.sqrt(2 * 399)


def test_sums_over_the_sample_are_those_over_the_stream_in_the_mean():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(500, 1)), rng.uniform(0.05, 3, 500) ** 2
    truth = float(w @ X[:, 0] / w.sum())
    found = [float(r.shares @ r.points[:, 0]) for r in (drawn(X, w, 60, seed) for seed in range(400))]
    assert np.mean(found) == pytest.approx(truth, abs=4 * np.std(found) / 20)
    assert np.std(found) < 0.3


def test_all_rows_are_kept_while_there_is_room():
    X, w = mixture(50, 2), np.linspace(1, 2, 50)
    reservoir = drawn(X, w, 60, 0)
    order = np.lexsort(reservoir.points.T)
    np.testing.assert_array_equal(reservoir.points[order], X[np.lexsort(X.T)])
    np.testing.assert_allclose(reservoir.shares[order], (w / w.sum())[np.lexsort(X.T)])


def test_merging_parts_is_sampling_the_whole():
    X, w = np.arange(300.0)[:, None], np.ones(300)
    counts = np.zeros(300)
    for seed in range(400):
        merged = drawn(X[:200], w[:200], 30, seed).merge(drawn(X[200:], w[200:], 30, 10_000 + seed))
        assert len(merged.points) == 30
        counts += np.isin(X[:, 0], merged.points[:, 0])
    assert counts[:200].mean() == pytest.approx(counts[200:].mean(), rel=0.06)


def test_what_rows_stand_for_adds_up_to_all_in_the_mean():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(4000, 1)), rng.exponential(size=4000) ** 3
    totals, means = [], []
    for seed in range(200):
        sample = drawn(X[:2000], w[:2000], 300, seed).merge(drawn(X[2000:], w[2000:], 300, 10_000 + seed))
        assert len(sample.points) == 300
        stands = sample.weights / -np.expm1(-sample.weights * np.exp(sample.limit))
        np.testing.assert_allclose(sample.shares, stands / stands.sum())
        totals.append(stands.sum())
        means.append(stands @ sample.points[:, 0])
    assert np.mean(totals) == pytest.approx(w.sum(), rel=0.01)
    assert np.mean(means) == pytest.approx(w @ X[:, 0], abs=4 * np.std(means) / np.sqrt(200))


def test_a_sample_begins_with_the_smaller_ones():
    X, w = mixture(900, 2), np.linspace(1, 2, 900)
    large, small = drawn(X, w, 200, 0), drawn(X, w, 50, 0)
    first = large.first(50)
    np.testing.assert_array_equal(first.points, small.points)
    assert first.limit == small.limit
    assert large.first(500).limit == large.limit


def test_rows_of_no_weight_never_stay():
    X, w = mixture(100, 2), np.r_[np.zeros(50), np.ones(50)]
    reservoir = drawn(X, w, 200, 0)
    assert len(reservoir.points) == 50


def test_forgetting_favours_what_came_last():
    rng = np.random.default_rng(0)
    early, late = np.zeros((1000, 1)), np.ones((1000, 1))
    shares = []
    for seed in range(50):
        r = Reservoir.empty(1, 100).absorb(early, np.ones(1000), np.random.default_rng(seed))
        r = r.faded(0.25).absorb(late, np.ones(1000), rng)
        shares.append(float(r.shares @ r.points[:, 0]))
    assert np.mean(shares) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(("bandwidth", "size"), [(3.0, 8), (0.7, 40), (0.15, 30)])
def test_the_measured_distance_holds_the_truth_as_often_as_it_says(bandwidth, size):
    X = mixture(3000, 2)
    f = KernelMean.from_samples(X, Gaussian(bandwidth))
    small = compress(f, size=size, rng=0).mean
    truth = f.distance(small) ** 2
    inside, found = 0, []
    for seed in range(120):
        square, width = drawn(X, np.ones(3000), 400, seed).square_distance(small, 1 / 3000, two_sided(0.95))
        inside += abs(square - truth) <= width
        found.append(square)
    assert inside >= 0.92 * 120
    assert np.mean(found) == pytest.approx(truth, abs=5 * np.std(found) / np.sqrt(120))


def test_a_sample_that_holds_every_row_measures_exactly():
    X = mixture(300, 2)
    f = KernelMean.from_samples(X, Gaussian(0.5))
    small = compress(f, size=10, rng=0).mean
    square, width = drawn(X, np.ones(300), 400, 0).square_distance(small, 1 / 300, 2.0)
    assert width == 0
    assert square == pytest.approx(f.distance(small) ** 2, rel=1e-9)


def test_a_single_row_is_measured_too():
    reservoir = Reservoir.empty(2).absorb(np.zeros((1, 2)), np.ones(1), np.random.default_rng(0))
    small = KernelMean(np.zeros((1, 2)), np.array([0.75]), Gaussian(1.0))
    assert reservoir.square_distance(small, 1.0, 2.0) == (pytest.approx(0.0625), 0.0)
