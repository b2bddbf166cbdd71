"""Nets on a GPU: the rows, pairs, covers and audits of the processor."""

import numpy as np
import pytest

from reduset import cover
from reduset._engine import HostRows, near_rows
from reduset.covers import audit

pytestmark = pytest.mark.gpu


def drawn(seed, kind, dtype, d, n=6000):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) + 0.3
    if kind == "lattice":
        rows = np.round(rows * 2) + 0.25
    if kind == "copies":
        rows = rows[rng.integers(0, n // 3, n)]
    if kind == "clusters":
        rows = 10 * rng.normal(size=(20, d))[rng.integers(0, 20, n)] + rows
    return rows.astype(dtype), rng


@pytest.mark.parametrize("kind", ["bell", "lattice", "copies", "clusters"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 17, 64, 300])
def test_nets_and_pairs_are_those_of_the_processor(kind, dtype, d):
    import cupy

    from reduset._engine import DeviceRows

    rows, rng = drawn(d, kind, dtype, d)
    part = rows[:300].astype(float)
    squares = ((part[:, None] - part) ** 2).sum(axis=-1)
    squared = float(np.quantile(squares, 0.01)) * (1 + 1e-9)
    host, device = near_rows(HostRows(rows), False, squared), near_rows(DeviceRows(cupy.asarray(rows)), False, squared)
    order = rng.permutation(len(rows))
    np.testing.assert_array_equal(device.net(order), host.net(order))
    one, other = (search.pairs(np.arange(0, 6000, 5), np.arange(6000)) for search in (host, device))
    for expected, found in zip(one, other, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_covers_and_audits_of_a_radius_are_those_of_the_processor(library, metric):
    import cupy

    rows, _ = drawn(3, "copies", np.float32, 40)
    rows[::7] += np.float32(1e-4)
    given = cupy.asarray(rows)
    if library == "torch":
        torch = pytest.importorskip("torch")
        given = torch.from_numpy(rows).cuda()
    radius = 1e-2 if metric == "euclidean" else 1e-4
    found, expected = cover(given, radius=radius, metric=metric), cover(rows, radius=radius, metric=metric)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.assignments, expected.assignments)
    np.testing.assert_allclose(found.assignment_distances, expected.assignment_distances, rtol=1e-6, atol=1e-9)
    points = rows[:50] + np.float32(3e-3)
    more = [cover(some, radius=radius, metric=metric, keep="first", start=points) for some in (given, rows)]
    np.testing.assert_array_equal(more[0].indices, more[1].indices)
    assert len(found.pairs().first) == len(expected.pairs().first)
    assert [len(part.rows) for part in found.components()] == [len(part.rows) for part in expected.components()]
    one, other = audit(given, found.indices, radius, metric=metric), audit(rows, found.indices, radius, metric=metric)
    assert one.radius == pytest.approx(other.radius, rel=1e-6)
    np.testing.assert_allclose(one.distances, other.distances, rtol=1e-6, atol=1e-9)
    assert one.random_rows == pytest.approx(other.random_rows, rel=1e-6)


@pytest.mark.parametrize("width", [64, 128, 256, 512, 768])
@pytest.mark.parametrize("capacity", [1 << 24, 5000])
def test_every_number_of_coordinates_gives_all_pairs(width, capacity, monkeypatch):
    """Few coordinates leave more pairs to confirm, and a small buffer is filled by several launches."""
    import cupy

    from reduset._engine import DeviceRows
    from reduset._engine.cuda import radius_search

    rows, _ = drawn(5, "clusters", np.float32, 800, n=1500)
    rows[5] *= 1e4  # its coordinates exceed half precision
    rows[6] = rows[5] + np.float32(0.5)
    rows[100:600] = rows[900:1400] + np.float32(0.02)
    exact = rows.astype(float)
    lengths = (exact * exact).sum(axis=1)
    squares = lengths[:, None] + lengths - 2 * exact @ exact.T
    np.fill_diagonal(squares, np.inf)
    expected = np.nonzero(squares <= 225)
    monkeypatch.setattr(radius_search, "CAPACITY", capacity)
    monkeypatch.setattr(radius_search, "WIDTHS", {width: radius_search.WIDTHS[width]})
    search, every = near_rows(DeviceRows(cupy.asarray(rows)), False, 225.0), np.arange(len(rows))
    assert search.width == width
    one, other, found = search.pairs(every, every)
    np.testing.assert_array_equal([one, other], expected)
    np.testing.assert_allclose(found, np.square(exact[one] - exact[other]).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("pairs", [1 << 22, 5000])
def test_copies_of_one_row_and_a_radius_above_the_diameter(pairs, monkeypatch):
    import cupy

    from reduset._engine import DeviceRows
    from reduset._engine.cuda import radius_search

    monkeypatch.setattr(radius_search, "PAIRS", pairs)
    same = cupy.ones((5000, 70), cupy.float16)
    assert near_rows(DeviceRows(same), False, 0.0).net(np.arange(5000)).tolist() == [0]
    rows, _ = drawn(6, "bell", np.float32, 70, n=5000)
    assert near_rows(DeviceRows(cupy.asarray(rows)), False, 1e30).net(np.arange(5000)[::-1]).tolist() == [4999]
