"""Kernel means at queries on a GPU: the values of the processor, on the device and in the library of the queries."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, Matern, Student

pytestmark = pytest.mark.gpu

KERNELS = {
    "gaussian": Gaussian(0.8),
    "gaussian, by columns": Gaussian(0.8, covariance=np.array([1.0, 4.0, 0.25])),
    "gaussian, full": Gaussian(0.8, covariance=np.array([[1.0, 0.3, 0.0], [0.3, 2.0, 0.1], [0.0, 0.1, 0.5]])),
    "laplacian": Laplacian(1.2),
    "city-block": Laplacian(1.2, metric="cityblock"),
    "student": Student(1.0),
    "matern": Matern(1.0),
}


def made(kernel, n=400, d=3, signed=False):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=n) if signed else rng.random(n)
    return KernelMean(rng.normal(size=(n, d)) + 5, weights / np.abs(weights).sum(), kernel)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("precision", ["auto", "double"])
def test_values_are_those_of_the_processor(name, dtype, precision):
    import cupy

    mean = made(KERNELS[name])
    queries = (np.random.default_rng(1).normal(size=(30_000, 3)) * 1.5 + 5).astype(dtype)
    found = mean(cupy.asarray(queries), precision)
    assert isinstance(found, cupy.ndarray)
    expected = mean(queries.astype(np.float64), "double")
    np.testing.assert_allclose(found.get(), expected, rtol=1e-10 if precision == "double" else 1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_logarithms_do_not_underflow(name):
    import cupy

    mean = made(KERNELS[name])
    queries = np.random.default_rng(2).normal(size=(5000, 3)) * np.geomspace(0.1, 1000, 5000)[:, None]
    found = mean.log_density(cupy.asarray(queries)).get()
    np.testing.assert_allclose(found, mean.log_density(queries), rtol=1e-10, atol=1e-10)


def test_signed_weights_and_faint_values_are_computed_in_double():
    import cupy

    queries = np.random.default_rng(3).normal(size=(20_000, 3)) * 3 + 5
    for mean in (made(Gaussian(0.5), signed=True), made(Gaussian(0.5))):
        expected = mean(queries, "double")
        found = mean(cupy.asarray(queries)).get()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-18)


@pytest.mark.parametrize("d", [1, 2, 5, 16, 33, 64])
def test_any_number_of_columns_up_to_the_most(d):
    import cupy

    mean = made(Gaussian(float(np.sqrt(d))), 300, d)
    queries = np.random.default_rng(d).normal(size=(20_000, d)) + 5
    np.testing.assert_allclose(
        mean(cupy.asarray(queries, cupy.float32)).get(), mean(queries.astype(np.float32), "double"), rtol=1e-5
    )


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_at_queries_there(name):
    import cupy

    mean = made(KERNELS[name])
    queries = np.random.default_rng(4).normal(size=(2000, 3)) + 5
    found = mean.gradient(cupy.asarray(queries))
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(found.get(), mean.gradient(queries), rtol=1e-9, atol=1e-12)


def test_tensors_come_back_as_tensors_where_they_were():
    torch = pytest.importorskip("torch")
    mean = made(Gaussian(1.0))
    queries = torch.randn(1000, 3, device="cuda") + 5
    found = mean(queries)
    assert isinstance(found, torch.Tensor)
    assert found.device == queries.device
    np.testing.assert_allclose(found.cpu().numpy(), mean(queries.cpu().numpy(), "double"), rtol=1e-5)
    with pytest.raises(ValueError, match="Q must have 3 columns like the atoms"):
        mean(torch.zeros(5, 2, device="cuda"))
    with pytest.raises(ValueError, match="Q must be finite"):
        mean(torch.full((5, 3), torch.nan, device="cuda"))


def test_the_number_of_queries_at_once_changes_no_bit():
    import cupy

    mean = made(Gaussian(1.0), 1000)
    queries = cupy.random.default_rng(0).standard_normal((50_000, 3), dtype=cupy.float32) + 5
    whole = mean(queries)
    for a, b in ((0, 45_001), (7, 45_000)):
        np.testing.assert_array_equal(mean(queries[a:b]).get(), whole[a:b].get())
