"""Dense oracles for kernel means: every pair written out, constants and products by quadrature.

A bump exp(−r), a Matérn or (1 + r²)^−a is a mixture of Gaussians exp(−s r²) over s. In L2 two Gaussians have the product
(π/(s + t))^(d/2) exp(−r² st/(s + t)), so that the product of two bumps is a double sum over the mixture's nodes. The mixtures
are smooth in log s and decay at both ends: the trapezoidal rule there is exact to rounding.
"""

from functools import cache

import numpy as np
from scipy import integrate, special

from reduset import Gaussian, Laplacian, Matern, Student


def unwhitening(kernel, d):
    """(d, d) the map from coordinates in which the kernel is round to the data's."""
    if kernel.scales is not None:
        return np.diag(kernel.scales)
    return np.eye(d) if kernel.covariance is None else np.linalg.cholesky(kernel.covariance)


def distances(X, Y, kernel):
    """(n, m) distances over the bandwidth, one pair at a time."""
    unwhiten = unwhitening(kernel, X.shape[1])
    out = np.empty((len(X), len(Y)))
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            gap = np.linalg.solve(unwhiten, x - y) / kernel.bandwidth
            out[i, j] = np.abs(gap).sum() if getattr(kernel, "metric", "") == "cityblock" else np.sqrt(gap @ gap)
    return out


def log_unit_bump(r, kernel, d):
    """log φ of the bump of height 1 at distance r in bandwidths."""
    if isinstance(kernel, Gaussian):
        return -(r**2) / 2
    if isinstance(kernel, Laplacian):
        return -r
    if isinstance(kernel, Matern):
        s = np.sqrt(2 * kernel.smoothness) * r
        return np.log({1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[kernel.smoothness]) - s
    assert isinstance(kernel, Student)
    return -power(kernel, d) * np.log1p(r**2)


def power(kernel, d):
    return (d + 1) / 2 if kernel.exponent is None else kernel.exponent


def log_volume(kernel, d):
    return d * np.log(kernel.bandwidth) + np.log(np.linalg.det(unwhitening(kernel, d)))


def log_density_constant(kernel, d):
    """log of what makes the bump integrate to 1, by integrating it over shells."""
    if getattr(kernel, "metric", "") == "cityblock":
        unit = integrate.quad(lambda r: 2 * np.exp(-r), 0, np.inf)[0] ** d
    else:
        sphere = 2 * np.pi ** (d / 2) / special.gamma(d / 2)
        unit = sphere * integrate.quad(lambda r: r ** (d - 1) * np.exp(log_unit_bump(r, kernel, d)), 0, np.inf, epsabs=1e-13)[0]
    return -np.log(unit) - log_volume(kernel, d)


def log_peak(kernel, d):
    return log_density_constant(kernel, d) if kernel.normalized else 0.0


def values(X, Y, kernel):
    """(n, m) matrix of φ."""
    d = X.shape[1]
    return np.exp(log_unit_bump(distances(X, Y, kernel), kernel, d) + log_peak(kernel, d))


def mixture(kernel, d):
    """Nodes s and log-shares of the Gaussians exp(−s r²) whose mixture is the bump."""
    step = 0.1
    x = np.arange(-60.0, 90.0, step)
    if isinstance(kernel, Laplacian):
        logs = -x / 2 - np.exp(-x) / 4 - np.log(2 * np.sqrt(np.pi))
    elif isinstance(kernel, Matern):  # z^ν K_ν(z) is the average of exp(−z²/4G) over a gamma variable G of shape ν
        gamma = kernel.smoothness / 2 * np.exp(-x)
        logs = kernel.smoothness * np.log(gamma) - gamma - special.gammaln(kernel.smoothness)
    else:
        a = power(kernel, d)
        logs = a * x - np.exp(x) - special.gammaln(a)
    keep = logs > -60.0
    return np.exp(x[keep]), logs[keep] + np.log(step)


def products(X, Y, kernel):
    """(n, m) matrix of inner products of the bumps, in the kernel's space."""
    if kernel.space == "rkhs":
        return values(X, Y, kernel)
    d = X.shape[1]
    scale = np.exp(2 * log_peak(kernel, d) + log_volume(kernel, d))
    if getattr(kernel, "metric", "") == "cityblock":
        return scale * cityblock_products(X, Y, kernel)
    r = distances(X, Y, kernel)
    if isinstance(kernel, Gaussian):
        return scale * np.pi ** (d / 2) * np.exp(-(r**2) / 4)
    s, logs = mixture(kernel, d)
    total = s[:, None] + s[None, :]
    rate = s[:, None] * s[None, :] / total
    share = np.exp(logs[:, None] + logs[None, :] + d / 2 * np.log(np.pi / total))
    different, places = np.unique(r, return_inverse=True)  # of two pairs that mirror each other, one
    return scale * np.array([np.sum(share * np.exp(-rate * one**2)) for one in different])[places].reshape(r.shape)


def cityblock_products(X, Y, kernel):
    """Π ∫ exp(−|u|) exp(−|u − gapⱼ|) du, coordinate by coordinate."""
    unwhiten = unwhitening(kernel, X.shape[1])
    out = np.ones((len(X), len(Y)))
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            for gap in np.abs(np.linalg.solve(unwhiten, x - y) / kernel.bandwidth):
                out[i, j] *= overlap_on_the_line(float(gap))
    return out


@cache
def overlap_on_the_line(gap):
    between = integrate.quad(lambda u: np.exp(-u - (gap - u)), 0, gap)[0]
    outside = integrate.quad(lambda u: np.exp(-u - (gap + u)), 0, np.inf)[0]
    return between + 2 * outside


def evaluate(mean, Q):
    return values(np.asarray(Q, float), np.asarray(mean.atoms, float), mean.kernel) @ mean.weights


def log_density(mean, Q):
    d = mean.dimension
    logs = log_unit_bump(distances(np.asarray(Q, float), mean.atoms, mean.kernel), mean.kernel, d)
    return special.logsumexp(logs, b=mean.weights, axis=1) + log_density_constant(mean.kernel, d)


def gradient(mean, Q, step=1e-5):
    """Central differences, one coordinate at a time."""
    out = np.empty(Q.shape)
    for j in range(Q.shape[1]):
        shift = np.zeros(Q.shape[1])
        shift[j] = step
        out[:, j] = (evaluate(mean, Q + shift) - evaluate(mean, Q - shift)) / (2 * step)
    return out


def inner(f, g):
    return float(f.weights @ products(f.atoms, g.atoms, f.kernel) @ g.weights)


def relative_error(full, small):
    """‖f − f_m‖ / ‖f‖ from the full matrices."""
    whole = inner(full, full)
    square = whole - 2 * inner(full, small) + inner(small, small)
    return float(np.sqrt(max(square, 0.0) / whole))
