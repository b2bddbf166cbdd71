"""The scatter of rows around their class means: what of it no difference of means has a part in, against its definition."""

import numpy as np
import pytest

from reduset import Gaussian
from reduset.proportions.class_means import FullClassMeans, LabelledPoints, ProjectedClassMeans, class_moments, grams

RNG = np.random.default_rng(0)
CODES = np.repeat([0, 1, 2], [25, 20, 15])
POINTS = RNG.normal(size=(60, 2)) + 1.5 * np.stack([CODES == 1, CODES == 2], axis=1)
DATA = LabelledPoints(POINTS, CODES, RNG.uniform(0.5, 2.0, 60), 3)


def naive(kernel):
    """tr(Q Cᵢ) of each class and tr (Q C̄)², by coordinates in which products are those of the kernel; pairs of rows, one by one."""
    values, vectors = np.linalg.eigh(kernel.product_gram(POINTS, POINTS))
    rows = vectors * np.sqrt(np.maximum(values, 0.0))
    shares = DATA.row_weights
    means = np.stack([shares[code == CODES] @ rows[code == CODES] for code in range(3)])
    differences = np.linalg.qr((means[1:] - means[0]).T)[0]
    left = rows - means[CODES]
    left = left - (left @ differences) @ differences.T
    sizes = DATA.sizes
    squares = [shares[code == CODES] @ np.square(left[code == CODES]).sum(axis=1) for code in range(3)]
    q = shares / 3
    total = sum(q[i] * q[j] * (left[i] @ left[j]) ** 2 for i in range(60) for j in range(60) if i != j)
    return squares * sizes / (sizes - 1), total / (1 - q @ q)


@pytest.mark.parametrize("bandwidth", [0.5, 2.0])
def test_what_is_across_the_differences_of_means_is_by_its_definition(bandwidth):
    kernel = Gaussian(bandwidth)
    across, square = naive(kernel)
    moments = class_moments(DATA, [kernel], POINTS, False)[0]
    projected = ProjectedClassMeans.of(kernel, POINTS, grams([kernel], POINTS)[0], moments, None)
    for means in (FullClassMeans(kernel, DATA), projected):
        found = means.scatter(DATA, np.random.default_rng(0))
        np.testing.assert_allclose(found.across, across, rtol=1e-4)
        assert found.square == pytest.approx(square, rel=1e-3)
