"""Metacells by loops: sums of counts, majority labels with their proportions, means of columns, the sum of squares."""

from __future__ import annotations

from collections import Counter

import numpy as np


def summed(counts, groups, m):
    """(m, genes) the counts of the cells of each group, added one cell after the other."""
    total = [[0] * counts.shape[1] for _ in range(m)]
    for i, row in enumerate(counts.tolist()):
        for j, value in enumerate(row):
            total[groups[i]][j] += value
    return np.array(total)


def majorities(labels, groups, m, ranking):
    """The most frequent label of each group, the first in ``ranking`` of equally frequent ones; and its proportion."""
    found, purity = [], []
    for k in range(m):
        own = Counter(label for label, group in zip(labels, groups, strict=True) if group == k)
        best = max(own.values())
        found.append(next(label for label in ranking if own[label] == best))
        purity.append(best / sum(own.values()))
    return found, purity


def means(values, groups, m):
    """The mean of each group without missing values."""
    found = []
    for k in range(m):
        own = [value for value, group in zip(values, groups, strict=True) if group == k and not np.isnan(value)]
        found.append(sum(own) / len(own) if own else np.nan)
    return found


def within(points, groups):
    """The sum of squared distances to the means of the groups."""
    total = 0.0
    for k in set(groups.tolist()):
        own = points[groups == k]
        total += sum(float(((row - own.mean(axis=0)) ** 2).sum()) for row in own)
    return total
