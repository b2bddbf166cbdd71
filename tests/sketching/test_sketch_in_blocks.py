"""A sketch of rows in blocks equals that of the array."""

import numpy as np
import pytest

from reduset import sketch
from row_blocks import ListedRows

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(7000, 3)), RNG.normal(6, 0.3, size=(60, 3)), RNG.standard_t(3, size=(2940, 3))])
X[:, 2] = X[:, 2] > 1
WEIGHTS = RNG.integers(0, 3, len(X)).astype(float)
LABELS = RNG.integers(0, 2, len(X))


@pytest.mark.parametrize(
    "options",
    [{}, {"sample_weight": WEIGHTS}, {"coverage": 0.2}, {"groups": LABELS}, {"scales": "robust", "calibrate": False}],
    ids=lambda options: "".join(options),
)
def test_a_sketch(options):
    one, other = (sketch(some, 200, rng=0, **options) for some in (X, ListedRows(X, 5000, 0, 1, 4999)))
    np.testing.assert_array_equal(other.indices, one.indices)
    np.testing.assert_allclose(other.weights, one.weights, rtol=1e-6)
    np.testing.assert_array_equal(other.assignments, one.assignments)
    assert other.radius == pytest.approx(one.radius, rel=1e-12)
    assert other.error == pytest.approx(one.error, rel=1e-6)
    assert other.resolution == pytest.approx(one.resolution, rel=1e-6)
