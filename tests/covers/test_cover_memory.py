"""Covers and audits within a memory limit: the same results from files, and the peak below the estimate."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import feather, parquet

from reduset import cover
from reduset._engine import radius_search, working_set
from reduset._progress import Progress
from reduset.covers import audit, memory
from reduset.covers.memory import memory_of
from reduset.covers.parts import RowParts, scratch

MEASURE = """
import ctypes, json, sys, threading
import numpy as np
from reduset import cover
from reduset.covers import audit

def anonymous():  # resident memory of this process without pages of files
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon"))

def peak(work):
    ctypes.CDLL(None).malloc_trim(0)
    over, before = threading.Event(), anonymous()
    seen = [before]
    def watch():
        while not over.wait(0.001):
            seen.append(anonymous())
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = work()
    finally:
        over.set()
        watcher.join()
    return result, max(seen) - before

small, large, limit = sys.argv[1:]
calls = {
    "net": lambda path, kept: cover(path, radius=1.0, keep="first", max_memory=limit),
    "size": lambda path, kept: cover(path, 50, max_memory=limit),
    "audit": lambda path, kept: audit(path, np.arange(0, kept, 50), 1.0, compare=False, max_memory=limit),
}
for name, call in calls.items():
    call(small, 5000)  # compiles
    result, most = peak(lambda: call(large, 100_000))
    digest = result.assignments.sum(), result.radius
    print(json.dumps({"name": name, "peak": most, "needed": result._memory.needed, "digest": list(map(float, digest))}))
"""


def latent_rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, 8)).astype(np.float32)
    latent[n // 2 : n // 2 + n // 5] = latent[: n // 5]
    return latent @ rng.normal(size=(8, d)).astype(np.float32) + 0.01 * rng.normal(size=(n, d)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_peak_of_a_file_of_200_mb_is_below_the_estimate_and_the_limit(tmp_path):
    """The peak is the growth of anonymous resident memory (RssAnon), sampled each millisecond in another process."""
    rows = latent_rows(100_000, 512)
    np.save(tmp_path / "large.npy", rows)
    np.save(tmp_path / "small.npy", rows[:5000])
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "small.npy"), str(tmp_path / "large.npy"), "60MB"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | {"REDUSET_NUM_THREADS": "2"})
    measured = {entry["name"]: entry for entry in map(json.loads, lines.stdout.splitlines())}
    kept = np.arange(0, 100_000, 50)
    expected = {
        "net": cover(rows, radius=1.0, keep="first"),
        "size": cover(rows, 50),
        "audit": audit(rows, kept, 1.0, compare=False),
    }
    for name, found in expected.items():
        assert measured[name]["peak"] <= measured[name]["needed"] <= 60e6
        assert measured[name]["digest"] == [found.assignments.sum(), found.radius]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", ["latent", "bell"])
def test_a_limit_changes_no_result(tmp_path, monkeypatch, metric, kind):
    monkeypatch.setattr(memory, "CENTRES_SHARE", 0.01)  # an audit in parts
    rng = np.random.default_rng(1)
    rows = latent_rows(3000, 40) if kind == "latent" else rng.normal(size=(3000, 40)).astype(np.float16)
    rows[2000:2500] = rows[:500]
    radius = {"euclidean": 5.0, "cosine": 0.3}[metric]
    np.save(tmp_path / "rows.npy", rows)
    limit = {"max_memory": "20MB", "metric": metric}
    small = working_set.SearchSizes(8, 256, 300, 10**6)  # few coordinates and small parts
    sizes = working_set.search_sizes
    monkeypatch.setattr(radius_search, "search_sizes", lambda n, d, most: small if most < np.inf else sizes(n, d, most))
    for options in ({"radius": radius, "keep": "medoid"}, {"size": 40}):
        expected, found = cover(rows, metric=metric, **options), cover(tmp_path / "rows.npy", **options, **limit)
        assert found.indices.tolist() == expected.indices.tolist()
        np.testing.assert_array_equal(found.assignments, expected.assignments)
        np.testing.assert_array_equal(found.assignment_distances, expected.assignment_distances)
        assert found.describe().facts()["memory"] <= 20e6
        assert "20 MB allowed" in str(found)
    net, whole = (
        cover(tmp_path / "rows.npy", radius=radius, keep="last", **limit),
        cover(rows, radius=radius, keep="last", metric=metric),
    )
    for one, other in zip(net.pairs(radius / 2), whole.pairs(radius / 2), strict=True):
        np.testing.assert_array_equal(one, other)
    components = [
        [(len(part.rows), part.diameter) for part in each.components(radius / 2, max_memory=None)] for each in (net, whole)
    ]
    assert components[0] == components[1]
    kept = rng.choice(3000, 1500, replace=False)
    one, other = audit(tmp_path / "rows.npy", kept, radius, **limit), audit(rows, kept, radius, metric=metric)
    np.testing.assert_array_equal(one.distances, other.distances)
    np.testing.assert_array_equal(one.assignments, other.assignments)
    np.testing.assert_array_equal(one.close.first, other.close.first)


def test_rows_of_an_update_are_not_copied(tmp_path):
    rows = latent_rows(2000, 16)
    np.save(tmp_path / "old.npy", rows[:1500])
    np.save(tmp_path / "new.npy", rows[1500:])
    more = cover(tmp_path / "old.npy", radius=3.0, max_memory="20MB").update(tmp_path / "new.npy", max_memory="20MB")
    assert more.indices.tolist() == cover(rows, radius=3.0, keep="first").indices.tolist()
    assert isinstance(more._rows.values, RowParts)
    assert len(more.pairs(3.0).first) == len(cover(rows, radius=3.0).pairs().first)


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_tables_and_blocks_above_the_limit_are_in_a_temporary_file(tmp_path, monkeypatch, kind):
    rows = latent_rows(6000, 10).astype(np.float64)
    for k, part in enumerate(np.split(rows, 3)):
        if kind == "csv":
            np.savetxt(tmp_path / f"part-{k}.csv", part, delimiter=",", header=",".join("abcdefghij"), comments="", fmt="%.17g")
        elif kind == "parquet":
            parquet.write_table(arrow.table({"e": arrow.array(list(part))}), tmp_path / f"part-{k}.parquet", row_group_size=700)
        else:
            feather.write_feather(arrow.table({"e": arrow.array(list(part))}), tmp_path / f"part-{k}.feather", chunksize=700)
    expected = cover(rows, radius=2.0)
    monkeypatch.setattr("reduset.covers.rows.loadable", lambda limit: 1000)
    found = cover(tmp_path, radius=2.0, max_memory="20MB")
    assert isinstance(found._rows.values.parts[0], np.memmap)
    assert found.indices.tolist() == expected.indices.tolist()
    assert audit(tmp_path, found.indices, max_memory="20MB", compare=False).radius == expected.radius


def test_arrays_above_a_limit_are_in_a_temporary_file(monkeypatch):
    assert isinstance(scratch((100, 10), np.float32, 100), np.memmap)
    assert type(scratch((100, 10), np.float32, 4000)) is np.ndarray
    with pytest.raises(OSError, match=r"need a temporary file.*set TMPDIR to another folder"):
        scratch((1 << 40, 1 << 10), np.float32, 100)


@pytest.mark.parametrize(
    ("value", "expected"), [(None, np.inf), (5000, 5000), ("16GB", 16e9), ("1.5 gib", 1.5 * 2**30), ("200M", 2e8), ("77", 77)]
)
def test_sizes_of_memory(value, expected):
    assert memory_of(value) == expected


@pytest.mark.parametrize("value", ["much", "", 0, -1, True, np.nan, "GB", [1]])
def test_wrong_sizes_of_memory_are_named(value):
    with pytest.raises(ValueError, match='max_memory must be a number of bytes, or text such as "16GB"'):
        cover(np.ones((5, 2)), 1, max_memory=value)


def test_a_limit_that_does_not_suffice_names_one_that_does(tmp_path):
    rows = latent_rows(5000, 16)
    for call in (
        lambda limit: cover(rows, radius=1.0, keep="first", max_memory=limit),
        lambda limit: cover(rows, 100, max_memory=limit),
        lambda limit: audit(rows, np.arange(20), max_memory=limit),
    ):
        with pytest.raises(
            ValueError, match=r"max_memory must be at least [\d.]+ MB for 5,000 rows of 16 columns, got 0.1 MB"
        ) as error:
            call("100kB")
        least = float(str(error.value).split(" MB")[0].split()[-1])
        call(f"{least * 1.01:.6f}MB")
    np.save(tmp_path / "whole.npy", np.arange(10_000).reshape(1000, 10))
    found = cover(rows, radius=3.0)
    for call in (found.pairs, found.components, found.audit):
        with pytest.raises(ValueError, match="max_memory must be at least"):
            call(max_memory="100kB")
    with pytest.raises(ValueError, match="max_memory must be at least"):
        found.update(rows, max_memory="100kB")
    with pytest.raises(ValueError, match="must hold floating-point numbers where they exceed max_memory"):
        cover(tmp_path / "whole.npy", 5, max_memory="100kB")


def test_the_estimate_is_reported_before_the_start(capsys):
    told = []
    cover(latent_rows(500, 8), 5, progress=lambda *given: told.append(given))
    assert told[0][0] == "memory, MB"
    cover(latent_rows(500, 8), 5, max_memory="50MB", progress=True)
    assert "working set of at most" in capsys.readouterr().err


def test_printed_progress_shows_the_remaining_time(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("reduset._progress.time.monotonic", lambda: now[0])
    report = Progress(True).stage("choosing")
    for second, done in ((1, 100), (2, 200), (11, 1000)):
        now[0] = float(second)
        report(done, 2000)
    lines = capsys.readouterr().err.split("\r")
    assert "100/2,000    1.0 s  " in lines[1]  # nothing is known yet
    assert "200/2,000    2.0 s, 18 s left" in lines[2]
    assert "1,000/2,000   11.0 s, 11 s left" in lines[3]


def test_parts_are_one_array():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(n, 3)).astype(dtype) for n, dtype in ((4, np.float16), (1, np.float32), (7, np.float16))]
    parts, whole = RowParts(arrays), np.concatenate(arrays)
    assert (parts.shape, parts.dtype, len(parts)) == ((12, 3), np.float32, 12)
    for rows in (slice(0, 12), slice(3, 6), slice(5, 5), slice(None, None, 5), [11, 0, 4, 4], [], np.arange(4, 9)):
        np.testing.assert_array_equal(parts[np.array(rows, int) if isinstance(rows, list) else rows], whole[rows])
