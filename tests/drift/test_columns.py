"""Columns one by one: shares, quantiles, directions, levels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from reduset.drift.columns import ColumnBins, changed_columns


def compare(X, Y, seed=0):
    bins = ColumnBins.of(X)
    before, after = (bins.shares(rows, np.full(len(rows), 1 / len(rows))) for rows in (X, Y))
    names = tuple(f"x{k + 1}" for k in range(X.shape[1]))
    return changed_columns(bins, before, after, (len(X), len(Y)), names, np.random.default_rng(seed))


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 200), st.integers(1, 90), st.integers(0, 99))
def test_shares_add_up_and_count_what_lies_below_at_and_between_edges(n, values, seed):
    rng = np.random.default_rng(seed)
    X, Y = (rng.integers(values, size=(n, 1)) / 3 for _ in range(2))
    bins = ColumnBins.of(X)
    (found,) = bins.shares(Y, np.full(n, 1 / n))
    edges = bins.edges[0]
    expected = np.zeros(2 * len(edges) + 1)
    for y in Y[:, 0]:
        below = sum(edge < y for edge in edges)
        expected[2 * below + (y in edges)] += 1 / n
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "kind", "direction"),
    [
        (lambda y: y + 0.3, "shift", "higher"),
        (lambda y: y - 0.3, "shift", "lower"),
        (lambda y: y * 1.5, "spread", "wider spread"),
        (lambda y: y * 0.6, "spread", "narrower spread"),
        (lambda y: np.where(np.arange(len(y)) < 0.04 * len(y), 2.5, y), "tails", "more high values"),
        (lambda y: np.where(y < -1.4, 0.0, y), "tails", "fewer low values"),
    ],
)
def test_a_change_is_told_by_its_kind_and_direction(change, kind, direction):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20_000, 2)), rng.normal(size=(2000, 2))
    Y[:, 1] = change(Y[:, 1])
    first, second = compare(X, Y)
    assert (first.name, first.kind, first.direction) == ("x2", kind, direction)
    assert first.p_value < 0.001
    assert second.p_value > 0.01


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("law", ["normal", "counts", "binary", "heavy"])
@pytest.mark.parametrize("count", [20, 300])
def test_columns_that_did_not_change_are_called_changed_no_more_often_than_they_say(law, count):
    draw = {
        "normal": lambda rng, n: rng.normal(size=n),
        "counts": lambda rng, n: rng.poisson(1.0, n).astype(float),
        "binary": lambda rng, n: (rng.random(n) < 0.1).astype(float),
        "heavy": lambda rng, n: rng.standard_cauchy(n),
    }[law]
    rng = np.random.default_rng(0)
    false = 0
    for k in range(60):
        X = np.stack([draw(rng, 3000) for _ in range(5)], axis=1)
        Y = np.stack([draw(rng, count) for _ in range(5)], axis=1)
        false += compare(X, Y, k)[0].p_value <= 0.05
    assert binom.sf(false - 1, 60, 0.05) > 1e-3


def test_a_column_that_was_constant_and_is_not_any_more():
    X, Y = np.zeros((500, 2)), np.zeros((100, 2))
    Y[:40, 0] = 1.0
    first, second = compare(X, Y)
    assert first.name == "x1"
    assert first.p_value < 1e-6
    assert second.p_value == 1.0
    assert second.direction == "has one value"


def test_medians_and_middles_are_those_of_the_rows():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(20_000, 1)), rng.normal(1.0, 2.0, size=(20_000, 1))
    (found,) = compare(X, Y)
    assert found.median == pytest.approx((np.median(X), np.median(Y)), abs=0.05)
    assert found.middle == pytest.approx([np.subtract(*np.quantile(rows, [0.75, 0.25])) for rows in (X, Y)], rel=0.05)
    assert "median" in str(found)


def test_holm_takes_their_number_into_account():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(2000, 8)), rng.normal(size=(300, 8))
    found = compare(X, Y)
    alone = np.array([each.p_alone for each in found])
    expected = np.minimum(np.maximum.accumulate(alone * (8 - np.arange(8))), 1.0)
    np.testing.assert_allclose([each.p_value for each in found], expected)
