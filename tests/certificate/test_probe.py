"""The measured error: intervals must cover the truth as often as they say, at any size of the error."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, Student, compress
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.probe import Probe
from reduset.certificate.rule import ExactProbe, RowProbe, probe_for
from reduset.kernels import FunctionKernel
from reduset.select import KCenter
from reduset.weights import Span, span_of

REPETITIONS = 200


def mixture(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3 * rng.normal(size=(5, d))[rng.integers(0, 5, n)]


def compressed(mean: KernelMean, size: int) -> tuple[Span, np.ndarray]:
    atoms = KCenter(first=0).select(mean, size).atoms
    atoms_span = span_of(mean.kernel, atoms, mean.kernel.product_sums(mean.atoms, mean.weights, atoms))
    return atoms_span, atoms_span.weights("free", mean.mass, atoms_span.size)


def coverage(mean: KernelMean, size: int, make) -> float:
    found, weights = compressed(mean, size)
    truth = ExactProbe(mean, None).measure(found.atoms, weights, found.kappa).square
    covered = 0
    for seed in range(REPETITIONS):
        measured = make(mean, 0.95, np.random.default_rng(seed)).measure(found.atoms, weights, found.kappa)
        assert measured.low <= measured.square <= measured.high
        covered += measured.low <= truth <= measured.high
    return covered / REPETITIONS


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("kernel", "dimension", "size"),
    [
        (Gaussian("median"), 2, 15),
        (Gaussian("scott"), 2, 150),
        (Gaussian("median"), 5, 150),
        (Gaussian("scott"), 5, 20),
        (Gaussian("scott", space="l2"), 8, 40),
        (Laplacian("median"), 3, 100),
        (Laplacian("median", space="l2"), 2, 150),
        (Laplacian("scott", metric="cityblock"), 3, 60),
        (Student("median"), 2, 100),
        (Student("median", exponent=6.0, space="l2"), 5, 60),
    ],
    ids=repr,
)
def test_frequencies_cover_the_truth_as_often_as_they_say(kernel, dimension, size):
    mean = KernelMean.from_samples(mixture(400, dimension), kernel)
    assert coverage(mean, size, FrequencyProbe) >= 0.93


def test_rows_cover_the_truth_as_often_as_they_say():
    mean = KernelMean.from_samples(mixture(1200, 3), FunctionKernel("rbf", gamma=0.05))
    assert coverage(mean, 10, RowProbe) >= 0.93


def test_signed_weights_are_covered_too():
    rng = np.random.default_rng(3)
    mean = KernelMean(mixture(1200, 3), rng.normal(size=1200), Gaussian(2.0))
    assert coverage(mean, 30, FrequencyProbe) >= 0.93


@pytest.mark.slow
def test_the_interval_of_a_certificate_covers_the_truth(monkeypatch):
    """End to end, with another selection and another measurement each time."""
    monkeypatch.setattr("reduset.certificate.rule.EXACT_UP_TO", 500)
    covered = 0
    for seed in range(REPETITIONS):
        X = mixture(600, 3, seed=seed)  # just too many to be measured exactly
        small = compress(X, Gaussian(2.5), size=25, rng=seed)
        assert small.certificate.method != "exact"
        full = KernelMean.from_samples(X, Gaussian(2.5))
        found = small._prefixes.span
        truth = ExactProbe(full, None).measure(found.atoms, small.mean.weights, found.kappa).square
        low, high = small.certificate.interval
        relative = np.sqrt(truth / (found.energy(found.size) + truth))
        covered += low <= relative <= high
    assert covered >= 0.93 * REPETITIONS


def test_the_relative_width_does_not_depend_on_how_small_the_error_is():
    mean = KernelMean.from_samples(mixture(3000, 2), Gaussian("median"))
    widths = []
    for size in (5, 20, 80):
        found, weights = compressed(mean, size)
        measured = FrequencyProbe(mean, 0.95, np.random.default_rng(0)).measure(found.atoms, weights, found.kappa)
        widths.append(np.log(measured.high / measured.low))
    assert max(widths) < 0.8


def test_below_rounding_the_frequencies_take_over():
    mean = KernelMean.from_samples(mixture(2000, 1), Gaussian("median"))
    found, weights = compressed(mean, 60)
    finer = probe_for(mean, 0.95, np.random.default_rng(0)).measure(found.atoms, weights, found.kappa)
    assert finer.method == "frequencies"
    assert 0 < finer.square < 1e-15


def test_two_probes_of_different_kinds_agree():
    mean = KernelMean.from_samples(mixture(3000, 2), Gaussian("scott"))
    found, weights = compressed(mean, 40)
    arguments = found.atoms, weights, found.kappa
    probes: list[Probe] = [
        ExactProbe(mean, None),
        FrequencyProbe(mean, 0.999, np.random.default_rng(1)),
        RowProbe(mean, 0.999, np.random.default_rng(1)),
    ]
    exact, *others = (p.measure(*arguments) for p in probes)
    for other in others:
        assert other.low <= exact.square <= other.high


def test_a_mean_is_at_distance_zero_from_itself():
    X = mixture(50, 2)
    mean = KernelMean.from_samples(X, Gaussian("median"))
    kappa = mean.kernel.product_sums(X, mean.weights, X)
    for p in (ExactProbe(mean, None), FrequencyProbe(mean, 0.95, np.random.default_rng(0))):
        assert p.measure(X, np.array(mean.weights), kappa).square < 1e-15


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, Student])
@pytest.mark.parametrize("bandwidth", [1e-300, 1e-160, 1e-20, 1e-9, 1e-6])
def test_where_every_bump_stands_alone_the_error_is_what_is_left_out(kernel, bandwidth):
    X = mixture(5000, 3)
    small = compress(X, kernel(bandwidth), size=5, rng=0)
    low, high = small.certificate.interval
    assert low <= np.sqrt(1 - 5 / 5000) <= high
    assert high - low < 1e-3


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e12])
def test_a_far_outlier_does_not_blind_the_frequencies(distance):
    X = mixture(4500, 2)
    X[7] = distance
    mean = KernelMean.from_samples(X, Gaussian(2.0))
    found, weights = compressed(mean, 20)
    truth = ExactProbe(mean, None).measure(found.atoms, weights, found.kappa).square
    measured = FrequencyProbe(mean, 0.999, np.random.default_rng(0)).measure(found.atoms, weights, found.kappa)
    assert measured.low <= truth <= measured.high
    assert measured.high < 2.5 * measured.low


@pytest.mark.parametrize("spacing", [0.5, 1.0, 2.0, 3.0])
def test_a_lattice_is_measured_like_any_other_cloud(spacing, monkeypatch):
    monkeypatch.setattr("reduset.certificate.rule.EXACT_UP_TO", 1300)
    axis = spacing * np.arange(11.0)
    X = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    mean = KernelMean.from_samples(X, Gaussian(1.0))
    assert coverage(mean, 60, probe_for) >= 0.93


def test_frequencies_are_left_to_where_they_see_the_energy():
    X = mixture(5000, 3)
    assert compress(X, Gaussian("median"), size=100, rng=0).certificate.method == "frequencies"
    assert compress(X, Gaussian(0.01), size=100, rng=0).certificate.method == "rows"


def sheet(inner, outer, scale, seed=0, n=600):
    """Points near a sheet of few dimensions in a space of many."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(outer, outer)))[0][:inner]
    return scale * rng.normal(size=(n, inner)) @ directions + 0.01 * rng.normal(size=(n, outer))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("X", "kernel", "size"),
    [
        (sheet(2, 10, 10.0), Gaussian(5.0), 150),
        (sheet(2, 50, 10.0), Gaussian(5.0), 150),
        (sheet(3, 100, 10.0), Gaussian(1.0), 100),
        (sheet(1, 20, 3.0), Laplacian(1.0), 30),
        (sheet(1, 20, 3.0), Gaussian(0.3), 150),
        (sheet(2, 10, 5.0, n=1500), Laplacian(3.0, space="l2"), 150),
        (sheet(2, 20, 5.0), Student(9.0), 150),
        (np.random.default_rng(0).normal(size=(600, 3)) * [30.0, 30.0, 0.01], Gaussian(9.0), 150),
        (np.random.default_rng(0).normal(size=(600, 6)) * [5, 5, 0.01, 0.01, 0.01, 0.01], Laplacian(2.0, metric="cityblock"), 150),
        (np.random.default_rng(0).normal(size=(600, 20)) * 2.0 ** -np.arange(20), Gaussian(0.3), 150),
        (np.random.default_rng(0).normal(size=(600, 5)) * [20.0, 1.0, 1.0, 1.0, 1.0], Gaussian(14.0), 60),
    ],
    ids=["2 in 10", "2 in 50", "3 in 100", "line", "narrow line", "Matérn", "Student", "plane", "city plane", "graded", "cigar"],
)
def test_data_near_a_sheet_are_covered_like_any_other(X, kernel, size, monkeypatch):
    monkeypatch.setattr("reduset.certificate.rule.EXACT_UP_TO", 0)
    assert coverage(KernelMean.from_samples(X, kernel), size, probe_for) >= 0.93


@pytest.mark.slow
def test_tol_is_met_in_truth_near_a_sheet(monkeypatch):
    monkeypatch.setattr("reduset.certificate.rule.EXACT_UP_TO", 500)
    met = []
    for seed in range(20):
        for kernel, tol in ((Laplacian(1.0), 0.1), (Gaussian(0.3), 0.1)):
            X = sheet(1, 20, 3.0, seed, n=600)
            small = compress(X, kernel, tol=tol, rng=seed)
            full = KernelMean.from_samples(X, kernel)
            met.append(small.mean.distance(full) <= tol * full.norm())
    assert np.mean(met) >= 0.95
