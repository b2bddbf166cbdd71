"""The library's own tables, and AnnData, are taken where arrays and frames are; other objects are refused before they are read."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from reduset import Gaussian, KernelMean, compress, io
from reduset.cohort import CohortMap
from reduset.density import SparseKernelDensity
from reduset.features import MeanMapFeatures
from reduset.modes import SparseMeanShift
from reduset.stream import StreamCompressor

ROWS = np.random.default_rng(0).normal(size=(300, 2))


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1], "mass": rng.random(300), "site": rng.choice(["n", "s", "w"], 300)})


def same(one, other):
    np.testing.assert_array_equal(one.mean.atoms, other.mean.atoms)
    np.testing.assert_array_equal(one.mean.weights, other.mean.weights)


def test_a_table_is_compressed_as_its_values_are(frame):
    table = io.as_table(frame, columns=["a", "b"])
    same(compress(table, size=9, rng=0), compress(ROWS, size=9, rng=0))
    np.testing.assert_array_equal(np.asarray(table), ROWS)
    small = compress(table, size=9, rng=0).mean
    np.testing.assert_array_equal(small(table), small(ROWS))


def test_the_weights_of_a_table_count(frame):
    table = io.as_table(frame, columns=["a", "b"], weight_column="mass")
    weighted = compress(ROWS, size=9, rng=0, sample_weight=frame["mass"])
    same(compress(table, size=9, rng=0), weighted)
    same(compress(table, size=9, rng=0, sample_weight=np.ones(300)), compress(ROWS, size=9, rng=0, sample_weight=np.ones(300)))
    density = SparseKernelDensity(bandwidth=0.5, size=9, random_state=0).fit(table)
    other = SparseKernelDensity(bandwidth=0.5, size=9, random_state=0).fit(ROWS, sample_weight=frame["mass"])
    np.testing.assert_array_equal(density.mean_.weights, other.mean_.weights)
    streams = [StreamCompressor(Gaussian(1.0), 9, 0) for _ in range(2)]
    streams[0].partial_fit(table)
    streams[1].partial_fit(ROWS, sample_weight=frame["mass"])
    same(streams[0].result(), streams[1].result())
    shift = SparseMeanShift(bandwidth=1.0, random_state=0).fit(table)
    other = SparseMeanShift(bandwidth=1.0, random_state=0).fit(ROWS, sample_weight=frame["mass"])
    np.testing.assert_array_equal(shift.labels_, other.labels_)
    with pytest.raises(ValueError, match=r"X is a table with weights, which are not supported here; pass X\.values"):
        shift.predict(table)


def test_bags_that_were_read_are_bags(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    bags = io.read_bags(tmp_path / "rows.csv", group_column="site", columns=["a", "b"])
    found = CohortMap(size=20, random_state=0).fit(bags)
    plain = CohortMap(size=20, random_state=0).fit({name: bag.values for name, bag in bags.items()})
    np.testing.assert_array_equal(found.distances_, plain.distances_)
    assert list(found.names_) == list(bags)
    assert MeanMapFeatures(random_state=0).fit_transform(list(bags.values())).shape[0] == 3
    other = io.as_table(frame, columns=["b", "a"])
    with pytest.raises(ValueError, match=r"must have the columns \['a', 'b'\]"):
        found.transform([other])
    weighted = io.as_table(frame, columns=["a", "b"], weight_column="mass")
    with pytest.raises(ValueError, match=r"bags\[0\] is a table with weights, which bags do not have"):
        CohortMap(size=20).fit([weighted, weighted])
    with pytest.raises(ValueError, match="names a column, but a table has only numbers"):
        CohortMap(size=20).fit(weighted, sample="a")


class Refusing:
    """Looks like a sequence of rows, each of which takes a while."""

    shape = (100_000, 3)

    def __len__(self):
        return 100_000

    def __getitem__(self, place):
        raise AssertionError("it was asked for a row")


class AnnData(Refusing):
    """As much of AnnData as is looked at."""

    def __init__(self, X, names=("g1", "g2")):
        self.X, self.obs, self.var, self.obsm = X, pd.DataFrame(), pd.DataFrame(), {"X_pca": ROWS}
        self.var_names = pd.Index(names)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csc_array], ids=["dense", "csr", "csc"])
def test_annotated_data_are_their_x(make):
    annotated = AnnData(make(ROWS))
    same(compress(annotated, size=9, rng=0), compress(ROWS, size=9, rng=0))
    same(compress(KernelMean.from_samples(annotated), size=9, rng=0), compress(ROWS, Gaussian("median"), size=9, rng=0))
    assert SparseMeanShift(bandwidth=1.0).fit(annotated).labels_.shape == (300,)
    one, other = StreamCompressor(Gaussian(1.0), 9, 0), StreamCompressor(Gaussian(1.0), 9, 0)
    one.partial_fit(annotated)
    other.partial_fit(ROWS)
    same(one.result(), other.result())


def test_annotated_data_as_bags_have_the_same_columns():
    bags = [AnnData(ROWS[:150]), AnnData(ROWS[150:])]
    assert CohortMap(size=20, random_state=0, n_components=1).fit(bags).distances_.shape == (2, 2)
    with pytest.raises(ValueError, match=r"must have the columns \['g1', 'g2'\]"):
        CohortMap(size=20).fit([bags[0], AnnData(ROWS, ["g2", "g1"])])


def test_annotated_data_are_cut_into_bags_by_a_column_of_obs():
    annotated = AnnData(ROWS)
    annotated.obs = pd.DataFrame({"site": np.repeat(["n", "s", "w"], 100)})
    found = CohortMap(size=20, random_state=0).fit(annotated, sample="site")
    assert list(found.names_) == ["n", "s", "w"]
    apart = CohortMap(size=20, random_state=0).fit(ROWS, sample=annotated.obs["site"])
    np.testing.assert_array_equal(found.distances_, apart.distances_)
    with pytest.raises(ValueError, match=r"sample='place' must .*\['site'\]"):
        CohortMap(size=20).fit(annotated, sample="place")


class BackedRows:
    """A sparse matrix in a file, as AnnData has it: it can be brought into memory, and has no other way to become an array."""

    def __init__(self, rows):
        self._rows = sparse.csr_matrix(rows)
        self.shape, self.dtype = self._rows.shape, self._rows.dtype

    def to_memory(self):
        return self._rows


def test_annotated_data_whose_sparse_rows_lie_in_a_file_are_read():
    same(compress(AnnData(BackedRows(ROWS)), size=9, rng=0), compress(ROWS, size=9, rng=0))


def test_annotated_data_that_would_not_fit_say_what_to_do(monkeypatch):
    monkeypatch.setattr("reduset._frames.physical_memory", lambda unknown: 5000)
    with pytest.raises(ValueError, match=r"must fit in memory, got a sparse one of 300 × 2, dense .*adata\.obsm\['X_pca'\]"):
        compress(AnnData(sparse.csr_matrix(ROWS)), size=9)
    with pytest.raises(ValueError, match=r"must have X .*got None; .*obsm\['X_pca'\]"):
        compress(AnnData(None), size=9)


ODD = [Refusing(), {"a": [1.0]}, {1.0, 2.0}, (row for row in ROWS), object()]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_objects_that_are_no_array_frame_or_table_are_refused_at_once(odd):
    for use in (
        lambda: compress(odd, size=3),
        lambda: KernelMean.from_samples(odd),
        lambda: SparseKernelDensity().fit(odd),
        lambda: SparseMeanShift(bandwidth=1.0).fit(odd),
        lambda: StreamCompressor(Gaussian(1.0), 9, 0).fit(odd),
    ):
        with pytest.raises(TypeError, match=r"X must be an array, a frame or a table, got .*; pass the array"):
            use()
    with pytest.raises(TypeError, match=r"bags\[0\] must be an array, a frame or a table"):
        CohortMap().fit([odd, odd])
