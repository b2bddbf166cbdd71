"""What the shared laws are tried on: kernels, selectors, weightings, a cloud of points, and a sample of their product."""

import numpy as np

from reduset import FunctionKernel, Gaussian, Laplacian, Student, compress
from reduset.select import KCenter, Random, Selector
from reduset.select.selection import Traversal

COVARIANCE = np.array([[1.5, 0.4], [0.4, 0.7]])
KERNELS = {
    "gaussian": Gaussian(0.5),
    "gaussian l2": Gaussian(0.5, space="l2", normalized=True),
    "oblique": Gaussian(0.5, covariance=COVARIANCE, normalized=True),
    "laplacian": Laplacian(0.8),
    "laplacian l2": Laplacian(0.5, space="l2"),
    "cityblock": Laplacian(0.8, metric="cityblock", space="l2", normalized=True),
    "student": Student(0.6, exponent=2.5),
    "student l2": Student(0.6, exponent=1.7, space="l2"),
    "function": FunctionKernel("rbf", gamma=2.0),
}
SELECTORS = {"kcenter": KCenter("mean"), "random": Random()}
WEIGHTINGS = ["free", "sum_to_one", "clipped", "simplex_projection", "simplex"]

# every kernel with every selector, the weightings taken in turn; and every weighting of one kernel
SAMPLE = [
    (select, WEIGHTINGS[(i + 2 * j) % 5], kernel) for i, kernel in enumerate(KERNELS) for j, select in enumerate(SELECTORS)
] + [("kcenter", weights, "gaussian") for weights in WEIGHTINGS[1:]]


def cloud(n=120, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 2 * rng.integers(0, 2, size=(n, 1))


def run(X, select="kcenter", weights="free", kernel="gaussian", size=15, rng=0, **options):
    return compress(X, KERNELS[kernel], size=size, select=SELECTORS[select], weights=weights, rng=rng, **options)


class Given(Selector):
    """The rows that are given, in order: a selector that a user could write on the contract."""

    def __init__(self, rows):
        self.rows = np.asarray(rows)

    def begin(self, mean, rng):
        return GivenTraversal(self.rows)


class GivenTraversal(Traversal):
    def __init__(self, rows):
        self._rows, self._count = rows, 0

    def extend(self, size, report=None):
        self._count = min(size, len(self._rows))

    @property
    def indices(self):
        return self._rows[: self._count]
