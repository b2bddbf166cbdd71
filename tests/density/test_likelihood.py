"""The search for a bandwidth: scores are held-out log-likelihoods by the definition, and the best is where it should be."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import reference_uses as oracle
from cases import COVARIANCE, GivenPlaces, cloud
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, compress
from reduset.density import likelihood
from reduset.density.likelihood import grid_for, search_bandwidth
from reduset.kernels import FAMILIES, listed
from reduset.select import KMeans

KERNELS = {
    "gaussian": Gaussian(),
    "oblique": Gaussian(covariance=COVARIANCE),
    "laplacian": Laplacian(),
    "cityblock": Laplacian(metric="cityblock", space="l2"),
    "student": Student(exponent=1.7),
}
KERNEL = pytest.mark.parametrize("kernel", KERNELS)
GRID = np.array([0.2, 0.3, 0.6, 1.0, 0.8])
BIN = 2.0**-5


@KERNEL
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_held_out_log_likelihoods(kernel, weighted):
    X = cloud(150)
    w = np.random.default_rng(3).integers(0, 4, size=150).astype(float) if weighted else np.ones(150)
    found = search_bandwidth(X, KERNELS[kernel], GRID, w if weighted else None, rng=5)
    logs, shares = oracle.held_out(X, KERNELS[kernel], GRID, w, oracle.five_folds(w, 5))
    exact = oracle.log_mean_of(logs, shares)
    assert (found.scores >= exact - 1e-6).all()
    np.testing.assert_allclose(found.scores, exact, atol=1e-3)
    errors = np.sqrt(np.square(shares / shares.sum()) @ np.square(logs - exact))
    np.testing.assert_allclose(found.errors, errors, rtol=2e-2)
    np.testing.assert_array_equal(found.bandwidths, GRID)
    assert found.best == GRID[np.argmax(exact)]


def test_beyond_10000_rows_2000_are_left_out(monkeypatch):
    """A fifth of each number, which are pairs enough."""
    assert (likelihood.MAX_FOLD_ROWS, likelihood.HELD_OUT_POINTS) == (10_000, 2000)
    monkeypatch.setattr(likelihood, "MAX_FOLD_ROWS", 2000)
    monkeypatch.setattr(likelihood, "HELD_OUT_POINTS", 400)
    X = cloud(2100, 1)
    found = search_bandwidth(X, Gaussian(), [0.2, 0.4], rng=1)
    order = np.random.default_rng(1).permutation(len(X))
    logs, shares = oracle.held_out(X, Gaussian(), [0.2, 0.4], np.ones(len(X)), [(order[400:], order[:400])])
    np.testing.assert_allclose(found.scores, oracle.log_mean_of(logs, shares), atol=3e-3)


@pytest.mark.parametrize("far", [900.0, 1e7])  # within the reach of a histogram, and beyond
@pytest.mark.parametrize("kernel", KERNELS)
def test_far_points_do_not_underflow(kernel, far):
    X = np.concatenate([cloud(60), [[far, -far]]])
    grid = [0.5, 1.0]
    found = search_bandwidth(X, KERNELS[kernel], grid, rng=0)
    logs, shares = oracle.held_out(X, KERNELS[kernel], grid, np.ones(61), oracle.five_folds(np.ones(61), 0))
    assert np.isfinite(found.scores).all()
    np.testing.assert_allclose(found.scores, oracle.log_mean_of(logs, shares), rtol=BIN)


def test_narrow_bandwidths_are_off_by_a_bin_at_most():
    X = cloud(80)
    grid = np.array([0.001, 0.003, 0.01, 0.03])
    found = search_bandwidth(X, Gaussian(), np.append(grid, [0.5, 5.0]), rng=0)
    logs, shares = oracle.held_out(X, Gaussian(), grid, np.ones(80), oracle.five_folds(np.ones(80), 0))
    exact = oracle.log_mean_of(logs, shares)
    assert (found.scores[:4] >= exact - 1e-6 * np.abs(exact)).all()
    np.testing.assert_allclose(found.scores[:4], exact, rtol=BIN)


def test_only_ratios_of_weights_matter():
    X, w = cloud(60), np.random.default_rng(0).uniform(size=60)
    once = search_bandwidth(X, Gaussian(), GRID, w, rng=0)
    for scale in (1e-300, 1e300):
        np.testing.assert_allclose(search_bandwidth(X, Gaussian(), GRID, w * scale, rng=0).scores, once.scores, rtol=1e-9)
    np.testing.assert_allclose(grid_for(X, Gaussian(), w * 8), grid_for(X, Gaussian(), w), rtol=1e-9)


def test_rows_without_weight_are_absent():
    X, w = cloud(60), np.repeat([1.0, 0.0], [50, 10])
    X[50:] += 1e3
    grid = grid_for(X, Gaussian(), w)
    np.testing.assert_allclose(grid, grid_for(X[:50], Gaussian()), rtol=1e-9)
    found, without = search_bandwidth(X, Gaussian(), grid, w, rng=0), search_bandwidth(X[:50], Gaussian(), grid, rng=0)
    np.testing.assert_allclose(found.scores, without.scores, rtol=1e-9)


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_best_is_nearly_as_good_as_any_for_fresh_points(dimension):
    X, fresh = np.random.default_rng(0).normal(size=(2, 500, dimension))
    found = search_bandwidth(X, Gaussian(), rng=0)
    rows = np.arange(1000).reshape(2, 500)
    logs, _ = oracle.held_out(np.concatenate([X, fresh]), Gaussian(), found.bandwidths, np.ones(1000), [rows])
    truth = logs.mean(axis=0)
    assert truth[found.bandwidths == found.best] >= truth.max() - 0.01


def test_the_best_is_near_the_optimum_of_normal_data():
    best = [search_bandwidth(np.random.default_rng(seed).normal(size=(3000, 1)), Gaussian(), rng=0).best for seed in range(5)]
    assert np.median(best) == pytest.approx((4 / 3) ** 0.2 * 3000**-0.2, rel=0.25)


def test_the_grid_left_out_is_50_around_scotts_rule():
    X = cloud(200)
    found = search_bandwidth(X, Gaussian(), rng=0)
    scott = Gaussian("scott").resolve(X).width
    assert len(found.bandwidths) == 50
    assert (np.diff(found.bandwidths) > 0).all()
    assert (found.bandwidths[0] / scott, found.bandwidths[-1] / scott) == pytest.approx((0.03, 3.0))


def test_the_grid_is_in_the_coordinates_of_the_kernel():
    X = cloud(200)
    stretched = X * [1.0, 100.0]
    grids = [grid_for(X, Gaussian()), grid_for(stretched, Gaussian(covariance=[1.0, 100.0**2]))]
    np.testing.assert_allclose(grids[0], grids[1], rtol=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "cityblock", "student"])
@pytest.mark.parametrize("grid", [[1e-9, 1e-4, 0.3, 0.5, 2e5, 1e9], [1e-200, 0.3, 0.5, 1e200]])
def test_bandwidths_of_many_decades_do_not_disturb_each_other(kernel, grid):
    X = cloud(60)
    found = search_bandwidth(X, KERNELS[kernel], grid, rng=0)
    logs, shares = oracle.held_out(X, KERNELS[kernel], [0.3, 0.5, grid[-1]], np.ones(60), oracle.five_folds(np.ones(60), 0))
    middle = grid.index(0.3)
    np.testing.assert_allclose(found.scores[[middle, middle + 1, -1]], oracle.log_mean_of(logs, shares), rtol=3e-3)
    assert found.best in (0.3, 0.5)


# -- by atoms ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the best bandwidth")
@KERNEL
def test_the_atoms_are_weighed_anew_for_every_bandwidth(kernel):
    X, w = cloud(200), np.random.default_rng(0).uniform(size=200)
    grid = np.array([0.25, 0.4, 0.6])
    found = search_bandwidth(X, KERNELS[kernel], grid, w, size=12, rng=4)
    rng = np.random.default_rng(4)
    rng.permutation(200)  # the folds
    total = np.zeros(3)
    for rest, out in oracle.five_folds(w, 4):
        kernels = [replace(KERNELS[kernel], bandwidth=float(h)) for h in grid]
        full = KernelMean.from_samples(X[rest], kernels[0], w[rest])
        atoms = KMeans().select(full, 12, rng).atoms
        for k, wide in enumerate(kernels):
            mean = KernelMean.from_samples(X[rest], wide, w[rest])
            small = compress(mean, size=len(atoms), select=GivenPlaces(atoms), weights="simplex_projection")
            assert small.size == len(atoms)
            total[k] += w[out] @ oracle.log_density(wide, small.mean.atoms, small.mean.weights, X[out])
    np.testing.assert_allclose(found.scores, total / w.sum(), atol=1e-4)


def test_few_atoms_ask_for_a_wider_bandwidth():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    whole = search_bandwidth(X, Gaussian(), rng=0).best
    few = search_bandwidth(X, Gaussian(), size=10, rng=0).best
    assert few > 1.2 * whole


def test_more_atoms_than_points_are_the_points():
    found = search_bandwidth(cloud(20), Gaussian(), [0.4, 0.5], size=500, rng=0)
    assert np.isfinite(found.scores).all()


# -- what is said ------------------------------------------------------------------------------------------------------


def test_the_end_of_the_grid_is_said_so():
    X = cloud(100)
    with pytest.warns(UserWarning, match=r"the best bandwidth, 0.05, is the largest of the 3 tried: .* as bandwidth"):
        search_bandwidth(X, Gaussian(), [0.05, 0.01, 0.02], rng=0)
    with pytest.warns(UserWarning, match="is the smallest of the 3 tried: .*repeated rows"):
        search_bandwidth(np.repeat(X, 4, axis=0), Gaussian(), [0.001, 0.01, 0.1], rng=0)


@pytest.mark.parametrize("grid", [0.3, [0.3], [0.3, 5.0]])
def test_of_one_or_two_nothing_is_said(grid):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert search_bandwidth(cloud(50), Gaussian(), grid, rng=0).best == 0.3


def test_two_points_are_enough():
    found = search_bandwidth([[0.0], [1.0]], Gaussian(), [0.5, 1.0, 2.0], rng=0)
    exact = -0.5 / found.bandwidths**2 - np.log(found.bandwidths) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(found.scores, exact, atol=1e-3)
    assert found.best == 1.0  # |x − y|, where the likelihood of one by the other is largest


def test_the_same_seed_gives_the_same_scores():
    runs = [search_bandwidth(cloud(300), Gaussian(), GRID, size=size, rng=7) for size in (None, 9) * 2]
    np.testing.assert_array_equal(runs[0].scores, runs[2].scores)
    np.testing.assert_array_equal(runs[1].scores, runs[3].scores)
    assert (runs[0].scores != runs[1].scores).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_types_of_numbers_are_the_same_numbers(dtype):
    X = np.round(10 * cloud(80))
    plain = search_bandwidth(X, Gaussian(), [4.0, 8.0], rng=0)
    np.testing.assert_allclose(search_bandwidth(X.astype(dtype), Gaussian(), [4.0, 8.0], rng=0).scores, plain.scores, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": [[1.0, 2.0]]}, ValueError, "X .*at least 2 points, got 1; .*bandwidth"),
        ({"sample_weight": np.eye(1, 30)[0]}, ValueError, "at least 2 points of weight above 0, got 1; .*bandwidth"),
        ({"bandwidths": []}, ValueError, "bandwidth .*got none"),
        ({"bandwidths": [0.5, -1.0]}, ValueError, r"bandwidth .*got .*-1\.0"),
        ({"bandwidths": [0.5, np.nan]}, ValueError, "bandwidth .*got .*nan"),
        ({"bandwidths": ["wide"]}, TypeError, "bandwidth .*got .*wide"),
        (
            {"kernel": FunctionKernel("rbf", gamma=1.0)},
            TypeError,
            f"kernel .*{listed(FAMILIES.values(), 'or')} .*got FunctionKernel",
        ),
        ({"kernel": FunctionKernel("rbf", gamma=1.0), "bandwidths": None}, TypeError, "kernel .*Student .*got FunctionKernel"),
        ({"kernel": Student(exponent=0.9)}, ValueError, "exponent .*got 0.9"),
        ({"rng": "seed"}, TypeError, "rng must be None, a seed"),
        ({"sample_weight": -np.ones(30)}, ValueError, "sample_weight must not be negative"),
    ],
)
def test_bad_input_is_named(change, error, message):
    options = {"X": cloud(30), "kernel": Gaussian(), "bandwidths": [0.5, 1.0], "rng": 0} | change
    with pytest.raises(error, match=message):
        search_bandwidth(**options)


@pytest.mark.slow
def test_few_heavy_rows_among_many_light_ones_decide():
    """Thirty rows carry all the weight: drawn blindly, few of them or none would be left out."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(12_000, 2)) * 5])
    weights = np.concatenate([np.ones(30), np.full(12_000, 1e-9)])
    grid = np.geomspace(0.05, 3.0, 25)
    found = [search_bandwidth(X, Gaussian(1.0), grid, weights, rng=seed).best for seed in range(3)]
    alone = [search_bandwidth(X[:30], Gaussian(1.0), grid, rng=seed).best for seed in range(3)]
    assert np.abs(np.log(np.median(found) / np.median(alone))) < 0.4
