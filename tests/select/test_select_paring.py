"""KDE paring: independent draws from the density, merged where they are equal."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from cases import WEIGHTINGS, cloud
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, compress
from reduset.kernels import ANY_FAMILY
from reduset.select import Paring, Random, as_selector
from reduset.spectral import ReducedKernelPCA

KERNEL = Gaussian(0.5)
SIGNED = np.array([3.0, -1.0, 0.0, 2.0, -4.0])


def mean_of(n=120, kernel=KERNEL, sample_weight=None):
    return KernelMean.from_samples(cloud(n), kernel, sample_weight)


def pared(f, chosen):
    return KernelMean(chosen.atoms, chosen.weights, f.kernel)


def counts_of(f, draws, rng):
    """How often each row was drawn, from the weights."""
    chosen = Paring().select(f, draws, rng=rng)
    counts = np.zeros(f.size, np.int64)
    counts[chosen.indices] = np.round(np.abs(chosen.weights) * draws / f.magnitudes.sum()).astype(int)
    return counts


# -- the draws -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights", [np.array([0.5, 2.0, 1.0]), np.array([1.0, -2.0, 3.0]), np.ones(3)], ids=["own", "signed", "equal"]
)
def test_rows_are_drawn_by_weight_independently_of_each_other(weights):
    """Their counts are multinomial: every outcome as often as it should be."""
    f = KernelMean(np.arange(3.0).reshape(-1, 1), weights, KERNEL)
    for draws in (2, 3):
        law = stats.multinomial(draws, np.abs(weights) / np.abs(weights).sum())
        rng = np.random.default_rng(0)
        seen = Counter(tuple(counts_of(f, draws, rng).tolist()) for _ in range(3000))
        outcomes = [(a, b, draws - a - b) for a in range(draws + 1) for b in range(draws + 1 - a)]
        assert set(seen) <= set(outcomes)
        expected = np.array([3000 * law.pmf(each) for each in outcomes])
        assert stats.chisquare([seen[each] for each in outcomes], expected).pvalue > 0.005


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("selector", [Paring(), Random()], ids=str)
def test_the_mean_of_the_draws_is_unbiased_with_the_error_of_independent_draws(selector, signed):
    """E‖f − f_m‖² = ((Σ|w|)² κ − ‖f‖²)/m, and the error of a mean of 400 is a 400th; rows drawn without replacement have less."""
    w = np.random.default_rng(1).normal(size=40) if signed else np.random.default_rng(1).uniform(size=40)
    f, m, repeats = KernelMean(cloud(40), w / np.abs(w).sum(), KERNEL), 20, 400
    found = [pared(f, selector.select(f, m, rng=seed)) for seed in range(repeats)]
    squares = np.array([f.distance(each) ** 2 for each in found])
    expected = (1 - f.norm() ** 2) / m
    if isinstance(selector, Random):
        assert squares.mean() < 0.75 * expected
        return
    assert abs(squares.mean() - expected) < 4 * squares.std() / np.sqrt(repeats)
    together = sum(found[1:], found[0]) / repeats
    assert f.distance(together) ** 2 < 3 * expected / repeats


def test_blurred_draws_are_draws_from_the_density():
    f = KernelMean(np.array([[0.0], [10.0]]), [0.25, 0.75], Gaussian(0.5))
    big = KernelMean(np.repeat(f.atoms, 500, axis=0), np.repeat(f.weights, 500) / 500, f.kernel)
    x = Paring(blur=1.0).select(big, 1000, rng=0).atoms[:, 0]
    upper = x > 5
    assert abs(upper.mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 1000)
    assert stats.kstest(np.where(upper, x - 10, x) / 0.5, "norm").pvalue > 0.01


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.5, covariance=[[2.0, 0.3], [0.3, 0.5]]), Laplacian(0.5), Student(0.5, exponent=4)], ids=repr
)
def test_the_blur_is_the_kernels_own_noise_in_that_measure(kernel):
    f = KernelMean(np.zeros((600, 2)), np.ones(600), kernel)
    half, whole = (Paring(blur=b).select(f, 600, rng=0).atoms for b in (0.5, 1.0))
    np.testing.assert_allclose(2 * half, whole, rtol=1e-12)
    noise = kernel.noise(20_000, 2, np.random.default_rng(1))
    assert stats.ks_2samp(whole @ [1.0, -2.0], noise @ [1.0, -2.0]).pvalue > 0.01


# -- atoms and weights -----------------------------------------------------------------------------------------------


def test_atoms_are_distinct_rows_and_those_that_were_not_drawn_weigh_nothing():
    w = np.where(np.arange(120) < 3, 50.0, 1.0)
    f = mean_of(sample_weight=w)
    chosen = Paring().select(f, 30, rng=0)
    assert len(set(chosen.indices.tolist())) == 30
    np.testing.assert_array_equal(chosen.atoms, f.atoms[chosen.indices])
    counts = chosen.weights * 30
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    assert counts.sum() == pytest.approx(30)
    drawn = int(np.count_nonzero(chosen.weights))
    assert drawn < 30
    assert np.all(chosen.weights[:drawn] > 0)  # rows in the order in which they are met: the others come last


def test_with_any_other_weights_the_atoms_are_those_of_random():
    """Distinct rows in the order in which draws meet them are draws without replacement: the same clocks."""
    f = mean_of(sample_weight=np.random.default_rng(1).uniform(size=120))
    np.testing.assert_array_equal(Paring().select(f, 40, rng=3).indices, Random().select(f, 40, rng=3).indices)


@pytest.mark.parametrize("blur", [0.0, 0.3])
def test_weights_carry_the_signs_of_the_rows_and_all_of_their_size(blur):
    f = KernelMean(10.0 * np.arange(5.0).reshape(-1, 1), SIGNED, KERNEL)
    for seed in range(20):
        chosen = Paring(blur).select(f, 4, rng=seed)
        row = np.round(chosen.atoms[:, 0] / 10).astype(int)
        assert 2 not in row
        np.testing.assert_array_equal(np.sign(chosen.weights[chosen.weights != 0]), np.sign(SIGNED[row])[chosen.weights != 0])
        assert np.abs(chosen.weights).sum() == pytest.approx(10)


def test_blurred_atoms_are_new_points_of_equal_weight():
    chosen = Paring(blur=0.5).select(mean_of(), 50, rng=0)
    assert chosen.indices is None
    assert chosen.atoms.shape == (50, 2)
    np.testing.assert_allclose(chosen.weights, 1 / 50, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [KERNEL, Gaussian(0.5, covariance=[2.0, 0.5]), Laplacian(0.5), Student(0.5, exponent=4)], ids=repr
)
@pytest.mark.parametrize("blur", [0.0, 0.7])
def test_a_short_selection_begins_a_longer_one(kernel, blur):
    f = mean_of(1500, kernel)
    longest = Paring(blur).select(f, 1200, rng=0)
    for size in (1, 7, 512, 513, 1100):
        np.testing.assert_array_equal(Paring(blur).select(f, size, rng=0).atoms, longest.atoms[:size])


@pytest.mark.parametrize("blur", [0.0, 0.7])
def test_a_traversal_that_goes_on_is_one_that_began_with_that_size(blur):
    f = mean_of(1500)
    at_once = Paring(blur).select(f, 1100, rng=0)
    in_steps = Paring(blur).begin(f, np.random.default_rng(0))
    for size in (3, 600, 600, 1100):
        in_steps.extend(size)
    atoms = in_steps.points if blur else f.atoms[in_steps.indices]
    np.testing.assert_array_equal(atoms, at_once.atoms)
    np.testing.assert_array_equal(in_steps.weights(), at_once.weights)


def test_fewer_rows_of_weight_than_draws_are_all_the_atoms():
    f = KernelMean(np.arange(5.0).reshape(-1, 1), [1.0, 0.0, 1e-30, 2.0, 0.0], KERNEL)
    chosen = Paring().select(f, 5, rng=0)
    assert sorted(chosen.indices.tolist()) == [0, 2, 3]
    assert chosen.weights.sum() == pytest.approx(3)
    assert chosen.weights[chosen.indices == 2] == 0


# -- in use ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [*WEIGHTINGS, "own"])
@pytest.mark.parametrize("select", ["paring", Paring(blur=0.5)], ids=str)
def test_a_compression_by_draws_has_a_true_certificate(select, weights):
    full = mean_of(400)
    small = compress(full, size=60, select=select, weights=weights, rng=0)
    assert small.selected == 60
    assert (small.indices is None) == (select != "paring")
    assert small.certificate.relative_error == pytest.approx(full.distance(small.mean) / full.norm(), rel=1e-5)
    if weights != "free":
        assert small.mean.mass == pytest.approx(1)


def test_kernel_pca_of_draws_is_that_of_the_rows_as_often_as_they_were_drawn():
    X = cloud(300)
    pca = ReducedKernelPCA(3, kernel=KERNEL, reduce="paring", size=100, refine=False, random_state=0).fit(X)
    assert len(pca.atoms_) < 100  # some rows were drawn twice
    times = np.round(pca.weights_ / 3).astype(int)  # 300 rows, 100 draws
    np.testing.assert_allclose(pca.weights_, 3.0 * times, rtol=1e-12)
    drawn = ReducedKernelPCA(3, kernel=KERNEL, reduce=None).fit(np.repeat(pca.atoms_, times, axis=0))
    np.testing.assert_allclose(pca.eigenvalues_ / 300, drawn.eigenvalues_ / 100, rtol=1e-9)
    np.testing.assert_allclose(np.abs(pca.transform(X)), np.abs(drawn.transform(X)), atol=1e-8)


def test_it_has_a_name():
    assert as_selector("paring") == Paring()
    assert Paring(blur=1) == Paring(1.0)


@pytest.mark.parametrize(
    ("blur", "error"), [(-0.1, "at least 0, got -0.1"), (np.nan, "finite"), ("1", "a number"), (True, "a number")]
)
def test_a_bad_blur_is_refused(blur, error):
    with pytest.raises((TypeError, ValueError), match=f"blur must be {error}"):
        Paring(blur)


def test_a_kernel_without_noise_cannot_be_blurred():
    f = mean_of(kernel=FunctionKernel("rbf", gamma=2.0))
    assert len(Paring().select(f, 9, rng=0).atoms) == 9
    with pytest.raises(TypeError, match=f"cannot be sampled from; use {ANY_FAMILY}"):
        Paring(blur=0.5).select(f, 9, rng=0)
