"""What the shared laws are tried on: kernels, selectors, weightings, a cloud of points, and a sample of their product."""

from functools import cache

import numpy as np

from reduset import FunctionKernel, Gaussian, Laplacian, Matern, Student, compress
from reduset.select import (
    Auto,
    Cholesky,
    ColumnNorm,
    Greedy,
    Herding,
    KCenter,
    KMeans,
    Paring,
    Random,
    Selector,
    Shadow,
    Thinning,
)
from reduset.select.contract import Traversal
from reduset.weights import KINDS

COVARIANCE = np.array([[1.5, 0.4], [0.4, 0.7]])
KERNELS = {
    "gaussian": Gaussian(0.5),
    "gaussian l2": Gaussian(0.5, space="l2", normalized=True),
    "oblique": Gaussian(0.5, covariance=COVARIANCE, normalized=True),
    "scaled": Gaussian(0.5, scales=[1.5, 0.6], normalized=True),
    "laplacian": Laplacian(0.8),
    "laplacian l2": Laplacian(0.5, space="l2"),
    "cityblock": Laplacian(0.8, metric="cityblock", space="l2", normalized=True),
    "student": Student(0.6, exponent=2.5),
    "student l2": Student(0.6, exponent=1.7, space="l2"),
    "function": FunctionKernel("rbf", gamma=2.0),
    "matern": Matern(0.7),
}
SELECTORS = {
    "kcenter": KCenter("mean"),
    "random": Random(),
    "shadow": Shadow(ell=2.5),  # covers some points of the cloud, by no means all
    "kmeans": KMeans(),
    "columnnorm": ColumnNorm(),
    "herding": Herding(),
    "plain herding": Herding(line_search=False),
    "cholesky": Cholesky(),
    "thinning": Thinning(),
    "swapped": Thinning(swaps=True),
    "greedy": Greedy(),
    "auto": Auto(),
    "paring": Paring(),
}
MOVED = {"moved kcenter": "kcenter", "moved kmeans": "kmeans"}  # selections whose atoms are then moved
STEPS = 8
WAYS = [*SELECTORS, *MOVED]

NESTED = [
    name for name in SELECTORS if name not in ("kmeans", "thinning", "swapped", "auto")
]  # a longer selection begins with a shorter one
DRAWN = [
    "random",
    "columnnorm",
    "cholesky",
    "thinning",
    "swapped",
    "auto",
    "paring",
]  # by a draw over rows, which repeated or absent rows change
WITH_OWN_WEIGHTS = [name for name, selector in SELECTORS.items() if selector.weighs]

WEIGHTINGS = list(KINDS)


def kernels_of(select):
    return [name for name in KERNELS if not (select in MOVED and name == "function")]


def every_third(select):
    """Three of the kernels, others for every selector."""
    return kernels_of(select)[WAYS.index(select) % 3 :: 3]


PAIRS = [(select, kernel) for select in WAYS for kernel in kernels_of(select)]
ALL = [(select, weights, kernel) for select, kernel in PAIRS for weights in WEIGHTINGS]


def covering():
    """Each selector with each weighting once, the kernels in turn: the cases of `make test`."""
    found = []
    for i, select in enumerate(WAYS):
        kernels = kernels_of(select)
        found += [(select, weights, kernels[(i + 2 * j) % len(kernels)]) for j, weights in enumerate(WEIGHTINGS)]
    return found


COVERING = covering()
COVERING_PAIRS = list(dict.fromkeys((select, kernel) for select, _, kernel in COVERING))


def cloud(n=120, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 2 * rng.integers(0, 2, size=(n, 1))


def squeeze(data, kernel=None, select="kcenter", **options):
    """compress by one of `WAYS`, or by a selector."""
    if isinstance(select, Selector):
        return compress(data, kernel, select=select, **options)
    selector = SELECTORS[MOVED.get(select, select)]
    return compress(data, kernel, select=selector, refine=STEPS if select in MOVED else False, **options)


def run(X, select="kcenter", weights="free", kernel="gaussian", size=15, rng=0, **options):
    return squeeze(X, KERNELS[kernel], select, weights=weights, size=size, rng=rng, **options)


@cache
def known(select="kcenter", weights="free", kernel="gaussian", size=15):
    """`run` on the cloud, computed once in a process, for laws that look at a result and not at how it comes about."""
    return run(cloud(), select, weights, kernel, size)


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


class GivenPlaces(Selector):
    """The places that are given, in order, whether or not they are points of the data."""

    def __init__(self, places):
        self.places = np.asarray(places)

    def begin(self, mean, rng):
        return GivenPlacesTraversal(self.places)


class GivenPlacesTraversal(Traversal):
    indices = None

    def __init__(self, places):
        self._places, self._count = places, 0

    def extend(self, size, report=None):
        self._count = min(size, len(self._places))

    @property
    def points(self):
        return self._places[: self._count]
