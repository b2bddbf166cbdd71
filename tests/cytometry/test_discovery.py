"""p-values of labellings, against their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reduset.cytometry.comparing import Fits, p_values, proportion_beyond
from reduset.cytometry.design import Relabellings

STATISTICS = arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=st.integers(0, 5).map(float))


def p_values_of(statistics, rate):
    """From permutations, of each population at a rate above 1, otherwise pooled."""
    B, k = statistics.shape
    fits = Fits(statistics, np.zeros((1, k)), np.zeros((1, k)), np.full(k, 4.0))
    return p_values(fits, Relabellings(np.zeros((B, 2), np.int16), B), "permutation", rate, 1)


@settings(deadline=None)
@given(STATISTICS)
def test_p_values_count_labellings_the_true_one_among_them(statistics):
    B, k = statistics.shape
    own = [sum(statistics[b, j] >= statistics[0, j] for b in range(B)) / B for j in range(k)]
    pooled = [(statistics >= statistics[0, j]).sum() / statistics.size for j in range(k)]
    any_one = [sum(statistics[b].max() >= statistics[0, j] for b in range(B)) / B for j in range(k)]
    np.testing.assert_allclose(p_values_of(statistics, 1e9), own)
    np.testing.assert_allclose(p_values_of(statistics, 0.01), pooled)
    np.testing.assert_allclose(proportion_beyond(statistics.max(axis=1), statistics[0]), any_one)
    assert (p_values_of(statistics, 1e9) >= 1 / B).all()
    assert (proportion_beyond(statistics.max(axis=1), statistics[0]) >= p_values_of(statistics, 1e9)).all()


def test_statistics_without_end_are_counted_like_others():
    statistics = np.array([[np.inf, 1.0], [2.0, 1.0], [np.inf, 0.0]])
    np.testing.assert_allclose(p_values_of(statistics, 1e9), [2 / 3, 2 / 3])
    np.testing.assert_allclose(p_values_of(statistics, 0.01), [2 / 6, 5 / 6])
