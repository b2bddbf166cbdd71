"""The compiled loops of Gaussian components with separate covariances: a tile of points or components, stored by columns.

Points x against a component (t, S), S = LLᵀ: z = L⁻¹(x − t) by forward substitution, one vector operation over the tile for each
entry of L, and exp(−½|z|²). Components (x, C) against a component (t, A): S = A + C differs from pair to pair. The Cholesky
factorisation itself is therefore vectorised over all pairs of a tile. O(d²) and O(d³/3) a pair; O(d) for diagonal covariances.

Values are relative to the peak of the component in the tile: sqrt(|C|/|S|)·exp(−½|z|²) ≤ 1. Nothing overflows, even for tiny
components in many dimensions. Diagonal factors are one row (1, d), full factors are (d, d). Both hold reciprocals on the diagonal.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.compiled import compiled

TILE = 128


@njit(inline="always")
def _whiten(X, start, stop, centre, L, z, exponent):
    """z = L⁻¹(x − centre) for a tile of columns of X, and exponent = ½|z|²."""
    d = X.shape[0]
    count = stop - start
    full = len(L) > 1
    for j in range(count):
        exponent[j] = 0.0
    for r in range(d):
        x = X[r, start:stop]
        values = z[r, :count]
        middle = centre[r]
        for j in range(len(values)):
            values[j] = x[j] - middle
        if full:
            for c in range(r):
                before = z[c, :count]
                factor = L[r, c]
                for j in range(len(values)):
                    values[j] -= factor * before[j]
        scale = L[r, r] if full else L[0, r]
        for j in range(len(values)):
            values[j] *= scale
            exponent[j] += 0.5 * values[j] * values[j]


@compiled(fastmath=FAST)
def point_moments(X, weights, first, last, centres, L, order, out):
    """out[i] += Σⱼ a, and with order 2 Σⱼ a·z and Σⱼ a·zzᵀ (lower rows, or the diagonal); a = weight·exp(−½|z|²), z = L⁻¹(x − t).

    Component i uses the columns first[i] to last[i] of X (d, n).
    """
    d = X.shape[0]
    z = np.empty((d, TILE))
    a = np.empty(TILE)
    for i in range(len(centres)):
        full = len(L[i]) > 1
        for start in range(first[i], last[i], TILE):
            stop = min(last[i], start + TILE)
            count = stop - start
            _whiten(X, start, stop, centres[i], L[i], z, a)
            w = weights[start:stop]
            total = 0.0
            for j in range(len(w)):
                a[j] = w[j] * exp_minus(a[j])
                total += a[j]
            out[i, 0] += total
            if order == 0:
                continue
            k = 1 + d
            for r in range(d):
                zr = z[r, :count]
                total = 0.0
                for j in range(len(zr)):
                    total += a[j] * zr[j]
                out[i, 1 + r] += total
                for c in range(0 if full else r, r + 1):
                    zc = z[c, :count]
                    total = 0.0
                    for j in range(len(zr)):
                        total += a[j] * zr[j] * zc[j]
                    out[i, k] += total
                    k += 1


@njit(inline="always")
def _pair_diagonal(X, C, start, stop, centre, A, u, s, exponent):
    """For diagonal S = A + C: u = S⁻¹(x − t), s = 1/S, the exponent, and sqrt(|C|/|S|) in the last row of u."""
    d = X.shape[0]
    count = stop - start
    ratio = u[d, :count]
    for r in range(d):
        x = X[r, start:stop]
        c = C[r, start:stop]
        ur = u[r, :count]
        sr = s[r, :count]
        for j in range(len(x)):
            sr[j] = 1.0 / (c[j] + A[r])
            difference = x[j] - centre[r]
            ur[j] = difference * sr[j]
            exponent[j] += 0.5 * difference * ur[j]
            ratio[j] *= c[j] * sr[j]
    for j in range(count):
        ratio[j] = np.sqrt(ratio[j])


@njit(inline="always")
def _pair_full(X, C, pivots, start, stop, centre, A, u, s, exponent):
    """The same for full S. C is in lower rows.

    s becomes the factor L of S in lower rows, with reciprocal diagonal. u becomes L⁻¹(x − t), completed by `_back`.
    """
    d = X.shape[0]
    count = stop - start
    ratio = u[d, :count]
    row = 0
    for r in range(d):
        x = X[r, start:stop]
        ur = u[r, :count]
        middle = centre[r]
        for j in range(len(x)):
            ur[j] = x[j] - middle
        other = 0
        for c in range(r + 1):
            src = s[row + c, :count]
            cov = C[row + c, start:stop]
            add = A[row + c]
            for j in range(len(src)):
                src[j] = cov[j] + add
            for k in range(c):
                left = s[row + k, :count]
                right = s[other + k, :count]
                for j in range(len(src)):
                    src[j] -= left[j] * right[j]
            if c < r:
                inverse = s[other + c, :count]
                uc = u[c, :count]
                for j in range(len(src)):
                    src[j] *= inverse[j]
                    ur[j] -= src[j] * uc[j]
            else:
                pivot = pivots[r, start:stop]
                for j in range(len(src)):
                    src[j] = 1.0 / np.sqrt(src[j])
                    ur[j] *= src[j]
                    ratio[j] *= pivot[j] * src[j]
                    exponent[j] += 0.5 * ur[j] * ur[j]
            other += c + 1
        row += r + 1


@njit(inline="always")
def _pair(X, C, pivots, start, stop, centre, A, u, s, exponent):
    """Either kind, for a tile of components (x, C) against one component (t, A)."""
    d = X.shape[0]
    ratio = u[d, : stop - start]
    for j in range(len(ratio)):
        exponent[j] = 0.0
        ratio[j] = 1.0
    if C.shape[0] > d:
        _pair_full(X, C, pivots, start, stop, centre, A, u, s, exponent)
    else:
        _pair_diagonal(X, C, start, stop, centre, A, u, s, exponent)


@njit(inline="always")
def _back(d, count, s, u):
    """u = L⁻ᵀu, from the last row to the first."""
    for r in range(d - 1, -1, -1):
        ur = u[r, :count]
        for k in range(r + 1, d):
            lkr = s[k * (k + 1) // 2 + r, :count]
            uk = u[k, :count]
            for j in range(len(ur)):
                ur[j] -= lkr[j] * uk[j]
        diagonal = s[r * (r + 1) // 2 + r, :count]
        for j in range(len(ur)):
            ur[j] *= diagonal[j]


@njit(inline="always")
def _invert(d, count, s):
    """Replace L by L⁻¹ in lower rows; the diagonal keeps its reciprocals."""
    for c in range(d):
        for r in range(c + 1, d):
            row = r * (r + 1) // 2
            target = s[row + c, :count]
            first = s[c * (c + 1) // 2 + c, :count]
            for j in range(len(target)):
                target[j] *= first[j]
            for k in range(c + 1, r):
                lrk = s[row + k, :count]
                wkc = s[k * (k + 1) // 2 + c, :count]
                for j in range(len(target)):
                    target[j] += lrk[j] * wkc[j]
            diagonal = s[row + r, :count]
            for j in range(len(target)):
                target[j] *= -diagonal[j]


@compiled(fastmath=FAST, error_model="numpy")
def pair_moments(X, C, pivots, weights, first, last, centres, A, order, out):
    """out[i] += Σⱼ a, and with order 2 Σⱼ a·u, Σⱼ a·S⁻¹ and Σⱼ a·uuᵀ (lower rows, or the diagonals), u = S⁻¹(x − t), S = A + C.

    X is (d, n), C (d or d(d+1)/2, n) and A (m, d or d(d+1)/2). ``pivots`` (d, n) is the diagonal of the factor of C, for full
    covariances.
    """
    d = X.shape[0]
    entries = C.shape[0]
    full = entries > d
    u = np.empty((d + 1, TILE))
    s = np.empty((entries, TILE))
    a = np.empty(TILE)
    for i in range(len(centres)):
        for start in range(first[i], last[i], TILE):
            stop = min(last[i], start + TILE)
            count = stop - start
            _pair(X, C, pivots, start, stop, centres[i], A[i], u, s, a)
            w = weights[start:stop]
            ratio = u[d, :count]
            total = 0.0
            for j in range(len(w)):
                a[j] = w[j] * ratio[j] * exp_minus(a[j])
                total += a[j]
            out[i, 0] += total
            if order == 0:
                continue
            if full:
                _back(d, count, s, u)
                _invert(d, count, s)
            row = 0
            for r in range(d):
                ur = u[r, :count]
                total = 0.0
                for j in range(len(ur)):
                    total += a[j] * ur[j]
                out[i, 1 + r] += total
                if not full:
                    sr = s[r, :count]
                    square = 0.0
                    total = 0.0
                    for j in range(len(ur)):
                        total += a[j] * sr[j]
                        square += a[j] * ur[j] * ur[j]
                    out[i, 1 + d + r] += total
                    out[i, 1 + 2 * d + r] += square
                    continue
                for c in range(r + 1):
                    uc = u[c, :count]
                    square = 0.0
                    for j in range(len(ur)):
                        square += a[j] * ur[j] * uc[j]
                    out[i, 1 + d + entries + row + c] += square
                    total = 0.0
                    for k in range(r, d):  # (S⁻¹)_rc = Σ_k (L⁻¹)_kr (L⁻¹)_kc
                        left = s[k * (k + 1) // 2 + r, :count]
                        right = s[k * (k + 1) // 2 + c, :count]
                        for j in range(len(ur)):
                            total += a[j] * left[j] * right[j]
                    out[i, 1 + d + row + c] += total
                row += r + 1


@compiled(fastmath=FAST, error_model="numpy")
def pair_products(X, C, pivots, centres, A, out):
    """out[i, j] = sqrt(|C|/|S|)·exp(−½(x − t)ᵀS⁻¹(x − t)), S = A + C."""
    d, n = X.shape
    u = np.empty((d + 1, TILE))
    s = np.empty((C.shape[0], TILE))
    a = np.empty(TILE)
    for i in range(len(centres)):
        for start in range(0, n, TILE):
            stop = min(n, start + TILE)
            _pair(X, C, pivots, start, stop, centres[i], A[i], u, s, a)
            values = out[i, start:stop]
            ratio = u[d, : stop - start]
            for j in range(len(values)):
                values[j] = ratio[j] * exp_minus(a[j])


@compiled(fastmath=FAST)
def closest_of_points(X, weights, start, stop, centres, L, base, gain, best, which, sums):
    """For each column the component of least base − gain·exp(−½|z|²); sums[i] += Σⱼ weight·exp(−½|z|²)."""
    z = np.empty((X.shape[0], TILE))
    a = np.empty(TILE)
    for low in range(start, stop, TILE):
        high = min(stop, low + TILE)
        w = weights[low:high]
        least = best[low - start : high - start]
        index = which[low - start : high - start]
        for i in range(len(centres)):
            _whiten(X, low, high, centres[i], L[i], z, a)
            total = 0.0
            for j in range(len(w)):
                a[j] = exp_minus(a[j])
                total += w[j] * a[j]
            sums[i] += total
            _compare(i, base[i], gain[i], a, least, index)


@compiled(fastmath=FAST, error_model="numpy")
def closest_of_pairs(X, C, pivots, peaks, weights, start, stop, centres, A, base, gain, best, which, sums):
    """The same for components (x, C): base − gain·peak·a, and sums[i] += Σⱼ weight·a."""
    d = X.shape[0]
    u = np.empty((d + 1, TILE))
    s = np.empty((C.shape[0], TILE))
    a = np.empty(TILE)
    for low in range(start, stop, TILE):
        high = min(stop, low + TILE)
        w = weights[low:high]
        peak = peaks[low:high]
        least = best[low - start : high - start]
        index = which[low - start : high - start]
        for i in range(len(centres)):
            _pair(X, C, pivots, low, high, centres[i], A[i], u, s, a)
            ratio = u[d, : high - low]
            total = 0.0
            for j in range(len(w)):
                a[j] = ratio[j] * exp_minus(a[j])
                total += w[j] * a[j]
                a[j] *= peak[j]
            sums[i] += total
            _compare(i, base[i], gain[i], a, least, index)


@njit(inline="always")
def _compare(i, base, gain, a, least, index):
    for j in range(len(least)):
        value = base - gain * a[j]
        closer = value < least[j]
        least[j] = value if closer else least[j]
        index[j] = i if closer else index[j]


@compiled(fastmath=FAST)
def values_at(X, start, stop, centres, L, weights, order, out):
    """out[:, j] += Σᵢ a; with order 1 or 2 also Σᵢ a·P(t − x), with order 2 also Σᵢ a·P in lower rows (or the diagonal); P = S⁻¹.

    a = weight·exp(−½|L⁻¹(x − t)|²), for columns start to stop of X.
    """
    d = X.shape[0]
    z = np.empty((d, TILE))
    a = np.empty(TILE)
    size = d if order == 2 and L.shape[1] > 1 else 1  # diagonal covariances need no matrix
    P = np.empty((size, size))
    for i in range(len(centres)):
        full = len(L[i]) > 1
        if order == 2 and full:
            _precision(L[i], P)
        for low in range(start, stop, TILE):
            high = min(stop, low + TILE)
            count = high - low
            _whiten(X, low, high, centres[i], L[i], z, a)
            value = out[0, low - start : high - start]
            for j in range(len(value)):
                a[j] = weights[i] * exp_minus(a[j])
                value[j] += a[j]
            if order == 0:
                continue
            for r in range(d - 1, -1, -1):  # z becomes P(x − t) from the last row to the first
                zr = z[r, :count]
                if full:
                    for k in range(r + 1, d):
                        zk = z[k, :count]
                        factor = L[i, k, r]
                        for j in range(len(zr)):
                            zr[j] -= factor * zk[j]
                scale = L[i, r, r] if full else L[i, 0, r]
                pull = out[1 + r, low - start : high - start]
                for j in range(len(zr)):
                    zr[j] *= scale
                    pull[j] -= a[j] * zr[j]
            if order == 1:
                continue
            row = 1 + d
            for r in range(d):
                for c in range(0 if full else r, r + 1):
                    factor = P[r, c] if full else L[i, 0, r] ** 2
                    stiff = out[row, low - start : high - start]
                    for j in range(len(stiff)):
                        stiff[j] += factor * a[j]
                    row += 1


@njit(inline="always")
def _precision(L, P):
    """P = (LLᵀ)⁻¹ from one factor with a reciprocal diagonal."""
    d = len(L)
    for c in range(d):  # columns of L⁻¹, in the lower half of P
        P[c, c] = L[c, c]
        for r in range(c + 1, d):
            total = 0.0
            for k in range(c, r):
                total -= L[r, k] * P[k, c]
            P[r, c] = total * L[r, r]
    for r in range(d):
        for c in range(r + 1):
            total = 0.0
            for k in range(r, d):
                total += P[k, r] * P[k, c]
            P[r, c] = total  # overwrites row r left of its diagonal, which no later entry needs


@compiled(fastmath=FAST)
def log_sums_at(X, start, stop, centres, L, logs, weights, out):
    """out[:, j] = (least exponent, Σᵢ weight·exp(least − exponent)), exponent = ½|z|² − log. These sums cannot underflow."""
    z = np.empty((X.shape[0], TILE))
    a = np.empty(TILE)
    for low in range(start, stop, TILE):
        high = min(stop, low + TILE)
        least = out[0, low - start : high - start]
        total = out[1, low - start : high - start]
        for i in range(len(centres)):
            _whiten(X, low, high, centres[i], L[i], z, a)
            for j in range(len(least)):
                exponent = a[j] - logs[i]
                if exponent < least[j]:
                    total[j] = total[j] * np.exp(exponent - least[j]) + weights[i]
                    least[j] = exponent
                else:
                    total[j] += weights[i] * exp_minus(exponent - least[j])
