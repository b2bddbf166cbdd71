"""Bags as a column of lists of points, of pandas and polars without Arrow."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bag_cases import FIELDS, ODD, PAIR, WITHOUT, WITHOUT_FIELDS, check_column, dicts, nested, ragged
from reduset import _validate

LISTS, ARRAYS = pl.List(pl.List(pl.Float64)), pl.List(pl.Array(pl.Float64, 2))


def objects(value):
    """Cells as pandas has them from a file: arrays of arrays, or of dicts."""
    cells = np.empty(len(value), dtype=object)
    for k, bag in enumerate(value):
        if bag is not None:
            cells[k] = np.empty(len(bag), dtype=object)
            cells[k][:] = [np.array(point) if isinstance(point, list) else point for point in bag]
    return pd.Series(cells)


COLUMNS = {
    "pandas, arrays": pd.Series(ragged(), index=list("abcde")),
    "pandas, objects": objects(nested()),
    "pandas, dicts": objects(dicts()),
    "polars lists": pl.Series(nested()),
    "polars arrays": pl.Series(nested(), dtype=ARRAYS),
    "polars structs": pl.Series(dicts()),
}


@pytest.mark.parametrize("form", COLUMNS)
def test_a_column_of_lists_is_a_list_of_bags(form):
    check_column(_validate.bags(COLUMNS[form]), ["x", "y"] if "structs" in form or "dicts" in form else None)


def test_bags_of_one_size_may_be_fixed_lists_too():
    cube = np.random.default_rng(1).normal(size=(4, 3, 2))
    column = pl.Series(cube.tolist(), dtype=pl.Array(pl.Array(pl.Float64, 2), 3))
    np.testing.assert_array_equal(np.stack(_validate.bags(column)[1]), cube)


@pytest.mark.parametrize("case", WITHOUT)
@pytest.mark.parametrize("kind", [LISTS, ARRAYS], ids=["lists", "arrays"])
def test_what_is_missing_is_refused_and_the_bag_named(kind, case):
    value, message = WITHOUT[case]
    with pytest.raises(ValueError, match=message):
        _validate.bags(pl.Series(value, dtype=kind))


@pytest.mark.parametrize("case", WITHOUT_FIELDS)
def test_what_is_missing_in_structs_is_refused_too(case):
    value, message = WITHOUT_FIELDS[case]
    with pytest.raises(ValueError, match=message):
        _validate.bags(pl.Series(value))


@pytest.mark.parametrize("case", ["a bag", "a point"])
def test_what_is_missing_in_a_pandas_column_is_refused(case):
    value, message = WITHOUT[case]
    with pytest.raises(ValueError, match=message):
        _validate.bags(objects(value))


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("make", [objects, lambda value: pl.Series(value, dtype=LISTS)], ids=["pandas", "polars"])
def test_empty_ragged_and_other_bags_are_named(make, case):
    value, message = ODD[case]
    with pytest.raises(ValueError, match=message):
        _validate.bags(make(value))


def test_a_pandas_column_of_dicts_must_keep_to_its_fields():
    turned = [{"y": 1.0, "x": 2.0}, {"y": 3.0, "x": 4.0}]
    with pytest.raises(ValueError, match=r"bags\[1\] must hold points with the fields \['x', 'y'\]"):
        _validate.bags(objects([FIELDS, turned]))


def test_a_column_of_numbers_is_refused():
    with pytest.raises(TypeError, match=r"must hold lists of points.* Arrow type large_list"):
        _validate.bags(pl.Series([[1.0, 2.0]]))
    for column in (pl.Series([1.0, 2.0]), pd.Series([1.0, 2.0]), pd.Series(PAIR)):
        with pytest.raises(ValueError, match=r"bags\[0\] must have two dimensions"):
            _validate.bags(column)
