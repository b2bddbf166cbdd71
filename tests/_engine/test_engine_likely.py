"""Near atoms: most often the nearest, never far from it, and the same from any number of threads."""

import numpy as np

from reduset import get_threads, set_threads
from reduset._engine import Frame, likely_nearest
from reduset._engine.neighbours import nearest
from reduset._engine.ranks import Ranks


def cloud(n=3000, d=45, seed=0):
    rng = np.random.default_rng(seed)
    centres = 4 * rng.normal(size=(8, d)) / np.sqrt(1 + np.arange(d))
    return centres[rng.integers(8, size=n)] + rng.normal(size=(n, d)) / np.sqrt(1 + np.arange(d))


def test_it_is_most_often_the_nearest_and_never_far_from_it():
    X = cloud()
    atoms, frame = X[::7].copy(), Frame.around(X, 1.0)
    found = likely_nearest(X, atoms, frame)
    true, distance = nearest(X, atoms, frame)
    own = np.linalg.norm(X - atoms[found], axis=1)
    assert np.mean(found == true) > 0.9
    assert (own >= distance - 1e-6).all()
    assert np.quantile(own / np.maximum(distance, 1e-9), 0.999) < 1.5
    assert np.array_equal(found[::7], np.arange(len(atoms)))  # an atom is its own


def test_few_atoms_are_all_looked_at():
    X = cloud(500)
    atoms, frame = X[:5].copy(), Frame.around(X, 1.0)
    assert np.array_equal(likely_nearest(X, atoms, frame), nearest(X, atoms, frame)[0])


def test_threads_and_units_change_nothing():
    X = cloud()
    atoms, frame, before = X[:400].copy(), Frame.around(X, 1.0), get_threads()
    try:
        set_threads(1)
        one = likely_nearest(X, atoms, frame)
        set_threads(3)
        assert np.array_equal(likely_nearest(X, atoms, frame), one)
    finally:
        set_threads(before)
    assert np.mean(likely_nearest(X * 1e200, atoms * 1e200, Frame.around(X * 1e200, 1.0)) == one) > 0.99  # but for rounding


def test_single_precision_never_decides_what_it_cannot_tell():
    """Rows far out, whose neighbours differ by less than the rounding of float32: ranked in float64."""
    rng = np.random.default_rng(0)
    X = np.concatenate([1e3 + 1e-3 * rng.normal(size=(200, 41)), -1e3 + rng.normal(size=(200, 41))])
    atoms, frame = X[::2].copy(), Frame(np.zeros(41), 1.0)
    index, distance = Ranks.of(atoms, 1.0).nearest(X)
    gaps = np.linalg.norm(X[:, None] - atoms, axis=2)
    assert np.allclose(distance, gaps.min(axis=1), rtol=1e-3, atol=1e-3)
    assert np.mean(index[::2] == np.arange(200)) > 0.9
    single = np.argmax(
        X.astype(np.float32) @ atoms.T.astype(np.float32) - np.float32(0.5) * (atoms**2).sum(axis=1).astype(np.float32), axis=1
    )
    assert np.mean(single[:200:2] == np.arange(100)) < 0.2  # what float32 alone would make of it
    assert np.array_equal(nearest(X, atoms, frame)[0], index)


def test_rows_far_from_the_origin_are_told_apart():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 45))
    X[1500:, 0] += 1e5  # one column of two far modes
    atoms, frame = X[::5].copy(), Frame.around(X, 1.0)
    own = np.linalg.norm(X - atoms[likely_nearest(X, atoms, frame)], axis=1)
    assert own.mean() < 1.1 * nearest(X, atoms, frame)[1].mean()


def test_one_row_beyond_everything_does_not_blind_the_others():
    """Its scale leaves the others coordinates whose squares are nothing in float32."""
    X = np.random.default_rng(3).normal(size=(500, 45))
    X[5, 0] = 1e24
    frame, _ = Frame.around(X, 1.0).sized(X)
    index, _ = nearest(X[10:], X[20:60], frame)
    assert np.array_equal(index[10:50], np.arange(40))
