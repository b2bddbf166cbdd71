"""Scores of single columns in the joint test: a change of one column of many is found, the level stays, files keep them."""

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp, ranksums

from archive_cases import parts, store
from reduset.drift import DriftTest, columns, two_sample
from reduset.drift.columns import ColumnBins, ColumnScores

REPETITIONS = 40
SLACK = 0.1  # of the repetitions: 5 points of power, and sampling error


def by_columns(X, Y):
    return X.shape[1] * min(ks_2samp(x, y, method="asymp").pvalue for x, y in zip(X.T, Y.T, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["all rows", "stored"])
def test_a_shift_in_one_heavy_tailed_column_of_ten_is_found_as_often_as_by_tests_of_columns(kept):
    rng, joint, single = np.random.default_rng(0), 0, 0
    reference = rng.standard_t(3, size=(10_000, 10))
    test = DriftTest(size=64, random_state=0, n_resamples=199).fit(reference)
    for k in range(REPETITIONS):
        X, Y = rng.standard_t(3, size=(2, 300, 10))
        Y[:, 3] += 0.4 if kept == "all rows" else 0.3
        found = two_sample(X, Y, size=64, n_resamples=199, rng=k) if kept == "all rows" else test.test(Y)
        joint += found.p_value <= 0.05
        single += by_columns(X if kept == "all rows" else reference, Y) <= 0.05
    assert joint >= single - SLACK * REPETITIONS


def test_a_wider_spread_of_one_column_of_ten_is_found():
    rng, found = np.random.default_rng(1), 0
    for k in range(20):
        X, Y = rng.normal(size=(2, 256, 10))
        Y[:, 0] *= 1.5
        found += two_sample(X, Y, size=64, n_resamples=199, rng=k).p_value <= 0.05
    assert found >= 15


def test_rare_values_in_many_columns_keep_the_level():
    rng, found = np.random.default_rng(2), []
    for _ in range(5):
        test = DriftTest(size=32, random_state=0, n_resamples=99).fit((rng.random((9000, 12)) < 0.01).astype(float))
        found += [test.test((rng.random((60, 12)) < 0.01).astype(float)).p_value for _ in range(30)]
    below = int((np.asarray(found) <= 0.05).sum())
    assert binom.cdf(below, len(found), 0.05) > 1e-3
    assert binom.sf(below - 1, len(found), 0.05) > 1e-3


def test_shift_scores_are_the_rank_sum_statistic():
    rng = np.random.default_rng(3)
    X, Y = rng.integers(0, 12, (200, 2)).astype(float), rng.integers(1, 13, (150, 2)).astype(float)
    both = np.concatenate([X, Y])
    bins = ColumnBins.of(both)
    scores = ColumnScores.of(bins.shares(both, np.full(350, 1 / 350)))
    before, after = (scores.mean(bins.shares(each, np.full(len(each), 1 / len(each)))) for each in (X, Y))
    np.testing.assert_allclose(scores.rows(bins, Y).mean(axis=0), after)
    for k in range(2):
        z = (after - before)[k] / np.sqrt((1 / 200 + 1 / 150) / 12)
        assert z == pytest.approx(-ranksums(X[:, k], Y[:, k]).statistic, rel=0.01)


def test_bounds_beyond_the_draws_hold_for_rare_values():
    shares = (np.array([0.0, 0.99, 0.0, 0.01, 0.0]),)
    scores = ColumnScores.of(shares)
    for count in range(2, 6):
        new = (np.array([0.0, 1 - count / 50, 0.0, count / 50, 0.0]),)
        difference = scores.mean(new) - scores.mean(shares)
        bound = scores.beyond_draws(difference, scores.variances / 50, 50)[0]
        assert bound >= binom.sf(count - 1, 50, 0.01)


def test_wide_tables_have_no_scores(monkeypatch):
    monkeypatch.setattr(columns, "MAX_COLUMNS", 2)
    rng = np.random.default_rng(5)
    found = two_sample(rng.normal(size=(60, 3)), rng.normal(size=(60, 3)), size=16, n_resamples=99, rng=0)
    assert found.comparison.features.scores is None


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng, path = np.random.default_rng(6), tmp_path_factory.mktemp("drift") / "reference.npz"
    DriftTest(size=32, random_state=0, n_resamples=99).fit(rng.normal(size=(9000, 2))).save(path)
    return parts(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("column_scores", lambda a: a[:, :-1]),
        ("column_scores", lambda a: a + 2.0),
        ("column_scores", lambda a: a * np.nan),
        ("column_variances", lambda a: -a - 1.0),
        ("column_variances", lambda a: a + 5.0),
        ("column_variances", lambda a: a[:1]),
    ],
)
def test_a_file_with_scores_out_of_range_is_refused(saved, tmp_path, name, change):
    header, arrays = saved
    changed = arrays | {name: np.ascontiguousarray(change(arrays[name]))}
    store(tmp_path / "bad.npz", header, changed)
    with pytest.raises(ValueError, match=name):
        DriftTest.load(tmp_path / "bad.npz")
