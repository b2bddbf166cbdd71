"""Peak memory while reading, of a process of its own: the table and little more."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

ROWS, COLUMNS = 1_200_000, 6

CODE = """
import sys
from reduset import io

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

small, large, way = sys.argv[1:]
columns = [f"{'x' if small.endswith('npy') else 'c'}{k}" for k in range(6)]

def read(path):
    return io.read(path, columns=columns) if way == "read" else sum(len(part) for part in io.batches(path, columns=columns))

read(small)  # what the libraries themselves take
before = peak()
kept = read(large)
print(peak() - before)
"""


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


def peak_over_table(folder, suffix, way):
    command = [sys.executable, "-c", CODE, str(folder / f"small{suffix}"), str(folder / f"large{suffix}"), way]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(out.stdout) / (8 * COLUMNS * (ROWS if suffix != ".csv" else ROWS // 2))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".orc", ".npz"])
def test_reading_half_the_columns_takes_little_more_than_these(folder, suffix):
    assert 0.9 < peak_over_table(folder, suffix, "read") < 2.0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_text_takes_its_numbers_twice_and_some_blocks(folder):
    assert peak_over_table(folder, ".csv", "read") < 2.0 + (64 << 20) / (8 * COLUMNS * ROWS // 2)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".orc", ".npz", "-C.npy", "-F.npy", "-parts"])
def test_batches_hold_little_at_a_time(folder, suffix):
    assert peak_over_table(folder, suffix, "batches") < 0.75
