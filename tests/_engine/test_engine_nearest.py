"""The nearest atom where single precision ends."""

import numpy as np

from reduset._engine.neighbours import nearest
from reduset._engine.profile import Frame


def test_points_to_which_every_atom_is_infinitely_far_in_single_precision_have_one():
    """They got one from memory that nobody had written; the distance is that of the atom, in double precision."""
    rng = np.random.default_rng(0)
    points, atoms = 1e-200 * rng.normal(size=(2000, 2)), rng.normal(size=(5, 2))
    frame = Frame.around(points, 1.0)
    index, distance = nearest(points, atoms, frame)
    assert ((index >= 0) & (index < 5)).all()
    np.testing.assert_allclose(distance, np.linalg.norm(frame.apply(points) - frame.apply(atoms)[index], axis=1))
