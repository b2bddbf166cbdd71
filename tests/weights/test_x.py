"""Groups of atoms that stand apart, and their masses."""

import numpy as np
import pytest

from reduset import Gaussian
from reduset.weights import isolated_groups, with_masses_of_groups


def test_groups_are_what_the_kernel_tells_apart():
    atoms = np.array([0.0, 1.0, 2.0, 30.0, 31.0, 60.0])[:, None]
    weights = np.array([0.3, 0.3, 0.3, 0.04, 0.05, 0.01])
    groups = isolated_groups(Gaussian(1.0).product_gram(atoms, atoms), weights)
    assert [len(np.flatnonzero(groups == k)) for k in range(3)] == [3, 2, 1]
    assert (groups[:3] == groups[0]).all()
    assert groups[3] == groups[4] != groups[5]


def test_what_is_small_beside_its_neighbours_is_no_group_of_its_own():
    atoms = np.array([0.0, 1.0, 4.0])[:, None]  # linked by none of the wide links, but covered by what is heavy
    K = Gaussian(1.0).product_gram(atoms, atoms)
    light, heavy = np.array([0.5, 0.499, 0.001]), np.array([0.3, 0.3, 0.4])
    assert isolated_groups(K, light)[2] == -1
    assert isolated_groups(K, heavy)[2] >= 0


def test_groups_are_off_their_mass_by_a_tenth_at_most_and_all_add_up():
    groups = np.array([0, 0, 1, 2, -1, -1])
    masses = np.array([0.05, 0.05, 0.02, 0.5, 0.2, 0.18])
    weights = np.array([0.02, 0.03, 0.05, 0.52, 0.3, 0.08])
    found = with_masses_of_groups(weights, groups, masses)
    assert found.sum() == pytest.approx(1)
    ratio = np.bincount(groups + 1, found)[1:] / np.bincount(groups + 1, masses)[1:]
    np.testing.assert_allclose(ratio, [0.9, 1.1, 1.04], rtol=0.02)
    assert found[0] / found[1] == pytest.approx(2 / 3)  # within a group nothing changes


def test_what_is_nearly_right_stays():
    weights, masses = np.array([0.11, 0.3, 0.59]), np.array([0.1, 0.3, 0.6])
    assert with_masses_of_groups(weights, np.array([0, 1, 1]), masses) is weights


def test_a_group_without_weight_gets_none():
    found = with_masses_of_groups(np.array([0.0, 0.5, 0.5]), np.array([0, 1, 2]), np.array([0.2, 0.3, 0.5]))
    assert found[0] == 0
    assert found.sum() == pytest.approx(1)
