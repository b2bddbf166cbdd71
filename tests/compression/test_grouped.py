"""Groups compressed apart: each has atoms of its own and exactly its share of the weight."""

import numpy as np
import pandas as pd
import pytest

from reduset import Gaussian, KernelMean, compress
from reduset.compression import NotReachedWarning, quotas
from reduset.weights import KINDS


def classes(n=4000, rare=0.03, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=n) < rare, "rare", "common")
    return rng.normal(size=(n, 3)) + 0.7 * (y == "rare")[:, None], y


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("weights", KINDS)
def test_every_group_keeps_its_exact_share(weights):
    X, y = classes()
    small = compress(X, size=80, groups=y, weights=weights, rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    for name in ("rare", "common"):
        assert small.mean.weights[small.groups == name].sum() == pytest.approx(np.mean(y == name), abs=1e-12)
    assert small.certificate.relative_error == pytest.approx(small.mean.distance(full) / full.norm(), rel=1e-6)
    assert small.certificate.bound >= small.mean.distance(full)
    assert "by group" in small.weighting


def test_weights_of_rows_are_what_shares_are_made_of():
    X, y = classes()
    w = np.random.default_rng(1).uniform(0.1, 3, len(X))
    small = compress(X, size=60, groups=y, sample_weight=w, weights="simplex", rng=0)
    assert small.mean.weights[small.groups == "rare"].sum() == pytest.approx(w[y == "rare"].sum() / w.sum(), abs=1e-12)


def test_atoms_are_rows_of_their_group_where_the_selector_takes_rows():
    X, y = classes()
    small = compress(X, size=60, groups=y, select="kcenter", rng=0)
    assert np.array_equal(X[small.indices], small.mean.atoms)
    assert np.array_equal(y[small.indices], small.groups)


def test_a_rare_group_gets_atoms_by_the_root_of_its_weight():
    found = quotas(100, np.array([0.81, 0.16, 0.03]), np.array([8100, 1600, 300]))
    assert found.sum() == 100
    roots = np.sqrt([0.81, 0.16, 0.03])
    assert np.abs(found - 100 * roots / roots.sum()).max() <= 1.5
    assert quotas(50, np.array([0.9, 0.1]), np.array([900, 5])).tolist() == [45, 5]  # no more than it has points
    assert quotas(9, np.array([1.0, 0.0]), np.array([5, 2])).tolist() == [5, 2]


def test_fewer_atoms_than_groups_are_refused():
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(ValueError, match=r"size .*got 10"):
        compress(X, size=10, groups=np.arange(100) % 25)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(7), r"groups must have shape \(100,\)"),
        (np.where(np.arange(100) < 3, np.nan, 1.0), "missing or infinite"),
        (np.array([None] + ["a"] * 99, dtype=object), "missing ones"),
    ],
)
def test_labels_that_are_none_are_refused(groups, message):
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(ValueError, match=message):
        compress(X, size=20, groups=groups)


def test_a_tolerance_holds_for_every_group():
    X, y = classes()
    kernel = Gaussian("median").resolve(X)
    small = compress(X, kernel, tol=0.05, groups=y, weights="simplex", rng=0)
    assert small.reached
    for name in ("rare", "common"):
        full = KernelMean.from_samples(X[y == name], kernel)
        own = small.groups == name
        few = KernelMean(small.mean.atoms[own], small.mean.weights[own] / small.mean.weights[own].sum(), kernel)
        assert few.distance(full) <= 0.05 * full.norm()
    with pytest.warns(NotReachedWarning):
        assert not compress(X, Gaussian(0.3), tol=0.01, max_size=10, groups=y, rng=0).reached


def test_a_prefix_has_some_of_every_group_and_says_which():
    X, y = classes()
    small = compress(X, size=80, groups=y, weights="simplex", rng=0)
    fewer = small.at(20)
    assert len(fewer.groups) == 20
    assert set(fewer.groups) == {"rare", "common"}
    with pytest.raises(ValueError, match="simplex by group"):
        small.reweigh(KernelMean.from_samples(X, small.mean.kernel))


def test_the_same_seed_gives_the_same_atoms_and_one_group_is_no_group():
    X, y = classes(800)
    a, b = (compress(X, size=30, groups=y, rng=3) for _ in range(2))
    assert np.array_equal(a.mean.atoms, b.mean.atoms)
    assert np.array_equal(a.mean.weights, b.mean.weights)
    alone = compress(X, size=30, groups=np.zeros(800, int), weights="simplex", rng=3)
    assert alone.mean.mass == pytest.approx(1.0)


def test_a_model_that_learns_from_few_weighted_rows_is_nearly_that_of_all():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    X, y = classes(20_000)
    test, truth = classes(20_000, seed=1)
    small = compress(X, size=400, groups=y, weights="simplex", rng=0)
    whole = LogisticRegression().fit(X, y).predict_proba(test)[:, 1]
    few = LogisticRegression().fit(small.mean.atoms, small.groups, sample_weight=len(X) * small.mean.weights).predict_proba(test)
    assert few[:, 1].mean() == pytest.approx(whole.mean(), rel=0.1)
    assert roc_auc_score(truth, few[:, 1]) > roc_auc_score(truth, whole) - 0.01


@pytest.mark.parametrize(("rule", "expected"), [("equal", [20, 20]), ("proportional", [36, 4]), ("square root", [30, 10])])
def test_quotas_follow_their_rule(rule, expected):
    assert quotas(40, np.array([0.9, 0.1]), np.array([900, 100]), rule).tolist() == expected
    X = np.random.default_rng(0).normal(size=(1000, 2))
    y = np.repeat([0, 1], [900, 100])
    small = compress(X, Gaussian(0.3), size=40, groups=y, quotas=rule, select="kcenter", rng=0)
    assert np.bincount(small.groups).tolist() == expected


def test_a_rule_for_quotas_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"quotas .*got 'fair'"):
        compress(np.random.default_rng(0).normal(size=(50, 2)), size=10, groups=np.arange(50) % 2, quotas="fair")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array(["2020-01-01", "NaT"] * 25, dtype="datetime64[D]"), "got missing ones"),
        (np.array([1, "1", 2, 2, 2] * 10, dtype=object), "groups must be labels of one type"),
        (pd.Series(["a", pd.NA] * 25, dtype="string"), "got missing ones"),
    ],
)
def test_labels_that_are_none_or_not_of_one_kind_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        compress(np.random.default_rng(0).normal(size=(50, 2)), size=10, groups=labels)


@pytest.mark.parametrize(
    ("size", "masses", "expected"),
    # after one atom each, the averages mass / (atoms + 1) are 2.5, 1.5, 1; then 1.67, 1.5, 1
    [(5, [5.0, 3.0, 2.0], [3, 1, 1]), (7, [5.0, 3.0, 2.0], [4, 2, 1]), (6, [10.0, 4.0, 4.0], [4, 1, 1])],
)
def test_atoms_are_divided_by_the_highest_averages_of_dhondt(size, masses, expected):
    assert quotas(size, np.array(masses), np.array([99, 99, 99]), "proportional").tolist() == expected
