"""Cells that a sample has beside those of the others go with them; what several samples have, or beside the common one, stays."""

import numpy as np
import pytest

from reduset.cytometry import find_populations
from reduset.cytometry.merging import SampleCluster, join_sample_clusters

PLACES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [2.0, 11.0]])


def joined(shares, places=PLACES):
    of_atom, strays = join_sample_clusters(np.arange(shares.shape[1]), places[: shares.shape[1]], shares)
    return of_atom.tolist(), strays


def usual(count=16):
    return np.tile([0.7, 0.2, 0.1, 0.0], (count, 1))


def test_a_population_of_one_sample_that_lacks_its_neighbour_is_joined_with_it():
    shares = usual()
    shares[5] = [0.7, 0.2, 0.01, 0.09]
    assert joined(shares) == ([0, 1, 2, 2], [SampleCluster(2, (5,), pytest.approx(0.09))])
    shares[9] = [0.72, 0.2, 0.0, 0.08]
    assert joined(shares) == ([0, 1, 2, 2], [SampleCluster(2, (5, 9), pytest.approx(0.085))])


@pytest.mark.parametrize(
    "change",
    [
        {5: [0.65, 0.2, 0.1, 0.05]},  # beside the common one
        {5: [0.7, 0.2, 0.0, 0.1], 6: [0.7, 0.2, 0.0, 0.1], 7: [0.7, 0.2, 0.0, 0.1]},  # three of sixteen
        {k: [0.7, 0.2, 0.0, 0.1] for k in range(8)},  # a whole group
        {k: [0.68, 0.2, 0.1, 0.02] for k in range(16)},  # everywhere
    ],
)
def test_what_is_beside_the_common_one_or_in_several_samples_stays(change):
    shares = usual()
    for k, row in change.items():
        shares[k] = row
    assert joined(shares) == ([0, 1, 2, 3], [])


def test_what_is_nearer_to_another_than_that_is_to_any_stays():
    shares = usual()
    shares[5] = [0.7, 0.2, 0.0, 0.1]
    places = PLACES.copy()
    places[3] = [0.0, 25.0]  # farther from the third than the third is from the first
    assert joined(shares, places) == ([0, 1, 2, 3], [])


def test_fewer_than_eight_samples_know_nothing_of_what_is_common():
    shares = usual(7)
    shares[5] = [0.7, 0.2, 0.0, 0.1]
    assert joined(shares) == ([0, 1, 2, 3], [])
    assert joined(np.ones((8, 1))) == ([0], [])


@pytest.mark.slow
def test_strays_are_joined_unless_a_number_of_populations_is_asked_for():
    rng = np.random.default_rng(0)
    cells = [np.concatenate([rng.normal(0, 1, (900, 3)), rng.normal([9, 0, 0], 1, (100, 3))]) for _ in range(8)]
    cells[2][900:, 1] += 7.0
    found = find_populations(cells, rng=0)
    assert found.counts.tolist() == [[900, 100]] * 8
    assert [cluster.samples for cluster in found.sample_specific] == [(2,)]
    three = find_populations(cells, n_populations=3, rng=0)
    assert three.sample_specific == ()
    assert three.counts[2].tolist() == [900, 0, 100]
