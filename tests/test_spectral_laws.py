"""What every spectral estimator must keep to: scales that leave floating point, odd weights, parts, far rows, memory, threads."""

import numpy as np
import pytest

from cases import cloud
from reduset import Gaussian, compress
from reduset.spectral import (
    Nystroem,
    ReducedDiffusionMap,
    ReducedKernelPCA,
    ReducedLaplacianEigenmap,
    ReducedSpectralClustering,
    WeightedNystroem,
)

WALKS = [ReducedDiffusionMap(2), ReducedLaplacianEigenmap(2), ReducedSpectralClustering(2)]
PRODUCTS = [ReducedKernelPCA(2), Nystroem(n_components=9), WeightedNystroem(2, size=9)]
ALL = [*WALKS, *PRODUCTS]
EVERY = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)


def fresh(model, **options):
    return type(model)(**{**model.get_params(), "random_state": 0, **options})


def answer(model, X):
    return model.predict(X) if isinstance(model, ReducedSpectralClustering) else model.transform(X)


# -- scales ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", WALKS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_walk_knows_no_constant_of_the_kernel_even_one_that_leaves_floating_point(model, scale):
    X = scale * cloud(60, 300)
    density = Gaussian(30.0 * scale, space="l2", normalized=True)
    assert abs(density.log_energy(300)) > 750 or scale == 1e-3
    one = fresh(model, kernel=density, reduce=None).fit(X)
    other = fresh(model, kernel=Gaussian(np.sqrt(2) * 30.0 * scale), reduce=None).fit(X)
    np.testing.assert_allclose(answer(one, X), answer(other, X), atol=1e-9)


@pytest.mark.parametrize("model", PRODUCTS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("h", [1e-3, 30.0])
def test_a_kernel_whose_constant_leaves_floating_point_is_refused_where_it_counts(model, h):
    with pytest.raises(ValueError, match=r"k\(x, x\) = exp\(-?\d.* in 300 dimensions, .*; use normalized=False and space='rkhs'"):
        fresh(model, kernel=Gaussian(h, space="l2", normalized=True), reduce="kcenter").set_params(
            **({} if isinstance(model, Nystroem) else {"size": 9})
        ).fit(cloud(60, 300))


def test_a_compression_with_a_size_is_named_in_one_line():
    X = cloud(50)
    small = compress(X, Gaussian(1.0), size=5, weights="simplex", rng=0)
    with pytest.raises(ValueError, match=r"size=3 goes with a selector, which chooses so many atoms; got reduce=a Compression$"):
        ReducedKernelPCA(2, reduce=small, size=3).fit(X)
