"""What holds for every transformer of bags: it names what is wrong, repeats itself, and fits into scikit-learn's tools."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from reduset import set_threads

# scikit-learn's own checks fit one table, which is no list of bags; those that need no data are run by name, and what the others
# ask is asked below, with bags.
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


def spread_bags(count=24, n=40, d=2, seed=0):
    """Bags of normal points, and their standard deviations."""
    rng = np.random.default_rng(seed)
    spreads = rng.uniform(0.5, 2.0, size=count)
    return [rng.normal(0, spread, size=(n + k % 5, d)) for k, spread in enumerate(spreads)], spreads


def with_bag(bag):
    mine = spread_bags(5)[0]
    mine[2] = bag
    return mine


BAD = {
    "another width": (with_bag(np.ones((5, 3))), r"bags\[2\] must have 2 columns like bags\[0\], got shape \(5, 3\)"),
    "empty": (with_bag(np.empty((0, 2))), r"bags\[2\] must hold at least one row"),
    "one point": (with_bag(np.ones((1, 2))), r"bags\[2\] must hold at least 2 points, got 1"),
    "NaN": (with_bag(np.array([[0.0, 1.0], [np.nan, 2.0]])), r"bags\[2\] must be finite, got nan in row 1, column 0"),
    "one table": (np.ones((4, 2)), r"A single bag X is the list \[X\]"),
}


def check_bad_bags_are_named(estimator, case):
    value, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(value)


def check_later_bags_must_be_like_those_fitted(estimator):
    mine = clone(estimator)
    with pytest.raises(NotFittedError):
        mine.transform(spread_bags()[0])
    mine.fit(spread_bags()[0])
    with pytest.raises(ValueError, match=r"bags\[0\] must have 2 columns like the bags that were fitted"):
        mine.transform([np.ones((5, 3))])


def check_it_behaves_as_an_estimator_should(estimator):
    mine, _ = spread_bags()
    before = [bag.copy() for bag in mine]
    for bag in mine:
        bag.flags.writeable = False
    fitted = clone(estimator)
    parameters = fitted.get_params()
    assert fitted.fit(mine) is fitted
    assert fitted.get_params() == parameters
    public = {name for name in vars(fitted) if not name.startswith("_") and not name.endswith("_")}
    assert public == set(parameters)
    rows = fitted.transform(mine)
    assert rows.dtype == np.float64
    assert fitted.n_features_in_ == 2
    np.testing.assert_allclose(clone(estimator).fit_transform(mine), rows, atol=1e-10)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(mine), rows)
    np.testing.assert_allclose(fitted.transform(mine[3:4])[0], rows[3], atol=1e-12)
    np.testing.assert_allclose(fitted.transform(mine[::-1])[::-1], rows, atol=1e-12)
    np.testing.assert_allclose(fitted.transform([bag[::-1] for bag in mine]), rows, atol=1e-12)
    for one, other in zip(mine, before, strict=True):
        np.testing.assert_array_equal(one, other)


def check_the_number_of_threads_changes_nothing(estimator, bags=None):
    bags = spread_bags(70, 60)[0] if bags is None else bags
    found = []
    try:
        for count in (1, 2):
            set_threads(count)
            fitted = clone(estimator)
            found.append((fitted.fit_transform(bags), fitted.transform(bags[:9])))
    finally:
        set_threads(None)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def check_a_long_table_is_a_list_of_bags(estimator):
    mine, _ = spread_bags()
    labels = np.repeat(np.arange(len(mine)), [len(bag) for bag in mine])
    table = pd.DataFrame(np.concatenate(mine), columns=["x", "y"]).assign(bag=labels)
    of_table = clone(estimator).set_params(group="bag").fit(table)
    np.testing.assert_allclose(of_table.transform(table), clone(estimator).fit(mine).transform(mine), atol=1e-12)
    assert of_table.feature_names_in_.tolist() == ["x", "y"]


def check_progress_is_told(estimator, stage):
    heard = []
    mine, _ = spread_bags()
    fitted = clone(estimator).set_params(progress=lambda *told: heard.append(told)).fit(mine)
    fitted.transform(mine)
    assert heard[-1][0] == stage
    assert heard[-1][1] == heard[-1][2] == len(mine)
    with pytest.raises(TypeError, match="progress must be True, False or a function"):
        clone(estimator).set_params(progress="yes").fit(mine)


def check_scikit_learns_own(estimator):
    name = type(estimator).__name__
    for check in BY_NAME:
        getattr(estimator_checks, check)(name, clone(estimator))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing more can be tested
        ran = estimator_checks.check_estimator(clone(estimator))
    assert {result["status"] for result in ran} <= {"passed"}


def check_columns_have_names(estimator):
    mine, _ = spread_bags()
    fitted = clone(estimator).fit(mine)
    plain = fitted.transform(mine)
    names = fitted.get_feature_names_out()
    assert len(set(names)) == plain.shape[1]
    assert names[1] == f"{type(estimator).__name__.lower()}1"
    framed = fitted.set_output(transform="pandas").transform(mine)
    assert framed.columns.tolist() == names.tolist()
    np.testing.assert_array_equal(framed.to_numpy(), plain)


LAWS = [
    check_later_bags_must_be_like_those_fitted,
    check_it_behaves_as_an_estimator_should,
    check_the_number_of_threads_changes_nothing,
    check_a_long_table_is_a_list_of_bags,
    check_scikit_learns_own,
]
