"""Shadows of long rows by matrix products: centres and owners are those of the definition, one row after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import set_threads
from reduset._engine import Frame
from reduset._engine.shadows import ROWS_PER_BLOCK, shadows_by_products


def shadows(Z, reach):
    return shadows_by_products(Z, Frame(np.zeros(Z.shape[1]), 1.0), reach, None)


def by_definition(Z, reach):
    centres, owner = [], np.full(len(Z), -1)
    for row in range(len(Z)):
        if owner[row] < 0:
            near = ((Z - Z[row]) ** 2).sum(axis=1) < reach
            near[row] = True
            owner[near & (owner < 0)] = len(centres)
            centres.append(row)
    return centres, owner


def assert_same(Z, reach):
    found = shadows(Z, reach)
    assert found is not None
    centres, owner = by_definition(Z, reach)
    assert found[0].tolist() == centres
    np.testing.assert_array_equal(found[1], owner)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 300), d=st.integers(1, 60), spread=st.floats(0.3, 3.0))
def test_centres_and_owners_are_those_of_the_definition(seed, n, d, spread):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) / np.sqrt(2 * d)
    gaps = np.sort(((Z[:, None] - Z) ** 2).sum(axis=2)[np.triu_indices(n, 1)])
    reach = float(np.quantile(gaps, 0.2) * spread)
    if not np.isclose(gaps, reach, rtol=1e-9).any():
        assert_same(Z, reach)


@pytest.mark.parametrize("n", [ROWS_PER_BLOCK - 1, ROWS_PER_BLOCK + 1, 3 * ROWS_PER_BLOCK])
@pytest.mark.parametrize("reach", [0.4, 0.8, 1.2])
def test_blocks_do_not_show(n, reach):
    assert_same(np.random.default_rng(n).normal(size=(n, 48)) / np.sqrt(96), reach)


def test_gaps_that_single_precision_cannot_tell_from_the_reach_are_decided_in_double():
    base = np.random.default_rng(0).normal(size=(40, 50))
    step = np.zeros((40, 50))
    step[:, 0] = 0.5 + np.linspace(-1e-9, 1e-9, 40)
    Z = np.vstack([base, base + step])
    assert_same(Z, 0.25)


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_rows_far_from_zero_are_taken_about_their_mean(offset):
    Z = np.rint(np.random.default_rng(1).normal(size=(200, 40)) * 64) / 64 + offset
    assert_same(Z, 60.03)


def test_where_products_cancel_too_much_nothing_is_said():
    Z = np.vstack([np.zeros((2, 40)), np.full((2, 40), 1e12)])
    assert shadows(Z, 1e-6) is None


def test_coinciding_rows_have_one_centre():
    Z = np.repeat(np.random.default_rng(0).normal(size=(5, 40)), 30, axis=0)
    assert_same(Z, 1e-3)


def test_threads_change_nothing():
    Z = np.random.default_rng(2).normal(size=(3000, 64)) / np.sqrt(128)
    found = []
    for count in (1, 3):
        set_threads(count)
        try:
            found.append(shadows(Z, 0.9))
        finally:
            set_threads(None)
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("matrix", [0.25, np.diag(np.linspace(0.2, 0.3, 60))], ids=["number", "matrix"])
def test_a_frame_is_what_its_coordinates_are(dtype, matrix):
    X = (np.random.default_rng(3).normal(size=(900, 60)) / np.sqrt(60) + 7.0).astype(dtype)
    frame = Frame.around(X, matrix)
    one, other = shadows_by_products(X, frame, 0.09, None), shadows(frame.apply(X), 0.09)
    assert 10 < len(one[0]) < 890
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_columns_in_which_no_row_differs_change_nothing():
    Z = np.random.default_rng(4).normal(size=(700, 48)) / np.sqrt(96)
    wide = np.column_stack([np.full((700, 30), 0.1), Z, np.full((700, 2), -3.3)])
    np.testing.assert_array_equal(shadows(wide, 0.8)[1], shadows(Z, 0.8)[1])
    assert_same(wide, 0.8)
