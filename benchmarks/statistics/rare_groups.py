"""Rare groups: planted clusters of one and five in a thousand rows, and the mass that the default compression gives them.

Five normal clusters of spread 1 in 200,000 rows, and one more beyond them in a random direction, its nearest neighbours among the
others more than the resolution away: tight (a fifth of the resolution) or wide (as wide as it). Its mass is the sum of the weights
of the atoms no further from its centre than its own rows.
"""

from __future__ import annotations

import numpy as np

from benchmarks._lib import table
from reduset import compress

TITLE = "Rare groups"

ROWS, SEEDS = 200_000, 10
DIMENSIONS, SHARES, SPREADS = (2, 6, 10), (0.001, 0.005), {"tight": 0.2, "wide": 1.0}
GAP = 1.5  # resolutions beyond the last of the others, and two spreads
WITHIN = 0.2


def planted(d: int, share: float, spread: float, gap: float, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows, the last of which are the group, its centre, and how many they are."""
    rng, rare = np.random.default_rng(seed), int(ROWS * share)
    others = 3 * rng.normal(size=(5, d))[rng.integers(0, 5, ROWS - rare)] + rng.normal(size=(ROWS - rare, d))
    towards = rng.normal(size=d)
    towards /= np.linalg.norm(towards)
    centre = towards * ((others @ towards).max() + gap)
    return np.concatenate([others, centre + spread / np.sqrt(d) * rng.normal(size=(rare, d))]), centre, rare


def _found(d: int, share: float, spread: float, scale: float, seed: int) -> tuple[float, float]:
    """The group's mass over the true one, and its distance to the nearest other row over the resolution."""
    X, centre, rare = planted(d, share, spread * scale, (GAP + 2 * spread) * scale, seed)
    small = compress(X, rng=seed)
    from_centre = np.linalg.norm(X - centre, axis=1)
    reach = float(from_centre[-rare:].max())
    near = np.linalg.norm(small.mean.atoms - centre, axis=1) <= reach + 1e-9
    return float(small.mean.weights[near].sum()) / share, float(from_centre[:-rare].min() - reach) / small.mean.kernel.bandwidth


def run() -> str:
    rows = []
    for d in DIMENSIONS:
        scale = compress(planted(d, SHARES[0], 0.1, 1.0, 0)[0], rng=0).mean.kernel.bandwidth
        for share in SHARES:
            for name, spread in SPREADS.items():
                found = np.array([_found(d, share, spread, scale, seed) for seed in range(SEEDS)])
                kept = int((np.abs(found[:, 0] - 1) <= WITHIN).sum())
                rows.append(
                    [
                        d,
                        f"{share:.1%}",
                        name,
                        f"{found[:, 1].min():.2f}",
                        f"{found[:, 0].min():.3f} to {found[:, 0].max():.3f}",
                        kept,
                    ]
                )
    head = ["columns", "share", "group", "gap / resolution, least", "mass / truth", f"within {WITHIN:.0%}, of {SEEDS}"]
    return f"{ROWS:,} rows, `compress(X)`: 1,000 atoms (goal: 9 of 10 seeds).\n\n" + table(head, rows)
