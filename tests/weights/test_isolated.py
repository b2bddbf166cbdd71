"""Groups of atoms that stand apart, and their masses."""

import numpy as np

from reduset import Gaussian
from reduset.weights.isolated import isolated_groups, with_masses_of_groups


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


def test_each_group_has_its_mass_and_the_others_theirs_together():
    groups, masses = np.array([0, 0, 1, -1, -1]), np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    found = with_masses_of_groups(np.array([0.05, 0.05, 0.5, 0.3, 0.1]), groups, masses)
    np.testing.assert_allclose(found, [0.15, 0.15, 0.3, 0.3, 0.1])


def test_a_group_without_weight_gets_none():
    found = with_masses_of_groups(np.array([0.0, 0.5]), np.array([0, 1]), np.array([0.2, 0.8]))
    np.testing.assert_allclose(found, [0.0, 1.0])
