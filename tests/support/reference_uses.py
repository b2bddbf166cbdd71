"""Slow oracles for the uses: held-out likelihoods, mean shift and clusterings, by the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import reference


def log_density(kernel, X, w, Q):
    """log Σ wᵢ φ(q, xᵢ) at each row of Q, the bumps scaled to integrate to 1."""
    return reference.log_sums(kernel, X, w, Q) + kernel.density_log_peak(np.shape(X)[1])


def five_folds(weights, seed):
    """(rest, left out) of rows that weigh something, as the search deals them."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(weights))
    for out in np.array_split(order, min(5, len(order))):
        yield np.setdiff1d(order, out), out


def held_out(X, kernel, grid, weights, splits):
    """(q, k) log-densities of points that were left out, and the weights of these points."""
    logs, shares = [], []
    for rest, out in splits:
        w = weights[rest] / weights[rest].sum()
        logs.append(np.stack([log_density(replace(kernel, bandwidth=float(h)), X[rest], w, X[out]) for h in grid], axis=1))
        shares.append(weights[out])
    return np.concatenate(logs), np.concatenate(shares)


def shift_step(mean, y):
    """One step of mean shift from y: the mean of the atoms, weighted by the Gaussian bump there."""
    logs = reference.log_bump(mean.kernel, mean.atoms, np.asarray(y)[None])[:, 0]
    share = np.where(mean.weights > 0, np.exp(logs - logs[mean.weights > 0].max()), 0.0) * mean.weights
    return share @ np.asarray(mean.atoms, np.float64) / share.sum()


def plain_mean_shift(mean, starts, steps):
    """Every start moved by so many steps, each by itself."""
    ends = np.array(starts, np.float64)
    for _ in range(steps):
        ends = np.stack([shift_step(mean, y) for y in ends])
    return ends


def hausdorff(labels, others):
    """The Hausdorff distance of two clusterings as families of sets."""
    families = [[{i for i, each in enumerate(some) if each == name} for name in set(some)] for some in (labels, others)]
    n = len(labels)

    def farthest(one, other):
        return max(min(len(a ^ b) / n for b in other) for a in one)

    return max(farthest(*families), farthest(*families[::-1]))


def log_mean_of(logs, shares):
    """The weighted mean of (q, k) logarithms over q."""
    return shares @ logs / shares.sum()
