"""Randomly pivoted Cholesky and column norms: the laws of their draws."""

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import reference_select as reference
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, compress
from reduset.select import Cholesky, ColumnNorm, Random, cholesky, random

SIX = np.array([[0.0, 0.0], [0.3, 0.1], [1.0, -0.5], [1.1, -0.4], [-0.7, 0.8], [2.5, 0.0]])
KERNELS = [Gaussian(0.8), Laplacian(1.0), Student(0.7, space="l2"), FunctionKernel("rbf", gamma=1.0)]
KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def mean_of(n=200, kernel=KERNELS[0], d=2, seed=0, sample_weight=None):
    return KernelMean.from_samples(np.random.default_rng(seed).normal(size=(n, d)), kernel, sample_weight)


def assert_drawn_by(chances, drawn):
    """A chi-square test of what was drawn; what is expected less than 8 times counts as one."""
    total = len(drawn)
    counts = Counter(drawn)
    assert set(counts) <= {each for each, chance in chances.items() if chance > 0}
    rare = [each for each, chance in chances.items() if total * chance < 8]
    common = [each for each in chances if each not in rare]
    observed = [counts[each] for each in common] + [sum(counts[each] for each in rare)]
    expected = [total * chances[each] for each in common] + [total * sum(chances[each] for each in rare)]
    if expected[-1] < 8:
        observed, expected = observed[:-1], expected[:-1]
        expected = np.array(expected) * (sum(observed) / sum(expected))
    assert stats.chisquare(observed, expected).pvalue > 0.005


# -- Cholesky --------------------------------------------------------------------------------------------------------


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("kernel", [Gaussian(0.8), Laplacian(1.0)], ids=repr)
@pytest.mark.parametrize("w", [np.ones(6), np.array([1.0, 2.0, 0.5, 3.0, 1.0, 0.2])], ids=["equal", "weighted"])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_pivots_follow_the_law_of_their_definition(kernel, w, length):
    f = KernelMean.from_samples(SIX, kernel, w)
    rng = np.random.default_rng(length)
    drawn = [tuple(Cholesky().select(f, length, rng=rng).indices.tolist()) for _ in range(2500)]
    assert_drawn_by(reference.pivot_chances(reference.gram(f), f.weights, length), drawn)


@pytest.mark.parametrize("block", [1, 3])
def test_the_law_of_the_pivots_does_not_depend_on_the_blocks_of_proposals(monkeypatch, block):
    monkeypatch.setattr(cholesky, "PROPOSALS", block)
    monkeypatch.setattr(cholesky, "MAX_PROPOSALS", block)
    f = KernelMean.from_samples(SIX, Gaussian(0.8))
    rng = np.random.default_rng(block)
    drawn = [tuple(Cholesky().select(f, 3, rng=rng).indices.tolist()) for _ in range(1500)]
    assert_drawn_by(reference.pivot_chances(reference.gram(f), f.weights, 3), drawn)


def test_a_traversal_that_is_continued_follows_the_same_law():
    f = KernelMean.from_samples(SIX, Gaussian(0.8))
    rng, drawn = np.random.default_rng(0), []
    for _ in range(1500):
        traversal = Cholesky().begin(f, rng)
        for size in (1, 2, 3):
            traversal.extend(size)
        drawn.append(tuple(traversal.indices.tolist()))
    assert_drawn_by(reference.pivot_chances(reference.gram(f), f.weights, 3), drawn)


def test_negative_weights_count_by_their_size():
    w = np.array([1.0, -2.0, 0.5, -3.0, 1.0, 0.2])
    f = KernelMean(SIX, w, Gaussian(0.8))
    rng = np.random.default_rng(0)
    drawn = [tuple(Cholesky().select(f, 2, rng=rng).indices.tolist()) for _ in range(1500)]
    assert_drawn_by(reference.pivot_chances(reference.gram(f), w, 2), drawn)


@KERNEL
def test_no_pivot_lies_in_the_span_of_the_others(kernel):
    X = np.repeat(np.random.default_rng(0).normal(size=(12, 2)), 10, axis=0)
    chosen = Cholesky().select(KernelMean.from_samples(X, kernel), 120, rng=0)
    assert len(chosen.indices) == 12
    assert len(np.unique(chosen.atoms, axis=0)) == 12


@pytest.mark.parametrize("bandwidth", [3.0, 30.0])
def test_points_that_a_wide_kernel_cannot_tell_apart_end_the_pivots_early(bandwidth):
    f = mean_of(300, Gaussian(bandwidth))
    chosen = Cholesky().select(f, 300, rng=0)
    assert 1 < len(chosen.indices) < 120
    assert compress(f, size=300, select="cholesky", rng=0).certificate.relative_error < 1e-6


def test_all_bounds_are_refreshed_when_proposals_have_become_dear(monkeypatch):
    """The law of the last pivots, many proposals after the first."""
    refreshed = []
    plain = cholesky._Pivots._refresh
    monkeypatch.setattr(cholesky._Pivots, "_refresh", lambda self: (refreshed.append(len(self._rows)), plain(self)))
    f = mean_of(500, Gaussian(1.5))
    chosen = Cholesky().select(f, 40, rng=0).indices
    assert refreshed
    assert len(np.unique(chosen)) == 40
    traversal = Cholesky().begin(f, np.random.default_rng(0))
    traversal.extend(40)
    traversal._refresh()
    K = reference.gram(f)
    room = np.array([reference.room(K, chosen, i) for i in range(0, 500, 50)])
    np.testing.assert_allclose(traversal._bound[::50], np.maximum(room, 0), atol=1e-9)


def test_pivots_beat_random_rows():
    f = mean_of(600, Gaussian(0.8), d=2)
    error = {
        name: np.mean([compress(f, size=40, select=name, rng=seed).certificate.relative_error for seed in range(8)])
        for name in ("cholesky", "random")
    }
    assert error["cholesky"] < 0.75 * error["random"]


# -- column norms ----------------------------------------------------------------------------------------------------


@KERNEL
def test_column_norms_are_those_of_the_matrix(kernel):
    w = np.random.default_rng(1).uniform(size=60)
    f = mean_of(60, kernel, sample_weight=w)
    K = f.kernel.product_gram(f.atoms, f.atoms)
    np.testing.assert_allclose(random.column_norms(f, np.random.default_rng(0)), reference.column_norms(K, f.weights), rtol=1e-9)


def test_the_first_row_is_drawn_by_its_column_norm_and_the_second_from_the_rest():
    w = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 0.2])
    f = KernelMean.from_samples(SIX, Gaussian(0.8), w)
    norms = reference.column_norms(reference.gram(f), f.weights)
    share = norms / norms.sum()
    chances = {(i, j): share[i] * share[j] / (1 - share[i]) for i, j in itertools.permutations(range(6), 2)}
    rng = np.random.default_rng(0)
    drawn = [tuple(ColumnNorm().select(f, 2, rng=rng).indices.tolist()) for _ in range(3000)]
    assert_drawn_by({(i,): share[i] for i in range(6)}, [each[:1] for each in drawn])
    assert_drawn_by(chances, drawn)


@pytest.mark.parametrize("weighted", [False, True])
def test_norms_from_a_sample_of_rows_are_close_to_those_from_all(monkeypatch, weighted):
    w = np.random.default_rng(1).uniform(size=3000) if weighted else None
    f = mean_of(3000, Gaussian(0.8), sample_weight=w)
    exact = random.column_norms(f, np.random.default_rng(0))
    monkeypatch.setattr(random, "EXACT_UP_TO", 600)
    sampled = random.column_norms(f, np.random.default_rng(0))
    assert not np.array_equal(sampled, exact)
    assert np.corrcoef(sampled, exact)[0, 1] > 0.99
    assert np.median(np.abs(sampled / exact - 1)) < 0.1
    # a column's estimate is a mean of 600 draws of g², which lie between 0 and 1
    K = np.square(f.kernel.product_gram(f.atoms, f.atoms[::10]))
    spread = np.sqrt(((K.T**2) @ f.weights - ((K.T @ f.weights) ** 2)) / 600)
    assert np.all(np.abs(sampled - exact)[::10] / f.weights[::10] <= 6 * spread)


def test_the_matrix_of_the_norms_is_taken_in_blocks(monkeypatch):
    f = mean_of(300)
    whole = random.column_norms(f, np.random.default_rng(0))
    monkeypatch.setattr(random, "ENTRIES", 1000)
    np.testing.assert_allclose(random.column_norms(f, np.random.default_rng(0)), whole, rtol=1e-12)


def test_column_norms_that_underflow_leave_every_row_a_chance():
    f = KernelMean.from_samples(np.arange(5.0).reshape(-1, 1), Gaussian(0.01))
    assert sorted(ColumnNorm().select(f, 5, rng=0).indices) == list(range(5))
    far = KernelMean(np.array([[0.0], [1.0]]), [1.0, 1e-100], Gaussian(0.01))
    assert sorted(ColumnNorm().select(far, 2, rng=0).indices) == [0, 1]


def test_equal_columns_are_drawn_like_random_rows():
    """Far apart, every column has the same norm: the same clocks ring in the same order."""
    f = KernelMean.from_samples(10.0 * np.arange(50).reshape(-1, 1), Gaussian(0.1))
    np.testing.assert_array_equal(ColumnNorm().select(f, 20, rng=4).indices, Random().select(f, 20, rng=4).indices)
