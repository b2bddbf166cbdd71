"""weights="own": what the selector itself gives its atoms, measured like any other weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import KERNELS, SELECTORS, WITH_OWN_WEIGHTS, cloud
from reduset import Gaussian, KernelMean, compress
from reduset.select import Herding, Random, Shadow, Thinning
from reduset.weights import FactoredSpan, IterativeSpan

SELECT = pytest.mark.parametrize("select", WITH_OWN_WEIGHTS)


def own(data, select, **options):
    options = {"rng": 0, "size": 15} | options
    return compress(data, select=SELECTORS[select], weights="own", **options)


def true_error(full, mean):
    return full.distance(mean) / full.norm()


@pytest.mark.covering_cases
@SELECT
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_error_is_the_distance_of_the_two_means_and_within_the_bounds(select, kernel):
    full = KernelMean.from_samples(cloud(), KERNELS[kernel])
    small = own(full, select)
    distance = full.distance(small.mean)
    assert small.certificate.relative_error == pytest.approx(distance / full.norm(), rel=1e-6)
    assert distance <= small.certificate.bound * (1 + 1e-9)
    assert small.certificate.bound <= small.certificate.theorem_bound * (1 + 1e-9)
    assert small.weighting == "own"


@SELECT
def test_they_are_those_of_the_selection(select):
    full = KernelMean.from_samples(cloud(), Gaussian(0.5))
    small = own(full, select)
    chosen = SELECTORS[select].select(full, 15, rng=np.random.default_rng(0).spawn(3)[0])
    expected = {tuple(atom): weight for atom, weight in zip(chosen.atoms.tolist(), chosen.weights, strict=True)}
    assert {tuple(atom) for atom in small.mean.atoms.tolist()} == set(expected)
    for atom, weight in zip(small.mean.atoms.tolist(), small.mean.weights, strict=True):
        assert weight == pytest.approx(expected[tuple(atom)], rel=1e-12)


@SELECT
def test_they_sum_to_the_mass_and_the_best_of_that_mass_lose_no_more(select):
    X, w = cloud(), np.random.default_rng(1).uniform(size=120)
    full = KernelMean.from_samples(X, Gaussian(0.5), w)
    small = own(full, select)
    assert small.mean.mass == pytest.approx(1)
    assert small.mean.weights.min() >= 0
    best = small.reweigh(full, weights="simplex")
    assert best.certificate.relative_error <= small.certificate.relative_error * (1 + 1e-9)


@SELECT
@pytest.mark.parametrize("bandwidth", [0.5, 8.0])
def test_a_prefix_takes_over_the_weight_of_the_rest(select, bandwidth):
    full = KernelMean.from_samples(cloud(), Gaussian(bandwidth))
    small = own(full, select, size=20)
    for size in (1, min(7, small.size), small.size):
        nested = small.at(size)
        np.testing.assert_array_equal(nested.mean.atoms, small.mean.atoms[:size])
        some = small.mean.weights[:size]
        if some.sum() > 0:
            np.testing.assert_allclose(nested.mean.weights, some / some.sum(), rtol=1e-9)
        assert nested.certificate.relative_error == pytest.approx(true_error(full, nested.mean), rel=1e-5, abs=1e-7)
        assert small.path.relative_errors[size - 1] == pytest.approx(nested.certificate.relative_error, rel=1e-9)


@pytest.mark.covering_cases
@SELECT
@pytest.mark.parametrize("bandwidth", [3.0, 30.0])
def test_redundant_atoms_keep_their_weights(select, bandwidth):
    """A wide kernel hardly tells the atoms apart: with the best weights most would be dropped, here they all count."""
    full = KernelMean.from_samples(cloud(), Gaussian(bandwidth))
    small = own(full, select, size=60)
    best = compress(full, size=60, select=SELECTORS[select], rng=0)
    if select != "shadow":  # which has few shadows then
        assert small.selected == 60 > best.size
    assert len(small.dropped) == 0
    assert small.mean.mass == pytest.approx(1)
    assert small.certificate.relative_error == pytest.approx(true_error(full, small.mean), rel=1e-4, abs=1e-7)
    if small.indices is not None:
        np.testing.assert_array_equal(full.atoms[small.indices], small.mean.atoms)


def test_atoms_that_coincide_keep_their_weights():
    X = np.repeat(cloud(15), 8, axis=0)
    full = KernelMean.from_samples(X, Gaussian(0.5))
    for select in ("random", "paring", "thinning", "herding", "plain herding"):
        small = own(full, select, size=40)
        assert small.selected == 40
        assert small.certificate.relative_error == pytest.approx(true_error(full, small.mean), rel=1e-6)
        for size in (3, 17, 39):
            nested = small.at(size)
            assert nested.certificate.relative_error == pytest.approx(true_error(full, nested.mean), rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    coarse=st.booleans(),
    bandwidth=st.sampled_from([0.1, 0.7, 5.0]),
    share=st.floats(0, 1),
    signed=st.booleans(),
    select=st.sampled_from(["random", "paring", "kmeans", "herding", "plain herding", "thinning"]),
)
def test_any_small_cloud_has_a_true_certificate(seed, n, coarse, bandwidth, share, signed, select):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, 2)).astype(float) if coarse else rng.normal(size=(n, 2))
    w = rng.normal(size=n) if signed else rng.integers(1, 4, size=n).astype(float)
    full = KernelMean(X, w, Gaussian(bandwidth))
    if np.abs(w.sum()) < 0.1 * np.abs(w).sum():
        full = KernelMean(X, np.abs(w), Gaussian(bandwidth))
    small = own(full, select, size=1 + int(share * (n - 1)))
    assert np.isfinite(small.mean.weights).all()
    scale = full.norm() + np.abs(small.mean.weights).sum()
    for nested in (small, small.at(1 + small.size // 2) if small.size > 1 else small):
        distance = full.distance(nested.mean)
        low, high = (end * full.norm() for end in nested.certificate.interval)
        assert low * (1 - 1e-5) - 1e-7 * scale <= distance <= high * (1 + 1e-5) + 1e-7 * scale
        assert nested.certificate.bound is None or distance <= nested.certificate.bound * (1 + 1e-9) + 1e-7 * scale


def test_where_the_error_is_measured_it_is_still_true():
    X = cloud(6000)
    full = KernelMean.from_samples(X, Gaussian(0.5))
    for selector in (Shadow(1.0), Thinning(), Herding()):
        small = compress(full, size=60, select=selector, weights="own", rng=0)
        assert small.certificate.method == "frequencies"
        low, high = small.certificate.interval
        assert low * 0.98 <= true_error(full, small.mean) <= high * 1.02


# -- random rows -----------------------------------------------------------------------------------------------------


def test_equal_rows_drawn_at_random_have_equal_shares():
    small = own(cloud(), "random", size=30)
    np.testing.assert_allclose(small.mean.weights, 1 / 30, rtol=1e-12)


def test_all_rows_have_their_own_weights():
    w = np.random.default_rng(0).uniform(0.1, 5, size=120)
    chosen = Random().select(KernelMean.from_samples(cloud(), Gaussian(0.5), w), 120, rng=0)
    np.testing.assert_allclose(chosen.weights, (w / w.sum())[chosen.indices], rtol=1e-9)


def test_a_row_that_was_sure_to_be_drawn_weighs_what_it_weighs():
    """A tenth of the rows has most of the mass: equal shares would give the light rows too much."""
    X, w = cloud(200), np.where(np.arange(200) < 20, 50.0, 1.0)
    full = KernelMean.from_samples(X, Gaussian(0.5), w)
    lost = {"own": [], "equal": []}
    for seed in range(20):
        chosen = Random().select(full, 100, rng=seed)
        assert chosen.weights.sum() == pytest.approx(1)
        lost["own"].append(full.distance(KernelMean(chosen.atoms, chosen.weights, full.kernel)))
        lost["equal"].append(full.distance(KernelMean.from_samples(chosen.atoms, full.kernel)))
    assert np.mean(lost["own"]) < np.mean(lost["equal"]) / 3


@pytest.mark.parametrize("select", ["thinning", "herding"])
def test_a_prefix_of_atoms_without_a_weight_has_one(select):
    """Places that rows chosen twice leave free, and rows that a walk was forced to take, weigh nothing in the whole."""
    rng = np.random.default_rng(0)
    for seed in range(10):
        w = rng.integers(1, 30, size=40).astype(float) ** 2
        full = KernelMean.from_samples(rng.normal(size=(40, 1)), Gaussian(2.0), w)
        small = own(full, select, size=20, rng=seed)
        for size in range(1, small.size + 1):
            nested = small.at(size)
            assert nested.mean.mass == pytest.approx(1)
            assert nested.certificate.relative_error == pytest.approx(true_error(full, nested.mean), rel=1e-4, abs=1e-6)


# -- goals -----------------------------------------------------------------------------------------------------------


def test_a_tolerance_holds_for_them():
    full = KernelMean.from_samples(cloud(1000), Gaussian(0.8))
    for select in ("thinning", "shadow", "herding"):
        small = compress(full, tol=0.15, select=SELECTORS[select], weights="own", rng=0)
        assert small.reached
        assert true_error(full, small.mean) <= 0.15
        assert small.certificate.interval[1] <= 0.15


def test_a_plateau_counts_the_atoms_that_it_weighs():
    full = KernelMean.from_samples(cloud(500, 1), Gaussian(1.0))
    small = compress(full, plateau=1e-3, select=Random(), weights="own", rng=0)
    assert small.mean.mass == pytest.approx(1)
    assert small.certificate.relative_error == pytest.approx(true_error(full, small.mean), rel=1e-5)


# -- what has none ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", [name for name in SELECTORS if name not in WITH_OWN_WEIGHTS])
def test_selectors_without_any_say_so(select):
    message = f"weights='own' needs a selector .*, got {SELECTORS[select]}; use weights='free'"
    with pytest.raises(ValueError, match=message):
        own(cloud(), select)


@SELECT
def test_another_kernel_needs_other_weights(select):
    full = KernelMean.from_samples(cloud(), Gaussian(0.5))
    small = own(full, select)
    with pytest.raises(ValueError, match="weights must be given, since 'own' weights hold for this result's kernel"):
        small.reweigh(full)
    with pytest.raises(ValueError, match="weights must be one of 'clipped', 'free'"):
        small.reweigh(full, weights="own")
    assert small.reweigh(full, weights="free").weighting == "free"


@pytest.mark.parametrize("select", [name for name in SELECTORS if name != "auto"])  # which has those of the one it chose
def test_a_selector_says_whether_it_weighs(select):
    full = KernelMean.from_samples(cloud(), Gaussian(0.5))
    assert (SELECTORS[select].select(full, 9, rng=0).weights is not None) == SELECTORS[select].weighs


# -- the span --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("redundant", [False, True])
def test_excess_of_given_is_what_weights_of_all_the_atoms_lose(redundant):
    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(200, 2)), Gaussian(0.7)
    atoms = X[:12].copy()
    if redundant:
        atoms[[3, 7, 8]] = atoms[[1, 0, 0]]
    full = KernelMean.from_samples(X, kernel)
    span = FactoredSpan(kernel, atoms, kernel.product_sums(X, full.weights, atoms))
    assert span.kept.all() != redundant
    for size in (1, 4, 9, 12):
        weights = rng.normal(size=size)
        best = KernelMean(span.atoms, span.weights("free", 1.0, span.size), kernel)
        given_ = KernelMean(atoms[:size], weights, kernel)
        assert span.excess_of_given(weights, size) == pytest.approx(best.distance(given_) ** 2, rel=1e-9)


def test_conjugate_gradients_weigh_all_atoms_alike():
    X, kernel = np.random.default_rng(0).normal(size=(300, 2)), Gaussian(0.3)
    kappa = kernel.product_sums(X, np.full(300, 1 / 300), X[:40])
    by_factor, by_steps = FactoredSpan(kernel, X[:40].copy(), kappa), IterativeSpan(kernel, X[:40].copy(), kappa)
    weights = np.full(40, 1 / 40)
    assert by_steps.excess_of_given(weights, 40) == pytest.approx(by_factor.excess_of_given(weights, 40), rel=1e-6)


def test_many_atoms_of_their_own_weights_need_no_factor(monkeypatch):
    full = KernelMean.from_samples(cloud(800), Gaussian(0.2))
    plain = own(full, "thinning", size=100)
    monkeypatch.setattr("reduset.weights.span.CHOLESKY_UP_TO", 50)
    many = own(full, "thinning", size=100)
    assert many.certificate.relative_error == pytest.approx(plain.certificate.relative_error, rel=1e-4)
