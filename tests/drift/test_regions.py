"""Where mass was gained or lost."""

import numpy as np
import pytest
from scipy.stats import binom

from reduset.drift import DriftTest, two_sample
from reduset.drift.regions import Cells, nearest_cells


def clusters(rng, n, shares, spread=0.3):
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])
    return centres[rng.choice(4, n, p=shares)] + spread * rng.normal(size=(n, 2))


@pytest.mark.slow
def test_a_cluster_that_gained_and_one_that_lost_are_found_with_their_shares():
    rng = np.random.default_rng(0)
    X, Y = clusters(rng, 6000, [0.4, 0.3, 0.2, 0.1]), clusters(rng, 6000, [0.4, 0.2, 0.2, 0.2])
    regions = two_sample(X, Y, rng=0).where()
    gained, lost = (
        max((each for each in regions if sign * each.change > 0), key=lambda each: abs(each.change)) for sign in (1, -1)
    )
    np.testing.assert_allclose(gained.centre, [6.0, 6.0], atol=0.4)
    np.testing.assert_allclose(lost.centre, [6.0, 0.0], atol=0.4)
    assert (gained.before, gained.after) == pytest.approx((0.1, 0.2), abs=0.03)
    assert (lost.before, lost.after) == pytest.approx((0.3, 0.2), abs=0.03)
    assert (gained.extent < 1.0).all()
    assert gained.p_value <= 0.05
    assert all(np.linalg.norm(Y[row] - [6.0, 6.0]) < 2 for row in gained.rows)


def test_what_is_far_outside_is_found_where_it_is():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(20_000, 3)), rng.normal(size=(1000, 3))
    Y[:30] = np.array([50.0, -40.0, 0.0]) + rng.normal(size=(30, 3))
    found = DriftTest(random_state=0).fit(X).test(Y)
    first = found.where()[0]
    assert found.drift
    np.testing.assert_allclose(first.centre, [50.0, -40.0, 0.0], atol=5.0)
    assert set(first.columns) == {"x1", "x2"}
    assert set(first.rows) <= set(range(30))


@pytest.mark.slow
def test_where_nothing_changed_no_region_is_told_more_often_than_alpha():
    rng = np.random.default_rng(2)
    told = sum(
        bool(two_sample(rng.normal(size=(300, 2)), rng.normal(size=(200, 2)), rng=k, size=64, n_resamples=99).where(0.1))
        for k in range(40)
    )
    assert binom.sf(told - 1, 40, 0.1) > 1e-3


def test_other_places_are_not_said_to_lose_what_one_gained():
    rng = np.random.default_rng(3)
    X, Y = clusters(rng, 4000, [0.3, 0.3, 0.3, 0.1]), clusters(rng, 4000, [0.2, 0.2, 0.2, 0.4])
    regions = two_sample(X, Y, rng=0).where(0.001)
    assert regions[0].change == pytest.approx(0.3, abs=0.04)
    assert len(regions) == 1


def test_cells_hold_the_sums_of_their_rows():
    rng = np.random.default_rng(4)
    rows, weights = rng.normal(size=(400, 2)) + 1e4, rng.random(400)
    weights /= weights.sum()
    features = two_sample(rows[:200], rows[200:], rng=0, size=20).comparison.features
    cells = Cells.of(features, rows, weights)
    sums, _ = cells.by_cell()
    index, _ = nearest_cells(features, rows)
    for k in range(len(features.atoms)):
        there = index == k
        assert cells.shares[k] == pytest.approx(weights[there].sum())
        np.testing.assert_allclose(sums[k], weights[there] @ rows[there])
        kept = cells.examples[k][cells.examples[k] >= 0]
        assert set(kept) <= set(np.flatnonzero(there))
        assert len(kept) == min(there.sum(), 3)


def test_sums_of_occupied_cells_are_those_of_all_cells():
    rng = np.random.default_rng(6)
    rows, weights = rng.normal(size=(12, 300)), np.full(12, 1 / 12)
    features = two_sample(rng.normal(size=(60, 300)), rows, rng=0, size=20).comparison.features
    kept = Cells.of(features, rows, weights)
    stored = Cells.without_rows(kept.rows, kept.shares, *kept.by_cell())
    some = rng.random(len(kept.shares)) < 0.5
    assert len(kept.sums) <= 12 < len(stored.sums)
    for one, other in zip(kept.over(some), stored.over(some), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_region_speaks():
    rng = np.random.default_rng(5)
    X, Y = clusters(rng, 1000, [0.4, 0.3, 0.2, 0.1]), clusters(rng, 1000, [0.1, 0.3, 0.2, 0.4])
    told = [str(each) for each in two_sample(X, Y, rng=0).where()]
    assert any(text.startswith("gained") for text in told)
    assert any(text.startswith("lost") for text in told)
