"""Peak memory while reading, of a process of its own: the table and little more; and what has no room is refused beforehand."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from reduset import io
from reduset.cli.entry import run
from reduset.io import guard

pytestmark = pytest.mark.slow

ROWS, COLUMNS = 1_200_000, 6

CODE = """
import os, sys
from reduset import io

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

def measure(small, large, way):
    columns = [f"{'x' if small.endswith('npy') else 'c'}{k}" for k in range(6)]

    def read(path):
        return io.read(path, columns=columns) if way == "read" else sum(len(part) for part in io.batches(path, columns=columns))

    read(small)  # what the libraries themselves take
    before = peak()
    kept = read(large)
    return peak() - before

for case in zip(*[iter(sys.argv[1:])] * 3):  # each in a child of its own, whose peak begins with what the imports take
    child = os.fork()
    if not child:
        print(measure(*case), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
"""
WHOLE = [".parquet", ".feather", ".orc", ".npz"]
IN_BATCHES = [".parquet", ".feather", ".orc", ".npz", "-C.npy", "-F.npy", "-parts"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    for name, rows in (("small", 1000), ("large", ROWS)):
        values = np.random.default_rng(0).random((rows, 2 * COLUMNS))
        table = pa.table({f"c{k}": values[:, k] for k in range(2 * COLUMNS)})
        pq.write_table(table, folder / f"{name}.parquet")  # in one group of rows
        pa.feather.write_feather(table, str(folder / f"{name}.feather"), compression="lz4")
        pa.orc.write_table(table, str(folder / f"{name}.orc"), stripe_size=4 << 20, batch_size=1 << 14)
        for kind in ("C", "F"):
            np.save(folder / f"{name}-{kind}.npy", np.asarray(values[:, :COLUMNS], order=kind))
        parts = folder / f"{name}-parts"
        parts.mkdir()
        for part in range(6):
            pq.write_table(table.slice(part * rows // 6, rows // 6), parts / f"{part}.parquet")
        np.savez(folder / f"{name}.npz", X=np.rec.fromarrays(values.T, names=table.column_names))
        pa.csv.write_csv(table.select(table.column_names[:COLUMNS]).slice(0, rows // 2), folder / f"{name}.csv")
    return folder


@pytest.fixture(scope="module")
def peaks(folder):
    """How far memory rose above what it was, by suffix and way of reading, as a share of the table."""
    cases = [*((suffix, "read") for suffix in [*WHOLE, ".csv"]), *((suffix, "batches") for suffix in IN_BATCHES)]
    words = [word for suffix, way in cases for word in (str(folder / f"small{suffix}"), str(folder / f"large{suffix}"), way)]
    out = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=True)
    return {
        case: int(risen) / (8 * COLUMNS * (ROWS if case[0] != ".csv" else ROWS // 2))
        for case, risen in zip(cases, out.stdout.split(), strict=True)
    }


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("suffix", WHOLE)
def test_reading_half_the_columns_takes_little_more_than_these(peaks, suffix):
    assert 0.9 < peaks[suffix, "read"] < 2.0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_text_takes_its_numbers_twice_and_some_blocks(peaks):
    assert peaks[".csv", "read"] < 2.0 + (64 << 20) / (8 * COLUMNS * ROWS // 2)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("suffix", IN_BATCHES)
def test_batches_hold_little_at_a_time(peaks, suffix):
    assert peaks[suffix, "batches"] < 0.75


def test_rows_without_room_for_the_work_on_them_are_refused_at_once(tmp_path, monkeypatch, capsys):
    """A million rows of two values in a few kilobytes, where the table itself would fit."""
    pq.write_table(pa.table({"a": np.arange(1_000_000) // 500_000}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 50_000
    monkeypatch.setattr(guard, "memory", lambda: 12e6)
    assert len(io.read(tmp_path / "t.parquet")) == 1_000_000
    monkeypatch.setattr("reduset.io.reading.chunks", None)  # not a row of it is read
    words = ["compress", str(tmp_path / "t.parquet"), "-o", str(tmp_path / "small.npz"), "--size", "5", "-b", "1.0"]
    assert run(words) == 2
    told = capsys.readouterr().err
    assert "t.parquet: the rows, and the work on them, would take 0.0 GiB, this machine has 0.0; choose fewer --columns" in told
    assert "--stream" in told
    monkeypatch.undo()
    monkeypatch.setattr(guard, "memory", lambda: 12e6)
    assert run([*words, "--stream", "--quiet"]) == 0


def test_memory_is_what_the_container_and_the_shell_allow(tmp_path, monkeypatch):
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "less").write_text("1000000\n")
    monkeypatch.setattr("reduset._engine.costs.CGROUP_FILES", (str(tmp_path / "max"), str(tmp_path / "none")))
    assert guard.memory() > 1e8
    monkeypatch.setattr("reduset._engine.costs.CGROUP_FILES", (str(tmp_path / "max"), str(tmp_path / "less")))
    assert guard.memory() == 1e6
