"""Algorithm 1 of Zhang & Kwok (2010) line by line: one group, one component and one update at a time, matrices inverted.

Line numbers are the paper's. Line 14 follows (20), whose brackets differ from the printed line. Covariances are (n, d, d). The
shape of the result restricts lines 5 and 14: "diag" keeps the diagonal, "spherical" a multiple of the identity. With
``closed_form`` line 14 is (29), entry by entry.
"""

import numpy as np

EPSILON_1 = EPSILON_2 = 0.01


def simplify_plainly(weights, means, covariances, labels, shape="full", closed_form=False):
    """Weights, means, covariances (m, d, d), the labels they were fitted to, and e of every round."""
    labels, previous, distortions = np.array(labels), 1e10, []
    m, d = labels.max() + 1, means.shape[1]
    while True:  # line 1
        fitted = [_local_fit(weights, means, covariances, np.flatnonzero(labels == i), shape, closed_form) for i in range(m)]
        next_labels, e = np.empty_like(labels), 0.0
        for j in range(len(weights)):  # lines 21–27
            distances = []
            for i, (w, t, H) in enumerate(fitted):
                ratio = w / weights[labels == i].sum()
                own = np.linalg.det(2 * covariances[j]) ** -0.5
                its = np.linalg.det(2 * H) ** -0.5
                both = _k(means[j] - t, covariances[j] + H) * np.linalg.det(covariances[j] + H) ** -0.5
                distances.append((2 * np.pi) ** (-d / 2) * (own + ratio**2 * its - 2 * ratio * both))
            next_labels[j] = int(np.argmin(distances))
            e += min(distances)
        assert len(np.unique(next_labels)) == m, "a group became empty, which Algorithm 1 does not provide for"
        distortions.append(e)
        if abs(e - previous) <= 0.001 * abs(e) or np.array_equal(labels, next_labels):  # line 28; equal groups repeat the round
            return (*(np.array(each) for each in zip(*fitted, strict=True)), labels, distortions)
        labels, previous = next_labels, e


def _k(v, S):
    return np.exp(-0.5 * v @ np.linalg.inv(S) @ v)


def _local_fit(weights, means, covariances, rows, shape, closed_form):
    """Lines 4–18 for one group: its weight, centre and covariance."""
    a, x, C = weights[rows], means[rows], covariances[rows]
    t = sum(a[j] * x[j] for j in range(len(rows))) / a.sum()
    H = sum(a[j] * (C[j] + np.outer(t - x[j], t - x[j])) for j in range(len(rows))) / a.sum()
    H = _restricted(H, shape)
    while True:
        p = 0
        while True:  # lines 8–11
            terms = [_terms(a[j], x[j], C[j], t, H) for j in range(len(rows))]
            M = sum(share * inverse for share, inverse in terms)
            moved = np.linalg.inv(M) @ sum(share * inverse @ x[j] for j, (share, inverse) in enumerate(terms))
            p, change, t = p + 1, np.linalg.norm(moved - t), moved
            if change <= EPSILON_1:
                break
        q = 0
        while True:  # lines 13–16
            changed = _closed(a, x, C[0], t, H, shape) if closed_form else _line_14(a, x, C, t, H, shape)
            q, change, H = q + 1, np.linalg.norm(changed - H), changed
            if change <= EPSILON_2:
                break
        if p <= 1 and q <= 1:  # line 18
            break
    total = sum(_terms(a[j], x[j], C[j], t, H)[0] for j in range(len(rows)))
    return np.linalg.det(2 * H) ** 0.5 * total, t, H  # line 17


def _terms(a, x, C, t, H):
    """αk(r)|Hⱼ + H|^(−1/2) and (Hⱼ + H)⁻¹; k′ = −k/2 cancels from line 9."""
    return a * _k(x - t, C + H) * np.linalg.det(C + H) ** -0.5, np.linalg.inv(C + H)


def _line_14(a, x, C, t, H, shape):
    """(20), in the shape of the result: diagonals of every matrix product, or traces."""
    P, right = np.zeros_like(H), np.zeros_like(H)
    for j in range(len(a)):
        share, inverse = _terms(a[j], x[j], C[j], t, H)
        v = x[j] - t
        P += share * inverse
        right += share * inverse @ (C[j] + 2 * np.outer(v, v) @ inverse @ H)
    if shape == "full":
        found = np.linalg.inv(P) @ right
        return (found + found.T) / 2
    if shape == "diag":
        return np.diag(np.diag(right) / np.diag(P))
    return np.trace(right) / np.trace(P) * np.eye(len(H))


def _closed(a, x, C, t, H, shape):
    """(29) with the weighted second moment V about t, entry by entry or of its mean."""
    shares = np.array([_terms(a[j], x[j], C, t, H)[0] for j in range(len(a))])
    V = (shares / shares.sum()) @ np.square(x - t)
    variances = np.diag(C)
    if shape == "spherical":
        V, variances = np.full_like(V, V.mean()), np.full_like(V, variances.mean())
    return np.diag(V + np.sqrt(V**2 + variances**2))


def _restricted(H, shape):
    if shape == "full":
        return H
    return np.diag(np.diag(H)) if shape == "diag" else np.trace(H) / len(H) * np.eye(len(H))
