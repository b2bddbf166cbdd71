"""Candidate atoms: exact sums where they always were, honest estimates where they came later, and an eye for what is new."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, compress
from reduset.select import as_selector
from reduset.stream.candidates import CandidateAtoms, DriftDetector
from reduset.stream.reservoir import Reservoir
from stream_cases import apart, mixture, ordered

KERNEL = Gaussian(1.5)


def begun(X, kernel=KERNEL, size=40):
    return CandidateAtoms.from_first_chunk(X, np.ones(len(X)), kernel, size, as_selector("auto"), np.random.default_rng(0))


def followed(X, kernel=KERNEL, size=40, block=500):
    """Candidates of a stream, with its sample."""
    rng = np.random.default_rng(1)
    candidates, sample = begun(X[:block], kernel, size), Reservoir.empty(X.shape[1]).absorb(X[:block], np.ones(block), rng)
    for start in range(block, len(X), block):
        rows = X[start : start + block]
        candidates = candidates.absorb(rows, np.ones(len(rows)), float(start), sample.points, rng)
        sample = sample.absorb(rows, np.ones(len(rows)), rng)
    return candidates, sample


def test_sums_at_sites_that_were_always_there_are_exact():
    X = mixture(4000, 3)
    candidates, _ = followed(X)
    always = candidates.missed == 0
    assert always.any()
    truth = KERNEL.product_sums(X, np.ones(len(X)), candidates.points[always])
    np.testing.assert_allclose(candidates.kappa[always], truth, rtol=1e-10)


def test_more_of_the_same_brings_no_new_sites():
    X = mixture(20_000, 3)
    candidates, _ = followed(X, block=2000)
    assert not candidates.missed.any()
    assert len(candidates.points) == len(begun(X[:2000]).points)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("order", ["sorted", "clustered"])
@pytest.mark.parametrize("bandwidth", [2.0, 0.7])
def test_what_is_new_brings_sites_of_its_own(order, bandwidth):
    X, kernel = ordered(mixture(6000, 3), order), Gaussian(bandwidth)
    candidates, _ = followed(X, kernel)
    assert candidates.missed.any()
    assert len(candidates.points) <= candidates.max_count
    w = np.full(len(X), 1.0)
    truth = kernel.product_sums(X, w, candidates.points)
    # κ of a new candidate is interpolated for the rows before it; test_stream.py bounds the error of the result
    assert np.abs(candidates.kappa - truth).max() <= 0.1 * truth.max()
    f = KernelMean(X, w / len(X), kernel)
    left = 1 - np.sum(candidates.basis.coordinates(truth / len(X)) ** 2) / f.norm() ** 2
    assert left <= compress(f, size=40, rng=0).certificate.relative_error ** 2


def test_merging_keeps_sites_of_both_parts_and_sums_over_all():
    X = ordered(mixture(4000, 3), "sorted")
    (one, mine), (other, theirs) = followed(X[:2000]), followed(X[2000:])
    merged = one.merge(other, (2000.0, 2000.0), mine.merge(theirs).points)
    truth = KERNEL.product_sums(X, np.ones(4000), merged.points)
    assert np.abs(merged.kappa - truth).max() <= 1e-3 * truth.max()
    assert len(merged.points) <= merged.max_count


def test_sites_that_are_the_same_add_up():
    X = mixture(2000, 2)
    candidates, sample = followed(X)
    twice = candidates.merge(candidates, (2000.0, 2000.0), sample.points)
    np.testing.assert_array_equal(twice.kappa, 2 * candidates.kappa)
    np.testing.assert_array_equal(twice.points, candidates.points)


def test_the_best_explain_most():
    candidates, _ = followed(ordered(mixture(4000, 3), "sorted"))
    rng = np.random.default_rng(0)
    best = candidates._energy(candidates.best(20))
    for _ in range(20):
        assert best >= candidates._energy(rng.choice(len(candidates.points), 20, replace=False))


def test_one_odd_chunk_is_no_news_and_many_are():
    rng = np.random.default_rng(0)
    calm, drifting, alarms = DriftDetector(), DriftDetector(), 0
    for _ in range(300):
        calm = calm.updated(rng.normal(), 1.0)
        alarms += calm.is_above(0.0)
    assert alarms <= 6
    while not drifting.is_above(0.0):
        drifting = drifting.updated(0.5 + rng.normal(), 1.0)
        assert drifting.chunks < 150


@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_the_sums_of_assignments_bound_radius_and_quantisation_error(order):
    X = ordered(mixture(6000, 3), order)
    candidates, _ = followed(X)
    atoms = candidates.points[candidates.best(20)]
    radius, moved = candidates.covering(atoms)
    gaps = apart(KERNEL, X, atoms).min(axis=1)
    assert gaps.max() <= radius * (1 + 1e-9)
    assert np.mean(np.sqrt(2 - 2 * KERNEL.product_at(gaps, 3))) <= moved * (1 + 1e-9)
    assert candidates.assignments.weights.sum() == pytest.approx(len(X))
    f, small = KernelMean.from_samples(X, KERNEL), KernelMean(atoms, np.full(len(atoms), 0.06), KERNEL)
    assert f.distance(small) <= candidates.error_bound(small)
