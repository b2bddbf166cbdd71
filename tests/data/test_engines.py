"""Partitions on an executor and on Ray: what may be given, where tasks run, and errors."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cases import cloud
from dask_cases import assert_equal
from engine_cases import ray_of
from reduset import Gaussian, compress, sketch
from reduset.cohort import CohortMap
from reduset.data import as_source, opened, partitions
from reduset.data.engine import task_name
from reduset.io import FileError, open_files, read

X = cloud(6000, 3, 0)
COLUMNS = ["a", "b", "c"]
PARTS = np.array_split(X, 4)


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("shards")
    for k, part in enumerate(PARTS):
        table = pd.DataFrame(part, columns=COLUMNS).assign(w=np.arange(len(part)) + 1.0)
        table.to_parquet(path / f"{k}.parquet", row_group_size=400)
    return path


def small(rows, **options):
    return compress(rows, Gaussian(0.8), size=20, rng=0, **options)


def test_blocks_are_whole_row_groups_and_do_not_depend_on_the_engine(folder, executor, monkeypatch):
    monkeypatch.setattr("reduset.io.batching.SHARD_NUMBERS", 3 * 700)
    rows, on_dask = (partitions(folder, engine, columns=COLUMNS) for engine in (executor, "dask"))
    assert np.diff(rows.starts).tolist() == np.diff(on_dask.starts).tolist() == [800, 700] * 4
    assert (rows.columns, rows.shape, rows.dtype) == (COLUMNS, X.shape, X.dtype)
    np.testing.assert_array_equal(rows[:], X)
    np.testing.assert_array_equal(rows[[5999, 3, 1600]], X[[5999, 3, 1600]])
    assert_equal(small(rows), small(on_dask))
    np.testing.assert_array_equal(small(rows).indices, small(X).indices)


def test_files_have_weights_and_drop_incomplete_rows(folder, executor, tmp_path):
    weighted = partitions(folder, executor, weight_column="w")
    np.testing.assert_array_equal(weighted.weights, np.tile(np.arange(1500) + 1.0, 4))
    one, other = (sketch(rows, 20, rng=0) for rows in (weighted, open_files(folder, weight_column="w")))
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)
    frame = pd.DataFrame(X.copy(), columns=COLUMNS)
    frame.loc[[2, 5000], "b"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False)
    rows = partitions(tmp_path, executor, missing="drop")
    np.testing.assert_allclose(rows[:], read(tmp_path, missing="drop").values)
    assert any("2 rows" in note for note in rows.notes)


def test_encoded_columns_are_read_by_the_tasks(executor, tmp_path):
    for k, city in enumerate(["Bonn", "Graz"]):
        pd.DataFrame({"a": PARTS[k][:, 0], "city": city}).to_parquet(tmp_path / f"{k}.parquet")
    rows = partitions(tmp_path, executor, encode="auto")
    np.testing.assert_array_equal(rows[:], read(tmp_path, encode="auto").values)


def test_partitions_may_be_arrays_frames_and_tables_of_tensors(executor):
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(PARTS[3]))
    given = [PARTS[0], PARTS[1][:0], pd.DataFrame(PARTS[1]), PARTS[2], pa.table({"embedding": tensors})]
    assert_equal(small(partitions(given, executor)), small(partitions(PARTS, "dask")))
    table = pa.table(dict(zip(COLUMNS, X.T, strict=True)))
    assert partitions([table[:9], table[9:]], executor).columns == COLUMNS
    np.testing.assert_array_equal(as_source(partitions(PARTS[:1], executor)), PARTS[0])  # few rows are loaded


@pytest.mark.parametrize("fault", ["value", "columns", "cut short", "changed"])
def test_one_error_names_the_partition_or_the_file(fault, executor, tmp_path):
    for k, part in enumerate(PARTS):
        pd.DataFrame(part, columns=COLUMNS).to_parquet(tmp_path / f"{k}.parquet")
    path, frame = tmp_path / "2.parquet", pd.DataFrame(PARTS[2].copy(), columns=COLUMNS)
    if fault == "changed":
        rows = partitions(tmp_path, executor)
        frame[:-1].to_parquet(path)
        with pytest.raises(FileError, match=r"2\.parquet.*1,499 rows, and had 1,500"):
            small(rows)
        return
    if fault == "value":
        frame.loc[7, "b"] = np.nan
        frame.to_parquet(path)
        words = r"partition 2, .*2\.parquet: column 'b' has no value in row 8"
    elif fault == "columns":
        frame.rename(columns={"b": "B"}).to_parquet(path)
        words = r"2\.parquet.*'b'"
    else:
        content = bytearray(path.read_bytes())
        content[8:2000] = bytes(1992)
        path.write_bytes(content)
        words = r"partition 2, .*2\.parquet: cannot be read as Parquet"
    with pytest.raises(FileError, match=words) as caught:
        partitions(tmp_path, executor)
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)


def test_wrong_arguments_raise(executor):
    with pytest.raises(ValueError, match=r"engine must be one of 'dask', 'ray'; got 'spark'"):
        partitions(PARTS, "spark")
    with pytest.raises(ValueError, match="partition 1"):
        partitions([PARTS[0], PARTS[1][:, :2]], executor)
    with pytest.raises(ValueError, match=r"partition 1 must be finite, got nan in row 3"):
        partitions([PARTS[0], np.where(np.arange(1500)[:, None] == 3, np.nan, PARTS[1])], executor)
    with pytest.raises(ValueError, match="all partitions are empty"):
        partitions([X[:0]], executor)
    with pytest.raises(TypeError, match="partitions of another library"):
        partitions(da.from_array(X), executor)


def test_a_pass_that_is_stopped_begins_no_further_tasks(monkeypatch):
    monkeypatch.setattr("reduset.data.engine.MIN_TASKS", 8)
    begun, go = [], threading.Event()

    def slow(rows):
        begun.append(len(rows))
        go.wait(10)
        return len(rows)

    with ThreadPoolExecutor(1) as executor:
        rows = partitions(np.array_split(X, 40), executor)
        go.set()
        results = iter(rows.results(slow))
        next(results)
        go.clear()
        results.close()
        go.set()
        executor.submit(int).result(10)
    assert len(begun) < 10


def test_tasks_are_named_by_the_innermost_function():
    assert task_name(partial(partial(max, partial(sum)), 3)) == "reduset sum"
    assert task_name(np.add) == "reduset add"


# -- Ray ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray():
    with ray_of(2) as ray:
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not import this file
        yield ray


def named(rows, found):
    import ray

    return ray.get_runtime_context().get_task_name()


def deadly(rows, folder):
    """The number of rows. The worker of the first task is killed."""
    try:
        (folder / "killed").touch(exist_ok=False)
    except FileExistsError:
        return len(rows)
    os.kill(os.getpid(), signal.SIGKILL)


def slow(rows, folder):
    (folder / f"{rows[0, 0]}").touch()
    time.sleep(0.2)
    return len(rows)


@pytest.mark.slow
def test_references_datasets_and_files_are_the_same_rows(ray, folder):
    import ray.data

    expected = small(partitions(PARTS, "dask"))
    references = [ray.put(part) for part in PARTS]
    frames = ray.data.from_pandas([pd.DataFrame(part, columns=COLUMNS) for part in PARTS])
    for given in (references, frames, ray.data.from_numpy(PARTS), partitions(PARTS, "ray")):
        assert_equal(small(given), expected)
    assert_equal(small(partitions(folder, "ray", columns=COLUMNS)), expected)
    assert opened(frames).columns == COLUMNS
    weights = np.random.default_rng(0).random(len(X))
    parts = [ray.put(part) for part in np.array_split(weights, 4)]
    assert_equal(small(references, sample_weight=parts), small(partitions(PARTS, "dask"), sample_weight=weights))
    with pytest.raises(ValueError, match="partition 1 must be finite"):
        small([references[0], ray.put(np.full((9, 3), np.nan))])


@pytest.mark.slow
def test_an_error_in_a_task_is_that_of_the_function(ray, tmp_path):
    for k, part in enumerate(PARTS):
        pd.DataFrame(part, columns=COLUMNS).to_parquet(tmp_path / f"{k}.parquet")
    rows = partitions(tmp_path, "ray")
    pd.DataFrame(PARTS[2][1:], columns=COLUMNS).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(FileError, match=r"2\.parquet.*1,499 rows, and had 1,500") as caught:
        small(rows)
    assert "Traceback" not in str(caught.value)


@pytest.mark.slow
def test_blocks_of_a_dataset_keep_their_order(ray):
    import ray.data

    data = ray.data.from_pandas([pd.DataFrame({"k": np.full(400, float(k))}) for k in range(20)])

    def late(table):
        time.sleep(0.2 * (table["k"].iloc[0] == 0))  # the first block is ready last
        return table

    data = data.map_batches(late, batch_format="pandas", batch_size=None)
    np.testing.assert_array_equal(opened(data)[:, 0], np.repeat(np.arange(20.0), 400))
    assert not data.context.execution_options.preserve_order


@pytest.mark.slow
def test_bags_on_ray(ray):
    import ray.data

    bags = [cloud(600, 2, k) for k in range(4)]
    given = [ray.put(bags[0]), ray.data.from_numpy(np.array_split(bags[1], 2)), *map(ray.put, bags[2:])]
    one, other = (CohortMap(layout="mds", size=20, random_state=0).fit(each) for each in (bags, given))
    np.testing.assert_array_equal(one.distances_, other.distances_)


@pytest.mark.slow
def test_tasks_have_names_and_a_killed_worker_is_replaced(ray, tmp_path):
    rows = partitions(PARTS, "ray")
    assert {name for _, _, name in rows.results(partial(named, found=None))} == {"reduset named"}
    assert [length for _, _, length in rows.results(partial(deadly, folder=tmp_path))] == [1500] * 4
    assert (tmp_path / "killed").exists()


@pytest.mark.slow
def test_a_pass_that_is_stopped_leaves_no_tasks_on_ray(ray, tmp_path):
    rows = partitions(np.array_split(X, 30), "ray")
    results = iter(rows.results(partial(slow, folder=tmp_path)))
    next(results)
    results.close()
    time.sleep(0.5)
    begun = len(list(tmp_path.iterdir()))
    time.sleep(0.5)
    assert len(list(tmp_path.iterdir())) == begun < 30


# -- uneven partitions, lost workers ----------------------------------------------------------------------------------------


UNEVEN = [X[:3000], *(X[:0] for _ in range(3)), X[3000:3010], X[:0], X[3010:4500], X[4500:]]  # half of all rows, and empty ones


@pytest.mark.parametrize("engine", ["threads", "dask", pytest.param("ray", marks=pytest.mark.slow)])
def test_uneven_and_empty_partitions_give_the_results_of_an_array(engine, executor, request):
    if engine == "ray":
        request.getfixturevalue("ray")
    one, other = small(X), small(partitions(UNEVEN, executor if engine == "threads" else engine))
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_allclose(other.mean.weights, one.mean.weights, rtol=1e-6, atol=1e-9)


def test_empty_files_are_empty_partitions(executor, tmp_path):
    for k, part in enumerate(UNEVEN):
        pd.DataFrame(part, columns=COLUMNS).to_parquet(tmp_path / f"{k}.parquet")
    rows = partitions(tmp_path, executor)
    assert np.diff(rows.starts).tolist() == [len(part) for part in UNEVEN]
    assert_equal(small(rows), small(partitions(UNEVEN, executor)))


class Killing:
    """An engine whose worker is killed in the tenth task, once."""

    def __init__(self, engine, folder):
        self._engine, self._folder = engine, folder

    def each(self, function, parts, arguments):
        return self._engine.each(partial(killing, self._folder, function), parts, arguments)


def killing(folder, function, part, *given):
    (folder / f"{time.monotonic_ns()}").touch()
    if len(list(folder.iterdir())) >= 10:
        try:
            (folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return function(part, *given)


@pytest.mark.slow
def test_a_worker_killed_while_it_reads_a_file_changes_no_bit(ray, folder, tmp_path):
    rows = partitions(folder, "ray", columns=COLUMNS)
    expected = small(rows)
    rows._engine = Killing(rows._engine, tmp_path)
    assert_equal(small(rows), expected)
    assert (tmp_path / "killed").exists()
