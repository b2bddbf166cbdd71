"""Errors and warnings about the rows of Dask collections: as for data in memory, without what workers leave in a traceback."""

from __future__ import annotations

import logging
import re
import traceback
import warnings
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import reduset
from dask_cases import cluster
from reduset import Gaussian
from reduset.distributed import CohortMap, compress
from reduset.distributed.scheduling import Fault
from reduset.drift import DriftTest

RNG = np.random.default_rng(0)
GOOD = pd.DataFrame(RNG.normal(size=(400, 2)), columns=["age", "pay"])
MISSING = GOOD.copy()
MISSING.loc[207, "pay"] = np.nan
TEXT = GOOD.assign(city=RNG.choice(["Bonn", "Graz"], 400))
UNITS = GOOD * [1.0, 1000.0]
OURS = {Path(reduset.__file__).parent, Path(__file__).parent}

USES = {
    "compress": lambda frame: compress(frame, Gaussian(1.0), size=5, rng=0),
    "compress by a rule": lambda frame: compress(frame, size=5, rng=0),
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
    with pytest.raises(ValueError, match=r"(partition 2|bags\[\d\]) must be finite, got nan in row \d+, column 'pay'") as caught:
        USES[use](_parts(MISSING))
    _assert_clean(caught.value)


@pytest.mark.parametrize("use", USES)
def test_text_gives_one_clean_error_that_names_the_encoding(use):
    encoding = r"as_table\(.*encode='auto'\)" if use == "cohort" else r"get_dummies\(collection\.categorize\(\)\)"
    with pytest.raises(TypeError, match=rf"column 'city' holds '(Bonn|Graz)'.*{encoding}") as caught:
        USES[use](_parts(TEXT))
    _assert_clean(caught.value)


def test_the_encoding_that_is_named_works():
    with dask.config.set(scheduler="threads"):  # a client that is gone may have left its own there
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


def test_errors_that_are_no_check_keep_their_traceback():
    def broken(block):
        raise ZeroDivisionError("of the user's own")

    array = da.from_array(GOOD.to_numpy(), chunks=(100, 2)).map_blocks(broken, meta=np.empty((0, 0)))
    with pytest.raises(ZeroDivisionError) as caught:
        compress(array, Gaussian(1.0), size=5)
    assert any(each.name == "broken" for each in traceback.extract_tb(caught.value.__traceback__))


def test_a_fault_is_the_error_of_a_check():
    def check(value):
        if value < 0:
            raise ValueError(f"value must not be negative, got {value}")
        return value

    assert Fault.in_place(check, 3) == 3
    assert Fault.in_place(check, -1) == Fault(ValueError, "value must not be negative, got -1")


def test_one_column_that_dominates_gives_the_warning_that_compress_gives():
    pattern = "column 'pay' spreads [0-9,]+ times as far as column 'age'"
    with pytest.warns(UserWarning, match=pattern) as here:
        compress(_parts(UNITS), size=5, rng=0)
    with pytest.warns(UserWarning, match=pattern):
        reduset.compress(UNITS, size=5, rng=0)
    (told,) = [each for each in here if re.match(pattern, str(each.message))]
    assert told.filename == __file__
    with pytest.warns(UserWarning, match="column 1 spreads"):
        compress(da.from_array(UNITS.to_numpy(), chunks=(100, 2)), size=5, rng=0)


@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian(scales="robust"), Gaussian(2.0)])
def test_a_kernel_that_is_given_states_the_units(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compress(_parts(UNITS), kernel, size=5, rng=0)
