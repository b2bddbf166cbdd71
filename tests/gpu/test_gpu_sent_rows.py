"""Rows in main memory and in files for a GPU: sent in blocks, they give the results of rows on the device and of the processor."""

import numpy as np
import pytest

import reduset
from reduset import cover
from reduset._engine.cuda import guard
from reduset.covers import audit

pytestmark = pytest.mark.gpu


@pytest.fixture
def on_gpu():
    reduset.set_device("cuda")
    yield
    reduset.set_device(None)


@pytest.fixture(params=["held", "sent"])
def memory(request, monkeypatch, on_gpu):
    """The free memory of the device, or so little that rows are sent in many blocks."""
    if request.param == "sent":
        monkeypatch.setattr(guard, "_limit", 1 << 20)
    return request.param


def drawn(dtype=np.float32, n=9000, d=96):
    rng = np.random.default_rng(4)
    rows = 3 * rng.normal(size=(30, d))[rng.integers(0, 30, n)] + rng.normal(size=(n, d))
    rows[n // 2 :: 9] = rows[: len(rows[n // 2 :: 9])] + 1e-3
    return rows.astype(dtype)


def on_processor(function, *arguments, **options):
    reduset.set_device("cpu")
    try:
        return function(*arguments, **options)
    finally:
        reduset.set_device("cuda")


def test_little_memory_sends_rows_in_blocks(memory):
    from reduset._engine import DeviceRows
    from reduset._engine.cuda.sent_rows import SentRows
    from reduset.covers.rows import open_rows

    rows = open_rows(drawn())
    assert type(rows) is (SentRows if memory == "sent" else DeviceRows)
    found = [(a, b, part.get()) for a, b, part in rows.parts(10**6)]
    assert (len(found) > 40) == (memory == "sent")
    np.testing.assert_array_equal(np.concatenate([part for _, _, part in found]), drawn())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("options", [{"size": 300}, {"radius": 0.3}, {"radius": 0.3, "keep": "last"}], ids=str)
def test_covers_are_those_of_the_processor(memory, dtype, metric, options):
    rows = drawn(dtype)
    if metric == "cosine":
        options = {name: 1e-3 if name == "radius" else value for name, value in options.items()}
    found = cover(rows, metric=metric, **options)
    expected = on_processor(cover, rows, metric=metric, **options)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.assignments, expected.assignments)
    np.testing.assert_allclose(found.assignment_distances, expected.assignment_distances, rtol=1e-5, atol=1e-9)
    assert found.radius == pytest.approx(expected.radius, rel=1e-9)


def test_files_are_sent(memory, tmp_path):
    rows = drawn(np.float16)
    np.save(tmp_path / "rows.npy", rows)
    found = cover(tmp_path / "rows.npy", radius=0.3)
    np.testing.assert_array_equal(found.indices, on_processor(cover, rows, radius=0.3).indices)
    np.testing.assert_array_equal(found.points, rows[found.indices])


def test_pairs_components_audits_and_updates(memory):
    rows = drawn()
    found, expected = cover(rows, radius=0.3), on_processor(cover, rows, radius=0.3)
    pairs, others = found.pairs(), on_processor(expected.pairs)
    np.testing.assert_array_equal(pairs.first, others.first)
    np.testing.assert_array_equal(pairs.second, others.second)
    assert len(found.components()) == len(on_processor(expected.components))
    one, other = audit(rows, found.indices[:500], 0.3), on_processor(audit, rows, found.indices[:500], 0.3)
    assert one.radius == pytest.approx(other.radius, rel=1e-12)
    np.testing.assert_array_equal(one.uncovered, other.uncovered)
    assert one.farthest_first == pytest.approx(other.farthest_first, rel=1e-9)
    more = rows[:2000] + np.float32(0.01)
    np.testing.assert_array_equal(found.update(more).indices, on_processor(expected.update, more).indices)


def test_bad_rows_are_named(memory):
    rows = drawn()
    rows[7777, 3] = np.nan
    with pytest.raises(ValueError, match=r"got nan in row 7777, column 3"):
        cover(rows, radius=0.3)
    rows[7777] = 0
    with pytest.raises(ValueError, match=r"rows of zeros.*the first is row 7777"):
        cover(rows, radius=0.3, metric="cosine")
    with pytest.raises(ValueError, match=r"largest absolute value of data must be between"):
        cover(np.full((2000, 3), 1e20, np.float32), 5)


def test_rows_that_are_sent_have_no_limit(on_gpu):
    with pytest.raises(ValueError, match=r"max_memory must not be given for rows on a GPU.*set_device"):
        cover(drawn(), 5, max_memory="1GB")
