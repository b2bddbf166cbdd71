"""Shadows: the plain algorithm of the paper, for every kernel and weight; and how a compression by them ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import reference_select
from cases import KERNELS, cloud
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, NotReachedWarning, Student, compress
from reduset._engine import shadows as engine
from reduset.select import Shadow, shadow

RADIAL = [name for name in KERNELS if name != "function"]


def distances(f):
    """In bandwidths, by the definition of the bump."""
    Z = reference.whitened(f.kernel, f.atoms)
    return reference.distances(Z, Z, "cityblock" if reference.in_cityblock(f.kernel) else "euclidean")


def by_row(chosen):
    """{row: weight}: the order of equally heavy atoms is nobody's business."""
    return dict(zip(chosen.indices.tolist(), chosen.weights.tolist(), strict=True))


def assert_shadows(f, ell, D, radius):
    chosen = Shadow(ell).select(f, f.size)
    centres, masses = reference_select.shadows(D, f.weights, radius)
    found = by_row(chosen)
    assert sorted(found) == sorted(centres)
    np.testing.assert_allclose([found[row] for row in centres], masses, rtol=1e-12, atol=1e-15)
    assert np.all(np.diff(chosen.weights) <= 1e-12)  # the heaviest first


# -- the algorithm ---------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@pytest.mark.parametrize("kernel", RADIAL)
@pytest.mark.parametrize("ell", [0.7, 2.0, 4.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_shadows_are_those_of_the_paper(kernel, ell, weighted):
    w = np.random.default_rng(1).uniform(0, 3, size=120).round(1) if weighted else None
    f = KernelMean.from_samples(cloud(), KERNELS[kernel], w)
    assert_shadows(f, ell, distances(f), 1 / ell)


@pytest.mark.parametrize("ell", [0.7, 2.0, 4.0])
@pytest.mark.parametrize("function", [FunctionKernel("rbf", gamma=2.0), FunctionKernel("laplacian", gamma=0.4)], ids=repr)
def test_a_function_covers_what_is_as_close_as_a_gaussian_is_at_a_shadows_edge(function, ell):
    f = KernelMean.from_samples(cloud(), function)
    apart = -f.kernel.product_gram(f.atoms, f.atoms)
    assert_shadows(f, ell, apart, -np.exp(-0.5 / ell**2))


def test_a_function_that_writes_out_a_gaussian_has_its_shadows():
    f, g = (KernelMean.from_samples(cloud(), kernel) for kernel in (Gaussian(0.5), FunctionKernel("rbf", gamma=2.0)))
    np.testing.assert_array_equal(Shadow(2.0).select(f, 120).indices, Shadow(2.0).select(g, 120).indices)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    d=st.integers(1, 4),
    ell=st.floats(0.5, 3.0),
    coarse=st.booleans(),
    kernel=st.sampled_from([Gaussian(0.5), Laplacian(0.8), Laplacian(0.8, metric="cityblock"), Student(0.6)]),
)
@pytest.mark.filterwarnings("ignore:Shadow. ell")
def test_any_small_cloud_has_the_shadows_of_the_paper(seed, n, d, ell, coarse, kernel):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, d)) * 0.37 if coarse else rng.normal(size=(n, d))
    w = np.append(rng.integers(0, 3, size=n - 1), 1)
    f = KernelMean.from_samples(X, kernel, w)
    D = distances(f)
    if not np.any(np.isclose(D, 1 / ell, rtol=1e-9)):  # on the very edge rounding decides
        assert_shadows(f, ell, D, 1 / ell)


def test_every_point_lies_in_the_shadow_of_an_atom_and_no_atom_in_that_of_one_before():
    f = KernelMean.from_samples(cloud(3000, 3), Gaussian(0.6))
    chosen = Shadow(2.0).select(f, 3000)
    D = reference.distances(f.atoms, chosen.atoms) / 0.6
    assert D.min(axis=1).max() < 0.5
    among = D[chosen.indices]
    np.fill_diagonal(among, np.inf)
    assert among.min() >= 0.5
    assert chosen.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("n", [engine.ROWS_A_CALL - 1, engine.ROWS_A_CALL + 1, 10_000])
def test_calls_of_some_rows_do_not_show(n):
    X = cloud(n, 2, 3)
    f = KernelMean.from_samples(X, Gaussian(1.0))
    centres, waiting = [], np.ones(n, bool)
    for row in range(n):
        if waiting[row]:
            centres.append(row)
            waiting &= reference.gaps(X, X[row]) >= 0.25
    assert sorted(Shadow(2.0).select(f, n).indices) == centres


def test_a_prefix_takes_over_the_mass_of_the_rest():
    f = KernelMean.from_samples(cloud(), Gaussian(0.5))
    every, some = Shadow(2.0).select(f, 120), Shadow(2.0).select(f, 10)
    np.testing.assert_array_equal(some.indices, every.indices[:10])
    np.testing.assert_allclose(some.weights, every.weights[:10] / every.weights[:10].sum(), rtol=1e-12)
    assert np.all(np.diff(np.abs(every.weights)) <= 1e-15)


def test_a_row_of_three_times_the_weight_counts_three_times():
    X, w = cloud(60), np.random.default_rng(1).integers(1, 4, size=60)
    weighted, repeated = (
        KernelMean.from_samples(X, Gaussian(0.5), w),
        KernelMean.from_samples(np.repeat(X, w, axis=0), Gaussian(0.5)),
    )
    one, other = by_row(Shadow(2.0).select(weighted, 60)), by_row(Shadow(2.0).select(repeated, len(repeated.atoms)))
    places = np.concatenate([[0], np.cumsum(w)[:-1]])
    assert {int(places[row]): pytest.approx(mass) for row, mass in one.items()} == other


def test_weights_of_both_signs_are_added_up():
    X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]])
    chosen = Shadow(2.0).select(KernelMean(X, [1.0, -0.25, -3.0, 1.0, 0.5], Gaussian(1.0)), 5)
    assert chosen.indices.tolist() == [2, 0, 4]
    np.testing.assert_allclose(chosen.weights, [-2.0, 0.75, 0.5])


def test_a_shift_changes_no_shadow():
    X = np.rint(cloud() * 1024) / 1024  # a whole shift is exact
    f, g = (KernelMean.from_samples(Y, Gaussian(0.5)) for Y in (X, X + 1e6))
    np.testing.assert_array_equal(Shadow(3.3).select(f, 120).indices, Shadow(3.3).select(g, 120).indices)


# -- where it ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", ["shadow", Shadow(ell=2.0)])
def test_shadows_need_no_size(select):
    X = cloud(2000)
    small = compress(X, Gaussian(0.5), select=select, rng=0)
    selector = Shadow() if select == "shadow" else select
    expected = selector.select(KernelMean.from_samples(X, Gaussian(0.5)), 2000)
    assert small.reached
    assert small.size + len(small.dropped) == len(expected.indices)
    assert small.certificate.relative_error < 0.05
    assert small.selection == "Shadow"


@pytest.mark.parametrize("goal", [{"size": 30}, {"tol": 0.1}, {"plateau": 1e-3}])
def test_shadows_can_be_given_a_goal(goal):
    small = compress(cloud(2000), Gaussian(0.5), select=Shadow(2.0), rng=0, **goal)
    assert small.reached
    assert small.size == goal.get("size", small.size)
    if "tol" in goal:
        assert small.certificate.interval[1] <= 0.1


@pytest.mark.parametrize("weights", ["free", "own"])
def test_more_shadows_than_are_allowed_are_told(weights):
    with pytest.warns(NotReachedWarning, match="end of Shadow was not reached with 20 atoms: the error is .* Raise max_size"):
        small = compress(cloud(500), Gaussian(0.5), select=Shadow(2.0), max_size=20, weights=weights, rng=0)
    assert small.size == 20
    assert not small.reached
    assert "NOT REACHED" in str(small)
    if weights == "own":
        assert small.mean.weights.sum() == pytest.approx(1)


def test_as_many_shadows_as_are_allowed_are_an_end():
    X = np.repeat(np.arange(7.0), 3).reshape(-1, 1)
    small = compress(X, Gaussian(0.5), select=Shadow(2.0), max_size=7, rng=0)
    assert small.reached
    assert small.size == 7


def test_an_ell_that_keeps_every_point_is_told():
    with pytest.warns(UserWarning, match="ell=400.*120"):
        small = compress(cloud(), Gaussian(0.5), select=Shadow(ell=400.0), rng=0)
    assert small.size == 120
    assert small.certificate.relative_error < 1e-6


def test_one_point_is_its_own_shadow():
    small = compress([[1.0, 2.0]], Gaussian(0.5), select="shadow", weights="own")
    np.testing.assert_array_equal(small.mean.weights, [1.0])


@pytest.mark.parametrize("bandwidth", [1e-140, 1e-40])
def test_bandwidths_below_any_distance_keep_every_point(bandwidth):
    with pytest.warns(UserWarning, match="keeps every one"):
        assert len(Shadow().select(KernelMean.from_samples(cloud(), Gaussian(bandwidth)), 120).indices) == 120


@pytest.mark.parametrize("bandwidth", [1e100, 1e300])
def test_bandwidths_beyond_any_distance_leave_one(bandwidth):
    assert Shadow().select(KernelMean.from_samples(cloud(), Gaussian(bandwidth)), 120).indices.tolist() == [0]


# -- its own weights -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ell", [1.0, 2.0, 4.0])
def test_the_weights_of_the_paper_are_measured_like_any_other(ell):
    X = cloud()
    full = KernelMean.from_samples(X, Gaussian(0.5))
    small = compress(full, select=Shadow(ell), weights="own", rng=0)
    assert small.weighting == "own"
    assert small.certificate.relative_error == pytest.approx(full.distance(small.mean) / full.norm(), rel=1e-6)
    best = compress(full, select=Shadow(ell), weights="free", rng=0)
    assert best.certificate.relative_error <= small.certificate.relative_error
    # the density of the paper is off by no more than every point moved to the edge of its shadow
    assert small.certificate.relative_error * full.norm() <= np.sqrt(2 - 2 * np.exp(-0.5 / ell**2))


def test_weights_that_are_worse_than_nothing_are_said_to_be():
    """A wide cloud, all of its mass at two places."""
    X = np.repeat(np.random.default_rng(0).normal(size=(250, 6)), 2, axis=0)
    small = compress(X, Gaussian(0.5), select=Shadow(4.0), size=2, weights="own", rng=0)
    assert small.certificate.relative_error > 1
    assert "WORSE THAN THE ZERO FUNCTION, whose error is 100 %" in str(small)
    assert "WORSE THAN THE ZERO FUNCTION" in small.details()
    better = compress(cloud(), Gaussian(0.5), select=Shadow(2.0), weights="own", rng=0)
    assert better.certificate.relative_error < 1
    assert "WORSE" not in str(better)


def test_products_are_looked_at_in_blocks(monkeypatch):
    f = KernelMean.from_samples(cloud(), FunctionKernel("rbf", gamma=2.0))
    whole = Shadow(2.0).select(f, 120).indices
    monkeypatch.setattr(shadow, "row_blocks", lambda points, width: [(0, 50), (50, 51), (51, 120)])
    np.testing.assert_array_equal(Shadow(2.0).select(f, 120).indices, whole)


# -- whose shadow each point is in -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_point_has_an_atom_whose_weight_is_what_it_stands_for(kernel):
    X = cloud(100)
    f = KernelMean.from_samples(X, KERNELS[kernel], np.arange(100) % 3)
    chosen = Shadow(2.5).select(f, 100)
    assert set(np.flatnonzero(chosen.assignments < 0)) == set(range(0, 100, 3))
    present = chosen.assignments >= 0
    np.testing.assert_allclose(np.bincount(chosen.assignments[present], f.weights[present]), chosen.weights, rtol=1e-12)
    np.testing.assert_array_equal(chosen.assignments[chosen.indices], np.arange(len(chosen.indices)))
    if kernel == "gaussian":
        assert np.linalg.norm(X[present] - chosen.atoms[chosen.assignments[present]], axis=1).max() < 0.5 / 2.5
    assert Shadow(2.5).select(f, 3).assignments is None  # of a part of the atoms, the weights are no masses
