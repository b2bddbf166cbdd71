"""`reduset cover`: rows kept and owners written, going on from a file, and what is refused."""

import json

import numpy as np
import pytest
from pyarrow import csv, parquet

from cli_processes import in_this_process
from reduset import cover
from reduset.covers import audit


@pytest.fixture
def data(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float16)
    np.save(tmp_path / "e.npy", rows)
    return rows


def test_rows_kept_and_owners_are_those_of_the_library(tmp_path, data):
    keep, owners = tmp_path / "keep.parquet", tmp_path / "owners.csv"
    said = in_this_process("cover", "e.npy", "--size", 20, "-o", keep, "--assignments", owners, "--json", folder=tmp_path)
    found = cover(data, 20)
    kept, each = parquet.read_table(keep), csv.read_csv(owners)
    assert kept["row"].to_pylist() == found.indices.tolist()
    assert kept["count"].to_pylist() == found.counts.tolist()
    assert kept["distance"].to_pylist()[0] is None
    np.testing.assert_allclose(kept["distance"].to_pylist()[1:], found.distances[1:])
    np.testing.assert_array_equal(each["assignment"].to_numpy(), found.indices[found.assignments])
    facts = json.loads(said.stdout)
    assert facts["radius"] == pytest.approx(found.radius)
    assert (facts["n"], facts["size"], facts["start"]) == (300, 20, 0)


def test_going_on_from_what_was_kept_is_going_all_the_way(tmp_path, data):
    first, more = tmp_path / "first.parquet", tmp_path / "more.parquet"
    in_this_process("cover", "e.npy", "--size", 12, "--metric", "cosine", "-o", first, folder=tmp_path)
    said = in_this_process("cover", "e.npy", "--size", 8, "--metric", "cosine", "--start", first, "-o", more, folder=tmp_path)
    whole = cover(data, 20, metric="cosine").indices.tolist()
    assert parquet.read_table(first)["row"].to_pylist() + parquet.read_table(more)["row"].to_pylist() == whole
    assert "8 of 300 rows added to 12 existing centres" in said.stdout


def test_rows_to_go_on_from_are_whole_numbers(tmp_path, data):
    (tmp_path / "start.csv").write_text("row\n1.7\n3\n")
    said = in_this_process("cover", "e.npy", "--size", 3, "--start", "start.csv", "-o", "keep.csv", folder=tmp_path, code=2)
    assert "--start must hold whole row numbers, got 1.7" in said.stderr


def test_rows_that_are_none_are_told_with_the_file(tmp_path):
    np.save(tmp_path / "odd.npy", np.array([["a"], ["b"]]))
    said = in_this_process("cover", "odd.npy", "--size", 1, "-o", "keep.csv", folder=tmp_path, code=2)
    assert "odd.npy: data must hold numbers, got dtype <U1" in said.stderr
    assert said.stderr.count("\n") == 1


def test_a_radius_says_how_many(tmp_path, data):
    in_this_process("cover", "e.npy", "--radius", 3.0, "-o", tmp_path / "keep.csv", folder=tmp_path)
    assert csv.read_csv(tmp_path / "keep.csv").num_rows == cover(data, radius=3.0).size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--size (the number of rows) or --radius (the largest distance to a chosen row) must be given"),
        (["--size", 5, "--metric", "l1"], "--metric must be one of 'cosine', 'euclidean'; got 'l1'"),
        (["--size", 500], "size must"),
        (["--size", 5, "--start", "none.parquet"], "none.parquet"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path, data, options, message):
    said = in_this_process("cover", "e.npy", *options, "-o", tmp_path / "keep.parquet", folder=tmp_path, code=2)
    assert message in said.stderr
    assert said.stderr.count("\n") == 1
    assert not (tmp_path / "keep.parquet").exists()


def test_priorities_come_by_name_or_from_a_file(tmp_path):
    rows = np.repeat(np.random.default_rng(1).normal(size=(50, 4)), 2, axis=0)
    np.save(tmp_path / "e.npy", rows)
    (tmp_path / "scores.csv").write_text("score\n" + "\n".join(["1", "2"] * 50) + "\n")
    for keep, kept in (("first", 0), ("last", 1), ("scores.csv", 1)):
        in_this_process("cover", "e.npy", "--radius", 0.1, "--keep", keep, "-o", "keep.csv", folder=tmp_path)
        assert set(csv.read_csv(tmp_path / "keep.csv")["row"].to_numpy() % 2) == {kept}
    said = in_this_process("cover", "e.npy", "--radius", 0.1, "--keep", "best", "-o", "keep.csv", folder=tmp_path, code=2)
    assert "keep must be one of" in said.stderr


def test_shards_are_covered_and_audited_within_a_limit(tmp_path, data):
    (tmp_path / "shards").mkdir()
    for k in range(3):
        np.save(tmp_path / "shards" / f"e-{k}.npy", data[100 * k : 100 * (k + 1)])
    options = ["--max-memory", "20MB", "--json"]
    given = ["cover", "shards/e-*.npy", "--radius", 3.0, "-o", "keep.parquet", "--checkpoint", "state.npz"]
    said = in_this_process(*given, *options, folder=tmp_path)
    expected = cover(data, radius=3.0)
    assert parquet.read_table(tmp_path / "keep.parquet")["row"].to_pylist() == expected.indices.tolist()
    assert 0 < json.loads(said.stdout)["memory"] <= 20e6
    assert not (tmp_path / "state.npz").exists()
    said = in_this_process("audit", "shards", "keep.parquet", *options, folder=tmp_path)
    assert json.loads(said.stdout)["radius"] == pytest.approx(expected.radius)
    said = in_this_process(*given, "--max-memory", "little", folder=tmp_path, code=2)
    assert "number of bytes, or text such as \"16GB\"; got 'little'" in said.stderr
    said = in_this_process(*given[:-1], "none/state.npz", folder=tmp_path, code=2)
    assert "none/state.npz cannot be written: there is no folder none" in said.stderr


def test_a_list_of_kept_rows_is_audited(tmp_path, data):
    in_this_process("cover", "e.npy", "--size", 20, "-o", "keep.parquet", folder=tmp_path)
    said = in_this_process("audit", "e.npy", "keep.parquet", "--radius", 3.0, "-o", "distances.csv", "--json", folder=tmp_path)
    facts, found = json.loads(said.stdout), audit(data, cover(data, 20).indices, 3.0)
    assert facts["radius"] == pytest.approx(found.radius)
    assert facts["uncovered"] == len(found.uncovered)
    table = csv.read_csv(tmp_path / "distances.csv")
    np.testing.assert_allclose(table["distance"].to_numpy(), found.distances)
    np.testing.assert_array_equal(table["assignment"].to_numpy(), found.kept[found.assignments])
    (tmp_path / "wrong.csv").write_text("row\n3\n3\n")
    said = in_this_process("audit", "e.npy", "wrong.csv", folder=tmp_path, code=2)
    assert "keep must hold each row once, got row 3 2 times" in said.stderr
