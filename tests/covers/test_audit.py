"""Audits of lists of kept rows against the definition, and what is wrong with a list."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from reduset import cover
from reduset._engine import HostRows
from reduset.covers import audit
from reduset.covers.auditing import _neighbourhoods


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(900, 7)).astype(np.float32)


def distances(rows, kept, metric):
    exact = rows.astype(float)
    if metric == "cosine":
        exact /= np.linalg.norm(exact, axis=1)[:, None]
    squares = ((exact[:, None] - exact[kept]) ** 2).sum(axis=-1)
    return squares / 2 if metric == "cosine" else np.sqrt(squares)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_an_audit_is_the_definition(rows, metric):
    kept = np.random.default_rng(1).choice(900, 40, replace=False)
    limit = 1.5 if metric == "euclidean" else 0.2
    found = audit(rows, kept, limit, metric=metric)
    gaps = distances(rows, kept, metric)
    np.testing.assert_allclose(found.distances, gaps.min(axis=1), atol=1e-12)
    assert found.radius == pytest.approx(gaps.min(axis=1).max(), rel=1e-12)
    assert set(found.uncovered.tolist()) == set(np.flatnonzero(gaps.min(axis=1) > limit).tolist())
    assert (np.diff(found.distances[found.uncovered]) <= 0).all()
    inside = np.triu(gaps[kept] <= limit, 1)
    assert len(found.close.first) == inside.sum()
    assert found.worst(3).tolist() == np.argsort(-found.distances, kind="stable")[:3].tolist()
    assert found.farthest_first == pytest.approx(cover(rows, 40, metric=metric).radius)
    assert found.factor >= 1
    assert f"{found.radius:.4g}" in str(found)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_no_list_beats_the_lower_bound(rows, metric):
    for seed in range(20):
        kept = np.random.default_rng(seed).choice(900, 12, replace=False)
        found = audit(rows, kept, metric=metric, rng=seed)
        assert found.radius >= found.best
        assert found.close is None
        assert found.uncovered.size == 0


def test_a_cover_is_audited_like_a_list(rows):
    found = cover(rows, 30)
    assert found.audit().radius == pytest.approx(found.radius, rel=1e-12)
    mask = np.zeros(900, bool)
    mask[found.indices] = True
    assert audit(rows, mask).radius == found.audit().radius
    every = audit(rows, np.arange(900), 0.0, compare=True)
    assert (every.radius, every.factor, len(every.close.first)) == (0.0, 1.0, 0)


def test_lists_that_keep_many_rows_are_compared_only_on_request(rows):
    kept = np.arange(500)
    found, compared = audit(rows, kept), audit(rows, kept, compare=True)
    assert (found.best, found.factor, found.random_rows) == (None, None, None)
    assert "compare=True" in str(found)
    assert compared.factor >= 1
    np.testing.assert_allclose(found.distances, distances(rows, kept, "euclidean").min(axis=1), atol=1e-12)
    assert audit(rows, kept[:90], compare=False).best is None


def test_the_first_centres_of_a_cover_are_audited_with_it(rows):
    found = cover(rows, radius=2.5, keep="first", start=[5, 6])
    assert found.audit().radius == pytest.approx(found.radius, rel=1e-12)
    assert found.audit().kept.tolist() == [5, 6, *found.indices.tolist()]
    with pytest.raises(ValueError, match="points that are not rows"):
        cover(rows, 5, start=rows[:2] + 1).audit()


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ([0, 900], "row numbers from 0 to 899, got 900"),
        ([-1], "got -1"),
        ([3, 4, 3], "row 3 2 times"),
        ([], "keep must hold row numbers"),
        ([0.5], "keep must hold row numbers"),
    ],
)
def test_wrong_lists_are_named(rows, keep, message):
    with pytest.raises(ValueError, match=message):
        audit(rows, keep)
    with pytest.raises(ValueError, match="radius must be a finite distance"):
        audit(rows, [0], -1.0)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_kept_rows_that_are_far_away_are_skipped_in_clustered_rows(metric):
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(60, 6))[rng.integers(0, 60, 9000)] + 0.02 * rng.normal(size=(9000, 6))).astype(np.float32)
    rows[rng.integers(0, 9000, 40)] *= 3  # far rows
    kept = rng.choice(9000, 1500, replace=False)
    parts = list(_neighbourhoods(HostRows(rows), metric == "cosine", np.arange(9000), kept))
    assert sum(len(members) * len(near) for members, near in parts) < 0.3 * 9000 * 1500
    exact = rows.astype(float)
    if metric == "cosine":
        exact /= np.linalg.norm(exact, axis=1)[:, None]
    nearest = cKDTree(exact[kept]).query(exact)[0]
    found = audit(rows, kept, metric=metric, compare=False)
    np.testing.assert_allclose(found.distances, nearest**2 / 2 if metric == "cosine" else nearest, atol=1e-12)
    wide = rng.normal(size=(3000, 60)).astype(np.float32)
    assert len(list(_neighbourhoods(HostRows(wide), metric == "cosine", np.arange(3000), np.arange(1100)))) == 1
