"""Missing values and text in a frame: the error names the column, the row and the call that encodes text."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.svm import SVC

from reduset import Gaussian, KernelMean, compress, cover, sketch, weigh
from reduset.cohort import CohortMap
from reduset.density import SparseKernelDensity
from reduset.drift import DriftMonitor, DriftTest, two_sample
from reduset.explain import background
from reduset.features import MeanMapFeatures
from reduset.io import FileError, as_table
from reduset.modes import SparseMeanShift
from reduset.proportions import ClassProportions
from reduset.spectral import Nystroem, ReducedKernelPCA
from reduset.stream import StreamCompressor
from reduset.svm import compress_svm

RNG = np.random.default_rng(0)
GOOD = pd.DataFrame(RNG.normal(size=(60, 2)), columns=["age", "pay"])
MISSING = GOOD.copy()
MISSING.loc[7, "pay"] = np.nan
TEXT = GOOD.assign(city=RNG.choice(["Bonn", "Graz"], 60))
Y = np.repeat([0, 1], 30)
SVM = SVC().fit(GOOD, Y)

FRAMES = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
USES = {
    "sketch": lambda X: sketch(X, 5, encode=None),
    "compress": lambda X: compress(X, Gaussian(1.0), size=5),
    "cover": lambda X: cover(X, 5),
    "weigh": lambda X: weigh(X, [0, 1], Gaussian(1.0)),
    "mean": lambda X: KernelMean.from_samples(X, Gaussian(1.0)),
    "queries": lambda X: KernelMean.from_samples(GOOD, Gaussian(1.0))(X),
    "background": lambda X: background(X, 5),
    "proportions": lambda X: ClassProportions().fit(X, Y),
    "reference": lambda X: DriftTest().fit(X),
    "new rows": lambda X: DriftTest().fit(GOOD).test(X),
    "two samples": lambda X: two_sample(GOOD, X),
    "monitor": DriftMonitor,
    "density": lambda X: SparseKernelDensity().fit(X),
    "modes": lambda X: SparseMeanShift().fit(X),
    "kernel PCA": lambda X: ReducedKernelPCA().fit(X),
    "Nystroem": lambda X: Nystroem().fit(X),
    "stream": lambda X: StreamCompressor(Gaussian(1.0)).fit(X),
    "stream, more": lambda X: StreamCompressor(Gaussian(1.0)).partial_fit(X),
    "cohort": lambda X: CohortMap().fit([GOOD, X]),
    "bags": lambda X: MeanMapFeatures().fit([GOOD, X]),
    "svm": lambda X: compress_svm(SVM, size=5, X=X),
}
ENCODES = {"sketch"}  # itself, or omits such columns where encode=None


@pytest.mark.covering_cases
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("use", USES)
def test_a_missing_value_is_named_by_column_and_row(use, frame):
    with pytest.raises(ValueError, match=r"(?s)(column 'pay'.*row 7\b|row 7, column 'pay')") as caught:
        USES[use](FRAMES[frame](MISSING))
    assert "\n" not in str(caught.value)


@pytest.mark.covering_cases
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("use", sorted(USES.keys() - ENCODES))
def test_text_is_named_by_column_with_the_call_that_encodes_it(use, frame):
    with pytest.raises(TypeError, match=r"column 'city' holds '(Bonn|Graz)'.*reduset\.io\.as_table\(.*, encode='auto'\)"):
        USES[use](FRAMES[frame](TEXT))


def test_dates_and_categories_of_pandas_are_named_too():
    with pytest.raises(TypeError, match=r"column 'day' holds Timestamp\('2026-01-01"):
        compress(GOOD.assign(day=pd.Timestamp("2026-01-01")), Gaussian(1.0), size=5)
    with pytest.raises(TypeError, match="column 'kind' holds 'x'"):
        compress(GOOD.assign(kind=pd.Categorical(["x"] * 60)), Gaussian(1.0), size=5)


ODD = {
    "period": (lambda: GOOD.assign(when=pd.period_range("2026-01", periods=60, freq="M")), r"Period\('2026-01', 'M'\)"),
    "list": (lambda: GOOD.assign(when=[[1.0, 2.0]] * 60), r"\[1\.0, 2\.0\]"),
    "array": (lambda: GOOD.assign(when=[np.arange(100)] * 60), r"array\(\[ 0, 1, 2, .*…"),
    "dict": (lambda: GOOD.assign(when=[{"a": 1}] * 60), r"\{'a': 1\}"),
    "interval": (lambda: GOOD.assign(when=pd.interval_range(0, 60)), "Interval"),
    "date": (lambda: GOOD.assign(when=[pd.Timestamp("2026-01-01").date()] * 60), "datetime.date"),
    "list of Arrow": (
        lambda: GOOD.assign(when=pd.array([[1, 2]] * 60, dtype=pd.ArrowDtype(pa.list_(pa.int64())))),
        r"(array\()?\[1",
    ),
    "list of polars": (lambda: pl.from_pandas(GOOD).with_columns(when=pl.lit([1, 2])), r"\[1, 2\]"),
    "object of polars": (lambda: pl.from_pandas(GOOD).with_columns(when=pl.Series([{1}] * 60, dtype=pl.Object)), r"\{1\}"),
    "duration of polars": (lambda: pl.from_pandas(GOOD).with_columns(when=pl.duration(hours=3)), "datetime.timedelta"),
}


@pytest.mark.covering_cases
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("use", ["compress", "density", "kernel PCA", "cohort"])
def test_entries_that_are_no_numbers_are_named_by_column(use, kind):
    make, entry = ODD[kind]
    with pytest.raises(TypeError, match=rf"column 'when' holds {entry}"):
        USES[use](make())


@pytest.mark.parametrize("kind", [kind for kind in ODD if kind not in ("object of polars", "date")])
def test_frames_that_are_encoded_name_such_columns_too(kind):
    frame = ODD[kind][0]()
    assert "columns without numbers are omitted: when" in as_table(frame, encode="auto").notes
    with pytest.raises(FileError, match=r"column 'when' .*got .* in row 1"):
        as_table(frame, columns=["age", "when"])


def test_columns_of_several_types_are_named():
    frame = GOOD.assign(when=[1] * 59 + ["x"])
    with pytest.raises(FileError, match=r"column 'when' .*got object"):
        sketch(frame, 5)


def test_objects_that_are_numbers_are_taken():
    entries = [Decimal(1), Fraction(1, 2), np.float32(2.0), np.bool_(True), 3, True] * 10
    frame = GOOD.assign(kind=pd.Series(entries, dtype=object))
    assert compress(frame, Gaussian(1.0), size=5, rng=0).size == 5


def test_missing_values_of_nullable_columns_are_found():
    frame = GOOD.assign(count=pd.array([1] * 9 + [None] + [2] * 50, dtype="Int64"))
    with pytest.raises(ValueError, match="got nan in row 9, column 'count'"):
        compress(frame, Gaussian(1.0), size=5)
    whole = GOOD.assign(count=pd.array([1, 2] * 30, dtype="Int64"))
    assert compress(whole, Gaussian(1.0), size=5, rng=0).size == 5


def test_long_tables_name_the_column():
    with pytest.raises(ValueError, match=r"bags .*got nan in row 7, column 'pay'"):
        CohortMap().fit(MISSING.assign(donor=Y), sample="donor")


def test_other_errors_of_estimators_stay():
    fitted = SparseKernelDensity(bandwidth=1.0).fit(GOOD)
    with pytest.raises(ValueError, match="feature names"):
        fitted.score_samples(GOOD.rename(columns={"pay": "wage"}))


def test_the_call_that_the_error_names_encodes_later_frames_alike():
    table = as_table(TEXT, encode="auto")
    later = as_table(TEXT[TEXT["city"] == "Bonn"], encode=table.encoding)
    assert table.columns == later.columns == ("age", "pay", "city=Bonn", "city=Graz")
    assert background(table, 5, rng=0).columns == list(table.columns)
    shares = ClassProportions(random_state=0).fit(table, TEXT["city"]).predict_proportions(later)
    assert shares[0] > 0.9
    assert two_sample(table, later, rng=0).columns()[0].name.startswith("city=")
    assert DriftTest(random_state=0).fit(table).test(later).columns()[0].name.startswith("city=")
    svm = SVC().fit(table.values, Y)
    assert compress_svm(svm, size=5, X=table, rng=0).n_components_ == 5


def test_a_table_with_weights_is_no_input_of_proportions():
    table = as_table(GOOD.assign(w=1.0), weight_column="w")
    with pytest.raises(ValueError, match="table with weights"):
        ClassProportions().fit(table, Y)
