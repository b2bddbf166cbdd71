"""Backgrounds: rows of the table, weights of a law, a true certificate, and what explanations by them can change."""

import sys
from itertools import combinations
from math import factorial
from types import ModuleType

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sklearn.cluster import KMeans

from reduset import get_threads, set_threads
from reduset.explain import background
from reduset.explain.choosing import coordinates, distribution_gaps, explaining_kernel, ranks

ONES = np.broadcast_to(1.0, 600)


@pytest.fixture(scope="module")
def table():
    """Columns in all kinds of units: a normal one, a skew one, whole numbers with ties, a rare 0/1 and one that never changes."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=600)
    return np.column_stack(
        [
            normal,
            1000 * np.exp(normal + rng.normal(size=600)),
            rng.poisson(2.0, 600),
            rng.random(600) < 0.05,
            np.full(600, 7.0),
        ]
    ).astype(float)


def curved(rows):
    return np.sin(rows[:, 0]) + np.log1p(rows[:, 1]) * (rows[:, 2] > 1) + 3 * rows[:, 3]


def shapley(model, x, rows, weights):
    """(d,) by the definition: every set of columns."""
    d = len(x)

    def value(held):
        filled = rows.copy()
        filled[:, list(held)] = x[list(held)]
        return weights @ model(filled)

    found = np.zeros(d)
    for i in range(d):
        others = [j for j in range(d) if j != i]
        for size in range(d):
            share = factorial(size) * factorial(d - size - 1) / factorial(d)
            found[i] += share * sum(value({*s, i}) - value(set(s)) for s in combinations(others, size))
    return found


def gram_by_definition(points, others):
    """Of sets of columns, and of whole rows at h, h/2 and h/4, h² = 2d with columns in standard deviations."""
    d = points.shape[1] // 2
    share, of_columns, deviations = 2 / d, min(d / 10, 0.5), points[:, d:].std(axis=0)
    gap, step = (np.abs(points[:, None, part] - others[None, :, part]) for part in (slice(0, d), slice(d, None)))
    columns = np.prod((1 + share * (0.5 * (1 - gap) + 0.5 / (1 + step**2))) / (1 + share), axis=2)
    squares = np.square(step / deviations).sum(axis=2)
    wide, middle, fine = (np.exp(-squares / (2 * h**2)) for h in np.sqrt(2 * d) / [1, 2, 4])
    return of_columns * columns + (1 - of_columns) * (9 * wide + 3 * middle + fine) / 13


# -- the kernel ---------------------------------------------------------------------------------------------------------------


def test_the_kernel_is_its_formula_with_ones_on_the_diagonal_and_no_negative_energy(table):
    places = coordinates(table, ONES)
    assert places.shape == (600, 8)  # the constant column is left out
    found = explaining_kernel(places, ONES).matrix(places, places[:150])
    np.testing.assert_allclose(found, gram_by_definition(places, places[:150]), rtol=1e-13)
    np.testing.assert_allclose(np.diagonal(found), 1.0, rtol=1e-15)
    assert np.linalg.eigvalsh(found[:150]).min() > -1e-12


def test_values_too_far_out_to_be_squared_are_just_far(table):
    outlying = table * [1e-12, 1.0, 1.0, 1.0, 1.0]
    outlying[7, 0] = 1e149  # 1e161 interquartile ranges
    small = background(outlying, 30, rng=0)
    assert small.certificate.relative_error < 0.1
    np.testing.assert_array_less(np.abs(coordinates(outlying, ONES)), 1.1e70)


def test_the_bits_are_the_same_for_any_number_of_threads(table):
    places, before = coordinates(table, ONES), get_threads()
    try:
        found = []
        for count in (1, 2, 3):
            set_threads(count)
            small = background(table, 30, rng=0)
            gram = explaining_kernel(places, ONES).matrix(places, places)
            found.append(gram.tobytes() + small.indices.tobytes() + small.weights.tobytes())
    finally:
        set_threads(before)
    assert found[0] == found[1] == found[2]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.data())
@settings(deadline=None, max_examples=50)
def test_a_rank_is_the_weight_below_and_half_of_what_ties(values, data):
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(values), max_size=len(values))), float)
    column = np.array(values, float)
    expected = [(weights[column < v].sum() + weights[column == v].sum() / 2) / weights.sum() for v in column]
    np.testing.assert_allclose(ranks(column, weights), expected, rtol=1e-12)
    np.testing.assert_allclose(ranks(np.exp(column), weights), expected, rtol=1e-12)


def test_units_do_not_matter(table):
    small = background(table, 40, rng=0)
    other = background(table * [1024.0, 2.0**-10, 4.0, 1.0, 1.0], 40, rng=0)
    np.testing.assert_array_equal(small.indices, other.indices)
    np.testing.assert_allclose(small.weights, other.weights, rtol=1e-9)


# -- what comes out -----------------------------------------------------------------------------------------------------------


def test_rows_are_rows_of_the_table_and_weights_a_law(table):
    small = background(table, 50, rng=0)
    np.testing.assert_array_equal(small.rows, table[small.indices])
    assert len(set(small.indices.tolist())) == small.size <= 50
    assert small.weights.min() > 0
    assert small.weights.sum() == pytest.approx(1.0, abs=1e-12)
    again = background(table, 50, rng=0)
    assert small.indices.tobytes() == again.indices.tobytes()
    assert small.weights.tobytes() == again.weights.tobytes()


@pytest.mark.parametrize("weights", ["simplex", "equal"])
def test_the_certificate_is_the_distance_of_the_two_laws(table, weights):
    small = background(table, 40, weights=weights, rng=0)
    places = coordinates(table, ONES)
    K = gram_by_definition(places, places)
    signed = np.full(600, 1 / 600)
    np.subtract.at(signed, small.indices, small.weights)
    lost, norm = np.sqrt(signed @ K @ signed), np.sqrt(K.mean())
    assert small.certificate.relative_error == pytest.approx(lost / norm, rel=1e-6)
    # E ‖f − f_m‖² of m rows drawn at random is (1 − ‖f‖²) / m
    assert small.random_rows == pytest.approx((1 - K.mean()) / lost**2, rel=1e-5)
    assert small.random_rows > 3 * small.size


def test_random_rows_lose_what_is_said_of_them(table):
    places = coordinates(table, ONES)
    K = explaining_kernel(places, ONES).matrix(places, places)
    rng, squares = np.random.default_rng(1), []
    for _ in range(400):
        signed = np.bincount(rng.integers(0, 600, 30), minlength=600) / 30 - 1 / 600
        squares.append(signed @ K @ signed)
    assert np.mean(squares) == pytest.approx((1 - K.mean()) / 30, rel=0.05)


def test_a_tolerance_is_reached_by_few_rows(table):
    small = background(table, tol=0.05, rng=0)
    assert small.reached
    assert small.certificate.interval[1] <= 0.05
    assert small.size < 30
    with pytest.warns(UserWarning, match="was not reached"):
        short = background(table, tol=1e-4, max_size=10, rng=0)
    assert not short.reached
    assert short.size <= 10


def test_equal_weights_are_equal_and_rows_come_as_often_as_they_weigh(table):
    small = background(table, 60, weights="equal", rng=0)
    assert small.size == 60
    np.testing.assert_allclose(small.weights, 1 / 60)
    heavy = np.ones(600)
    heavy[5] = 200.0  # a quarter of all
    uneven = background(table, 60, weights="equal", sample_weight=heavy, rng=0)
    np.testing.assert_allclose(uneven.weights, 1 / uneven.size)
    assert 10 <= np.count_nonzero(uneven.indices == 5) <= 20


def test_more_than_a_thousand_rows_are_thinned():
    X = np.random.default_rng(4).normal(size=(2400, 2))
    small = background(X, 1200, rng=0)
    assert small.size == len(np.unique(small.indices)) == 1200
    np.testing.assert_allclose(small.weights, 1 / 1200)
    assert small.random_rows > 5000


def test_rows_of_weight_0_are_as_good_as_absent(table):
    weight = np.ones(600)
    weight[::2] = 0.0
    small = background(table, 40, sample_weight=weight, rng=0)
    assert (small.indices % 2 == 1).all()
    absent = background(table[1::2], 40, rng=0)
    assert small.certificate.relative_error == pytest.approx(absent.certificate.relative_error, rel=0.2)
    np.testing.assert_allclose(coordinates(table, weight)[1::2], coordinates(table[1::2], ONES[1::2]), rtol=1e-12)


def test_more_rows_than_are_chosen_from(table):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9000, 3))
    small = background(X, 50, rng=0)
    assert small.size > 40
    assert len(np.unique(small.indices)) == small.size
    assert small.certificate.method == "rows"
    assert small.certificate.interval[1] < 0.05


@pytest.mark.parametrize("rows", [np.full((20, 2), 3.0), np.ones((1, 1)), np.arange(3.0).reshape(-1, 1)])
def test_tables_without_much_in_them(rows):
    small = background(rows, 1)
    assert small.size == 1
    assert small.weights.tolist() == [1.0]
    assert str(small)


def test_frames_give_rows_of_frames(table):
    names = ["age", "income", "visits", "smokes", "site"]
    kinds = {"age": float, "income": float, "visits": int, "smokes": bool, "site": int}
    frame = pd.DataFrame(table, columns=names).astype(kinds)
    small = background(frame, 30, rng=0)
    pd.testing.assert_frame_equal(small.rows, frame.iloc[small.indices])
    assert small.columns == names
    assert "(column " in str(small)
    other = background(pl.from_pandas(frame), 30, rng=0)
    assert other.rows.equals(pl.from_pandas(frame)[other.indices])
    np.testing.assert_array_equal(small.indices, other.indices)

    def model(rows):
        assert list(rows.columns) == names
        return curved(rows.to_numpy().astype(float))

    assert small.base_change(model, frame) == pytest.approx(small.base_change(curved, frame.to_numpy().astype(float)))
    assert small.change(model, frame, frame[:2], rng=0).shape == (2, 5)
    assert other.change(model, pl.from_pandas(frame), frame[:1], rng=0).shape == (1, 5)


# -- explanations -------------------------------------------------------------------------------------------------------------


def test_changes_are_those_of_the_definition(table):
    X = table[:, :2]  # of two columns one order and its reverse are all
    small = background(X, 20, rng=0)

    def model(rows):
        return rows[:, 0] * np.sqrt(rows[:, 1])

    for x in X[:3]:
        expected = shapley(model, x, X[small.indices], small.weights) - shapley(model, x, X, np.full(600, 1 / 600))
        np.testing.assert_allclose(small.change(model, X, x[None], permutations=1, rng=0)[0], expected, rtol=1e-8, atol=1e-10)


def test_changes_add_up_to_that_of_the_base_value(table):
    small = background(table, 30, rng=0)
    base = small.base_change(curved, table)
    expected = small.weights @ curved(table[small.indices]) - curved(table).mean()
    assert base == pytest.approx(expected, abs=1e-12)
    change = small.change(curved, table, table[:4], rng=0)
    np.testing.assert_allclose(change.sum(axis=1), -base, atol=1e-10)


def test_several_outputs_are_explained_at_once(table):
    small = background(table, 30, rng=0)

    def model(rows):
        return np.column_stack([curved(rows), rows[:, 0]])

    change = small.change(model, table, table[:2], rng=0)
    assert change.shape == (2, 5, 2)
    np.testing.assert_allclose(change[..., 0], small.change(curved, table, table[:2], rng=0), atol=1e-12)
    assert small.base_change(model, table).shape == (2,)


def test_columns_of_a_sum_change_by_no_more_than_their_distribution(table):
    small = background(table, 40, rng=0)
    for j in range(4):
        whole = ks_2samp(table[:, j], np.repeat(table[small.indices, j], 1)).statistic
        equal = distribution_gaps(table, ONES, table[small.indices], np.full(small.size, 1 / small.size))[j]
        assert equal == pytest.approx(whole, abs=1e-12)

    def model(rows):  # a sum of monotone functions of single columns
        return np.arctan(rows[:, 0]) + np.sqrt(rows[:, 1]) + rows[:, 2] ** 2 - rows[:, 3]

    spans = [np.ptp(np.arctan(table[:, 0])), np.ptp(np.sqrt(table[:, 1])), np.ptp(table[:, 2] ** 2), 1.0, 0.0]
    change = small.change(model, table, table[:3], permutations=1, rng=0)
    assert (np.abs(change) <= small.column_gaps * spans + 1e-10).all()
    assert small.column_gaps.max() < 0.1


def test_explanations_change_less_than_by_random_rows(table):
    small, rng = background(table, 50, rng=0), np.random.default_rng(3)
    whole = np.array([shapley(curved, x, table, np.full(600, 1 / 600)) for x in table[:6]])

    def error(rows, weights):
        return np.abs(np.array([shapley(curved, x, table[rows], weights) for x in table[:6]]) - whole).mean()

    random = np.mean([error(rng.choice(600, 50, replace=False), np.full(50, 1 / 50)) for _ in range(10)])
    assert error(small.indices, small.weights) < random / 2


@pytest.mark.parametrize("columns", [2, 8])
def test_values_of_smooth_models_of_many_columns_change_less_than_by_centres_of_k_means(columns):
    """Rings in two columns, and tight clusters in eight: places where few centres are near everything."""
    ours, theirs = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        if columns == 2:
            angle, radius = rng.uniform(0, 2 * np.pi, 1500), rng.choice([1.0, 2.2], 1500)
            X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + rng.normal(0, 0.15, (1500, 2))
        else:
            X = rng.normal(size=(30, 8))[rng.integers(0, 30, 1500)] + rng.normal(0, 0.25, (1500, 8))
        small, cells = background(X, 100, rng=0), KMeans(100, n_init=1, random_state=0).fit(X)
        for _ in range(40):
            slopes, shifts, heights = rng.normal(size=(columns, 6)), rng.uniform(0, 6, 6), rng.normal(size=6)
            x, held = X[rng.integers(1500)], rng.random(columns) < rng.random()

            def value(rows, weights):
                return weights @ np.sin(np.where(held, x, rows) @ slopes * 2 / np.sqrt(columns) + shifts) @ heights  # noqa: B023

            whole = value(X, np.full(1500, 1 / 1500))
            ours.append(abs(value(small.rows, small.weights) - whole))
            theirs.append(abs(value(cells.cluster_centers_, np.bincount(cells.labels_) / 1500) - whole))
    assert np.mean(ours) < 0.8 * np.mean(theirs)


def test_shap_gets_rows_names_and_weights(table, monkeypatch):
    class DenseData:
        def __init__(self, data, group_names, groups, weights):
            self.data, self.group_names, self.groups, self.weights = data, group_names, groups, weights
            weights /= weights.sum()

    for name in ("shap", "shap.utils", "shap.utils._legacy"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["shap.utils._legacy"].DenseData = DenseData
    small = background(pd.DataFrame(table, columns=list("abcde")), 20, rng=0)
    given = small.to_shap()
    np.testing.assert_array_equal(given.data, table[small.indices])
    assert given.group_names == list("abcde")
    np.testing.assert_allclose(given.weights, small.weights)
    given.weights[:] = 0.0  # a copy
    assert small.weights.sum() == pytest.approx(1.0)


def test_without_shap_the_way_out_is_said(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="pip install shap"):
        background(table, 5, rng=0).to_shap()


def test_it_says_what_it_is(table):
    text = str(background(table, 30, rng=0))
    assert "600 rows × 5 columns -> 30 weighted rows" in text
    assert "random rows have the same error" in text
    assert "distribution function" in text


# -- what is refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"size": 601}, "size .*got 601"),
        ({"size": 0}, "size must be between"),
        ({"size": 10, "tol": 0.1}, "one of size and tol"),
        ({"tol": 0.1, "weights": "equal"}, "tol needs weights='simplex'"),
        ({"tol": -1.0}, "tol must"),
        ({"size": 5, "weights": "free"}, "weights must be one of 'equal', 'simplex'"),
        ({"size": 5, "sample_weight": np.ones(5)}, r"sample_weight must have shape \(600,\)"),
        ({"size": 5, "sample_weight": np.zeros(600)}, "must not be all zero"),
        ({"size": 5, "max_size": 0, "tol": None}, None),
    ],
)
def test_bad_options_are_named(table, options, match):
    if match is None:
        assert background(table, **options, rng=0).size == 5
        return
    with pytest.raises(ValueError, match=match):
        background(table, **options)


def test_bad_tables_are_named(table):
    holed = table.copy()
    holed[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X .*got nan in row 3, column 1"):
        background(holed, 5)
    with pytest.raises(TypeError, match="encode or drop such columns"):
        background(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), 1)
    small = background(table, 5, rng=0)
    with pytest.raises(ValueError, match="X must be the table that the rows came from, of 600 rows and 5 columns"):
        small.base_change(curved, table[:10])
    with pytest.raises(ValueError, match="x must have 5 columns like X"):
        small.change(curved, table, table[:2, :3])
    with pytest.raises(ValueError, match="model must give one number"):
        small.base_change(lambda rows: 1.0, table)
    with pytest.raises(ValueError, match="finite numbers only"):
        small.base_change(lambda rows: np.full(len(rows), np.nan), table)


def test_random_rows_follow_from_the_error_and_the_norm(table):
    """(1 − ‖f‖²) / ‖f − f_m‖², with the absolute error."""
    small = background(table, 20, rng=0)
    norm, relative = small.certificate.norm, small.certificate.relative_error
    assert norm < 0.9  # so that relative and absolute errors differ
    assert small.random_rows == pytest.approx((1 - norm**2) / (relative * norm) ** 2, rel=1e-6)
