"""The test of all at once: PERMANOVA against analysis of variance and sums over pairs, and what certified distances leave open."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f_oneway

from reduset.cytometry import compare_whole, design_of
from reference_differences import all_labellings, f_statistic, pseudo_f

LABELS = ["a"] * 4 + ["b"] * 3 + ["c"] * 4


def distances_of(points):
    return np.sqrt(np.square(points[:, None] - points).sum(axis=2))


def test_on_a_line_it_is_the_analysis_of_variance():
    x = np.random.default_rng(0).normal(size=(11, 1))
    found = compare_whole(distances_of(x), None, design_of(LABELS), 0)
    np.testing.assert_allclose(found.statistic, f_oneway(x[:4, 0], x[4:7, 0], x[7:, 0]).statistic)


def test_on_a_line_with_blocks_and_covariates_it_is_the_f_of_two_fits():
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(12, 1)), ["a", "b", "c"] * 4
    design = design_of(labels, block=np.repeat(np.arange(4), 3).tolist(), covariates={"age": rng.normal(size=12)})
    found = compare_whole(distances_of(x), None, design, 0)
    np.testing.assert_allclose(found.statistic, f_statistic(x[:, 0], design.codes, design.nuisance, np.ones(12)))


def test_in_many_dimensions_it_is_what_sums_over_pairs_say_and_its_p_value_counts_labellings():
    rng = np.random.default_rng(2)
    D = distances_of(rng.normal(size=(7, 3)) + np.repeat([0, 1.2], [3, 4])[:, None])
    design = design_of(["a"] * 3 + ["b"] * 4)
    found = compare_whole(D, None, design, 0)
    statistic, share = pseudo_f(D, design.codes.tolist())
    np.testing.assert_allclose([found.statistic, found.share], [statistic, share])
    others = [pseudo_f(D, codes)[0] for codes in all_labellings(design.codes, design.blocks)]
    assert found.p_value == np.mean(np.array(others) >= statistic * (1 - 1e-9))
    assert found.labellings == len(others) == 35


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_the_interval_holds_the_share_of_all_distances_that_are_possible(seed, blocked):
    rng = np.random.default_rng(seed)
    labels = ["a", "b", "c"] * 3
    design = design_of(labels, block=np.repeat([0, 1, 2], 3).tolist() if blocked else None)
    true = distances_of(rng.normal(size=(9, 4)) + 1.5 * np.array([label == "b" for label in labels])[:, None])
    errors = np.abs(rng.normal(size=(9, 9))) * 10 ** rng.uniform(-3, 0)
    errors = errors + errors.T
    low = np.maximum(true - errors * rng.random(), 0)
    np.fill_diagonal(low, 0)
    found = compare_whole(low, true - low + 1e-12, design, 0)
    assert 0 <= found.interval[0] <= found.interval[1] <= 1
    for t in (0.0, 0.3, 1.0):  # distances of points between the ends may be any
        share = compare_whole(low + t * (true - low), None, design, 0).share
        assert found.interval[0] - 1e-9 <= np.clip(share, 0, 1) <= found.interval[1] + 1e-9


def test_without_errors_the_interval_is_the_share():
    found = compare_whole(distances_of(np.random.default_rng(0).normal(size=(11, 2))), None, design_of(LABELS), 0)
    np.testing.assert_allclose(found.interval, found.share)


def test_samples_without_a_group_and_the_order_of_samples_mean_nothing():
    rng = np.random.default_rng(3)
    D = distances_of(rng.normal(size=(8, 2)))
    labels = ["a", "b", "a", "b", "b", "a", "b", "a"]
    plain = compare_whole(D, None, design_of(labels), 0)
    order = rng.permutation(8)
    mixed = compare_whole(D[np.ix_(order, order)], None, design_of([labels[k] for k in order]), 1)
    np.testing.assert_allclose([mixed.statistic, mixed.p_value], [plain.statistic, plain.p_value])
    more = np.full((9, 9), 7.0)
    more[:8, :8] = D
    np.testing.assert_allclose(compare_whole(more, None, design_of([*labels, None]), 0).p_value, plain.p_value)


def test_samples_that_are_all_the_same_do_not_differ():
    found = compare_whole(np.zeros((8, 8)), None, design_of(["a", "b"] * 4), 0)
    assert (found.share, found.p_value, found.statistic) == (0.0, 1.0, 0.0)
    assert "do not differ significantly (p = 1)" in str(found)


def test_distances_that_no_points_have_give_a_p_value_above_0():
    D = np.array([[0, 9, 1, 1], [9, 0, 1, 1], [1, 1, 0, 9], [1, 1, 9, 0.0]])
    found = compare_whole(D, None, design_of(["a", "a", "b", "b"]), 0)
    assert found.share < 0  # 9 > 1 + 1
    assert found.p_value == 1.0


def test_labellings_that_what_is_held_fixed_decides_in_part_lie_in_what_is_left_of_them():
    rng = np.random.default_rng(5)
    labels = ["a", "b", "c", "a", "b", "c"]
    x = rng.normal(size=(6, 1))
    design = design_of(labels, covariates={"one": [0, 0, 0, 1, 1, 0]})
    found = compare_whole(distances_of(x), None, design, 0)
    assert found.labellings == 90
    fs = []
    for codes in all_labellings(design.codes, design.blocks):
        columns = np.hstack([design.nuisance, (np.array(codes)[:, None] == [1, 2]).astype(float)])
        left = x[:, 0] - columns @ np.linalg.lstsq(columns, x[:, 0], rcond=None)[0]
        fs.append(-float(left @ left))
    columns = np.hstack([design.nuisance, (design.codes[:, None] == [1, 2]).astype(float)])
    own = x[:, 0] - columns @ np.linalg.lstsq(columns, x[:, 0], rcond=None)[0]
    assert found.p_value == pytest.approx(np.mean(np.array(fs) >= -float(own @ own) - 1e-9))


def test_level_is_held_and_strong_groups_are_found():
    rng = np.random.default_rng(6)
    design = design_of(["a"] * 5 + ["b"] * 5)
    p = [compare_whole(distances_of(rng.standard_t(3, size=(10, 4))), None, design, 0).p_value for _ in range(300)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 2.6 * np.sqrt(0.05 * 0.95 / 300)
    apart = distances_of(rng.normal(size=(10, 4)) + 3 * design.codes[:, None])
    assert compare_whole(apart, None, design, 0).p_value == pytest.approx(2 / 252)
