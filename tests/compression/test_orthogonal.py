"""A mean that is orthogonal to the atoms chosen: the zero function is the best there is, with an error of 100 % and a warning."""

import warnings

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, KernelMean, compress, weigh
from reduset.cohort import CohortMap
from reduset.select import ColumnNorm, KCenter, Random, Thinning
from reduset.weights import KINDS, is_signed

LINEAR = FunctionKernel(lambda A, B: A @ B.T)
THREE = np.array([[1.0, 0.0, 0.0], [-0.5, 0.5, np.sqrt(0.5)], [-0.5, np.sqrt(0.5), 0.5]])


def is_orthogonal(small):
    return small._prefixes.is_orthogonal(small.selected)


def rows():
    """40 unit vectors in the plane of the first two axes that sum to 0, and four with a component along the third."""
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    plane = np.stack([np.cos(angle), np.sin(angle), np.zeros(40)], axis=1)
    tilted = np.array([[np.cos(t) * 0.6, np.sin(t) * 0.6, 0.8] for t in np.arange(4) * np.pi / 2])
    return np.concatenate([plane, tilted])


def in_plane(small):
    return bool((small.mean.atoms[:, 2] == 0).all())


def test_free_weights_of_three_points_are_zero_with_an_error_of_one():
    with pytest.warns(UserWarning, match="orthogonal to all atoms chosen, 1 of 3 points: the best weights are 0.* 100 %"):
        small = compress(THREE, LINEAR, size=1, select=KCenter(first=0), rng=0)
    assert is_orthogonal(small)
    np.testing.assert_array_equal(small.mean.weights, [0.0])
    assert small.certificate.relative_error == 1.0
    assert small.mean.norm() == 0
    np.testing.assert_array_equal(small.mean(THREE), np.zeros(3))
    assert "100 %" in str(small)
    assert small.certificate.bound >= small.certificate.norm


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "free"])
def test_weights_with_a_sum_cannot_be_zero_and_are_certified_as_they_are(kind):
    with pytest.warns(UserWarning, match=f"weights='{kind}'.*202"):
        small = compress(THREE, LINEAR, size=1, select=KCenter(first=0), weights=kind, rng=0)
    f = THREE.mean(axis=0)
    np.testing.assert_allclose(small.mean.weights, [1.0])
    assert small.certificate.relative_error == pytest.approx(np.linalg.norm(f - THREE[0]) / np.linalg.norm(f))


@pytest.mark.parametrize("selector", [KCenter(first=0), Random(), ColumnNorm(), Thinning()], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_any_selector_that_misses_f_has_an_error_of_at_least_one(selector, kind):
    X = rows()
    f = X.mean(axis=0)
    missed = 0
    for seed in range(6):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            small = compress(X, LINEAR, size=2, select=selector, weights=kind, rng=seed)
        assert any("orthogonal" in str(each.message) for each in caught) == in_plane(small) == is_orthogonal(small)
        truth = np.linalg.norm(f - small.mean.weights @ small.mean.atoms) / np.linalg.norm(f)
        assert small.certificate.relative_error == pytest.approx(truth, rel=1e-9)
        if in_plane(small):
            missed += 1
            assert truth >= 1 - 1e-12
            assert kind != "free" or not small.mean.weights.any()
            assert is_signed(kind) or small.mean.weights.min() >= 0
    assert missed


def test_rounding_of_the_products_makes_no_weights():
    """κ of some atoms is some 1e-17 here: weights that are rounding alone are 0, and are not rescaled to a sum."""
    X = rows() @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    with pytest.warns(UserWarning, match="orthogonal"):
        free = weigh(X, [0, 7], LINEAR, rng=0)
    with pytest.warns(UserWarning, match="orthogonal"):
        clipped = weigh(X, [0, 7], LINEAR, weights="clipped", rng=0)
    assert not free.mean.weights.any()
    np.testing.assert_allclose(clipped.mean.weights, [0.5, 0.5])


def test_atoms_of_ones_own_and_prefixes_may_miss_f_too():
    with pytest.warns(UserWarning, match="orthogonal"):
        small = weigh(THREE, [0], LINEAR, rng=0)
    assert not small.mean.weights.any()
    whole = compress(THREE, LINEAR, size=3, select=KCenter(first=0), rng=0)
    first = whole.at(1)
    assert (first.certificate.relative_error, first.mean.weights.tolist()) == (1.0, [0.0])


def test_a_bag_that_no_atom_reaches_is_the_zero_function():
    near, far = np.zeros((50, 1)), np.full((50, 1), 1e6)
    bags = [near + np.linspace(0, 1, 50)[:, None], near + np.linspace(0.5, 1.5, 50)[:, None]]
    cohort = CohortMap(kernel=Gaussian(0.5), size=5, layout="mds", n_components=1, random_state=0).fit(bags)
    with pytest.warns(UserWarning, match="compared in full"):
        distances, _ = cohort.distances_to_fitted([far])
    full = [KernelMean.from_samples(bag, Gaussian(0.5)) for bag in [*bags, far]]
    np.testing.assert_allclose(distances[0], [full[2].distance(mean) for mean in full[:2]], rtol=1e-3)
