"""What may be given as rows, and what is checked when it is opened."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from sklearn.base import clone

from reduset import Gaussian, KernelMean, compress, cover, sketch
from reduset.data import FileRows, as_source, opened, row_weights
from reduset.density import SparseKernelDensity
from reduset.io import FileError, open_files
from reduset.modes import SparseMeanShift
from reduset.select import Shadow
from reduset.spectral import ReducedKernelPCA

N = 6000


@pytest.fixture(scope="module")
def rows():
    rows = np.random.default_rng(0).normal(size=(N, 3))
    rows[::3] += 9.0
    return rows


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    for k, part in enumerate(np.array_split(rows, 3)):
        pd.DataFrame(part, columns=["a", "b", "c"]).assign(w=np.arange(len(part)) + 1.0).to_parquet(path / f"{k}.parquet")
    return path


def test_arrays_and_frames_are_arrays(rows):
    assert as_source(rows) is rows
    np.testing.assert_array_equal(as_source(pd.DataFrame(rows)), rows)


def test_files_are_read_block_by_block(rows, folder, monkeypatch):
    monkeypatch.setattr("reduset.io.batching.ROWS", 700)
    found = opened(folder, "w")
    assert isinstance(found, FileRows)
    assert (found.columns, found.shape, len(found.starts)) == (["a", "b", "c"], (N, 3), 10)
    np.testing.assert_array_equal(found.weights, np.tile(np.arange(N // 3) + 1.0, 3))
    some = np.random.default_rng(1).permutation(N)[:30]
    np.testing.assert_array_equal(found[some], rows[some])
    np.testing.assert_array_equal(found[:], rows)
    assert found.map_rows(lambda block, numbers: numbers + len(block), np.zeros(N, int)).tolist() == [700] * 5600 + [400] * 400


def test_a_list_of_paths_is_one_table(rows, folder):
    paths = [folder / f"{k}.parquet" for k in range(3)]
    given = {"sample_weight": "w", "rng": 0}
    one, other = (compress(data, Gaussian(1.0), size=10, **given) for data in (paths, folder))
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(sketch(paths, 20, **given).indices, sketch(folder, 20, **given).indices)
    model = SparseKernelDensity(bandwidth=1.0, size=10, random_state=0)
    densities = [clone(model).fit(data, sample_weight="w") for data in (paths, folder)]
    queries = pd.DataFrame(rows[:9], columns=["a", "b", "c"])
    np.testing.assert_array_equal(*(density.score_samples(queries) for density in densities))
    with pytest.raises(FileError, match="no such file"):
        compress([*paths, "missing.parquet"], size=10)


def test_rows_with_missing_values_are_omitted_from_files_on_request(rows, folder, tmp_path):
    some = pd.DataFrame(rows.copy(), columns=["a", "b", "c"])
    some.loc[[3, 4500], "b"] = np.nan
    some.to_csv(tmp_path / "some.csv", index=False)
    with pytest.raises(FileError, match="'b' has no value in row 4"):
        opened(tmp_path / "some.csv")
    found = as_source(open_files(tmp_path / "some.csv", missing="drop"))
    np.testing.assert_allclose(found[[2, 3, 4498, -1]], rows[[2, 4, 4499, -1]])
    assert any("2 rows" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["array", "columns apart", "unknown length", "frame", "delayed"])
def test_dask_collections(rows, kind):
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    given = {
        "array": lambda: da.from_array(rows, chunks=(1000, 3)),
        "columns apart": lambda: da.from_array(rows, chunks=(2500, 2)),
        "frame": lambda: dd.from_pandas(frame, npartitions=4),
        "delayed": lambda: [delayed(part) for part in (rows[:1], rows[:0], rows[1:4000])] + [rows[4000:]],
    }
    whole = da.from_array(rows, chunks=(3500, 3))
    found = as_source(given[kind]() if kind in given else whole[whole[:, 0] > -np.inf])
    assert (found.shape, found.dtype) == (rows.shape, rows.dtype)
    np.testing.assert_array_equal(found[[5, 4999, 17]], rows[[5, 4999, 17]])
    assert found.columns == (["a", "b", "c"] if kind == "frame" else None)


def test_weights_come_as_a_vector_or_as_a_column(rows, folder):
    weights = np.random.default_rng(2).random(N)
    collection = da.from_array(rows, chunks=(1000, 3))
    frame = dd.from_pandas(pd.DataFrame(rows, columns=["a", "b", "c"]).assign(w=weights), npartitions=4)
    expected = KernelMean.from_samples(rows, Gaussian(1.0), weights)
    delayed_weights = [delayed(part) for part in np.split(weights, 6)]
    for data, given in ((collection, weights), (collection, da.from_array(weights)), (collection, delayed_weights), (frame, "w")):
        mean = KernelMean.from_samples(data, Gaussian(1.0), given)
        assert mean.dimension == 3
        np.testing.assert_allclose(mean.weights, expected.weights)
    assert row_weights(rows, rows, None) is None
    with pytest.raises(ValueError, match="'v'"):
        KernelMean.from_samples(frame, Gaussian(1.0), "v")


def test_few_rows_are_loaded(rows):
    assert isinstance(as_source(da.from_array(rows[:4000], chunks=(500, 3))), np.ndarray)


def test_faults_name_the_partition(rows):
    wrong = rows.copy()
    wrong[2345, 1] = np.nan
    with pytest.raises(ValueError, match="partition 2 must be finite"):
        compress(da.from_array(wrong, chunks=(1000, 3)), size=10)
    with pytest.raises(TypeError, match=r"partition [01] must hold numbers.*get_dummies"):
        opened(dd.from_pandas(pd.DataFrame({"a": np.arange(N), "b": ["x"] * N}), npartitions=2))
    with pytest.raises(ValueError, match="partition 1"):
        opened([delayed(rows[:, :2]), delayed(rows)])
    with pytest.raises(ValueError, match="all partitions"):
        opened([delayed(rows[:0])])
    with pytest.raises(ValueError, match="two dimensions"):
        opened(da.from_array(rows[:, 0]))


def test_what_needs_all_rows_names_the_alternative(rows):
    collection = da.from_array(rows, chunks=(1000, 3))
    with pytest.raises(TypeError, match="pieces='atoms'"):
        compress(collection, Gaussian(1.0), size=5, pieces="components")


@pytest.fixture(params=["dask", "folder"])
def elsewhere(request, rows, folder):
    """The rows without weights, outside of main memory."""
    if request.param == "dask":
        return da.from_array(rows, chunks=(1300, 3))
    return open_files(folder, columns=["a", "b", "c"])


@pytest.mark.parametrize("options", [{}, {"via": "mixture"}, {"finish": True, "bandwidth": 1.0}], ids=str)
def test_clusters_are_those_of_an_array(rows, elsewhere, options):
    one, other = (SparseMeanShift(random_state=0, **options).fit(given) for given in (rows, elsewhere))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, atol=0.05 * one.bandwidth_)
    np.testing.assert_allclose(one.ends_, other.ends_, atol=0.05 * one.bandwidth_)
    assert other.certificate_.relative_error == pytest.approx(one.certificate_.relative_error, rel=1e-4)
    np.testing.assert_array_equal(other.predict(elsewhere), other.labels_)
    assert len(one.cluster_centers_) == 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": Gaussian(1.0), "reduce": "kcenter", "size": 50},
        {"kernel": "cosine", "size": 40},
        {"refine": False, "size": 60},
    ],
    ids=str,
)
def test_components_are_those_of_an_array(rows, elsewhere, options):
    weights = np.random.default_rng(3).random(N)
    one, other = (ReducedKernelPCA(3, random_state=0, **options).fit(given, sample_weight=weights) for given in (rows, elsewhere))
    np.testing.assert_array_equal(one.indices_, other.indices_)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(one.transform(rows), other.transform(elsewhere), atol=1e-7)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(0.2)], ids=repr)
def test_shadows_of_blocks_are_those_of_an_array(rows, kernel):
    parts = as_source(da.from_array(rows, chunks=(700, 3)))
    one, other = (Shadow().select(KernelMean.of_rows(given, kernel), N) for given in (rows, parts))
    for name in ("indices", "atoms", "weights", "assignments"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_covers_are_those_of_an_array(rows, elsewhere, metric):
    one, other = (cover(given, 30, metric=metric) for given in (rows, elsewhere))
    for name in ("indices", "distances", "radius", "assignments", "assignment_distances"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_embeddings_in_several_files_are_one_table(rows, tmp_path):
    for k, part in enumerate(np.array_split(rows, 3)):
        pd.DataFrame({"id": np.arange(len(part)), "embedding": list(part)}).to_parquet(tmp_path / f"{k}.parquet")
    expected = cover(rows, 20).indices
    for data in (tmp_path, [tmp_path / f"{k}.parquet" for k in range(3)]):
        np.testing.assert_array_equal(cover(data, 20).indices, expected)
        np.testing.assert_array_equal(cover(data, 20, column="embedding").indices, expected)
