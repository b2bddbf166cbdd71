"""The level: a difference that is none is called one as often as alpha says, at every size, law and kind of reference."""

import numpy as np
import pytest
from scipy.stats import binom, kstest

from reduset import compress
from reduset.drift import DriftTest, two_sample
from reduset.drift.comparison import stored
from reduset.drift.reference import StoredReference
from reduset.drift.result import DriftResult
from reduset.drift.sample import Sample
from reduset.drift.statistics import chosen_statistics

pytestmark = pytest.mark.slow

LAWS = {
    "normal": lambda rng, n: rng.normal(size=(n, 3)),
    "line": lambda rng, n: rng.normal(size=(n, 1)),
    "heavy": lambda rng, n: rng.standard_t(2, size=(n, 2)),
    "counts": lambda rng, n: rng.poisson(1.0, size=(n, 3)).astype(float),
    "clusters": lambda rng, n: 8.0 * rng.integers(3, size=(n, 2)) + rng.normal(size=(n, 2)),
    "units": lambda rng, n: np.exp(rng.normal(size=(n, 3))) * [1.0, 1e4, 1e-3],
    "many": lambda rng, n: rng.normal(size=(n, 30)),
}


def holds(p_values, alpha, exactly=True):
    below = int((np.asarray(p_values) <= alpha).sum())
    high = binom.sf(below - 1, len(p_values), alpha)
    return high > 1e-3 and (not exactly or binom.cdf(below, len(p_values), alpha) > 1e-3)


@pytest.mark.parametrize("law", LAWS)
def test_permutations_hold_the_level(law):
    rng = np.random.default_rng(0)
    found = [two_sample(LAWS[law](rng, 70), LAWS[law](rng, 40), rng=k, size=48, n_resamples=99).p_value for k in range(80)]
    assert holds(found, 0.05)
    assert holds(found, 0.3)


@pytest.mark.parametrize(
    ("law", "count"), [("heavy", 15), ("clusters", 300), ("normal", 2500)]
)  # drawn one by one, counted, normal
def test_stored_references_hold_the_level(law, count):
    rng, found = np.random.default_rng(1), []
    for k in range(12):
        reference = StoredReference.of(Sample.checked(LAWS[law](rng, 5000)), 48, "robust", True, rng)
        for j in range(8):
            new = Sample.checked(LAWS[law](rng, count))
            found.append(DriftResult.of(stored(reference, new, 99, chosen_statistics(None), 8 * k + j), 0.05, 0).p_value)
    assert holds(found, 0.05)
    assert holds(found, 0.3)


def test_rows_of_unequal_weight_hold_the_level():
    rng, found = np.random.default_rng(2), []
    for k in range(80):
        X, Y = rng.normal(size=(150, 2)), rng.normal(size=(100, 2)) * [1.0, np.sqrt(2.0)]
        X = np.concatenate([X, rng.normal(size=(150, 2)) * [1.0, 2.0]])
        # Y of variance 2 in its second column, weighed to have variance 1 there, and X one of two parts of which one weighs nothing
        weights = np.sqrt(2.0) * np.exp(-(Y[:, 1] ** 2) / 4)
        old = np.repeat([1.0, 0.0], 150)
        found.append(two_sample(X, Y, sample_weight=(old, weights), rng=k, size=48, n_resamples=99).p_value)
    assert holds(found, 0.05)


def test_compressions_are_never_taken_for_drift():
    rng = np.random.default_rng(3)
    X = LAWS["clusters"](rng, 6000)
    for pieces, size in (("atoms", 60), ("components", 12)):
        test = DriftTest(size=64, random_state=0, n_resamples=99).fit(compress(X, size=size, tol=0.1, pieces=pieces, rng=0))
        found = [test.test(LAWS["clusters"](rng, 400)).p_value for _ in range(40)]
        assert holds(found, 0.05, exactly=False)


def test_p_values_of_permutations_are_uniform():
    rng = np.random.default_rng(4)
    found = [
        two_sample(rng.normal(size=(40, 2)), rng.normal(size=(25, 2)), rng=k, size=32, n_resamples=99).p_value for k in range(200)
    ]
    assert kstest(np.asarray(found) - 0.005 * np.random.default_rng(0).random(200) * 2, "uniform").pvalue > 0.01


@pytest.mark.parametrize("change", ["shift", "spread", "cluster", "correlation"])
def test_changes_are_found(change):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(6000, 3)), rng.normal(size=(600, 3))
    if change == "shift":
        Y[:, 1] += 0.3
    elif change == "spread":
        Y *= 1.15
    elif change == "cluster":
        Y[:30] = [2.5, -2.5, 2.0] + 0.2 * rng.normal(size=(30, 3))
    else:
        Y[:, 2] = 0.4 * Y[:, 0] + np.sqrt(1 - 0.16) * Y[:, 2]
    for reference in (X, X[:1000]):
        assert DriftTest(size=96, random_state=0).fit(reference).test(Y).p_value < 0.01
    assert DriftTest(size=96, random_state=0, keep_rows=False).fit(X).test(Y).p_value < 0.01
