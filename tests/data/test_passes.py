"""Passes over rows in blocks equal the same computation on the concatenated array."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, bandwidth
from reduset._engine import (
    LazyCover,
    Profile,
    cluster_sums,
    distance_histograms,
    each_column,
    held_rows,
    nearest,
    rows_in_place,
    rows_not_among,
    rows_of,
)
from reduset._engine.passes import SelectedRows
from reduset.select import Cholesky, KCenter, KMeans, Thinning
from row_blocks import ListedRows

N, D = 5000, 3


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * [1, 2, 3]
    X[100:140] = X[0]
    return X


@pytest.fixture
def blocks(rows):
    return ListedRows(rows, 1200, 0, 1, 2799, 1000)


def test_it_is_indexed_like_an_array(rows, blocks):
    order = np.random.default_rng(1).permutation(N)[:50]
    mask = rows[:, 0] > 1
    for which in (order, order.reshape(5, 10), mask, slice(10, 1300, 7), slice(None, None, 613), -1, 4, slice(-3, None)):
        np.testing.assert_array_equal(blocks[which], rows[which])
    np.testing.assert_array_equal(blocks[:, 1], rows[:, 1])
    np.testing.assert_array_equal(blocks[:, :2], rows[:, :2])
    np.testing.assert_array_equal(blocks[order, 2], rows[order, 2])
    np.testing.assert_array_equal(blocks.min(axis=0), rows.min(axis=0))
    assert (blocks.max(), len(blocks), blocks.shape, blocks.dtype) == (rows.max(), N, rows.shape, rows.dtype)
    with pytest.raises(IndexError, match=str(N)):
        blocks[[N]]


def test_it_is_never_converted_as_a_whole(blocks):
    with pytest.raises(TypeError, match="main memory"):
        np.asarray(blocks)


def test_results_are_combined_in_a_tree_of_the_blocks_in_their_order(rows, blocks):
    words = blocks.reduce(lambda some, weights: f"{len(some)}", lambda one, other: f"({one} {other})", np.ones(N))
    assert words == "((1200 1) (2799 1000))"
    np.testing.assert_allclose(blocks.reduce(lambda some: some.sum(axis=0), operator.add), rows.sum(axis=0))
    vector = np.arange(N)
    np.testing.assert_array_equal(blocks.map_rows(lambda some, numbers: some[:, 0] + numbers, vector), rows[:, 0] + vector)


def test_few_rows_are_loaded_and_many_stay_in_blocks(rows, blocks, monkeypatch):
    wanted = np.flatnonzero(rows[:, 1] > 0)
    np.testing.assert_array_equal(rows_of(blocks, wanted[::-1]), rows[wanted[::-1]])
    monkeypatch.setattr("reduset._engine.passes.LOADED_ENTRIES", 10)
    some = rows_of(blocks, wanted)
    assert isinstance(some, SelectedRows)
    np.testing.assert_array_equal(some[:], rows[wanted])
    np.testing.assert_array_equal(some[:, 0], rows[wanted, 0])
    np.testing.assert_array_equal([some.min(axis=0), some.max(axis=0)], [rows[wanted].min(axis=0), rows[wanted].max(axis=0)])
    np.testing.assert_array_equal(np.stack(list(each_column(blocks)), axis=1), rows)


def test_rows_that_are_needed_often_are_fetched_once(rows, blocks):
    wanted = np.random.default_rng(2).integers(N, size=(30, 2))
    held, where = held_rows(blocks, wanted)
    assert blocks.passes == 1
    np.testing.assert_array_equal(held[where], rows[wanted])
    assert held_rows(rows, wanted)[0] is rows


def test_a_linear_map_is_applied_block_by_block(rows, blocks):
    units = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose((blocks / units)[:], rows / units)
    matrix = np.random.default_rng(3).normal(size=(D, 2))
    np.testing.assert_allclose((blocks @ matrix).max(axis=0), (rows @ matrix).max(axis=0))


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(1.3), Gaussian(0.5, scales=[1.0, 2.0, 3.0])])
def test_sums_over_rows(rows, blocks, kernel):
    weights = np.random.default_rng(4).normal(size=N)
    Q = rows[:40] + 0.1
    for given in (weights, np.broadcast_to(1 / N, N)):
        one, other = KernelMean(rows, given, kernel), KernelMean(blocks, given, kernel)
        np.testing.assert_allclose(other(Q, "double"), one(Q, "double"), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(other.gradient(Q), one.gradient(Q), rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(other.log_density(Q, "double"), one.log_density(Q, "double"), rtol=1e-9, atol=1e-9)
        assert other.norm() == pytest.approx(one.norm(), rel=1e-11)


def test_nearest_atoms_and_what_is_summed_around_them(rows, blocks):
    kernel = Gaussian(1.0)
    frame, atoms = kernel.plain_frame(rows), rows[::500]
    for one, other in zip(nearest(rows, atoms, frame), nearest(blocks, atoms, frame), strict=True):
        np.testing.assert_array_equal(one, other)
    weights = np.random.default_rng(5).random(N)
    for one, other in zip(cluster_sums(rows, weights, atoms, frame), cluster_sums(blocks, weights, atoms, frame), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-10)
    one, other = (distance_histograms(some, weights, atoms, frame, 0) for some in (rows, blocks))
    np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(rows_not_among(rows, rows[:2]), rows_not_among(blocks, rows[:2]))


@pytest.mark.parametrize("cosine", [False, True])
def test_farthest_first_and_the_nearest_centres(rows, cosine):
    one, other = LazyCover(rows_in_place(rows), cosine), LazyCover(rows_in_place(ListedRows(rows, 2000, 3000)), cosine)
    for cover in (one, other):
        cover.add_rows(np.array([7]))
        cover.extend(60)
    assert one.indices == other.indices
    np.testing.assert_allclose(one.distances, other.distances)
    for mine, theirs in zip(one.assignments(), other.assignments(), strict=True):
        np.testing.assert_allclose(mine, theirs)


@pytest.mark.parametrize("selector", [KMeans(), KMeans(rows=None), KCenter(), Cholesky(), Thinning()], ids=str)
def test_selectors_choose_the_same_atoms(rows, blocks, selector):
    for kernel in (Gaussian(1.0), Gaussian(0.5, scales=[1.0, 2.0, 3.0])):
        one = selector.select(KernelMean.from_samples(rows, kernel), 30, rng=0)
        other = selector.select(KernelMean.from_samples(blocks, kernel), 30, rng=0)
        np.testing.assert_allclose(one.atoms, other.atoms, rtol=1e-12, atol=1e-13)
        if one.indices is not None:
            np.testing.assert_array_equal(one.indices, other.indices)


@pytest.mark.parametrize("rule", ["scott", "silverman", "median", "iqr", "mode_clustering"])
def test_bandwidth_rules(rows, blocks, rule):
    weights = np.random.default_rng(6).random(N)
    weights[::3] = 0
    for given in (None, weights):
        one, other = (getattr(bandwidth, rule)(some, given) for some in (rows, blocks))
        assert other == pytest.approx(one, rel=1e-12)
    one, other = (bandwidth.column_scales(some, None, "standard") for some in (rows, blocks))
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_rules_that_need_all_rows_say_so(blocks, monkeypatch):
    monkeypatch.setattr("reduset.bandwidth.rules.MAX_NEIGHBOUR_ROWS", 1000)
    with pytest.raises(TypeError, match="main memory"):
        bandwidth.jaakkola(blocks)


def test_a_profile_is_restored_with_a_table_that_the_loops_know():
    profile = pickle.loads(pickle.dumps(Profile()))
    assert not profile.table.flags.writeable
    assert profile.metric == Profile().metric
