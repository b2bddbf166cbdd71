"""Moving windows: every statistic that is looked at is that of the definition, however the rows come."""

import numpy as np
import pytest

from reduset._engine import WindowSums

WINDOWS = np.array([2, 5, 16, 24])


def statistics(rows, form, centres, factors):
    """The largest statistic after each row by the definition: window by window, each a sum over its rows."""
    found = np.full(len(rows), -np.inf)
    for end in range(1, len(rows) + 1):
        for k, w in enumerate(WINDOWS):
            if end >= w and end % max(w // 8, 1) == 0:
                mean = rows[end - w : end].mean(axis=0)
                found[end - 1] = max(found[end - 1], (w * form @ mean**2 - centres[k]) * factors[k])
    return found


def setting(seed=0, n=90, p=7):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)).astype(np.float32), rng.random(p), rng.random(4), rng.random(4) + 0.5


@pytest.mark.parametrize("parts", [[90], [1] * 90, [40, 50], [7, 1, 82]])
def test_statistics_are_those_of_the_definition_in_any_parts(parts):
    rows, form, centres, factors = setting()
    sums, found = WindowSums.empty(WINDOWS, 7), []
    begun = 0
    for count in parts:
        largest, which = np.empty(count), np.empty(count, np.int64)
        order = np.arange(begun, begun + count)
        assert sums.advance(rows, order, np.zeros(7), form, centres, factors, np.inf, largest, which) == count
        found.extend(largest)
        begun += count
    np.testing.assert_allclose(found, statistics(rows.astype(float), form, centres, factors), rtol=1e-9, atol=1e-9)


def test_it_ends_after_a_crossing_and_keeps_the_last_sums():
    rows, form, centres, factors = setting(1)
    expected = statistics(rows.astype(float), form, centres, factors)
    threshold = np.sort(expected)[-3]
    sums = WindowSums.empty(WINDOWS, 7, memory=30)
    largest, which = np.empty(90), np.empty(90, np.int64)
    taken = sums.advance(rows, np.arange(90), np.zeros(7), form, centres, factors, threshold, largest, which)
    assert taken == np.flatnonzero(expected >= threshold * (1 - 1e-12))[0] + 1
    np.testing.assert_allclose(np.diff(sums.kept(), axis=0), rows[max(taken - 30, 0) : taken], atol=1e-6)


def test_an_offset_is_added_to_every_row():
    rows, form, centres, factors = setting(2)
    shift = np.linspace(-1, 1, 7)
    sums = WindowSums.empty(WINDOWS, 7)
    largest, which = np.empty(90), np.empty(90, np.int64)
    sums.advance(rows, np.arange(90), shift, form, centres, factors, np.inf, largest, which)
    np.testing.assert_allclose(largest, statistics(rows + shift, form, centres, factors), rtol=1e-6)
