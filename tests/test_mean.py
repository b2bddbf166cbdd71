"""The kernel mean against dense oracles, quadrature and scikit-learn, and the laws of its algebra."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, sparse, stats
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KernelDensity

import reference_mean as reference
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Matern, Student
from reduset.kernels import ANY_FAMILY
from reference import matern_length

COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])

FAMILIES = [
    pytest.param(Gaussian, {}, id="gaussian"),
    pytest.param(Laplacian, {}, id="laplacian"),
    pytest.param(Laplacian, {"metric": "cityblock"}, id="cityblock"),
    pytest.param(Matern, {}, id="matern"),
    pytest.param(Matern, {"smoothness": 2.5}, id="smoother matern"),
    pytest.param(Student, {}, id="cauchy"),
    pytest.param(Student, {"exponent": 2.2}, id="student"),
]
SPACES = pytest.mark.parametrize("space", ["rkhs", "l2"])
SCALES = pytest.mark.parametrize("normalized", [False, True])
SHAPES = pytest.mark.parametrize("covariance", [None, COVARIANCE], ids=["round", "oblique"])
EVERY_FAMILY = pytest.mark.parametrize(("family", "options"), FAMILIES)


def signed_pair(kernel, seed=0):
    rng = np.random.default_rng(seed)
    f = KernelMean(rng.normal(size=(7, 2)), rng.normal(size=7), kernel)
    g = KernelMean(rng.normal(size=(4, 2)), rng.normal(size=4), kernel)
    return f, g


def queries(count=9, d=2, seed=5):
    return np.random.default_rng(seed).normal(scale=1.5, size=(count, d))


# -- against the oracles ---------------------------------------------------------------------------------------------


@EVERY_FAMILY
@SCALES
@SHAPES
def test_evaluation_is_the_sum_of_the_bumps(family, options, normalized, covariance):
    f, _ = signed_pair(family(0.7, normalized=normalized, covariance=covariance, **options))
    expected = reference.evaluate(f, queries())
    np.testing.assert_allclose(f(queries(), precision="double"), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(f(queries()), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(f(queries(), precision="single"), expected, rtol=1e-4, atol=1e-5)


@EVERY_FAMILY
@SCALES
@SHAPES
def test_gradient_is_the_slope_of_the_evaluation(family, options, normalized, covariance):
    f, _ = signed_pair(family(0.7, normalized=normalized, covariance=covariance, **options))
    np.testing.assert_allclose(f.gradient(queries()), reference.gradient(f, queries()), rtol=1e-6, atol=1e-8)


@pytest.mark.fast_cases(56)
@EVERY_FAMILY
@SPACES
@SCALES
@SHAPES
def test_inner_norm_and_distance_are_the_double_sums(family, options, space, normalized, covariance):
    f, g = signed_pair(family(0.7, space=space, normalized=normalized, covariance=covariance, **options))
    ff, fg, gg = (reference.inner(a, b) for a, b in ((f, f), (f, g), (g, g)))
    assert f.inner(g) == pytest.approx(fg, rel=1e-8, abs=1e-9 * np.sqrt(ff * gg))
    assert g.inner(f) == pytest.approx(f.inner(g), rel=1e-12)
    assert f.norm() == pytest.approx(np.sqrt(ff), rel=1e-8)
    assert f.distance(g) == pytest.approx(np.sqrt(ff - 2 * fg + gg), rel=1e-8)
    assert g.distance(f) == pytest.approx(f.distance(g), rel=1e-12)


@EVERY_FAMILY
@SCALES
@SHAPES
def test_log_density_is_the_log_of_the_normalized_sum(family, options, normalized, covariance):
    rng = np.random.default_rng(3)
    kernel = family(0.7, normalized=normalized, covariance=covariance, **options)
    f = KernelMean.from_samples(rng.normal(size=(12, 2)), kernel, rng.uniform(0.1, 1, size=12))
    np.testing.assert_allclose(f.log_density(queries()), reference.log_density(f, queries()), rtol=1e-9, atol=1e-9)


@EVERY_FAMILY
def test_log_density_is_the_log_of_a_normalized_mean(family, options):
    f = KernelMean.from_samples(queries(30, seed=1), family(0.7, normalized=True, **options))
    np.testing.assert_allclose(np.exp(f.log_density(queries())), f(queries(), precision="double"), rtol=1e-9)


@EVERY_FAMILY
def test_log_density_is_finite_where_the_density_underflows(family, options):
    f = KernelMean.from_samples(queries(30, seed=1), family(0.01, **options))
    far = np.array([[1e3, -2e3], [1e5, 1e5]])
    np.testing.assert_allclose(f.log_density(far), reference.log_density(f, far), rtol=1e-9)


def test_log_density_is_minus_infinity_at_zero_and_nan_below():
    f = KernelMean(np.array([[0.0], [0.0]]), np.array([1.0, -1.0]), Gaussian(1.0))
    g = KernelMean(np.array([[0.0]]), np.array([-1.0]), Gaussian(1.0))
    assert f.log_density([[0.3]])[0] == -np.inf
    assert np.isnan(g.log_density([[0.3]])[0])


@pytest.mark.parametrize(("kernel", "name"), [(Gaussian(0.4), "gaussian"), (Laplacian(0.4), "exponential")])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_log_density_agrees_with_scikit_learn(kernel, name, d, weighted):
    rng = np.random.default_rng(d)
    X, Q = rng.normal(size=(80, d)), rng.normal(scale=2, size=(20, d))
    w = rng.uniform(0, 3, size=80) if weighted else None
    peer = KernelDensity(bandwidth=0.4, kernel=name, rtol=0, atol=0).fit(X, sample_weight=w)
    f = KernelMean.from_samples(X, kernel, w)
    np.testing.assert_allclose(f.log_density(Q), peer.score_samples(Q), rtol=1e-8, atol=1e-8)


def test_distance_is_the_biased_mmd():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(30, 3)), rng.normal(0.5, 1.2, size=(20, 3))
    k = lambda A, B: rbf_kernel(A, B, gamma=1 / (2 * 0.8**2))  # noqa: E731
    mmd2 = k(X, X).mean() - 2 * k(X, Y).mean() + k(Y, Y).mean()
    f, g = (KernelMean.from_samples(Z, Gaussian(0.8)) for Z in (X, Y))
    assert f.distance(g) ** 2 == pytest.approx(mmd2, rel=1e-10)


@EVERY_FAMILY
@SCALES
def test_l2_distance_on_the_line_is_the_integral_of_the_squared_difference(family, options, normalized):
    kernel = family(0.8, space="l2", normalized=normalized, **options)
    f = KernelMean([[-1.0], [0.5]], [0.7, 0.3], kernel)
    g = KernelMean([[0.0], [2.0]], [1.5, -0.5], kernel)

    def square(x):
        at = np.array([[x]])
        return (f(at, precision="double")[0] - g(at, precision="double")[0]) ** 2

    corners = [-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf]
    total = sum(integrate.quad(square, a, b, epsabs=1e-12)[0] for a, b in itertools.pairwise(corners))
    assert f.distance(g) ** 2 == pytest.approx(total, rel=1e-7)


@EVERY_FAMILY
def test_a_normalized_mean_of_mass_one_integrates_to_one(family, options):
    f = KernelMean.from_samples([[-1.0], [0.5], [0.5]], family(0.8, normalized=True, **options))
    value = lambda x: f(np.array([[x]]), precision="double")[0]  # noqa: E731
    corners = [-np.inf, -1.0, 0.5, np.inf]
    total = sum(integrate.quad(value, a, b)[0] for a, b in itertools.pairwise(corners))
    assert total == pytest.approx(1.0, rel=1e-6)


def test_a_function_kernel_gives_the_same_mean_as_the_gaussian_it_writes_out():
    rng = np.random.default_rng(2)
    X, w = rng.normal(size=(40, 3)), rng.normal(size=40)
    f = KernelMean(X, w, Gaussian(0.5))
    g = KernelMean(X, w, FunctionKernel("rbf", gamma=2.0))
    Q = queries(6, 3)
    np.testing.assert_allclose(g(Q), f(Q, precision="double"), rtol=1e-10, atol=1e-14)
    assert g.norm() == pytest.approx(f.norm(), rel=1e-10)


@pytest.mark.parametrize("use", ["gradient", "log_density"])
def test_a_function_kernel_says_what_it_cannot_do(use):
    f = KernelMean.from_samples(queries(), FunctionKernel("rbf", gamma=2.0))
    with pytest.raises(TypeError, match=f"use {ANY_FAMILY}"):
        getattr(f, use)(queries())
    with pytest.raises(TypeError, match=f"use {ANY_FAMILY}"):
        f.sample(3)


# -- algebra ---------------------------------------------------------------------------------------------------------

numbers = st.floats(-5, 5).filter(lambda x: abs(x) > 1e-3)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), a=numbers, b=numbers)
def test_evaluation_and_inner_products_are_linear(seed, a, b):
    f, g = signed_pair(Gaussian(0.9), seed)
    h = a * f + g * b
    at = lambda mean: mean(queries(), precision="double")  # noqa: E731
    np.testing.assert_allclose(at(h), a * at(f) + b * at(g), rtol=1e-10, atol=1e-12)
    assert h.inner(f) == pytest.approx(a * f.inner(f) + b * g.inner(f), rel=1e-9, abs=1e-10)
    assert h.mass == pytest.approx(a * f.mass + b * g.mass, rel=1e-9, abs=1e-10)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_norm_is_a_norm(seed):
    f, g = signed_pair(Laplacian(0.9), seed)
    assert (f + g).norm() <= f.norm() + g.norm() + 1e-12
    assert abs(f.inner(g)) <= f.norm() * g.norm() + 1e-12
    assert (f - f).norm() <= 1e-7 * f.norm()
    assert f.distance(f) == 0.0
    assert f.distance(g) == pytest.approx((f - g).norm())


def test_scaling_and_signs_act_on_the_weights_alone():
    f, g = signed_pair(Gaussian(0.9))
    np.testing.assert_array_equal((2 * f).weights, 2 * f.weights)
    np.testing.assert_array_equal((f * np.float64(2)).weights, 2 * f.weights)
    np.testing.assert_array_equal((np.float64(2) * f).weights, 2 * f.weights)
    np.testing.assert_array_equal((f / 2).weights, f.weights / 2)
    np.testing.assert_array_equal((-f).weights, -f.weights)
    np.testing.assert_array_equal((f - g).weights, np.append(f.weights, -g.weights))
    np.testing.assert_array_equal((f + g).atoms, np.concatenate([f.atoms, g.atoms]))
    assert (2 * f).kernel == f.kernel


@pytest.mark.parametrize("operation", ["inner", "distance", "__add__", "__sub__"])
def test_means_of_different_kernels_or_dimensions_do_not_mix(operation):
    f, g = signed_pair(Gaussian(0.9))
    other = KernelMean(g.atoms, g.weights, Gaussian(0.8))
    deeper = KernelMean(np.ones((2, 3)), [1, 1], Gaussian(0.9))
    with pytest.raises(ValueError, match=r"same kernel, got Gaussian\(0.9\) and Gaussian\(0.8\); .*bandwidth"):
        getattr(f, operation)(other)
    with pytest.raises(ValueError, match="same dimension, got 2 and 3"):
        getattr(f, operation)(deeper)


@pytest.mark.parametrize("change", [{"space": "l2"}, {"normalized": True}, {"covariance": COVARIANCE}])
def test_kernels_differ_by_any_option(change):
    f, g = signed_pair(Gaussian(0.9))
    with pytest.raises(ValueError, match="same kernel"):
        f.distance(KernelMean(g.atoms, g.weights, Gaussian(0.9, **change)))


def test_kernels_of_equal_covariance_are_equal():
    f, g = signed_pair(Gaussian(0.9, covariance=COVARIANCE))
    same = KernelMean(g.atoms, g.weights, Gaussian(0.9, covariance=COVARIANCE.tolist()))
    assert f.distance(same) == pytest.approx(f.distance(g))


@pytest.mark.parametrize("other", [3.0, "f", None, [1, 2]])
def test_a_mean_adds_to_means_only(other):
    f, _ = signed_pair(Gaussian(0.9))
    with pytest.raises(TypeError):
        f + other
    with pytest.raises(TypeError):
        f - other
    with pytest.raises(TypeError, match="expected a KernelMean"):
        f.inner(other)
    with pytest.raises(TypeError, match="expected a KernelMean"):
        f.distance(other)


@pytest.mark.parametrize("factor", ["2", None, [1, 2], 1j])
def test_a_mean_is_scaled_by_real_numbers_only(factor):
    f, _ = signed_pair(Gaussian(0.9))
    with pytest.raises(TypeError):
        f * factor
    with pytest.raises(TypeError):
        f / factor


def test_division_by_zero_and_infinite_factors_are_refused():
    f, _ = signed_pair(Gaussian(0.9))
    with pytest.raises(ZeroDivisionError, match="divided by 0"):
        f / 0
    with pytest.raises(ValueError, match=r"factor .*got inf"):
        f * np.inf


# -- sampling --------------------------------------------------------------------------------------------------------


def radial_law(kernel, d):
    """The law of the distance of a draw to its atom, over the bandwidth."""
    if isinstance(kernel, Gaussian):
        return stats.chi(d)
    if isinstance(kernel, Laplacian):
        return stats.gamma(d)
    if isinstance(kernel, Matern):
        return matern_length(kernel, d)
    a = reference.power(kernel, d)
    return stats.betaprime(d / 2, a - d / 2)


@EVERY_FAMILY
@SHAPES
def test_draws_lie_around_an_atom_as_its_bump_does(family, options, covariance):
    kernel = family(0.7, covariance=covariance, **options)
    f = KernelMean(np.array([[3.0, -2.0]]), np.array([2.5]), kernel)
    r = reference.distances(f.sample(2000, rng=0), f.atoms, kernel)[:, 0]
    law = radial_law(kernel, 2)  # a sum of two exponentials is a gamma too: city-block distances follow the same law
    assert stats.kstest(r**2 if family is Student else r, law.cdf).pvalue > 0.01


def test_draws_follow_the_density():
    rng = np.random.default_rng(0)
    f = KernelMean.from_samples(rng.normal(size=(6, 1)) * 3, Gaussian(0.4), [1, 0, 2, 3, 1, 5])
    cdf = lambda x: np.sum([w * stats.norm.cdf(x, c, 0.4) for w, c in zip(f.weights, f.atoms[:, 0], strict=True)], axis=0)  # noqa: E731
    assert stats.kstest(f.sample(5000, rng=1)[:, 0], cdf).pvalue > 0.01


def test_draws_keep_the_directions_of_a_covariance():
    f = KernelMean(np.zeros((1, 2)), [1.0], Gaussian(0.5, covariance=COVARIANCE))
    np.testing.assert_allclose(np.cov(f.sample(20000, rng=0).T), 0.25 * COVARIANCE, rtol=0.1, atol=0.01)


def test_draws_are_reproducible_and_as_many_as_asked():
    f = KernelMean.from_samples(queries(20), Gaussian(0.5))
    np.testing.assert_array_equal(f.sample(50, rng=3), f.sample(50, rng=3))
    np.testing.assert_array_equal(f.sample(50, rng=3), f.sample(50, rng=np.random.default_rng(3)))
    assert not np.array_equal(f.sample(50, rng=3), f.sample(50, rng=4))
    assert f.sample(0, rng=0).shape == (0, 2)


def test_signed_means_cannot_be_sampled():
    f, _ = signed_pair(Gaussian(0.5))
    with pytest.raises(ValueError, match=r"weights must be non-negative .*got a weight of -.*weights='simplex'"):
        f.sample(5)


@pytest.mark.parametrize("count", [-1, 2.5, True, "3"])
def test_sample_refuses_what_is_no_count(count):
    f = KernelMean.from_samples(queries(), Gaussian(0.5))
    with pytest.raises((TypeError, ValueError), match="count must be"):
        f.sample(count)


def test_a_bump_that_is_no_density_has_no_log_density_and_no_draws():
    f = KernelMean.from_samples(np.ones((3, 4)), Student(1.0, exponent=1.5))
    for use in (lambda: f.log_density(np.ones((1, 4))), lambda: f.sample(3)):
        with pytest.raises(ValueError, match=r"exponent .*got 1.5"):
            use()


# -- construction ----------------------------------------------------------------------------------------------------


def test_weights_of_samples_sum_to_one_and_only_their_ratios_matter():
    X, w = queries(40), np.random.default_rng(0).uniform(0, 9, size=40)
    assert KernelMean.from_samples(X, Gaussian(1.0)).mass == pytest.approx(1.0, abs=1e-14)
    once, thrice = (KernelMean.from_samples(X, Gaussian(1.0), factor * w) for factor in (1.0, 3.0))
    assert once.mass == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(once.weights, thrice.weights, rtol=1e-14)
    np.testing.assert_allclose(once.weights, w / w.sum(), rtol=1e-14)


def test_weights_given_directly_are_never_renormalised():
    f = KernelMean(queries(3), [1.0, -4.0, 10.0], Gaussian(1.0))
    np.testing.assert_array_equal(f.weights, [1.0, -4.0, 10.0])
    assert f.mass == 7.0


def test_the_default_kernel_is_a_gaussian_of_the_median_distance():
    from reduset import bandwidth

    X = queries(40)
    f = KernelMean.from_samples(X)
    assert f.kernel == Gaussian(bandwidth.median(X))


def test_a_rule_is_applied_to_the_whitened_points():
    from reduset import bandwidth

    X = queries(40)
    whitened = np.linalg.solve(np.linalg.cholesky(COVARIANCE), X.T).T
    f = KernelMean.from_samples(X, Gaussian("scott", covariance=COVARIANCE))
    assert f.kernel.bandwidth == pytest.approx(bandwidth.scott(whitened), rel=1e-10)


def test_atoms_are_not_copied_and_nothing_can_be_written():
    X, w = queries(40), np.ones(40)
    f = KernelMean(X, w, Gaussian(1.0))
    assert np.shares_memory(f.atoms, X)
    assert np.shares_memory(KernelMean.from_samples(X, Gaussian(1.0)).atoms, X)
    for array in (f.atoms, f.weights, KernelMean.from_samples(X, Gaussian(1.0)).weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert X.flags.writeable
    assert w.flags.writeable
    with pytest.raises(AttributeError):
        f.kernel = Gaussian(2.0)


def test_inputs_are_never_changed():
    X, w, Q, covariance = queries(30), np.arange(30.0), queries(), COVARIANCE.copy()
    before = [array.copy() for array in (X, w, Q, covariance)]
    kernel = Gaussian("median", covariance=covariance, normalized=True)
    f = KernelMean.from_samples(X, kernel, w)
    f(Q), f.gradient(Q), f.log_density(Q), f.norm(), (f - 2 * f).norm(), f.sample(5, rng=0)
    for array, old in zip((X, w, Q, covariance), before, strict=True):
        np.testing.assert_array_equal(array, old)
        assert array.flags.writeable
    assert kernel.bandwidth == "median"


def test_queries_must_have_the_columns_of_the_atoms():
    f = KernelMean.from_samples(queries(), Gaussian(1.0))
    for use in (f, f.gradient, f.log_density):
        with pytest.raises(ValueError, match=r"Q .*got shape \(4, 3\)"):
            use(np.zeros((4, 3)))
        with pytest.raises(ValueError, match=r"Q .*got nan in row 0, column 1"):
            use([[0.0, np.nan]])
        with pytest.raises(ValueError, match=r"Q must have two dimensions .* Q.reshape\(1, -1\) for a single point"):
            use([0.0, 1.0])


def test_precision_is_one_of_three():
    f = KernelMean.from_samples(queries(), Gaussian(1.0))
    with pytest.raises(ValueError, match=r"precision .*got 'half'"):
        f(queries(), precision="half")


@settings(max_examples=20, deadline=None)
@given(shift=st.floats(-1e6, 1e6), seed=st.integers(0, 1000))
def test_a_shift_of_everything_changes_nothing(shift, seed):
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(-9, 9, size=(20, 2)) / 8, rng.integers(-9, 9, size=(5, 2)) / 8
    shift = np.round(shift)
    f, g = KernelMean.from_samples(X, Gaussian(0.5)), KernelMean.from_samples(X + shift, Gaussian(0.5))
    np.testing.assert_allclose(g(Q + shift, precision="double"), f(Q, precision="double"), rtol=1e-12)
    np.testing.assert_allclose(g.log_density(Q + shift), f.log_density(Q), rtol=1e-12, atol=1e-12)
    assert g.norm() == pytest.approx(f.norm(), rel=1e-12)


def test_repr_says_size_dimension_and_kernel():
    f = KernelMean.from_samples(np.zeros((1234, 3)), Student(0.5, exponent=2, space="l2"))
    assert repr(f) == "KernelMean(1,234 atoms in 3 dimensions, Student(0.5, space='l2', exponent=2.0))"
    assert (f.size, f.dimension) == (1234, 3)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_queries_are_made_dense_a_block_at_a_time(make, monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.random((700, 30)) * (rng.random((700, 30)) < 0.1)
    mean = KernelMean.from_samples(rows[:50], Gaussian(0.5))
    seen = []
    dense = sparse.csr_array.toarray if make is not sparse.csr_matrix else sparse.csr_matrix.toarray
    home = sparse.csr_matrix if make is sparse.csr_matrix else sparse.csr_array
    monkeypatch.setattr(home, "toarray", lambda self: seen.append(self.shape[0]) or dense(self))
    monkeypatch.setattr(
        "reduset.mean.row_blocks", lambda all_, dimension: [(a, min(a + 256, len(all_))) for a in range(0, 700, 256)]
    )
    np.testing.assert_allclose(mean(make(rows)), mean(rows), rtol=1e-5)
    np.testing.assert_allclose(mean.log_density(make(rows)), mean.log_density(rows), rtol=1e-9)
    assert max(seen) == 256
    with pytest.raises(ValueError, match=r"Q .*got shape \(700, 29\)"):
        mean(make(rows[:, :29]))
    with pytest.raises(ValueError, match="Q must be real numbers in two dimensions"):
        mean(make(rows * 1j))
