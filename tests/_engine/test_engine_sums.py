"""The sums of the engine are those of the definition, for every kernel, dimension, precision, memory layout and thread count."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import reduset
import reference
from reduset import Gaussian, Laplacian, Student
from reduset._engine import profile as limits
from reduset._engine import sums
from reduset._engine.arithmetic import exp_minus, log_of, turn
from reduset._engine.distances import distances_at, to_distances
from reduset._engine.farthest import FarthestFirst
from reduset._engine.fourier import fourier_sums
from reduset._engine.neighbours import nearest
from reduset._engine.profile import Frame, Profile

DIMENSIONS = (1, 2, 3, 5, 16, 17, 50, 100)
BUMPS = {
    "gaussian": lambda h: Gaussian(h),
    "laplacian": lambda h: Laplacian(h),
    "cityblock": lambda h: Laplacian(h, metric="cityblock"),
    "cauchy": lambda h: Student(h),
    "student": lambda h: Student(h, exponent=2.5),
}
bumps = pytest.mark.parametrize("family", BUMPS)
dimensions = pytest.mark.parametrize("d", DIMENSIONS)


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def typical(family, d):
    """A kernel as wide as a normal cloud, so that no sum is negligible."""
    return BUMPS[family](float(d) if family == "cityblock" else 2 * math.sqrt(d))


def relative(got, expected):
    return np.max(np.abs(got - expected) / np.abs(expected))


@pytest.fixture(autouse=True)
def _default_threads():
    yield
    reduset.set_threads(None)


@pytest.fixture
def eager_single(monkeypatch):
    """Small problems, too, are worth single precision."""
    monkeypatch.setattr(limits, "MIN_SINGLE_PAIRS", 0)


# -- arithmetic -----------------------------------------------------------------------------------------------------------------


@njit
def _exp_minus_each(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = exp_minus(x[i])
    return out


@njit
def _log_each(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = log_of(x[i])
    return out


@njit
def _turn_each(t):
    out = np.empty((len(t), 2))
    for i in range(len(t)):
        out[i, 0], out[i, 1] = turn(t[i])
    return out


@njit
def _gaps_of_some(gaps, Z, query, t):
    to_distances(gaps, Z, 2, Z.shape[1], 33, query, t)


@pytest.mark.parametrize(("dtype", "limit", "accuracy"), [(np.float32, 87.0, 2e-7), (np.float64, 708.0, 1e-15)])
def test_exp_minus_is_the_exponential(dtype, limit, accuracy):
    x = np.concatenate([np.linspace(0, limit - 0.01, 20_001), np.geomspace(1e-30, limit - 0.01, 20_001)]).astype(dtype)
    expected = np.array([math.exp(-v) for v in x.astype(np.float64)])
    assert relative(_exp_minus_each(x).astype(np.float64), expected) < accuracy


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 87.0), (np.float64, 708.0)])
def test_exp_minus_underflows_to_exactly_zero(dtype, limit):
    x = np.array([limit, limit + 1, 1e4, 1e30, np.finfo(dtype).max, np.inf], dtype)
    assert np.all(_exp_minus_each(x) == 0)


def test_exp_minus_of_zero_is_one():
    assert _exp_minus_each(np.zeros(1))[0] == 1
    assert _exp_minus_each(np.zeros(1, np.float32))[0] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_of_is_the_logarithm(dtype):
    eps = float(np.finfo(dtype).eps)
    x = np.concatenate([1 + np.geomspace(eps, 1, 20_001), np.geomspace(1, 0.99 * float(np.finfo(dtype).max), 20_001)]).astype(dtype)
    expected = np.array([math.log(v) for v in x.astype(np.float64)])
    assert np.all(np.abs(_log_each(x) - expected) <= 2 * eps * np.maximum(expected, eps))


def test_log_of_one_is_zero():
    assert _log_each(np.ones(1))[0] == 0
    assert _log_each(np.ones(1, np.float32))[0] == 0


def test_turn_is_cosine_and_sine_of_a_whole_circle():
    t = np.concatenate([np.linspace(-3, 3, 24_001), np.geomspace(1e-300, 1, 1001), 12_345.0 + np.linspace(0, 1, 257)])
    inside = [v - round(v) for v in t]  # exact, so that the argument of cos and sin is small
    expected = np.array([(math.cos(2 * math.pi * v), math.sin(2 * math.pi * v)) for v in inside])
    assert np.max(np.abs(_turn_each(t) - expected)) < 2e-15


def test_turn_keeps_the_quarters():
    got = _turn_each(np.array([0.0, 0.25, 0.5, 0.75, 1.0, -0.25, 1e15]))
    expected = [[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0], [0, -1], [1, 0]]
    assert np.max(np.abs(got - expected)) < 5e-16


@pytest.mark.covering_cases
@dimensions
@pytest.mark.parametrize("metric", [0, 1, 2])
def test_gaps_are_the_sums_over_coordinates(metric, d):
    X, q = cloud(37, d), cloud(1, d, 1)[0]
    u = np.abs(X - q)
    expected = [(u**2).sum(1), u.sum(1), (u - np.log1p(u)).sum(1)][metric]
    t = np.empty(40)
    _gaps_of_some(distances_at(metric, np.float64), np.ascontiguousarray(X.T), q, t)
    assert np.allclose(t[:33], expected[2:35], rtol=1e-14, atol=1e-15 * d)


def test_depths_of_a_table_follow_its_spline_and_then_a_power_law():
    knots = np.linspace(0, 3, 301)
    table = np.stack([knots**2, 2 * knots], axis=1)  # a parabola, which a cubic keeps exactly
    profile = Profile(family=3, table=table, step=0.01)
    x = np.linspace(0, 5, 97)
    t = np.expm1(x) ** 2
    profile.to_exponents(t)
    assert np.allclose(t, np.where(x <= 3, x**2, 9 + 6 * (x - 3)), rtol=1e-11, atol=1e-12)


# -- frames ---------------------------------------------------------------------------------------------------------------------


def test_a_frame_around_points_is_centred_in_their_box():
    X = np.array([[1e6, -2.0], [1e6 + 4, 6.0], [1e6 + 1, 0.0]])
    assert Frame.around(X, 0.5).apply(X).tolist() == [[-1, -2], [1, 2], [-0.5, -1]]


def test_a_frame_subtracts_before_it_rounds():
    X = np.array([[2**24 + 1], [2**24 + 3]], np.int64)
    assert Frame.around(X, 1.0).apply(X).tolist() == [[-1], [1]]
    wide = np.array([[0], [255]], np.uint8)
    assert Frame.around(wide, 1.0).apply(wide).tolist() == [[-127.5], [127.5]]


# -- sums against the definition ------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@pytest.mark.fast_cases(30)
@bumps
@dimensions
def test_double_sums_are_those_of_the_definition(family, d):
    X, Q, kernel = cloud(700, d), cloud(23, d, 1), typical(family, d)
    w = np.random.default_rng(2).uniform(size=700)
    assert relative(kernel.value_sums(X, w, Q, "double"), reference.value_sums(kernel, X, w, Q)) < 1e-12


@pytest.mark.covering_cases
@pytest.mark.fast_cases(31)
@bumps
@dimensions
def test_single_sums_are_within_2e_6(family, d):
    X, Q, kernel = cloud(700, d), cloud(23, d, 1), typical(family, d)
    w = np.random.default_rng(2).uniform(size=700)
    assert relative(kernel.value_sums(X, w, Q, "single"), reference.value_sums(kernel, X, w, Q)) < 2e-6


@pytest.mark.covering_cases
@pytest.mark.parametrize("family", ["gaussian", "laplacian", "cityblock", "cauchy", "student"])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_product_sums_in_l2_are_those_of_the_definition(family, d):
    kernel = {
        "gaussian": Gaussian(1.3, space="l2"),
        "laplacian": Laplacian(1.3, space="l2"),
        "cityblock": Laplacian(1.3, metric="cityblock", space="l2"),
        "cauchy": Student(1.3, space="l2"),
        "student": Student(1.3, exponent=2.5, space="l2"),
    }[family]
    X, Q = cloud(300, d), cloud(17, d, 1)
    w = np.random.default_rng(2).uniform(size=300)
    for precision in ("double", "auto", "single"):  # a table has no single version: double stands in
        accuracy = 2e-6 if precision == "single" and family in ("gaussian", "cauchy") else 1e-11
        assert relative(kernel.product_sums(X, w, Q, precision), reference.product_sums(kernel, X, w, Q)) < accuracy


@pytest.mark.covering_cases
@bumps
@dimensions
def test_gram_holds_the_kernel_of_every_pair(family, d):
    X, Y, kernel = cloud(70, d), cloud(23, d, 1), typical(family, d)
    assert relative(kernel.product_gram(X, Y), reference.bump(kernel, X, Y)) < 1e-12


@bumps
def test_gram_of_points_with_themselves_has_a_unit_diagonal_and_is_symmetric(family):
    K = typical(family, 3).product_gram(cloud(130, 3), cloud(130, 3))
    assert np.all(np.diagonal(K) == 1)
    assert np.array_equal(K, K.T)


@pytest.mark.covering_cases
@bumps
@pytest.mark.parametrize("d", [1, 2, 3, 5, 17, 50])
def test_gradients_are_those_of_the_formula(family, d):
    X, Q, kernel = cloud(60, d), cloud(7, d, 1), typical(family, d)
    w = np.random.default_rng(2).normal(size=60)
    expected = reference.gradient_sums(kernel, X, w, Q)
    assert np.max(np.abs(kernel.gradient_sums(X, w, Q) - expected)) < 1e-12 * np.abs(w).sum()


@pytest.mark.covering_cases
@bumps
@pytest.mark.parametrize("d", [1, 2, 5, 17])
def test_gradients_are_the_limits_of_differences(family, d):
    X, Q, kernel = cloud(60, d), cloud(4, d, 1), typical(family, d)
    w = np.random.default_rng(2).normal(size=60)
    step = 1e-6 * kernel.width
    got = kernel.gradient_sums(X, w, Q)
    for j in range(d):
        side = step * np.eye(d)[j]
        difference = kernel.value_sums(X, w, Q + side, "double") - kernel.value_sums(X, w, Q - side, "double")
        assert np.allclose(got[:, j], difference / (2 * step), rtol=0, atol=1e-8 * np.abs(w).sum() / kernel.width)


@bumps
def test_the_gradient_at_a_lone_atom_is_zero(family):
    x = np.array([[0.3, -1.0]])
    assert np.array_equal(typical(family, 2).gradient_sums(x, np.ones(1), x), np.zeros((1, 2)))


# -- automatic precision --------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@bumps
@pytest.mark.parametrize("d", [1, 2, 5, 16, 50, 100])
def test_auto_is_within_1e_5_even_in_the_tails(eager_single, family, d):
    X, kernel = cloud(600, d), typical(family, d)
    outward = cloud(20, d, 1)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    Q = outward * np.linspace(0, 12 * kernel.width, 20)[:, None]
    w = np.random.default_rng(2).uniform(size=600)
    assert relative(kernel.value_sums(X, w, Q, "auto"), reference.value_sums(kernel, X, w, Q)) < 1e-5


@bumps
@pytest.mark.parametrize("d", [1, 3, 50])
def test_auto_is_within_1e_5_where_the_cloud_is_thousands_of_bandwidths_wide(eager_single, family, d):
    rng = np.random.default_rng(0)
    kernel = BUMPS[family](1.0)
    X = (rng.uniform(-4000, 4000, (12, 1, d)) + rng.normal(size=(12, 40, d)) / math.sqrt(d)).reshape(-1, d)
    Q = X[::37] + 0.3 / math.sqrt(d)
    w = rng.uniform(size=len(X))
    assert relative(kernel.value_sums(X, w, Q, "auto"), reference.value_sums(kernel, X, w, Q)) < 1e-5


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(1.0),
        Laplacian(1.0),
        Laplacian(1.0, metric="cityblock"),
        Student(1.0),
        Student(1.0, exponent=2.5),
        Student(1.0, exponent=60.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("d", [1, 4, 16, 64])
def test_auto_is_within_1e_5_for_two_atoms_far_apart(eager_single, kernel, d):
    """Nothing averages out here: one rounding error is the error of the sum. The atoms are as far as single is taken at all."""
    reach = 32.0 if d < sums.BLAS_FROM or reference.in_cityblock(kernel) else math.sqrt(0.99 * sums.BLAS_REACH[np.float32] / d)
    reach /= kernel.bump(d).stretch
    rng = np.random.default_rng(0)
    w = np.ones(2)
    for offset in (0.1, 0.3, 1.0, 2.0, 4.0, 5.2):
        atom = rng.uniform(0.8, 1.0, (1, d)) * reach
        X = np.concatenate([atom, -atom])
        inward = np.abs(rng.normal(size=(60, d)))
        length = inward.sum(axis=1) if reference.in_cityblock(kernel) else np.linalg.norm(inward, axis=1)
        Q = atom - offset * inward / length[:, None]
        assert relative(kernel.value_sums(X, w, Q, "auto"), reference.value_sums(kernel, X, w, Q)) < 1e-5


@pytest.mark.parametrize("exponent", [20.0, 60.0])
def test_auto_is_within_1e_5_for_a_steep_student(eager_single, exponent):
    kernel, X, Q = Student(20.0, exponent=exponent), 20 * cloud(500, 3), 20 * cloud(20, 3, 1)
    w = np.ones(500)
    assert relative(kernel.value_sums(X, w, Q, "auto"), reference.value_sums(kernel, X, w, Q)) < 1e-5


@bumps
@pytest.mark.parametrize("d", [2, 50])
def test_auto_is_within_1e_5_of_what_signed_weights_leave(eager_single, family, d):
    X, Q, kernel = cloud(600, d), cloud(20, d, 1), typical(family, d)
    w = np.random.default_rng(2).normal(size=600)
    w -= w.mean()
    assert relative(kernel.value_sums(X, w, Q, "auto"), reference.value_sums(kernel, X, w, Q)) < 1e-5


def test_auto_is_within_1e_5_on_a_problem_large_enough_to_take_single_by_itself():
    X, kernel = cloud(16_500, 3), Gaussian(0.5)
    Q = cloud(300, 3, 1) * np.linspace(0, 3, 300)[:, None]
    w = np.full(len(X), 1 / len(X))
    got = kernel.value_sums(X, w, Q, "auto")
    assert relative(got, reference.value_sums(kernel, X, w, Q)) < 1e-5
    assert not np.array_equal(got, kernel.value_sums(X, w, Q, "double"))  # it did take single


@pytest.mark.parametrize("precision", ["single", "auto", "double"])
@pytest.mark.parametrize("scale", [1e-200, 1e-45, 1e30, 1e200])
def test_the_scale_of_the_weights_comes_out_of_the_sum(eager_single, precision, scale):
    X, Q, kernel = cloud(300, 2), cloud(10, 2, 1), Gaussian(1.0)
    w = np.random.default_rng(2).uniform(size=300)
    expected = reference.value_sums(kernel, X, w, Q)
    assert relative(kernel.value_sums(X, w * scale, Q, precision) / scale, expected) < 2e-6


@pytest.mark.parametrize("precision", ["single", "auto", "double"])
def test_sums_of_zero_weights_are_zero(eager_single, precision):
    assert np.all(Gaussian(1.0).value_sums(cloud(9, 2), np.zeros(9), cloud(3, 2), precision) == 0)


def test_a_query_beyond_every_bump_gives_zero():
    assert np.all(Gaussian(1.0).value_sums(cloud(9, 2), np.ones(9), np.full((2, 2), 1e8), "auto") == 0)


# -- shift, layout, blocks, threads ---------------------------------------------------------------------------------------------


def dyadic(n, d, seed=0):
    """Multiples of 2⁻¹⁰: a shift by a whole number is exact."""
    return np.rint(cloud(n, d, seed) * 1024) / 1024


@pytest.mark.covering_cases
@bumps
@pytest.mark.parametrize("d", [1, 3, 50])
@pytest.mark.parametrize("precision", ["single", "double", "auto"])
def test_a_shift_by_a_million_bandwidths_changes_nothing(family, d, precision):
    X, Q, kernel = dyadic(500, d), dyadic(20, d, 1), BUMPS[family](1.0)
    shift = 1e6 * np.where(np.arange(d) % 2, -1, 1)
    w = np.ones(500)
    assert np.allclose(
        kernel.value_sums(X + shift, w, Q + shift, precision), kernel.value_sums(X, w, Q, precision), rtol=1e-9, atol=0
    )


@bumps
def test_a_shift_changes_no_gradient_logarithm_or_gram(family):
    X, Q, kernel = dyadic(200, 3), dyadic(10, 3, 1), BUMPS[family](1.0)
    w = np.ones(200)
    S, R = X + 1e6, Q + 1e6
    assert np.allclose(kernel.gradient_sums(S, w, R), kernel.gradient_sums(X, w, Q), rtol=1e-9, atol=1e-12)
    assert np.allclose(kernel.log_sums(S, w, R), kernel.log_sums(X, w, Q), rtol=1e-9, atol=1e-12)
    assert np.allclose(kernel.product_gram(S, R), kernel.product_gram(X, Q), rtol=1e-9, atol=0)


@pytest.mark.covering_cases
@pytest.mark.parametrize("family", ["gaussian", "laplacian", "cauchy"])
@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1025])
@pytest.mark.parametrize("d", [3, 50])
def test_tiles_do_not_show(family, n, d):
    X, Q, kernel = cloud(n, d), cloud(5, d, 1), typical(family, d)
    w = np.random.default_rng(2).uniform(size=n)
    assert relative(kernel.value_sums(X, w, Q, "double"), reference.value_sums(kernel, X, w, Q)) < 1e-12


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(("n", "d"), [(16_383, 2), (16_384, 2), (16_385, 2), (16_385, 40)])
def test_blocks_of_points_do_not_show(n, d):
    X, Q, kernel = cloud(n, d), cloud(3, d, 1), typical("gaussian", d)
    w = np.random.default_rng(2).uniform(size=n)
    assert relative(kernel.value_sums(X, w, Q, "double"), reference.value_sums(kernel, X, w, Q)) < 1e-12
    assert np.allclose(kernel.log_sums(X, w, Q), np.log(reference.value_sums(kernel, X, w, Q)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("q", [1, 511, 513, 4097])
def test_blocks_of_queries_do_not_show(q):
    X, Q, kernel = cloud(30, 2), cloud(q, 2, 1), Laplacian(1.0)
    assert relative(kernel.value_sums(X, np.ones(30), Q, "double"), reference.value_sums(kernel, X, np.ones(30), Q)) < 1e-12


@given(st.integers(1, 1100), st.integers(1, 30), st.integers(1, 6), st.integers(0, 2**16))
@settings(max_examples=25, deadline=None)
def test_sums_of_any_shape_are_those_of_the_definition(n, q, d, seed):
    X, Q = cloud(n, d, seed), cloud(q, d, seed + 1)
    w = np.random.default_rng(seed).uniform(0.1, 1, size=n)
    for family in BUMPS:
        kernel = typical(family, d)
        assert relative(kernel.value_sums(X, w, Q, "double"), reference.value_sums(kernel, X, w, Q)) < 1e-12


@pytest.mark.covering_cases
@pytest.mark.parametrize("family", ["gaussian", "laplacian", "cauchy", "student"])
@pytest.mark.parametrize("d", [40, 50, 101])
@pytest.mark.parametrize(("precision", "accuracy"), [("double", 1e-12), ("single", 1e-5)])
def test_matrix_products_and_tiles_agree(monkeypatch, family, d, precision, accuracy):
    X, kernel = cloud(900, d), typical(family, d)
    Q = np.concatenate([cloud(20, d, 1), X[:5], X[:5] + 1e-7])  # some queries on points, where a difference of squares cancels
    w = np.random.default_rng(2).uniform(size=900)
    by_blas = kernel.value_sums(X, w, Q, precision)
    monkeypatch.setattr(sums, "BLAS_FROM", 10**9)
    assert relative(by_blas, kernel.value_sums(X, w, Q, precision)) < accuracy


@pytest.mark.parametrize("family", ["gaussian", "laplacian", "cauchy"])
def test_lone_atoms_in_many_dimensions_keep_their_digits(family):
    """One bump, one query, far from the centre: what cancels in a matrix product is not averaged away."""
    d, kernel = 64, BUMPS[family](1.0)
    X = cloud(20, d) * 3
    for gap in (0.0, 1e-9, 1e-4, 0.1, 2.0):
        Q = X + gap * np.eye(d)[0]
        w = np.ones(20)
        assert relative(kernel.value_sums(X, w, Q, "double"), reference.value_sums(kernel, X, w, Q)) < 1e-12


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.inf)
    wide[::2, ::3] = X
    return wide[::2, ::3]


LAYOUTS = {
    "read-only": read_only,
    "strided": strided,
    "reversed": lambda X: X[::-1].copy()[::-1],
    "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("d", [3, 41])
def test_memory_layout_changes_nothing(layout, d):
    X, Q, kernel = cloud(300, d), cloud(9, d, 1), typical("gaussian", d)
    w = np.random.default_rng(2).uniform(size=300)
    laid, asked, weighed = LAYOUTS[layout](X), LAYOUTS[layout](Q), read_only(np.repeat(w, 2))[::2]
    for got, expected in (
        (kernel.value_sums(laid, weighed, asked), kernel.value_sums(X, w, Q)),
        (kernel.gradient_sums(laid, weighed, asked), kernel.gradient_sums(X, w, Q)),
        (kernel.log_sums(laid, weighed, asked), kernel.log_sums(X, w, Q)),
        (kernel.product_gram(laid, asked), kernel.product_gram(X, Q)),
        (fourier_sums(laid, weighed, Q, Frame.around(X, 1.0)), fourier_sums(X, w, Q, Frame.around(X, 1.0))),
    ):
        assert np.allclose(got, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32])
@pytest.mark.parametrize("d", [3, 41])
def test_integers_and_float32_are_taken_at_their_value(dtype, d):
    rng = np.random.default_rng(0)
    X, Q = rng.integers(0, 256, (200, d)).astype(dtype), rng.integers(0, 256, (9, d)).astype(dtype)
    kernel, w = Gaussian(60.0 * math.sqrt(d)), np.ones(200)
    expected = reference.value_sums(kernel, X, w, Q)
    assert relative(kernel.value_sums(X, w, Q, "double"), expected) < 1e-12
    assert relative(kernel.value_sums(X, w, Q, "single"), expected) < 2e-6
    assert np.allclose(kernel.gradient_sums(X, w, Q), reference.gradient_sums(kernel, X, w, Q), rtol=1e-10, atol=1e-12)


def test_inputs_are_not_written_to():
    X, Q, w = cloud(300, 3), cloud(9, 3, 1), np.ones(300)
    kept = X.copy(), Q.copy(), w.copy()
    kernel = Gaussian(1.0)
    for precision in ("single", "double", "auto"):
        kernel.value_sums(X, w, Q, precision)
    kernel.gradient_sums(X, w, Q)
    kernel.log_sums(X, w, Q)
    assert all(np.array_equal(a, b) for a, b in zip((X, Q, w), kept, strict=True))


def _outcomes():
    small, wide = cloud(40_000, 3), cloud(20_000, 50)
    w = np.random.default_rng(2).uniform(size=40_000)
    kernel = Gaussian(1.0)
    frame = Frame.around(small, 1.0)
    order = FarthestFirst(cloud(60_000, 5), Frame.around(cloud(60_000, 5), 1.0), 7)
    order.extend(260)
    return [
        kernel.value_sums(small, w, small[:600], "double"),
        kernel.value_sums(small, w, small[:600], "single"),
        kernel.value_sums(small, w, small[:600], "auto"),
        kernel.gradient_sums(small, w, small[:50]),
        kernel.log_sums(small, w, small[:50]),
        kernel.product_gram(small[:300], small[:40]),
        Gaussian(7.0).value_sums(wide, w[:20_000], wide[:30], "double"),
        Gaussian(7.0).value_sums(wide, w[:20_000], wide[:30], "single"),
        fourier_sums(small, w, small[:60], frame),
        fourier_sums(wide, w[:20_000], wide[:20], Frame.around(wide, 0.1)),
        order.indices,
        order.covering_radii(),
        *nearest(small, small[:50], frame),
        *nearest(wide, wide[:20], Frame.around(wide, 1.0)),
    ]


def test_the_number_of_threads_changes_no_bit():
    reduset.set_threads(1)
    expected = _outcomes()
    for count in (2, 3):
        reduset.set_threads(count)
        for got, wanted in zip(_outcomes(), expected, strict=True):
            assert np.array_equal(got, wanted)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none_is_refused(count):
    with pytest.raises(ValueError, match="count must be a whole number of at least 1"):
        reduset.set_threads(count)


def test_the_number_of_threads_can_be_set_and_returned(monkeypatch):
    reduset.set_threads(3)
    assert reduset.get_threads() == 3
    reduset.set_threads(None)
    monkeypatch.setenv("REDUSET_NUM_THREADS", "5")
    assert reduset.get_threads() == 5
    monkeypatch.setenv("REDUSET_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="REDUSET_NUM_THREADS must be a whole number"):
        reduset.get_threads()


# -- logarithms -----------------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@bumps
@pytest.mark.parametrize("d", [1, 2, 5, 50])
@pytest.mark.parametrize("far", [0.0, 10.0, 1000.0])
def test_logarithms_do_not_underflow(family, d, far):
    X, kernel = cloud(700, d), typical(family, d)
    Q = cloud(9, d, 1) + far * kernel.width
    w = np.random.default_rng(2).uniform(size=700)
    got = kernel.log_sums(X, w, Q)
    assert np.all(np.isfinite(got))
    assert np.allclose(got, reference.log_sums(kernel, X, w, Q), rtol=1e-12, atol=1e-11)


def test_logarithms_do_not_depend_on_the_order_of_the_points():
    X = np.linspace(-3000, 3000, 40_001)[:, None]  # each tile is far from the others
    Q, w, kernel = np.array([[0.2], [2999.0], [-5000.0]]), np.ones(40_001), Gaussian(0.5)
    expected = reference.log_sums(kernel, X, w, Q)
    for order in (np.arange(40_001), np.arange(40_001)[::-1], np.random.default_rng(0).permutation(40_001)):
        assert np.allclose(kernel.log_sums(X[order], w, Q), expected, rtol=1e-12)


def test_points_without_weight_do_not_hide_those_with():
    X, kernel = np.array([[0.0], [100.0]]), Gaussian(1.0)
    assert kernel.log_sums(X, np.array([0.0, 1.0]), np.array([[0.0]]))[0] == pytest.approx(-5000.0)


@pytest.mark.parametrize("kernel", [Gaussian(1e-200), Laplacian(1e-200)])
def test_distances_whose_squares_overflow_are_too_far_to_count(kernel):
    X = np.ones((1500, 2))
    w = np.full(1500, 0.5)
    assert kernel.log_sums(X, w, np.zeros((1, 2)))[0] == -np.inf
    X[1400] = 0.0  # after whole tiles of the others
    assert kernel.log_sums(X, w, np.zeros((1, 2)))[0] == pytest.approx(np.log(0.5))


def test_the_logarithm_of_nothing_is_minus_infinity_and_of_less_is_not_a_number():
    X, q, kernel = np.array([[0.0], [0.0]]), np.array([[0.5]]), Gaussian(1.0)
    assert kernel.log_sums(X, np.array([1.0, -1.0]), q)[0] == -np.inf
    assert np.isnan(kernel.log_sums(X, np.array([1.0, -2.0]), q)[0])


# -- waves ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 5, 16, 17, 23, 24, 50])
def test_waves_are_those_of_the_definition(d):
    X, frequencies = cloud(700, d), 3 * cloud(30, d, 1)
    w = np.random.default_rng(2).normal(size=700)
    frame = Frame.around(X, 0.7)
    found = fourier_sums(X, w, frequencies, frame, rungs=3)
    assert found.shape == (len(frequencies), 3)
    for j in range(3):
        expected = reference.waves(frame.apply(X), w, 2**j * frequencies)
        assert np.max(np.abs(found[:, j] - expected)) < 1e-12 * np.abs(w).sum()


@pytest.mark.parametrize("d", [3, 24])
@pytest.mark.parametrize("release", [0, 1, 2])
def test_a_second_part_of_the_frequencies_doubles_only_after_its_rung(d, release):
    X, frequencies, late, w = cloud(600, d), 3 * cloud(20, d, 1), 2 * cloud(20, d, 3), np.random.default_rng(2).normal(size=600)
    frame = Frame.around(X, 0.7)
    found = fourier_sums(X, w, frequencies, frame, 4, late, release)
    for j in range(4):
        expected = reference.waves(frame.apply(X), w, 2**j * frequencies + 2.0 ** max(0, j - release) * late)
        assert np.max(np.abs(found[:, j] - expected)) < 1e-12 * np.abs(w).sum()


@pytest.mark.parametrize("n", [1, 511, 512, 513, 16_383, 16_384, 16_385])
@pytest.mark.parametrize("d", [2, 24])
def test_blocks_do_not_show_in_waves(n, d):
    X, frequencies, w = cloud(n, d), cloud(4, d, 1), np.random.default_rng(2).uniform(size=n)
    expected = np.exp(1j * X @ frequencies.T).T @ w
    got = fourier_sums(X, w, frequencies, Frame(np.zeros(d), 1.0))[:, 0]
    assert np.max(np.abs(got - expected)) < 1e-12 * w.sum()


def test_the_wave_of_frequency_zero_is_the_total_weight():
    w = np.random.default_rng(2).normal(size=100)
    got = fourier_sums(cloud(100, 2), w, np.zeros((1, 2)), Frame(np.zeros(2), 1.0))
    assert got[0] == pytest.approx(w.sum(), rel=1e-13)
    assert got[0].imag == 0


def test_how_many_partial_sums_are_held_does_not_show(monkeypatch):
    X, w, Q = cloud(5000, 7), np.full(5000, 0.01), cloud(90, 7, 1)
    kernel = Gaussian(2.0)
    expected = kernel.gradient_sums(X, w, Q)
    monkeypatch.setattr(sums, "PART_ENTRIES", 50)
    assert np.array_equal(kernel.gradient_sums(X, w, Q), expected)
