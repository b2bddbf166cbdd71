"""Faults of files are told with the file, the column or keyword, and the way out."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.svm import SVC

from io_cases import write_fcs
from reduset import Gaussian, compress, cover, io, sketch
from reduset.density import SparseKernelDensity
from reduset.io import FileError
from reduset.modes import SparseMeanShift
from reduset.spectral import Nystroem, ReducedKernelPCA
from reduset.stream import StreamCompressor
from reduset.svm import compress_svm

BIG = np.array([[2**63 - 1, 1], [2**63 - 2, 2], [2**63 - 3, 4]], dtype=np.int64)
FLOATS = np.random.default_rng(0).normal(size=(30, 2))
MERGING = {
    "compress": lambda X: compress(X, size=2, rng=0),
    "density": lambda X: SparseKernelDensity(bandwidth=1.0).fit(X),
    "density of queries": lambda X: SparseKernelDensity(bandwidth=1.0).fit(FLOATS).score_samples(X),
    "modes": lambda X: SparseMeanShift(bandwidth=1.0).fit(X),
    "Nystroem": lambda X: Nystroem(n_components=2).fit(X),
    "kernel PCA": lambda X: ReducedKernelPCA(1).fit(FLOATS).transform(X),
    "stream": lambda X: StreamCompressor(Gaussian(1.0), 2).fit(X),
    "machine": compress_svm(SVC().fit(FLOATS, FLOATS[:, 0] > 0), size=2, rng=0).predict,
}
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
        pa.table({"a": BIG[:, 0], "b": [0.5, 1.5, 2.5]}),
        pd.DataFrame({"a": pd.array(BIG[:, 0], dtype="int64[pyarrow]"), "b": [0.5, 1.5, 2.5]}),
        BIG.tolist(),
        BIG.astype(object) * 4,
    ],
    ids=["int64", "uint64", "negative", "pandas", "pandas+", "polars+", "arrow+", "pandas of arrow+", "list", "objects"],
)
@pytest.mark.parametrize("use", MERGING)
def test_integers_that_float64_merges_raise_an_error(data, use):
    with pytest.raises(
        ValueError, match=r"column .* has -?\d+ and -?\d+, which become one number; subtract the smallest value first"
    ):
        MERGING[use](data)


def test_a_sketch_of_merged_integers_raises_an_error():
    with pytest.raises(ValueError, match="which become one number"):
        sketch(BIG, 2, rng=0)


MERGED_FILES = {
    ".npy": lambda path: np.save(path, BIG),
    ".npz": lambda path: np.savez(path, BIG),
    ".parquet": lambda path: pd.DataFrame(BIG, columns=["a", "b"]).to_parquet(path),
    "+.parquet": lambda path: pd.DataFrame({"a": pd.array([*BIG[:, 0], None], "Int64"), "b": range(4)}).to_parquet(path),
    ".csv": lambda path: pd.DataFrame(BIG, columns=["a", "b"]).to_csv(path, index=False),
    ".tsv": lambda path: pd.DataFrame(BIG, columns=["a", "b"]).to_csv(path, index=False, sep="\t"),
    ".csv.gz": lambda path: pd.DataFrame(BIG, columns=["a", "b"]).to_csv(path, index=False),
    "+.csv": lambda path: path.write_text("a,b\n1.5,1\n,2\n" + "".join(f"{a},3\n" for a in BIG[:, 0])),
    ";.csv": lambda path: path.write_text("a;b\n" + "".join(f"{a};1,5\n" for a in BIG[:, 0])),
}


@pytest.mark.parametrize("kind", MERGED_FILES)
def test_files_of_integers_that_float64_merges_raise_an_error_with_their_name(kind, tmp_path):
    path = tmp_path / f"big{kind}"
    MERGED_FILES[kind](path)
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: {MERGED}"):
        io.read(path, missing="drop")


@pytest.mark.parametrize(("encode", "kind"), [(None, ".csv"), ("auto", "+.csv")])
def test_text_files_of_large_integers_that_stay_apart_are_read(encode, kind, tmp_path):
    path = tmp_path / f"apart{kind}"
    moments = 1_700_000_000_000_000_000 + 1000 * np.array([5, 1, 3])  # nanoseconds
    path.write_text("a,b\n" + "".join(f"{moment},{'x' if encode else 1.5}\n" for moment in moments))
    assert io.read(path, encode=encode).values[:, 0].tolist() == moments.astype(float).tolist()


def test_weights_and_groups_may_be_large_integers(tmp_path):
    path = tmp_path / "weighted.csv"
    pd.DataFrame({"w": BIG[:, 0], "b": [0.5, 1.5, 2.5]}).to_csv(path, index=False)
    assert io.read(path, weight_column="w").weights.tolist() == [2.0**63] * 3
    assert io.read(path, group_column="w").groups.tolist() == [str(each) for each in BIG[:, 0]]


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
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: \$P2B .*got {wrong}"):
        io.read(path)


def test_a_damaged_header_of_an_array_is_told_with_its_file(tmp_path):
    path = tmp_path / "damaged.npy"
    np.save(path, np.ones((3, 2)))
    path.write_bytes(path.read_bytes().replace(b"}", b" ", 1))
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: cannot be read"):
        cover(str(path), 2)
