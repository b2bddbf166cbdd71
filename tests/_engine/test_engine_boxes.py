"""Probabilities of boxes keep their digits in both tails."""

import numpy as np
import pytest
from scipy.special import log_ndtr

from reduset._engine.boxes import between, box_sums, normal_tail


@pytest.mark.parametrize("start", [5.0, 12.0, 30.0])
def test_an_interval_far_to_the_left_is_its_mirror_image(start):
    a, b = np.array([start]), np.array([start + 1.0])
    expected = np.exp(log_ndtr(-a)) - np.exp(log_ndtr(-b))
    assert between(a, b, normal_tail) == pytest.approx(expected, rel=1e-12)
    assert between(-b, -a, normal_tail) == pytest.approx(expected, rel=1e-12)


def test_a_box_far_from_all_points_keeps_its_digits():
    points, weights = np.zeros((3, 1)), np.full(3, 1 / 3)
    sums = box_sums(points, weights, np.array([[-31.0], [30.0]]), np.array([[-30.0], [31.0]]), 1.0)
    assert sums[0] == pytest.approx(sums[1], rel=1e-12)
    assert 0 < sums[0] < 1e-190
