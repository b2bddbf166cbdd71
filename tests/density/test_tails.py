"""The default of SparseKernelDensity: a log density that is right where it is low, and an error that held-out rows confirm."""

import pickle

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

import reference_uses as oracle
from reduset import Gaussian, KernelMean, Laplacian, NotReachedWarning, Student, set_threads
from reduset.density import SparseKernelDensity
from reduset.density.leaf_density import merge_rows
from reduset.density.log_error import LogError, drawn_by_weight, held_out_split, left_out_error

ROWS = 5000


def heavy(n=ROWS, d=2, seed=0):
    return np.random.default_rng(seed).standard_t(2, size=(n, d))


def clumped(n=ROWS, d=2, seed=0):
    """Dense groups, a cloud around them, and values that repeat."""
    rng = np.random.default_rng(seed)
    centres = 4 * np.random.default_rng(7).normal(size=(5, d))
    X = centres[rng.integers(5, size=n)] + rng.choice([0.05, 0.5, 3.0], size=(n, 1)) * rng.normal(size=(n, d))
    X[: n // 4] = np.round(X[: n // 4], 1)
    return rng.permutation(X)


DATA = {"heavy tails": heavy, "clumps": clumped}
DATUM = pytest.mark.parametrize("data", DATA.values(), ids=DATA)


def fitted(X, sample_weight=None, **options):
    return SparseKernelDensity(**{"random_state": 0} | options).fit(X, sample_weight=sample_weight)


def error_of(density, X, Q, weights=None):
    w = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    return np.abs(density.score_samples(Q) - oracle.log_density(density.mean_.kernel, X, w, Q))


# -- the error ---------------------------------------------------------------------------------------------------------------


@pytest.mark.fast_cases(2)
@DATUM
@pytest.mark.parametrize("d", [2, 4])
def test_new_rows_have_the_error_that_is_stated(data, d):
    X, Q = data(d=d), data(1000, d, seed=1)
    density = fitted(X)
    error = error_of(density, X, Q)
    stated = density.log_error_
    assert np.quantile(error, 0.99) <= 0.1
    # the leaves without held-out rows are others, and all rows of a dense clump share the error of one leaf
    assert np.quantile(error, 0.99) <= 2 * stated.q99
    assert (error > 2 * stated.q99).mean() <= 0.01
    assert stated.median / 3 <= np.median(error) <= 3 * stated.median


@DATUM
@pytest.mark.parametrize("kernel", ["exponential", "student"])
def test_other_kernels_meet_the_tolerance(data, kernel):
    X, Q = data(), data(500, seed=1)
    density = fitted(X, kernel=kernel)
    assert density.log_error_.q99 <= 0.1
    assert np.quantile(error_of(density, X, Q), 0.99) <= 0.1


def test_outliers_are_those_of_scikit_learn():
    X, Q = heavy(20_000, 3), heavy(1000, 3, seed=1)
    density = fitted(X)
    theirs = KernelDensity(bandwidth=density.bandwidth_).fit(X).score_samples(Q)
    ours = density.score_samples(Q)
    top = 50
    assert len(np.intersect1d(np.argsort(ours)[:top], np.argsort(theirs)[:top])) >= 0.95 * top


def test_far_from_all_rows_the_logarithm_stays_within_its_bound():
    X = heavy()
    density = fitted(X)
    Q = np.random.default_rng(3).normal(size=(50, 2)) * np.geomspace(1, 1e3, 50)[:, None]
    exact = oracle.log_density(density.mean_.kernel, X, np.full(ROWS, 1 / ROWS), Q)
    # a leaf's bound, and cells of a tenth of a bandwidth, whose part grows with the distance as the logarithm does
    assert (np.abs(density.score_samples(Q) - exact) <= np.log1p(density._leaves.ratio) + 0.002 * np.abs(exact)).all()


def test_a_million_bandwidths_away_the_logarithm_is_exact():
    X = heavy()
    density = fitted(X, bandwidth=0.3)
    Q = np.array([[1e5, 0.0], [3e5, -2e5], [1e25, 1.0]])
    exact = oracle.log_density(density.mean_.kernel, X, np.full(ROWS, 1 / ROWS), Q)
    np.testing.assert_allclose(density.score_samples(Q), exact, rtol=1e-9)


def test_a_smaller_tolerance_makes_a_smaller_error():
    X, Q = heavy(d=4), heavy(500, 4, seed=1)
    rough, fine = fitted(X, log_tol=0.2), fitted(X, log_tol=0.005)
    assert fine.mean_.size > rough.mean_.size
    assert fine.log_error_.q99 <= 0.005 < rough.log_error_.q99
    assert error_of(fine, X, Q).mean() < error_of(rough, X, Q).mean()


def test_few_rows_are_summed_exactly():
    X, Q = heavy(2000), heavy(200, seed=1)
    density = fitted(X)
    assert density.log_error_ == (0, 0, 0)
    assert density.certificate_.relative_error == 0
    assert error_of(density, X, Q).max() < 1e-6


def test_many_columns_are_summed_over_all_atoms():
    X, Q = heavy(3000, 20), heavy(50, 20, seed=1)
    density = fitted(X, bandwidth=2.0)
    assert density._leaves.sums is None
    assert error_of(density, X, Q).max() < 1e-4


def test_merged_rows_have_the_l2_error_of_the_certificate():
    for n in (3000, 5000):  # exactly, and by frequencies
        X = clumped(n)
        density = fitted(X, log_tol=0.3)
        full = KernelMean.from_samples(X, density.mean_.kernel)
        error = density.mean_.distance(full) / full.norm()
        low, high = density.certificate_.interval
        assert 0.8 * low <= error <= 1.2 * high
        assert 0 < high < 0.01
        assert density.certificate_.norm == pytest.approx(full.norm(), rel=0.15)


# -- weights, seeds, storage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1000, 4000])
def test_weights_are_repetitions(n):
    X, Q = clumped(n), clumped(300, seed=1)
    w = np.random.default_rng(0).integers(0, 4, size=n)
    weighed, repeated = fitted(X, w, bandwidth=0.3), fitted(np.repeat(X, w, axis=0), bandwidth=0.3)
    assert weighed.mean_.size == repeated.mean_.size
    np.testing.assert_allclose(weighed.mean_.atoms, repeated.mean_.atoms, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weighed.mean_.weights, repeated.mean_.weights, rtol=1e-9)
    for density in (weighed, repeated):
        assert np.quantile(error_of(density, X, Q, w.astype(float)), 0.99) <= 0.1


def test_rows_without_weight_are_no_rows():
    X, Q = heavy(), heavy(200, seed=1)
    w = np.where(np.arange(ROWS) % 3 == 0, 0.0, 1.0)
    some, all_of_them = fitted(X[w > 0], bandwidth=0.4), fitted(X, w, bandwidth=0.4)
    np.testing.assert_allclose(some.mean_.atoms, all_of_them.mean_.atoms, rtol=1e-12)
    np.testing.assert_allclose(some.score_samples(Q), all_of_them.score_samples(Q), atol=0.1)


def test_same_seed_same_bits_whatever_the_threads():
    X, Q = heavy(), heavy(300, seed=1)
    one = fitted(X)
    try:
        set_threads(3)
        other = fitted(X)
        np.testing.assert_array_equal(one.score_samples(Q), other.score_samples(Q))
    finally:
        set_threads(None)
    assert one.log_error_ == other.log_error_
    assert one.certificate_ == other.certificate_


def test_a_pickle_keeps_the_leaves():
    X, Q = heavy(), heavy(100, seed=1)
    density = fitted(X)
    again = pickle.loads(pickle.dumps(density))
    np.testing.assert_array_equal(again.score_samples(Q), density.score_samples(Q))
    assert again.log_error_ == density.log_error_


def test_the_data_are_neither_changed_nor_kept():
    X = heavy()
    before = X.copy()
    density = fitted(X)
    np.testing.assert_array_equal(X, before)
    found = density.score_samples(before[:50])
    X[:] = 0.0
    np.testing.assert_array_equal(density.score_samples(before[:50]), found)


def test_the_density_is_that_of_its_atoms():
    X = clumped()
    density = fitted(X)
    assert density.mean_.mass == pytest.approx(1)
    assert density.mean_.weights.min() > 0
    Q = clumped(300, seed=1)
    assert np.abs(density.mean_.log_density(Q) - density.score_samples(Q)).max() <= np.log1p(density._leaves.ratio)
    assert density.integrate_box([-np.inf, -np.inf], [np.inf, np.inf]) == pytest.approx(1)


# -- cells ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.5), Student(0.5), Gaussian(0.5, scales=[1.0, 3.0])])
def test_cells_keep_weight_mean_and_lonely_rows(kernel):
    X = clumped(3000)
    full = KernelMean.from_samples(X, kernel)
    merged = merge_rows(full, full.kernel, 0.2)
    assert merged.size < 2500
    assert merged.mass == pytest.approx(1)
    np.testing.assert_allclose(merged.weights @ merged.atoms, X.mean(axis=0), atol=1e-12)
    units = np.ones(2) if kernel.scales is None else np.array([1.0, 3.0])
    cells = np.floor((X - X.min(axis=0)) / units / 0.1)  # 0.2 bandwidths
    _, which, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    assert merged.size == len(counts)
    alone = X[counts[which.ravel()] == 1]
    kept = {tuple(atom) for atom in merged.atoms}
    assert all(tuple(row) in kept for row in alone)


def test_without_a_side_only_coincident_rows_are_merged():
    X = np.round(clumped(2000), 1)
    full = KernelMean.from_samples(X, Gaussian(0.5))
    merged = merge_rows(full, full.kernel, 0.0)
    places, counts = np.unique(X, axis=0, return_counts=True)
    order = np.lexsort(merged.atoms.T[::-1])
    np.testing.assert_allclose(merged.atoms[order], places, atol=1e-12)
    np.testing.assert_allclose(merged.weights[order], counts / 2000)


def test_permutation_and_translation_change_no_cell():
    X = np.round(64 * clumped(2000)) / 64  # so that no difference is rounded
    rows = np.random.default_rng(0).permutation(2000)
    kernel = Gaussian(0.5)
    full, permuted, moved = (KernelMean.from_samples(each, kernel) for each in (X, X[rows], X + 64.0))
    found, other, away = (merge_rows(each, each.kernel, 0.25) for each in (full, permuted, moved))
    assert found.size == other.size == away.size
    np.testing.assert_allclose(other.atoms, found.atoms, atol=1e-12)
    np.testing.assert_allclose(other.weights, found.weights, rtol=1e-9)


def test_max_size_widens_the_cells_and_warns_where_the_error_is_too_large():
    X = heavy()
    with pytest.warns(NotReachedWarning, match="log_tol=0.1.*200.*5,000.*max_size"):
        density = fitted(X, max_size=200, bandwidth=0.1)
    assert density.mean_.size <= 200
    assert density.log_error_.q99 > 0.1


# -- held-out rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"size": 40}, {"tol": 0.1}, {"size": 5, "pieces": "components"}], ids=str)
def test_the_error_of_a_compression_is_that_at_rows_left_out(options):
    X = heavy(400)
    density = fitted(X, **options)
    full, atoms = KernelMean.from_samples(X, density.mean_.kernel), density.compression_.indices
    candidates = np.ones(400)
    candidates[[] if atoms is None else atoms] = 0.0
    slow = []
    for i in drawn_by_weight(candidates, 80, np.random.default_rng(3)):
        rest = np.delete(X, i, axis=0)
        exact = oracle.log_density(full.kernel, rest, np.full(399, 1 / 399), X[i : i + 1])
        slow.append(abs(density.score_samples(X[i : i + 1])[0] - exact[0]))
    found = left_out_error(full, density.mean_.log_density, atoms, np.random.default_rng(3))
    np.testing.assert_allclose(found, np.sort(slow)[[40, 79, 79]], rtol=1e-6)
    assert 0 < density.log_error_.median <= density.log_error_.q99 <= density.log_error_.maximum


def test_rows_of_weight_are_left_when_nearly_all_have_none():
    X, w = heavy(3000), np.zeros(3000)
    w[:3] = 1.0
    density = fitted(X, w, bandwidth=0.5)
    assert density.mean_.size == 3
    assert density.log_error_ == (0, 0, 0)
    forced = fitted(X[:3], bandwidth=0.5, max_size=1)
    assert forced.mean_.size == 1
    assert np.isnan(forced.log_error_).all()  # of three rows none is held out


def test_rows_held_out_are_not_in_the_rest_and_come_by_weight():
    X = heavy(1000)
    w = np.concatenate([np.zeros(500), np.ones(400), np.full(100, 50.0)])
    full = KernelMean.from_samples(X, Gaussian(0.5), w)
    rest, out = held_out_split(full, np.random.default_rng(0))
    assert rest.size + len(out) == 1000
    assert len(out) == 100
    assert rest.mass == pytest.approx(1)
    assert not {tuple(x) for x in rest.atoms} & {tuple(x) for x in out}
    drawn = drawn_by_weight(w, 100, np.random.default_rng(1))
    assert len(np.unique(drawn)) == 100
    assert (drawn >= 500).all()
    assert (drawn >= 900).mean() > 0.6


def test_errors_of_signed_densities_are_infinite_where_there_is_no_logarithm():
    error = LogError.of(np.array([np.nan, -np.inf, 1.0]), np.array([1.0, -np.inf, 1.5]))
    assert error == (0.5, np.inf, np.inf)  # of 0, 0.5 and infinity
    assert np.isnan(LogError.of(np.empty(0), np.empty(0))).all()


# -- parameters ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [{"tol": 0.1}, {"size": 9}, {"pieces": "components"}, {"select": "kcenter"}, {"refine": True}])
def test_one_tolerance_at_a_time(option):
    with pytest.raises(ValueError, match="log_tol cannot be combined with tol, size"):
        fitted(heavy(100), log_tol=0.1, **option)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_bad_tolerances_are_named(bad):
    with pytest.raises(ValueError, match="log_tol must be"):
        fitted(heavy(100), log_tol=bad)


def test_an_option_of_the_compression_compresses():
    X = heavy(500)
    assert fitted(X, pieces="components").compression_.mean.size < 250
    assert fitted(X).compression_ is None
