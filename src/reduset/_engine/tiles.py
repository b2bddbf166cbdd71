"""The compiled loops of the kernel sums: a tile of points, stored by columns, against each query.

A tile stays in the first-level cache. For each query it gives distances, exponents and a weighted sum of exponentials, each as a
vectorised loop over points. Sums inside a tile use the working precision, sums across tiles float64.
"""

from __future__ import annotations

import numpy as np

from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.compiled import compiled, row, strip
from reduset._engine.distances import CITYBLOCK, ROOT, SQUARED, to_distances, to_exponents, to_pulls

TILE = 512
MIN_RELATIVE_DISTANCE = 0.01  # relative to |z|² + |q|²; smaller distances lack digits that a root needs


@compiled(fastmath=FAST)
def value_tiles(Z, w, Q, distances, exponents, exponent, table, step, out):
    n = Z.shape[1]
    t = np.empty(TILE, Z.dtype)
    zero = Z.dtype.type(0)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        weights = strip(w, start, count)
        for q in range(Q.shape[0]):
            to_distances(distances, Z, start, n, count, row(Q, q), t)
            to_exponents(exponents, exponent, table, step, t, count)
            total = zero
            for i in range(count):
                total += weights[i] * exp_minus(t[i])
            out[q, 0] += total


@compiled(fastmath=FAST)
def gradient_tiles(Z, w, Q, metric, pulls, distances, exponents, exponent, table, step, out):
    """out[q] += (Σ w φ, Σ w ∇φ), with ∇φ = φ·pull·(z − q). For city-block, its sign replaces z − q."""
    d, n = Z.shape
    t = np.empty(TILE, Z.dtype)
    distance = np.empty(TILE, Z.dtype)
    one = Z.dtype.type(1)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        weights = strip(w, start, count)
        for q in range(Q.shape[0]):
            to_distances(distances, Z, start, n, count, row(Q, q), t)
            for i in range(count):
                distance[i] = t[i]
            to_exponents(exponents, exponent, table, step, t, count)
            total = Z.dtype.type(0)
            for i in range(count):
                t[i] = weights[i] * exp_minus(t[i])
                total += t[i]
            out[q, 0] += total
            if metric == SQUARED:
                to_pulls(pulls, exponent, table, step, distance, t, count)
            for j in range(d):
                z = strip(Z, j * n + start, count)
                coordinate = Q[q, j]
                total = Z.dtype.type(0)
                if metric == SQUARED:
                    for i in range(count):
                        total += t[i] * (z[i] - coordinate)
                elif metric == CITYBLOCK:
                    for i in range(count):
                        total += t[i] * np.sign(z[i] - coordinate)
                else:
                    for i in range(count):
                        u = z[i] - coordinate
                        total += t[i] * u / (one + abs(u))
                out[q, 1 + j] += total


@compiled(fastmath=FAST)
def log_tiles(Z, w, Q, distances, exponents, exponent, table, step, out):
    """out[q] = (least exponent, Σ w exp(least − exponent)), a sum that cannot underflow."""
    n = Z.shape[1]
    t = np.empty(TILE, Z.dtype)
    for q in range(Q.shape[0]):
        out[q, 0] = np.inf
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        weights = strip(w, start, count)
        for q in range(Q.shape[0]):
            to_distances(distances, Z, start, n, count, row(Q, q), t)
            to_exponents(exponents, exponent, table, step, t, count)
            least = t[0]
            for i in range(1, count):
                least = min(least, t[i])
            if least == np.inf:  # squares overflow at this distance
                continue
            if least < out[q, 0]:
                if out[q, 1] != 0:
                    out[q, 1] *= np.exp(least - out[q, 0])
                out[q, 0] = least
            total = 0.0
            for i in range(count):
                total += weights[i] * exp_minus(t[i] - out[q, 0])
            out[q, 1] += total


@compiled(fastmath=FAST)
def pack_rows(points, centre, scale, Z, zz):
    """Coordinates (x − centre)·scale and their squared lengths, in one pass; differences are taken before rounding."""
    for i in range(points.shape[0]):
        x = row(points, i)
        z = row(Z, i)
        for j in range(len(x)):
            z[j] = (x[j] - centre[j]) * scale
        total = Z.dtype.type(0)
        for j in range(len(z)):
            total += z[j] * z[j]
        zz[i] = total


@compiled(fastmath=FAST)
def squared_distance_rows(G, Z, zz, Q, qq, family):
    """Convert inner products G = Q @ Zᵀ (q, n) to squared distances, in place."""
    zero = G.dtype.type(0)
    for q in range(G.shape[0]):
        g = row(G, q)
        for i in range(len(g)):
            g[i] = max(zz[i] + qq[q] - 2 * g[i], zero)
        if family == ROOT:  # the root magnifies cancellation, so that small distances come from differences
            for i in range(len(g)):
                if g[i] < MIN_RELATIVE_DISTANCE * (zz[i] + qq[q]):
                    t = zero
                    for j in range(Z.shape[1]):
                        u = Z[i, j] - Q[q, j]
                        t += u * u
                    g[i] = t


@compiled(fastmath=FAST)
def value_rows(G, w, exponents, exponent, table, step, out):
    """The sums of `value_tiles` from a block G (q, n) of squared distances, which is overwritten."""
    for q in range(G.shape[0]):
        g = row(G, q)
        to_exponents(exponents, exponent, table, step, g, len(g))
        total = G.dtype.type(0)
        for i in range(len(g)):
            total += w[i] * exp_minus(g[i])
        out[q, 0] += total


@compiled(fastmath=FAST)
def pull_rows(G, w, pulls, exponents, exponent, table, step, out):
    """Add the sums of values to out[q, 0], and convert G (q, n) from squared distances to pulls."""
    t = np.empty(G.shape[1], G.dtype)
    for q in range(G.shape[0]):
        g = row(G, q)
        for i in range(len(g)):
            t[i] = g[i]
        to_exponents(exponents, exponent, table, step, t, len(t))
        total = G.dtype.type(0)
        for i in range(len(g)):
            t[i] = w[i] * exp_minus(t[i])
            total += t[i]
        out[q, 0] += total
        to_pulls(pulls, exponent, table, step, g, t, len(t))
        for i in range(len(g)):
            g[i] = t[i]


@compiled(fastmath=FAST)
def gram_rows(Q, Z, distances, exponents, exponent, table, step, out):
    for q in range(Q.shape[0]):
        t = row(out, q)
        to_distances(distances, Z, 0, len(t), len(t), row(Q, q), t)
        to_exponents(exponents, exponent, table, step, t, len(t))
        for i in range(len(t)):
            t[i] = exp_minus(t[i])
