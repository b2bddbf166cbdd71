"""compress on a GPU: the atoms of the processor, their weights and their certificate."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, compress

pytestmark = pytest.mark.gpu

N = 12_300


def rows(dtype=np.float64):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(N - 300, 3)), rng.normal(size=(300, 3)) * 0.1 + 6]).astype(dtype)


def both(kernel=None, **options):
    import cupy

    X = rows()
    return compress(X, kernel, rng=0, **options), compress(cupy.asarray(X), kernel, rng=0, **options)


def assert_same(here, there, accuracy=1e-8):
    assert isinstance(there.mean.atoms, np.ndarray)
    np.testing.assert_allclose(there.mean.atoms, here.mean.atoms, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.mean.weights, here.mean.weights, atol=accuracy)
    one, two = here.certificate, there.certificate
    assert two.relative_error == pytest.approx(one.relative_error, rel=1e-6)
    assert two.interval == pytest.approx(one.interval, rel=1e-6)
    assert (one.bound is None) == (two.bound is None)
    if one.bound is not None:
        assert two.bound == pytest.approx(one.bound, rel=1e-6)
    assert str(here) == str(there)


@pytest.mark.parametrize(
    "options",
    [
        {"size": 60, "tol": 0.1},
        {"tol": 0.1},
        {"size": 50, "kernel": Gaussian("median")},
        {"tol": 0.05, "kernel": Gaussian(scales="robust")},
        {"size": 40, "kernel": Gaussian("scott", covariance=np.diag([1.0, 2.0, 0.5]))},
        {"size": 50, "weights": "free"},
        {"size": 40, "select": "thinning"},
        {"size": 50, "kernel": Gaussian(1.0), "groups": np.arange(N) % 3},
        {"tol": 0.1, "kernel": Laplacian("median")},
        {"size": 30, "kernel": Laplacian("median", metric="cityblock")},
    ],
    ids=str,
)
def test_the_result_is_that_of_the_processor(options):
    assert_same(*both(**options))


@pytest.mark.parametrize(
    "select",
    ["kcenter", "kmeans", "thinning", "random", "greedy", "cholesky", "herding", "columnnorm"],
)
def test_every_selector_chooses_the_same(select):
    here, there = both(Gaussian("median"), size=50, select=select)
    assert_same(here, there)
    assert (here.indices is None) == (there.indices is None)
    if here.indices is not None:
        np.testing.assert_array_equal(here.indices, there.indices)


def test_kcenter_by_columns_and_its_radii():
    here, there = both(Gaussian(1.0, scales=[1.0, 3.0, 0.2]), size=80, select="kcenter")
    np.testing.assert_array_equal(here.indices, there.indices)
    assert here.certificate.radius == pytest.approx(there.certificate.radius)


def test_moved_atoms_are_as_good():
    here, there = both(Gaussian(1.0), size=50, refine=10)
    assert there.certificate.relative_error == pytest.approx(here.certificate.relative_error, rel=0.01)


def test_weights_of_rows_lie_where_the_rows_do():
    import cupy

    X, w = rows(), np.random.default_rng(1).random(N)
    w[:100] = 0
    there = compress(cupy.asarray(X), Gaussian(1.0), size=30, sample_weight=cupy.asarray(w), rng=0)
    assert_same(compress(X, Gaussian(1.0), size=30, sample_weight=w, rng=0), there)
    with pytest.raises(ValueError, match=r"sample_weight must be on the GPU of the rows, .* copy it to the GPU \(cupy\.asarray"):
        compress(cupy.asarray(X), size=30, sample_weight=w)
    with pytest.raises(ValueError, match=r"sample_weight .*got one on a GPU"):
        compress(X, size=30, sample_weight=cupy.asarray(w))


def test_few_rows_are_brought_here():
    import cupy

    X = rows()[:500]
    there = compress(cupy.asarray(X), Gaussian(1.0), size=20, rng=0)
    assert_same(compress(X, Gaussian(1.0), size=20, rng=0), there)


def test_tensors_go_in_and_a_small_mean_comes_out():
    torch = pytest.importorskip("torch")
    X = rows(np.float32)
    there = compress(torch.from_numpy(X).cuda(), size=40, tol=0.2, rng=0)
    assert_same(compress(X, size=40, tol=0.2, rng=0), there)
    with pytest.raises(ValueError, match=r"X .*got a tensor that requires grad"):
        compress(torch.from_numpy(X).cuda().requires_grad_(), size=40)


def test_a_result_can_be_asked_everything():
    import cupy

    X = rows()
    there = compress(cupy.asarray(X), size=40, tol=0.2, rng=0)
    here = compress(X, size=40, tol=0.2, rng=0)
    np.testing.assert_allclose(there.profile().relative_errors, here.profile().relative_errors, rtol=1e-6)
    assert there.at(20).size == here.at(20).size
    full = KernelMean.from_samples(cupy.asarray(X), Gaussian(1.0))
    again = there.reweigh(full, weights="free")
    assert again.certificate.relative_error < 1


def test_what_is_fitted_on_the_processor_says_so():
    import cupy

    with pytest.raises(TypeError, match=r"pieces='components' needs X in main memory.*X\.get\(\)"):
        compress(cupy.asarray(rows()), Gaussian(1.0), size=10, pieces="components")
