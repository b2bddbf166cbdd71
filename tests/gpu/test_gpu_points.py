"""Sums over points that lie on a GPU: those of the processor, whatever the chunks, for queries here and there."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, Matern, Student, compress
from reduset._engine import DevicePoints, Frame, cluster_sums, fourier_sums, nearest
from reduset._engine.cuda import chunks, fourier, sums
from reduset._engine.distances import CITYBLOCK, SQUARED
from reduset._validate import rows as _rows

pytestmark = pytest.mark.gpu

KERNELS = {
    "gaussian": Gaussian(0.8),
    "gaussian in L2": Gaussian(0.8, space="l2"),
    "gaussian, by columns": Gaussian(0.8, scales=[1.0, 2.0, 0.5]),
    "gaussian, full": Gaussian(0.8, covariance=np.array([[1.0, 0.3, 0.0], [0.3, 2.0, 0.1], [0.0, 0.1, 0.5]])),
    "laplacian": Laplacian(1.2),
    "city-block": Laplacian(1.2, metric="cityblock"),
    "city-block in L2": Laplacian(1.2, metric="cityblock", space="l2"),
    "student": Student(1.0),
    "matern": Matern(1.0),
}


def cloud(n, d, seed=0, dtype=np.float64):
    return (np.random.default_rng(seed).normal(size=(n, d)) + 5).astype(dtype)


def means(kernel, n=20_000, d=3, weighted=False, dtype=np.float64):
    """The same mean, of points here and there."""
    import cupy

    X = cloud(n, d, dtype=dtype)
    w = np.random.default_rng(1).random(n) if weighted else None
    here = KernelMean.from_samples(X.astype(np.float64), kernel, w)
    return here, KernelMean(DevicePoints.checked(cupy.asarray(X)), here.weights, here.kernel)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_the_processor(name, weighted):
    here, there = means(KERNELS[name], weighted=weighted)
    Q = cloud(300, 3, 2)
    products, expected = (mean.kernel.product_sums(mean.atoms, mean.weights, Q) for mean in (there, here))
    np.testing.assert_allclose(products, expected, rtol=1e-11)
    np.testing.assert_allclose(there(Q, "double"), here(Q, "double"), rtol=1e-11)
    np.testing.assert_allclose(there(Q), here(Q, "double"), rtol=1e-5)
    np.testing.assert_allclose(there.log_density(Q, "double"), here.log_density(Q, "double"), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(there.log_density(Q), here.log_density(Q, "double"), atol=1e-5)
    np.testing.assert_allclose(there.gradient(Q), here.gradient(Q), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_matrices_are_those_of_the_processor(name):
    here, there = means(KERNELS[name], 5000)
    Q = cloud(70, 3, 2)
    np.testing.assert_allclose(there.kernel.product_gram(there.atoms, Q), here.kernel.product_gram(here.atoms, Q), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_of_any_floating_type(dtype):
    here, there = means(Gaussian(0.8), dtype=dtype)
    Q = cloud(50, 3, 2)
    np.testing.assert_allclose(there(Q, "double"), here(Q, "double"), rtol=1e-11)


def test_points_and_queries_may_both_be_there():
    import cupy

    here, there = means(Gaussian(0.8), n=30_000)
    Q = cloud(1000, 3, 2)
    found = there(cupy.asarray(Q))
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(found.get(), here(Q, "double"), rtol=1e-5)
    np.testing.assert_allclose(there.log_density(cupy.asarray(Q)).get(), here.log_density(Q, "double"), atol=1e-5)


@pytest.mark.parametrize("d", [1, 2, 16, 33, 64, 65, 100])
def test_any_number_of_columns(d):
    here, there = means(Gaussian(float(np.sqrt(d))), 9000, d)
    Q = cloud(700, d, 3)
    for precision, accuracy in (("double", 1e-10), ("auto", 1e-5)):
        np.testing.assert_allclose(there(Q, precision), here(Q, "double"), rtol=accuracy)
    np.testing.assert_allclose(there.log_density(Q, "double"), here.log_density(Q, "double"), rtol=1e-10, atol=1e-10)


def test_long_rows_of_a_kernel_with_a_corner():
    here, there = means(Laplacian(10.0), 9000, 100)
    Q = np.concatenate([here.atoms[:20], cloud(100, 100, 3)])
    np.testing.assert_allclose(there(Q), here(Q, "double"), rtol=1e-9)


def test_what_no_kernel_does_is_refused_with_a_way_out():
    _, there = means(Gaussian(8.0), 9000, 65)
    with pytest.raises(ValueError, match=r"gradients .*got 65"):
        there.gradient(cloud(5, 65))
    _, there = means(Laplacian(8.0, metric="cityblock"), 9000, 65)
    with pytest.raises(ValueError, match=r"sums .*got 65"):
        there(cloud(5, 65))


@pytest.mark.parametrize("entries", [1 << 15, 1 << 18])
def test_no_number_of_blocks_changes_a_bit(monkeypatch, entries):
    _, there = means(Gaussian(0.8), 50_000)
    Q, frequencies = cloud(300, 3, 2), np.random.default_rng(3).normal(size=(20, 3))
    frame = Frame(np.full(3, 5.0), 1.0)

    def found():
        waved = fourier_sums(there.atoms, there.weights, frequencies, frame, 5)
        return [there(Q, "double"), there.log_density(Q, "double"), there.gradient(Q), there(Q), waved]

    before = found()
    for module, name in ((sums, "ENTRIES"), (sums, "PART_ENTRIES"), (fourier, "ENTRIES")):
        monkeypatch.setattr(module, name, entries)
    for one, two in zip(before, found(), strict=True):
        assert np.array_equal(one, two)


def test_the_bits_of_a_value_do_not_depend_on_the_queries_beside_it():
    import cupy

    rng = np.random.default_rng(7)
    X, Q = rng.uniform(-1, 1, size=(6000, 3)), rng.uniform(-4, 4, size=(3000, 3))
    there = KernelMean.from_samples(cupy.asarray(X), Gaussian(1.0))
    whole = there(Q)
    np.testing.assert_array_equal(there(Q[:2901]), whole[:2901])
    np.testing.assert_array_equal(there(Q[::-1])[::-1], whole)
    np.testing.assert_allclose(whole, KernelMean.from_samples(X, Gaussian(1.0))(Q, "double"), rtol=1e-5)


def test_geometry_of_means_there():
    here, there = means(Gaussian(1.0), 5000)
    assert there.norm() == pytest.approx(here.norm())
    assert there.inner(there) == pytest.approx(here.inner(here))


def test_long_rows_keep_all_blocks_in_the_bounds():
    import cupy

    X = np.random.default_rng(8).normal(size=(9000, 80)).astype(np.float32)
    options = {"kernel": Gaussian(12.0), "size": 20, "rng": 0, "select": "random"}
    here, there = compress(X, **options), compress(cupy.asarray(X), **options)
    assert there.certificate.bound == pytest.approx(here.certificate.bound, rel=1e-6)


def test_a_query_far_out_and_weights_of_both_signs_are_in_double():
    import cupy

    X = cloud(20_000, 3)
    w = np.random.default_rng(1).normal(size=len(X))
    Q = np.concatenate([cloud(400, 3, 2), cloud(3, 3) * 1e4])
    for weights in (w, np.abs(w)):
        here = KernelMean(X, weights, Gaussian(0.5))
        there = KernelMean(DevicePoints.checked(cupy.asarray(X)), weights, Gaussian(0.5))
        np.testing.assert_allclose(there(Q), here(Q, "double"), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("d", [2, 30])
def test_waves_are_those_of_the_processor(late, d):
    import cupy

    X, rng = cloud(20_000, d), np.random.default_rng(4)
    w, omega = rng.random(len(X)), rng.normal(size=(70, d))
    slow = rng.normal(size=(70, d)) if late else None
    frame = Frame(np.full(d, 5.0), 0.7)
    given = w, omega, frame, 9, slow, 4
    found = fourier_sums(DevicePoints.checked(cupy.asarray(X)), *given)
    np.testing.assert_allclose(found, fourier_sums(X, *given), atol=1e-9)


@pytest.mark.parametrize(("metric", "d"), [(SQUARED, 3), (CITYBLOCK, 3), (SQUARED, 70)])
def test_nearest_atoms_and_sums_over_cells(metric, d):
    import cupy

    X, atoms = cloud(20_000, d), cloud(300, d, 5)
    there, frame = DevicePoints.checked(cupy.asarray(X)), Frame(np.full(d, 5.0), 1.3)
    index, distance = nearest(there, atoms, frame, metric)
    expected, far = nearest(X, atoms, frame, metric)
    np.testing.assert_allclose(distance, far, rtol=1e-6)
    assert np.mean(index == expected) > 0.999
    if metric == SQUARED:
        w = np.random.default_rng(6).random(len(X))
        for one, two in zip(cluster_sums(there, w, atoms, frame), cluster_sums(X, w, atoms, frame), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-8)
        again = cluster_sums(there, w, atoms, frame)
        assert np.array_equal(again[1], cluster_sums(there, w, atoms, frame)[1])


def test_points_there_are_taken_like_an_array_and_never_all_by_accident():
    import cupy

    X = cloud(5000, 3, dtype=np.float16)
    there = DevicePoints.checked(cupy.asarray(X))
    assert there[[4, 2]].dtype == np.float32
    np.testing.assert_array_equal(there[10:20], X[10:20])
    np.testing.assert_array_equal(there[:, 1], X[:, 1])
    np.testing.assert_array_equal(there.min(axis=0), X.min(axis=0))
    assert there.max() == X.max()
    with pytest.raises(TypeError, match="X is an array on a GPU, which is not supported here"):
        np.asarray(there)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_with_its_place(bad):
    import cupy

    X = cloud(5000, 3)
    X[4321, 2] = bad
    with pytest.raises(ValueError, match=f"X .*got {bad} in row 4321, column 2"):
        _rows.points(cupy.asarray(X))


def test_bfloat16_comes_in_exactly():
    torch = pytest.importorskip("torch")
    E = torch.randn(5000, 8, device="cuda").to(torch.bfloat16)
    np.testing.assert_array_equal(_rows.points(E)[:7], E[:7].float().cpu().numpy())


def test_rows_are_placed_in_chunks_of_any_length(monkeypatch):
    X = cloud(10_000, 3)
    parts = [(a, b, rows.get()) for a, b, rows in chunks.chunks(X, 3000)]
    assert [part[:2] for part in parts] == [(0, 3000), (3000, 6000), (6000, 9000), (9000, 10_000)]
    np.testing.assert_array_equal(np.concatenate([rows for *_, rows in parts]), X)
