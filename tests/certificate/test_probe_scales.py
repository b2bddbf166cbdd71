"""The measured error where what was lost sits at small scales: along single axes, and between points that nearly coincide."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, Student
from reduset.certificate.rule import ExactProbe, probe_for
from reduset.select import KCenter, KMeans
from reduset.weights import span_of

REPETITIONS = 20


def clumps(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return 0.05 * rng.normal(size=(n, d)) + 3 * rng.normal(size=(20, d))[rng.integers(0, 20, n)]


def twins(n, d, apart, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return np.concatenate([X, X + apart * rng.normal(size=X.shape)])


def measured_over_true(mean, atoms):
    """Ratios of the measured norm to the true one, and the share of intervals that hold the truth."""
    found = span_of(mean.kernel, atoms, mean.kernel.product_sums(mean.atoms, mean.weights, atoms))
    arguments = found.atoms, found.weights("free", mean.mass, found.size), found.kappa
    truth = ExactProbe(mean, None).measure(*arguments).square
    frequencies = type(probe_for(mean, 0.95, np.random.default_rng(0))._finer)
    seen = [frequencies(mean, 0.95, np.random.default_rng(seed)).measure(*arguments) for seed in range(REPETITIONS)]
    covered = np.mean([each.low <= truth <= each.high for each in seen])
    return np.sqrt(np.array([each.square for each in seen]) / truth), covered


@pytest.mark.covering_cases
@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("space", ["rkhs", "l2"])
@pytest.mark.parametrize(("d", "size"), [(1, 60), (2, 60), (2, 300), (5, 100)])
def test_a_product_of_power_laws_is_measured_along_its_axes(space, d, size):
    mean = KernelMean.from_samples(clumps(700, d), Laplacian("median", metric="cityblock", space=space))
    ratios, covered = measured_over_true(mean, KCenter(first=0).select(mean, size).atoms)
    assert covered >= 0.8
    assert 0.9 < np.median(ratios) < 1.1


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("selector", [KCenter(first=0), KMeans()], ids=["kcenter", "kmeans"])
@pytest.mark.parametrize("apart", [1e-3, 1e-6])
@pytest.mark.parametrize(
    ("kernel", "d"),
    [(Laplacian(1.0), 1), (Laplacian(1.0), 2), (Laplacian(1.0, metric="cityblock"), 2), (Laplacian(1.0), 3)],
    ids=repr,
)
def test_what_was_lost_between_twins_is_measured(kernel, d, apart, selector):
    mean = KernelMean.from_samples(twins(200, d, apart), kernel)
    ratios, covered = measured_over_true(mean, selector.select(mean, 200, rng=0).atoms)
    assert covered >= 0.75
    assert 0.85 < np.median(ratios) < 1.15


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Student(1.0), Laplacian(1.0, space="l2")], ids=repr)
def test_a_smooth_kernel_hardly_sees_the_twins(kernel):
    mean = KernelMean.from_samples(twins(300, 2, 1e-3), kernel)
    ratios, covered = measured_over_true(mean, KCenter(first=0).select(mean, 300).atoms)
    assert covered >= 0.8
    assert 0.9 < np.median(ratios) < 1.1
