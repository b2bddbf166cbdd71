"""Spectral methods by their definitions: all rows, dense matrices, numpy's own decompositions."""

import numpy as np
from scipy.linalg import eigh


def gaussian(X, Y, h):
    return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2) / (2 * h**2))


def kernel_pca(K, K_query, count, centre):
    """Eigenvalues of the (n, n) matrix K and the coordinates of queries, K_query their (q, n) kernel values."""
    if centre:
        row = K.mean(axis=0)
        K_query = K_query - row - K_query.mean(axis=1, keepdims=True) + K.mean()
        K = K - row - row[:, None] + K.mean()
    values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    return values, K_query @ vectors / np.sqrt(values)


def weighted_nystroem_of_all_rows(X, atoms, counts, queries, h, count):
    """Eigenvalues, eigenvectors of the rows and features of queries by the density-weighted Nyström method that keeps all rows.

    The eigenproblem of the atoms in its unsymmetric form, K_mm W a = λ a; dense (n, m) and (q, n) matrices.
    """
    values, at_atoms = np.linalg.eig(gaussian(atoms, atoms, h) * counts)
    order = np.argsort(-values.real)[:count]
    values, at_atoms = values.real[order], at_atoms.real[:, order]
    at_rows = (gaussian(X, atoms, h) * counts) @ at_atoms / values
    at_rows /= np.sqrt((at_rows**2).sum(axis=0))
    return values, at_rows, gaussian(queries, X, h) @ at_rows / np.sqrt(values)


def up_to_sign(one, other):
    """``one`` with the sign of each column that brings it nearest to ``other``."""
    return one * np.where((one * other).sum(axis=0) < 0, -1.0, 1.0)


def features(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def operator(F, shares, centre):
    """Σ p x⊗x of the rows of F, centred on their mean or not."""
    F = F - shares @ F if centre else F
    return (F * shares[:, None]).T @ F


def projection(A, count):
    """On the ``count`` leading eigenvectors of a symmetric matrix."""
    vectors = np.linalg.eigh(A)[1][:, ::-1][:, :count]
    return vectors @ vectors.T


def generalised(K, alpha, count):
    """The largest λ of K^α f = λ D f and their f, with Σ π f² = 1, π ∝ D; K normalised by its degrees to the power alpha."""
    q = K.sum(axis=1)
    A = K / np.outer(q, q) ** alpha
    D = A.sum(axis=1)
    values, f = eigh(A, np.diag(D))
    return values[::-1][:count], f[:, ::-1][:, :count] * np.sqrt(D.sum())


def pivots(rows):
    """As many rows as there are columns, always the one that is farthest from the span of those before."""
    left, chosen = rows.copy(), []
    for _ in range(rows.shape[1]):
        chosen.append(int(np.argmax((left**2).sum(axis=1))))
        unit = left[chosen[-1]] / np.linalg.norm(left[chosen[-1]])
        left = left - np.outer(left @ unit, unit)
    return chosen


def held_by_indicators(rows, masses, angles=20_000):
    """The most of the mass that two indicators hold of unit rows of two columns, over all rotations and reflections."""
    best = -np.inf
    for t in np.linspace(0, 2 * np.pi, angles, endpoint=False):
        for side in (1.0, -1.0):
            turn = np.array([[np.cos(t), -side * np.sin(t)], [np.sin(t), side * np.cos(t)]])
            best = max(best, float(masses @ (rows @ turn).max(axis=1)))
    return best
