"""Coordinates and statistics against their definitions."""

import numpy as np
import pytest

from reduset.drift.columns import ColumnBins
from reduset.drift.feature_map import FeatureMap, median_distance
from reduset.drift.statistics import KernelStatistics
from reduset.kernels import Gaussian


def fitted(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * np.linspace(1, 5, d)
    scales = np.linspace(1, 5, d)
    return rows, FeatureMap.fitted(rows, rows, scales, median_distance(rows, scales), ColumnBins.of(rows))


def distances(features, difference):
    return np.asarray([np.linalg.norm(difference[part]) for part in features.parts])


def test_means_are_the_means_of_the_rows():
    rows, features = fitted()
    weights = np.random.default_rng(1).random(60)
    np.testing.assert_allclose(features.mean(rows, weights), weights @ features.rows(rows), rtol=1e-4, atol=1e-6)


def test_plain_statistics_are_the_squared_distances_of_the_means_where_all_rows_are_atoms():
    rows, features = fitted()
    X, Y = rows[:25], rows[25:]
    difference = features.rows(Y).mean(axis=0) - features.rows(X).mean(axis=0)
    for kernel, distance in zip(features.kernels[:3], distances(features, difference)[:3], strict=True):
        among = [float(kernel.product_gram(a, b).mean()) for a, b in ((X, X), (Y, Y), (X, Y))]
        assert distance**2 == pytest.approx(among[0] + among[1] - 2 * among[2], rel=1e-3)


def test_axes_are_principal_and_orthogonal_to_each_other():
    rows, features = fitted()
    coordinates = features.rows(rows)
    for part in features.parts:
        covariance = np.cov(coordinates[:, part], rowvar=False, bias=True)
        np.testing.assert_allclose(covariance, np.diag(features.variances[part]), atol=1e-6 * covariance[0, 0])


def test_a_whitened_statistic_is_a_regularised_mahalanobis_distance():
    _, features = fitted()
    difference = np.random.default_rng(2).normal(size=features.size)
    part, spread = features.parts[0], features.variances[features.parts[0]]
    expected = (difference[part] ** 2 / (spread + 0.1 * spread[0])).sum()
    assert KernelStatistics().values(features, difference)[1] == pytest.approx(expected)


def test_units_of_columns_do_not_matter():
    rng = np.random.default_rng(3)
    rows, scales = rng.normal(size=(40, 2)), np.array([1.0, 1.0])
    units = np.array([1000.0, 0.01])
    one = FeatureMap.fitted(rows, rows[:20], scales, 1.5, ColumnBins.of(rows))
    other = FeatureMap.fitted(rows * units, rows[:20] * units, units, 1.5, ColumnBins.of(rows * units))
    np.testing.assert_allclose(np.square(one.rows(rows)).sum(axis=1), np.square(other.rows(rows * units)).sum(axis=1), rtol=1e-6)


def test_scales_at_which_rows_see_nobody_are_left_out():
    rng = np.random.default_rng(4)
    octaves = []
    for d, width in ((2, 1.5), (40, 9.0)):
        rows, atoms = rng.normal(size=(500, d)), rng.normal(size=(50, d))
        octaves.append(FeatureMap.fitted(rows, atoms, np.ones(d), width, ColumnBins.of(rows)).octaves)
    assert len(octaves[0]) > len(octaves[1]) >= 1


def test_down_to_a_width_and_plain():
    _, features = fitted()
    kept = features.plain_down_to(features.bandwidths[1])
    assert kept.octaves == features.octaves[:2]
    coefficients = KernelStatistics().coefficients(kept)
    assert coefficients.shape == (2, kept.size)
    assert set(np.unique(coefficients)) == {0.0, 1.0}


def test_differences_are_taken_shorter_by_what_they_may_be_off_by():
    _, features = fitted()
    difference = np.random.default_rng(5).normal(size=features.size)
    lengths = distances(features, difference)
    errors = np.linspace(0.1, 2.0, len(lengths)) * lengths
    shorter = distances(features, features.less(difference, errors))
    np.testing.assert_allclose(shorter, np.maximum(lengths - errors, 0.0), atol=1e-12)


def test_kernels_are_gaussians_of_these_widths():
    _, features = fitted()
    assert all(isinstance(kernel, Gaussian) for kernel in features.kernels)
    assert [kernel.width for kernel in features.kernels] == features.bandwidths.tolist()
    np.testing.assert_allclose(np.diff(np.log2(features.bandwidths)), -1.0)


def test_the_covariance_is_that_of_the_rows_in_any_blocks(monkeypatch):
    rows, features = fitted()
    monkeypatch.setattr("reduset.drift.feature_map.BLOCK_ROWS", 7)
    np.testing.assert_allclose(features.covariance(rows), np.cov(features.rows(rows), rowvar=False, bias=True), atol=1e-12)
