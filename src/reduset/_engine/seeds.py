"""Seeds of k-means (k-means++, Arthur & Vassilvitskii 2007): each drawn by weight times the squared distance to those before it.

O(n·m·d) time, O(n) memory beyond the points.
"""

from __future__ import annotations

import numpy as np

from reduset._engine.compiled import compiled


@compiled()
def draw_seeds(Z, weights, luck, seeds):
    """Fill ``seeds`` with rows of the points Z (n, d), one for each uniform draw ``luck``; return how many there are.

    Fewer than asked for where every place has its seed.
    """
    n, d = Z.shape
    columns = np.ascontiguousarray(Z.T)
    gap = np.ones(n)
    fresh = np.empty(n)
    for k in range(len(luck)):
        total = 0.0
        for i in range(n):
            total += weights[i] * gap[i]
        if not total > 0:
            return k
        target = luck[k] * total
        so_far = 0.0
        chosen = n - 1
        for i in range(n):
            so_far += weights[i] * gap[i]
            if so_far > target:
                chosen = i
                break
        seeds[k] = chosen
        fresh[:] = 0
        for j in range(d):
            column = columns[j]
            place = column[chosen]
            for i in range(n):
                apart = column[i] - place
                fresh[i] += apart * apart
        for i in range(n):
            gap[i] = fresh[i] if k == 0 else min(gap[i], fresh[i])
    return len(luck)
