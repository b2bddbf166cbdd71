"""Sites: exact sums where they were from the beginning, honest estimates where they came later, and an eye for what is new."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, compress
from reduset.select import as_selector
from reduset.stream.candidates import Sites, Watch
from reduset.stream.reservoir import Reservoir
from stream_cases import mixture, ordered

KERNEL = Gaussian(1.5)


def begun(X, kernel=KERNEL, size=40):
    mean = KernelMean.from_samples(X, kernel)
    return Sites.begun(mean, float(len(X)), size, as_selector("auto"), np.random.default_rng(0))


def followed(X, kernel=KERNEL, size=40, block=500):
    """Sites of a stream, with its sample."""
    rng = np.random.default_rng(1)
    sites, sample = begun(X[:block], kernel, size), Reservoir.empty(X.shape[1]).absorb(X[:block], np.ones(block), rng)
    for start in range(block, len(X), block):
        rows = X[start : start + block]
        sites = sites.absorb(rows, np.ones(len(rows)), float(start), sample, rng)
        sample = sample.absorb(rows, np.ones(len(rows)), rng)
    return sites, sample


def test_sums_at_sites_that_were_always_there_are_exact():
    X = mixture(4000, 3)
    sites, _ = followed(X)
    always = sites.missed == 0
    assert always.any()
    truth = KERNEL.product_sums(X, np.ones(len(X)), sites.places[always])
    np.testing.assert_allclose(sites.kappa[always], truth, rtol=1e-10)


def test_more_of_the_same_brings_no_new_sites():
    X = mixture(20_000, 3)
    sites, _ = followed(X, block=2000)
    assert not sites.missed.any()
    assert len(sites.places) == len(begun(X[:2000]).places)


@pytest.mark.parametrize("order", ["sorted", "clustered"])
@pytest.mark.parametrize("bandwidth", [2.0, 0.7])
def test_what_is_new_brings_sites_of_its_own(order, bandwidth):
    X, kernel = ordered(mixture(6000, 3), order), Gaussian(bandwidth)
    sites, _ = followed(X, kernel)
    assert sites.missed.any()
    assert len(sites.places) <= sites.most
    w = np.full(len(X), 1.0)
    truth = kernel.product_sums(X, w, sites.places)
    assert np.abs(sites.kappa - truth).max() <= 0.05 * truth.max()
    f = KernelMean(X, w / len(X), kernel)
    left = 1 - np.sum(sites.basis.coordinates(truth / len(X)) ** 2) / f.norm() ** 2
    assert left <= compress(f, size=40, rng=0).certificate.relative_error ** 2


def test_a_sample_that_holds_every_row_tells_exactly():
    X = mixture(2000, 2)
    sites, sample = followed(X)
    places = mixture(30, 2, 7)
    np.testing.assert_allclose(sites.estimated(places, 2000.0, sample), KERNEL.product_sums(X, np.ones(2000), places), rtol=1e-10)


def test_a_sample_mends_what_narrow_bumps_hide_from_the_sites():
    X, kernel = mixture(30_000, 2), Gaussian(0.15)
    rng = np.random.default_rng(3)
    sites, sample = begun(X[:1000], kernel), Reservoir.empty(2)
    for start in range(0, len(X), 1000):
        sample = sample.absorb(X[start : start + 1000], np.ones(1000), rng)
    w = np.ones(len(X))
    kappa = kernel.product_sums(X, w, sites.places)
    sites = Sites(sites.basis, sites.size, sites.most, kappa, sites.missed)
    places = X[5000:5400]
    truth = kernel.product_sums(X, w, places)
    projected, mended = sites.values(places), sites.estimated(places, float(len(X)), sample)
    assert np.linalg.norm(mended - truth) < 0.3 * np.linalg.norm(projected - truth)


def test_merging_keeps_sites_of_both_parts_and_sums_over_all():
    X = ordered(mixture(4000, 3), "sorted")
    (one, mine), (other, theirs) = followed(X[:2000]), followed(X[2000:])
    merged = one.merge(other, (2000.0, 2000.0), (mine, theirs))
    truth = KERNEL.product_sums(X, np.ones(4000), merged.places)
    assert np.abs(merged.kappa - truth).max() <= 1e-3 * truth.max()
    assert len(merged.places) <= merged.most


def test_sites_that_are_the_same_add_up():
    X = mixture(2000, 2)
    sites, sample = followed(X)
    twice = sites.merge(sites, (2000.0, 2000.0), (sample, sample))
    np.testing.assert_array_equal(twice.kappa, 2 * sites.kappa)
    np.testing.assert_array_equal(twice.places, sites.places)


def test_the_best_explain_most():
    sites, _ = followed(ordered(mixture(4000, 3), "sorted"))
    rng = np.random.default_rng(0)
    best = sites._explained(sites.best(20))
    for _ in range(20):
        assert best >= sites._explained(rng.choice(len(sites.places), 20, replace=False))


def test_one_odd_chunk_is_no_news_and_many_are():
    rng = np.random.default_rng(0)
    calm, drifting, alarms = Watch(), Watch(), 0
    for _ in range(300):
        calm = calm.seeing(rng.normal(), 1.0)
        alarms += calm.is_above(0.0)
    assert alarms <= 6
    while not drifting.is_above(0.0):
        drifting = drifting.seeing(0.5 + rng.normal(), 1.0)
        assert drifting.chunks < 150
