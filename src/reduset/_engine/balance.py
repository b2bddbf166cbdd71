"""The self-balancing walk of kernel halving (Dwivedi & Mackey 2021, Algorithm 1a): which of each pair of points stays.

A sign is drawn for every pair so that ψ = Σ ±(k(·, x) − k(·, x′)) stays small: the closer its inner product α with the next
difference comes to the threshold a, the surer the next sign is the opposite one.
"""

from __future__ import annotations

import numpy as np

from reduset._engine.compiled import compiled


@compiled()
def balance(K, along, luck, confidence, spread, signs):
    """Signs for the pairs (2i, 2i + 1) of a block of points.

    K : (2p, 2p) their products; along : (p,) the products of ψ so far with each pair's difference, updated as signs are drawn;
    luck : (p,) uniform draws; confidence : √(2 log(2/δ)); spread : σ² so far. Returns the new σ².
    """
    for i in range(len(signs)):
        square = K[2 * i, 2 * i] + K[2 * i + 1, 2 * i + 1] - 2 * K[2 * i, 2 * i + 1]
        if square <= 0:  # the two coincide: either may stay
            signs[i] = 1.0 if luck[i] < 0.5 else -1.0
            continue
        threshold = max(np.sqrt(square * spread) * confidence, square)
        signs[i] = 1.0 if luck[i] < 0.5 * (1 - along[i] / threshold) else -1.0
        spread += max(0.0, square * (1 + (square - 2 * threshold) * spread / threshold**2))
        for j in range(i + 1, len(signs)):
            first = K[2 * i, 2 * j] - K[2 * i, 2 * j + 1]
            second = K[2 * i + 1, 2 * j] - K[2 * i + 1, 2 * j + 1]
            along[j] += signs[i] * (first - second)
    return spread
