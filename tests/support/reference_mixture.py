"""Slow oracles for mixtures: every pair written out with its own covariance, densities from SciPy, integrals by quadrature."""

import numpy as np
from scipy import stats

from reduset import Mixture

SHAPES = ("spherical", "diag", "full")


def matrices(covariances, d):
    """(m, d, d), one matrix at a time."""
    return [np.eye(d) * value if np.ndim(value) == 0 else np.diag(value) if np.ndim(value) == 1 else value for value in covariances]


def covariances_of(rng, count, d, shape, shared=False, widths=(0.3, 2.0)):
    """Random covariances of a shape; one for all where they are shared."""
    many = 1 if shared else count
    if shape == "spherical":
        found = rng.uniform(*widths, many) ** 2
    elif shape == "diag":
        found = rng.uniform(*widths, (many, d)) ** 2
    else:
        turned = np.linalg.qr(rng.normal(size=(many, d, d)))[0]
        found = (turned * rng.uniform(*widths, (many, 1, d)) ** 2) @ turned.transpose(0, 2, 1)
        found = (found + found.transpose(0, 2, 1)) / 2
    return np.repeat(found, count, axis=0) if shared else found


def mixture_of(rng, count, d, shape="full", shared=False, signed=False, spread=1.5):
    weights = rng.uniform(0.2, 1.0, count)
    weights *= rng.choice([-1.0, 1.0], count) if signed else 1 / weights.sum()
    return Mixture(weights, spread * rng.normal(size=(count, d)), covariances_of(rng, count, d, shape, shared))


def log_normal(x, mean, covariance):
    return stats.multivariate_normal(mean, covariance).logpdf(x)


def evaluate(f, Q):
    parts = zip(f.weights, f.means, matrices(f.covariances, f.dimension), strict=True)
    return sum(w * np.exp(np.atleast_1d(log_normal(Q, t, H))) for w, t, H in parts)


def gradient(f, Q, step=1e-5):
    """Central differences, one coordinate at a time."""
    out = np.empty(Q.shape)
    for j in range(Q.shape[1]):
        shift = np.zeros(Q.shape[1])
        shift[j] = step
        out[:, j] = (evaluate(f, Q + shift) - evaluate(f, Q - shift)) / (2 * step)
    return out


def products(places, covariances, others, other_covariances):
    """(m, n) ⟨gᵢ, φⱼ⟩ = N(tᵢ; xⱼ, Aᵢ + Cⱼ)."""
    d = places.shape[1]
    A, C = (np.reshape(matrices(each, d), (-1, d, d)) for each in (covariances, other_covariances))
    wide, gaps = A[:, None] + C, places[:, None] - others
    squares = (gaps * np.linalg.solve(wide, gaps[..., None])[..., 0]).sum(axis=-1)
    return np.exp(-0.5 * (squares + np.linalg.slogdet(wide)[1] + d * np.log(2 * np.pi)))


def inner(f, g):
    return float(f.weights @ products(f.means, f.covariances, g.means, g.covariances) @ g.weights)


def distance(f, g):
    return float(np.sqrt(max(inner(f, f) - 2 * inner(f, g) + inner(g, g), 0.0)))


def moments(places, covariances, f):
    """total (m,), pull (m, d), stiff and square (m, d, d) by the definition, pair by pair."""
    m, d = places.shape
    total, pull, stiff, square = np.zeros(m), np.zeros((m, d)), np.zeros((m, d, d)), np.zeros((m, d, d))
    for i, A in enumerate(matrices(covariances, d)):
        for w, x, C in zip(f.weights, f.means, matrices(f.covariances, d), strict=True):
            P = np.linalg.inv(A + C)
            a = w * np.exp(log_normal(places[i], x, A + C))
            u = P @ (x - places[i])
            total[i] += a
            pull[i] += a * u
            stiff[i] += a * P
            square[i] += a * np.outer(u, u)
    return total, pull, stiff, square


def integral(function, d, limit=22.0, count=295):
    """∫ over a box in one or two dimensions by the trapezoidal rule, which is exact to rounding for smooth bumps that fade."""
    x = np.linspace(-limit, limit, count)
    grid = np.stack(np.meshgrid(*[x] * d, indexing="ij"), axis=-1).reshape(-1, d)
    return float(function(grid).sum() * (x[1] - x[0]) ** d)


def kl_of_gaussians(mean, covariance, other_mean, other_covariance):
    """KL(N ‖ N') in closed form."""
    P = np.linalg.inv(other_covariance)
    gap = other_mean - mean
    logs = np.linalg.slogdet(other_covariance)[1] - np.linalg.slogdet(covariance)[1]
    return 0.5 * (np.trace(P @ covariance) + gap @ P @ gap - len(mean) + logs)


def local_error(f, groups, i, weight, place, covariance):
    """∫(w·g − Σ_{j∈S} αⱼφⱼ)² of group i, by all pairs."""
    rows = groups == i
    part = Mixture(f.weights[rows], f.means[rows], f.covariances[rows])
    one = Mixture([1.0], place[None], np.asarray(covariance)[None])
    return weight**2 * inner(one, one) - 2 * weight * inner(one, part) + inner(part, part)


def marginal_at(f, column, value, limit=30.0, count=1201):
    """The density of one of two columns, the other integrated out by the trapezoidal rule."""
    y = np.linspace(-limit, limit, count)
    points = np.empty((count, 2))
    points[:, column], points[:, 1 - column] = value, y
    return float(evaluate(f, points).sum() * (y[1] - y[0]))
