"""Herding and greedy selection: step by step what their definitions say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_select as reference
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, compress
from reduset._engine.factor import Pursuit, order_by_energy
from reduset.select import Greedy, Herding, Random, greedy
from reduset.select.herding import REPEATS

KERNELS = [
    Gaussian(0.7),
    Gaussian(0.5, space="l2", normalized=True),
    Gaussian(0.5, covariance=[[1.0, 0.3], [0.3, 0.5]]),
    Laplacian(0.8),
    Laplacian(0.8, metric="cityblock", space="l2"),
    Student(0.6, exponent=2.5),
]
KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
FORM = pytest.mark.parametrize("line_search", [True, False], ids=["line search", "plain"])


def mean_of(n=25, kernel=KERNELS[0], seed=0, signed=False, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if signed:
        return KernelMean(X, rng.normal(size=n) / n, kernel)
    return KernelMean.from_samples(X, kernel, rng.integers(1, 5, size=n) if weighted else None)


@pytest.fixture
def some_candidates(monkeypatch):
    """Some hundred points are many."""
    monkeypatch.setattr(greedy, "ALL_ROWS_UP_TO", 50)
    monkeypatch.setattr(greedy, "MIN_CANDIDATES", 80)


# -- herding ---------------------------------------------------------------------------------------------------------


@FORM
@KERNEL
@pytest.mark.parametrize("signed", [False, True])
def test_herding_is_frank_wolfe_over_all_points(kernel, line_search, signed):
    f = mean_of(kernel=kernel, signed=signed)
    chosen = Herding(line_search).select(f, 14)
    order, weights, _ = reference.herding(reference.gram(f), f.weights, 14, line_search, REPEATS)
    assert chosen.indices.tolist() == order
    np.testing.assert_allclose(chosen.weights, weights, rtol=1e-9, atol=1e-12)


@FORM
def test_herding_follows_the_weights_of_the_points(line_search):
    f = mean_of(weighted=True)
    chosen = Herding(line_search).select(f, 14)
    order, weights, _ = reference.herding(reference.gram(f), f.weights, 14, line_search, REPEATS)
    assert chosen.indices.tolist() == order
    np.testing.assert_allclose(chosen.weights, weights, rtol=1e-9, atol=1e-12)


@FORM
@pytest.mark.parametrize("bandwidth", [0.1, 0.7, 5.0])
def test_herding_reaches_every_point_though_it_meets_some_again(line_search, bandwidth):
    f = mean_of(kernel=Gaussian(bandwidth))
    chosen = Herding(line_search).select(f, 25)
    assert sorted(chosen.indices) == list(range(25))
    order, *_ = reference.herding(reference.gram(f), f.weights, 25, line_search, REPEATS)
    if bandwidth == 0.7:  # at the others ties are decided by rounding
        assert chosen.indices.tolist() == order


@FORM
@pytest.mark.parametrize("size", [1, 5, 20])
def test_the_walk_has_weights_of_one_sign_that_sum_to_the_mass(line_search, size):
    own = Herding(line_search).select(mean_of(60), size).weights
    assert own.min() >= 0
    assert own.sum() == pytest.approx(1, rel=1e-12)


def test_plain_herding_counts_its_steps():
    own = Herding(line_search=False).select(mean_of(60), 12).weights
    counts = own / own.min()
    np.testing.assert_allclose(counts, counts.round(), rtol=1e-9)


@pytest.mark.parametrize("signed", [False, True])
def test_a_line_search_never_steps_away_from_the_mean(signed):
    f = mean_of(60, signed=signed)
    traversal = Herding().begin(f, np.random.default_rng(0))
    lost = []
    for size in range(1, 40):
        traversal.extend(size)
        lost.append(f.distance(KernelMean(f.atoms[traversal.indices], traversal.weights(), f.kernel)))
    assert np.all(np.diff(lost) <= 1e-9)
    *_, squares = reference.herding(reference.gram(f), f.weights, 39, True, REPEATS)
    assert np.all(np.diff(squares) <= 1e-12)
    assert lost[-1] == pytest.approx(np.sqrt(squares[-1]), rel=1e-6)


def test_herding_beats_random_rows_with_equal_weights():
    f = mean_of(400)
    own = Herding(line_search=False).select(f, 30)
    herded = f.distance(KernelMean(own.atoms, own.weights, f.kernel))
    random = [f.distance(KernelMean.from_samples(Random().select(f, 30, rng=seed).atoms, f.kernel)) for seed in range(10)]
    assert herded < min(random) / 2


# -- greedy ----------------------------------------------------------------------------------------------------------


@KERNEL
@pytest.mark.parametrize("signed", [False, True])
def test_greedy_tries_every_point_with_all_weights_refitted(kernel, signed):
    f = mean_of(kernel=kernel, signed=signed)
    K = reference.gram(f)
    assert Greedy().select(f, 8).indices.tolist() == reference.greedy(K, K @ f.weights, 8)


def test_greedy_follows_the_weights_of_the_points():
    f = mean_of(weighted=True)
    K = reference.gram(f)
    assert Greedy().select(f, 8).indices.tolist() == reference.greedy(K, K @ f.weights, 8)


@KERNEL
def test_the_path_of_greedy_is_that_of_least_squares(kernel):
    f = mean_of(kernel=kernel)
    K = reference.gram(f)
    values, square = K @ f.weights, float(f.weights @ K @ f.weights)
    small = compress(f, size=12, select="greedy", rng=0)
    expected = [np.sqrt(1 - reference.explained(K, values, small.indices[:size]) / square) for size in range(1, 13)]
    np.testing.assert_allclose(small.path.relative_errors, expected, rtol=1e-6)


def test_greedy_continues_after_given_rows():
    f = KernelMean.from_samples(np.random.default_rng(0).normal(size=(500, 4)), Gaussian(0.7))
    found = Greedy(after=(7, 3)).select(f, 10, rng=0).indices
    assert found[:2].tolist() == [7, 3]
    assert len(set(found.tolist())) == 10
    with pytest.raises(ValueError, match="after must be"):
        Greedy(after=(10_000,)).select(f, 5)


def test_greedy_stops_where_no_point_adds_a_direction():
    X = np.repeat(np.random.default_rng(0).normal(size=(7, 2)), 5, axis=0)
    f = KernelMean.from_samples(X, Gaussian(0.5))
    chosen = Greedy().select(f, 35)
    assert len(chosen.indices) == len(np.unique(chosen.atoms, axis=0)) == 7


def test_greedy_works_with_a_function_as_with_the_kernel_it_writes_out():
    f = mean_of(80)
    g = KernelMean.from_samples(f.atoms, FunctionKernel("rbf", gamma=0.5 / 0.7**2))
    np.testing.assert_array_equal(Greedy().select(f, 20).indices, Greedy().select(g, 20).indices)


# -- candidates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selector", [Greedy(), Herding(), Herding(line_search=False)])
def test_of_many_points_some_are_candidates(some_candidates, selector):
    f = mean_of(400)
    found = greedy.candidates(f, 20, np.empty(0, np.int64), np.random.default_rng(3))
    assert len(np.unique(found.rows)) == len(found.rows) == 80
    K = reference.gram(f)
    np.testing.assert_allclose(found.values, (K @ f.weights)[found.rows], rtol=1e-9)
    chosen = selector.select(f, 20, rng=3).indices
    assert set(chosen) <= set(found.rows)
    if selector == Greedy():
        assert chosen.tolist() == [found.rows[i] for i in reference.greedy(K[np.ix_(found.rows, found.rows)], found.values, 20)]


def test_candidates_have_weight(some_candidates):
    w = np.where(np.arange(400) % 3, 0.0, 1.0)
    f = KernelMean.from_samples(np.random.default_rng(0).normal(size=(400, 2)), Gaussian(0.7), w)
    assert np.all(w[greedy.candidates(f, 20, np.empty(0, np.int64), np.random.default_rng(0)).rows] > 0)


@pytest.mark.parametrize("selector", [Greedy(), Herding(), Herding(line_search=False)])
def test_candidates_are_drawn_anew_where_they_run_out_and_what_was_chosen_stays(some_candidates, selector):
    f = mean_of(400, kernel=Laplacian(0.8))
    traversal = selector.begin(f, np.random.default_rng(0))
    before = np.empty(0, np.int64)
    for size in (10, 60, 150, 400):
        traversal.extend(size)
        np.testing.assert_array_equal(traversal.indices[: len(before)], before)
        before = traversal.indices.copy()
        assert len(np.unique(before)) == size


@pytest.mark.parametrize("line_search", [True, False])
def test_a_walk_goes_on_from_where_it_was_with_other_candidates(some_candidates, line_search):
    f = mean_of(400)
    traversal = Herding(line_search).begin(f, np.random.default_rng(0))
    lost = []
    for size in (5, 30, 45, 60, 90):
        traversal.extend(size)
        assert traversal.weights().sum() == pytest.approx(1)
        lost.append(f.distance(KernelMean(f.atoms[traversal.indices], traversal.weights(), f.kernel)))
    assert np.all(np.diff(lost) <= (1e-9 if line_search else 0.02))


def test_greedy_looks_for_places_that_its_candidates_lack_before_it_ends(some_candidates):
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 20, axis=0)
    chosen = Greedy().select(KernelMean.from_samples(X, Gaussian(0.5)), 60, rng=0)
    assert len(chosen.indices) == len(np.unique(chosen.atoms, axis=0)) == 30


@pytest.mark.parametrize(("bandwidth", "believed"), [(1.5, True), (0.02, False)])
def test_a_stand_in_gives_the_values_where_it_is_close(some_candidates, monkeypatch, bandwidth, believed):
    monkeypatch.setattr(greedy, "PAIRS", 0)
    monkeypatch.setattr(greedy, "SURROGATE_ATOMS", 150)
    f = mean_of(400, kernel=Gaussian(bandwidth))
    found = greedy.candidates(f, 20, np.empty(0, np.int64), np.random.default_rng(0))
    exact = f.kernel.product_sums(f.atoms, f.weights, found.points)
    assert np.array_equal(found.values, exact) != believed
    np.testing.assert_allclose(found.values, exact, rtol=0.02)


# -- the order of the energies ---------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 10), coarse=st.booleans())
def test_the_order_by_energy_is_the_greedy_one(seed, n, coarse):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, 2)).astype(float) if coarse else rng.normal(size=(n, 2))
    f = KernelMean.from_samples(rng.normal(size=(30, 2)), Gaussian(0.6))
    K, values = f.kernel.product_gram(X, X), f.kernel.product_sums(f.atoms, f.weights, X)
    order = order_by_energy(K, values)
    assert sorted(order) == list(range(n))
    for done in range(len(np.unique(X, axis=0))):  # equals may come in any order, so it is what is gained that counts
        before = order[:done].tolist()
        gained = reference.explained(K, values, order[: done + 1])
        assert gained >= max(reference.explained(K, values, [*before, i]) for i in range(n) if i not in before) - 1e-10


@pytest.mark.parametrize("n", [63, 64, 65, 200])
def test_a_pursuit_that_is_continued_is_the_one_that_was_not_stopped(n):
    f = mean_of(n, kernel=Laplacian(0.8))
    K = f.kernel.product_gram(f.atoms, f.atoms)
    values = K @ f.weights
    pursuit = Pursuit(values, lambda k: K[k])
    for _ in range(n):
        assert pursuit.choose()
    assert not pursuit.choose()
    np.testing.assert_array_equal(pursuit.chosen, order_by_energy(K, values))
    assert len(set(pursuit.chosen)) == n


def test_energies_fall_along_the_order():
    f = mean_of(150)
    small = compress(f, size=40, select="kmeans", rng=0)
    atoms = small.mean.atoms
    K, values = f.kernel.product_gram(atoms, atoms), f.kernel.product_sums(f.atoms, f.weights, atoms)
    added = small._prefixes.span.y**2
    energies = [reference.explained(K, values, range(size)) for size in range(1, 41)]
    np.testing.assert_allclose(np.cumsum(added), energies, rtol=1e-6)
    reversed_ = [reference.explained(K, values, range(39, 39 - size, -1)) for size in range(1, 41)]
    assert np.all(np.array(energies) >= np.array(reversed_) - 1e-9)
