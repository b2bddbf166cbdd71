"""Intervals of proportions count the sampling variation of the sample and of the classes."""

import numpy as np
import pytest
from scipy.special import ndtri

from reduset.proportions.simplex_fit import ClassScatter, SimplexFit, proportions

PRODUCTS = np.array([[1.0, 0.3], [0.3, 0.8]])


def test_intervals_without_variation_in_the_sample_are_those_of_the_classes():
    """π₁ moves by Δb·(f₁ − f₂) / |f₁ − f₂|², so its deviation is √(uᵀ S u), S = Σ πᵢ² Cᵢ / nᵢ."""
    fit, sizes = SimplexFit(PRODUCTS), np.array([50.0, 80.0])
    scatter = np.array([[[0.2, 0.05], [0.05, 0.1]], [[0.1, 0.02], [0.02, 0.3]]])
    within = ClassScatter(sizes, scatter, np.ones(2), 1.0)
    values = np.tile(PRODUCTS @ [0.4, 0.6], (30, 1))  # every row has the same values: no variation of the sample
    pi, interval = proportions(fit, within, values, "simplex", 0.95)
    assert pi == pytest.approx([0.4, 0.6])
    spread = 0.4**2 / 50 * scatter[0] + 0.6**2 / 80 * scatter[1]
    direction = np.array([1.0, -1.0]) / (PRODUCTS[0, 0] + PRODUCTS[1, 1] - 2 * PRODUCTS[0, 1])
    reach = ndtri(0.975) * np.sqrt(direction @ spread @ direction)
    assert interval[0] == pytest.approx([0.4 - reach, 0.4 + reach], rel=1e-6)
