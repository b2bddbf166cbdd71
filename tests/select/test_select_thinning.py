"""Kernel thinning: halving and swapping by their definitions, and means that equal weights keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_select as reference
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, compress
from reduset.select import Random, Thinning, thinning

KERNELS = [
    Gaussian(0.7),
    Laplacian(0.8, metric="cityblock"),
    Student(0.6, exponent=2.5, space="l2"),
    FunctionKernel("rbf", gamma=1.0),
]
KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def mean_of(n=200, kernel=KERNELS[0], seed=0, d=2, sample_weight=None):
    return KernelMean.from_samples(np.random.default_rng(seed).normal(size=(n, d)), kernel, sample_weight)


def lost(f, chosen):
    """‖f − mean of the chosen, equally weighted‖."""
    return f.distance(KernelMean(chosen.atoms, np.full(len(chosen.atoms), f.mass / len(chosen.atoms)), f.kernel))


# -- halving ---------------------------------------------------------------------------------------------------------


@KERNEL
@pytest.mark.parametrize("n", [2, 7, 60])
def test_halving_is_the_walk_of_the_paper(kernel, n):
    f = mean_of(n, kernel)
    luck = np.random.default_rng(5).random(n // 2)
    kept = thinning.halve(f.kernel, f.atoms, luck[None])[0]
    assert kept.tolist() == reference.halve(f.kernel.product_gram(f.atoms, f.atoms), luck, thinning.DELTA)


@pytest.mark.parametrize("d", [1, 3, 45])
@pytest.mark.parametrize("far", [0.0, np.inf], ids=["double", "single"])
def test_the_walk_does_not_depend_on_dimension_or_precision(monkeypatch, d, far):
    monkeypatch.setattr(thinning, "SINGLE_RANGE", far)
    f = mean_of(60, Gaussian(np.sqrt(d)), d=d)
    luck = np.random.default_rng(5).random(30)
    assert thinning.halve(f.kernel, f.atoms, luck[None])[0].tolist() == reference.halve(reference.gram(f), luck, thinning.DELTA)


def test_lists_are_halved_each_by_its_own_luck():
    f = mean_of(96)
    traversal = Thinning().begin(f, np.random.default_rng(5))
    lists = np.random.default_rng(0).permutation(96).reshape(6, 16)
    luck = np.random.default_rng(5).random((6, 8))
    K = reference.gram(f)
    expected = [rows[reference.halve(K[np.ix_(rows, rows)], own, thinning.DELTA)] for rows, own in zip(lists, luck, strict=True)]
    np.testing.assert_array_equal(traversal._halve(f.atoms, lists), expected)


def test_of_two_that_coincide_either_stays():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 2, axis=0)
    luck = np.random.default_rng(0).random(20)
    kept = thinning.halve(KERNELS[0], X, luck[None])[0]
    assert kept.tolist() == reference.halve(KERNELS[0].product_gram(X, X), luck, thinning.DELTA)
    assert 0 < np.sum(kept % 2) < 20


def test_a_half_has_nearly_the_mean_of_the_whole():
    f = mean_of(1000)
    halves = [f.atoms[thinning.halve(f.kernel, f.atoms, np.random.default_rng(seed).random((1, 500)))[0]] for seed in range(8)]
    flips = [f.atoms[2 * np.arange(500) + np.random.default_rng(seed).integers(0, 2, 500)] for seed in range(8)]
    walked, flipped = (np.mean([f.distance(KernelMean.from_samples(X, f.kernel)) for X in each]) for each in (halves, flips))
    assert walked < flipped / 1.7


# -- swapping --------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 8), repeated=st.booleans())
def test_swapping_takes_the_best_row_for_each_in_turn(seed, size, repeated):
    f = mean_of(24, seed=seed)
    rng = np.random.default_rng(seed)
    pool = rng.integers(0, 12, size=24) if repeated else np.arange(24)
    chosen = rng.permutation(pool)[:size]
    K = reference.gram(f)
    swapped = thinning.swap(f.kernel, f.atoms, pool, chosen)
    before, after = reference.squared_mmd(K, pool, chosen), reference.squared_mmd(K, pool, swapped)
    assert after <= before + 1e-12
    assert after == pytest.approx(reference.squared_mmd(K, pool, reference.swap(K, pool, chosen)), abs=1e-12)
    assert np.all(np.bincount(swapped, minlength=24) <= np.bincount(pool, minlength=24))


@KERNEL
def test_swapped_rows_are_those_of_the_definition(kernel):
    f = mean_of(40, kernel)
    pool, chosen = np.random.default_rng(0).permutation(40)[:32], np.array([3, 8, 11, 20])
    chosen = pool[chosen]
    K = f.kernel.product_gram(f.atoms, f.atoms)
    assert thinning.swap(f.kernel, f.atoms, pool, chosen).tolist() == reference.swap(K, pool.tolist(), chosen.tolist())


def test_all_of_the_pool_stays_as_often_as_it_is_there():
    f = mean_of(20)
    assert sorted(thinning.swap(f.kernel, f.atoms, np.array([2, 2, 7, 2]), np.array([2, 7, 2, 2]))) == [2, 2, 2, 7]


def helped_by_one_exchange(f, chosen, shares):
    """What the best single exchange of a row for another of the same sign gains, by trying all."""
    K = f.kernel.product_gram(f.atoms, f.atoms)
    rest = np.bincount(chosen, shares, minlength=f.size) - f.weights
    gain = 0.0
    for k, share in enumerate(shares):
        for row in set(range(f.size)) - set(chosen.tolist()):
            if share * f.weights[row] > 0:
                other = rest.copy()
                other[chosen[k]] -= share
                other[row] += share
                gain = max(gain, rest @ K @ rest - other @ K @ other)
    return gain


@KERNEL
def test_swapped_among_all_rows_no_single_exchange_helps(kernel):
    f = mean_of(60, kernel)
    chosen = Thinning(swaps=True).select(f, 8, rng=0)
    assert helped_by_one_exchange(f, chosen.indices, chosen.weights) < 1e-12
    assert helped_by_one_exchange(f, Thinning().select(f, 8, rng=0).indices, chosen.weights) > 1e-6


@pytest.mark.fast_cases(3)
@KERNEL
@pytest.mark.parametrize("n", [300, 10_000])
def test_more_swaps_lose_less_with_equal_weights(kernel, n):
    if n == 10_000 and isinstance(kernel, FunctionKernel):
        n = 9000  # beyond the rows that are all looked at, without a second of kernel calls a seed
    f = mean_of(n, kernel)
    errors = [lost(f, Thinning(swaps=swaps).select(f, 20, rng=0)) for swaps in (False, 1, True)]
    assert errors[2] <= errors[1] < errors[0]
    assert errors[2] < 0.95 * errors[0]


def test_swapped_rows_stay_distinct_and_equally_weighted():
    chosen = Thinning(swaps=True).select(mean_of(), 50, rng=0)
    assert len(np.unique(chosen.indices)) == 50
    np.testing.assert_allclose(chosen.weights, 1 / 50, rtol=1e-12)


def test_swaps_keep_the_mass_of_either_sign():
    f = mean_of(400)
    f = KernelMean(f.atoms, np.where(f.atoms[:, 0] > 0.5, -1.0, 1.0) * np.random.default_rng(0).random(400), f.kernel)
    few = Thinning().select(f, 40, rng=0)
    chosen = Thinning(swaps=True).select(f, 40, rng=0)
    for sign in (1, -1):
        own = f.weights[chosen.indices][chosen.weights * sign > 0]
        assert np.all(own * sign > 0)
        total = chosen.weights[chosen.weights * sign > 0].sum()
        assert total == pytest.approx(f.weights[f.weights * sign > 0].sum())
    before, after = (f.distance(KernelMean(each.atoms, each.weights, f.kernel)) for each in (few, chosen))
    assert after < 0.8 * before


@pytest.mark.parametrize("swaps", [0, -1, 1.5, "all", None])
def test_swaps_are_a_number_or_yes_or_no(swaps):
    with pytest.raises((TypeError, ValueError), match="swaps"):
        Thinning(swaps=swaps)


# -- selection -------------------------------------------------------------------------------------------------------


@KERNEL
@pytest.mark.parametrize("size", [1, 7, 50, 199, 200])
def test_thinning_gives_distinct_rows_with_equal_weights(kernel, size):
    chosen = Thinning().select(mean_of(kernel=kernel), size, rng=0)
    assert len(np.unique(chosen.indices)) == size
    np.testing.assert_allclose(chosen.weights, 1 / size, rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(n=st.integers(1, 10**6), share=st.floats(0, 1))
def test_levels_of_four_to_one_leave_enough_to_halve_on(n, share):
    size = 1 + int((n - 1) * share**4)
    levels, part = thinning._plan(n, size)
    rows, pool = part * 4**levels, part * 2**levels
    assert n < 2 * rows <= 2 * n  # as many as the size times a power of two
    doublings = int(np.log2(rows // size))
    assert rows == size << doublings
    assert pool == size << (doublings - levels)
    if levels:
        assert doublings - levels >= thinning.MIN_FINAL_HALVINGS
        assert part >= thinning.MIN_PART


@pytest.mark.parametrize("n", [1000, 1023, 1024, 5000])
def test_every_level_halves_what_four_parts_make(monkeypatch, n):
    shapes = []
    plain = thinning._Thinned._halve

    def watched(self, points, lists):
        shapes.append(lists.shape)
        return plain(self, points, lists)

    monkeypatch.setattr(thinning._Thinned, "_halve", watched)
    chosen = Thinning().select(mean_of(n), 10, rng=0)
    assert len(chosen.indices) == 10
    levels, part = thinning._plan(n, 10)
    assert levels > 0
    assert shapes[:levels] == [(4 ** (levels - level - 1), 4 * part * 2**level) for level in range(levels)]
    lengths = [length for count, length in shapes[levels:] if count == 1]
    assert lengths == [20 << k for k in reversed(range(len(lengths)))]


@pytest.mark.parametrize(("n", "size"), [(1500, 25), (4000, 60)])
def test_thinned_rows_are_several_times_closer_than_random_ones(n, size):
    f = mean_of(n)
    thinned, random = (np.mean([lost(f, s.select(f, size, rng=seed)) for seed in range(5)]) for s in (Thinning(), Random()))
    assert thinned < random / 3


def test_the_error_falls_faster_than_that_of_random_rows():
    f = mean_of(4096)
    few, many = (np.mean([lost(f, Thinning().select(f, size, rng=seed)) for seed in range(4)]) for size in (8, 128))
    assert many < few / 8  # a random draw gives a quarter


def test_a_row_of_three_times_the_weight_counts_three_times():
    """Among points far from each other the share of the heavy ones is that of their mass."""
    X = 100.0 * np.arange(240).reshape(-1, 1)
    w = np.where(np.arange(240) < 120, 3.0, 1.0)
    f = KernelMean.from_samples(X, Gaussian(1.0), w)
    rows = Thinning().begin(f, np.random.default_rng(0))._draw(None, f.size)
    counts = np.bincount(rows, minlength=240)
    assert np.all(np.abs(counts - 240 * f.weights) < 1)  # 1.5 and 0.5 times, up to what is whole
    assert counts[:120].sum() == 180


def test_a_row_chosen_twice_weighs_twice():
    w = np.ones(64)
    w[7] = 40.0
    f = KernelMean.from_samples(np.random.default_rng(0).normal(size=(64, 2)), Gaussian(0.7), w)
    chosen = Thinning().select(f, 8, rng=0)
    assert len(np.unique(chosen.indices)) == 8
    times = 8 * chosen.weights
    np.testing.assert_allclose(times, times.round(), atol=1e-9)
    assert times.sum() == pytest.approx(8)
    assert times[chosen.indices == 7] >= 2  # of the 40 in 103
    assert times.min() == 0  # which leaves places for rows that do not count


@pytest.mark.parametrize("size", [10, 40])
def test_weighted_rows_are_thinned_like_repeated_ones(size):
    X, w = np.random.default_rng(0).normal(size=(400, 2)), np.random.default_rng(1).integers(1, 6, size=400)
    weighted = KernelMean.from_samples(X, Gaussian(0.7), w)
    repeated = KernelMean.from_samples(np.repeat(X, w, axis=0), Gaussian(0.7))
    by_weight, by_row, random = (
        np.mean([lost(f, s.select(f, size, rng=seed)) for seed in range(6)])
        for f, s in ((weighted, Thinning()), (repeated, Thinning()), (weighted, Random()))
    )
    assert by_weight < random / 2
    assert by_weight < 2 * by_row


def test_duplicates_may_all_be_chosen_and_are_then_merged():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 10, axis=0)
    full = KernelMean.from_samples(X, Gaussian(0.5))
    small = compress(full, size=50, select="thinning", rng=0)
    assert small.size + len(small.dropped) == 50
    assert len(np.unique(small.mean.atoms, axis=0)) == small.size <= 20
    own = compress(full, size=50, select="thinning", weights="own", rng=0)
    assert own.size == 50
    assert own.certificate.relative_error == pytest.approx(full.distance(own.mean) / full.norm(), rel=1e-6)


def test_one_row_of_nearly_all_the_weight_leaves_few():
    w = np.full(100, 1e-6)
    w[17] = 1.0
    chosen = Thinning().select(KernelMean.from_samples(np.random.default_rng(0).normal(size=(100, 2)), Gaussian(0.7), w), 10, rng=0)
    assert 17 in chosen.indices
    assert 1 <= len(chosen.indices) <= 10
    assert chosen.weights.sum() == pytest.approx(1)


def test_weights_keep_their_signs():
    w = np.random.default_rng(1).normal(size=200)
    f = KernelMean(np.random.default_rng(0).normal(size=(200, 2)), w, Gaussian(0.7))
    chosen = Thinning().select(f, 20, rng=0)
    np.testing.assert_array_equal(np.sign(chosen.weights), np.sign(w[chosen.indices]))
    assert np.abs(chosen.weights).sum() == pytest.approx(np.abs(w).sum())


@pytest.mark.covering_cases
@pytest.mark.parametrize("size", [1, 2, 7, 49, 50])
@pytest.mark.parametrize("negative", [1e-6, 0.3, 1.0, 30.0])
def test_either_sign_has_the_places_and_the_weight_of_its_mass(size, negative):
    w = np.where(np.arange(50) % 5, 1.0, -negative)
    chosen = Thinning().select(KernelMean(np.random.default_rng(0).normal(size=(50, 2)), w, Gaussian(0.7)), size, rng=0)
    assert len(np.unique(chosen.indices)) == size
    up, taken = w > 0, w[chosen.indices] > 0
    share = size * w[up].sum() / np.abs(w).sum()
    assert abs(taken.sum() - np.clip(share, size - 10, 40)) <= 1  # as far as there are so many of either
    for all_of_it, mine in ((up, taken), (~up, ~taken)):
        if mine.any():
            assert chosen.weights[mine].sum() == pytest.approx(w[all_of_it].sum())


def test_so_many_rows_go_in_at_most():
    f = KernelMean.from_samples(np.random.default_rng(0).normal(size=(4000, 2)), kernel=Gaussian(1.0))
    all_of_them, some = (Thinning(rows=rows).select(f, 50, rng=0) for rows in (None, 400))
    assert len(some.indices) == len(np.unique(some.indices)) == 50
    few = np.random.default_rng(0).permutation(4000)[:400]
    assert np.isin(some.indices, few).all()
    assert not np.isin(all_of_them.indices, few).all()
    assert len(Thinning(rows=10).select(f, 50, rng=0).indices) == 50  # never fewer than are asked for
    with pytest.raises(ValueError, match="rows must be"):
        Thinning(rows=0)
