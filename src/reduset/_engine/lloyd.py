"""Sums over the points nearest to each of some centres, for sweeps of k-means: their mass, and where they pull the centre to.

By differences to the centre: a shift of the data costs no digits, and a cell of one place stays exactly there. Points are added in
their order, so that the same points give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.device import goes_to_card
from reduset._engine.gaps import SQUARED
from reduset._engine.leaves import Leaves
from reduset._engine.neighbours import nearest
from reduset._engine.passes import add, over_blocks
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks
from reduset._types import Floats

COLUMNS_A_STEP = 16


@over_blocks(add)
def cluster_sums(
    points: Floats, weights: Any, centres: NDArray[np.float64], frame: Frame, leaves: Leaves | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(m,) Σ w and (m, d) Σ w (x − c) over the points nearest to each centre c."""
    if goes_to_card(points, centres):
        from reduset._engine.cuda.cells import cluster_sums as on_card

        return on_card(points, weights, centres, frame)
    owner, _ = nearest(points, centres, frame, SQUARED, leaves)
    order = np.argsort(owner, kind="stable")
    occupied, starts = np.unique(owner[order], return_index=True)
    masses, pulls = np.zeros(len(centres)), np.zeros(centres.shape)
    masses[occupied] = np.add.reduceat(weights[order], starts)
    owner, share = owner[order], weights[order, None]
    for a, b in blocks(centres.shape[1], COLUMNS_A_STEP):
        pulls[occupied, a:b] = np.add.reduceat((points[order, a:b] - centres[owner, a:b]) * share, starts)
    return masses, pulls
