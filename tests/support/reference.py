"""Slow oracles: what the library computes, by the definition, in plain float64.

Nothing here calls the engine. A kernel object is read for its parameters only.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
from scipy import special, stats
from scipy.linalg import cho_factor, cho_solve

# -- distances ------------------------------------------------------------------------------------------------------------------


def gap(x, y, metric="euclidean"):
    """Squared Euclidean or city-block distance of two points, summed coordinate by coordinate."""
    total = 0.0
    for a, b in zip(x, y, strict=True):
        u = float(a) - float(b)
        total += abs(u) if metric == "cityblock" else u * u
    return total


def gaps(X, y, metric="euclidean"):
    """`gap` of every row of X to y: the same additions in the same order."""
    X = np.asarray(X, np.float64)
    total = np.zeros(len(X))
    for j in range(X.shape[1]):
        u = X[:, j] - float(y[j])
        total += np.abs(u) if metric == "cityblock" else u * u
    return total


def distances(X, Y, metric="euclidean"):
    """(n, m) distances from the differences."""
    columns = [gaps(X, y, metric) for y in Y]
    out = np.stack(columns, axis=1)
    return out if metric == "cityblock" else np.sqrt(out)


def farthest_first(X, first, size, metric="euclidean"):
    """Gonzalez's traversal by the definition, ties to the lowest row: indices, and the covering radius after each atom.

    Ends early where every point coincides with an atom.
    """
    indices, radii = [int(first)], []
    least = gaps(X, X[first], metric)
    while True:
        farthest = float(least.max())
        radii.append(farthest if metric == "cityblock" else math.sqrt(farthest))
        if len(indices) == size or farthest == 0.0:
            return np.array(indices), np.array(radii)
        indices.append(int(np.argmax(least)))
        least = np.minimum(least, gaps(X, X[indices[-1]], metric))


def nearest(X, atoms, metric="euclidean"):
    """For each row of X the index of the nearest atom (the lowest of equals) and its distance."""
    D = distances(X, atoms, metric)
    return D.argmin(axis=1), D.min(axis=1)


# -- kernels --------------------------------------------------------------------------------------------------------------------


def power(kernel, d):
    """The exponent of a Student kernel in d dimensions."""
    return (d + 1) / 2 if kernel.exponent is None else kernel.exponent


def in_cityblock(kernel):
    return getattr(kernel, "metric", "euclidean") == "cityblock"


def whitened(kernel, X):
    """X in coordinates where the kernel has unit bandwidth and no covariance."""
    X = np.asarray(X, np.float64)
    if np.ndim(kernel.covariance) == 1:
        X = X / np.sqrt(kernel.covariance)
    elif kernel.covariance is not None:
        X = np.linalg.solve(np.linalg.cholesky(kernel.covariance), X.T).T
    if kernel.scales is not None:
        X = X / kernel.scales
    return X / kernel.width


def log_bump(kernel, X, Y):
    """(n, m) log φ(x, y) of the bump of height 1."""
    A, B = whitened(kernel, X), whitened(kernel, Y)
    if in_cityblock(kernel):
        return -distances(A, B, "cityblock")
    return log_unit_bump(kernel, distances(A, B), np.shape(X)[1])


def log_unit_bump(kernel, r, d):
    """log φ at Euclidean distances r, in bandwidths."""
    if kernel.name == "gaussian":
        return -(r**2) / 2
    if kernel.name == "laplacian":
        return -r
    if kernel.name == "matern":
        s = math.sqrt(2 * kernel.smoothness) * r
        return np.log1p(s if kernel.smoothness == 1.5 else s + s**2 / 3) - s
    return -power(kernel, d) * np.log1p(r**2)


def bump(kernel, X, Y):
    return np.exp(log_bump(kernel, X, Y))


def matern(r, order):
    """2^(1 − ν)/Γ(ν) · r^ν K_ν(r); for ν = p + ½ the finite sum, whose terms are all positive."""
    r = np.asarray(r, np.float64)
    p = round(order - 0.5)
    if p + 0.5 == order:
        i = np.arange(p + 1)
        logs = special.gammaln(p + i + 1) - special.gammaln(i + 1) - special.gammaln(p - i + 1)
        logs += special.gammaln(p + 1) - special.gammaln(2 * p + 1)
        with np.errstate(divide="ignore"):
            return np.exp(special.logsumexp(logs + special.xlogy(p - i, 2 * r[..., None]), axis=-1) - r)
    out = np.ones_like(r)
    some = r > 0
    x = r[some]
    out[some] = np.exp((1 - order) * np.log(2) - special.gammaln(order) + order * np.log(x) + np.log(special.kve(order, x)) - x)
    return out


def matern_length(kernel, d):
    """The law of |x|/h for draws x from a Matérn bump: (1 + s + …) exp(−s) s^(d − 1), a mixture of gammas of shape d, d + 1, …"""
    coefficients = {1.5: [1, 1], 2.5: [1, 1, 1 / 3]}[kernel.smoothness]
    shares = np.array([c * math.gamma(d + k) for k, c in enumerate(coefficients)])
    laws = [stats.gamma(d + k, scale=1 / math.sqrt(2 * kernel.smoothness)) for k in range(len(shares))]
    return SimpleNamespace(cdf=lambda r: sum(share * law.cdf(r) for share, law in zip(shares / shares.sum(), laws, strict=True)))


def product_shape(kernel, X, Y):
    """(n, m) g(x, y) / g(0) in the kernel's space."""
    if kernel.space == "rkhs":
        return bump(kernel, X, Y)
    d = np.shape(X)[1]
    A, B = whitened(kernel, X), whitened(kernel, Y)
    if in_cityblock(kernel):
        out = np.ones((len(A), len(B)))
        for j in range(d):
            u = np.abs(A[:, j, None] - B[None, :, j])
            out *= (1 + u) * np.exp(-u)
        return out
    r = distances(A, B)
    if kernel.name == "gaussian":
        return np.exp(-(r**2) / 4)
    if kernel.name == "laplacian":
        return matern(r, d / 2 + 1)
    if kernel.name == "matern":
        return matern(math.sqrt(2 * kernel.smoothness) * r, 2 * kernel.smoothness + d / 2)
    a = power(kernel, d)
    return special.hyp2f1(a, 2 * a - d / 2, a + 0.5, -(r**2) / 4)


def product(kernel, X, Y):
    """(n, m) g(x, y), scale included."""
    return math.exp(kernel.log_energy(np.shape(X)[1])) * product_shape(kernel, X, Y)


def value_sums(kernel, X, w, Q):
    return bump(kernel, Q, X) @ np.asarray(w, np.float64)


def product_sums(kernel, X, w, Q):
    return product_shape(kernel, Q, X) @ np.asarray(w, np.float64)


def log_sums(kernel, X, w, Q):
    w = np.asarray(w, np.float64)
    logs = log_bump(kernel, Q, np.asarray(X)[w != 0])
    highest = np.max(logs, axis=1, keepdims=True)
    highest[~np.isfinite(highest)] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - highest) @ w[w != 0]) + highest[:, 0]


def gradient_sums(kernel, X, w, Q):
    """(m, d) Σ w ∇_q φ(x, q), by the formula, pair by pair."""
    X, Q = np.asarray(X, np.float64), np.asarray(Q, np.float64)
    d, h = X.shape[1], kernel.width
    inverse = np.eye(d) if kernel.covariance is None else np.linalg.inv(kernel.covariance)
    inverse = inverse if kernel.scales is None else np.diag(1 / kernel.scales**2)
    out = np.zeros((len(Q), d))
    for k, q in enumerate(Q):
        for x, weight in zip(X, w, strict=True):
            u = x - q
            if in_cityblock(kernel):
                assert kernel.covariance is None is kernel.scales
                out[k] += weight * math.exp(-np.abs(u).sum() / h) * np.sign(u) / h
                continue
            s = inverse @ u / h**2  # ∇_q of −r²/2
            r2 = float(u @ s)
            if kernel.name == "gaussian":
                slope = math.exp(-r2 / 2)
            elif kernel.name == "laplacian":
                slope = math.exp(-math.sqrt(r2)) / math.sqrt(r2) if r2 > 0 else 0.0
            elif kernel.name == "matern":
                length = math.sqrt(2 * kernel.smoothness * r2)
                slope = (3 if kernel.smoothness == 1.5 else 5 * (1 + length) / 3) * math.exp(-length)
            else:
                a = power(kernel, d)
                slope = 2 * a * (1 + r2) ** (-a - 1)
            out[k] += weight * slope * s
    return out


# -- weights and errors ---------------------------------------------------------------------------------------------------------


def free_weights(kernel, X, w, atoms):
    """The weights of the atoms that are nearest to f in norm: K α = κ."""
    return cho_solve(cho_factor(product(kernel, atoms, atoms)), product(kernel, atoms, X) @ w)


def sum_to_one_weights(kernel, X, w, atoms, mass=1.0):
    """The nearest among those whose weights add up to ``mass``, by the bordered system."""
    m = len(atoms)
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = product(kernel, atoms, atoms)
    system[m, m] = 0.0
    return np.linalg.solve(system, np.append(product(kernel, atoms, X) @ w, mass))[:m]


def sum_to_one_clipped_weights(kernel, X, w, atoms, mass=1.0):
    """α⁽²⁾ of the 2014 paper: those that sum to ``mass``, the negative ones set to 0, all rescaled to it; one by one."""
    kept = [max(weight, 0.0) for weight in sum_to_one_weights(kernel, X, w, atoms, mass)]
    return np.array([weight * mass / sum(kept) for weight in kept])


def inner(kernel, X, w, Y, v):
    return float(np.asarray(w) @ product(kernel, X, Y) @ np.asarray(v))


def squared_norm(kernel, X, w):
    return inner(kernel, X, w, X, w)


def squared_distance(kernel, X, w, Y, v):
    """‖Σ w φ(·, x) − Σ v φ(·, y)‖² as one quadratic form of the joint residual."""
    points = np.concatenate([np.asarray(X, np.float64), np.asarray(Y, np.float64)])
    return squared_norm(kernel, points, np.concatenate([w, -np.asarray(v)]))


def waves(X, w, frequencies):
    """Σ w exp(i ω·x) for each frequency."""
    out = np.zeros(len(frequencies), np.complex128)
    for x, weight in zip(X, w, strict=True):
        out += weight * np.exp(1j * (frequencies @ x))
    return out
