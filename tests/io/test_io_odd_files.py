"""Outputs that are links or pipes, and counts of rows that cannot be."""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reduset import Gaussian, KernelMean, io
from reduset.cli.entry import run

COUNT = 12345
SCRIPT = """
import sys
from reduset import io
try:
    io.read(sys.argv[1], group_column="site")
except io.FileError as error:
    print(error)
"""
ROWS = np.random.default_rng(0).normal(size=(COUNT, 1))


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "old.csv").write_text("old")
    link = tmp_path / "rows.csv"
    for target in ("old.csv", "new.csv"):  # of which one is not there yet
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / "far" / target)
        io.write_rows(link, ["a"], ROWS[:5])
        assert link.is_symlink()
        np.testing.assert_allclose(io.read(tmp_path / "far" / target).values, ROWS[:5])
    assert sorted(os.listdir(tmp_path / "far")) == ["new.csv", "old.csv"]
    model = tmp_path / "mean.npz"
    model.symlink_to(tmp_path / "far" / "mean.npz")
    KernelMean.from_samples(ROWS[:5], Gaussian(1.0)).save(model)
    assert model.is_symlink()
    assert KernelMean.load(tmp_path / "far" / "mean.npz").size == 5


def test_the_command_follows_links_and_keeps_what_is_read(tmp_path, capsys):
    rows, link = tmp_path / "rows.csv", tmp_path / "small.csv"
    io.write_rows(rows, ["a"], ROWS[:50])
    link.symlink_to(rows)
    assert run(["sketch", str(rows), "--size", "5", "-o", str(link)]) == 2
    assert "is an input, and would be overwritten" in capsys.readouterr().err
    link.unlink()
    link.symlink_to(tmp_path / "real.csv")
    assert run(["sketch", str(rows), "--size", "5", "-q", "-o", str(link)]) == 0
    assert link.is_symlink()
    assert len(io.read(tmp_path / "real.csv", weight_column="weight")) == 5
    link.unlink()
    link.symlink_to(tmp_path / "nowhere" / "real.csv")
    assert run(["sketch", str(rows), "--size", "5", "-o", str(link)]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_pipe_is_refused_before_any_work(tmp_path, capsys):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(io.FileError, match=r"pipe\.csv: is a pipe or a device"):
        io.write_rows(pipe, ["a"], ROWS[:5])
    with pytest.raises(OSError, match="is a pipe or a device"):
        KernelMean.from_samples(ROWS[:5], Gaussian(1.0)).save(pipe)
    io.write_rows(tmp_path / "rows.csv", ["a"], ROWS[:50])
    assert run(["sketch", str(tmp_path / "rows.csv"), "--size", "5", "-o", str(pipe)]) == 2
    assert "pipe.csv cannot be written: it is a pipe or a device" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["pipe.csv", "rows.csv"]


def zigzag(number):
    """A number as Parquet's metadata have it."""
    rest, out = (number << 1) ^ (number >> 63), b""
    while True:
        rest, low = rest >> 7, rest & 127
        out += bytes([low | (128 if rest else 0)])
        if not rest:
            return out


@pytest.mark.parametrize("places", ["all", "first", "last"])
def test_negative_counts_of_rows_in_parquet_are_refused(tmp_path, places):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ROWS[:, 0]}), path, store_schema=False, write_statistics=False)
    data = path.read_bytes()
    cut = (
        data.rindex(b"PAR1", 0, len(data) - 4) if data.count(b"PAR1") > 2 else len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    )
    before, footer = data[:cut], data[cut:]
    assert zigzag(COUNT) in footer
    if places == "all":
        footer = footer.replace(zigzag(COUNT), zigzag(-COUNT))
    elif places == "first":
        footer = footer.replace(zigzag(COUNT), zigzag(-COUNT), 1)
    else:
        footer = zigzag(-COUNT).join(footer.rsplit(zigzag(COUNT), 1))
    path.write_bytes(before + footer)
    with pytest.raises(io.FileError, match=r"t\.parquet: "):
        io.read(path)


@pytest.mark.parametrize("suffix", ["feather", "arrows"])
def test_negative_counts_of_rows_in_arrow_are_refused(tmp_path, suffix):
    path, table = tmp_path / f"t.{suffix}", pa.table({"a": ROWS[:, 0]})
    with (pa.ipc.new_file if suffix == "feather" else pa.ipc.new_stream)(path, table.schema) as writer:
        writer.write_table(table)
    data, number = path.read_bytes(), COUNT.to_bytes(8, "little")
    assert number in data
    path.write_bytes(data.replace(number, (-COUNT).to_bytes(8, "little", signed=True)))
    with pytest.raises(io.FileError, match=rf"t\.{suffix}: "):
        io.read(path)


@pytest.mark.parametrize("tol", ["1", "1.5", "5", "0", "-0.1", "nan"])
def test_a_tolerance_that_says_nothing_is_refused(tmp_path, capsys, tol):
    io.write_rows(tmp_path / "rows.csv", ["a"], ROWS[:50])
    rows = str(tmp_path / "rows.csv")
    for words in (["compress", rows, "-o", str(tmp_path / "small.npz")], ["cohort", rows, rows]):
        assert run([*words, "--tol", tol]) == 2
        assert "--tol must lie between 0 and 1, got" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["feather", "arrows"])
def test_texts_that_lie_outside_an_arrow_file_are_refused(tmp_path, suffix):
    path, count = tmp_path / f"t.{suffix}", 5
    table = pa.table({"a": ROWS[:count, 0], "site": ["north", "south", "east", "west", "north"]})
    with (pa.ipc.new_file if suffix == "feather" else pa.ipc.new_stream)(path, table.schema) as writer:
        writer.write_table(table)
    offsets = np.array([0, 5, 10, 14, 18, 23], "<i4")
    assert offsets.tobytes() in path.read_bytes()
    offsets[2] = 2**30
    path.write_bytes(path.read_bytes().replace(np.array([0, 5, 10, 14, 18, 23], "<i4").tobytes(), offsets.tobytes()))
    ended = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0  # it was a crash
    assert f"t.{suffix}: cannot be read as Arrow or Feather; it is damaged" in ended.stdout


def test_categories_and_dates_are_refused_with_the_option_that_makes_numbers_of_them(tmp_path):
    table = pd.DataFrame(
        {"a": [1.0, 2.0, 4.0], "site": ["n", "s", "n"], "day": pd.to_datetime(["2024-01-01", "2024-01-03", "2024-01-04"])}
    )
    table.to_parquet(tmp_path / "rows.parquet", index=False)
    for column, columns in (("site", ("a", "site=n", "site=s")), ("day", ("a", "day"))):
        seen = rf"column '{column}' must hold numbers, got .* in row 1; encode it \(encode='(.*)'\), or choose other columns"
        with pytest.raises(io.FileError, match=seen) as caught:
            io.read(tmp_path / "rows.parquet", columns=["a", column])
        way_out = re.search(seen, str(caught.value))[1]
        assert io.read(tmp_path / "rows.parquet", columns=["a", column], encode=way_out).columns == columns
