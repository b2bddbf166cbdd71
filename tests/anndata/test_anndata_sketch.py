"""A sketch of an AnnData: what is written, that it survives files and subsets, and where cells are read from."""

from __future__ import annotations

import warnings

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from annotated_cases import COMMON, N, cells, write
from reduset import sketch as sketch_rows
from reduset.anndata import density, project, sketch

SIZE = 60


def test_cells_weights_and_assignments_are_those_of_the_array():
    adata = cells()
    assert sketch(adata, SIZE, rng=3) is None
    small = sketch_rows(adata.obsm["X_pca"].astype(np.float32), SIZE, rng=3)
    assert np.flatnonzero(adata.obs["sketch"]).tolist() == small.indices.tolist()
    assert adata.obs["sketch_weight"].sum() == pytest.approx(N)
    np.testing.assert_allclose(adata.obs["sketch_weight"].to_numpy()[small.indices], N * small.weights)
    assert (adata.obs["sketch_weight"][~adata.obs["sketch"]] == 0).all()
    assigned = adata.obs["sketch_assignment"]
    assert assigned.dtype == "category"
    assert assigned.astype(str).tolist() == adata.obs_names[small.indices[small.assignments]].tolist()
    assert (adata.obs_names == assigned.astype(str))[adata.obs["sketch"]].all()  # a cell of the sketch stands for itself


def test_rare_cells_are_kept_with_their_share():
    adata = cells()
    sketch(adata, SIZE)
    weights = adata.obs["sketch_weight"].groupby(adata.obs["kind"], observed=True).sum()
    assert weights["rare"] == pytest.approx(N - COMMON, abs=N / SIZE)  # a stratum


def test_facts_say_what_was_asked_and_what_was_lost():
    adata = cells()
    sketch(adata, SIZE, rng=5)
    found = adata.uns["sketch"]
    assert (found["n"], found["size"], found["use_rep"], found["params"]["rng"]) == (N, SIZE, "X_pca", 5)
    assert found["interval"][0] <= found["relative_error"] <= found["interval"][1]
    assert found["radius"] > 0
    assert f"{N:,} cells × 5 columns -> {SIZE} weighted cells" in found["summary"]
    assert len(found["profile"]["bandwidths"]) == len(found["profile"]["relative_errors"])


@pytest.mark.parametrize("suffix", ["h5ad", "zarr"])
def test_it_survives_files_and_subsets(suffix, tmp_path):
    adata = cells()
    sketch(adata, SIZE, sample_key="donor")
    path = tmp_path / f"cells.{suffix}"
    write(adata, path)
    again = getattr(anndata, f"read_{suffix}")(path)
    for column in ("sketch", "sketch_weight", "sketch_assignment"):
        assert again.obs[column].tolist() == adata.obs[column].tolist()
    assert again.uns["sketch"]["size"] == SIZE
    small = again[again.obs["sketch"]].copy()
    assert small.obs["sketch_assignment"].astype(str).tolist() == small.obs_names.tolist()


def test_a_copy_leaves_the_object_alone():
    adata = cells()
    other = sketch(adata, SIZE, copy=True)
    assert "sketch" not in adata.obs
    assert "sketch" not in adata.uns
    assert other.obs["sketch"].sum() == SIZE


def test_a_fraction_in_place_of_a_size():
    adata = cells()
    sketch(adata, fraction=0.02)
    assert adata.obs["sketch"].sum() == 30


def test_without_a_size_there_are_5000_or_all():
    adata = cells()
    sketch(adata)
    assert adata.obs["sketch"].all()


def test_a_second_call_replaces_the_first_and_another_key_is_beside_it():
    adata = cells()
    sketch(adata, SIZE)
    sketch(adata, 20)
    sketch(adata, 30, key_added="other")
    assert adata.obs["sketch"].sum() == 20
    assert adata.obs["other"].sum() == 30


def test_a_view_becomes_a_copy_without_a_warning():
    adata = cells()
    view = adata[adata.obs["kind"] == "common"]
    sketch(view, 20)
    assert view.obs["sketch"].sum() == 20
    assert "sketch" not in adata.obs


def test_samples_get_cells_of_their_own():
    adata = cells()
    sketch(adata, SIZE, sample_key="donor", quotas="equal")
    sizes = adata.obs["donor"].value_counts()
    weights = adata.obs.groupby("donor", observed=True)["sketch_weight"].sum()
    assert weights.to_dict() == pytest.approx(sizes.to_dict())
    assert adata.uns["sketch"]["samples"]["sketch"].tolist() == [20, 20, 20]


def test_a_sample_smaller_than_its_quota_is_kept_whole():
    adata = cells()
    few = int((adata.obs["donor"] == "c").sum())
    sketch(adata, 3 * few + 30, sample_key="donor", quotas="equal")
    assert adata.obs.loc[adata.obs["donor"] == "c", "sketch"].all()
    assert "kept whole" in adata.uns["sketch"]["note"]


def test_categories_without_cells_are_ignored():
    adata = cells()
    sketch(adata, SIZE, sample_key="kind")
    assert adata.uns["sketch"]["samples"]["name"].tolist() == ["common", "rare"]


def test_cells_in_one_place_and_their_assignments():
    adata = cells()
    adata.obsm["X_pca"] = np.repeat(adata.obsm["X_pca"][:50], 30, axis=0)
    sketch(adata, SIZE)
    assert adata.obs["sketch"].sum() == SIZE
    assert adata.obs["sketch_weight"].sum() == pytest.approx(N)


def test_repeated_names_give_positions_and_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = cells(unique=False)
    with pytest.warns(UserWarning, match="repeat a name"):
        sketch(adata, SIZE)
    assigned = adata.obs["sketch_assignment"].to_numpy()
    assert assigned.dtype.kind == "i"
    assert adata.obs["sketch"].to_numpy()[assigned].all()


# -- where cells are ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected():
    adata = cells()
    sketch(adata, SIZE)
    return adata.obs["sketch"].to_numpy()


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_backed_files(mode, expected, tmp_path):
    cells().write_h5ad(tmp_path / "cells.h5ad")
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad", backed=mode)
    sketch(adata, SIZE)
    assert adata.obs["sketch"].tolist() == expected.tolist()
    adata.write_h5ad(tmp_path / "more.h5ad")
    adata.file.close()
    assert anndata.read_h5ad(tmp_path / "more.h5ad").obs["sketch"].tolist() == expected.tolist()


@pytest.mark.parametrize("read", [anndata.read_zarr, anndata.experimental.read_lazy], ids=["zarr", "lazy"])
def test_zarr(read, expected, tmp_path):
    write(cells(), tmp_path / "cells.zarr")
    adata = read(tmp_path / "cells.zarr")
    sketch(adata, SIZE, sample_key="donor")
    sketch(adata, SIZE)
    assert np.asarray(adata.obs["sketch"]).tolist() == expected.tolist()
    small = adata[np.asarray(adata.obs["sketch"])].to_memory()
    project(adata, "kind", small=small, key_added="found")
    assert (np.asarray(adata.obs["found"]).astype(str) == np.asarray(cells().obs["kind"]).astype(str)).all()
    density(adata, groupby="kind")
    assert float(np.asarray(adata.obs["umap_density_kind"]).max()) == 1


@pytest.mark.parametrize("kind", ["dask", "frame", "sparse"])
def test_arrays_of_every_kind(kind, expected):
    adata = cells()
    array = adata.obsm["X_pca"]
    if kind == "dask":
        adata.obsm["X_pca"] = da.from_array(array, chunks=(400, 5))
    elif kind == "frame":
        adata.obsm["X_pca"] = pd.DataFrame(array, index=adata.obs_names, columns=list("abcde"))
    else:
        adata.obsm["X_pca"] = sparse.csr_matrix(array)
    sketch(adata, SIZE)
    assert adata.obs["sketch"].tolist() == expected.tolist()


def test_few_columns_of_X_are_taken_as_they_are():
    adata = anndata.AnnData(cells().obsm["X_pca"])
    with pytest.warns(UserWarning, match=r"no obsm\['X_pca'\], so distances are measured in X itself, which has 5 columns"):
        sketch(adata, SIZE)
    assert adata.uns["sketch"]["use_rep"] == "X"
    assert "X itself" in adata.uns["sketch"]["note"]
    marked = adata.obs["sketch"].tolist()
    sketch(adata, SIZE, use_rep="X")  # the same choice, made by the caller, without a warning
    assert adata.obs["sketch"].tolist() == marked


def low_rank(n=400, genes=120):
    rng = np.random.default_rng(1)
    return (rng.normal(size=(n, 6)) * [9, 7, 5, 4, 3, 2]) @ rng.normal(size=(6, genes)) + 3.0 + rng.normal(size=(n, genes)) / 50


@pytest.mark.parametrize("kind", ["dense", "sparse", "dask", "backed", "backed sparse"])
def test_an_svd_is_made_once_where_there_is_no_representation(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("reduset.anndata.representation.BLOCK_BYTES", 120 * 37)  # several blocks
    values = low_rank()
    adata = anndata.AnnData(sparse.csr_matrix(values) if "sparse" in kind else values)
    if kind == "dask":
        adata = anndata.AnnData(da.from_array(values, chunks=(100, 120)))
    if "backed" in kind:
        adata.write_h5ad(tmp_path / "X.h5ad")
        adata = anndata.read_h5ad(tmp_path / "X.h5ad", backed="r")
    with pytest.warns(UserWarning, match="truncated SVD of X"):
        sketch(adata, 30)
    left, sizes, _ = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    found = adata.obsm["X_svd"]
    assert found.shape == (400, 50)
    np.testing.assert_allclose(np.abs(found[:, :6]), np.abs(left[:, :6] * sizes[:6]), atol=2e-3 * sizes[0] / 20)
    assert "X_svd" in adata.uns["sketch"]["note"]
    sketch(adata, 30)  # no second warning: the SVD is stored
    assert adata.uns["sketch"]["use_rep"] == "X_svd"
    if "backed" in kind:
        adata.file.close()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_counts_are_normalised_before_the_svd(kind, monkeypatch):
    monkeypatch.setattr("reduset.anndata.representation.BLOCK_BYTES", 120 * 37)
    rng = np.random.default_rng(0)
    rates = np.exp(rng.normal(size=(3, 90)))[rng.integers(0, 3, 300)] * rng.lognormal(1.0, 1.0, (300, 1))
    counts = rng.poisson(rates).astype(float)
    counts[7] = 0  # a cell without counts stays one
    adata = anndata.AnnData(sparse.csr_matrix(counts) if kind == "sparse" else counts)
    with pytest.warns(UserWarning, match=r"each cell was first scaled to 10,000 counts and log\(1 \+ x\) taken"):
        sketch(adata, 10)
    values = np.log1p(1e4 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    left, sizes, _ = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(adata.obsm["X_svd"][:, :3]), np.abs(left[:, :3] * sizes[:3]), atol=2e-3 * sizes[0])
