"""Interrupted covers that continue from a checkpoint, and checkpoints of something else."""

import numpy as np
import pytest

from reduset import cover
from reduset._engine import HostRows, lazy_cover
from reduset.covers import checkpoint, memory


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "RATIO", 0.0)
    monkeypatch.setattr(checkpoint, "MIN_PART", 50)
    monkeypatch.setattr(lazy_cover, "MIN_CANDIDATES", 8)  # many rounds
    monkeypatch.setattr(HostRows, "first_rows", 64)
    monkeypatch.setattr(memory, "traversal_sizes", lambda *given: (1 << 20, 64, 1000))


@pytest.fixture(scope="module")
def rows():
    rows = np.random.default_rng(0).normal(size=(3000, 6)).astype(np.float32)
    rows[2000:2500] = rows[:500] + np.float32(1e-3)
    return rows


class Interrupt:
    """Progress that interrupts the selection at the k-th report, and remembers the first one."""

    def __init__(self, at):
        self.at, self.seen = at, []

    def __call__(self, stage, done, total):
        if stage == "choosing":
            self.seen.append(done)
            if len(self.seen) == self.at:
                raise KeyboardInterrupt


@pytest.mark.parametrize(
    "options",
    [
        {"size": 400},
        {"size": 300, "metric": "cosine", "start": [5, 6]},
        {"size": 2000, "radius": 0.6},
        {"radius": 0.8, "keep": "last"},
        {"radius": 0.8, "keep": "medoid", "start": [7, 2100]},
        {"radius": 0.05, "metric": "cosine", "keep": np.arange(3000) % 7},
    ],
    ids=["size", "size from rows", "size and radius", "net", "net of medoids", "net of priorities"],
)
def test_an_interrupted_cover_continues_with_the_same_bits(tmp_path, rows, options):
    path = tmp_path / "cover.checkpoint"
    expected = cover(rows, **options)
    for at in (3, 2, 4):
        with pytest.raises(KeyboardInterrupt):
            cover(rows, checkpoint=path, progress=Interrupt(at), **options)
        assert path.exists()
    last = Interrupt(0)
    found = cover(rows, checkpoint=path, progress=last, **options)
    assert last.seen[0] > 0
    assert not path.exists()
    for field in ("indices", "distances", "assignments", "assignment_distances"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    assert (found.radius, found.spacing) == (expected.radius, expected.spacing)


def test_checkpoints_of_other_data_or_options_are_named(tmp_path, rows):
    path = tmp_path / "cover.checkpoint"

    def interrupted():
        path.unlink(missing_ok=True)
        with pytest.raises(KeyboardInterrupt):
            cover(rows, 400, checkpoint=path, progress=Interrupt(3))

    interrupted()
    changed = rows.copy()
    changed[0, 0] += 1
    calls = [
        (changed, {"size": 400}, "digest of rows"),
        (rows[:-1], {"size": 400}, "shape"),
        (rows.astype(np.float64), {"size": 400}, "type"),
        (rows, {"size": 401}, "size"),
        (rows, {"size": 400, "metric": "cosine"}, "metric"),
        (rows, {"size": 400, "start": [1]}, "start"),
        (rows, {"radius": 0.5}, "size"),
    ]
    for data, options, name in calls:
        with pytest.raises(ValueError, match=f"of the same data and options, but its {name} is .*delete the file"):
            cover(data, checkpoint=path, **options)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="is not a readable"):
        cover(rows, 400, checkpoint=path)


def test_files_are_rare_if_writing_takes_long(tmp_path, rows, monkeypatch):
    written = []
    monkeypatch.setattr(checkpoint, "RATIO", 100.0)
    write = checkpoint._archive.write
    monkeypatch.setattr(checkpoint._archive, "write", lambda *given: (written.append(1), write(*given)))
    reports = Interrupt(0)
    cover(rows, 400, checkpoint=tmp_path / "c", progress=reports)
    assert 1 <= len(written) <= 2 + len(reports.seen) // 2
