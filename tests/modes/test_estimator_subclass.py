"""A subclass of an estimator may have fewer parameters than the estimator."""

import numpy as np

from reduset.modes import SparseMeanShift


class Narrow(SparseMeanShift):
    def __init__(self, bandwidth=1.0):
        super().__init__(bandwidth=bandwidth, size=20, random_state=0)


def test_a_subclass_with_fewer_parameters_keeps_the_others():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    expected = SparseMeanShift(bandwidth=1.0, size=20, random_state=0).fit(rows)
    found = Narrow().fit(rows)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
