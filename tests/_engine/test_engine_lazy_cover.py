"""The lazy traversal against the definition, whatever the rows: the same rows in the same order, the same radii."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset._engine import FarthestFirst, Frame, HostRows, LazyCover
from reduset._engine import lazy_cover as module

KINDS = ("bell", "lattice", "copies", "heavy", "line")


def drawn(kind, n, d, rng):
    """Rows with ties, copies and outliers."""
    if kind == "lattice":
        return np.round(rng.normal(size=(n, d)))
    if kind == "copies":
        return np.repeat(rng.normal(size=(n // 40 + 1, d)), 40, axis=0)[:n]
    if kind == "heavy":
        return rng.standard_t(1.5, size=(n, d)).clip(-1e3, 1e3)
    return rng.normal(size=(n, 1)) @ rng.normal(size=(1, d)) if kind == "line" else rng.normal(size=(n, d))


def by_definition(rows, start, most, nearer=0.0):
    """Rows, squared distances at which they were chosen, and the squared radius that is left."""
    chosen, at = [], []

    def gaps(centre):
        total = np.zeros(len(rows))
        for j in range(rows.shape[1]):
            u = rows[:, j] - centre[j]
            total += u * u
        return total

    least = np.min([gaps(centre) for centre in start], axis=0)
    while len(chosen) < most and least.max() > nearer:
        chosen.append(int(np.argmax(least)))
        at.append(least.max())
        least = np.minimum(least, gaps(rows[chosen[-1]]))
    return chosen, at, least.max()


@pytest.fixture(params=["usual", "small looks"])
def looks(request, monkeypatch):
    """Rounds of few rows and blocks of few entries as well, so that small data have many of both."""
    if request.param == "small looks":
        for name, value in (("MIN_CANDIDATES", 2), ("SAMPLED", 16)):
            monkeypatch.setattr(module, name, value)
        monkeypatch.setattr(HostRows, "entries", 64)
        monkeypatch.setattr(HostRows, "candidates", 8)
        monkeypatch.setattr(HostRows, "first_rows", 4)
        monkeypatch.setattr(HostRows, "max_full_update", 32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_choices_and_radii_are_those_of_the_definition(kind, dtype, looks):
    rng = np.random.default_rng(KINDS.index(kind))
    rows = drawn(kind, 700, 5, rng).astype(dtype)
    cover = LazyCover(HostRows(rows))
    cover.add_rows(np.array([3]))
    left = cover.extend(60)
    exact = rows.astype(np.float64)
    chosen, at, expected = by_definition(exact, exact[[3]], 60)
    assert cover.indices == chosen
    np.testing.assert_array_equal(cover.distances, at)
    assert left == expected


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 300), st.integers(1, 60), st.integers(0, 40), st.sampled_from(KINDS), st.integers(0, 99))
def test_any_number_of_rows_and_columns(n, d, most, kind, seed):
    rows = drawn(kind, n, d, np.random.default_rng(seed))
    cover = LazyCover(HostRows(rows))
    cover.add_rows(np.array([0]))
    left = cover.extend(most)
    chosen, at, expected = by_definition(rows, rows[:1], most)
    assert (cover.indices, left) == (chosen, expected)
    np.testing.assert_array_equal(cover.distances, at)


def test_going_on_is_what_going_all_the_way_at_once_is(looks):
    rows = np.random.default_rng(1).normal(size=(500, 4)).astype(np.float32)
    one, two = LazyCover(HostRows(rows)), LazyCover(HostRows(rows))
    for cover in (one, two):
        cover.add_rows(np.array([0]))
    whole = one.extend(50)
    for _ in range(5):
        last = two.extend(10)
    assert (two.indices, two.distances, last) == (one.indices, one.distances, whole)


def test_a_radius_ends_it_when_no_row_is_farther(looks):
    rows = np.random.default_rng(2).normal(size=(400, 3))
    for nearer in (4.0, 1.0, 0.3):
        cover = LazyCover(HostRows(rows))
        cover.add_rows(np.array([7]))
        left = cover.extend(400, nearer)
        chosen, _, expected = by_definition(rows, rows[[7]], 400, nearer)
        assert (cover.indices, left) == (chosen, expected)
        assert left <= nearer


def test_a_radius_that_a_row_is_at_exactly_is_enough():
    cover = LazyCover(HostRows(np.array([[0.0], [2.0], [1.0]])))
    cover.add_rows(np.array([0]))
    assert (cover.extend(3, 4.0), cover.indices) == (4.0, [])
    assert (cover.extend(3, 3.99), cover.indices) == (1.0, [1])


def test_centres_need_not_be_rows_and_several_may_be_there_at_the_start(looks):
    rng = np.random.default_rng(3)
    rows, start = rng.normal(size=(300, 6)), rng.normal(size=(9, 6))
    cover = LazyCover(HostRows(rows))
    cover.add(start)
    left = cover.extend(20)
    chosen, _, expected = by_definition(rows, start, 20)
    assert (cover.indices, left) == (chosen, expected)


def test_the_cosine_is_the_distance_of_rows_of_length_one(looks):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(400, 7)) * rng.lognormal(size=(400, 1)) + 0.3
    cover = LazyCover(HostRows(rows), cosine=True)
    cover.add_rows(np.array([5]))
    left = cover.extend(30)
    unit = rows / np.sqrt((rows * rows).sum(axis=1))[:, None]
    chosen, _, expected = by_definition(unit, unit[[5]], 30)
    assert (cover.indices, left) == (chosen, expected)


def test_all_rows_the_same_leave_nothing_to_choose():
    cover = LazyCover(HostRows(np.full((50, 3), 0.1, np.float32)))
    cover.add_rows(np.array([0]))
    assert (cover.extend(10), cover.indices) == (0.0, [])


def test_rows_are_those_of_the_traversal_in_leaves():
    rows = np.random.default_rng(5).normal(size=(20_000, 8)).astype(np.float32)
    cover, leaves = LazyCover(HostRows(rows)), FarthestFirst(rows, Frame.around(rows, 1.0), 0)
    cover.add_rows(np.array([0]))
    cover.extend(199)
    leaves.extend(200)
    assert [0, *cover.indices] == leaves.indices.tolist()


@pytest.mark.parametrize("offset", [1e2, 1e5, 1e8])
def test_rows_far_from_the_origin_have_the_owners_that_they_have_there(offset):
    rows = np.round(np.random.default_rng(7).normal(size=(800, 5)) * 64) / 64
    near, far = LazyCover(HostRows(rows)), LazyCover(HostRows(rows + offset))
    for cover in (near, far):
        cover.add_rows(np.array([0]))
        cover.extend(50)
    assert far.indices == near.indices
    gaps = np.linalg.norm(rows[:, None] - rows[[0, *near.indices]], axis=2)
    owner, distance = far.assignments()
    np.testing.assert_allclose(gaps[np.arange(800), owner], gaps.min(axis=1), atol=1e-6)
    np.testing.assert_allclose(distance, gaps.min(axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cosine", [False, True])
def test_owners_are_the_nearest_and_as_far_as_is_said(cosine, looks):
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(500, 5)).astype(np.float32)
    cover = LazyCover(HostRows(rows), cosine)
    cover.add_rows(np.array([0]))
    left = cover.extend(40)
    owner, distance = cover.assignments()
    unit = rows / np.linalg.norm(rows, axis=1)[:, None] if cosine else rows
    gaps = np.linalg.norm(unit[:, None] - unit[[0, *cover.indices]], axis=2)
    np.testing.assert_array_equal(owner, gaps.argmin(axis=1))
    np.testing.assert_allclose(distance, gaps.min(axis=1), rtol=1e-5, atol=1e-6)
    assert np.sqrt(left) == pytest.approx(distance.max(), rel=1e-6)
