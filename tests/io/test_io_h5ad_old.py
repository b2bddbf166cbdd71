"""AnnData's files as older versions wrote them, files that are open, raw/X, and frames in obsm."""

import h5py
import numpy as np
import pytest

from io_cases import write_h5ad
from reduset import io

GENES = ["CD3E", "CD4", "CD8A"]
VALUES = np.random.default_rng(0).random((12, 3)).astype(np.float32)
PCA = np.random.default_rng(1).normal(size=(12, 2))


def fields(columns):
    """A compound array, as anndata 0.6 wrote obs, var and obsm."""
    kinds = [(name, column.dtype, column.shape[1:]) for name, column in columns.items()]
    table = np.empty(len(next(iter(columns.values()))), kinds)
    for name, column in columns.items():
        table[name] = column
    return table


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.h5ad"
    cells = np.array([f"cell{k}".encode() for k in range(12)])
    kinds = np.array([0, 1, -1] + [0, 1, 1] * 3, np.int8)
    with h5py.File(path, "w") as file:
        file["X"] = VALUES
        file["obs"] = fields({"index": cells, "depth": np.arange(12.0), "kind": kinds, "batch": np.arange(12) % 2})
        file["var"] = fields({"index": np.array([name.encode() for name in GENES])})
        file["obsm"] = fields({"X_pca": PCA})
        file["raw.X"] = 2 * VALUES
        file["raw.var"] = fields({"index": np.array([b"a", b"b", b"c"])})
        file["uns/kind_categories"] = np.array([b"T", b"B"])
    return path


def test_compound_obs_var_and_obsm_are_read(old):
    table = io.read(old, weight_column="depth", group_column="batch")
    assert table.columns == tuple(GENES)
    np.testing.assert_array_equal(table.values, VALUES)
    np.testing.assert_array_equal(table.weights, np.arange(12.0))
    np.testing.assert_array_equal(table.groups, np.arange(12) % 2)
    np.testing.assert_array_equal(io.read(old, key="obsm/X_pca").values, PCA)
    assert io.read(old, key="obsm/X_pca").columns == ("X_pca-0", "X_pca-1")
    observed = io.read(old, key="obs")
    assert observed.columns == ("depth", "batch")
    np.testing.assert_array_equal(observed.values[:, 0], np.arange(12.0))


def test_categories_of_compound_obs_lie_in_uns(old):
    table = io.read(old, group_column="kind", missing="drop")
    assert table.dropped == 1
    assert table.groups.tolist() == ["T", "B"] + ["T", "B", "B"] * 3


def test_raw_is_read_by_its_own_names_in_old_and_new_files(old, tmp_path):
    table = io.read(old, key="raw/X")
    assert table.columns == ("a", "b", "c")
    np.testing.assert_array_equal(table.values, 2 * VALUES)
    new = write_h5ad(tmp_path / "new.h5ad", VALUES[:, :2], GENES[:2], {})
    with h5py.File(new, "a") as file:
        file["raw/X"] = VALUES
        file["raw/var/names"] = np.array(GENES, dtype=h5py.string_dtype())
        file["raw/var"].attrs["_index"] = "names"
    table = io.read(new, key="raw/X")
    assert table.columns == tuple(GENES)
    np.testing.assert_array_equal(table.values, VALUES)
    with pytest.raises(io.FileError, match=r"has no array 'raw'.*it holds X, raw/X, obs"):
        io.read(new, key="raw")


def test_a_frame_in_obsm_has_its_own_columns(tmp_path):
    path = write_h5ad(tmp_path / "t.h5ad", VALUES, GENES, {"depth": np.arange(12.0)})
    with h5py.File(path, "a") as file:
        frame = file.create_group("obsm/protein")
        frame.attrs["_index"] = "_index"
        frame.attrs["encoding-type"] = "dataframe"
        frame["_index"] = np.array([f"cell{k}" for k in range(12)], dtype=h5py.string_dtype())
        frame["CD19"], frame["on"] = PCA[:, 0], np.arange(12) % 2 == 0
        frame["name"] = np.array(["x"] * 12, dtype=h5py.string_dtype())
    table = io.read(path, key="obsm/protein", weight_column="depth")
    assert set(table.columns) == {"CD19", "on"}
    np.testing.assert_array_equal(table.values[:, table.columns.index("CD19")], PCA[:, 0])
    np.testing.assert_array_equal(table.values[:, table.columns.index("on")], np.arange(12) % 2 == 0)
    np.testing.assert_array_equal(table.weights, np.arange(12.0))
    assert "columns without numbers are omitted: name" in table.notes
    np.testing.assert_array_equal(io.read(path, key="obsm/protein", columns=["CD19"]).values[:, 0], PCA[:, 0])


@pytest.mark.covering_cases
@pytest.mark.parametrize("locking", [None, True, False, "best-effort"])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_file_that_is_open_in_this_process_is_read(tmp_path, locking, mode):
    path = write_h5ad(tmp_path / "t.h5ad", VALUES, GENES, {})
    with h5py.File(path, mode, locking=locking):
        np.testing.assert_array_equal(io.read(path).values, VALUES)


def test_obs_that_is_no_table_is_refused(tmp_path):
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        file["obs"], file["X"] = np.arange(3.0), VALUES
    with pytest.raises(io.FileError, match=r"t\.h5ad: 'obs' .*got float64"):
        io.read(tmp_path / "t.h5ad")
