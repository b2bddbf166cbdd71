"""Covers on a GPU: the rows, radii and owners of the processor, whatever the type and the shape, and where the rows lie."""

import numpy as np
import pytest

from reduset import cover
from reduset._engine import HostRows, LazyCover

pytestmark = pytest.mark.gpu

KINDS = ("bell", "lattice", "copies", "heavy")


def drawn(kind, n, d, dtype):
    rng = np.random.default_rng([KINDS.index(kind), n, d])
    rows = rng.standard_t(1.5, size=(n, d)).clip(-1e3, 1e3) if kind == "heavy" else rng.normal(size=(n, d))
    if kind == "lattice":
        rows = np.round(rows)
    if kind == "copies":
        rows = np.repeat(rows[: n // 30 + 1], 30, axis=0)[:n]
    return rows.astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(3000, 1), (20_000, 3), (20_000, 16), (5000, 64), (5000, 65), (3000, 300)])
@pytest.mark.parametrize("cosine", [False, True])
def test_rows_and_gaps_are_those_of_the_processor(kind, dtype, n, d, cosine):
    import cupy

    from reduset._engine.cuda.device_rows import DeviceRows

    rows = drawn(kind, n, d, dtype)
    if cosine:
        rows = rows + np.asarray(0.25, dtype)
    covers = [LazyCover(place, cosine) for place in (HostRows(rows), DeviceRows(cupy.asarray(rows)))]
    for traversal in covers:
        traversal.add_rows(np.array([1]))
    left = [traversal.extend(80) for traversal in covers]
    host, device = covers
    if cosine:  # lengths are added up in another order: the last digit of a distance may be another
        np.testing.assert_allclose(device.distances, host.distances, rtol=1e-9, atol=1e-15)
    else:
        assert device.indices == host.indices
        np.testing.assert_array_equal(device.distances, host.distances)
        assert left[0] == left[1]


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_arrays_on_the_device_go_in_as_they_are(library, metric):
    import cupy

    rows = np.random.default_rng(0).normal(size=(4000, 96)).astype(np.float32)
    given = cupy.asarray(rows)
    if library == "torch":
        torch = pytest.importorskip("torch")
        given = torch.from_numpy(rows).cuda()
    found, expected = cover(given, 60, metric=metric), cover(rows, 60, metric=metric)
    assert found.indices.tolist() == expected.indices.tolist()
    assert found.radius == pytest.approx(expected.radius, rel=1e-9)
    assert np.mean(found.assignments == expected.assignments) >= 0.999
    np.testing.assert_allclose(found.assignment_distances, expected.assignment_distances, rtol=1e-4, atol=1e-5)


def test_half_precision_is_multiplied_in_full():
    """Products of halves have 22 digits, and sums of them keep single precision: the bounds hold."""
    import cupy

    from reduset._engine.cuda.device_rows import DeviceRows

    rng = np.random.default_rng(1)
    rows, centres = (rng.normal(size=(k, 768)).astype(np.float16) for k in (500, 70))
    place = DeviceRows(cupy.asarray(rows))
    found = place.products(place.take(slice(None)), cupy.asarray(centres)).get()
    exact = rows.astype(float) @ centres.astype(float).T
    assert found.dtype == np.float32
    lengths = np.linalg.norm(rows.astype(float), axis=1)[:, None] * np.linalg.norm(centres.astype(float), axis=1)
    assert (np.abs(found - exact) / lengths).max() <= 768 * 2.0**-24


def test_what_is_wrong_on_the_device_is_named():
    import cupy

    rows = cupy.ones((5, 2))
    rows[3, 1] = cupy.nan
    with pytest.raises(ValueError, match=r"data .*got nan in row 3, column 1"):
        cover(rows, 2)
    with pytest.raises(ValueError, match=r"data .*got int64"):
        cover(cupy.ones((5, 2), cupy.int64), 2)
    with pytest.raises(ValueError, match="data must have two dimensions"):
        cover(cupy.ones(5), 2)
    with pytest.raises(ValueError, match="rows of zeros"):
        cover(cupy.zeros((5, 2)), 2, metric="cosine")
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"got a tensor that requires grad; pass data\.detach\(\)"):
        cover(torch.ones((5, 2), device="cuda", requires_grad=True), 2)
