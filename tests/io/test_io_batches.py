"""Folders and batches: which files a folder stands for, rows that run on across files, any row to begin at, a thread that ends."""

import gc
import os
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import io_cases
from file_kinds import write_any
from reduset import io
from reduset.io import files_of, open_files
from reduset.io.batching import ahead

COUNTS = (700, 1, 1300, 0, 450)  # rows of five files, one of them empty


def frame(count, seed):
    rng = np.random.default_rng(seed)
    a = rng.lognormal(3, 2, count)
    a[rng.uniform(size=count) < 0.05] = np.nan
    return pd.DataFrame({"a": a, "b": rng.normal(size=count), "mass": rng.uniform(1, 2, count)})


def write(path, table):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, row_group_size=300)
    elif path.suffix == ".orc":
        pa.orc.write_table(pa.Table.from_pandas(table, preserve_index=False), str(path), batch_size=150, stripe_size=1)
    elif path.suffix == ".feather":
        pa.feather.write_feather(table, str(path), chunksize=200)
    elif path.suffix == ".arrows":
        arrow = pa.Table.from_pandas(table, preserve_index=False)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, arrow.schema) as writer:
            writer.write_table(arrow, max_chunksize=250)
    elif path.suffix == ".npy":
        np.save(path, table.to_records(index=False))
    elif path.suffix == ".npz":
        np.savez(path, X=table.to_records(index=False))
    elif path.suffix == ".fcs":
        io_cases.write_fcs(path, table.to_numpy(), list(table), kind="D", extra={"SPILL": "2,a,b,1,0.1,0.2,1"})


@pytest.fixture(params=[".csv", ".parquet", ".feather", ".orc", ".arrows", ".npy", ".npz", ".fcs"])
def folder(request, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    counts = [count for count in COUNTS if count] if request.param in (".fcs", ".csv") else COUNTS  # these cannot be empty
    for number, count in enumerate(counts):
        write(folder / f"part-{number * 5}{request.param}", frame(count, number))
    return folder


OPTIONS = {"columns": ["a", "b"], "weight_column": "mass", "transform": {"a": "logicle:T=5000,W=0.5"}, "missing": "drop"}


def rows_in(name):
    """Whether a file of the folder has rows, by the number in its name."""
    place = int(name.rsplit("-", 1)[1].split(".")[0]) // 5
    return name.endswith((".csv", ".fcs")) or COUNTS[place]


def joined(parts):
    return np.concatenate([np.column_stack([part.values, part.weights]) for part in parts])


@pytest.mark.covering_cases
@pytest.mark.parametrize("rows", [64, 700, 5000])
def test_batches_of_a_folder_are_its_table_cut_in_pieces(folder, rows):
    whole = io.read(folder, **OPTIONS)
    assert len(whole) + whole.dropped == sum(COUNTS)
    parts = list(io.batches(folder, rows=rows, **OPTIONS))
    assert {len(part) for part in parts[:-1]} <= {rows}
    np.testing.assert_allclose(joined(parts), joined([whole]), rtol=1e-9)  # blocks of other sizes round otherwise
    assert sum(part.dropped for part in parts) == whole.dropped > 0
    assert list(dict.fromkeys(name for part in parts for name in part.sources)) == [name for name in whole.sources if rows_in(name)]


def test_reading_goes_on_at_any_row_with_the_same_numbers_to_the_last_bit(folder):
    reading = io.batches(folder, rows=97, **OPTIONS)
    parts, positions = [], []
    for part in reading:
        parts.append(part)
        positions.append(reading.position)
    assert positions[-1] == sum(COUNTS)
    for cut in (0, 3, 7, len(parts) - 2, len(parts) - 1):
        again = io.batches(folder, rows=97, start=positions[cut], **OPTIONS)
        rest = list(again)
        assert again.position == sum(COUNTS)
        if cut < len(parts) - 1:
            np.testing.assert_array_equal(joined(rest), joined(parts[cut + 1 :]))
            assert sum(part.dropped for part in rest) == sum(part.dropped for part in parts[cut + 1 :])
        else:
            assert rest == []


def test_rows_at_the_end_that_are_all_left_out_are_counted_when_reading_goes_on(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,1\n2,1\n,1\n,1\n")
    reading = io.batches(tmp_path / "t.csv", start=2, missing="drop")
    assert list(reading) == []
    assert reading.position == 4


def test_what_is_known_of_all_batches_is_known_before_the_first(folder):
    reading = io.batches(folder, **OPTIONS)
    assert reading.columns == ("a", "b")
    assert reading.scales == {"a": "logicle:T=5000,W=0.5"}
    suffix = next(folder.iterdir()).suffix
    if suffix in (".arrow", ".feather") and not hasattr(
        pa.ipc.RecordBatchFileReader, "count_rows"
    ):  # older pyarrow: only by reading
        assert reading.total is None
    else:
        assert reading.total == (None if suffix in (".csv", ".arrows") else sum(COUNTS))
    assert len(reading.sources) == len(list(folder.iterdir()))
    assert reading.position == 0
    assert "3 rows with missing values left out" in reading.notes(3)


def test_batches_of_many_columns_have_fewer_rows(tmp_path):
    np.save(tmp_path / "t.npy", np.zeros((2500, 4096), np.uint8))
    assert [len(part) for part in io.batches(tmp_path / "t.npy")] == [1024, 1024, 452]
    assert io.batches(tmp_path / "t.npy", columns=["x5"]).rows == 65536


def test_a_start_beyond_the_end_is_refused(tmp_path):
    write(tmp_path / "t.parquet", frame(50, 0))
    with pytest.raises(ValueError, match=r"start .*got 51"):
        io.batches(tmp_path / "t.parquet", start=51)
    with pytest.raises(ValueError, match="start must be at least 0"):
        io.batches(tmp_path / "t.parquet", start=-1)


def test_batches_without_a_row_are_refused(tmp_path):
    write(tmp_path / "t.parquet", frame(0, 0))
    with pytest.raises(io.FileError, match="has no rows to read"):
        next(io.batches(tmp_path / "t.parquet"))
    write(tmp_path / "t.parquet", frame(9, 0).assign(a=np.nan))
    with pytest.raises(io.FileError, match="no rows are left, for each lacks a value"):
        next(io.batches(tmp_path / "t.parquet", missing="drop"))


def test_rows_in_messages_are_counted_from_the_beginning_wherever_reading_began(tmp_path):
    table = frame(1000, 0).assign(a=1.0)
    table.loc[900, "a"] = np.nan
    for name in ("t.parquet", "t.npy", "t.csv", "t.orc"):
        write(tmp_path / name, table)
        with pytest.raises(io.FileError, match="has no value in row 901"):
            list(io.batches(tmp_path / name, start=650, rows=100))


# -- folders ---------------------------------------------------------------------------------------------------------


def test_files_of_a_folder_come_in_the_order_in_which_people_count(tmp_path):
    for name in ("part-10.csv", "part-9.csv", "part-2b.csv", "part-2.csv", "part-02.csv", ".hidden.csv", "_SUCCESS", "notes.md"):
        (tmp_path / name).write_text("a\n1\n")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "more.csv").write_text("a\n1\n")
    named = [os.path.relpath(name, tmp_path) for name in files_of(tmp_path)]
    assert named == ["part-02.csv", "part-2.csv", "part-2b.csv", "part-9.csv", "part-10.csv"]
    assert files_of([tmp_path / "part-9.csv", tmp_path / "deeper"]) == [
        str(tmp_path / "part-9.csv"),
        str(tmp_path / "deeper" / "more.csv"),
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".orc"])
def test_a_data_set_is_searched_to_its_leaves(tmp_path, suffix):
    for number, place in enumerate(("year=2023/month=2", "year=2023/month=11", "year=2024/month=1", "_temporary/0", ".old")):
        (tmp_path / place).mkdir(parents=True)
        write(tmp_path / place / f"part-0.snappy{suffix}", frame(20 + number, number))
    (tmp_path / "year=2023" / "_metadata").write_bytes(b"PAR1")
    table = io.read(tmp_path, missing="drop")
    assert [os.path.relpath(name, tmp_path).rsplit("/", 1)[0] for name in table.sources] == [
        "year=2023/month=2",
        "year=2023/month=11",
        "year=2024/month=1",
    ]
    assert len(table) + table.dropped == 20 + 21 + 22


def test_a_folder_of_several_formats_is_refused_in_one_line(tmp_path):
    write(tmp_path / "a.csv", frame(5, 0))
    write(tmp_path / "b.parquet", frame(5, 0))
    for call in (io.read, io.batches, io.read_bags):
        with pytest.raises(
            io.FileError, match=r"several formats, CSV \(a.csv\) and Parquet \(b.parquet\); name the files"
        ) as caught:
            call(tmp_path)
        assert "\n" not in str(caught.value)


def test_files_of_a_folder_must_have_the_same_columns(tmp_path):
    write(tmp_path / "a.parquet", frame(5, 0))
    write(tmp_path / "b.parquet", frame(5, 0).rename(columns={"b": "c"}))
    with pytest.raises(io.FileError, match=r"b.parquet: has no column 'b', unlike .*a.parquet"):
        io.batches(tmp_path, missing="drop")


def test_every_file_of_a_folder_is_a_bag(tmp_path):
    for number in range(3):
        write(tmp_path / f"s{number}.npy", frame(10 + number, number))
    assert {name: len(bag) + bag.dropped for name, bag in io.read_bags(tmp_path, missing="drop").items()} == {
        "s0": 10,
        "s1": 11,
        "s2": 12,
    }


def test_thousands_of_files_are_not_held_open(tmp_path):
    resource = pytest.importorskip("resource")
    for number in range(80):
        write(tmp_path / f"{number}.npy", frame(5, number).fillna(0.0))
        io_cases.write_fcs(tmp_path / f"{number}.fcs", frame(5, number).fillna(0.0).to_numpy(), ["a", "b", "mass"])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + 30, hard))
    try:
        for suffix in (".npy", ".fcs"):
            names = [tmp_path / f"{number}{suffix}" for number in range(80)]
            assert len(io.read(names)) == sum(len(part) for part in io.batches(names, rows=64)) == 400
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_is_said_of_all_files_is_said_once(tmp_path):
    for number in range(6):
        table = frame(10, number).fillna(0.0)
        write(tmp_path / f"{number}.parquet", table.assign(site="north") if number else table.assign(site="n", more="m"))
    notes = io.read(tmp_path, transform="asinh:2").notes
    assert notes == (
        f"{tmp_path / '0.parquet'}: columns without numbers are omitted: site, more",
        "asinh:2 of 3 columns",
        f"{tmp_path / '1.parquet'} and 4 other files: columns without numbers are omitted: site",
    )


# -- the thread that reads ahead -------------------------------------------------------------------------------------


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("reduset-read")]


def test_the_next_batch_is_made_while_this_one_is_at_work_and_no_more():
    made = []

    def items():
        for number in range(10):
            made.append(number)
            yield number

    coming = ahead(items())
    assert next(coming) == 0
    deadline = time.monotonic() + 10
    while len(made) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)
    assert made == [0, 1]
    assert list(coming) == list(range(1, 10))
    assert readers() == []


def test_what_goes_wrong_while_reading_ahead_is_raised_in_its_turn(tmp_path):
    table = frame(5000, 0).fillna(0.0)
    table.loc[4321, "b"] = np.nan
    write(tmp_path / "t.parquet", table)
    reading = io.batches(tmp_path / "t.parquet", rows=1000)
    assert sum(len(next(reading)) for _ in range(4)) == 4000
    with pytest.raises(io.FileError, match="column 'b' has no value in row 4322"):
        next(reading)
    assert readers() == []


@pytest.mark.parametrize("how", ["close", "forget"])
def test_the_thread_ends_with_an_abandoned_iterator(how, tmp_path):
    write(tmp_path / "t.parquet", frame(5000, 0).fillna(0.0))
    reading = io.batches(tmp_path / "t.parquet", rows=100)
    next(reading)
    assert len(readers()) == 1
    if how == "close":
        reading.close()
        assert list(reading) == []
    else:
        del reading
        gc.collect()
    assert readers() == []


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy", "fcs"])
def test_files_are_read_in_passes_and_by_row_number(tmp_path, suffix):
    paths = [write_any(tmp_path / f"{k}.{suffix}", seed=k, count=count) for k, count in enumerate((300, 6, 200))]
    whole, files = io.read(paths, identifiers="keep"), open_files(paths, identifiers="keep")
    assert files.columns == whole.columns
    assert files.rows in (None, 506)
    for rows in (64, None):
        np.testing.assert_array_equal(np.concatenate([block.values for block in files.blocks(rows)]), whole.values)
    for rows in ([0], [505], [3, 299, 300, 304, 305, 400], range(506), []):
        if len(rows):
            np.testing.assert_array_equal(files.take(np.array(rows)).values, whole.values[rows])
    with pytest.raises(io.FileError, match="no row 506"):
        files.take(np.array([2, 506]))
