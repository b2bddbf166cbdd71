"""The L2 inner product of two Cauchy kernels (2017, Section II-C), by quadrature: ⟨φ_β, φ_β⟩ = φ_{4β}, and not φ_{2β} as printed.

φ_β(x, x') = c (1 + ‖x − x'‖²/β)^{−(d+1)/2} is a density of scale √β. The scales of two Cauchy densities add up in a convolution, so
that √β + √β = √(4β).
"""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from reduset import Student


def density(t2, beta, d):
    constant = {1: 1 / (np.pi * np.sqrt(beta)), 2: 1 / (2 * np.pi * beta)}[d]
    return constant * (1 + t2 / beta) ** (-(d + 1) / 2)


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("distance", [0.0, 0.7, 3.0])
def test_in_one_dimension(beta, distance):
    found, _ = quad(lambda x: density(x**2, beta, 1) * density((x - distance) ** 2, beta, 1), -np.inf, np.inf, epsabs=1e-13)
    assert found == pytest.approx(density(distance**2, 4 * beta, 1), rel=1e-8)
    assert abs(found / density(distance**2, 2 * beta, 1) - 1) > 0.03
    kernel = Student(np.sqrt(beta), normalized=True, space="l2")
    ours = np.exp(kernel.log_energy(1)) * kernel.product_gram(np.zeros((1, 1)), np.full((1, 1), distance))[0, 0]
    assert ours == pytest.approx(found, rel=1e-6)


def test_in_two_dimensions():
    beta, distance = 0.8, 1.1

    def both(y, x):
        return density(x**2 + y**2, beta, 2) * density((x - distance) ** 2 + y**2, beta, 2)

    found, _ = dblquad(both, -60, 60, -60, 60, epsabs=1e-8, epsrel=1e-8)
    assert found == pytest.approx(density(distance**2, 4 * beta, 2), rel=1e-4)
    assert abs(found / density(distance**2, 2 * beta, 2) - 1) > 0.1
    kernel = Student(np.sqrt(beta), normalized=True, space="l2")
    ours = np.exp(kernel.log_energy(2)) * kernel.product_gram(np.zeros((1, 2)), np.array([[distance, 0.0]]))[0, 0]
    assert ours == pytest.approx(found, rel=1e-4)
