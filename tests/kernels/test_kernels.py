"""Kernels: constants and inner products by quadrature, spectra by Bochner, covariance by whitening, and what a kernel says."""

import json
import math
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats

import reference
from reduset import Gaussian, KernelMean, Laplacian, Matern, Student
from reduset.kernels.base import Shape
from reduset.kernels.lookup import KERNELS, kernel_from
from reduset.kernels.spectra import BesselSpectrum, log_bessel_k, matern_table
from reduset.kernels.student import _student_table

EUCLIDEAN = list(KERNELS.values())


def ball_surface(d):
    """The area of the unit sphere in d dimensions."""
    return 2 * math.pi ** (d / 2) / math.gamma(d / 2)


def height(kernel, r, d):
    """φ at distance r, scale included, by the oracle's formula."""
    point = np.zeros((np.size(r), d))
    point[:, 0] = np.ravel(r)
    return math.exp(kernel.log_peak(d)) * reference.bump(kernel, point, np.zeros((1, d)))[:, 0]


def in_l2(kernel, r, d):
    """g at distance r along the first axis, as the library computes it."""
    point = np.zeros((np.size(r), d))
    point[:, 0] = np.ravel(r)
    return math.exp(kernel.log_energy(d)) * kernel.product_gram(np.zeros((1, d)), point)[0]


# -- density constants ----------------------------------------------------------------------------------------------------------


def densities(d):
    return [
        Gaussian(0.7, normalized=True),
        Laplacian(0.7, normalized=True),
        Matern(0.7, normalized=True),
        Matern(0.7, smoothness=2.5, normalized=True),
        Student(0.7, normalized=True),
        Student(0.7, exponent=d / 2 + 0.25, normalized=True),
        Student(0.7, exponent=d / 2 + 3.0, normalized=True),
    ]


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_a_density_integrates_to_one(d):
    for kernel in densities(d):
        # r = tan(θ) reaches infinity, where the heavy tails still count
        def shell(theta, kernel=kernel):
            r = math.tan(theta)
            return ball_surface(d) * r ** (d - 1) * height(kernel, r, d)[0] / math.cos(theta) ** 2

        total = integrate.quad(shell, 0, math.pi / 2, epsabs=0, epsrel=1e-9, limit=500)[0]
        assert total == pytest.approx(1.0, rel=1e-7), kernel


def test_a_density_on_the_line_and_in_the_plane_integrates_to_one():
    for kernel in (*densities(1), Laplacian(0.7, metric="cityblock", normalized=True)):
        total = 2 * integrate.quad(lambda x, k=kernel: height(k, x, 1)[0], 0, np.inf, epsrel=1e-10, limit=500)[0]
        assert total == pytest.approx(1.0, rel=1e-6)
    for kernel in (Gaussian(1.0, normalized=True), Laplacian(1.0, metric="cityblock", normalized=True), Student(1.0, exponent=4.0)):
        constant = math.exp(kernel.density_log_peak(2))

        def value(x, y, kernel=kernel):
            return reference.bump(kernel, np.array([[x, y]]), np.zeros((1, 2)))[0, 0]

        quadrant = integrate.dblquad(value, 0, np.inf, 0, np.inf, epsabs=1e-6, epsrel=1e-6)[0]
        assert 4 * constant * quadrant == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("d", [1, 4, 300])
def test_the_cityblock_density_is_a_product_of_those_on_the_line(d):
    one = Laplacian(0.7, metric="cityblock", normalized=True)
    assert one.log_peak(d) == pytest.approx(-d * math.log(2 * 0.7))


@pytest.mark.parametrize("make", EUCLIDEAN)
def test_constants_stay_finite_in_many_dimensions(make):
    for space in ("rkhs", "l2"):
        kernel = make(30.0, normalized=True, space=space)
        assert math.isfinite(kernel.log_peak(2000))
        assert math.isfinite(kernel.log_energy(2000))


def test_without_normalization_a_bump_is_one_at_its_centre():
    for make in EUCLIDEAN:
        assert make(0.3).log_peak(7) == 0
        assert make(0.3).log_energy(7) == 0


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5])
def test_a_student_that_is_no_density_says_so(exponent):
    kernel = Student(1.0, exponent=exponent, normalized=True)
    with pytest.raises(ValueError, match=r"exponent must .*d/2.*=.*1\.5"):
        kernel.log_peak(3)
    with pytest.raises(ValueError, match="exponent must be above d/2"):
        kernel.noise(3, 3, np.random.default_rng(0))


def test_a_student_outside_l2_says_so():
    kernel = Student(1.0, exponent=0.75, space="l2")
    with pytest.raises(ValueError, match=r"exponent must .*d/4.*=.*0\.75.*space='rkhs'"):
        kernel.log_energy(3)
    with pytest.raises(ValueError, match="exponent must be above d/4"):
        kernel.product(3)
    assert Student(1.0, exponent=0.75).product(3).stretch == 1  # in the other space it is welcome


# -- inner products in L2 -------------------------------------------------------------------------------------------------------


def panels(edges, order=24):
    """Gauss–Legendre nodes and weights on consecutive intervals."""
    x, w = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges) / 2
    return (edges[:-1, None] + half[:, None] * (1 + x)).ravel(), (half[:, None] * w).ravel()


def overlap(phi, shift, d):
    """∫ φ(|x|) φ(|x − c|) dx with |c| = shift > 0, in polar coordinates, panels graded towards the corner at x = c."""
    fine = shift * 0.5 ** np.arange(1.0, 30)
    r, wr = panels(np.concatenate([[0.0], shift - fine, [shift], shift + fine[::-1], shift * 2.0 ** np.arange(1, 60)]))
    if d == 1:
        return float(wr @ (phi(r) * (phi(np.abs(r - shift)) + phi(r + shift))))
    angle, wa = panels(np.concatenate([[0.0], math.pi * 0.5 ** np.arange(30, -1, -1.0)]))
    other = np.sqrt((r[:, None] - shift) ** 2 + 4 * r[:, None] * shift * np.sin(angle / 2) ** 2)
    ring = ball_surface(d - 1) if d > 2 else 2.0
    return float((wr * phi(r) * r ** (d - 1)) @ phi(other) @ (wa * np.sin(angle) ** (d - 2))) * ring


@cache
def unit_overlap(kernel, shift, d):
    """The overlap of two bumps of a kernel of unit bandwidth and height."""
    return overlap(lambda r: np.exp(reference.log_unit_bump(kernel, r, d)), shift, d)


def test_the_quadrature_of_overlaps_is_right():
    for d in (1, 2, 3, 5):
        got = overlap(lambda r: np.exp(-(r**2) / 2), 1.7, d)
        assert got == pytest.approx(math.pi ** (d / 2) * math.exp(-(1.7**2) / 4), rel=1e-10)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("normalized", [False, True])
def test_inner_products_in_l2_are_overlaps(d, normalized):
    students = [d / 4 + 0.4, d / 2, d / 2 + 0.3, 4.0, None]
    if normalized:
        students = [a for a in students if a is None or a > d / 2]
    smoother = partial(Matern, smoothness=2.5)
    kernels = [Gaussian, Laplacian, Matern, smoother, *(lambda h, a=a, **rest: Student(h, exponent=a, **rest) for a in students)]
    for make in kernels:
        unit, kernel = make(1.0), make(0.6, normalized=normalized, space="l2")
        scale = math.exp(2 * kernel.log_peak(d)) * 0.6**d
        for shift in (1e-3, 0.4, 1.0, 3.0, 10.0):
            expected = scale * unit_overlap(unit, shift, d)
            assert in_l2(kernel, 0.6 * shift, d)[0] == pytest.approx(expected, rel=1e-7), (kernel, shift)


@pytest.mark.parametrize("normalized", [False, True])
def test_the_cityblock_inner_product_is_an_overlap(normalized):
    kernel = Laplacian(0.6, metric="cityblock", normalized=normalized, space="l2")
    shift = np.array([0.3, -1.1, 2.0])
    each = [overlap(lambda r: np.exp(-r), abs(s), 1) for s in shift]
    expected = math.exp(2 * kernel.log_peak(3)) * 0.6**3 * math.prod(each)
    got = math.exp(kernel.log_energy(3)) * kernel.product_gram(0.6 * shift[None], np.zeros((1, 3)))[0, 0]
    assert got == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_the_energy_in_l2_is_the_integral_of_the_square(d):
    for kernel in (
        Gaussian(0.7, space="l2"),
        Laplacian(0.7, space="l2"),
        Matern(0.7, space="l2"),
        Matern(0.7, smoothness=2.5, space="l2"),
        Student(0.7, space="l2"),
        Student(0.7, exponent=d, space="l2"),
    ):

        def shell(theta, kernel=kernel):
            r = math.tan(theta)
            return ball_surface(d) * r ** (d - 1) * height(kernel, r, d)[0] ** 2 / math.cos(theta) ** 2

        energy = integrate.quad(shell, 0, math.pi / 2, epsabs=0, epsrel=1e-10, limit=500)[0]
        assert math.exp(kernel.log_energy(d)) == pytest.approx(energy, rel=1e-8)


# -- tables ---------------------------------------------------------------------------------------------------------------------

RADII = np.concatenate([[0.0], np.geomspace(1e-8, 300, 4001), np.random.default_rng(0).uniform(0, 30, 2000)])


@pytest.mark.parametrize("d", [1, 3, 5, 15, 51, 75, 77, 79, 99, 201])
def test_the_matern_table_is_the_closed_form_of_half_integer_order(d):
    got = Laplacian(1.0, space="l2").product_at(RADII, d)
    expected = reference.matern(RADII, d / 2 + 1)
    assert np.max(np.abs(got / expected - 1)) < 1e-11


@pytest.mark.parametrize("d", [2, 4, 16, 40, 76])
def test_the_matern_table_is_the_bessel_function_of_integer_order(d):
    got = Laplacian(1.0, space="l2").product_at(RADII[1:], d)
    r = RADII[1:][RADII[1:] > 0.01 * d]
    expected = reference.matern(r, d / 2 + 1)
    assert np.max(np.abs(got[RADII[1:] > 0.01 * d] / expected - 1)) < 1e-11


def at(profile, r):
    """The value of a tabulated profile at distance r."""
    kernel = Laplacian(1.0, space="l2")
    object.__setattr__(kernel, "product", lambda dimension: Shape(profile, 1.0))
    return kernel.product_at(r, 1)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 9, 13, 19, 39, 119])
def test_the_student_table_is_the_closed_form_of_the_cauchy_kernel(d):
    a = (d + 1) / 2
    r = RADII[a * np.log1p(RADII**2 / 4) < 600]
    assert np.max(np.abs(at(_student_table(a, d), r) / (1 + r**2 / 4) ** -a - 1)) < 1e-11


@pytest.mark.parametrize(
    ("a", "d"), [(0.3, 1), (1.0, 3), (1.4, 3), (2.5, 2), (4.0, 5), (6.0, 16), (12.0, 16), (30.0, 16), (30.0, 100)]
)
def test_the_student_table_is_its_integral(a, d):
    """₂F₁ by Euler's integral over a gamma-free form: ∫ (u(1 − u))^(a − 1) (1 + r² u(1 − u))^−(2a − d/2) du / B(a, a)."""
    for r in (0.05, 0.7, 2.0, 8.0, 50.0, 3000.0):

        def slope(s, r=r):  # u = (1 + tanh s)/2, so that the ends are smooth for every a
            v = 0.25 / math.cosh(s) ** 2
            return 2 * v**a * (1 + r * r * v) ** -(2 * a - d / 2)

        peak = 0.5 * math.log(1 + r * r)  # beyond, the second factor has lost its grip
        ends = [0.0, 0.1, 0.3, 1.0, *sorted({2.0, peak + 1, peak + 4}), peak + 20 + 20 / a]
        pieces = [integrate.quad(slope, x, y, epsabs=0, epsrel=1e-13, limit=200)[0] for x, y in pairwise(ends)]
        expected = 2 * math.fsum(pieces) / special.beta(a, a)
        assert at(_student_table(a, d), np.array([r]))[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("a", "d"), [(1.0, 3), (2.5, 2), (4.0, 3)])
def test_beyond_the_student_table_the_tail_is_a_power(a, d):
    kernel = Student(1.0, exponent=a, space="l2")
    exact = special.hyp2f1(a, 2 * a - d / 2, a + 0.5, -(np.array([1e7, 1e9, 1e11]) ** 2) / 4)
    assert np.allclose(kernel.product_at(np.array([1e7, 1e9, 1e11]), d), exact, rtol=1e-6)


def test_a_table_is_made_once():
    assert matern_table(2.5) is matern_table(2.5)
    assert not matern_table(2.5).table.flags.writeable


ALL = [
    Gaussian(0.8),
    Gaussian(0.8, space="l2"),
    Laplacian(0.8),
    Laplacian(0.8, space="l2"),
    Laplacian(0.8, metric="cityblock"),
    Laplacian(0.8, metric="cityblock", space="l2"),
    Matern(0.8),
    Matern(0.8, space="l2"),
    Matern(0.8, smoothness=2.5),
    Matern(0.8, smoothness=2.5, space="l2"),
    Student(0.8),
    Student(0.8, space="l2"),
    Student(0.8, exponent=2.2),
    Student(0.8, exponent=2.2, space="l2"),
    Student(0.8, exponent=1.2, space="l2"),
]


@pytest.mark.parametrize("kernel", ALL, ids=repr)
@pytest.mark.parametrize("d", [1, 3, 4])
def test_product_at_is_the_least_inner_product_at_a_distance(kernel, d):
    X, origin = np.random.default_rng(0).normal(size=(200, d)), np.zeros((1, d))
    stretch = kernel.product(d).stretch / kernel.width
    r = reference.distances(X, origin, "cityblock" if reference.in_cityblock(kernel) else "euclidean")[:, 0] * stretch
    values = kernel.product_gram(X, origin)[:, 0]
    least = kernel.product_at(r, d)
    assert np.all(values >= least * (1 - 1e-12))
    axis = np.zeros((200, d))
    axis[:, 0] = r / stretch
    assert np.allclose(kernel.product_gram(axis, origin)[:, 0], least, rtol=1e-10)  # along an axis it is attained
    assert kernel.product_at(np.zeros(1), d)[0] == 1


# -- spectra --------------------------------------------------------------------------------------------------------------------


@pytest.mark.fast_cases(43)
@pytest.mark.parametrize("kernel", ALL, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("scale", [1.0, 1.6])
def test_waves_drawn_from_the_spectrum_average_to_the_kernel(kernel, d, scale):
    spectrum = kernel.spectrum(d)
    rng = np.random.default_rng(1)
    omega = scale * spectrum.draw(100_000, rng)
    ratio = np.exp(spectrum.log_density(omega) - spectrum.proposal_log_density(omega / scale) + d * math.log(scale))
    X = np.concatenate([np.zeros((1, d)), 0.8 * rng.normal(size=(6, d))])
    Z = X * kernel.product(d).stretch / kernel.width
    expected = kernel.product_gram(X, np.zeros((1, d)))[:, 0]
    for z, value in zip(Z, expected, strict=True):
        sample = np.cos(omega @ z) * ratio
        assert abs(sample.mean() - value) <= 4.5 * sample.std() / math.sqrt(len(sample)) + 1e-12


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_the_spectrum_on_the_line_transforms_back_to_the_kernel(kernel):
    spectrum = kernel.spectrum(1)
    stretch = kernel.product(1).stretch / kernel.width

    def density(omega):
        return math.exp(spectrum.log_density(np.array([[omega]]))[0])

    for z in (0.0, 0.3, 1.0, 2.5):
        if z == 0:
            total = 2 * sum(integrate.quad(density, a, b, limit=500)[0] for a, b in ((0, 1e-3), (1e-3, 1), (1, 50), (50, np.inf)))
        else:
            near = integrate.quad(lambda o, z=z: density(o) * math.cos(o * z), 0, 1.0, limit=500)[0]
            total = 2 * (near + integrate.quad(density, 1.0, np.inf, weight="cos", wvar=z, limit=500)[0])
        expected = kernel.product_gram(np.array([[z / stretch]]), np.zeros((1, 1)))[0, 0]
        assert total == pytest.approx(expected, rel=2e-6, abs=1e-7)


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 7.3, 39.9, 40.0, 41.0, 80.0, 150.5])
def test_log_bessel_k_is_the_logarithm_of_the_bessel_function(order):
    x = np.geomspace(max(1e-3, order * 0.02), 600, 400)
    expected = np.log(special.kve(order, x)) - x
    assert np.all(np.isfinite(expected))
    assert np.max(np.abs(log_bessel_k(order, x) - expected)) < 1e-7


def test_log_bessel_k_does_not_jump_where_its_formula_changes():
    x = np.geomspace(1e-3, 1e4, 300)
    below, above = log_bessel_k(np.nextafter(40.0, 0), x), log_bessel_k(40.0, x)
    assert np.max(np.abs(below - above)) < 1e-7


@pytest.mark.parametrize("order", [0.7, 12.0, 39.0])
def test_log_bessel_k_follows_its_pole_where_the_function_overflows(order):
    x = np.array([1e-300, 1e-200, 1e-30])
    expected = special.gammaln(order) + (order - 1) * math.log(2) - order * np.log(x)
    assert np.allclose(log_bessel_k(order, x), expected, rtol=1e-12)


def test_log_bessel_k_is_finite_where_the_function_underflows():
    assert log_bessel_k(2.0, np.array([1e6]))[0] == pytest.approx(0.5 * math.log(math.pi / 2e6) - 1e6)


def test_a_bessel_spectrum_is_finite_at_frequency_zero():
    assert np.isfinite(BesselSpectrum(3, 1.0).log_density(np.zeros((1, 3))))[0]


# -- covariance -----------------------------------------------------------------------------------------------------------------

COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
ANISOTROPIC = [
    (Gaussian, {}),
    (Laplacian, {}),
    (Matern, {}),
    (Matern, {"smoothness": 2.5}),
    (Student, {}),
    (Student, {"exponent": 2.6}),
]


@pytest.mark.parametrize(("make", "rest"), ANISOTROPIC)
@pytest.mark.parametrize("space", ["rkhs", "l2"])
@pytest.mark.parametrize("normalized", [False, True])
def test_covariance_is_whitening_by_hand(make, rest, space, normalized):
    rng = np.random.default_rng(0)
    X, Q, w = rng.normal(size=(200, 3)), rng.normal(size=(20, 3)), rng.uniform(size=200)
    kernel = make(0.9, covariance=COVARIANCE, space=space, normalized=normalized, **rest)
    plain = make(0.9, space=space, normalized=normalized, **rest)
    root = np.linalg.cholesky(COVARIANCE)
    A, B = np.linalg.solve(root, X.T).T, np.linalg.solve(root, Q.T).T
    volume = 0.5 * math.log(np.linalg.det(COVARIANCE))
    assert kernel.log_peak(3) == pytest.approx(plain.log_peak(3) - (volume if normalized else 0), abs=1e-12)
    energy = plain.log_energy(3) + (volume if space == "l2" else 0) - (volume * (2 if space == "l2" else 1) if normalized else 0)
    assert kernel.log_energy(3) == pytest.approx(energy, abs=1e-12)
    assert np.allclose(kernel.value_sums(X, w, Q), plain.value_sums(A, w, B), rtol=1e-11)
    assert np.allclose(kernel.product_sums(X, w, Q), plain.product_sums(A, w, B), rtol=1e-11)
    assert np.allclose(kernel.product_gram(X, Q), plain.product_gram(A, B), rtol=1e-11)
    assert np.allclose(kernel.log_sums(X, w, Q), plain.log_sums(A, w, B), rtol=1e-11, atol=1e-12)
    by_hand = plain.gradient_sums(A, w, B) @ np.linalg.inv(root)
    assert np.allclose(kernel.gradient_sums(X, w, Q), by_hand, rtol=1e-9, atol=1e-12)
    mean, whitened = KernelMean(X, w, kernel), KernelMean(A, w, plain)
    scale = math.exp((kernel.log_energy(3) - plain.log_energy(3)) / 2)
    assert mean.norm() == pytest.approx(whitened.norm() * scale, rel=1e-10)


@pytest.mark.parametrize(("make", "rest"), ANISOTROPIC)
def test_gradients_with_a_covariance_are_those_of_the_formula(make, rest):
    rng = np.random.default_rng(0)
    X, Q, w = rng.normal(size=(40, 3)), rng.normal(size=(5, 3)), rng.normal(size=40)
    kernel = make(0.9, covariance=COVARIANCE, **rest)
    atol = 1e-10 if make is Matern else 1e-12  # the slope of a spline
    assert np.allclose(kernel.gradient_sums(X, w, Q), reference.gradient_sums(kernel, X, w, Q), rtol=1e-10, atol=atol)


def test_variances_are_a_diagonal_covariance():
    assert Gaussian(1.0, covariance=[4.0, 9.0]) == Gaussian(1.0, covariance=[[4.0, 0.0], [0.0, 9.0]])
    x = np.array([[2.0, 3.0]])
    assert Gaussian(1.0, covariance=[4.0, 9.0]).product_gram(x, np.zeros((1, 2)))[0, 0] == pytest.approx(math.exp(-1))


def test_the_given_covariance_is_copied():
    mine = np.eye(2)
    kernel = Gaussian(1.0, covariance=mine)
    mine[0, 0] = 5.0
    assert kernel.covariance[0, 0] == 1.0
    assert not kernel.covariance.flags.writeable


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "covariance must be symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "covariance must be positive definite"),
        ([1.0, 0.0], "covariance must be positive definite"),
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "covariance must be a square matrix"),
        ([[np.nan]], "covariance must be finite"),
    ],
)
def test_a_covariance_that_is_none_is_refused(covariance, message):
    with pytest.raises(ValueError, match=message):
        Gaussian(1.0, covariance=covariance)


def test_a_covariance_of_another_dimension_is_refused():
    with pytest.raises(ValueError, match="covariance must be 2 by 2 like the points' columns"):
        Gaussian(1.0, covariance=np.eye(3)).resolve(np.zeros((4, 2)))


def test_a_bandwidth_rule_sees_the_whitened_points():
    X = np.random.default_rng(0).normal(size=(300, 3)) @ np.linalg.cholesky(COVARIANCE).T
    white = np.linalg.solve(np.linalg.cholesky(COVARIANCE), X.T).T
    for rule in ("median", "scott"):
        assert Gaussian(rule, covariance=COVARIANCE).resolve(X).width == pytest.approx(Gaussian(rule).resolve(white).width)


# -- noise ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize(
    ("kernel", "law"),
    [
        (Gaussian(0.4), lambda d: stats.chi(d)),
        (Laplacian(0.4), lambda d: stats.gamma(d)),
        (Matern(0.4), lambda d: reference.matern_length(Matern(0.4), d)),
        (Matern(0.4, smoothness=2.5), lambda d: reference.matern_length(Matern(0.4, smoothness=2.5), d)),
        (Student(0.4), lambda d: stats.betaprime(d / 2, 0.5)),
        (Student(0.4, exponent=4.0), lambda d: stats.betaprime(d / 2, 4.0 - d / 2)),
    ],
    ids=["gaussian", "laplacian", "matern", "smoother matern", "cauchy", "student"],
)
@pytest.mark.parametrize("covariance", [False, True])
def test_noise_has_the_density_of_the_bump(d, kernel, law, covariance):
    root = np.linalg.cholesky(0.5 * np.ones((d, d)) + np.eye(d))
    if covariance:
        kernel = type(kernel)(**{k: v for k, v in kernel.to_dict().items() if k != "name"} | {"covariance": root @ root.T})
    draws = kernel.noise(20_000, d, np.random.default_rng(7))
    assert draws.shape == (20_000, d)
    unit = np.linalg.solve(root, draws.T).T / 0.4 if covariance else draws / 0.4
    r = np.linalg.norm(unit, axis=1)
    assert stats.kstest(r**2 if kernel.name == "student" else r, law(d).cdf).pvalue > 1e-3
    direction = unit / r[:, None]
    assert np.abs(direction.mean(axis=0)).max() < 5 / math.sqrt(20_000)
    assert np.abs(direction.T @ direction / 20_000 - np.eye(d) / d).max() < 0.02


def test_cityblock_noise_is_laplacian_in_each_coordinate():
    draws = Laplacian(0.4, metric="cityblock").noise(20_000, 3, np.random.default_rng(7)) / 0.4
    for j in range(3):
        assert stats.kstest(draws[:, j], stats.laplace.cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(draws.T) - np.eye(3)).max() < 0.04


def test_noise_is_reproducible():
    for kernel in ALL:
        first, again = (kernel.noise(5, 1, np.random.default_rng(3)) for _ in range(2))
        assert np.array_equal(first, again)


# -- what a kernel says of itself -----------------------------------------------------------------------------------------------


VARIANTS = [
    Gaussian(1.0),
    Gaussian(2.0),
    Gaussian("median"),
    Gaussian("scott"),
    Gaussian(1.0, normalized=True),
    Gaussian(1.0, space="l2"),
    Gaussian(1.0, covariance=np.eye(2)),
    Gaussian(1.0, covariance=2 * np.eye(2)),
    Laplacian(1.0),
    Laplacian(1.0, metric="cityblock"),
    Matern(1.0),
    Matern(1.0, smoothness=2.5),
    Student(1.0),
    Student(1.0, exponent=1.5),
    Student(1.0, exponent=2.0),
]


def rebuilt(kernel):
    return kernel_from(json.loads(json.dumps(kernel.to_dict())))


def test_kernels_are_equal_exactly_if_their_parameters_are():
    for i, one in enumerate(VARIANTS):
        for j, other in enumerate(VARIANTS):
            assert (one == rebuilt(other)) == (i == j)
    assert Gaussian(1.0) != "gaussian"


def test_equal_kernels_have_equal_hashes():
    for kernel in VARIANTS:
        assert hash(kernel) == hash(rebuilt(kernel))
    assert len(set(VARIANTS)) == len(VARIANTS)
    assert hash(Gaussian(1)) == hash(Gaussian(np.float32(1.0)))


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Gaussian(0.5), "Gaussian(0.5)"),
        (Gaussian("silverman", space="l2"), "Gaussian('silverman', space='l2')"),
        (Gaussian(1 / 3, normalized=True), "Gaussian(0.333333, normalized=True)"),
        (Gaussian(1.0, covariance=np.eye(2)), "Gaussian(1, covariance=…)"),
        (Laplacian(1.0, metric="cityblock"), "Laplacian(1, metric='cityblock')"),
        (Matern(2.0, smoothness=1.5), "Matern(2)"),
        (Matern(2.0, smoothness=2.5), "Matern(2, smoothness=2.5)"),
        (Student(2.0), "Student(2)"),
        (Student(2.0, exponent=3), "Student(2, exponent=3.0)"),
    ],
)
def test_a_kernel_shows_what_it_was_given(kernel, text):
    assert repr(kernel) == text


def test_a_kernel_cannot_be_changed():
    with pytest.raises(AttributeError):
        Gaussian(1.0).bandwidth = 2.0


def test_to_dict_holds_plain_values():
    assert Student(2, exponent=3, covariance=[1.0, 2.0]).to_dict() == {
        "name": "student",
        "bandwidth": 2.0,
        "normalized": False,
        "space": "rkhs",
        "covariance": [1.0, 2.0],
        "exponent": 3.0,
    }


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf])
def test_a_bandwidth_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="bandwidth must be"):
        Gaussian(value)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Gaussian("widest"), ValueError, "bandwidth .*got 'widest'"),
        (lambda: Gaussian(True), TypeError, "bandwidth .*got True"),
        (lambda: Gaussian(1.0, space="sobolev"), ValueError, "space .*got 'sobolev'"),
        (lambda: Gaussian(1.0, normalized="yes"), TypeError, "normalized must be True or False"),
        (lambda: Laplacian(1.0, metric="hamming"), ValueError, "metric .*got 'hamming'"),
        (lambda: Matern(1.0, smoothness=0.5), ValueError, "smoothness .*got 0.5"),
        (lambda: Matern(1.0, smoothness=-1), ValueError, "smoothness must be above 0"),
        (lambda: Matern(1.0, smoothness="much"), TypeError, "smoothness must be a number"),
        (lambda: Student(1.0, exponent=0), ValueError, "exponent must be above 0"),
        (lambda: Student(1.0, exponent="steep"), TypeError, "exponent must be a number"),
    ],
)
def test_parameters_that_are_none_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("make", EUCLIDEAN)
def test_an_unresolved_bandwidth_says_what_it_needs(make):
    kernel = make("median", normalized=True)
    message = r"bandwidth is still the rule 'median'; it needs data: use KernelMean.from_samples or kernel.resolve\(X\)"
    for use in (lambda: kernel.width, lambda: kernel.log_peak(2), lambda: kernel.noise(1, 2, np.random.default_rng(0))):
        with pytest.raises(ValueError, match=message):
            use()
    with pytest.raises(ValueError, match=message):
        kernel.value_sums(np.zeros((1, 2)), np.ones(1), np.zeros((1, 2)))


def test_resolving_decides_the_bandwidth_and_nothing_else():
    X = np.random.default_rng(0).normal(size=(50, 2))
    kernel = Laplacian("median", metric="cityblock", space="l2", normalized=True)
    resolved = kernel.resolve(X)
    assert isinstance(resolved.bandwidth, float)
    assert resolved == Laplacian(resolved.bandwidth, metric="cityblock", space="l2", normalized=True)
    assert kernel.bandwidth == "median"
    assert resolved.resolve(X + X) is resolved
