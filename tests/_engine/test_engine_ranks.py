"""Nearest atoms by matrix products: single precision ranks, and never decides what it cannot tell."""

import numpy as np

from reduset._engine import Frame
from reduset._engine.centre_distances import Ranks
from reduset._engine.neighbours import nearest


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


def test_one_row_beyond_everything_does_not_blind_the_others():
    """Its scale leaves the others coordinates whose squares are nothing in float32."""
    X = np.random.default_rng(3).normal(size=(500, 45))
    X[5, 0] = 1e24
    frame, _ = Frame.around(X, 1.0).sized(X)
    index, _ = nearest(X[10:], X[20:60], frame)
    assert np.array_equal(index[10:50], np.arange(40))
