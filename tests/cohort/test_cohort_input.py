"""What a cohort may come as, what is refused and how, and the plot of its map."""

import pickle
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils import estimator_checks

from reduset import Gaussian
from reduset.cohort import CohortMap

mpl.use("Agg")


def bags(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(0.5 * k, 1.0, size=(60, 2)) for k in range(5)]


def fitted(value=None, **options):
    value = bags() if value is None else value
    return CohortMap(kernel=Gaussian(1.0), layout="mds", size=30, random_state=0).fit(value, **options)


def long_table():
    """All bags in one table, rows of different bags between each other."""
    rows = np.concatenate(bags())
    labels = np.repeat(["e", "a", "d", "b", "c"], 60)
    order = np.argsort(np.tile(np.arange(60), 5), kind="stable")
    return pd.DataFrame({"x": rows[order, 0], "patient": labels[order], "y": rows[order, 1]})


NAMED = dict(zip("eadbc", bags(), strict=True))
TABLE = long_table()
FORMS = {
    "tuple": (tuple(bags()), None, list(range(5))),
    "generator": (None, None, list(range(5))),
    "array": (np.stack(bags()), None, list(range(5))),
    "frames": ([pd.DataFrame(bag) for bag in bags()], None, list(range(5))),
    "lists": ([bag.tolist() for bag in bags()], None, list(range(5))),
    "mapping": (NAMED, None, list("eadbc")),
    "pandas table": (TABLE, "patient", list("eadbc")),
    "polars table": (pl.DataFrame({name: TABLE[name].tolist() for name in TABLE}), "patient", list("eadbc")),
    "categories": (TABLE.astype({"patient": "category"}), "patient", list("eadbc")),
    "labels": (TABLE[["x", "y"]].to_numpy(), TABLE["patient"], list("eadbc")),
    "numbers": (TABLE[["x", "y"]], pd.factorize(TABLE["patient"])[0], list(range(5))),
}


@pytest.mark.parametrize("form", FORMS)
def test_bags_may_come_in_any_of_these_forms(form):
    value, sample, names = FORMS[form]
    value = (bag for bag in bags()) if form == "generator" else value
    found = fitted(value, sample=sample)
    assert found.names_ == names
    np.testing.assert_allclose(found.distances_, fitted().distances_, rtol=1e-9)


def test_later_bags_may_come_as_a_table_too():
    cohort = fitted(TABLE, sample="patient")
    np.testing.assert_allclose(cohort.transform(TABLE, sample="patient"), cohort.transform(bags()), atol=1e-9)


def test_the_bags_are_read_and_not_changed():
    mine = bags()
    before = [bag.copy() for bag in mine]
    fitted(mine)
    for one, other in zip(mine, before, strict=True):
        np.testing.assert_array_equal(one, other)


def frames(*orders):
    """The bags as frames, the first ones with their columns in these orders."""
    named = [pd.DataFrame(bag, columns=["a", "b"]) for bag in bags()]
    return [frame[list(order)] for frame, order in zip(named, [*orders, *["ab"] * len(named)], strict=False)]


def test_columns_in_another_order_are_refused_and_not_mixed_up():
    with pytest.raises(ValueError, match=r"bags\[1\] must have the columns \['b', 'a'\] like bags\[0\], got .*; take them"):
        fitted(frames("ba"))
    with pytest.raises(ValueError, match=r"bags\['v'\] must have the columns .*rename or select"):
        fitted({"u": frames()[0], "v": frames()[1].rename(columns={"a": "c"})})
    cohort = fitted(frames())
    assert cohort.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(cohort.transform(frames()), cohort.transform(bags()))
    with pytest.raises(ValueError, match=r"bags\[0\] must have the columns \['a', 'b'\] like the bags that were fitted"):
        cohort.transform(frames("ba"))
    with pytest.raises(ValueError, match=r"bags must have the columns .* like the bags that were fitted"):
        cohort.transform(TABLE, sample="patient")
    assert not hasattr(cohort.fit(bags()), "feature_names_in_")


def test_labels_may_come_as_a_tuple_and_a_tuple_may_name_a_column():
    labels = tuple(TABLE["patient"])
    assert fitted(TABLE[["x", "y"]], sample=labels).names_ == list("eadbc")
    deep = TABLE.set_axis([("at", "x"), ("who", "patient"), ("at", "y")], axis=1)
    assert fitted(deep, sample=("who", "patient")).names_ == list("eadbc")
    with pytest.raises(ValueError, match=r"^sample .*got shape \(299,\)$"):
        fitted(TABLE[["x", "y"]], sample=labels[1:])
    wide = pd.DataFrame(np.ones((4, 500)))
    with pytest.raises(ValueError, match=r"one of the columns \[0, 1, .*, 11, …\]$"):
        fitted(wide, sample="patient")


def with_bag(bag):
    return [*bags()[:2], bag, *bags()[3:]]


def table_with(column, row, value):
    table = TABLE.copy()
    table.loc[row, column] = value
    return table


BAD = {
    "another width": (with_bag(np.ones((5, 3))), None, r"bags\[2\] must have 2 columns like bags\[0\], got shape \(5, 3\)"),
    "empty": (with_bag(np.empty((0, 2))), None, r"bags\[2\] must hold at least one row"),
    "one point": (with_bag(np.ones((1, 2))), None, r"bags\[2\] must hold at least 2 points, got 1"),
    "NaN": (with_bag(np.array([[0.0, 1.0], [np.nan, 2.0]])), None, r"bags\[2\] must be finite, got nan in row 1, column 0"),
    "flat": (with_bag(np.ones(4)), None, r"bags\[2\] must have two dimensions"),
    "named": (NAMED | {"d": np.ones((1, 2))}, None, r"bags\['d'\] must hold at least 2 points"),
    "NaN in a table": (table_with("x", 3, np.nan), "patient", "bags must be finite, got nan in row 3, column 'x'"),
    "no label": (table_with("patient", 3, None), "patient", "sample must not be missing, got .* in row 3"),
    "one of a label": (table_with("patient", 3, "z"), "patient", "sample 'z' must hold at least 2 points, got 1"),
    "unknown column": (TABLE, "doctor", r"sample='doctor' must be one of the columns \['x', 'patient', 'y'\]"),
    "a column of an array": (np.ones((4, 2)), "patient", "names a column, but bags has none"),
    "too few labels": (np.ones((4, 2)), ["a", "b"], r"a label for each of the 4 rows, got shape \(2,\)"),
    "one bag": (bags()[:1], None, "at least 2 of them, got 1"),
    "one table": (TABLE[["x", "y"]], None, "give the sample of each row"),
    "one array": (bags()[0], None, r"A single bag X is the list \[X\]"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_bags_are_named(case):
    value, sample, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        fitted(value, sample=sample)


def test_text_in_a_bag_and_what_is_no_list_are_refused():
    with pytest.raises(TypeError, match=r"bags\[2\] must hold numbers"):
        fitted(with_bag(np.array([["a", "b"], ["c", "d"]])))
    with pytest.raises(TypeError, match="bags must be a list"):
        fitted(7)


def test_a_later_bag_must_be_as_wide_as_those_fitted():
    with pytest.raises(ValueError, match=r"bags\[0\] must have 2 columns like the bags that were fitted"):
        fitted().transform([np.ones((5, 3))])


OPTIONS = {
    "distance": ({"distance": "emd"}, "distance must be one of"),
    "layout": ({"layout": "tsne"}, "layout must be one of"),
    "atoms": ({"atoms": "some"}, "atoms must be one of"),
    "n_components": ({"n_components": 5}, "n_components must be between 1 and 4, got 5; 5 bags lie in at most 4 dimensions"),
    "both goals": ({"size": 5, "tol": 0.1}, "give at most one of size, tol and plateau"),
    "tol": ({"tol": 0.0}, "tol must be above 0"),
    "size": ({"size": 0}, "size must be at least 1"),
    "max_size": ({"max_size": 0}, "max_size must be at least 1"),
    "n_neighbors": ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
    "draws": ({"draws": 1}, "draws must be at least 2"),
    "confidence": ({"confidence": 1.5}, "confidence must lie between 0 and 1"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options_are_named(case):
    options, message = OPTIONS[case]
    with pytest.raises(ValueError, match=message):
        CohortMap(**options).fit(bags())


# scikit-learn's own checks fit one (n, d) array as the whole input, which says of no row what bag it belongs to. The estimator
# declares so (two_d_array is False), and check_estimator then runs a single one. Those that need no data are run by name here.
BY_NAME = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_mixin_order",
    "check_valid_tag_types",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_transformers_unfitted",
]
# What these ask of an estimator is asked below, or in the tests above, with bags: check_dict_unchanged,
# check_dont_overwrite_parameters, check_estimators_overwrite_params, check_estimators_pickle, check_estimators_fit_returns_self,
# check_fit_idempotent, check_fit_check_is_fitted, check_n_features_in, check_readonly_memmap_input,
# check_methods_subset_invariance, check_methods_sample_order_invariance, check_dataframe_column_names_consistency,
# check_estimators_nan_inf, check_estimators_empty_data_messages.
# Not run, with no counterpart: check_fit1d, check_fit2d_* and check_transformer_general (a table is no input),
# check_sample_weights_* (there are none), check_estimator_sparse_*, check_complex_data and check_dtype_object (see the tests of
# _validate), check_array_api_* (NumPy only), check_transformer_get_feature_names_out* and check_set_output_transform* (the axes of
# a map have no names), check_transformer_preserve_dtypes (places are float64), check_transformer_n_iter (there is no n_iter_),
# check_positive_only_tag_during_fit (any sign is welcome), check_pipeline_consistency (hardly any other step takes bags).


@pytest.mark.parametrize("check", BY_NAME)
def test_the_checks_of_scikit_learn_that_need_no_table_pass(check):
    getattr(estimator_checks, check)("CohortMap", CohortMap())


def test_check_estimator_passes_as_far_as_it_goes():
    with pytest.warns(UserWarning, match="Can't test estimator"):
        ran = estimator_checks.check_estimator(CohortMap())
    assert ran
    assert {result["status"] for result in ran} == {"passed"}


@pytest.mark.covering_cases
@pytest.mark.parametrize("distance", ["mmd", "kl"])
@pytest.mark.parametrize("atoms", ["shared", "own", "all"])
def test_it_behaves_as_an_estimator_should_with_bags(distance, atoms):
    mine = bags()
    for bag in mine:
        bag.flags.writeable = False
    cohort = CohortMap(distance, "mds", size=30, atoms=atoms, draws=50, random_state=0)
    parameters = cohort.get_params()
    assert cohort.fit(mine) is cohort
    assert cohort.get_params() == parameters
    public = {name for name in vars(cohort) if not name.startswith("_") and not name.endswith("_")}
    assert public == set(parameters)
    before = pickle.dumps(cohort)
    places = cohort.transform(mine)
    assert pickle.dumps(cohort) == before  # transform changes nothing
    np.testing.assert_allclose(pickle.loads(before).transform(mine), places, atol=1e-6)
    np.testing.assert_allclose(cohort.transform(mine[3:4])[0], places[3], atol=1e-5)
    np.testing.assert_allclose(cohort.transform(mine[::-1])[::-1], places, atol=1e-5)
    embedding = cohort.embedding_
    np.testing.assert_array_equal(cohort.fit(mine).embedding_, embedding)


def test_a_plot_shows_each_bag_with_its_label_in_the_colour_of_its_group():
    cohort = fitted(NAMED)
    ax = cohort.plot(labels=True, groups=["u", "v", "u", "v", "u"])
    assert [text.get_text() for text in ax.texts] == list("eadbc")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["u", "v"]
    np.testing.assert_allclose(ax.collections[0].get_offsets(), cohort.embedding_[[0, 2, 4]])
    same = cohort.plot(ax=ax, labels=["1", "2", "3", "4", "5"])
    assert same is ax
    np.testing.assert_allclose(ax.collections[-1].get_offsets(), cohort.embedding_)
    with pytest.raises(ValueError, match=r"labels .*got 1"):
        cohort.plot(labels=["a"])
    mpl.pyplot.close("all")


def test_bags_without_a_group_are_drawn_too_and_labels_may_be_left_out():
    cohort = fitted(NAMED)
    ax = cohort.plot(labels=False, groups=["u", None, float("nan"), "u", pd.NA])
    assert not ax.texts
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["u", "no group"]
    np.testing.assert_allclose(ax.collections[1].get_offsets(), cohort.embedding_[[1, 2, 4]])
    mpl.pyplot.close("all")


def test_a_map_of_one_dimension_is_drawn_on_a_line():
    cohort = CohortMap(kernel=Gaussian(1.0), layout="mds", n_components=1, size=20, random_state=0).fit(bags())
    ax = cohort.plot()
    assert not np.asarray(ax.collections[0].get_offsets())[:, 1].any()
    mpl.pyplot.close("all")


def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'reduset\[plots\]'"):
        fitted().plot()
