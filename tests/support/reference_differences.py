"""Slow oracles of the comparison of groups: least squares twice, every labelling in turn, sums over all pairs."""

from itertools import permutations

import numpy as np


def residual_energy(y, columns, weights):
    """The weighted sum of squares that is left of y, and how many numbers were fitted."""
    root = np.sqrt(weights)
    found, _, rank, _ = np.linalg.lstsq(columns * root[:, None], y * root, rcond=None)
    return float(np.sum(((y - columns @ found) * root) ** 2)), int(rank)


def indicators(codes):
    """Columns of 0 and 1 of all groups but the first."""
    return (np.asarray(codes)[:, None] == np.arange(1, max(codes) + 1)).astype(float)


def f_statistic(y, codes, nuisance, weights):
    """F of the groups beyond the nuisance, from two fits."""
    left, rank = residual_energy(y, nuisance, weights)
    less, more_rank = residual_energy(y, np.hstack([nuisance, indicators(codes)]), weights)
    return (left - less) / (more_rank - rank) / (less / (len(y) - more_rank))


def all_labellings(codes, blocks):
    """Every distinct labelling within blocks, by going through all orders of all samples."""
    n = len(codes)
    within = (order for order in permutations(range(n)) if all(blocks[k] == blocks[order[k]] for k in range(n)))
    return {tuple(int(codes[k]) for k in order) for order in within}


def pseudo_f(distances, codes):
    """PERMANOVA of one factor by sums over pairs (Anderson 2001, equations 1 to 3), and the share between groups."""
    n, groups = len(codes), sorted(set(codes))
    whole = sum(distances[i, j] ** 2 for i in range(n) for j in range(i)) / n
    within = sum(distances[i, j] ** 2 / list(codes).count(codes[i]) for i in range(n) for j in range(i) if codes[i] == codes[j])
    between = whole - within
    return between / (len(groups) - 1) / (within / (n - len(groups))), between / whole
