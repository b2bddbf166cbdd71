"""Faults of files are told with the file, the column or keyword, and the way out."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from io_cases import write_fcs
from reduset import compress, cover, io, sketch
from reduset.io import FileError

BIG = np.array([[2**63 - 1, 1], [2**63 - 2, 2], [2**63 - 3, 4]], dtype=np.int64)
MERGED = f"column '?\\w+'? has (the integers )?{2**63 - 3} and {2**63 - 2}.*subtract the smallest value first"


@pytest.mark.parametrize(
    "data",
    [
        BIG,
        BIG.astype(np.uint64) + np.uint64(5),
        -BIG,
        pd.DataFrame(BIG, columns=["a", "b"]),
        pd.DataFrame({"a": BIG[:, 0], "b": [0.5, 1.5, 2.5]}),
        pl.DataFrame({"a": BIG[:, 0], "b": [0.5, 1.5, 2.5]}),
    ],
    ids=["int64", "uint64", "negative", "pandas", "pandas with floats", "polars with floats"],
)
def test_integers_that_float64_merges_raise_an_error(data):
    with pytest.raises(
        ValueError, match=r"column .* has -?\d+ and -?\d+, which become one number; subtract the smallest value first"
    ):
        compress(data, size=2, rng=0)


def test_a_sketch_of_merged_integers_raises_an_error():
    with pytest.raises(ValueError, match="which become one number"):
        sketch(BIG, 2, rng=0)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_files_of_integers_that_float64_merges_raise_an_error_with_their_name(suffix, tmp_path):
    path = tmp_path / f"big{suffix}"
    if suffix == ".parquet":
        pd.DataFrame(BIG, columns=["a", "b"]).to_parquet(path)
    else:
        (np.save if suffix == ".npy" else np.savez)(path, BIG)
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: {MERGED}"):
        io.read(path)


def test_large_integers_that_stay_apart_are_read():
    apart = np.array([[2**62], [2**62 + 2**20], [5]], dtype=np.int64)
    assert sketch(apart, 2, rng=0).mean.atoms.dtype.kind == "f"
    assert compress(BIG - BIG.min(axis=0), size=2, rng=0).mean.size == 2


@pytest.mark.parametrize(
    ("array", "message"), [(np.ones((3, 2), complex), "must hold real"), (np.ones((0, 4)), "must hold at least one row")]
)
def test_arrays_that_are_no_rows_of_numbers_are_told_with_their_file(array, message, tmp_path):
    path = tmp_path / "odd.npy"
    np.save(path, array)
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: {message}"):
        cover(str(path), 2)
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: "):
        io.read(path)


@pytest.mark.parametrize(("kind", "right", "wrong"), [("D", 64, 32), ("F", 32, 64), ("F", 32, 16)])
def test_bits_that_do_not_fit_the_kind_of_number_are_told_with_the_keyword(kind, right, wrong, tmp_path):
    path = tmp_path / "odd.fcs"
    write_fcs(path, np.ones((4, 2)), ["a", "b"], kind=kind, extra={"$P2B": str(wrong)})
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: \$P2B must be {right} for \$DATATYPE {kind}, got {wrong}"):
        io.read(path)


def test_a_damaged_header_of_an_array_is_told_with_its_file(tmp_path):
    path = tmp_path / "damaged.npy"
    np.save(path, np.ones((3, 2)))
    path.write_bytes(path.read_bytes().replace(b"}", b" ", 1))
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: cannot be read"):
        cover(str(path), 2)
