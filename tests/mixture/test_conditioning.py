"""Marginal and conditional densities of Gaussian sums: integrals are integrals, and the chain rule holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from cases import COVARIANCE
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student
from reduset.mixture.conditioning import conditional, marginal

SOLID = np.array([[1.3, 0.5, -0.3], [0.5, 0.9, 0.2], [-0.3, 0.2, 1.1]])
CASES = {
    "2-D": (2, None),
    "2-D oblique": (2, COVARIANCE),
    "3-D": (3, None),
    "3-D oblique": (3, SOLID),
    "3-D along the axes": (3, [0.5, 2.0, 1.0]),
}
CASE = pytest.mark.parametrize("case", CASES)
LINE = np.linspace(-14, 14, 281)  # trapezoids on it are exact to rounding for bumps as wide as these


def density(case="2-D", seed=0, n=9, signed=False, **options):
    d, covariance = CASES[case]
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1, size=n)
    if signed:
        weights[0] *= -0.1
    kernel = Gaussian(0.8, covariance=covariance, **{"normalized": True} | options)
    return KernelMean(rng.normal(size=(n, d)), weights / weights.sum(), kernel)


def integral_over(f, columns, d, at):
    """∫ f over these columns, the others fixed at the values given."""
    grids = np.meshgrid(*[LINE] * len(columns), indexing="ij")
    points = np.empty((grids[0].size, d))
    points[:, [j for j in range(d) if j not in columns]] = at
    points[:, columns] = np.stack([grid.ravel() for grid in grids], axis=1)
    values = f(points).reshape(grids[0].shape)
    for _ in columns:
        values = integrate.trapezoid(values, LINE, axis=-1)
    return float(values)


@CASE
@pytest.mark.parametrize("kept", [[0], [1]])
def test_a_marginal_is_the_integral_over_the_other_columns(case, kept):
    f = density(case)
    others = [j for j in range(f.dimension) if j not in kept]
    small = marginal(f, kept)
    for at in (-1.3, 0.0, 0.7):
        assert small([[at]])[0] == pytest.approx(integral_over(f, others, f.dimension, [at]), rel=1e-9)


@pytest.mark.parametrize("case", ["2-D", "2-D oblique"])
def test_a_marginal_agrees_with_adaptive_quadrature(case):
    f = density(case)
    exact, _ = integrate.quad(lambda y: f([[0.4, y]])[0], -np.inf, np.inf, epsabs=1e-12)
    assert marginal(f, [0])([[0.4]])[0] == pytest.approx(exact, rel=1e-8)


@CASE
def test_two_columns_of_three_come_in_the_order_asked_for(case):
    f = density(case)
    last = f.dimension - 1
    at = np.array([0.3, -0.8])
    one, other = marginal(f, [0, last]), marginal(f, [last, 0])
    assert one(at[None])[0] == pytest.approx(other(at[None, ::-1])[0], rel=1e-12)
    assert one(at[None])[0] != pytest.approx(one(at[None, ::-1])[0], rel=1e-3)
    if f.dimension == 3:
        assert one(at[None])[0] == pytest.approx(integral_over(f, [1], 3, at), rel=1e-9)
    np.testing.assert_array_equal(other.atoms, f.atoms[:, [last, 0]])


@CASE
def test_all_columns_are_the_density_itself(case):
    f = density(case)
    Q = np.random.default_rng(1).normal(size=(5, f.dimension))
    np.testing.assert_allclose(marginal(f, range(f.dimension))(Q), f(Q), rtol=1e-12)


@CASE
@pytest.mark.parametrize("known", [[0], [-1]])
def test_a_conditional_is_the_ratio_of_the_density_and_its_integral(case, known):
    f = density(case)
    d = f.dimension
    others = [j for j in range(d) if j != known[0] % d]
    small = conditional(f, known, [0.6])
    below = integral_over(f, others, d, [0.6])
    Q = np.random.default_rng(1).normal(size=(4, d - 1))
    points = np.empty((4, d))
    points[:, others], points[:, known] = Q, 0.6
    np.testing.assert_allclose(small(Q), f(points) / below, rtol=1e-9)


@CASE
def test_both_integrate_to_one(case):
    f = density(case)
    d = f.dimension
    assert integral_over(marginal(f, [1]), [0], 1, []) == pytest.approx(1, rel=1e-10)
    assert conditional(f, [0], [0.2]).mass == pytest.approx(1, rel=1e-12)
    assert integral_over(conditional(f, range(d - 1), [0.2] * (d - 1)), [0], 1, []) == pytest.approx(1, rel=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    case=st.sampled_from(list(CASES)),
    seed=st.integers(0, 10**6),
    column=st.integers(-3, 2),
    x=st.lists(st.floats(-4, 4), min_size=3, max_size=3),
    signed=st.booleans(),
)
def test_the_chain_rule(case, seed, column, x, signed):
    """f(x) = f(x_a | x_b) f(x_b)."""
    f = density(case, seed, signed=signed)
    d = f.dimension
    known = column % d
    point = np.array(x[:d])
    below = marginal(f, [known])(point[None, [known]])[0]
    if signed and not below > 1e-3 * marginal(abs_weights(f), [known])(point[None, [known]])[0]:
        return  # cancelled away, or negative
    others = [j for j in range(d) if j != known]
    product = conditional(f, [known], point[[known]])(point[None, others])[0] * below
    scale = abs_weights(f)(point[None])[0]
    assert product == pytest.approx(f(point[None])[0], rel=1e-8, abs=1e-9 * scale)


def abs_weights(f):
    return KernelMean(f.atoms, np.abs(f.weights), f.kernel)


def test_slices_commute():
    f = density("3-D oblique")
    Q = [[0.1], [1.2]]
    by_two = conditional(f, [0, 2], [0.3, -0.4])(Q)
    in_turn = conditional(conditional(f, [0], [0.3]), [1], [-0.4])(Q)  # the third column is the second of those left
    np.testing.assert_allclose(in_turn, by_two, rtol=1e-9)
    np.testing.assert_allclose(conditional(f, [2, 0], [-0.4, 0.3])(Q), by_two, rtol=1e-12)
    of_pair = marginal(conditional(f, [0], [0.3]), [1])(Q)
    np.testing.assert_allclose(of_pair, conditional(marginal(f, [0, 2]), [0], [0.3])(Q), rtol=1e-9)


def test_values_far_away_leave_the_nearest_atom():
    f = KernelMean([[0.0, 1.0], [5.0, 2.0], [-3.0, 7.0]], np.full(3, 1 / 3), Gaussian(0.1, normalized=True))
    far = conditional(f, [0], [1e6])
    np.testing.assert_allclose(far.weights, [0, 1, 0], atol=1e-300)


def test_atoms_without_weight_take_no_part_however_near():
    f = KernelMean([[0.0, 1.0], [1000.0, 2.0]], [1.0, 0.0], Gaussian(1.0, normalized=True))
    found = conditional(f, [0], [1000.0])
    np.testing.assert_array_equal(found.weights, [1.0, 0.0])


def test_a_shift_of_everything_changes_nothing():
    f = density("3-D oblique")
    far = KernelMean(f.atoms + 1e8, f.weights, f.kernel)
    np.testing.assert_allclose(conditional(far, [0], [1e8 + 0.5]).weights, conditional(f, [0], [0.5]).weights, rtol=1e-5)


def test_whole_numbers_and_single_precision_are_numbers():
    atoms = np.array([[1, 2], [3, 5], [4, 250]])
    kernel = Gaussian(2.0, normalized=True)
    plain = conditional(KernelMean(atoms.astype(float), np.ones(3), kernel), [0], [2.0])
    for dtype in (np.uint8, np.int64, np.float32):
        found = conditional(KernelMean(atoms.astype(dtype), np.ones(3), kernel), [0], np.array([2], dtype))
        np.testing.assert_allclose(found.weights, plain.weights, rtol=1e-12)
        np.testing.assert_allclose(found.atoms, plain.atoms, rtol=1e-12)


def test_the_bumps_of_slices_integrate_to_one_whatever_those_of_the_mean_do():
    f, plain = density("2-D oblique"), density("2-D oblique", normalized=False)
    Q = [[0.3], [2.0]]
    np.testing.assert_allclose(marginal(plain, [1])(Q), marginal(f, [1])(Q), rtol=1e-12)
    np.testing.assert_allclose(conditional(plain, [1], [0.2])(Q), conditional(f, [1], [0.2])(Q), rtol=1e-12)


def test_negative_weights_are_kept_and_a_negative_density_is_no_divisor():
    f = KernelMean([[0.0, 0.0], [4.0, 0.0]], [2.0, -1.0], Gaussian(1.0, normalized=True))
    np.testing.assert_array_equal(marginal(f, [0]).weights, [2.0, -1.0])
    assert conditional(f, [0], [1.0]).weights[1] < 0
    with pytest.raises(ValueError, match=r"f .*got a sum of weights of -"):
        conditional(f, [0], [4.0])


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Student(1.0), FunctionKernel("rbf", gamma=1.0)])
def test_other_kernels_have_no_closed_form(kernel):
    f = KernelMean(np.zeros((1, 2)), [1.0], kernel)
    for slice_ in (lambda: marginal(f, [0]), lambda: conditional(f, [0], [0.0])):
        with pytest.raises(TypeError, match="closed form for the Gaussian kernel only, got " + type(kernel).__name__):
            slice_()


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ([], ValueError, r"columns .*got \[\]"),
        ([0, 0], ValueError, r"none twice; got \[0, 0\]"),
        ([0, -3], ValueError, r"none twice; got \[0, -3\]"),
        ([3], ValueError, "columns .*got 3"),
        ([-4], ValueError, "columns .*got -4"),
        ([0.5], TypeError, "columns .*got 0.5"),
        (["a"], TypeError, "columns .*got 'a'"),
        ([True], TypeError, "columns .*got True"),
    ],
)
def test_bad_columns_are_named(columns, error, message):
    with pytest.raises(error, match=message):
        marginal(density("3-D"), columns)
    with pytest.raises(error, match=message):
        conditional(density("3-D"), columns, [0.0] * len(columns))


@pytest.mark.parametrize(
    ("columns", "values", "error", "message"),
    [
        ([0, 1, 2], [0.0, 0.0, 0.0], ValueError, "columns .*got all 3"),
        ([0, 1], [0.0], ValueError, "values .*got 1"),
        ([0], [0.0, 1.0], ValueError, "values .*got 2"),
        ([0], np.nan, ValueError, "values .*got nan"),
        ([0], "x", TypeError, "values must hold numbers"),
    ],
)
def test_bad_values_are_named(columns, values, error, message):
    with pytest.raises(error, match=message):
        conditional(density("3-D"), columns, values)
