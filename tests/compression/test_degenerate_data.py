"""compress on data without a usual shape, by every selector, every weighting and both kinds of pieces."""

from itertools import pairwise

import numpy as np
import pytest

import reference
from cases import SELECTORS
from reduset import Gaussian, KernelMean, compress, weigh
from reduset.weights import KINDS

LATTICE = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
RNG = np.random.default_rng(0)
DATA = {
    "lattice": LATTICE,
    "booleans": RNG.integers(0, 2, size=(40, 3)).astype(bool),
    "two rows": np.array([[0.0, 1.0], [2.0, 5.0]]),
    "two rows one bit apart": np.array([[1.0, 1.0], [1.0, np.nextafter(1.0, 2.0)]]),
    "one outlier": np.concatenate([RNG.normal(size=(40, 2)), [[1e6, -1e6]]]),
    "negative zeros": np.where(RNG.random((30, 2)) < 0.5, 0.0, -0.0) + np.repeat([[0.0, -0.0], [1.0, 0.0]], 15, axis=0),
}
SIZES = {"two rows": 2, "two rows one bit apart": 2}
KERNEL = Gaussian(0.8)
ROUNDING = 1e-7  # of the norm: a difference of squares that are equal up to 1e-16 is known to its root
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def small_of(data, **options):
    return compress(DATA[data], KERNEL, size=SIZES.get(data, 7), rng=3, **options)


def exact_error(data, small):
    """‖f − f_m‖ / ‖f‖ from all pairs of points."""
    X = np.asarray(DATA[data], np.float64)
    w = np.full(len(X), 1 / len(X))
    square = reference.squared_distance(KERNEL, X, w, small.mean.atoms, small.mean.weights)
    return np.sqrt(max(square, 0.0) / reference.squared_norm(KERNEL, X, w))


def check(data, small):
    assert 1 <= small.mean.size <= SIZES.get(data, 7)
    assert np.isfinite(small.mean.weights).all()
    certificate = small.certificate
    low, high = certificate.interval
    assert 0 <= low <= certificate.relative_error <= high < np.inf
    return low, high


@pytest.mark.covering_cases
@pytest.mark.fast_cases(140)
@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize("select", SELECTORS)
@pytest.mark.parametrize("data", DATA)
def test_atoms_of_any_data_have_a_true_certificate_and_the_same_bits_again(data, select, weights):
    small = small_of(data, select=SELECTORS[select], weights=weights)
    low, high = check(data, small)
    assert np.isfinite(small.mean.atoms).all()
    assert low - ROUNDING <= exact_error(data, small) <= high + ROUNDING
    again = small_of(data, select=SELECTORS[select], weights=weights)
    assert small.mean.weights.tobytes() == again.mean.weights.tobytes()
    assert small.mean.atoms.tobytes() == again.mean.atoms.tobytes()


@pytest.mark.covering_cases
@pytest.mark.parametrize("select", SELECTORS)
@pytest.mark.parametrize("data", DATA)
def test_fewer_constraints_on_the_weights_of_the_same_atoms_never_lose_more(data, select):
    atoms = small_of(data, select=SELECTORS[select], weights="free").mean.atoms
    full = KernelMean.from_samples(np.asarray(DATA[data], np.float64), KERNEL)
    errors = []
    for kind in ("free", "sum_to_one", "simplex"):
        found = weigh(full, atoms, weights=kind).mean
        square = reference.squared_distance(KERNEL, full.atoms, full.weights, found.atoms, found.weights)
        errors.append(np.sqrt(max(square, 0.0)))
    assert all(looser <= tighter + ROUNDING for looser, tighter in pairwise(errors))


@pytest.mark.covering_cases
@pytest.mark.parametrize("weights", ["free", "sum_to_one", "simplex"])
@pytest.mark.parametrize("data", DATA)
def test_components_of_any_data_have_a_true_certificate_and_the_same_bits_again(data, weights):
    small = small_of(data, pieces="components", weights=weights)
    low, high = check(data, small)
    mean = small.mean
    assert np.isfinite(mean.means).all()
    assert np.isfinite(mean.covariances).all()
    full = KernelMean.from_samples(np.asarray(DATA[data], np.float64), KERNEL)
    error = mean_distance(full, mean) / full.norm()
    assert low - ROUNDING <= error <= high + ROUNDING
    again = small_of(data, pieces="components", weights=weights)
    assert mean.weights.tobytes() == again.mean.weights.tobytes()
    assert mean.covariances.tobytes() == again.mean.covariances.tobytes()


def mean_distance(full, mean):
    """From all pairs, in closed form: a component's law widened by the kernel's own, and by another component's."""
    h, d = KERNEL.width**2, full.dimension
    laws = mean.covariances - h * np.eye(d)

    def product(x, S, y, T):
        total = S + T + h * np.eye(d)
        away = x - y
        return np.sqrt(h**d / np.linalg.det(total)) * np.exp(-0.5 * away @ np.linalg.solve(total, away))

    zero = np.zeros((d, d))
    points = [(w, x, zero) for w, x in zip(full.weights, full.atoms, strict=True)]
    pieces = [(-w, x, S) for w, x, S in zip(mean.weights, mean.means, laws, strict=True)]
    every = points + pieces
    square = sum(a * b * product(x, S, y, T) for a, x, S in every for b, y, T in every)
    return np.sqrt(max(square, 0.0))
