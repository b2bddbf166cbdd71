"""Populations compared between groups: the laws of the comparison, and its level, power and coverage in simulated cohorts."""

from itertools import permutations

import numpy as np
import pytest

from reduset.cytometry import DesignError, compare, design_of
from reduset.cytometry.comparing import Fits, log_shares, on_one_scale
from reference_differences import f_statistic

SHARES = np.array([0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002])
FIVE = ["a"] * 5 + ["b"] * 5


def draw(rng, sizes, folds=0.0, tau=0.4, shares=SHARES):
    """Cells of each population in each sample: shares that samples differ by, and folds (n, k) or 0 beside them."""
    own = shares * np.exp(tau * rng.normal(size=(len(sizes), len(shares))) + folds)
    return rng.binomial(np.asarray(sizes)[:, None], np.minimum(own, 1.0))


def most_rejected(rate, count):
    """Beyond which share of rejections nobody believes in the rate (one in two hundred)."""
    return rate + 2.6 * np.sqrt(rate * (1 - rate) / count)


@pytest.fixture(scope="module")
def cohort():
    rng = np.random.default_rng(0)
    sizes = rng.integers(500, 50_000, 10)
    return draw(rng, sizes, np.array(FIVE)[:, None] == "b"), sizes


def assert_same(one, other, order=slice(None)):
    for name in ("p_values", "q_values", "any_p_values"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name)[order], rtol=1e-7)
    np.testing.assert_allclose(one.effects, other.effects[:, order], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.intervals, other.intervals[:, order], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("null", ["permutation", "normal"])
def test_the_order_of_samples_and_of_populations_means_nothing(cohort, null):
    counts, sizes = cohort
    plain = compare(counts, sizes, design_of(FIVE), null=null)
    order = np.random.default_rng(1).permutation(10)
    assert_same(compare(counts[order], sizes[order], design_of([FIVE[k] for k in order]), null=null), plain)
    columns = np.random.default_rng(2).permutation(len(SHARES))
    names = [f"population {k + 1}" for k in columns]
    mixed = compare(counts[:, columns], sizes, design_of(FIVE), names, null=null)
    assert_same(mixed, plain, columns)
    by_name = {row["population"]: row["p"] for row in plain.rows()}
    assert {row["population"]: row["p"] for row in mixed.rows()} == pytest.approx(by_name)


def test_groups_exchanged_turn_effects_round_and_leave_p_values(cohort):
    counts, sizes = cohort
    plain, turned = compare(counts, sizes, design_of(FIVE)), compare(counts, sizes, design_of(FIVE, first="b"))
    np.testing.assert_allclose(turned.effects, -plain.effects, rtol=1e-6)
    np.testing.assert_allclose(turned.intervals[..., 0], -plain.intervals[..., 1], rtol=1e-6)
    np.testing.assert_allclose(turned.p_values, plain.p_values)
    np.testing.assert_allclose(turned.shares, plain.shares[:, ::-1])


def test_ten_times_the_cells_leave_effects_where_there_are_many():
    rng = np.random.default_rng(0)
    sizes = np.full(10, 10**6)
    counts = draw(rng, sizes)
    once, often = (compare(times * counts, times * sizes, design_of(FIVE)) for times in (1, 10))
    np.testing.assert_allclose(often.effects, once.effects, atol=1e-3)
    np.testing.assert_allclose(often.p_values, once.p_values, atol=0.01)


def test_effects_of_large_samples_are_logarithms_of_fold_changes_of_shares():
    sizes = np.full(8, 10**7)
    counts = np.array([[10**5, 10**6]] * 4 + [[4 * 10**5, 10**6 // 2]] * 4)
    found = compare(counts, sizes, design_of(["a"] * 4 + ["b"] * 4))
    np.testing.assert_allclose(found.effects[0], [2, -1], rtol=1e-4)
    np.testing.assert_allclose(found.shares, [[0.01, 0.04], [0.1, 0.05]])
    assert found.found.all()
    assert "4.00-fold" in str(found)


def test_p_values_of_tiny_designs_are_those_of_all_orders_of_the_samples():
    rng = np.random.default_rng(4)
    sizes, labels = rng.integers(1000, 2000, 6), ["a", "a", "b", "b", "b", "a"]
    counts = draw(rng, sizes)[:, :2]
    design = design_of(labels)
    values, weights, _, _ = log_shares(counts, sizes, design)
    fs = {
        codes: [f_statistic(values[:, k], np.array(codes), design.nuisance, weights[:, k]) for k in range(2)]
        for codes in set(permutations(design.codes.tolist()))
    }
    every = np.array(list(fs.values()))
    own = np.array(fs[tuple(design.codes.tolist())])
    found = compare(counts, sizes, design, null="permutation")
    np.testing.assert_allclose(found.p_values, [(every >= f * (1 - 1e-9)).mean() for f in own])
    np.testing.assert_allclose(found.any_p_values, [(every.max(axis=1) >= f * (1 - 1e-9)).mean() for f in own])
    assert compare(counts, sizes, design).null == "normal"  # 20 labellings are too few to judge chance by


def test_the_same_seed_gives_the_same_and_labellings_are_drawn_where_there_are_many():
    rng = np.random.default_rng(0)
    sizes, labels = np.full(20, 2000), ["a", "b"] * 10
    counts = draw(rng, sizes)
    one, two, other = (compare(counts, sizes, design_of(labels), rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.p_values, two.p_values)
    np.testing.assert_allclose(one.p_values, other.p_values, atol=0.03)
    assert "10,000 of 184,756 labellings" in str(one)
    many = compare(draw(rng, np.full(300, 500)), np.full(300, 500), design_of(["a", "b"] * 150), rng=0)
    assert "of about 10^89 labellings" in str(many)


@pytest.mark.slow
def test_level_is_held_whatever_the_sizes_of_the_samples_and_the_law_of_chance():
    rng = np.random.default_rng(10)
    repetitions, shares = 120, np.append(SHARES, [5e-4, 1e-4])  # of which small samples have no cell
    kinds = {
        "alike": lambda: np.full(10, 20_000),
        "of all sizes": lambda: np.exp(rng.uniform(np.log(50), np.log(10**6), 10)).astype(int),
        "a million beside fifty": lambda: np.array([10**6, *[20_000] * 8, 50]),
        "small in one group": lambda: np.array([100_000] * 5 + [1000] * 5),
    }
    for kind, sizes_of in kinds.items():
        found, p = [], []
        for _ in range(repetitions):
            sizes = sizes_of()
            each = compare(draw(rng, sizes, shares=shares), sizes, design_of(FIVE))
            found.append(each.found.any())
            p.append(each.p_values <= 0.05)
        assert np.mean(found) <= most_rejected(0.05, repetitions), kind
        assert np.mean(p) <= most_rejected(0.05, repetitions), kind


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("each", [2, 3, 4])
def test_level_is_held_by_the_normal_law_with_populations_of_no_cell_or_two(each):
    rng = np.random.default_rng(each)
    repetitions, shares, design = 150, np.append(SHARES, [5e-4, 1e-4]), design_of(["a"] * each + ["b"] * each)
    kinds = {
        "few cells": lambda: np.full(2 * each, 2000),
        "of all sizes": lambda: np.exp(rng.uniform(np.log(50), np.log(10**6), 2 * each)).astype(int),
    }
    for kind, sizes_of in kinds.items():
        found, p = [], []
        for _ in range(repetitions):
            sizes = sizes_of()
            one = compare(draw(rng, sizes, shares=shares), sizes, design)
            assert one.null == "normal"
            found.append(one.found.any())
            p.append(one.p_values <= 0.05)
        assert np.mean(found) <= most_rejected(0.05, repetitions), kind
        assert np.mean(p, axis=0).max() <= most_rejected(0.05, repetitions), kind


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("each", [4, 6, 8])
def test_a_population_that_hardly_varies_is_found_among_many_that_do(each):
    """Forty populations, for which p-values are pooled or the normal law's: others' variances are not to hide it."""
    rng = np.random.default_rng(each)
    shares = np.append(np.geomspace(0.1, 0.002, 39), 0.01)
    tau = np.append(np.geomspace(0.2, 1.5, 39), 0.05)
    sizes, labels = np.full(2 * each, 20_000), ["a"] * each + ["b"] * each
    folds = np.zeros((2 * each, 40))
    folds[each:, 39] = np.log(2)
    found = [compare(draw(rng, sizes, folds, tau, shares), sizes, design_of(labels), rng=0).found for _ in range(20)]
    assert np.mean([one[39] for one in found]) >= 0.9
    assert np.mean([one[:39].sum() / max(one.sum(), 1) for one in found]) <= 0.15


def test_populations_of_which_less_is_known_are_held_against_others_by_how_improbable_they_are():
    rng = np.random.default_rng(3)
    statistics = np.column_stack([rng.f(1, 12, 40_000), rng.f(1, 3, 40_000)])
    scaled = on_one_scale(Fits(statistics, np.empty(0), np.empty(0), np.array([12.0, 3.0])), 1)
    np.testing.assert_allclose(*np.quantile(scaled, [0.5, 0.9, 0.99], axis=0).T, rtol=0.08)
    same = Fits(statistics, np.empty(0), np.empty(0), np.array([12.0, 12.0]))
    assert on_one_scale(same, 1) is statistics


@pytest.mark.slow
def test_level_is_held_beside_covariates_and_batches_that_go_with_the_groups():
    rng = np.random.default_rng(11)
    repetitions, sizes = 150, np.full(10, 10_000)
    p = {"covariate": [], "batch": []}
    for _ in range(repetitions):
        age = rng.normal(size=10)
        older = np.argsort(np.argsort(age + 0.7 * rng.normal(size=10))) >= 5
        counts = draw(rng, sizes, 0.8 * age[:, None])
        p["covariate"].append(compare(counts, sizes, design_of(older.tolist(), covariates={"age": age}), null="normal").p_values)
        runs = np.array([0] * 3 + [1] * 2 + [0] * 2 + [1] * 3)
        counts = draw(rng, sizes, rng.normal(size=2)[runs][:, None])
        p["batch"].append(compare(counts, sizes, design_of(FIVE, batch=runs.tolist()), null="normal").p_values)
    for name, values in p.items():
        assert np.mean(np.array(values) <= 0.05) <= most_rejected(0.05, repetitions), name


@pytest.mark.slow
def test_level_is_held_with_three_groups_and_patients_of_which_some_miss_samples():
    rng = np.random.default_rng(12)
    labels = ["a", "b", "c"] * 3 + ["a", "b", "a", "c", "b"]
    patients = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5]
    found, sizes = [], np.full(14, 5000)
    for _ in range(150):
        counts = draw(rng, sizes, 1.5 * rng.normal(size=(6, 1))[patients])
        found.append(compare(counts, sizes, design_of(labels, block=patients)).found.any())
    assert np.mean(found) <= most_rejected(0.05, 150)


@pytest.mark.slow
def test_pairs_are_told_apart_better_than_strangers_where_patients_differ():
    rng = np.random.default_rng(13)
    labels, patients, sizes = ["a", "b"] * 8, np.repeat(np.arange(8), 2), np.full(16, 20_000)
    folds = np.zeros((16, len(SHARES)))
    folds[1::2, 2] = 0.7
    paired, plain = [], []
    for _ in range(30):
        counts = draw(rng, sizes, folds + rng.normal(size=(8, len(SHARES)))[patients], tau=0.2)
        for block, into in ((patients.tolist(), paired), (None, plain)):
            into.append(compare(counts, sizes, design_of(labels, block=block), rng=0).found[2])
    assert np.mean(paired) >= 0.9
    assert np.mean(plain) <= 0.5


def test_a_rare_population_doubled_is_found_among_samples_of_unequal_size():
    rng = np.random.default_rng(14)
    labels = ["a"] * 8 + ["b"] * 8
    found = []
    for _ in range(20):
        sizes = rng.integers(5000, 100_000, 16)
        folds = np.zeros((16, len(SHARES)))
        folds[8:, 6] = np.log(2)
        found.append(compare(draw(rng, sizes, folds, 0.25), sizes, design_of(labels), rng=0).found[6])
    assert np.mean(found) >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["alike", "unequal"])
def test_intervals_hold_the_true_effect_as_often_as_they_say(kind):
    rng = np.random.default_rng(15)
    shares, folds = SHARES[:6], np.linspace(-1, 1, 6)
    held = []
    for _ in range(250):
        sizes = np.full(10, 20_000) if kind == "alike" else np.exp(rng.uniform(np.log(2000), np.log(10**6), 10)).astype(int)
        counts = draw(rng, sizes, np.outer(np.arange(10) >= 5, folds), shares=shares)
        low, high = np.moveaxis(compare(counts, sizes, design_of(FIVE), null="normal").intervals[0], -1, 0)
        held.append((low * np.log(2) <= folds) & (folds <= high * np.log(2)))
    assert 0.92 <= np.mean(held) <= 0.985


def test_weights_are_what_samples_know():
    sizes = np.array([50, 20_000, 20_000, 20_000, 20_000, 1_000_000])
    rng = np.random.default_rng(0)
    weights = log_shares(draw(rng, sizes, shares=np.array([0.3, 0.001])), sizes, design_of(["a", "b"] * 3)).weights
    np.testing.assert_allclose(weights.mean(axis=0), 1)
    assert (np.diff(weights[[0, 1, 5]], axis=0) > 0).all()
    assert weights[0, 1] < 0.05  # of one cell in a thousand fifty cells know next to nothing,
    assert weights[5].max() < 2  # and a million no more of what samples differ by than twenty thousand


def test_populations_without_cells_and_those_that_are_all_cells_do_not_differ():
    sizes = np.array([100, 200, 300, 400, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000])
    counts = np.column_stack([np.zeros(10, int), sizes, sizes // 10, (np.arange(10) == 7).astype(int)])
    found = compare(counts, sizes, design_of(["a"] * 4 + ["b"] * 6))
    assert not found.found.any()
    np.testing.assert_allclose(found.p_values[:3], 1)
    np.testing.assert_allclose(found.effects[:, :3], 0, atol=1e-9)
    for name in ("shares", "effects", "intervals", "p_values", "q_values", "any_p_values"):
        assert np.isfinite(getattr(found, name)).all()
    alone = compare(sizes[:, None], sizes, design_of(["a"] * 4 + ["b"] * 6))
    assert alone.p_values.tolist() == [1.0]
    assert "0 of 1 populations differ" in str(alone)


def test_smallest_designs_give_numbers():
    found = compare(np.array([[5, 1], [6, 2], [1, 5], [0, 7]]), np.full(4, 10), design_of(["a", "a", "b", "b"]))
    assert found.null == "normal"
    assert found.labellings == 6
    for name in ("effects", "intervals", "p_values", "q_values"):
        assert np.isfinite(getattr(found, name)).all()


def test_words_and_rows_tell_groups_shares_and_fold_changes():
    rng = np.random.default_rng(0)
    labels = ["a"] * 5 + ["b"] * 5 + ["c"] * 5
    folds = np.zeros((15, len(SHARES)))
    folds[10:, 0] = -2.0
    sizes = np.full(15, 20_000)
    found = compare(draw(rng, sizes, folds, 0.2), sizes, design_of(labels), [f"T{k}" for k in range(8)], rng=0)
    assert found.found.tolist() == [True] + [False] * 7
    first = found.rows()[0]
    assert first["population"] == "T0"
    assert first["low c"] < first["log2 fold change c"] < first["high c"] < 0
    assert "5 a against 5 b against 5 c" in str(found)
    assert "found      T0" in str(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": np.empty((10, 0), int)}, r"counts must have a row per sample .*\(10, 0\)"),
        ({"names": ["one"]}, "names .*got 1"),
        ({"null": "bootstrap"}, "null must be one of"),
        ({"fdr": 5}, "fdr must"),
        ({"confidence": 95}, "confidence must"),
        ({"sizes": np.zeros(10, int)}, "every sample that is compared must have cells, 10 have none"),
    ],
)
def test_wrong_arguments_are_named(cohort, change, message):
    arguments = {"counts": cohort[0], "sizes": cohort[1], "design": design_of(FIVE)} | change
    with pytest.raises((ValueError, DesignError), match=message):
        compare(**arguments)
