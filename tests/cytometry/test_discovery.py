"""p-values of labellings and the false discovery rate, against their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reduset.cytometry.comparing import largest_p_values, own_p_values, pooled_p_values, q_values
from reference_differences import discoveries

P_VALUES = arrays(float, st.integers(1, 30), elements=st.floats(0, 1))
STATISTICS = arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=st.integers(0, 5).map(float))


@settings(deadline=None)
@given(P_VALUES)
def test_q_values_are_in_the_order_of_p_values_and_not_below_them(p):
    q = q_values(p)
    assert (q >= p).all()
    assert (q <= 1).all()
    assert (np.diff(q[np.argsort(p, kind="stable")]) >= 0).all()


@settings(deadline=None)
@given(P_VALUES, st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.5]))
def test_what_is_found_at_a_rate_is_what_the_step_up_rule_rejects(p, rate):
    p = np.minimum(np.round(p, 3) + 1e-5, 1.0)  # no ties with the rule's own lines, where rounding decides
    np.testing.assert_array_equal(q_values(p) <= rate, discoveries(p, rate))


@settings(deadline=None)
@given(P_VALUES, st.randoms())
def test_the_order_of_populations_means_nothing_to_q_values(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    np.testing.assert_array_equal(q_values(p[order]), q_values(p)[order])


@settings(deadline=None)
@given(STATISTICS)
def test_p_values_count_labellings_the_true_one_among_them(statistics):
    B, k = statistics.shape
    own = [sum(statistics[b, j] >= statistics[0, j] for b in range(B)) / B for j in range(k)]
    pooled = [(statistics >= statistics[0, j]).sum() / statistics.size for j in range(k)]
    any_one = [sum(statistics[b].max() >= statistics[0, j] for b in range(B)) / B for j in range(k)]
    np.testing.assert_allclose(own_p_values(statistics), own)
    np.testing.assert_allclose(pooled_p_values(statistics), pooled)
    np.testing.assert_allclose(largest_p_values(statistics), any_one)
    assert (own_p_values(statistics) >= 1 / B).all()
    assert (largest_p_values(statistics) >= own_p_values(statistics)).all()


def test_statistics_without_end_are_counted_like_others():
    statistics = np.array([[np.inf, 1.0], [2.0, 1.0], [np.inf, 0.0]])
    np.testing.assert_allclose(own_p_values(statistics), [2 / 3, 2 / 3])
    np.testing.assert_allclose(pooled_p_values(statistics), [2 / 6, 5 / 6])
