"""Sources of covers: shards, patterns, safetensors, bfloat16, and saved covers as Parquet."""

import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet
from safetensors.numpy import save_file

from reduset import cover
from reduset.covers import Cover, audit
from reduset.io import FileError


@pytest.fixture(scope="module")
def rows():
    rows = np.random.default_rng(0).normal(size=(600, 12)).astype(np.float32)
    rows[500:] = rows[:100]
    return rows


def equal(found, expected):
    assert found.indices.tolist() == expected.indices.tolist()
    np.testing.assert_array_equal(found.assignments, expected.assignments)
    np.testing.assert_array_equal(found.assignment_distances, expected.assignment_distances)
    assert found.radius == expected.radius


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("source", ["folder", "pattern", "list", "safetensors", "safetensors folder", "parquet folder"])
def test_shards_are_one_array(tmp_path, rows, dtype, source):
    given = rows.astype(dtype)
    parts = [given[:50], given[50:400], given[400:]]
    is_brain = dtype is ml_dtypes.bfloat16
    for name, part in zip(("part-1", "part-2", "part-10"), parts, strict=True):  # natural order: 10 is last
        if source.startswith("safetensors"):
            save_file({"embedding": part, "bias": np.ones(4, np.float32)}, tmp_path / f"{name}.safetensors")
        elif source.startswith("parquet"):
            lists = arrow.array(list(part.astype(np.float32) if is_brain else part))
            parquet.write_table(arrow.table({"id": np.arange(len(part)), "e": lists}), tmp_path / f"{name}.parquet")
        else:
            np.save(tmp_path / f"{name}.npy", part.astype(np.float32) if is_brain else part)
    if source == "safetensors":
        save_file({"embedding": given}, tmp_path / "whole.safetensors")
    data = {
        "folder": tmp_path,
        "pattern": str(tmp_path / "part-*.npy"),
        "list": [tmp_path / f"part-{k}.npy" for k in (1, 2, 10)],
        "safetensors": tmp_path / "whole.safetensors",
    }.get(source, tmp_path)
    for options in ({"radius": 0.5}, {"size": 30, "metric": "cosine"}):
        equal(cover(data, **options), cover(given.astype(np.float32), **options))
    assert audit(data, np.arange(40)).radius == audit(given.astype(np.float32), np.arange(40)).radius


def test_arrays_in_bfloat16_are_those_in_single_precision(rows, monkeypatch):
    given = rows.astype(ml_dtypes.bfloat16)
    expected = cover(given.astype(np.float32), radius=0.5, metric="cosine")
    equal(cover(given, radius=0.5, metric="cosine"), expected)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(int16=np.int16))
    equal(cover(Tensor(given), radius=0.5, metric="cosine"), expected)
    given[3, 4] = np.nan
    with pytest.raises(ValueError, match="data must be finite, got nan in row 3, column 4"):
        cover(given, 5)


class Tensor:
    """As a tensor of torch on the processor."""

    dtype = "torch.bfloat16"

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def view(self, dtype):
        return self.values.view(dtype)

    def __dlpack_device__(self):
        return (1, 0)


def test_wrong_shards_and_tensors_are_named(tmp_path, rows):
    np.save(tmp_path / "a.npy", rows)
    np.save(tmp_path / "b.npy", rows[:, :5])
    with pytest.raises(FileError, match=r"b\.npy: must have 12 columns like .*a\.npy, got 5"):
        cover(tmp_path, 3)
    with pytest.raises(FileError, match="no file has such a name"):
        cover(tmp_path / "none-*.npy", 3)
    path = tmp_path / "two.safetensors"
    save_file({"a": rows, "b": rows[:9], "c": np.ones(3)}, path)
    with pytest.raises(FileError, match=r"has several matrices \(a, b\); choose one with column="):
        cover(path, 3)
    assert cover(path, 3, column="b").assignments.shape == (9,)
    for column, message in (("c", "has no matrix 'c' of floating-point numbers; it holds a, b"), ("d", "no matrix 'd'")):
        with pytest.raises(FileError, match=message):
            cover(path, 3, column=column)
    save_file({"c": np.ones((2, 2), np.int32)}, path)
    with pytest.raises(FileError, match="has no matrix of floating-point numbers; it holds c"):
        cover(path, 1)
    path.write_bytes((10**15).to_bytes(8, "little") + b"{}")
    with pytest.raises(FileError, match=r"two\.safetensors: cannot be read"):
        cover(path, 1)


CALLS = {
    "net": {"radius": 0.5},
    "size": {"size": 20},
    "start": {"size": 20, "start": [3, 7]},
    "net with start": {"radius": 0.5, "start": [9, 4]},
    "no assignments": {"size": 5, "assignments": False},
    "one": {"size": 1},
}


@pytest.mark.parametrize("name", CALLS)
def test_covers_are_saved_with_a_row_for_each_row(tmp_path, rows, name):
    found = cover(rows.astype(np.float16), **CALLS[name])
    loaded = []
    for path in (tmp_path / "cover.parquet", tmp_path / "cover.npz"):
        found.save(path)
        loaded.append(Cover.load(path))
    for again in loaded:
        assert str(again) == str(found).split("\n  memory")[0]
        for field in ("indices", "distances", "start", "assignments", "assignment_distances", "points"):
            np.testing.assert_array_equal(getattr(again, field), getattr(found, field))
    table = parquet.read_table(tmp_path / "cover.parquet")
    assert table["row"].to_pylist() == list(range(600))
    assert np.flatnonzero(table["kept"].to_numpy()).tolist() == sorted([*found.start, *found.indices])
    if found.assignments[0] >= 0:
        centres = np.concatenate([found.start, found.indices])
        np.testing.assert_array_equal(table["assignment"].to_numpy(), centres[found.assignments])


def test_parquet_files_that_are_no_covers_are_named(tmp_path, rows):
    path = tmp_path / "cover.parquet"
    parquet.write_table(arrow.table({"row": [1]}), path)
    with pytest.raises(FileError, match=r"cover\.parquet: describes no cover \(it has no entry 'reduset.Cover'"):
        Cover.load(path)
    with pytest.raises(ValueError, match=r"different rows of the data; save it as \.npz"):
        cover(rows, 3, start=rows[:2] + 1).save(path)
    cover(rows, radius=0.5).save(path)
    table = parquet.read_table(path)
    for name, values in (("assignment", [900] * 600), ("position", [7] * 600), ("distance", [-1.0] * 600), ("row", [3] * 600)):
        wrong = table.set_column(table.column_names.index(name), name, arrow.array(values))
        parquet.write_table(wrong.replace_schema_metadata(table.schema.metadata), path)
        with pytest.raises(FileError, match="describes no cover"):
            Cover.load(path)
    path.write_bytes(b"PAR1 no")
    with pytest.raises(FileError, match="describes no cover"):
        Cover.load(path)
