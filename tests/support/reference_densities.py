"""Mixtures on the unit cube whose bounds, derivatives and distances are known, by plain formulas and fine grids."""

from functools import cached_property

import numpy as np
from scipy.stats import norm, truncnorm

from reduset.features.homogeneous_distances import kappa

FINE = 2001  # points of an axis for suprema and distances in one dimension
COARSE = 301  # and in two
SLACK = 1.001  # suprema on a grid are a little too small


class UniformAndNormals:
    """A share ``background`` of uniform points, and normal ones around (k, d) means, truncated to the cube, of one sd."""

    def __init__(self, means, sd, background=0.4):
        self.means, self.sd, self.background = np.atleast_2d(means), sd, background
        self.dimension = self.means.shape[1]

    def _axis(self, x, mean, order):
        """A truncated normal density on an axis, or its first or second derivative."""
        z = (x - mean) / self.sd
        height = norm.pdf(z) / self.sd / (norm.cdf((1 - mean) / self.sd) - norm.cdf(-mean / self.sd))
        return height * (1.0, -z / self.sd, (z**2 - 1) / self.sd**2)[order]

    def derivative(self, points, orders):
        """A partial derivative at (n, d) points; orders of 0 are the density itself."""
        total = np.zeros(len(points))
        for mean in self.means:
            factors = [self._axis(x, m, order) for x, m, order in zip(points.T, mean, orders, strict=True)]
            total += np.prod(factors, axis=0)
        total *= (1 - self.background) / len(self.means)
        return total + self.background if not any(orders) else total

    def __call__(self, points):
        return self.derivative(points, (0,) * self.dimension)

    def sample(self, n, rng):
        out = rng.uniform(size=(n, self.dimension))
        normal = np.flatnonzero(rng.uniform(size=n) > self.background)
        centre = self.means[rng.integers(len(self.means), size=len(normal))]
        out[normal] = truncnorm.rvs(-centre / self.sd, (1 - centre) / self.sd, centre, self.sd, random_state=rng)
        return out

    @cached_property
    def constants(self):
        """lower, upper, gradient and curvature, by the largest values on a grid."""
        points, _ = fine_grid(self.dimension)
        values = self(points)
        eye = np.eye(self.dimension, dtype=int)
        slopes = np.sqrt(sum(self.derivative(points, row) ** 2 for row in eye))
        bends = np.array([[self.derivative(points, a + b) for a in eye] for b in eye])
        curvature = np.abs(np.linalg.eigvalsh(np.moveaxis(bends, -1, 0))).max()
        return values.min() / SLACK, values.max() * SLACK, slopes.max() * SLACK, curvature * SLACK


def fine_grid(dimension):
    """(n, d) midpoints and their common weight."""
    count = FINE if dimension == 1 else COARSE
    axis = (np.arange(count) + 0.5) / count
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension), 1 / count**dimension


def constants_of(*densities):
    """Constants that hold for all of them."""
    every = np.array([density.constants for density in densities])
    names = ("lower", "upper", "gradient", "curvature")
    return dict(zip(names, (every[:, 0].min(), *every[:, 1:].max(axis=0)), strict=True))


def square_distance(p, q, distance):
    """d² by midpoints."""
    points, weight = fine_grid(p.dimension)
    return float(kappa(p(points), q(points), distance).sum() * weight)
