"""Bad mixtures and bad goals: each error names the parameter, the rule, the value seen and the way out."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.mixture import GaussianMixture
from sklearn.svm import SVC

from reduset import Gaussian, KernelMean, Laplacian, Mixture, Student, compress, simplify
from reference_mixture import mixture_of

MEANS = np.arange(6.0).reshape(3, 2)
EYES = np.array([np.eye(2)] * 3)


def some(n=20, d=2, signed=False):
    return mixture_of(np.random.default_rng(0), n, d, signed=signed)


def with_one(matrix):
    """Two good covariances around a bad one."""
    return np.array([np.eye(2), matrix, np.eye(2)])


# -- components -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("covariances", "words"),
    [
        (
            with_one([[1.0, 1.0], [1.0, 1.0]]),
            r"covariances must be positive definite, number 1 has eigenvalues from .* to 2 .*; drop",
        ),
        (
            with_one([[1.0, 2.0], [2.0, 1.0]]),
            r"covariances must be positive definite, number 1 has eigenvalues from -1 to 3 .*; drop",
        ),
        (
            with_one([[0.0, 0.0], [0.0, 0.0]]),
            r"covariances must be positive definite, number 1 has eigenvalues from 0 to 0 .*; drop",
        ),
        (with_one([[-1.0, 0.0], [0.0, -1.0]]), r"covariances must be positive definite, number 1 has eigenvalues from -1 to -1"),
        (with_one([[1.0, 0.5], [0.1, 1.0]]), r"covariances must be symmetric, number 1 differs from its transpose by 0.4; use"),
        (with_one([[1.0, np.nan], [np.nan, 1.0]]), r"covariances must be finite, number 1 is not"),
        (with_one([[np.inf, 0.0], [0.0, 1.0]]), r"covariances must be finite, number 1 is not"),
        ([1.0, 0.0, 1.0], r"covariances must be variances above 0, number 1 has 0; drop such components"),
        ([1.0, 1.0, -2.0], r"covariances must be variances above 0, number 2 has -2; drop such components"),
        ([[1.0, 1.0], [1.0, -0.5], [1.0, 1.0]], r"covariances must be variances above 0, number 1 has -0.5"),
        ([1.0, np.nan, 1.0], r"covariances must be finite, number 1 is not"),
        (
            np.eye(2),
            r"covariances .*got \(2, 2\)",
        ),
        (1.0, r"covariances .*got \(\)"),
        (np.ones((3, 3)), r"covariances .*got \(3, 3\)"),
        (np.ones((2, 2, 2)), r"covariances .*got \(2, 2, 2\)"),
        (np.ones((3, 1)), r"covariances .*got \(3, 1\)"),
        ([[1.0], [1.0, 2.0], [1.0]], r"covariances must be a rectangular array of numbers"),
    ],
)
def test_covariances_that_are_none_are_named(covariances, words):
    with pytest.raises(ValueError, match=words):
        Mixture(np.ones(3), MEANS, covariances)


def test_one_bad_covariance_for_all_is_named():
    with pytest.raises(ValueError, match=r"covariances must be positive definite, number 0"):
        Mixture(np.ones(3), MEANS, np.broadcast_to(np.ones((2, 2)), (3, 2, 2)))
    with pytest.raises(ValueError, match=r"covariances must be finite, number 0"):
        Mixture(np.ones(3), MEANS, np.broadcast_to(np.nan, 3))


@pytest.mark.parametrize(
    ("weights", "means", "words"),
    [
        (np.ones(2), MEANS, r"weights .*got \(2,\)"),
        (np.ones((3, 1)), MEANS, r"weights .*got \(3, 1\)"),
        (1.0, MEANS, r"weights must have shape \(3,\)"),
        (np.zeros(3), MEANS, r"weights must not be all zero"),
        ([1.0, np.nan, 1.0], MEANS, "weights .*got nan at position 1"),
        ([1.0, np.inf, 1.0], MEANS, "weights .*got inf at position 1"),
        (
            np.ones(3),
            np.arange(3.0),
            r"means .*got shape \(3,\)",
        ),
        (np.ones(3), np.zeros((0, 2)), r"means must hold at least one row"),
        (np.ones(3), np.full((3, 2), np.nan), "means .*got nan in row 0, column 0"),
        (np.ones(3), np.full((3, 2), 1e200), r"means must stay below 1e150"),
    ],
)
def test_weights_and_means_are_checked(weights, means, words):
    with pytest.raises(ValueError, match=words):
        Mixture(weights, means, np.ones(3))


@pytest.mark.parametrize("name", ["weights", "means", "covariances"])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([["a", "b"]] * 3), "must hold numbers, got dtype"),
        (np.ones((3, 2), complex), "must be real, got complex128"),
        (scipy.sparse.eye(3, 2), "must be dense, got a sparse matrix"),
        (np.ma.masked_array(MEANS, MEANS > 2), "must not be a masked array"),
    ],
    ids=["text", "complex", "sparse", "masked"],
)
def test_what_holds_no_numbers_is_named(name, value, words):
    given = {"weights": np.ones(3), "means": MEANS, "covariances": EYES} | {name: value}
    with pytest.raises(TypeError, match=f"{name} {words}"):
        Mixture(**given)


# -- uses of a mixture ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use", ["__call__", "gradient", "log_density"])
@pytest.mark.parametrize(
    ("Q", "words"),
    [
        (np.zeros((4, 3)), r"Q .*got shape \(4, 3\)"),
        (np.zeros(2), r"Q must have two dimensions .* Q.reshape\(1, -1\) for a single point"),
        ([[np.nan, 0.0]], "Q .*got nan in row 0, column 0"),
        (np.zeros((0, 2)), r"Q must hold at least one row"),
    ],
)
def test_queries_are_checked(use, Q, words):
    with pytest.raises(ValueError, match=words):
        getattr(some(), use)(Q)


@pytest.mark.parametrize("use", ["inner", "distance", "kl"])
def test_mixtures_of_other_dimensions_and_other_things_do_not_meet(use):
    with pytest.raises(ValueError, match=r"both mixtures .*got 2 and 3"):
        getattr(some(), use)(some(d=3))
    mean = KernelMean(MEANS, np.ones(3), Gaussian(1.0))
    with pytest.raises(TypeError, match=r"a Mixture, got KernelMean; use Mixture.from_mean"):
        getattr(some(), use)(mean)
    with pytest.raises(TypeError, match="a Mixture, got ndarray"):
        getattr(some(), use)(MEANS)


def test_sums_need_mixtures_of_one_dimension_and_factors_numbers():
    f = some()
    with pytest.raises(ValueError, match=r"both mixtures .*got 2 and 3"):
        f + some(d=3)
    for other in (3.0, "f", KernelMean(MEANS, np.ones(3), Gaussian(1.0)), None):
        with pytest.raises(TypeError):
            f + other
        with pytest.raises(TypeError):
            f - other
    for factor in ("2", None, 1j, True):
        with pytest.raises(TypeError):
            f * factor
    with pytest.raises(ValueError, match=r"factor .*got nan"):
        f * float("nan")
    with pytest.raises(ZeroDivisionError, match="cannot be divided by 0"):
        f / 0


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda f: f.sample(3), "sampling"),
        (lambda f: f.kl(some()), "sampling"),
        (lambda f: some().kl(f), "a divergence"),
        (lambda f: f.to_sklearn(), "a GaussianMixture"),
    ],
)
def test_what_needs_a_density_says_so(use, what):
    with pytest.raises(ValueError, match=f"{what} needs weights that are not negative, got one of -"):
        use(some(signed=True))


@pytest.mark.parametrize("use", ["mean", "covariance"])
def test_weights_that_sum_to_zero_have_no_mean(use):
    f = Mixture([1.0, -1.0], [[0.0], [1.0]], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"weights .*got a sum of 0"):
        getattr(f, use)()


@pytest.mark.parametrize(
    ("count", "error", "words"),
    [
        (-1, ValueError, "count must be at least"),
        (2.0, TypeError, "count .*got 2.0"),
        (True, TypeError, "count .*got True"),
        ("3", TypeError, "count must be a whole number"),
    ],
)
def test_counts_of_draws_are_whole_numbers(count, error, words):
    with pytest.raises(error, match=words):
        some().sample(count)
    with pytest.raises(error, match=words):
        some().kl(some(), count)
    with pytest.raises(TypeError, match="rng must be None, a seed or a numpy Generator"):
        some().sample(3, rng="seed")


def test_slices_are_checked():
    f = some(d=3)
    for columns in ([3], [-4]):
        with pytest.raises(ValueError, match="columns must be between -3 and 2"):
            f.marginal(columns)
    for columns in ([], [1, 1], [0, -3]):
        with pytest.raises(ValueError, match="columns must name at least one column, and none twice"):
            f.marginal(columns)
    with pytest.raises(TypeError, match="columns must be a whole number"):
        f.marginal([0.5])
    with pytest.raises(ValueError, match=r"columns .*got all 3"):
        f.conditional([0, 1, 2], [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"values .*got 1"):
        f.conditional([0, 1], [0.0])
    with pytest.raises(ValueError, match="values must be finite"):
        f.conditional([0], [np.nan])
    with pytest.raises(ValueError, match="f must be positive at the given values to be divided by it"):
        (-f).conditional([0], [0.0])


# -- from and to ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Student(1.0), lambda X, Y: np.ones((len(X), len(Y)))])
def test_only_a_gaussian_kernel_mean_is_a_mixture(kernel):
    mean = KernelMean(MEANS, np.ones(3), kernel)
    for use in (Mixture.from_mean, lambda mean: simplify(mean, 2)):
        with pytest.raises(TypeError, match="only a Gaussian kernel mean is a mixture, got"):
            use(mean)


def test_other_things_are_no_means():
    for thing in (MEANS, None, "mean", some()):
        with pytest.raises(TypeError, match=f"mean .*got {type(thing).__name__}"):
            Mixture.from_mean(thing)


@pytest.mark.parametrize("bandwidth", [0.1, 10.0])
def test_a_mean_whose_heights_no_number_holds_says_so(bandwidth):
    mean = KernelMean(np.zeros((3, 784)), np.ones(3), Gaussian(bandwidth))
    with pytest.raises(ValueError, match=r"784 dimensions.*normalized=True"):
        Mixture.from_mean(mean)


def test_a_mixture_of_several_covariances_is_no_kernel_mean():
    with pytest.raises(
        ValueError, match="only a mixture whose components all have one covariance is a kernel mean; compress samples"
    ):
        some().to_mean()


def test_a_kernel_of_another_shape_is_refused():
    f = Mixture(np.ones(3), MEANS, np.full(3, 0.25))
    for kernel in (
        Gaussian(0.6),
        Gaussian(0.5, covariance=np.array([[1.0, 0.1], [0.1, 1.0]])),
        Gaussian(0.5, covariance=np.eye(3)),
    ):
        with pytest.raises(ValueError, match="kernel must have the covariance that the components have"):
            f.to_mean(kernel)
    with pytest.raises(TypeError, match=r"kernel .*got Laplacian"):
        f.to_mean(Laplacian(0.5))


def test_only_fitted_mixtures_of_scikit_learn_are_read():
    with pytest.raises(ValueError, match=r"fitted must be fitted: call GaussianMixture.fit\(X\) first"):
        Mixture.from_sklearn(GaussianMixture(2))
    for thing in (SVC(), MEANS, None, some()):
        with pytest.raises(TypeError, match=f"fitted .*got {type(thing).__name__}"):
            Mixture.from_sklearn(thing)


# -- simplify ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "error", "words"),
    [
        ({}, ValueError, r"give exactly one of size .*, tol .* and radius .*; got none"),
        ({"size": 3, "tol": 0.1}, ValueError, r"give exactly one of .*; got size and tol"),
        ({"tol": 0.1, "radius": 1.0}, ValueError, r"give exactly one of .*; got tol and radius"),
        ({"size": 3, "tol": 0.1, "radius": 1.0}, ValueError, r"give exactly one of .*; got size and tol and radius"),
        ({"size": 0}, ValueError, "size .*got 0"),
        ({"size": -2}, ValueError, "size .*got -2"),
        ({"size": 21}, ValueError, "size .*got 21"),
        ({"size": 3.0}, TypeError, "size .*got 3.0"),
        ({"size": True}, TypeError, "size .*got True"),
        ({"size": "3"}, TypeError, "size .*got '3'"),
        ({"tol": 0}, ValueError, "tol .*got 0"),
        ({"tol": -0.1}, ValueError, "tol .*got -0.1"),
        ({"tol": np.nan}, ValueError, "tol .*got nan"),
        ({"tol": "small"}, TypeError, "tol .*got 'small'"),
        ({"tol": True}, TypeError, "tol .*got True"),
        ({"radius": 0.0}, ValueError, "radius .*got 0.0"),
        ({"radius": -1}, ValueError, "radius .*got -1"),
        ({"radius": np.inf}, ValueError, "radius .*got inf"),
        ({"radius": [1.0]}, TypeError, r"radius .*got \[1.0\]"),
        ({"tol": 0.1, "max_size": 0}, ValueError, "max_size .*got 0"),
        ({"size": 3, "refit": False}, ValueError, "refit=False.*polish=False"),
        ({"tol": 0.1, "max_size": 2.5}, TypeError, "max_size .*got 2.5"),
    ],
)
def test_goals_are_checked(goal, error, words):
    with pytest.raises(error, match=words):
        simplify(some(), **goal)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "em"}, ValueError, "method .*got 'em'"),
        ({"method": None}, ValueError, "method .*got None"),
        ({"covariance": "tied"}, ValueError, "covariance .*got 'tied'"),
        ({"covariance": np.eye(2)}, ValueError, r"covariance must be one of"),
        ({"start": "kcenter"}, ValueError, "start .*got 'kcenter'"),
        (
            {"start": np.arange(19)},
            ValueError,
            r"start .*got \(19,\)",
        ),
        (
            {"start": np.zeros((20, 1))},
            ValueError,
            r"start .*got \(20, 1\)",
        ),
        ({"start": np.arange(20) % 4}, ValueError, "start .*got 4"),
        ({"start": None}, ValueError, "start must .*'kmeans'"),
        ({"polish": -1}, ValueError, "polish .*got -1"),
        ({"polish": 2.5}, TypeError, "polish .*got 2.5"),
        ({"polish": "yes"}, TypeError, "polish .*got 'yes'"),
        ({"rng": "seed"}, TypeError, "rng .*got 'seed'"),
        ({"progress": "bar"}, TypeError, "progress .*got 'bar'"),
        ({"max_size": 5}, ValueError, r"max_size"),
        ({"refit": "no"}, TypeError, "refit .*got 'no'"),
        ({"density": "no"}, TypeError, "density .*got 'no'"),
        ({"mass_weights": "no"}, TypeError, "mass_weights .*got 'no'"),
    ],
)
def test_options_are_checked(options, error, words):
    with pytest.raises(error, match=words):
        simplify(some(), 3, **options)


def test_an_unknown_start_is_refused_with_every_goal():
    for goal in ({"size": 3}, {"tol": 0.5}, {"radius": 1.0}):
        with pytest.raises(ValueError, match=r"start .*got 'kcenter'"):
            simplify(some(), start="kcenter", **goal)
    for goal in ({"tol": 0.5}, {"radius": 1.0}):
        with pytest.raises(ValueError, match=r"start as labels excludes .*, which searches for groups; omit one of them"):
            simplify(some(), start=np.arange(20) % 3, **goal)


def test_labels_of_signed_weights_must_count_the_signs_apart():
    f = some(signed=True)
    with pytest.raises(ValueError, match=r"start .*got 4 \(positive and negative apart\)"):
        simplify(f, 2, start=np.arange(20) % 2)
    assert simplify(f, 4, start=np.arange(20) % 2, polish=2).size == 4


@pytest.mark.parametrize(
    "thing", [MEANS, None, "mixture", GaussianMixture(2), SVC(), compress(np.random.default_rng(0).normal(size=(50, 2)), size=5)]
)
def test_what_is_no_mixture_is_told_how_to_become_one(thing):
    with pytest.raises(TypeError, match=f"mixture .*got {type(thing).__name__}"):
        simplify(thing, 2)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_weights_beyond_the_range_of_their_squares_are_refused(scale):
    with pytest.raises(ValueError, match=r"weights' magnitudes .*got 1e.*"):
        simplify(some() * scale, 2)
