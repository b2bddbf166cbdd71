"""Faults of Dask collections: clean errors that name the partition, lost workers, and work that is stopped."""

from __future__ import annotations

import _thread
import contextlib
import logging
import os
import re
import signal
import threading
import time
import traceback
import warnings
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

import reduset
from dask_cases import assert_equal, cluster, parts, points
from reduset import Gaussian, compress, sketch
from reduset.cohort import CohortMap
from reduset.drift import DriftTest

RNG = np.random.default_rng(0)
GOOD = pd.DataFrame(RNG.normal(size=(400, 2)), columns=["age", "pay"])
MISSING = GOOD.copy()
MISSING.loc[207, "pay"] = np.nan
TEXT = GOOD.assign(city=RNG.choice(["Bonn", "Graz"], 400))
UNITS = GOOD * [1.0, 1000.0]
OURS = {Path(reduset.__file__).parent, Path(__file__).parent}
X = points(6000)
BEGUN: list[int] = []  # lengths of the blocks whose tasks began

USES = {
    "compress": lambda frame: compress(frame, Gaussian(1.0), size=5, rng=0),
    "compress without a kernel": lambda frame: compress(frame, size=5, rng=0),
    "sketch": lambda frame: sketch(frame, 5, rng=0),
    "drift": lambda frame: DriftTest().fit(frame),
    "cohort": lambda frame: CohortMap().fit([frame, frame]),
}


def _parts(frame):
    return dd.from_pandas(frame, npartitions=4)


def _assert_clean(error):
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    files = [Path(each.filename) for each in traceback.extract_tb(error.__traceback__)]
    assert all(any(folder in file.parents for folder in OURS) for file in files), files


@pytest.mark.parametrize("use", USES)
def test_missing_values_give_one_clean_error(use):
    with pytest.raises(ValueError, match=r"(partition 2|bags\[0\]) must be finite, got nan in row \d+, column 'pay'") as caught:
        USES[use](_parts(MISSING))
    _assert_clean(caught.value)


@pytest.mark.parametrize("use", USES)
def test_text_gives_one_clean_error_that_names_the_encoding(use):
    encoding = r"as_table\(.*encode='auto'\)" if use == "cohort" else r"get_dummies\(collection\.categorize\(\)\)"
    with pytest.raises(TypeError, match=rf"column 'city' holds '(Bonn|Graz)'.*{encoding}") as caught:
        USES[use](_parts(TEXT))
    _assert_clean(caught.value)


def test_the_encoding_in_the_error_works():
    with dask.config.set(scheduler="threads"):  # a closed client may have left its scheduler in the configuration
        encoded = dd.get_dummies(_parts(TEXT).categorize())
    assert compress(encoded, Gaussian(1.0), size=5, rng=0).mean.atoms.shape == (5, 4)


def test_a_cluster_gives_the_same_error_and_its_workers_log_nothing(caplog):
    with cluster() as _, caplog.at_level(logging.WARNING):
        for frame, kind in ((MISSING, ValueError), (TEXT, TypeError)):
            for use in USES.values():
                with pytest.raises(kind, match=r"column '(pay|city)'") as caught:
                    use(_parts(frame))
                _assert_clean(caught.value)
    assert "Compute Failed" not in caplog.text


def test_other_errors_keep_their_traceback():
    def broken(block):
        raise ZeroDivisionError("in the user's function")

    array = da.from_array(GOOD.to_numpy(), chunks=(100, 2)).map_blocks(broken, meta=np.empty((0, 0)))
    with pytest.raises(ZeroDivisionError) as caught:
        compress(array, Gaussian(1.0), size=5)
    assert any(each.name == "broken" for each in traceback.extract_tb(caught.value.__traceback__))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_partition_the_row_and_the_column_are_named(bad):
    Y = X.copy()
    Y[4000, 1] = bad
    with pytest.raises(ValueError, match=r"partition 2 must be finite, got (nan|inf) in row 1000, column 1"):
        compress(parts(Y), Gaussian(0.8), size=10)


def test_other_columns_raise():
    frames = [delayed(pd.DataFrame(X[:9], columns=list(names))) for names in ("abc", "acb")]
    with pytest.raises(ValueError, match=r"partition 1 must have the columns \['a', 'b', 'c'\]"):
        compress(frames, size=3)


def test_one_column_that_dominates_gives_the_warning_of_arrays():
    pattern = "column 'pay' spreads [0-9,]+ times as far as column 'age'"
    many = pd.concat([UNITS] * 20, ignore_index=True)
    for frame in (many, UNITS):  # more rows than are loaded, and fewer
        with pytest.warns(UserWarning, match=pattern) as caught:
            compress(_parts(frame), size=5, rng=0)
        (warning,) = [each for each in caught if re.match(pattern, str(each.message))]
        assert warning.filename == __file__
    for given, words in ((UNITS, pattern), (da.from_array(UNITS.to_numpy(), chunks=(100, 2)), "column 1 spreads")):
        with pytest.warns(UserWarning, match=words):
            compress(given, size=5, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in (Gaussian(), Gaussian(scales="robust"), Gaussian(2.0)):
            compress(_parts(many), kernel, size=5, rng=0)


# -- clusters ---------------------------------------------------------------------------------------------------------------


def slowly(block):
    BEGUN.append(len(block))
    time.sleep(0.01)
    return block


def deadly(block, folder):
    """The block. The worker of the tenth is killed, once."""
    with contextlib.suppress(FileExistsError):
        with open(folder / "begun", "ab") as file:
            file.write(b".")
        if os.path.getsize(folder / "begun") >= 10:
            (folder / "killed").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the nanny of a killed worker leaves its pipes open
def test_a_worker_that_is_killed_in_a_pass_changes_nothing(tmp_path):
    D = parts(X, 750)
    expected = compress(D, Gaussian(0.8), size=30, rng=0)
    with cluster(2, processes=True):
        result = compress(D.map_blocks(deadly, tmp_path, meta=X[:0]), Gaussian(0.8), size=30, rng=0)
    assert (tmp_path / "killed").exists()
    assert_equal(result, expected)


def _interrupted(*_):
    threading.Timer(0.1, _thread.interrupt_main).start()


def _failing(*_):
    raise RuntimeError


@pytest.mark.parametrize(("error", "progress"), [(KeyboardInterrupt, _interrupted), (RuntimeError, _failing)])
@pytest.mark.parametrize("workers", [0, 1])
def test_work_that_is_stopped_leaves_no_tasks(error, progress, workers):
    D = parts(X, 150).map_blocks(slowly, meta=X[:0])  # a pass takes at least 0.2 s
    stops = iter([progress])
    with cluster(workers) if workers else contextlib.nullcontext((None, None)) as (made, _):
        BEGUN.clear()
        with pytest.raises(error):
            compress(D, Gaussian(0.8), size=10, rng=0, progress=lambda *_: next(stops, int)())
        time.sleep(0.1)
        stopped = len(BEGUN)
        for _ in range(100):
            if made is None or not made.scheduler.tasks:
                break
            time.sleep(0.05)
        assert made is None or not made.scheduler.tasks
        time.sleep(0.1)
        assert len(BEGUN) == stopped < 10 * D.npartitions  # no task begins later; a whole run has some fifty passes
        assert compress(parts(X), Gaussian(0.8), size=10, rng=0).size == 10


def test_a_failing_partition_raises_the_error_of_the_user():
    def fail(block):
        raise OSError("the disk is full")

    D = parts(X).map_blocks(fail, dtype=X.dtype, meta=np.empty((0, 0)))
    with pytest.raises(OSError, match="the disk is full"):
        compress(D, Gaussian(0.8), size=10, rng=0)
    with cluster(1), pytest.raises(OSError, match="the disk is full"):
        compress(D, Gaussian(0.8), size=10, rng=0)
