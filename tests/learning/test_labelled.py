"""Labelled rows: every class at its share, weights that any fit takes, an error that is true, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from reduset import compress_labelled
from reduset.learning.columns import column_kernel, coordinates


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4)) * [1.0, 50.0, 0.01, 1.0]
    noise = rng.logistic(size=1500)
    y = np.digitize(X[:, 0] + X[:, 1] / 50 + noise, [0.5, 4.0])  # the last class is rare
    return X, np.array(["low", "high", "rare"])[y]


@pytest.fixture(scope="module")
def quantity():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 3))
    return X, 2 * X[:, 0] - X[:, 1] + np.exp(X[:, 2]) + rng.normal(size=1500)


def test_every_class_has_its_share_and_all_rows_their_weight(classes):
    X, y = classes
    small = compress_labelled(X, y, 60, rng=0)
    assert small.task == "classes"
    assert small.size <= 60
    np.testing.assert_array_equal(small.X, X[small.indices])
    np.testing.assert_array_equal(small.y, y[small.indices])
    assert (np.diff(small.indices) > 0).all()
    for name in ("low", "high", "rare"):
        assert small.sample_weight[small.y == name].sum() == pytest.approx((y == name).sum(), rel=1e-12)
    assert small.sample_weight.sum() == pytest.approx(1500)
    assert small.sample_weight.min() > 0
    again = compress_labelled(X, y, 60, rng=0)
    assert again.indices.tobytes() == small.indices.tobytes()
    assert again.sample_weight.tobytes() == small.sample_weight.tobytes()


@given(st.integers(0, 1000), st.integers(2, 5), st.sampled_from(["proportional", "square root", "equal"]))
@settings(deadline=None, max_examples=15)
def test_shares_are_kept_whatever_the_weights(seed, count, quotas):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(count), rng.integers(0, count, 60)])
    X, weight = rng.normal(size=(len(y), 2)), rng.integers(0, 4, len(y)).astype(float)
    weight[:count] = 1.0
    small = compress_labelled(X, y, 12, quotas=quotas, sample_weight=weight, rng=seed)
    assert (weight[small.indices] > 0).all()
    found = np.bincount(small.y, small.sample_weight, count)
    np.testing.assert_allclose(found, np.bincount(y, weight, count), rtol=1e-12)
    assert small.size <= 12


def test_the_error_is_the_distance_of_the_laws_of_rows_and_labels(classes):
    X, y = classes
    small = compress_labelled(X, y, 60, rng=0)
    squares, norms = [], []
    for k, name in enumerate(small.classes):
        own = np.flatnonzero(y == name)
        places = coordinates(X[own], np.broadcast_to(1.0, len(own)))
        K = column_kernel(places).matrix(places, places)
        signed, mine = np.ones(len(own)), small.y == name
        assert small.counts[k] == mine.sum()
        signed[np.searchsorted(own, small.indices[mine])] -= small.sample_weight[mine]
        squares.append(signed @ K @ signed)
        norms.append(K.sum())
        assert small.certificates[k].relative_error == pytest.approx(np.sqrt(squares[-1] / norms[-1]), rel=1e-6)
    assert small.relative_error == pytest.approx(np.sqrt(sum(squares) / sum(norms)), rel=1e-6)
    assert compress_labelled(X, y, 200, rng=0).relative_error < small.relative_error / 2


def test_penalties_stay_as_strong_as_they_were(classes):
    X, y = classes[0] / [1.0, 50.0, 0.01, 1.0], classes[1]
    everything = LogisticRegression(C=0.002).fit(X, y)
    small = compress_labelled(X, y, 150, rng=0)
    few = LogisticRegression(C=0.002).fit(small.X, small.y, sample_weight=small.sample_weight)
    np.testing.assert_allclose(few.coef_, everything.coef_, atol=0.02)
    np.testing.assert_allclose(few.intercept_, everything.intercept_, atol=0.02)


def test_models_are_better_than_of_random_rows(classes):
    X, y = classes
    rng = np.random.default_rng(2)
    small = compress_labelled(X, y, 60, rng=0)

    def loss(rows, labels, weights):
        forest = RandomForestClassifier(50, min_samples_leaf=2, random_state=0).fit(rows, labels, sample_weight=weights)
        return 1 - forest.score(X, y)

    random = [loss(X[rows], y[rows], None) for rows in (rng.choice(1500, 60, replace=False) for _ in range(10))]
    assert loss(small.X, small.y, small.sample_weight) < np.mean(random)


def test_a_quantity_is_a_column_that_counts_as_much_as_all_others(quantity):
    X, y = quantity
    small = compress_labelled(X, y, 80, rng=0)
    assert small.task == "regression"
    assert small.classes is None
    assert small.sample_weight.sum() == pytest.approx(1500)
    assert np.average(small.y, weights=small.sample_weight) == pytest.approx(y.mean(), abs=0.1)
    ones = np.broadcast_to(1.0, 1500)
    K = column_kernel(coordinates(X, ones)).matrix(*[coordinates(X, ones)] * 2)
    # a row (y, y, y) of the same share is what y counts
    K *= column_kernel(coordinates(np.column_stack([y] * 3), ones)).matrix(*[coordinates(np.column_stack([y] * 3), ones)] * 2)
    signed = np.ones(1500)
    signed[small.indices] -= small.sample_weight
    assert small.relative_error == pytest.approx(np.sqrt(signed @ K @ signed / K.sum()), rel=1e-6)


def test_lines_are_nearer_to_that_of_all_rows_than_those_of_random_ones(quantity):
    X, y = quantity
    small = compress_labelled(X, y, 80, rng=0)
    whole = LinearRegression().fit(X, y)
    few = LinearRegression().fit(small.X, small.y, sample_weight=small.sample_weight)
    rng = np.random.default_rng(0)
    drawn = [LinearRegression().fit(X[rows], y[rows]) for rows in (rng.choice(1500, 80, replace=False) for _ in range(20))]
    random = np.mean([np.abs(model.coef_ - whole.coef_).mean() for model in drawn])
    assert np.abs(few.coef_ - whole.coef_).mean() < random / 2


def test_many_rows_are_thinned_with_equal_weights():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(3000, 2)), rng.random(3000)
    small = compress_labelled(X, y, 1500, rng=0)
    assert small.size == 1500
    np.testing.assert_allclose(small.sample_weight, 2.0)


def test_the_task_is_what_y_says_unless_it_is_said(classes, quantity):
    X, _ = classes
    rng = np.random.default_rng(0)
    for y in (rng.integers(0, 3, 1500), rng.integers(0, 3, 1500).astype(float), rng.random(1500) < 0.5):
        assert compress_labelled(X, y, 30, rng=0).task == "classes"
    assert compress_labelled(X, rng.integers(0, 1000, 1500), 30, task="regression", rng=0).task == "regression"
    with pytest.raises(ValueError, match="or say task='regression' where y is a quantity"):
        compress_labelled(X, rng.integers(0, 1000, 1500), 30)
    with pytest.raises(ValueError, match="y must hold classes, got a continuous quantity"):
        compress_labelled(X, quantity[1], 30, task="classes")


def test_a_class_of_few_rows_is_kept_whole(classes):
    X, _ = classes
    y = np.zeros(1500, int)
    y[[3, 77]] = 1
    small = compress_labelled(X, y, 40, quotas="equal", rng=0)
    assert set(small.indices[small.y == 1].tolist()) == {3, 77}
    assert small.sample_weight[small.y == 1].tolist() == pytest.approx([1.0, 1.0])
    assert small.certificates[1].relative_error == pytest.approx(0.0, abs=1e-6)


def test_columns_that_never_change_and_rows_that_repeat():
    X, y = np.full((50, 3), 2.0), np.arange(50) % 2
    small = compress_labelled(X, y, 10, rng=0)
    assert small.size == 2
    assert small.sample_weight.tolist() == pytest.approx([25.0, 25.0])


def test_frames_give_frames(classes):
    X, y = classes
    frame, labels = pd.DataFrame(X, columns=list("abcd")), pd.Series(y, name="answer")
    small = compress_labelled(frame, labels, 30, rng=0)
    pd.testing.assert_frame_equal(small.X, frame.iloc[small.indices])
    pd.testing.assert_series_equal(small.y, labels.iloc[small.indices])
    LogisticRegression(max_iter=1000).fit(small.X / frame.std(), small.y, sample_weight=small.sample_weight)
    other = compress_labelled(pl.from_pandas(frame), pl.Series(y), 30, rng=0)
    assert other.X.equals(pl.from_pandas(frame)[other.indices])
    assert other.y.to_list() == y[other.indices].tolist()
    np.testing.assert_array_equal(small.indices, other.indices)


def test_it_says_what_it_is(classes, quantity):
    text = str(compress_labelled(*classes, 50, rng=0))
    assert "labelled rows that stand for 1,500" in text
    assert "of 3 classes, exact" in text
    assert "of ‖f‖" in str(compress_labelled(*quantity, 50, rng=0))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"size": 1501}, "size must be between 1 and 1500, got 1501"),
        ({"size": 2}, "size must be at least the number of classes, 3"),
        ({"y": np.zeros(7)}, r"y must have shape \(1500,\)"),
        ({"y": np.zeros(1500)}, "y must hold at least two classes"),
        ({"y": None}, "y must hold one label, or one number, a row; got None"),
        ({"y": np.full(1500, np.nan)}, "y must hold no missing labels"),
        ({"y": np.full(1500, np.nan), "task": "regression"}, "y must be finite"),
        ({"y": np.zeros((1500, 2)), "task": "regression"}, r"y must have shape \(1500,\), one number a row"),
        ({"task": "ranking"}, "task must be one of 'classes', 'regression'"),
        ({"quotas": "some"}, "quotas must be one of"),
        ({"sample_weight": np.zeros(1500)}, "must not be all zero"),
        ({"sample_weight": -np.ones(1500)}, "must not be negative"),
    ],
)
def test_bad_input_is_named(classes, change, match):
    X, y = classes
    given = {"X": X, "y": y, "size": 20} | change
    with pytest.raises(ValueError, match=match):
        compress_labelled(**given)


def test_weights_that_leave_a_class_none_and_bad_rows_are_named(classes):
    X, y = classes
    with pytest.raises(ValueError, match="must leave some weight to every class, class rare has none"):
        compress_labelled(X, y, 20, sample_weight=(y != "rare").astype(float))
    holed = X.copy()
    holed[5, 2] = np.inf
    with pytest.raises(ValueError, match="X must be finite, got inf in row 5, column 2"):
        compress_labelled(holed, y, 20)
    with pytest.raises(TypeError, match="encode or drop such columns"):
        compress_labelled(pd.DataFrame({"a": y}), y, 20)
    with pytest.raises(TypeError, match="y must hold numbers"):
        compress_labelled(X, y, 20, task="regression")


def test_a_penalised_line_is_that_of_all_rows(quantity):
    X, y = quantity
    small = compress_labelled(X, y, 150, rng=0)
    whole = Ridge(alpha=500.0).fit(X, y)
    few = Ridge(alpha=500.0).fit(small.X, small.y, sample_weight=small.sample_weight)
    np.testing.assert_allclose(few.coef_, whole.coef_, atol=0.1)
