"""Rows that equal none of a few places are those of the definition, whatever hides in the bits."""

import numpy as np
import pytest

from reduset._engine import CITYBLOCK, SQUARED, FarthestFirst, Frame, rows_not_among


@pytest.mark.parametrize("d", [1, 2, 5, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_rows_apart_are_those_of_the_definition(d, dtype):
    rng = np.random.default_rng(d)
    points = rng.integers(-3, 3, size=(3000, d)).astype(dtype)
    places = points[rng.integers(3000, size=40)]
    expected = [i for i, point in enumerate(points) if not (point == places).all(axis=1).any()]
    np.testing.assert_array_equal(rows_not_among(points, places), expected)


def test_zeros_of_both_signs_are_one_place():
    assert not len(rows_not_among(np.array([[0.0, -0.0], [-0.0, 0.0]]), np.array([[-0.0, -0.0]])))


@pytest.mark.parametrize("metric", [SQUARED, CITYBLOCK])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_traversal_of_repeated_rows_looks_closer_at_the_others_only(metric, order):
    """Two places so close that float32 cannot tell them apart, among rows that repeat themselves."""
    rng = np.random.default_rng(0)
    places = np.vstack([rng.normal(size=(20, 3)), np.zeros((2, 3))])
    places[-1] = places[0] + 1e-11
    points = np.asarray(places[np.append(rng.integers(21, size=5000), 21)], order=order)
    traversal = FarthestFirst(points, Frame.around(points, 1.0), 0, metric)
    traversal.extend(100)
    assert sorted(map(tuple, points[traversal.indices])) == sorted(map(tuple, np.unique(points, axis=0)))
    assert traversal.covering_radii()[-1] == 0
    assert not traversal.complete
