"""Slow oracles for the selectors: each algorithm as it is written down, over dense matrices, all computed anew at every step.

K is the Gram matrix of the points in units where every bump has norm 1, `reference.product_shape`; f = Σ wᵢ φ(·, xᵢ).
"""

import itertools
import math

import numpy as np

import reference


def gram(mean):
    return reference.product_shape(mean.kernel, mean.atoms, mean.atoms)


# -- herding --------------------------------------------------------------------------------------------------------------------


def herding(K, w, size, line_search, most_repeats):
    """Frank–Wolfe towards f in the hull of ±Σ|w|·φ(·, x).

    Returns the points in the order in which they are met, their weights, and ‖f − f_t‖² after each step. After ``most_repeats``
    steps without a new point the next one is new.
    """
    n, total = len(K), float(np.abs(w).sum())
    corners = total * np.diag(np.sign(w))  # row i: the weights of the i-th corner of the hull
    now, order, squares, repeats, step = np.zeros(n), [], [], 0, 0
    while len(order) < size:
        slope = [float(corner @ K @ (w - now)) for corner in corners]
        best = int(np.argmax(slope))
        if best in order and repeats == most_repeats:
            best = max((i for i in range(n) if i not in order), key=lambda i: (slope[i], -i))
        ahead = corners[best] - now
        if not order:
            rate = 1.0
        elif line_search:
            length = float(ahead @ K @ ahead)
            rate = min(max(float(ahead @ K @ (w - now)) / length, 0.0), 1.0) if length > 0 else 0.0
        else:
            rate = 1.0 / (step + 1)
        now = now + rate * ahead
        repeats = repeats + 1 if best in order else 0
        if best not in order:
            order.append(best)
        squares.append(float((w - now) @ K @ (w - now)))
        step += 1
    return order, now[order], squares


# -- greedy ---------------------------------------------------------------------------------------------------------------------


def explained(K, values, rows):
    """‖Pf‖² for the projection onto the span of some bumps, by least squares."""
    rows = list(rows)
    solution = np.linalg.lstsq(K[np.ix_(rows, rows)], values[rows], rcond=1e-12)[0]
    return float(solution @ values[rows])


def greedy(K, values, size, redundant=1e-9):
    """At every step each bump outside the span is tried, with all weights refitted, and the best one is taken."""
    order = []
    while len(order) < size:
        outside = [i for i in range(len(K)) if room(K, order, i) > redundant]
        if not outside:
            break
        order.append(max(outside, key=lambda i: (round(explained(K, values, [*order, i]), 13), -i)))
    return order


def room(K, rows, i):
    """The squared distance of a bump to the span of others."""
    return K[i, i] - explained(K, K[i], rows) if len(rows) else float(K[i, i])


# -- randomly pivoted Cholesky --------------------------------------------------------------------------------------------------


def pivot_chances(K, w, length):
    """{sequence: chance} of the first pivots, each drawn by |w| times its squared distance to the span of those before."""
    chances = {}
    for rows in itertools.permutations(range(len(K)), length):
        chance = 1.0
        for k, row in enumerate(rows):
            left = np.array([abs(w[i]) * max(room(K, rows[:k], i), 0.0) if i not in rows[:k] else 0.0 for i in range(len(K))])
            chance *= left[row] / left.sum()
        chances[rows] = chance
    return chances


# -- thinning -------------------------------------------------------------------------------------------------------------------


def halve(K, luck, failure):
    """Kernel halving (Dwivedi & Mackey 2021, Algorithm 1a): of each pair of points the one that a self-balancing walk keeps."""
    pairs = len(K) // 2
    signs, kept, spread = [], [], 0.0
    confidence = math.sqrt(2 * math.log(2 * pairs / failure))
    for i in range(pairs):
        x, other = 2 * i, 2 * i + 1
        square = K[x, x] + K[other, other] - 2 * K[x, other]
        along = 0.0  # ⟨ψ, k(·, x) − k(·, x′)⟩
        for j in range(i):
            along += signs[j] * ((K[2 * j, x] - K[2 * j, other]) - (K[2 * j + 1, x] - K[2 * j + 1, other]))
        if square <= 0:
            signs.append(1 if luck[i] < 0.5 else -1)
        else:
            threshold = max(math.sqrt(square) * math.sqrt(spread) * confidence, square)
            signs.append(1 if luck[i] < (1 - along / threshold) / 2 else -1)
            spread += max(0.0, square * (1 + (square - 2 * threshold) * spread / threshold**2))
        kept.append(x if signs[-1] > 0 else other)
    return kept


def squared_mmd(K, pool, chosen):
    """‖mean of the pool − mean of the chosen‖², both lists of rows, repetitions counted."""
    w = np.bincount(pool, minlength=len(K)) / len(pool) - np.bincount(chosen, minlength=len(K)) / len(chosen)
    return float(w @ K @ w)


def swap(K, pool, chosen):
    """Each chosen row in turn becomes the one that brings the two means closest, none more often than the pool has it."""
    pool, chosen = list(pool), list(chosen)
    for k in range(len(chosen)):
        others = chosen[:k] + chosen[k + 1 :]
        free = [row for row in sorted(set(pool)) if others.count(row) < pool.count(row)]
        chosen[k] = min(free, key=lambda row: (round(squared_mmd(K, pool, [*others, row]), 14), row))
    return chosen


# -- shadows --------------------------------------------------------------------------------------------------------------------


def shadows(D, w, radius):
    """Kingravi, Vela & Gray 2013, Algorithm 2: the centres in the order of the rows, and the weight that each covers."""
    waiting = [i for i in range(len(D)) if w[i] != 0]
    centres, masses = [], []
    while waiting:
        centre = waiting[0]
        covered = [i for i in waiting if i == centre or D[i, centre] < radius]
        centres.append(centre)
        masses.append(sum(w[i] for i in covered))
        waiting = [i for i in waiting if i not in covered]
    return centres, masses


# -- column norms ---------------------------------------------------------------------------------------------------------------


def column_norms(K, w):
    """|wⱼ| Σₖ |wₖ| Kₖⱼ²."""
    n = len(K)
    return np.array([abs(w[j]) * sum(abs(w[k]) * K[k, j] ** 2 for k in range(n)) for j in range(n)])


def kcenter_with_plateau(kernel, X, first, epsilon, most):
    """Rows of the 2017 paper's k-centre algorithm with its ε rule (Section V-B), a full solve at every size."""
    rows = [first]
    errors = []
    while True:
        atoms = X[rows]
        kappa = reference.product(kernel, atoms, X).mean(axis=1)
        errors.append(-float(kappa @ np.linalg.solve(reference.product(kernel, atoms, atoms), kappa)))
        if len(rows) > 1 and abs(errors[-2] - errors[-1]) <= epsilon * abs(errors[0] - errors[-1]):
            return rows
        if len(rows) == most:
            return rows
        rows.append(max(range(len(X)), key=lambda j: min(float(np.linalg.norm(X[i] - X[j])) for i in rows)))
