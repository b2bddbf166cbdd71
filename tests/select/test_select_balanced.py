"""Balanced atoms: every row is nearly as near as to farthest-first atoms, at nearly the least error."""

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, compress
from reduset.select import Balanced, Greedy, KCenter, covering


def clusters(n=4000, d=4, seed=0):
    """Five clusters of very different sizes, and three rows far from all."""
    rng = np.random.default_rng(seed)
    centres, shares = 3 * rng.normal(size=(5, d)), np.array([0.6, 0.25, 0.1, 0.04, 0.01])
    X = centres[rng.choice(5, n, p=shares)] + 0.5 * rng.normal(size=(n, d))
    return np.concatenate([X, 15 + 3 * rng.normal(size=(3, d))])


def reach(X, atoms):
    """The covering radius, by the definition."""
    return max(np.linalg.norm(atoms - row, axis=1).min() for row in X)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("size", [20, 100])
def test_every_row_is_nearly_as_near_as_to_farthest_first_atoms(size, rows):
    X = clusters()
    small = compress(X, Gaussian(0.7), size=size, select=Balanced(rows=rows), rng=0)
    farthest = KCenter(first=0).select(KernelMean.from_samples(X, Gaussian(0.7)), size)
    assert small.certificate.radius == pytest.approx(reach(X, small.mean.atoms), rel=1e-6)
    # the traversals begin with other rows, and a radius is that of the best up to a factor 2
    assert small.certificate.radius <= 1.25 * 1.15 * reach(X, farthest.atoms)
    assert not rows or np.array_equal(X[small.indices], small.mean.atoms)


@pytest.mark.parametrize("bandwidth", [0.4, 1.0])
def test_the_error_is_near_the_least(bandwidth):
    X = clusters()
    errors = {
        name: compress(X, Gaussian(bandwidth), size=150, select=name, rng=0).certificate.relative_error
        for name in ("auto", "balanced", "kcenter")
    }
    assert errors["balanced"] <= 1.6 * errors["auto"]  # of real cells 1.3, see benchmarks/balanced.py
    assert errors["balanced"] < 0.7 * errors["kcenter"]


def test_rare_rows_are_kept_where_auto_loses_them():
    X = clusters()
    found = {name: compress(X, Gaussian(0.7), size=30, select=name, rng=0).mean.atoms for name in ("kmeans", "balanced")}
    rare = X[-3:]
    near = {name: sum(np.linalg.norm(atoms - row, axis=1).min() < 1e-9 for row in rare) for name, atoms in found.items()}
    assert near["balanced"] == 3 > near["kmeans"]


def test_the_share_that_covers_can_be_said():
    X = clusters()
    f = KernelMean.from_samples(X, Gaussian(0.7))
    all_cover = Balanced(coverage=1.0).select(f, 40, rng=0)
    first = KCenter(first=int(all_cover.indices[0])) if all_cover.indices is not None else None
    assert first is not None
    assert set(first.select(f, 40).indices) == set(all_cover.indices)
    radii = [Balanced(coverage=share).select(f, 40, rng=0).radius for share in (0.1, 0.5, 1.0)]
    assert radii[0] > radii[1] > radii[2]
    for wrong in (-0.1, 1.5, "half"):
        with pytest.raises((ValueError, TypeError), match="coverage"):
            Balanced(coverage=wrong)


def test_greedy_goes_on_after_given_rows():
    f = KernelMean.from_samples(clusters(500), Gaussian(0.7))
    found = Greedy(after=(7, 3)).select(f, 10, rng=0).indices
    assert found[:2].tolist() == [7, 3]
    assert len(set(found.tolist())) == 10
    with pytest.raises(ValueError, match="after must be"):
        Greedy(after=(10_000,)).select(f, 5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_atoms_and_few_places(size):
    X = np.repeat([[0.0, 0.0], [5.0, 0.0]], 50, axis=0)
    found = Balanced().select(KernelMean.from_samples(X, Gaussian(1.0)), size, rng=0)
    assert len(np.unique(found.atoms, axis=0)) == len(found.atoms) == min(size, 2)
    assert found.weights.sum() == pytest.approx(1.0)


def test_other_metrics_and_kernels_are_covered_in_their_own_distance():
    X = clusters(800)
    kernel = Laplacian(1.0, metric="cityblock")
    small = compress(X, kernel, size=40, select="balanced", rng=0)
    by_hand = max(np.abs(small.mean.atoms - row).sum(axis=1).min() for row in X)
    assert small.certificate.radius == pytest.approx(by_hand, rel=1e-6)


def test_a_sample_that_is_covered_first_leaves_no_row_behind(monkeypatch):
    monkeypatch.setattr(covering, "LEAST_SAMPLED", 400)
    monkeypatch.setattr(covering, "SAMPLED", 4)
    X = np.concatenate([clusters(3000, 41), 40 + 5 * np.random.default_rng(1).normal(size=(9, 41))])
    f = KernelMean.from_samples(X, Gaussian(3.0))
    cover = covering.Covering(f, None, np.random.default_rng(0))
    rows = cover.rows(60)
    bound = f.kernel.length(cover.reach(len(rows)), 41)
    assert len(set(rows.tolist())) == len(rows) <= 60
    assert reach(X, X[rows]) <= bound * (1 + 1e-6)


def test_the_result_says_that_no_row_is_far():
    small = compress(clusters(), Gaussian(0.7), size=40, select="balanced", rng=0)
    assert f"every row is within {small.certificate.radius:.3g} of one of them" in str(small)
    assert f"every point is within {small.certificate.radius:.3g} of an atom" in small.details()
    scaled = compress(clusters(), Gaussian(0.7, scales="robust"), size=40, select="balanced", rng=0)
    assert "of one of them, in spreads of the columns" in str(scaled)


def test_a_tolerance_is_met_by_atoms_that_cover():
    X = clusters(2000, 2, seed=3)
    small = compress(X, Gaussian(0.3), tol=0.05, select="balanced", rng=0)
    assert small.reached
    assert small.certificate.interval[1] <= 0.05
    farthest = KCenter(first=0).select(KernelMean.from_samples(X, Gaussian(0.3)), small.size)
    assert small.certificate.radius <= 1.6 * reach(X, farthest.atoms)


@pytest.mark.parametrize("weights", ["simplex", "clipped", "simplex_projection"])
@pytest.mark.parametrize("select", ["balanced", "kcenter"])
def test_atoms_without_weight_cover_nothing(select, weights):
    Y = np.random.default_rng(3).normal(size=(2000, 2))
    small = compress(Y, Gaussian(0.3), size=200, select=select, weights=weights, rng=0)
    assert small.certificate.radius == pytest.approx(reach(Y, small.mean.atoms), rel=1e-6)


def test_distances_of_a_function_tell_nothing_far_away():
    """They end at √2: half of the atoms cover, and no radius is told."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[:6] += 8
    kernel = FunctionKernel(lambda A, B: np.exp(-np.linalg.norm(A[:, None] - B, axis=2)))
    small = compress(X, kernel, size=40, select="balanced", rng=0)
    assert small.certificate.radius is None
    assert min(np.linalg.norm(small.mean.atoms - row, axis=1).min() for row in X[:6]) < 3
    assert "every row" not in str(small)


def test_rows_without_weight_belong_to_nobody():
    X = clusters(500)
    w = np.ones(len(X))
    w[::4] = 0
    found = Balanced().select(KernelMean(X, w, Gaussian(0.7)), 20, rng=0)
    assert ((found.owners == -1) == (w == 0)).all()
    assert found.weights.sum() == pytest.approx(w.sum())


def test_rows_of_fewer_places_than_atoms():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 3, axis=0)
    X[:3] += 1e-9  # places that k-means does not tell apart
    for rows in (False, True):
        found = Balanced(rows=rows).select(KernelMean.from_samples(X, Gaussian(1.0)), 40, rng=0)
        assert len(np.unique(found.atoms, axis=0)) == len(found.atoms) == len(np.unique(X, axis=0))
