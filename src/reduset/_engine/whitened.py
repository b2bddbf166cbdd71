"""Components as changes of a start, each in its own coordinates: the way there, and the chain rule back, compiled.

    t = t⁰ + L⁰u,        H = LLᵀ,        L = L⁰T,        T lower triangular, exp(v) on its diagonal and v below it

One row a component: d numbers u, then the lower rows of v, which are held within ±widest. O(m·d³) for m components, little beside
the products with those that they face; where these have covariances of their own and are few, it is the calls that cost, so that
everything between two sums over pairs is one loop.
"""

from __future__ import annotations

import numpy as np

from reduset._engine.compiled import compiled


@compiled()
def from_whitened(variables, means, root, widest, centres, factors, entries, even):
    """From variables (m, d + e): centres (m, d), L (m, d, d), H (m, e) in lower rows, and ``even`` (m,): |H| / Π Hᵣᵣ, at most 1."""
    m, d = means.shape
    T = np.zeros((d, d))
    for i in range(m):
        k = d
        for r in range(d):
            total = means[i, r]
            for c in range(r + 1):
                total += root[i, r, c] * variables[i, c]
                value = min(max(variables[i, k], -widest), widest)
                T[r, c] = np.exp(value) if r == c else value
                k += 1
            centres[i, r] = total
        k = 0
        even[i] = 1.0
        for r in range(d):
            for c in range(r + 1):
                total = 0.0
                for s in range(c, r + 1):
                    total += root[i, r, s] * T[s, c]
                factors[i, r, c] = total
            for c in range(r + 1):
                total = 0.0
                for s in range(c + 1):
                    total += factors[i, r, s] * factors[i, c, s]
                entries[i, k] = total
                k += 1
            even[i] *= factors[i, r, r] ** 2 / total


@compiled()
def whitened_gradients(root, factors, by_mean, by_covariance, out):
    """The slopes by the variables, (m, d + e), from those by the mean (m, d) and the covariance (m, e), in lower rows.

    ∂E/∂T = 2 L⁰ᵀ(∂E/∂H) L in its lower half, its diagonal times exp(v) = Lᵣᵣ/L⁰ᵣᵣ.
    """
    m, d = by_mean.shape
    product = np.empty((d, d))
    for i in range(m):
        for r in range(d):
            total = 0.0
            for s in range(r, d):
                total += root[i, s, r] * by_mean[i, s]
            out[i, r] = total
            for c in range(d):
                total = 0.0
                for s in range(c, d):
                    high, low = max(r, s), min(r, s)
                    total += by_covariance[i, high * (high + 1) // 2 + low] * factors[i, s, c]
                product[r, c] = total
        k = d
        for r in range(d):
            for c in range(r + 1):
                total = 0.0
                for s in range(r, d):
                    total += root[i, s, r] * product[s, c]
                out[i, k] = 2 * total
                k += 1
            out[i, k - 1] *= factors[i, r, r] / root[i, r, r]
