"""AnnData's files: X dense and sparse, obsm, obs; weights and groups from obs."""

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from file_kinds import write_any
from io_cases import write_h5ad
from reduset import io

GENES = ["CD3E", "CD4", "CD8A", "MS4A1"]


def expression():
    rng = np.random.default_rng(0)
    return (rng.random((30, 4)) * (rng.random((30, 4)) < 0.4)).astype(np.float32)


@pytest.fixture(scope="module", params=[None, "csr", "csc"])
def written(request, tmp_path_factory):
    obs = {"depth": np.arange(30.0), "batch": np.arange(30) % 2}
    groups = {"kind": (np.arange(30) % 3, ["T", "B", "NK"])}
    pca = np.random.default_rng(1).normal(size=(30, 2))
    return write_h5ad(tmp_path_factory.mktemp("h5ad") / "t.h5ad", expression(), GENES, obs, {"X_pca": pca}, groups, request.param)


@pytest.fixture
def file(written, tmp_path):
    """A copy, since some tests write into it."""
    return Path(shutil.copy(written, tmp_path))


def test_expression_is_read_by_gene(file):
    table = io.read(file, weight_column="depth", group_column="kind")
    assert table.columns == tuple(GENES)
    assert table.values.dtype == np.float32
    np.testing.assert_array_equal(table.values, expression())
    np.testing.assert_array_equal(table.weights, np.arange(30.0))
    np.testing.assert_array_equal(table.groups, np.array(["T", "B", "NK"])[np.arange(30) % 3])


def test_some_genes_are_read_in_the_order_asked_for(file):
    np.testing.assert_array_equal(io.read(file, columns=["CD8A", "CD3E"]).values, expression()[:, [2, 0]])


def test_batches_cut_expression_in_pieces(file):
    parts = list(io.batches(file, rows=7, group_column="batch"))
    assert [len(part) for part in parts] == [7, 7, 7, 7, 2]
    np.testing.assert_array_equal(np.concatenate([part.values for part in parts]), expression())
    np.testing.assert_array_equal(np.concatenate([part.groups for part in parts]), np.arange(30) % 2)


@pytest.mark.fast_cases(2)
def test_embeddings_and_observations_are_read_by_key(file):
    table = io.read(file, key="obsm/X_pca", group_column="kind")
    assert table.columns == ("X_pca-0", "X_pca-1")
    np.testing.assert_array_equal(table.values, np.random.default_rng(1).normal(size=(30, 2)))
    table = io.read(file, key="obs")
    assert set(table.columns) == {"depth", "batch"}
    assert table.notes == ("columns without numbers are omitted: kind",)


def test_bags_are_the_categories(file):
    assert list(io.read_bags(file, group_column="kind")) == ["T", "B", "NK"]


def test_missing_categories_and_masked_numbers_are_missing(tmp_path):
    path = write_h5ad(tmp_path / "t.h5ad", expression(), GENES, {}, categories={"kind": ([-1] + [0] * 29, ["T"])})
    with h5py.File(path, "a") as file:
        file["obs/age/values"], file["obs/age/mask"] = np.arange(30), np.arange(30) == 4
    with pytest.raises(io.FileError, match="column 'kind' has no value in row 1"):
        io.read(path, group_column="kind")
    with pytest.raises(io.FileError, match="column 'age' has no value in row 5"):
        io.read(path, key="obs")
    np.testing.assert_array_equal(io.read(path, group_column="kind", missing="drop").values, expression()[1:])


def test_categories_of_older_files_are_read(tmp_path):
    path = write_h5ad(tmp_path / "t.h5ad", expression(), GENES, {"kind": np.arange(30) % 2})
    with h5py.File(path, "a") as file:
        file["obs/__categories/kind"] = np.array(["u", "v"], dtype=h5py.string_dtype())
        file["obs/kind"].attrs["categories"] = file["obs/__categories/kind"].ref
    assert io.read(path, group_column="kind").groups.tolist() == ["u", "v"] * 15


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "obsm/X_pcx"}, "has no array 'obsm/X_pcx' .did you mean 'obsm/X_pca'..; it holds X, obsm/X_pca, obs"),
        ({"key": "uns"}, "has no array 'uns'"),
        ({"columns": ["CD33"]}, "no column 'CD33' .did you mean 'CD3E'|no column 'CD33' .did you mean 'CD4'"),
        ({"columns": ["depth"]}, "'depth' is no column of the points; it may be the weight_column"),
        ({"weight_column": "kind"}, "column 'kind' .*got 'T' in row 1"),
        ({"group_column": "kinds"}, "no column 'kinds' for group_column .did you mean 'kind'"),
    ],
    ids=str,
)
def test_what_is_not_there_is_named_with_what_is(file, options, message):
    with pytest.raises(io.FileError, match=message):
        io.read(file, **options)


def test_data_in_other_files_are_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(480))
    other = write_h5ad(tmp_path / "other.h5ad", expression(), GENES, {})
    for way in ("link", "external"):
        path = write_h5ad(tmp_path / f"{way}.h5ad", expression(), GENES, {})
        with h5py.File(path, "a") as file:
            del file["X"]
            if way == "link":
                file["X"] = h5py.ExternalLink(str(other), "X")
            else:
                file.create_dataset("X", (30, 4), "f4", external=str(tmp_path / "secret"))
        with pytest.raises(io.FileError, match="'X' lies in another file, which is not followed"):
            io.read(path)


@pytest.mark.parametrize(
    ("name", "damaged"),
    [("indices", np.full(3, 99, np.int32)), ("indptr", np.arange(31)[::-1]), ("indptr", np.zeros(5, int))],
    ids=["columns", "pointers", "length"],
)
def test_sparse_entries_outside_the_matrix_are_refused(tmp_path, name, damaged):
    path = write_h5ad(tmp_path / "t.h5ad", expression(), GENES, {}, sparse="csr")
    with h5py.File(path, "a") as file:
        old = file["X"][name][()]
        del file["X"][name]
        file["X"][name] = np.where(np.arange(len(old)) < 3, 99, old) if name == "indices" else damaged
    with pytest.raises(io.FileError, match="it is damaged"):
        io.read(path)


def test_a_file_cut_short_is_refused(tmp_path):
    path = write_h5ad(tmp_path / "t.h5ad", expression(), GENES, {})
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(io.FileError, match=r"t\.h5ad: cannot be read as AnnData"):
        io.read(path)


def test_a_shape_beyond_memory_is_refused_before_it_is_allocated(tmp_path):
    path = write_h5ad(tmp_path / "t.h5ad", expression(), GENES, {})
    with h5py.File(path, "a") as file:
        for name in ("X", "obs/names"):
            del file[name]
        file.create_dataset("X", (10**13, 4), "f4", chunks=(1000, 4))
        file.create_dataset("obs/names", (10**13,), "i1", chunks=(1000,))
    with pytest.raises(io.FileError, match=r"would take .* GiB, this machine has"):
        io.read(path)


@pytest.mark.fast_cases(2)
def test_a_file_is_closed_when_it_was_read(file):
    io.read(file, key="obs", group_column="kind")
    with h5py.File(file, "a") as again:  # it was open until the garbage collector came
        again["obs"]["more"] = np.arange(30.0)
    assert "more" in io.read(file, key="obs").columns


@pytest.mark.fast_cases(1)
def test_text_with_a_mask_is_read_as_pandas_3_writes_it(file):
    def masked(group, name, texts, missing=()):
        inner = group.create_group(name)
        inner.attrs["encoding-type"] = "nullable-string-array"
        inner["values"] = np.array(texts, dtype=h5py.string_dtype())
        inner["mask"] = np.isin(np.arange(len(texts)), missing)

    with h5py.File(file, "a") as again:
        for frame in ("obs", "var"):
            names = again[frame]["names"].asstr()[()].tolist()
            del again[frame]["names"]
            masked(again[frame], "names", names)
        masked(again["obs"], "site", ["n", "s"] * 15, [3])
        labels = again["obs/kind/categories"].asstr()[()].tolist()
        del again["obs/kind/categories"]
        masked(again["obs/kind"], "categories", labels)
    table = io.read(file, group_column="kind")
    assert table.columns == tuple(GENES)
    assert table.groups[:3].tolist() == ["T", "B", "NK"]
    with pytest.raises(io.FileError, match="column 'site' has no value in row 4"):
        io.read(file, group_column="site")
    assert len(io.read(file, group_column="site", missing="drop")) == 29


def test_a_file_written_anew_is_read_anew(tmp_path):
    """A reader that stayed open would give the rows of before."""
    file = write_any(tmp_path / "t.h5ad")
    before, other = io.read(file), write_any(file.with_name("other.h5ad"), seed=1)
    file.write_bytes(other.read_bytes())
    after = io.read(file)
    assert (after.values == io.read(other).values).all()
    assert (after.values != before.values).any()


def test_a_refused_file_is_not_held_open(tmp_path):
    file = write_any(tmp_path / "t.h5ad")
    with pytest.raises(io.FileError) as caught:
        io.read(file, key="obsm/X_umap")
    with h5py.File(file, "a") as again:  # though the error is kept
        again["obsm/X_umap"] = again["obsm/X_pca"][:]
    assert caught.value
    assert io.read(file, key="obsm/X_umap").values.shape == (40, 2)
