"""The checks of input, one by one."""

import decimal
import fractions
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from reduset import _validate


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_numeric_points_are_taken_as_they_are(dtype):
    X = np.arange(6).reshape(3, 2).astype(dtype)
    checked = _validate.points(X)
    assert checked.dtype == dtype
    assert np.shares_memory(checked, X)


@pytest.mark.parametrize(
    ("given", "expected"), [(np.float16, np.float32), (np.longdouble, np.float64), (np.bool_, np.float64), (object, np.float64)]
)
def test_other_numbers_are_converted(given, expected):
    checked = _validate.points(np.array([[0, 1], [1, 1]], dtype=given))
    assert checked.dtype == expected
    np.testing.assert_array_equal(checked, [[0, 1], [1, 1]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_strided_and_read_only_points_are_taken_as_they_are(order):
    X = np.asarray(np.arange(24.0).reshape(6, 4), order=order)
    X.flags.writeable = False
    for view in (X, X[::2, 1:3], X[::-1]):
        assert np.shares_memory(_validate.points(view), X)


@pytest.mark.parametrize(
    "table",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        pd.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        pl.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        pd.DataFrame({"a": [1, 3], "b": [2, 4]}, dtype="Int64"),
        np.array([[fractions.Fraction(1), decimal.Decimal(2)], [3, 4.0]], dtype=object),
        memoryview(np.array([[1.0, 2.0], [3.0, 4.0]])),
    ],
    ids=lambda table: type(table).__module__ + "." + type(table).__name__,
)
def test_tables_of_numbers_become_arrays(table):
    np.testing.assert_array_equal(_validate.points(table), [[1, 2], [3, 4]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, object])
def test_points_must_be_finite_and_the_place_is_named(bad, dtype):
    X = np.zeros((70_000, 2), dtype=dtype)
    X[66_000, 1] = bad
    with pytest.raises(ValueError, match=f"X .*got {bad} in row 66000, column 1"):
        _validate.points(X)


@pytest.mark.parametrize(
    ("missing", "column"),
    [(pd.DataFrame({"a": [1.0, None]}), "'a'"), (pl.DataFrame({"a": [1.0, None]}), "'a'"), ([[1.0], [None]], "0")],
)
def test_missing_values_count_as_nan(missing, column):
    with pytest.raises(ValueError, match=f"X .*got nan in row 1, column {column}"):
        _validate.points(missing)


def test_a_nullable_column_with_a_hole_is_refused():
    with pytest.raises((TypeError, ValueError), match="X must"):
        _validate.points(pd.DataFrame({"a": [1, None]}, dtype="Int64"))


def test_points_so_large_that_squares_overflow_are_refused():
    with pytest.raises(ValueError, match="X must stay below 1e150 in size, so that squared distances are finite; rescale it"):
        _validate.points([[1e200]])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(4), r"X .*got shape \(4,\)"),
        (5.0, r"X .*got shape \(\)"),
        (None, r"X .*got shape \(\)"),
        (np.zeros((2, 2, 2)), r"X .*got shape \(2, 2, 2\)"),
        (np.zeros((0, 3)), r"X .*got shape \(0, 3\)"),
        (np.zeros((3, 0)), r"X .*got shape \(3, 0\)"),
        ([], r"X .*got shape \(0,\)"),
        ([[]], r"X .*got shape \(1, 0\)"),
        ([[1.0, 2.0], [3.0]], "X must be a rectangular array of numbers"),
    ],
)
def test_points_of_the_wrong_shape_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        _validate.points(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (sparse.csr_matrix(np.eye(3)), r"X .*got a sparse matrix of shape \(3, 3\)"),
        (sparse.coo_array(np.eye(3)), r"X must be dense"),
        (np.ma.masked_array(np.eye(3)), r"X must not be a masked array; fill it \(X.filled\(...\)\) or drop the masked rows"),
        (np.eye(3, dtype=complex), "X .*got complex128"),
        ([[1j]], "X must be real"),
        ([["a", "b"]], "X .*got dtype"),
        ([["1", "2"]], "X .*got dtype"),
        ("text", "X .*got dtype"),
        (b"bytes", "X .*got dtype"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "X .*got dtype datetime64"),
        (np.array([[1]], dtype="timedelta64[s]"), "X .*got dtype timedelta64"),
        (np.zeros((2, 2), dtype=[("a", float)]), "X .*got dtype"),
        (np.array([["a", 1.0]], dtype=object), "X .*got other objects"),
        (np.array([["1.5", "2"]], dtype=object), "X must hold numbers"),
        (np.array([[1 + 2j, 1.0]], dtype=object), "X must"),
        (np.array([[[1], 1.0]], dtype=object), "X must hold numbers"),
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), "X must hold numbers"),
        (pl.DataFrame({"a": [1.0], "b": ["x"]}), "X must hold numbers"),
        ({"a": 1}, "X .*got dict"),
        (object(), "X .*got object"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_points_that_are_no_real_numbers_are_refused(value, message):
    with pytest.raises(TypeError, match=message):
        _validate.points(value)


def test_the_name_of_the_parameter_is_in_the_message():
    with pytest.raises(ValueError, match="Q must have 3 columns like the atoms"):
        _validate.points(np.zeros((2, 2)), "Q", 3)
    with pytest.raises(TypeError, match=r"Q must be dense.*Q.toarray"):
        _validate.points(sparse.csr_array(np.eye(2)), "Q")


# -- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [[1, 2, 0], (1.0, 2.0, 0.0), pd.Series([1, 2, 0]), pl.Series([1, 2, 0]), np.array([True, True, False])]
)
def test_weights_become_floats(value):
    checked = _validate.weights(value, 3)
    assert checked.dtype == np.float64
    np.testing.assert_array_equal(checked, np.asarray(value, float))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], r"sample_weight .*got \(2,\)"),
        (np.ones((3, 1)), r"sample_weight .*got \(3, 1\)"),
        (1.0, r"sample_weight .*got \(\)"),
        ([1, np.nan, 1], "sample_weight .*got nan at position 1"),
        ([1, 1, np.inf], "sample_weight .*got inf at position 2"),
        ([1, -2, 1], "sample_weight .*got -2.0 at position 1"),
        ([0, 0, 0], "sample_weight must not be all zero; omit it for equal weights"),
    ],
)
def test_weights_that_break_a_rule_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        _validate.weights(value, 3)


@pytest.mark.parametrize("value", [["a", "b", "c"], [1j, 1, 1], sparse.csr_array(np.ones((1, 3))), np.ma.masked_array([1, 2, 3])])
def test_weights_that_are_no_numbers_are_refused(value):
    with pytest.raises(TypeError, match="sample_weight must"):
        _validate.weights(value, 3)


def test_signed_weights_may_be_negative_but_not_all_zero():
    np.testing.assert_array_equal(_validate.weights([-1, 1, 0], 3, signed=True), [-1, 1, 0])
    with pytest.raises(ValueError, match="must not be all zero"):
        _validate.weights([0, 0, 0], 3, signed=True)


# -- scalars ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, 2.5, np.float32(0.5), np.int64(3), fractions.Fraction(1, 3)])
def test_real_numbers_are_finite_numbers(value):
    assert _validate.finite(value, "x") == float(value)
    assert _validate.positive(value, "x") == float(value)


@pytest.mark.parametrize("value", [True, np.True_, "1", None, 1j, [1.0], np.array(1.0), b"1"])
def test_what_is_no_number_is_refused(value):
    for check in (_validate.finite, _validate.positive):
        with pytest.raises(TypeError, match="x must be a number, got"):
            check(value, "x")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_must_be_finite(value):
    for check in (_validate.finite, _validate.positive):
        with pytest.raises(ValueError, match=f"x .*got {value}"):
            check(value, "x")


@pytest.mark.parametrize("value", [0, -1, -0.0, -1e-300])
def test_positive_means_above_zero(value):
    with pytest.raises(ValueError, match=f"x .*got {value}"):
        _validate.positive(value, "x", "try harder")


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "1", None, np.float64(2)])
def test_whole_numbers_are_integers(value):
    with pytest.raises(TypeError, match="x must be a whole number, got"):
        _validate.whole(value, "x", 0)


def test_whole_numbers_lie_within_their_ends():
    assert _validate.whole(np.int32(3), "x", 1, 3) == 3
    assert type(_validate.whole(np.int32(3), "x", 1, 3)) is int
    with pytest.raises(ValueError, match=r"x .*got 4"):
        _validate.whole(4, "x", 1, 3, "less")
    with pytest.raises(ValueError, match=r"x .*got 0"):
        _validate.whole(0, "x", 1)


@pytest.mark.parametrize("value", ["c", "A", None, 3, ["a"]])
def test_names_are_among_those_known(value):
    assert _validate.one_of("a", "x", ("b", "a")) == "a"
    with pytest.raises(ValueError, match=r"x must .*'a'.*'b'"):
        _validate.one_of(value, "x", ("b", "a"))


# -- covariances and generators --------------------------------------------------------------------------------------


def test_a_vector_of_variances_stays_a_vector():
    np.testing.assert_array_equal(_validate.covariance([1, 4]), [1.0, 4.0])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((2, 3)), r"covariance .*got shape \(2, 3\)"),
        (np.ones((2, 2, 2)), "covariance must be a square matrix"),
        (3.0, "covariance must be a square matrix"),
        ([], "covariance must be a square matrix"),
        ([[1, np.nan], [np.nan, 1]], "covariance must be finite"),
        ([[1, 0.5], [0, 1]], r"covariance must be symmetric; use \(covariance \+ covariance.T\) / 2"),
        ([[1, 2], [2, 1]], "covariance must be positive definite, its smallest eigenvalue is -1; drop constant or repeated"),
        ([[1, 1], [1, 1]], "covariance must be positive definite"),
        ([1, 0], "covariance must be positive definite"),
        (np.zeros((2, 2)), "covariance must be positive definite"),
        (-np.eye(2), "covariance must be positive definite"),
    ],
)
def test_covariances_that_break_a_rule_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        _validate.covariance(value)


def test_seeds_and_generators_give_generators():
    draw = lambda rng: _validate.generator(rng).integers(10**9)  # noqa: E731
    assert draw(3) == draw(3) == draw(np.random.default_rng(3))
    assert draw(np.random.RandomState(3)) == draw(np.random.RandomState(3))
    assert draw(np.random.SeedSequence(3)) == draw(3)
    assert _validate.generator(None).integers(10**9) != _validate.generator(None).integers(10**9)
    own = np.random.default_rng(0)
    assert _validate.generator(own) is own


@pytest.mark.parametrize("value", ["seed", -1, 1.5, object()])
def test_what_is_no_seed_is_refused(value):
    with pytest.raises(TypeError, match="rng must be None, a seed or a numpy Generator, got"):
        _validate.generator(value)


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy polars": pl.LazyFrame,
    "arrow": pa.table,
    "arrow batch": pa.RecordBatch.from_pydict,
}


@pytest.mark.parametrize("home", FRAMES)
def test_frames_of_every_home_are_points(home):
    checked = _validate.points(FRAMES[home]({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "on": [True, False, True]}))
    np.testing.assert_array_equal(checked, [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])


@pytest.mark.parametrize("home", FRAMES)
def test_a_column_of_text_is_named(home):
    with pytest.raises(TypeError, match=r"X must .*'site'.*'x'"):
        _validate.points(FRAMES[home]({"a": [1.0, 2.0], "site": ["x", "y"]}))


@pytest.mark.parametrize("home", FRAMES)
def test_what_a_frame_lacks_is_refused(home):
    with pytest.raises(ValueError, match=r"X .*got nan in row 1, column 'a'"):
        _validate.points(FRAMES[home]({"a": [1, None, 3], "b": [0.5, 1.5, 2.5]}))


@pytest.mark.parametrize("home", FRAMES)
def test_bags_are_cut_from_frames_of_every_home(home):
    table = FRAMES[home]({"a": [1.0, 2.0, 3.0, 4.0], "who": ["u", "v", "u", "v"], "b": [5.0, 6.0, 7.0, 8.0]})
    names, parts, columns = _validate.bags(table, "who")
    assert (names, columns) == (["u", "v"], ["a", "b"])
    np.testing.assert_array_equal(parts, [[[1, 5], [3, 7]], [[2, 6], [4, 8]]])


def test_arrow_tables_without_narwhals_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r"Arrow tables need narwhals, which is not installed: pip install 'reduset\[tables\]'"):
        _validate.points(pa.table({"a": [1.0]}))


def test_an_arrow_table_without_columns_is_refused_like_any_other():
    with pytest.raises(ValueError, match=r"at least one row and one column, got shape \(0, 0\)"):
        _validate.points(pa.table({}))
