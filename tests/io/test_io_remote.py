"""Files by URL: in memory, and in an S3-compatible store on this machine."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from cases import cloud
from cli_processes import in_this_process
from reduset import Gaussian, compress, sketch
from reduset.data import partitions
from reduset.io import FileError, files_of, read

X = cloud(6000, 3, 0)
COLUMNS = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=COLUMNS)
PARTS = [pd.DataFrame(part, columns=COLUMNS) for part in np.array_split(X, 12)]


def put(root, parts):
    """Write the parts, and files that are skipped, at a URL."""
    system = fsspec.core.url_to_fs(root)[0]
    for k, part in enumerate(parts):
        with system.open(f"{root}/part-{k}.parquet", "wb") as stream:
            part.to_parquet(stream, row_group_size=2000)
    for name in ("_SUCCESS", ".hidden.parquet"):
        system.pipe(f"{root}/{name}", b"none")
    return root


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    yield put("memory://rows", PARTS)
    system.rm("/", recursive=True)


@pytest.fixture(scope="module")
def store():
    """A bucket of a store on 127.0.0.1."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ |= settings
    fsspec.filesystem("s3").mkdir("bucket")
    yield put("s3://bucket/rows", [FRAME[:4000], FRAME[4000:]])
    for name, value in before.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value
    server.stop()


def test_a_folder_a_pattern_and_a_file(memory):
    names = files_of(memory)
    assert names == [f"memory:///rows/part-{k}.parquet" for k in range(12)]
    assert files_of("memory://rows/part-1*.parquet") == [names[1], *names[10:]]
    np.testing.assert_array_equal(read(memory).values, X)
    np.testing.assert_array_equal(read(names[3], columns=["c", "a"]).values, PARTS[3][["c", "a"]])
    np.testing.assert_array_equal(read(Path(names[3])).values, PARTS[3])  # a path object has one slash less


def test_local_patterns(tmp_path):
    for k, part in enumerate(PARTS[:3]):
        part.to_parquet(tmp_path / f"part-{9 + k}.parquet")
    np.testing.assert_array_equal(read(str(tmp_path / "*.parquet")).values, X[:1500])
    with pytest.raises(FileError, match=r"no-\*\.parquet: is a folder without files"):
        read(str(tmp_path / "no-*.parquet"))


@pytest.mark.slow
def test_results_are_those_of_arrays(memory):
    expected = sketch(FRAME, 20, rng=0)
    with ThreadPoolExecutor(2) as executor:
        for rows in (memory, partitions(memory, executor)):
            small = sketch(rows, 20, rng=0)
            np.testing.assert_array_equal(small.indices, expected.indices)
            np.testing.assert_allclose(small.weights, expected.weights, rtol=1e-9)


def test_arrow_files(memory):
    for name, writer in (("rows.arrow", pa.ipc.new_file), ("rows.arrows", pa.ipc.new_stream)):
        table = pa.Table.from_pandas(PARTS[0])
        with fsspec.open(f"memory://{name}", "wb") as stream, writer(stream, table.schema) as sink:
            sink.write_table(table)
        np.testing.assert_array_equal(read(f"memory://{name}").values, PARTS[0])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("memory://none.parquet", "memory://none.parquet: no such file"),
        ("memory://rows/none-*.parquet", "is a folder without files"),
        ("memory://text.csv", "memory://text.csv: CSV.* is read from local files"),
        ("memory://empty.parquet", "is empty"),
        ("memory://damaged.parquet", "it is damaged"),
        ("ftp://host/rows.parquet", "no such file"),
        ("memory://rows::memory://other.parquet", "no such file"),
    ],
)
def test_faults_are_one_line_with_the_url(url, words, memory):
    system = fsspec.filesystem("memory")
    for name, content in {"text.csv": b"a,b\n1,2\n", "empty.parquet": b"", "damaged.parquet": b"PAR1 and no more"}.items():
        system.pipe(f"/{name}", content)
    with pytest.raises(FileError, match=words) as caught:
        read(url)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_an_object_store(store, tmp_path):
    expected = compress(X, Gaussian(1.0), size=20, rng=0)
    with ThreadPoolExecutor(2) as executor:
        small = compress(partitions(store, executor), Gaussian(1.0), size=20, rng=0)
    np.testing.assert_array_equal(small.indices, expected.indices)
    np.testing.assert_allclose(small.mean.weights, expected.mean.weights, rtol=1e-6, atol=1e-9)
    in_this_process("sketch", f"{store}/*.parquet", "--size", 20, "--engine", "dask", "-o", "small.csv", folder=tmp_path)
    np.testing.assert_allclose(read(tmp_path / "small.csv").values[:, :3], X[sketch(FRAME, 20, rng=0).indices])
    with pytest.raises(FileError, match=r"s3://bucket/none\.parquet: no such file"):
        read("s3://bucket/none.parquet")
    with pytest.raises(FileError, match=r"s3://none/rows: "):
        read("s3://none/rows")
