"""The doubling algorithm: within 8 times the best radius for any order of arrival, and books that never promise too much."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import Gaussian, Laplacian
from reduset._engine.farthest import FarthestFirst
from reduset._engine.profile import Frame
from reduset.stream.online_kcenter import FACTOR, OnlineKCenter
from stream_cases import ORDERS, apart, best_radius, mixture, ordered

KERNELS = {"gaussian": Gaussian(1.5), "oblique": Gaussian(0.7, covariance=[[2.0, 0.3], [0.3, 0.5]]), "laplacian": Laplacian(2.0)}
CITYBLOCK = Laplacian(0.9, metric="cityblock")


def covered(X, kernel, most, chunk, weights=None):
    covering = OnlineKCenter.empty(kernel, most, X.shape[1])
    w = np.ones(len(X)) if weights is None else weights
    for start in range(0, len(X), chunk):
        covering = covering.absorb(X[start : start + chunk], w[start : start + chunk])
    return covering


def assert_books(covering, kernel, X, weights=None):
    """What is written down is no less than the truth, and the weight is all there."""
    w = np.ones(len(X)) if weights is None else weights
    gaps = apart(kernel, X, covering.centres).min(axis=1)
    assert gaps.max() <= covering.radius * (1 + 1e-9)
    assert covering.clusters.masses.sum() == pytest.approx(w.sum())
    chords = np.sqrt(2 - 2 * kernel.product_at(gaps, X.shape[1]))
    assert w @ chords <= covering.clusters.chords.sum() * (1 + 1e-9)


@pytest.mark.parametrize("kernel", [*KERNELS.values(), CITYBLOCK], ids=repr)
@pytest.mark.parametrize("order", ORDERS)
def test_the_radius_is_within_the_factor_of_the_best_for_any_order(order, kernel):
    X = ordered(mixture(3000, 2), order)
    covering = covered(X, kernel, 25, 100)
    assert len(covering.centres) <= 25
    assert_books(covering, kernel, X)
    assert covering.radius <= FACTOR * covering.floor
    floor = best_radius(kernel, X, 25)
    assert covering.radius <= FACTOR * max(floor, covering.floor)
    # no lower bound is above twice the radius of a covering that exists
    order = FarthestFirst(X, Frame.around(X, 1.0), 0)
    order.extend(25)
    assert covering.floor <= apart(kernel, X, X[order.indices]).min(axis=1).max() * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(
    points=st.lists(st.tuples(st.integers(-40, 40), st.integers(-3, 3)), min_size=1, max_size=150),
    most=st.integers(1, 9),
    chunk=st.integers(1, 40),
)
def test_the_radius_is_within_the_factor_whatever_comes_in_whatever_chunks(points, most, chunk):
    X, kernel = np.array(points, float), Gaussian(1.0)
    covering = covered(X, kernel, most, chunk)
    assert_books(covering, kernel, X)
    assert covering.radius <= FACTOR * covering.floor + 1e-12
    assert covering.floor <= apart(kernel, X, covering.centres).min(axis=1).max() + 1e-12


def test_rows_that_come_ever_farther_out_are_covered_within_the_factor():
    X = (1.7 ** np.arange(60.0))[:, None] * np.array([[1.0, 0.0]])
    covering = covered(X, Gaussian(1.0), 4, 1)
    assert_books(covering, Gaussian(1.0), X)
    assert covering.radius <= FACTOR * covering.floor


def test_few_places_are_their_own_centres():
    X = np.repeat(np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]]), 50, axis=0)
    covering = covered(X, Gaussian(1.0), 5, 7)
    assert sorted(map(tuple, covering.centres)) == [(0.0, 1.0), (2.0, 3.0), (5.0, 5.0)]
    assert covering.radius == 0
    assert covering.clusters.masses.tolist() == [50.0, 50.0, 50.0]


@pytest.mark.parametrize("order", ORDERS)
def test_books_of_merged_coverings_hold_for_all_rows(order):
    X, kernel = ordered(mixture(3200, 3), order), Gaussian(1.0)
    w = np.random.default_rng(1).uniform(0.1, 2, len(X))
    parts = [covered(X[k::4] if order == "shuffled" else X[k * 800 : (k + 1) * 800], kernel, 30, 90) for k in range(4)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    assert len(merged.centres) <= 30
    assert_books(merged, kernel, X)
    assert merged.floor <= apart(kernel, X, merged.centres).min(axis=1).max()
    weighted = covered(X[:1600], kernel, 30, 100, w[:1600]).merge(covered(X[1600:], kernel, 30, 100, w[1600:]))
    assert_books(weighted, kernel, X, w)


def test_merging_with_nothing_changes_nothing():
    X, kernel = mixture(500, 2), Gaussian(1.0)
    covering, nothing = covered(X, kernel, 10, 50), OnlineKCenter.empty(kernel, 10, 2)
    for merged in (covering.merge(nothing), nothing.merge(covering)):
        assert_books(merged, kernel, X)
        assert merged.radius <= 2 * covering.radius


def test_what_is_forgotten_is_on_record():
    kernel = Gaussian(1.0)
    covering = covered(mixture(500, 2), kernel, 10, 50)
    faded = covering.faded(0.5)
    assert faded.clusters.masses.sum() == pytest.approx(250.0)
    gone = covering.faded(1e-12).absorb(1000 + mixture(500, 2), np.ones(500)).faded(1.0)
    assert gone.lost == pytest.approx(500e-12)
    assert (np.abs(gone.centres) > 900).all()


def test_atoms_elsewhere_are_told_how_far_they_may_be():
    X, kernel = mixture(2000, 2), Gaussian(1.0)
    covering, atoms = covered(X, kernel, 20, 100), X[::40]
    radius, moved = covering.of_atoms(atoms)
    gaps = apart(kernel, X, atoms).min(axis=1)
    assert gaps.max() <= radius
    assert np.mean(np.sqrt(2 - 2 * kernel.product_at(gaps, 2))) <= moved
