"""Bags as an Arrow column of lists of points, also in pandas."""

import numpy as np
import pandas as pd
import pytest

from bag_cases import ODD, WITHOUT, WITHOUT_FIELDS, check_column, dicts, nested, ragged
from reduset import _validate
from reduset.features import MeanMapFeatures

pa = pytest.importorskip("pyarrow")

LISTS, FIXED = pa.list_(pa.list_(pa.float64())), pa.list_(pa.list_(pa.float64(), 2))
STRUCTS = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.float64())]))
ARROW = {
    "lists": pa.array(nested()),
    "large lists": pa.array(nested(), type=pa.large_list(pa.large_list(pa.float64()))),
    "fixed lists": pa.array(nested(), type=FIXED),
    "structs": pa.array(dicts(), type=STRUCTS),
}
COLUMNS = {
    **ARROW,
    **{f"chunks of {name}": pa.chunked_array([column[:2], column[2:2], column[2:]]) for name, column in ARROW.items()},
    **{f"a slice of {name}": pa.concat_arrays([column[3:], column])[2:] for name, column in ARROW.items()},
    **{f"pandas, Arrow {name}": pd.Series(column, dtype=pd.ArrowDtype(column.type)) for name, column in ARROW.items()},
    **{f"pandas, objects of {name}": pa.table({"bag": column}).to_pandas()["bag"] for name, column in ARROW.items()},
}
MADE = {
    "lists": lambda value: pa.array(value, type=LISTS),
    "fixed lists": lambda value: pa.array(value, type=FIXED),
    "chunks": lambda value: pa.chunked_array([pa.array(value[:1]), pa.array(value[1:])], type=LISTS),
}


@pytest.mark.parametrize("form", COLUMNS)
def test_a_column_of_lists_is_a_list_of_bags(form):
    check_column(_validate.bags(COLUMNS[form]), ["x", "y"] if "structs" in form else None)


def test_bags_of_one_size_may_be_fixed_lists_too():
    cube = np.random.default_rng(1).normal(size=(4, 3, 2))
    column = pa.array(cube.tolist(), type=pa.list_(pa.list_(pa.float64(), 2), 3))
    np.testing.assert_array_equal(np.stack(_validate.bags(column)[1]), cube)


def test_whole_numbers_stay_what_they_are():
    found = _validate.bags(pa.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]))[1]
    assert found[0].dtype == np.int64
    np.testing.assert_array_equal(found[1], [[5, 6], [7, 8]])


def test_estimators_take_a_column_and_remember_its_fields():
    of_list = MeanMapFeatures(20, 20, bandwidth=1.0, random_state=0).fit(ragged())
    of_column = MeanMapFeatures(20, 20, bandwidth=1.0, random_state=0).fit(ARROW["structs"])
    np.testing.assert_array_equal(of_column.transform(ARROW["lists"]), of_list.transform(ragged()))
    assert of_column.feature_names_in_.tolist() == ["x", "y"]
    turned = pa.array([[{"y": 0.0, "x": 1.0}, {"y": 1.0, "x": 1.0}]])
    with pytest.raises(ValueError, match=r"bags must have the columns \['x', 'y'\] like the bags that were fitted"):
        of_column.transform(turned)


@pytest.mark.parametrize("case", WITHOUT)
@pytest.mark.parametrize("form", MADE)
def test_what_is_missing_is_refused_and_the_bag_named(form, case):
    value, message = WITHOUT[case]
    with pytest.raises(ValueError, match=message):
        _validate.bags(MADE[form](value))


@pytest.mark.parametrize("case", WITHOUT_FIELDS)
def test_what_is_missing_in_structs_is_refused_too(case):
    value, message = WITHOUT_FIELDS[case]
    with pytest.raises(ValueError, match=message):
        _validate.bags(pa.array(value, type=STRUCTS))


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("form", ["lists", "chunks"])
def test_empty_ragged_and_other_bags_are_named(form, case):
    value, message = ODD[case]
    with pytest.raises(ValueError, match=message):
        _validate.bags(MADE[form](value))


def test_a_column_that_holds_no_points_is_refused():
    with pytest.raises(TypeError, match="must be a column of lists of points, got the Arrow type double"):
        _validate.bags(pa.array([1.0, 2.0]))
    with pytest.raises(TypeError, match=r"must hold lists of points.* Arrow type list<"):
        _validate.bags(pa.array([[1.0, 2.0]]))
    with pytest.raises(TypeError, match=r"bags\[0\] must hold numbers"):
        _validate.bags(pa.array([[["a", "b"], ["c", "d"]]]))
    with pytest.raises(ValueError, match="at least 1 of them, got 0"):
        _validate.bags(pa.chunked_array([], type=FIXED))
