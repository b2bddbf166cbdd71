"""The mixture against SciPy's densities, quadrature, Bayes' rule and scikit-learn, and the laws of its algebra."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

import reference_mixture as reference
from reduset import Gaussian, KernelMean, Mixture
from reference_mixture import SHAPES, covariances_of, mixture_of

EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
EVERY_OTHER = pytest.mark.parametrize("other", SHAPES)
COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])


def signed_pair(shape="full", other="full", d=2, seed=0):
    rng = np.random.default_rng(seed)
    return mixture_of(rng, 7, d, shape, signed=True), mixture_of(rng, 4, d, other, signed=True)


def queries(count=9, d=2, seed=5):
    return np.random.default_rng(seed).normal(scale=1.5, size=(count, d))


# -- evaluation -------------------------------------------------------------------------------------------------------


@EVERY_SHAPE
@pytest.mark.parametrize("d", [1, 2, 4])
def test_evaluation_is_the_weighted_sum_of_the_densities(shape, d):
    f, _ = signed_pair(shape, d=d)
    np.testing.assert_allclose(f(queries(d=d)), reference.evaluate(f, queries(d=d)), rtol=1e-10, atol=1e-13)


@EVERY_SHAPE
@pytest.mark.parametrize("d", [1, 2, 4])
def test_gradient_is_the_slope_of_the_evaluation(shape, d):
    f, _ = signed_pair(shape, d=d)
    np.testing.assert_allclose(f.gradient(queries(d=d)), reference.gradient(f, queries(d=d)), rtol=1e-6, atol=1e-9)


@EVERY_SHAPE
def test_log_density_is_the_log_of_the_evaluation(shape):
    f = mixture_of(np.random.default_rng(1), 8, 3, shape)
    np.testing.assert_allclose(f.log_density(queries(d=3)), np.log(f(queries(d=3))), rtol=1e-11)


@EVERY_SHAPE
def test_log_density_is_finite_where_the_density_underflows(shape):
    f = mixture_of(np.random.default_rng(1), 8, 2, shape)
    far = np.array([[1e3, -2e3], [1e5, 1e5], [1e120, 0.0]])
    logs = [[np.log(w) + reference.log_normal(q, t, H) for q in far] for w, t, H in parts_of(f)]
    found = f.log_density(far)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, np.logaddexp.reduce(logs, axis=0), rtol=1e-9)
    assert (f(far) == 0).all()


def parts_of(f):
    return list(zip(f.weights, f.means, reference.matrices(f.covariances, f.dimension), strict=True))


def test_log_density_is_minus_infinity_at_zero_and_nan_below():
    zero = Mixture([1.0, -1.0], [[0.0], [0.0]], [1.0, 1.0])
    below = Mixture([-1.0], [[0.0]], [1.0])
    assert zero.log_density([[0.3]])[0] == -np.inf
    assert np.isnan(below.log_density([[0.3]])[0])
    both = Mixture([1.0, -1.0], [[-2.0], [2.0]], [1.0, 1.0]).log_density([[-1.0], [1.0]])
    assert np.isfinite(both[0])
    assert np.isnan(both[1])


# -- geometry ---------------------------------------------------------------------------------------------------------


@EVERY_SHAPE
@EVERY_OTHER
def test_inner_norm_and_distance_are_the_double_sums(shape, other):
    f, g = signed_pair(shape, other, d=3)
    assert f.inner(g) == pytest.approx(reference.inner(f, g), rel=1e-10, abs=1e-13)
    assert g.inner(f) == pytest.approx(f.inner(g), rel=1e-12, abs=1e-15)
    assert f.norm() == pytest.approx(np.sqrt(reference.inner(f, f)), rel=1e-10)
    assert f.distance(g) == pytest.approx(reference.distance(f, g), rel=1e-10)
    assert g.distance(f) == pytest.approx(f.distance(g), rel=1e-12)


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@pytest.mark.parametrize("d", [1, 2])
def test_inner_and_distance_are_integrals(shape, other, d):
    f, g = signed_pair(shape, other, d=d)
    assert f.inner(g) == pytest.approx(reference.integral(lambda x: f(x) * g(x), d), rel=1e-9, abs=1e-12)
    assert f.distance(g) ** 2 == pytest.approx(reference.integral(lambda x: (f(x) - g(x)) ** 2, d), rel=1e-9)
    assert f.mass == pytest.approx(reference.integral(f, d), rel=1e-9)


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@pytest.mark.parametrize("d", [1, 3])
def test_the_products_that_others_are_held_to_are_densities_of_scipy(shape, other, d):
    f, g = signed_pair(shape, other, d=d)
    wide = [[A + C for C in reference.matrices(g.covariances, d)] for A in reference.matrices(f.covariances, d)]
    wanted = [
        [np.exp(reference.log_normal(x, y, H)) for y, H in zip(g.means, row, strict=True)]
        for x, row in zip(f.means, wide, strict=True)
    ]
    np.testing.assert_allclose(reference.products(f.means, f.covariances, g.means, g.covariances), wanted, rtol=1e-11)


def test_the_distance_to_itself_is_zero_and_to_a_copy_nothing_but_rounding():
    f, _ = signed_pair()
    assert f.distance(f) == 0
    assert f.distance(Mixture(f.weights, f.means, f.covariances)) <= 2e-8 * f.norm()
    assert f.distance(Mixture(f.weights[::-1], f.means[::-1], f.covariances[::-1])) <= 2e-8 * f.norm()


def test_norm_and_distance_are_finite_where_the_inner_product_overflows():
    """Needles in many dimensions: ‖f‖² is beyond the largest number, ‖f‖ is not."""
    f = Mixture([0.5, 0.5], np.array([[0.0], [1.0]]) * np.ones(60), [1e-14, 1e-14])
    log_norm = 0.5 * (np.log(0.5) - 30 * np.log(4 * np.pi * 1e-14))
    assert np.log(f.norm()) == pytest.approx(log_norm, rel=1e-12)
    assert np.log(f.distance(Mixture([1.0], np.zeros((1, 60)), [1.0]))) == pytest.approx(log_norm, rel=1e-12)


@EVERY_SHAPE
def test_kl_of_two_gaussians_is_the_closed_form_within_its_error(shape):
    rng = np.random.default_rng(2)
    f, g = (Mixture([3.0], rng.normal(size=(1, 3)), covariances_of(rng, 1, 3, shape)) for _ in range(2))
    (H,), (K,) = (reference.matrices(each.covariances, 3) for each in (f, g))
    expected = reference.kl_of_gaussians(f.means[0], H, g.means[0], K)
    found = [f.kl(g * factor, count=4000, rng=seed) for seed, factor in enumerate((1.0, 5.0, 0.1))]  # of densities: any mass
    for value, error in found:
        assert 0 < error < 0.2 * expected + 0.1
        assert abs(value - expected) < 4 * error


def test_the_error_of_kl_is_that_of_repetitions():
    f, g = (mixture_of(np.random.default_rng(seed), 5, 2) for seed in (1, 2))
    found = [f.kl(g, count=500, rng=seed) for seed in range(60)]
    values = np.array([value for value, _ in found])
    assert np.mean([error for _, error in found]) == pytest.approx(values.std(ddof=1), rel=0.35)
    assert f.kl(f, rng=0) == (0.0, 0.0)


@EVERY_SHAPE
@pytest.mark.parametrize("shared", [False, True])
def test_samples_have_the_mean_the_covariance_and_the_law_of_the_mixture(shape, shared):
    f = mixture_of(np.random.default_rng(3), 4, 2, shape, shared) * 7.0
    draws = f.sample(40_000, rng=0)
    assert draws.shape == (40_000, 2)
    np.testing.assert_allclose(draws.mean(axis=0), f.mean(), atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), f.covariance(), atol=0.12)
    assert np.mean(draws[:, 0] < 0) == pytest.approx(reference.integral(lambda x: np.where(x[:, 0] < 0, f(x), 0), 2) / 7, abs=0.02)
    np.testing.assert_array_equal(draws, f.sample(40_000, rng=0))
    assert f.sample(0).shape == (0, 2)


@EVERY_SHAPE
def test_mean_and_covariance_are_integrals(shape):
    f = mixture_of(np.random.default_rng(4), 5, 2, shape) * 3.0
    mean = [reference.integral(lambda x, j=j: x[:, j] * f(x), 2) / 3 for j in range(2)]
    np.testing.assert_allclose(f.mean(), mean, rtol=1e-9)
    away = lambda x, i, j: (x[:, i] - mean[i]) * (x[:, j] - mean[j]) * f(x) / 3  # noqa: E731
    expected = [[reference.integral(lambda x, i=i, j=j: away(x, i, j), 2) for j in range(2)] for i in range(2)]
    np.testing.assert_allclose(f.covariance(), expected, rtol=1e-8, atol=1e-10)


def test_the_covariance_keeps_its_digits_far_from_the_origin():
    f = mixture_of(np.random.default_rng(4), 50, 2)
    far = Mixture(f.weights, f.means + 1e8, f.covariances)
    np.testing.assert_allclose(far.covariance(), f.covariance(), rtol=1e-6)


# -- slices -----------------------------------------------------------------------------------------------------------


@EVERY_SHAPE
@pytest.mark.parametrize("column", [0, 1])
def test_a_marginal_is_the_integral_over_the_other_column(shape, column):
    f, _ = signed_pair(shape)
    g = f.marginal([column])
    assert (g.shape, g.dimension) == (shape, 1)
    for value in (-1.0, 0.4):
        assert g([[value]])[0] == pytest.approx(reference.marginal_at(f, column, value), rel=1e-7, abs=1e-10)


@EVERY_SHAPE
def test_marginals_keep_the_order_of_the_columns(shape):
    f, _ = signed_pair(shape, d=4)
    x = queries(d=4)
    np.testing.assert_allclose(f.marginal([2, 0, 3, 1])(x[:, [2, 0, 3, 1]]), f(x), rtol=1e-10, atol=1e-15)
    one, two = f.marginal([3, 1, 0]).marginal([2, 0]), f.marginal([0, -1])
    np.testing.assert_allclose(one(x[:, :2]), two(x[:, :2]), rtol=1e-12)


@EVERY_SHAPE
@pytest.mark.parametrize("known", [[0], [2, 0], [1, 2]])
def test_a_conditional_is_the_joint_over_the_marginal(shape, known):
    f = mixture_of(np.random.default_rng(6), 6, 3, shape) * 2.5
    other = [j for j in range(3) if j not in known]
    x = queries(d=3)
    values = x[0, known]
    g = f.conditional(known, values)
    assert g.mass == pytest.approx(1.0, rel=1e-12)
    full = x.copy()
    full[:, known] = values
    np.testing.assert_allclose(g(x[:, other]), f(full) / f.marginal(known)(values[None]), rtol=1e-9)


def test_a_conditional_far_away_is_that_of_the_component_which_reaches_there():
    f = Mixture([0.5, 0.5], [[0.0, 0.0], [10.0, 1.0]], np.array([np.eye(2), COVARIANCE]))
    g = f.conditional([0], 500.0)
    assert g.weights == pytest.approx([0.0, 1.0], abs=1e-300)
    assert g.means[1] == pytest.approx([1.0 + 0.3 * 490])
    assert np.isfinite(f.conditional([0], 1e120).means).all()


# -- scikit-learn -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("d", [1, 3])
def test_a_gaussian_mixture_of_scikit_learn_comes_and_goes_with_the_same_scores(kind, d):
    X = np.random.default_rng(0).normal(size=(200, d)) * np.arange(1, d + 1)
    fitted = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    f = Mixture.from_sklearn(fitted)
    assert f.shape == ("full" if kind == "tied" else kind)
    np.testing.assert_allclose(f.log_density(X), fitted.score_samples(X), rtol=1e-9)
    back = (f * 4.0).to_sklearn()
    np.testing.assert_allclose(back.score_samples(X), fitted.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(back.predict_proba(X), fitted.predict_proba(X), atol=1e-9)
    assert back.sample(5)[0].shape == (5, d)
    assert np.isfinite(back.bic(X))
    again = Mixture.from_sklearn(back)
    np.testing.assert_allclose(again.weights, f.weights, rtol=1e-12)
    np.testing.assert_array_equal(again.covariances, f.covariances)


def test_a_bayesian_gaussian_mixture_is_read_too():
    X = np.random.default_rng(0).normal(size=(200, 2))
    fitted = BayesianGaussianMixture(n_components=3, random_state=0).fit(X)
    f = Mixture.from_sklearn(fitted)
    expected = sum(
        w * np.exp(reference.log_normal(X, t, H))
        for w, t, H in zip(fitted.weights_, fitted.means_, fitted.covariances_, strict=True)
    )
    np.testing.assert_allclose(f(X), expected, rtol=1e-10)


def test_what_goes_to_scikit_learn_is_a_copy():
    f = mixture_of(np.random.default_rng(0), 3, 2)
    before = f.means.copy()
    f.to_sklearn().means_[:] = 0
    np.testing.assert_array_equal(f.means, before)


# -- kernel means -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("covariance", [None, COVARIANCE], ids=["round", "oblique"])
@pytest.mark.parametrize("space", ["rkhs", "l2"])
def test_a_gaussian_kernel_mean_is_the_mixture_of_its_bumps(normalized, covariance, space):
    rng = np.random.default_rng(0)
    kernel = Gaussian(0.7, normalized=normalized, covariance=covariance, space=space)
    mean = KernelMean(rng.normal(size=(8, 2)), rng.normal(size=8), kernel)
    f = Mixture.from_mean(mean)
    assert f.shape == ("spherical" if covariance is None else "full")
    expected = mean(queries(), precision="double")
    np.testing.assert_allclose(f(queries()), expected, rtol=1e-10, atol=1e-13)
    in_l2 = KernelMean(mean.atoms, mean.weights, Gaussian(0.7, normalized=normalized, covariance=covariance, space="l2"))
    assert f.norm() == pytest.approx(in_l2.norm(), rel=1e-10)
    back = f.to_mean()
    assert back.kernel.normalized
    np.testing.assert_allclose(back(queries(), precision="double"), expected, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(back.atoms, mean.atoms)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("covariance", [None, COVARIANCE], ids=["round", "oblique"])
def test_a_mean_comes_back_with_the_kernel_it_had(normalized, covariance):
    rng = np.random.default_rng(0)
    mean = KernelMean(rng.normal(size=(8, 2)), rng.normal(size=8), Gaussian(0.7, normalized=normalized, covariance=covariance))
    back = Mixture.from_mean(mean).to_mean(mean.kernel)
    assert back.kernel == mean.kernel
    np.testing.assert_allclose(back.weights, mean.weights, rtol=1e-12)


def test_a_float32_mean_becomes_a_mixture_in_double():
    mean = KernelMean.from_samples(np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32), Gaussian(0.7))
    f = Mixture.from_mean(mean)
    assert f.means.dtype == np.float64
    np.testing.assert_allclose(f(queries()), mean(queries(), precision="double"), rtol=1e-6)


# -- algebra ----------------------------------------------------------------------------------------------------------


@EVERY_SHAPE
@EVERY_OTHER
def test_sums_differences_and_multiples_are_those_of_the_functions(shape, other):
    f, g = signed_pair(shape, other)
    x = queries()
    np.testing.assert_allclose((f + g)(x), f(x) + g(x), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose((f - g)(x), f(x) - g(x), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose((2 * f)(x), (f * 2.0)(x), rtol=1e-14)
    np.testing.assert_allclose((f / 4)(x), f(x) / 4, rtol=1e-12)
    np.testing.assert_allclose((-f)(x), -f(x), rtol=1e-14)
    np.testing.assert_allclose(sum([f, g, f])(x), 2 * f(x) + g(x), rtol=1e-10, atol=1e-13)
    assert (f + g).shape == SHAPES[max(SHAPES.index(shape), SHAPES.index(other))]
    assert (f + g).mass == pytest.approx(f.mass + g.mass)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(SHAPES), st.sampled_from(SHAPES), st.floats(-5, 5))
def test_the_inner_product_is_bilinear_symmetric_and_obeys_cauchy_schwarz(seed, d, shape, other, factor):
    rng = np.random.default_rng(seed)
    f, g, h = (mixture_of(rng, rng.integers(1, 6), d, kind, signed=True) for kind in (shape, other, shape))
    scale = f.norm() * g.norm() + f.norm() * h.norm()
    assert f.inner(g + h) == pytest.approx(f.inner(g) + f.inner(h), abs=1e-10 * scale)
    assert f.inner(g) == pytest.approx(g.inner(f), abs=1e-12 * scale)
    assert abs(f.inner(g)) <= f.norm() * g.norm() * (1 + 1e-12)
    assert f.distance(h) <= f.distance(g) + g.distance(h) + 1e-7 * (f.norm() + g.norm() + h.norm())
    if factor:
        assert (factor * f).norm() == pytest.approx(abs(factor) * f.norm(), rel=1e-12)


# -- what it is -------------------------------------------------------------------------------------------------------


def test_size_dimension_mass_shape_and_words():
    f = Mixture(np.ones(1200), np.zeros((1200, 3)), np.ones((1200, 3)))
    assert (f.size, f.dimension, f.mass, f.shape, f.is_density) == (1200, 3, 1200.0, "diag", True)
    assert repr(f) == "Mixture(1,200 components in 3 dimensions, diag covariances)"
    assert not (f - f / 2).is_density


def test_nothing_can_be_changed_and_inputs_are_left_alone():
    weights, means, covariances = np.ones(3), np.arange(6.0).reshape(3, 2), np.array([np.eye(2)] * 3)
    kept = weights.copy(), means.copy(), covariances.copy()
    f = Mixture(weights, means, covariances)
    for name in ("weights", "means", "covariances"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(f, name)[0] = 5.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(f, name, kept[0])
    f(means), f.gradient(means), f.log_density(means), f.norm(), f.sample(3, rng=0), f.conditional([0], 1.0), f.to_sklearn()
    for mine, theirs in zip((weights, means, covariances), kept, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.flags.writeable


@pytest.mark.parametrize("kind", [np.float32, np.int64, list, pd.DataFrame], ids=lambda kind: kind.__name__)
def test_numbers_of_any_kind_make_the_same_mixture(kind):
    weights, means, covariances = [1, 2, 3], [[0, 1], [2, 5], [4, 4]], [1, 2, 4]
    wrap = {list: list, pd.DataFrame: pd.DataFrame}.get(kind, lambda value: np.array(value, kind))
    series = pd.Series if kind is pd.DataFrame else wrap
    f = Mixture(series(weights), wrap(means), series(covariances))
    g = Mixture(np.array(weights, float), np.array(means, float), np.array(covariances, float))
    for name in ("weights", "means", "covariances"):
        assert getattr(f, name).dtype == np.float64
        np.testing.assert_array_equal(getattr(f, name), getattr(g, name))
    Q = wrap([[0, 0], [1, 2]])
    np.testing.assert_array_equal(f(Q), g(np.array([[0.0, 0.0], [1.0, 2.0]])))


def test_symmetric_up_to_rounding_is_made_symmetric():
    H = np.array([[[2.0, 0.5], [0.5 + 1e-12, 1.0]]])
    f = Mixture([1.0], [[0.0, 0.0]], H)
    np.testing.assert_array_equal(f.covariances, f.covariances.transpose(0, 2, 1))
    assert H[0, 1, 0] == 0.5 + 1e-12


def test_one_covariance_for_all_is_stored_once():
    f = Mixture(np.ones(10), np.zeros((10, 2)), np.broadcast_to(COVARIANCE, (10, 2, 2)))
    assert f.covariances.strides[0] == 0
