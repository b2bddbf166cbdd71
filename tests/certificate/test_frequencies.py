"""Ladders that depend on the kernel alone: intervals that hold for whatever data, and waves that can be added up."""

import numpy as np
import pytest

from cases import COVARIANCE
from reduset import Gaussian, KernelMean, Laplacian, Student, compress
from reduset._engine.profile import Frame
from reduset.certificate.frequencies import FrequencyLadders, two_sided
from stream_cases import mixture

KERNELS = [
    Gaussian("median"),
    Gaussian("scott", space="l2"),
    Laplacian("median"),
    Laplacian("median", metric="cityblock"),
    Student("median"),
    Student("median", exponent=2.5),
]


def frame_of(mean, centre):
    return Frame(centre, mean.kernel.frame(mean.atoms, mean.kernel.product(mean.dimension)).matrix)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_interval_holds_the_true_distance_nearly_always(kernel):
    held = 0
    for seed in range(12):
        d = (1, 2, 3, 5, 8, 12)[seed % 6]
        f = KernelMean.from_samples(mixture(500, d, seed), kernel)
        small = compress(f, size=20 + 10 * (seed % 3), select="random", rng=seed).mean
        ladders, frame = FrequencyLadders.of_kernel(f.kernel, d), frame_of(f, np.zeros(d))
        gap = ladders.waves(f.atoms, f.weights, frame) - ladders.waves(small.atoms, small.weights, frame)
        found = ladders.measure(gap, two_sided(0.95))
        truth = (f.distance(small) / np.sqrt(np.exp(f.kernel.log_energy(d)))) ** 2
        assert found.square == pytest.approx(truth, rel=1.0)
        held += found.low <= truth <= found.high
    assert held >= 10


def test_any_two_of_the_same_kernel_have_the_same_ladders():
    one, other = FrequencyLadders.of_kernel(Gaussian(1.0), 3), FrequencyLadders.of_kernel(Gaussian(1.0), 3)
    np.testing.assert_array_equal(one.climbing, other.climbing)
    np.testing.assert_array_equal(one.log_weights, other.log_weights)


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.8, covariance=COVARIANCE), Laplacian(1.0, metric="cityblock"), Laplacian(1.0)], ids=repr
)
def test_waves_of_parts_add_up_to_those_of_the_whole_from_any_origin(kernel):
    f = KernelMean.from_samples(mixture(600, 2), kernel)
    ladders, one, other = FrequencyLadders.of_kernel(kernel, 2), np.array([0.3, -1.0]), np.array([2.0, 5.0])
    here, there = frame_of(f, one), frame_of(f, other)
    first = ladders.waves(f.atoms[:200], f.weights[:200], here)
    rest = ladders.turned(ladders.waves(f.atoms[200:], f.weights[200:], there), here.apply(other[None])[0])
    np.testing.assert_allclose(first + rest, ladders.waves(f.atoms, f.weights, here), atol=1e-6)  # 33 doublings of an angle


def test_the_same_mean_is_at_no_distance():
    ladders = FrequencyLadders.of_kernel(Gaussian(1.0), 2)
    found = ladders.measure(np.zeros(ladders.log_weights.shape, complex), 2.0)
    assert (found.square, found.low, found.high) == (0.0, 0.0, 0.0)
