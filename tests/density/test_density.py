"""SparseKernelDensity: what scikit-learn expects of a density, and what the certificate says of the difference."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import reference_uses as oracle
from cases import COVARIANCE, cloud
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, NotReachedWarning, Student, bandwidth
from reduset.certificate import Certificate
from reduset.density import SparseKernelDensity
from reduset.density.likelihood import search_bandwidth

KERNELS = {
    "gaussian": "gaussian",
    "exponential": "exponential",
    "laplacian": "laplacian",
    "student": "student",
    "oblique": Gaussian(0.5, covariance=COVARIANCE),
    "cityblock": Laplacian(0.5, metric="cityblock"),
    "student of thin tails": Student(0.5, exponent=4.0),
}
KERNEL = pytest.mark.parametrize("kernel", KERNELS)
SHARED = pytest.mark.parametrize("kernel", ["gaussian", "exponential"])  # with scikit-learn
LINE = np.linspace(-7, 9, 1601)
SQUARE = np.stack(np.meshgrid(np.linspace(-7, 9, 161), np.linspace(-7, 9, 161), indexing="ij"), axis=-1)


def fitted(X=None, **options):
    return SparseKernelDensity(**{"random_state": 0} | options).fit(cloud(300) if X is None else X)


def exactly(X, sample_weight=None, **options):
    """A density that is evaluated from all points, because one atom does not reach the tolerance."""
    with pytest.warns(NotReachedWarning):
        return SparseKernelDensity(tol=1e-9, max_size=1, random_state=0, **options).fit(X, sample_weight=sample_weight)


def l2(values, d):
    """The L2 norm of values on the line or the square above."""
    squares = np.square(values)
    for _ in range(d):
        squares = integrate.trapezoid(squares, dx=0.01 if d == 1 else 0.1, axis=-1)
    return float(np.sqrt(squares))


def on_grid(score, d):
    points = LINE[:, None] if d == 1 else SQUARE.reshape(-1, 2)
    return np.exp(score(points)).reshape((len(LINE),) if d == 1 else SQUARE.shape[:2])


# -- scikit-learn ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::reduset.NotReachedWarning")  # few points of its data suffice to evaluate them all
def test_scikit_learn_finds_nothing_to_complain_of():
    results = check_estimator(SparseKernelDensity(), on_skip=None, on_fail=None)
    assert len(results) > 30
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []


@SHARED
@pytest.mark.parametrize("d", [1, 2, 5])
def test_evaluated_exactly_it_is_theirs(kernel, d):
    X, Q = cloud(200, d), cloud(60, d, seed=1)
    w = np.random.default_rng(0).uniform(size=200)
    theirs = KernelDensity(bandwidth=0.6, kernel=kernel, rtol=1e-10).fit(X, sample_weight=w)
    ours = exactly(X, w, bandwidth=0.6, kernel=kernel)
    np.testing.assert_allclose(ours.score_samples(Q), theirs.score_samples(Q), atol=1e-6)
    assert ours.score(Q) == pytest.approx(theirs.score(Q), rel=1e-6)
    exact = oracle.log_density(ours.mean_.kernel, X, w / w.sum(), 5 * Q)  # so far out that theirs loses digits
    np.testing.assert_allclose(ours.score_samples(5 * Q), exact, rtol=1e-9)


@pytest.mark.covering_cases
@SHARED
@pytest.mark.parametrize("d", [1, 2])
def test_compressed_it_differs_from_theirs_by_what_the_certificate_says(kernel, d):
    X = cloud(600, d)
    theirs = on_grid(KernelDensity(bandwidth=0.5, kernel=kernel, rtol=1e-8).fit(X).score_samples, d)
    for tol in (0.2, 0.05):
        ours = fitted(X, bandwidth=0.5, kernel=kernel, tol=tol)
        error = l2(on_grid(ours.score_samples, d) - theirs, d) / l2(theirs, d)
        low, high = ours.certificate_.interval
        assert low * 0.99 <= error <= high * 1.01  # of quadrature, at the corners of the exponential
        assert high <= tol
        assert ours.mean_.size == ours.compression_.size < 300


def test_more_than_4096_points_are_measured_and_the_interval_holds():
    X = cloud(6000, 1)
    theirs = on_grid(KernelDensity(bandwidth=0.3, rtol=1e-8).fit(X).score_samples, 1)
    ours = fitted(X, bandwidth=0.3, size=12)
    assert ours.certificate_.method == "frequencies"
    low, high = ours.certificate_.interval
    assert low * 0.98 <= l2(on_grid(ours.score_samples, 1) - theirs, 1) / l2(theirs, 1) <= high * 1.02


def test_it_works_in_a_pipeline():
    X = cloud(300) * [1.0, 1000.0]
    pipe = make_pipeline(StandardScaler(), SparseKernelDensity(bandwidth=0.4, random_state=0)).fit(X)
    alone = fitted(StandardScaler().fit_transform(X), bandwidth=0.4)
    np.testing.assert_array_equal(pipe.score_samples(X), alone.score_samples(StandardScaler().fit_transform(X)))
    assert pipe.score(X) == alone.score(StandardScaler().fit_transform(X))


def test_a_grid_search_finds_a_bandwidth_near_the_one_of_the_likelihood():
    X = np.random.default_rng(0).normal(size=(400, 1))
    grid = [0.05, 0.1, 0.2, 0.3, 0.45, 0.7, 1.5]
    search = GridSearchCV(SparseKernelDensity(random_state=0, max_size=400), {"bandwidth": grid}, cv=4).fit(X)
    assert search.best_params_["bandwidth"] in (0.2, 0.3, 0.45)
    assert search.best_estimator_.bandwidth_ == search.best_params_["bandwidth"]


def test_clones_have_the_parameters_and_not_the_fit():
    density = fitted(tol=0.1, whiten=True, bandwidth="silverman")
    other = clone(density)
    assert other.get_params() == density.get_params()
    assert not hasattr(other, "mean_")
    with pytest.raises(NotFittedError):
        other.score_samples(cloud(3))


def test_a_pickle_gives_the_same_density():
    density = fitted(bandwidth="likelihood")
    again = pickle.loads(pickle.dumps(density))
    np.testing.assert_array_equal(again.score_samples(cloud(20)), density.score_samples(cloud(20)))
    assert again.certificate_.interval == density.certificate_.interval
    assert again.log_error_ == density.log_error_
    assert again.search_.best == density.search_.best


def test_names_of_columns_are_kept_and_asked_for():
    X = pd.DataFrame(cloud(200), columns=["length", "width"])
    density = fitted(X, bandwidth=0.5)
    assert list(density.feature_names_in_) == ["length", "width"]
    at = [[0.3]]
    np.testing.assert_array_equal(density.marginal(["width"])(at), density.marginal([1])(at))
    np.testing.assert_array_equal(density.marginal("width")(at), density.marginal(-1)(at))
    np.testing.assert_array_equal(density.conditional("width", 0.2)(at), density.conditional([1], [0.2])(at))
    with pytest.raises(ValueError, match=r"columns .*got 'height'"):
        density.marginal(["height"])
    with pytest.raises(ValueError, match="feature names"):
        density.score_samples(X[["width", "length"]])


def test_columns_of_an_array_have_no_names():
    with pytest.raises(ValueError, match=r"columns .*got 'width'"):
        fitted().marginal("width")


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_types_of_numbers_are_the_same_numbers(dtype):
    X = np.round(10 * cloud(300))
    Q = np.round(10 * cloud(20, seed=1))
    plain = fitted(X, bandwidth=4.0).score_samples(Q)
    np.testing.assert_allclose(fitted(X.astype(dtype), bandwidth=4.0).score_samples(Q.astype(dtype)), plain, atol=1e-5)


# -- a density -------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@KERNEL
@pytest.mark.parametrize("d", [1, 2])
def test_it_integrates_to_one(kernel, d):
    if kernel == "oblique" and d == 1:
        kernel = "gaussian"
    density = fitted(cloud(300, d), kernel=KERNELS[kernel], bandwidth=0.5, max_size=300)
    rng = np.random.default_rng(0)
    spread = stats.t(df=1.0)  # tails as heavy as any of the densities'
    Q = 2.0 * spread.rvs(size=(60_000, d), random_state=rng)
    logs = density.score_samples(Q) - spread.logpdf(Q / 2.0).sum(axis=1) + d * np.log(2.0)
    ratio = np.exp(logs)
    assert ratio.mean() == pytest.approx(1, abs=5 * ratio.std() / np.sqrt(len(ratio)))
    assert ratio.std() / np.sqrt(len(ratio)) < 0.01


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "student of thin tails"])
def test_it_integrates_to_one_by_quadrature(kernel):
    density = fitted(cloud(300, 1), kernel=KERNELS[kernel], bandwidth=0.5)
    nodes, weights = np.polynomial.legendre.leggauss(8)  # in each of many intervals, which a corner spoils by little
    edges = np.linspace(-60, 60, 1201)
    places = (edges[:-1, None] + edges[1:, None] + np.diff(edges)[:, None] * nodes) / 2
    total = (np.exp(density.score_samples(places.reshape(-1, 1))).reshape(places.shape) @ weights).sum() * np.diff(edges)[0] / 2
    assert total == pytest.approx(1, abs=1e-4)


def test_the_score_is_the_sum():
    density, Q = fitted(), cloud(40, seed=2)
    assert density.score(Q) == pytest.approx(density.score_samples(Q).sum(), rel=1e-12)
    assert density.score(Q, y=np.zeros(40)) == density.score(Q)


def test_far_away_the_logarithm_is_finite_and_falls():
    logs = fitted(bandwidth=0.5).score_samples([[0, 0], [50, 0], [500, 0], [5000, 0]])
    assert np.isfinite(logs).all()
    assert (np.diff(logs) < 0).all()


@pytest.mark.parametrize("whole", [True, False])
def test_weights_are_repetitions(whole):
    X, Q = cloud(60), cloud(30, seed=1)
    w = np.random.default_rng(0).integers(0, 5, size=60)
    options = {"bandwidth": 0.5} if whole else {"bandwidth": 0.5, "size": 60, "select": "kcenter"}
    weighed = exactly(X, w, **options) if whole else SparseKernelDensity(random_state=0, **options).fit(X, sample_weight=w)
    rows = np.repeat(X, w, axis=0)
    repeated = exactly(rows, **options) if whole else fitted(rows, **options)
    np.testing.assert_allclose(weighed.score_samples(Q), repeated.score_samples(Q), atol=1e-9 if whole else 1e-5)


def test_whitening_weighs_rows_like_repetitions():
    X = cloud(60) * [1.0, 30.0]
    w = np.random.default_rng(0).integers(1, 5, size=60)
    weighed, repeated = (
        exactly(X, w, bandwidth=0.5, whiten=True).mean_.kernel.covariance,
        exactly(np.repeat(X, w, axis=0), bandwidth=0.5, whiten=True).mean_.kernel.covariance,
    )
    np.testing.assert_allclose(weighed / weighed[0, 0], repeated / repeated[0, 0], rtol=1e-9)
    np.testing.assert_allclose(weighed, repeated, rtol=0.03)  # which know how many they are; weights know only their ratios


@KERNEL
def test_samples_have_the_law_of_the_density(kernel):
    density = fitted(cloud(300), kernel=KERNELS[kernel], bandwidth=0.4, tol=0.1)
    drawn = density.sample(4000, random_state=1)
    assert drawn.shape == (4000, 2)
    other = density.mean_.atoms[np.random.default_rng(2).choice(density.mean_.size, size=4000, p=density.mean_.weights)]
    noise = KernelMean([[0.0, 0.0]], [1.0], density.mean_.kernel).sample(4000, rng=3)
    for column in range(2):
        assert stats.ks_2samp(drawn[:, column], (other + noise)[:, column]).pvalue > 1e-3


def test_samples_have_the_moments_of_the_data_and_the_bump():
    X = cloud(2000)
    density = fitted(X, bandwidth=0.4, tol=0.01)
    drawn = density.sample(100_000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T) + 0.16 * np.eye(2), atol=0.1)


def test_samples_follow_their_marginal():
    density = fitted(bandwidth=0.4)
    drawn = density.sample(3000, random_state=0)[:, 1]
    marginal = density.marginal(1)
    share = np.exp(marginal.log_density(LINE[:, None]))
    cumulative = np.concatenate([[0], integrate.cumulative_trapezoid(share, LINE)])
    assert stats.kstest(drawn, lambda x: np.interp(x, LINE, cumulative)).pvalue > 1e-3


def test_the_same_seed_gives_the_same_sample_and_the_same_fit():
    one, other = fitted(bandwidth="likelihood"), fitted(bandwidth="likelihood")
    np.testing.assert_array_equal(one.mean_.weights, other.mean_.weights)
    np.testing.assert_array_equal(one.sample(5, random_state=3), other.sample(5, random_state=3))
    assert one.sample().shape == (1, 2)


# -- how many atoms --------------------------------------------------------------------------------------------------


def test_a_tolerance_out_of_reach_is_said_and_the_density_evaluated_exactly():
    X = cloud(200)
    message = r"tol=0.03 takes more than 100 atoms for 200 points \(.*error.*\), .* evaluated exactly.*"
    message += "larger tol or max_size, or set size"
    with pytest.warns(NotReachedWarning, match=message):
        density = SparseKernelDensity(bandwidth=0.02, tol=0.03, random_state=0).fit(X)
    assert density.compression_ is None
    assert density.log_error_ == (0, 0, 0)
    assert density.mean_.size == 200
    assert (density.certificate_.relative_error, density.certificate_.interval) == (0.0, (0.0, 0.0))
    theirs = KernelDensity(bandwidth=0.02, rtol=1e-10).fit(X)
    np.testing.assert_allclose(density.score_samples(X), theirs.score_samples(X), atol=1e-6)


def test_the_certificate_of_nothing_lost_says_so():
    mean = KernelMean.from_samples(cloud(50), Gaussian(0.5, normalized=True, space="l2"))
    certificate = Certificate.without_error(mean)
    assert str(certificate).splitlines() == ["error       0 % of ‖f‖ at bandwidth 0.5 (exact)"]
    assert (certificate.bound, certificate.theorem_bound, certificate.sup_bound, certificate.confidence) == (0, 0, 0, 1)
    assert certificate.energy == pytest.approx(1 / (4 * np.pi * 0.25))  # ∫ φ²
    assert certificate.incoherence == certificate.energy
    assert certificate.log_density_change is None


def test_size_is_the_number_of_atoms():
    density = fitted(bandwidth=0.5, size=17)
    assert density.mean_.size == 17
    assert density.mean_.mass == pytest.approx(1)
    assert density.mean_.weights.min() >= 0
    assert density.compression_.certificate == density.certificate_


def test_max_size_allows_more_than_half_of_the_points_or_fewer():
    X = cloud(200)
    with pytest.warns(NotReachedWarning, match="more than 20 atoms"):
        SparseKernelDensity(bandwidth=0.3, tol=0.03, max_size=20, random_state=0).fit(X)
    many = fitted(X, bandwidth=0.02, tol=0.03, max_size=5000)
    assert 100 < many.mean_.size <= 200
    assert many.certificate_.relative_error <= 0.03


@pytest.mark.parametrize("kernel", ["gaussian", Gaussian(1.0), Gaussian(1.0, space="l2"), Gaussian(1.0, normalized=True)])
def test_the_error_is_in_l2_however_the_kernel_is_given(kernel):
    density = fitted(kernel=kernel, bandwidth=0.5)
    assert density.mean_.kernel == Gaussian(0.5, normalized=True, space="l2")


def test_options_go_to_the_compression():
    density = fitted(bandwidth=0.5, size=20, weights="free", select="kcenter", refine=2)
    assert density.compression_.weighting == "free"
    assert density.compression_.indices is None  # the atoms were moved
    assert fitted(bandwidth=0.5, size=20, select="kcenter").compression_.indices is not None


# -- the bandwidth ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["scott", "silverman", "median", "iqr", "mode_clustering"])
def test_a_rule_is_applied_to_the_data(rule):
    X = cloud(300)
    assert fitted(X, bandwidth=rule).bandwidth_ == pytest.approx(Gaussian(rule).resolve(X).width)


@pytest.mark.parametrize("rule", sorted(bandwidth.RULES))
def test_a_rule_sees_the_weights_as_it_does_by_itself(rule):
    X, w = cloud(300)[:, : 1 if rule == "isj" else 2], np.random.default_rng(0).integers(1, 5, 300)
    found = SparseKernelDensity(bandwidth=rule, tol=0.2, random_state=0).fit(X, sample_weight=w).bandwidth_
    assert found == pytest.approx(bandwidth.RULES[rule](X, w), rel=1e-9)


def test_none_takes_scotts_rule_or_that_of_the_kernel():
    X = cloud(300)
    assert fitted(X).bandwidth_ == pytest.approx(Gaussian("scott").resolve(X).width)
    assert fitted(X, kernel=Gaussian(0.7)).bandwidth_ == 0.7
    assert fitted(X, kernel=Gaussian("median")).bandwidth_ == pytest.approx(Gaussian("median").resolve(X).width)
    assert fitted(X, kernel=Gaussian(0.7), bandwidth=0.4).bandwidth_ == 0.4
    assert fitted(X).search_ is None


def test_the_likelihood_searches_the_bandwidth():
    X = cloud(300)
    density = fitted(X, bandwidth="likelihood")
    found = search_bandwidth(X, Gaussian(), rng=0)
    np.testing.assert_array_equal(density.search_.scores, found.scores)
    assert density.bandwidth_ == found.best == density.mean_.kernel.width


def test_of_an_array_the_best_is_taken():
    X = cloud(300)
    density = fitted(X, bandwidth=[0.05, 0.4, 3.0])
    assert density.bandwidth_ == 0.4
    np.testing.assert_array_equal(density.search_.bandwidths, [0.05, 0.4, 3.0])


def test_with_a_size_the_search_asks_what_suits_so_many_atoms():
    X = cloud(1000)
    few, all_of_them = fitted(X, bandwidth="likelihood", size=8), fitted(X, bandwidth="likelihood")
    assert few.bandwidth_ > 1.2 * all_of_them.bandwidth_
    found = search_bandwidth(X, Gaussian(space="l2", normalized=True), size=8, rng=0)
    np.testing.assert_array_equal(few.search_.scores, found.scores)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_whitening_is_whitening_by_hand(d):
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(d, d)) * 10.0 ** np.arange(d)
    X, Q = cloud(200, d) @ mix, cloud(20, d, seed=1) @ mix
    root = np.linalg.cholesky(np.atleast_2d(np.cov(X, rowvar=False)))
    plain = exactly(np.linalg.solve(root, X.T).T, bandwidth="scott")
    ours = exactly(X, bandwidth="scott", whiten=True)
    by_hand = plain.score_samples(np.linalg.solve(root, Q.T).T) - np.linalg.slogdet(root)[1]
    np.testing.assert_allclose(ours.score_samples(Q), by_hand, atol=1e-7)
    assert ours.bandwidth_ == pytest.approx(plain.bandwidth_)


# -- odd data --------------------------------------------------------------------------------------------------------


def test_one_point_is_a_bump():
    density = fitted([[1.0, 2.0]], bandwidth=0.5)
    assert density.score_samples([[1.0, 2.0]])[0] == pytest.approx(-np.log(2 * np.pi * 0.25))
    assert density.certificate_.relative_error == pytest.approx(0, abs=1e-9)


def test_points_that_coincide_are_one_atom_and_need_a_bandwidth():
    with pytest.warns(UserWarning, match="bandwidth='scott'.*1.0"):
        density = fitted(np.ones((30, 2)))
    assert (density.mean_.size, density.bandwidth_) == (1, 1.0)


def test_a_common_shift_shifts_the_density():
    X = np.round(cloud(300), 3)
    near, far = fitted(X), fitted(X + 1e8)
    assert far.bandwidth_ == pytest.approx(near.bandwidth_, rel=1e-6)
    np.testing.assert_allclose(far.score_samples(X + 1e8), near.score_samples(X), atol=1e-3)


@pytest.mark.filterwarnings("ignore::reduset.NotReachedWarning")
@pytest.mark.parametrize("bandwidth", [1e-12, 1e12])
def test_bandwidths_of_any_size_give_finite_logarithms(bandwidth):
    assert np.isfinite(fitted(bandwidth=bandwidth).score_samples(cloud(20))).all()


def test_the_data_are_not_changed():
    X, w = cloud(100), np.ones(100)
    before = X.copy()
    density = SparseKernelDensity(bandwidth="likelihood", whiten=True, random_state=0).fit(X, sample_weight=w)
    density.score_samples(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(w, 1.0)


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "flat"}, ValueError, "kernel .*got 'flat'"),
        ({"kernel": FunctionKernel("rbf")}, TypeError, "kernel .*got Func"),
        ({"kernel": Student(exponent=0.9)}, ValueError, "exponent .*got 0.9"),
        ({"bandwidth": "narrow"}, ValueError, "bandwidth .*got 'narrow'"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth .*got -1.0"),
        ({"bandwidth": []}, ValueError, "bandwidth must hold at least one number"),
        ({"tol": 0.0}, ValueError, "tol .*got 0.0"),
        ({"size": 0}, ValueError, "size .*got 0"),
        ({"size": 0, "bandwidth": "likelihood"}, ValueError, "size .*got 0"),
        ({"size": 5, "tol": 0.1}, ValueError, "give at most one of size, tol and plateau, got size=5 and tol=0.1"),
        ({"max_size": 0}, ValueError, "max_size .*got 0"),
        ({"max_size": 2.5}, TypeError, "max_size .*got 2.5"),
        ({"weights": "heavy"}, ValueError, "weights .*got 'heavy'"),
        ({"random_state": "luck"}, TypeError, "random_state .*got 'luck'"),
        (
            {"whiten": True, "kernel": Gaussian(1.0, covariance=COVARIANCE)},
            ValueError,
            "whiten=True .*kernel that has a covariance; use whiten=False",
        ),
    ],
)
def test_bad_parameters_are_named(options, error, message):
    with pytest.raises(error, match=message):
        SparseKernelDensity(**options).fit(cloud(100))


def test_a_constant_column_cannot_be_whitened():
    X = cloud(100)
    X[:, 1] = 3.0
    with pytest.raises(ValueError, match=r"the covariance of X must be positive definite, .*; drop constant or repeated columns"):
        fitted(X, whiten=True)


@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 0.0]])
def test_one_point_cannot_be_whitened(weights):
    X = cloud(3 if weights else 1)
    with pytest.raises(ValueError, match=r"whiten=True .*got 1. Use whiten=False"):
        SparseKernelDensity(bandwidth=1.0, whiten=True).fit(X, sample_weight=weights)


def test_bad_weights_are_named():
    with pytest.raises(ValueError, match=r"sample_weight .*got -1.0 at position 4"):
        SparseKernelDensity().fit(cloud(10), sample_weight=np.where(np.arange(10) == 4, -1.0, 1.0))
    with pytest.raises(ValueError, match=r"sample_weight .*got \(9,\)"):
        SparseKernelDensity().fit(cloud(10), sample_weight=np.ones(9))


def test_signed_weights_cannot_be_sampled_and_other_kernels_not_sliced():
    density = fitted(bandwidth=1.5, size=60, weights="free", select="random")
    assert density.mean_.weights.min() < 0
    with pytest.raises(ValueError, match="weights must be non-negative"):
        density.sample(3)
    with pytest.raises(TypeError, match="closed form for the Gaussian kernel only"):
        fitted(kernel="student", bandwidth=0.5).marginal([0])


@pytest.mark.parametrize("size", [100, 101, 1000])
def test_as_many_atoms_as_points_are_the_exact_density(size):
    X = np.random.default_rng(0).normal(size=(100, 2))
    density = SparseKernelDensity(bandwidth=0.5, size=size).fit(X)
    assert density.compression_ is None
    assert density.certificate_.relative_error == 0
    np.testing.assert_allclose(density.score_samples(X), KernelDensity(bandwidth=0.5).fit(X).score_samples(X), rtol=1e-6)


def test_an_exact_density_keeps_no_tie_to_the_data():
    X = np.random.default_rng(0).normal(size=(100, 2))
    density = SparseKernelDensity(bandwidth=0.5, size=100).fit(X)
    before = density.score_samples([[0.0, 0.0]])
    X[:] = 9.0
    np.testing.assert_array_equal(density.score_samples([[0.0, 0.0]]), before)


def test_columns_go_by_mask_and_values_by_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(200, 3)) * [1, 2, 3], columns=["a", "b", "c"])
    density = SparseKernelDensity(bandwidth=0.7, size=50, random_state=0).fit(frame)
    named = density.conditional(["c", "a"], pandas.Series([0.5, 2.0], index=["a", "c"]))
    np.testing.assert_array_equal(named.atoms, density.conditional([2, 0], [2.0, 0.5]).atoms)
    np.testing.assert_array_equal(density.marginal([True, False, True]).atoms, density.marginal([0, 2]).atoms)
    with pytest.raises(ValueError, match=r"columns as a mask .*got 2"):
        density.marginal([True, False])
