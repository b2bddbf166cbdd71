"""Moved atoms: a true gradient, never a worse result, rounds on a stand-in, and goals."""

from functools import partial

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import reduset
import reduset.compression.refine as module
from cases import COVARIANCE, Given, cloud
from reduset import Gaussian, KernelMean, Laplacian, NotReachedWarning, Student
from reduset.certificate.comparison import distance_from, surrogate
from reduset.weights import WEIGHTINGS

compress = partial(reduset.compress, select="kcenter")  # far from the best places, so that there is something to gain

KERNELS = {
    "gaussian": Gaussian(0.7),
    "gaussian l2": Gaussian(0.7, space="l2", normalized=True),
    "oblique": Gaussian(0.7, covariance=COVARIANCE),
    "laplacian": Laplacian(0.8),
    "laplacian l2": Laplacian(0.8, space="l2"),
    "cityblock": Laplacian(0.8, metric="cityblock"),
    "cityblock l2": Laplacian(0.8, metric="cityblock", space="l2"),
    "student": Student(1.5, exponent=2.5),
    "student l2": Student(0.6, exponent=1.7, space="l2"),
}
KERNEL = pytest.mark.parametrize("kernel", KERNELS)
KINDS = ["free", "sum_to_one", "simplex"]


def counted(_):
    """Nobody watches."""


def objective_of(monkeypatch, problem, slopes, start, bound=np.inf):
    """The function of the moves that `descend` hands to the minimiser, and its starting point."""
    handed = {}
    monkeypatch.setattr(scipy.optimize, "minimize", lambda value, moves, **_: handed.update(value=value, moves=moves))
    problem.descend(slopes, start, 1, bound)
    return handed["value"], handed["moves"]


def assert_gradient(value, moves, step=1e-6, rtol=1e-5):
    _, gradient = value(moves)
    expected = np.empty_like(gradient)
    for j in range(len(moves)):
        side = step * np.eye(len(moves))[j]
        expected[j] = (value(moves + side)[0] - value(moves - side)[0]) / (2 * step)
    np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def true_error(full, small):
    return full.distance(small.mean) / full.norm()


def assert_no_worse(full, **options):
    """Moved atoms lose no more than the same atoms where they were, by the certificate and in truth."""
    plain, moved = (compress(full, rng=0, refine=refine, **options) for refine in (False, 15))
    assert np.isfinite(moved.mean.weights).all()
    assert np.isfinite(moved.mean.atoms).all()
    assert moved.size <= options["size"]
    assert moved.certificate.relative_error <= plain.certificate.relative_error
    rounding = 1e-7 * (1 + np.abs(moved.mean.weights).sum() + np.abs(plain.mean.weights).sum())
    assert full.distance(moved.mean) <= full.distance(plain.mean) * (1 + 1e-6) + rounding
    return plain, moved


# -- the gradient ----------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@KERNEL
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_the_limit_of_differences(monkeypatch, kernel, kind):
    full = KernelMean.from_samples(cloud(60), KERNELS[kernel])
    start = full.atoms[:6] + 0.05
    problem = module._Problem(full.kernel, kind, 1.0, 6, 0.1, counted)
    value, moves = objective_of(monkeypatch, problem, lambda c: full.kernel.product_slopes(full.atoms, full.weights, c), start)
    assert not moves.any()
    assert_gradient(value, moves)
    assert_gradient(value, 0.2 * np.random.default_rng(0).normal(size=12))


@pytest.mark.parametrize("kernel", ["gaussian", "oblique"])
def test_the_gradient_holds_within_a_bound(monkeypatch, kernel):
    full = KernelMean.from_samples(cloud(60), KERNELS[kernel])
    problem = module._Problem(full.kernel, "free", 1.0, 6, 0.1, counted)
    slopes = partial(full.kernel.product_slopes, full.atoms, full.weights)
    value, moves = objective_of(monkeypatch, problem, slopes, full.atoms[:6] + 0.05, bound=0.3)
    assert_gradient(value, moves)
    assert_gradient(value, 0.4 * np.random.default_rng(0).normal(size=12))


@pytest.mark.covering_cases
@KERNEL
@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_the_squared_error_at_the_best_weights(kernel, kind):
    full = KernelMean.from_samples(cloud(60), KERNELS[kernel])
    rows = np.array([0, 7, 9, 20, 31, 44])
    problem = module._Problem(full.kernel, kind, 1.0, 6, 0.1, counted)
    lost = problem.error(full.atoms[rows], full.kernel.product_sums(full.atoms, full.weights, full.atoms[rows]))
    small = compress(full, size=6, select=Given(rows), weights=kind, rng=0)
    unit = np.exp(full.kernel.log_energy(2))
    assert lost == pytest.approx((full.distance(small.mean) ** 2 - full.norm() ** 2) / unit, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_holds_for_signed_means(monkeypatch, kind):
    weights = np.random.default_rng(1).normal(size=60) + 0.5
    full = KernelMean(cloud(60), weights, Gaussian(0.7))
    problem = module._Problem(full.kernel, kind, full.mass, 6, 0.1, counted)
    value, _ = objective_of(
        monkeypatch, problem, lambda c: full.kernel.product_slopes(full.atoms, weights, c), full.atoms[:6] + 0.05
    )
    assert_gradient(value, 0.2 * np.random.default_rng(0).normal(size=12))


@KERNEL
def test_a_corrected_model_says_what_the_data_say_where_it_was_corrected(monkeypatch, kernel):
    full = KernelMean.from_samples(cloud(200), KERNELS[kernel])
    model = surrogate(full, 40, np.random.default_rng(0))
    start = full.atoms[:6] + 0.05
    slopes = full.kernel.product_slopes(full.atoms, full.weights, start)
    corrected = module._corrected(full.kernel, model, start, *module._lacking(full.kernel, model, start, slopes))
    for got, expected in zip(corrected(start), slopes, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    problem = module._Problem(full.kernel, "free", 1.0, 6, 0.1, counted)
    value, moves = objective_of(monkeypatch, problem, corrected, start, 0.7)
    assert_gradient(value, moves)
    assert_gradient(value, 0.2 * np.random.default_rng(0).normal(size=12))


def test_a_descent_keeps_the_best_place_that_it_saw():
    full = KernelMean.from_samples(cloud(60), Gaussian(0.7))
    seen = []

    def slopes(places):
        found = full.kernel.product_slopes(full.atoms, full.weights, places)
        seen.append((problem.error(places, found[0]), places))
        return found

    problem = module._Problem(full.kernel, "free", 1.0, 6, 0.1, counted)
    places = problem.descend(slopes, full.atoms[:6].copy(), 20)
    least, best = min(seen, key=lambda pair: pair[0])
    np.testing.assert_array_equal(places, best)
    assert problem.error(places, full.kernel.product_sums(full.atoms, full.weights, places)) == pytest.approx(least, rel=1e-12)
    assert least < seen[0][0]


@pytest.mark.parametrize("bound", [0.01, 0.3])
def test_moves_stay_within_their_bound_in_the_coordinates_of_the_kernel(bound):
    kernel = Gaussian(0.7, covariance=COVARIANCE)
    full = KernelMean.from_samples(cloud(60), kernel)
    start = full.atoms[:6].copy()
    problem = module._Problem(kernel, "free", 1.0, 6, 0.1, counted)
    places = problem.descend(lambda c: kernel.product_slopes(full.atoms, full.weights, c), start, 30, bound)
    moves = (places - start) @ kernel.plain_frame(start).matrix
    assert np.abs(moves).max() <= bound * (1 + 1e-9)
    assert np.abs(moves).max() == pytest.approx(bound)


# -- never worse -----------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@KERNEL
@pytest.mark.parametrize("kind", WEIGHTINGS)
def test_moved_atoms_lose_less(kernel, kind):
    full = KernelMean.from_samples(cloud(200), KERNELS[kernel])
    plain, moved = assert_no_worse(full, size=8, weights=kind)
    assert moved.certificate.relative_error == pytest.approx(true_error(full, moved), rel=1e-5)
    assert full.distance(moved.mean) <= moved.certificate.bound * (1 + 1e-9)
    if kind in KINDS:
        assert moved.certificate.relative_error < 0.8 * plain.certificate.relative_error
        assert moved.indices is None
        assert moved.remark.startswith("moved by L-BFGS, at most 15 steps: error ")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    d=st.integers(1, 3),
    shape=st.sampled_from(["cloud", "coarse", "line", "repeated"]),
    share=st.floats(0, 1),
    signed=st.booleans(),
    kind=st.sampled_from(KINDS),
    kernel=st.sampled_from([name for name in KERNELS if name != "oblique"]),
    select=st.sampled_from(["kcenter", "random", "kmeans", "greedy"]),
)
def test_moving_never_makes_any_small_cloud_worse(seed, n, d, shape, share, signed, kind, kernel, select):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if shape == "coarse":
        X = rng.integers(0, 3, size=(n, d)).astype(float)
    elif shape == "line":
        X = X[:, :1] * np.linspace(1, 2, d)
    elif shape == "repeated":
        X = X[rng.integers(0, n, size=n)]
    w = rng.normal(size=n) + 1 if signed else rng.integers(0, 4, size=n).astype(float)
    if not w.sum() > 0.1:
        w = np.ones(n)
    assert_no_worse(KernelMean(X, w / n, KERNELS[kernel]), size=1 + int(share * (n - 1)), weights=kind, select=select)


@KERNEL
def test_atoms_that_are_all_the_points_stay(kernel):
    full = KernelMean.from_samples(3 * cloud(12), KERNELS[kernel])
    _, moved = assert_no_worse(full, size=12)
    assert moved.certificate.relative_error < 1e-6


def test_a_single_point_stays():
    full = KernelMean.from_samples([[1.0, 2.0]], Gaussian(1.0))
    moved = compress(full, size=1, refine=True, rng=0)
    np.testing.assert_array_equal(moved.mean.atoms, [[1.0, 2.0]])
    assert moved.remark.startswith("not moved: L-BFGS, ")
    assert moved.indices.tolist() == [0]


@KERNEL
def test_atoms_that_start_together_end_finite(kernel):
    """Places that coincide, or lie on a line with hardly a gap: the ridge keeps the weights in hand."""
    full = KernelMean.from_samples(cloud(200), KERNELS[kernel])
    lost = compress(full, size=3, rng=0).certificate.relative_error
    for start in (np.repeat(full.atoms[:2], 3, axis=0), full.atoms[:1] + np.linspace(0, 1e-7, 6)[:, None]):
        found = module.refine(full, start, "free", lost**2, 10, np.random.default_rng(0))
        assert np.isfinite(found.points).all()
        problem = module._Problem(full.kernel, "free", 1.0, len(start), 0.1, counted)
        before, after = (problem.error(c, full.kernel.product_sums(full.atoms, full.weights, c)) for c in (start, found.points))
        assert after <= before


def test_atoms_far_from_every_point_stay_where_they_are():
    """No gradient reaches them."""
    full = KernelMean.from_samples(cloud(50), Gaussian(0.5))
    start = np.array([[0.0, 0.0], [500.0, 500.0]])
    found = module.refine(full, start, "free", 0.5, 10, np.random.default_rng(0))
    np.testing.assert_array_equal(found.points[1], start[1])
    assert np.isfinite(found.points).all()


# -- rounds on a stand-in --------------------------------------------------------------------------------------------


@pytest.fixture
def small_is_small(monkeypatch):
    """Some hundred points are many."""
    monkeypatch.setattr(module, "SMALL", 300)
    monkeypatch.setattr(module, "SURROGATE_ATOMS", (120, 120))


@pytest.mark.covering_cases
@pytest.mark.parametrize("kernel", ["gaussian", "gaussian l2", "oblique", "laplacian l2", "student"])
@pytest.mark.parametrize("kind", KINDS)
def test_rounds_on_a_stand_in_lower_the_error_of_the_data(small_is_small, kernel, kind):
    full = KernelMean.from_samples(cloud(900), KERNELS[kernel])
    plain, moved = (compress(full, size=8, weights=kind, rng=0, refine=refine) for refine in (False, 40))
    assert "at most 40 steps on a compression of" in moved.remark
    assert moved.remark.split(": error")[0].endswith("atoms, corrected by the data 5 times")
    assert moved.certificate.relative_error == pytest.approx(true_error(full, moved), rel=1e-5)
    assert moved.certificate.relative_error < 0.8 * plain.certificate.relative_error


def test_rounds_come_close_to_steps_on_the_data(small_is_small, monkeypatch):
    full = KernelMean.from_samples(cloud(900), Gaussian(0.7))
    by_rounds = compress(full, size=10, rng=0, refine=60).certificate.relative_error
    monkeypatch.setattr(module, "SMALL", 10**6)
    on_data = compress(full, size=10, rng=0, refine=60).certificate.relative_error
    assert by_rounds < 1.25 * on_data


@pytest.mark.parametrize("seed", range(6))
def test_rounds_never_end_worse(small_is_small, seed):
    rng = np.random.default_rng(seed)
    kernel = [Gaussian(0.25), Laplacian(0.8), Student(0.5)][seed % 3]
    w = rng.normal(size=400) + 0.5 if seed % 2 else None
    full = KernelMean.from_samples(cloud(400, 3, seed), kernel) if w is None else KernelMean(cloud(400, 3, seed), w / 400, kernel)
    for size in (1, 5, 40):
        assert_no_worse(full, size=size)


def test_a_stand_in_that_is_too_coarse_is_not_believed(small_is_small):
    """At a small bandwidth 120 atoms say nothing of 900 points."""
    moved = compress(cloud(900), Gaussian(0.02), size=8, rng=0, refine=4)
    assert "on a compression" not in moved.remark
    assert "at most 4 steps" in moved.remark


def test_a_round_that_ends_higher_is_undone_and_bound_tighter(small_is_small, monkeypatch):
    full = KernelMean.from_samples(cloud(900), Gaussian(0.7))
    bounds = []

    def astray(self, slopes, start, steps, bound=None):
        bounds.append(bound)
        return start + 100.0

    monkeypatch.setattr(module._Problem, "descend", astray)
    start = np.asarray(full.atoms[:8], float)
    found = module.refine(full, start, "free", 0.1, 40, np.random.default_rng(0))
    np.testing.assert_array_equal(found.points, start)
    np.testing.assert_allclose(np.array(bounds[1:]) / bounds[:-1], 0.25)
    assert len(bounds) == module.ROUNDS


def test_a_stand_in_of_a_small_mean_is_the_mean():
    full = KernelMean.from_samples(cloud(50), Gaussian(0.7))
    assert surrogate(full, 50, np.random.default_rng(0)) is full
    assert distance_from(full, full, np.random.default_rng(0)) <= 1e-6


@pytest.mark.parametrize("n", [600, 5000])
def test_the_distance_from_a_stand_in_is_measured(n):
    full = KernelMean.from_samples(cloud(n), Gaussian(0.5))
    other = surrogate(full, 60, np.random.default_rng(0))
    true = full.distance(other) / other.norm()
    assert other.size <= 60
    assert true * 0.98 <= distance_from(full, other, np.random.default_rng(1)) <= 2 * true


# -- goals -----------------------------------------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("tol", [0.2, 0.03])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tolerance_takes_fewer_atoms_where_they_may_move(tol, kind):
    full = KernelMean.from_samples(cloud(800), Gaussian("median"))
    plain, moved = (compress(full, tol=tol, weights=kind, rng=0, refine=refine) for refine in (False, True))
    assert moved.reached
    assert moved.certificate.interval[1] <= tol
    assert true_error(full, moved) <= tol
    assert moved.certificate.relative_error == pytest.approx(true_error(full, moved), rel=1e-4)
    assert moved.size < plain.size
    assert moved.path.relative_errors[-1] == pytest.approx(moved.certificate.relative_error, rel=1e-9)


def test_a_tolerance_out_of_reach_is_said_so():
    with pytest.warns(NotReachedWarning, match="tol=0.001.*10"):
        moved = compress(cloud(300), Gaussian(0.2), tol=0.001, max_size=10, refine=3, rng=0)
    assert moved.size == 10
    assert not moved.reached


def test_a_tolerance_that_one_atom_meets_takes_one():
    moved = compress(cloud(300), Gaussian(50.0), tol=0.1, refine=True, rng=0)
    assert moved.size == 1
    assert moved.reached


def test_a_plateau_moves_the_atoms_that_it_found():
    X = cloud(500)
    plain, moved = (compress(X, Gaussian(0.8), plateau=1e-3, rng=0, refine=refine) for refine in (False, True))
    assert moved.size == plain.size
    assert moved.reached
    assert moved.certificate.relative_error < plain.certificate.relative_error


def test_the_atoms_of_shadows_can_be_moved():
    X = cloud(500)
    plain, moved = (compress(X, Gaussian(0.8), select="shadow", rng=0, refine=refine) for refine in (False, 5))
    assert moved.reached
    assert moved.certificate.relative_error <= plain.certificate.relative_error


def test_the_number_of_steps_is_the_one_given(monkeypatch):
    asked = []
    plain = scipy.optimize.minimize
    monkeypatch.setattr(scipy.optimize, "minimize", lambda *a, **k: (asked.append(k["options"]["maxiter"]), plain(*a, **k))[1])
    for steps in (1, 3, np.int64(7)):
        assert f"at most {steps} steps" in compress(cloud(), Gaussian(0.5), size=5, refine=steps, rng=0).remark
    assert asked == [1, 3, 7]


def test_more_steps_lose_no_more():
    errors = [compress(cloud(), Gaussian(0.5), size=8, refine=steps, rng=0).certificate.relative_error for steps in (1, 5, 25, 100)]
    assert np.all(np.diff(errors) <= 1e-9)


def test_without_a_number_there_are_as_many_steps_as_take_their_time():
    full = KernelMean.from_samples(cloud(2000, 5), Gaussian("median"))
    prices = [module._price_of_step(full, size, "auto", "free") for size in (5, 500, 1000, 2000, 5000)]
    steps = [module._steps_within_time(price) for price in prices]
    assert np.all(np.diff(prices) > 0)
    assert np.all(np.diff(steps) <= 0)
    assert (steps[0], steps[-1]) == (module.MAX_STEPS, module.MIN_STEPS)
    assert module._price_of_step(full, 500, "double", "free") > prices[1]
    assert module._price_of_step(full, 500, "auto", "simplex") > prices[1]
    assert f"L-BFGS, at most {steps[0]} steps" in compress(full, size=5, refine=True, rng=0).remark


def test_steps_that_nobody_would_wait_for_are_taken_only_if_asked_for(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    stays, moves = (compress(cloud(), Gaussian(0.5), size=8, refine=refine, rng=0) for refine in (True, 5))
    assert stays.remark.startswith("not moved by L-BFGS, since a step takes about ")
    assert stays.indices is not None
    assert moves.remark.startswith("moved by L-BFGS, at most 5 steps")


def test_moving_tells_its_progress():
    seen = []
    compress(cloud(), Gaussian(0.5), size=8, refine=6, rng=0, progress=lambda *each: seen.append(each))
    moving = [(done, total) for stage, done, total in seen if stage == "moving"]
    assert moving == [(k, 6) for k in range(1, len(moving) + 1)]
    assert 1 <= len(moving) <= 6


def test_timings_name_the_moving():
    assert "refine" in compress(cloud(), Gaussian(0.5), size=8, refine=6, rng=0).timings
