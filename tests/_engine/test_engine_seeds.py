"""Seeds of k-means: each drawn by weight times the squared distance to those before it, as the definition has it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from reduset._engine.k_means import draw_seeds


def drawn(Z, w, luck):
    seeds = np.full(len(luck), -1, np.int64)
    count = draw_seeds(np.ascontiguousarray(Z, np.float64), np.asarray(w, np.float64), np.asarray(luck, np.float64), seeds)
    return seeds[:count]


def chances(Z, w, before):
    """The chance of every row to come next."""
    gap = np.ones(len(Z)) if len(before) == 0 else np.min([reference.gaps(Z, Z[k]) for k in before], axis=0)
    return np.asarray(w) * gap / np.sum(np.asarray(w) * gap)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), d=st.integers(1, 5), count=st.integers(1, 12), coarse=st.booleans())
def test_each_is_the_row_where_the_sum_of_chances_passes_the_draw(seed, n, d, count, coarse):
    rng = np.random.default_rng(seed)
    Z = rng.integers(0, 3, size=(n, d)).astype(float) if coarse else rng.normal(size=(n, d))
    w = rng.integers(0, 3, size=n).astype(float)
    w[0] = 1.0
    luck = rng.random(count)
    found = drawn(Z, w, luck)
    places = len(np.unique(Z[w > 0], axis=0))
    assert len(found) == min(count, places)
    for k, row in enumerate(found):
        ends = np.cumsum(chances(Z, w, found[:k]))
        below = 0.0 if row == 0 else ends[row - 1]
        assert below - 1e-9 <= luck[k] <= ends[row] + 1e-9
        assert w[row] > 0
    assert len(np.unique(Z[found], axis=0)) == len(found)


def test_their_law_is_that_of_the_definition():
    Z, w = np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([1.0, 2.0, 0.0, 1.0])
    rng = np.random.default_rng(0)
    pairs = np.array([drawn(Z, w, rng.random(2)) for _ in range(4000)])
    expected = np.zeros((4, 4))
    for row, chance in enumerate(chances(Z, w, [])):
        if chance > 0:
            expected[row] = chance * chances(Z, w, [row])
    counts = np.zeros((4, 4))
    np.add.at(counts, tuple(pairs.T), 1)
    assert np.abs(counts / 4000 - expected).max() < 4 * np.sqrt(0.25 / 4000)
    assert not counts[expected == 0].any()


@pytest.mark.parametrize("luck", [0.0, 1 - 2.0**-53])
def test_the_ends_of_the_draw_are_rows_of_weight(luck):
    Z, w = np.arange(6.0)[:, None], np.array([0.0, 0.3, 0.7, 0.1, 0.0, 0.0])
    assert drawn(Z, w, [luck])[0] == (1 if luck == 0 else 3)


def test_one_place_has_one_seed():
    assert drawn(np.ones((5, 2)), np.ones(5), np.full(3, 0.5)).tolist() == [2]
