"""Metacells: counts are preserved, labels and means are those of a loop, and every kind of input gives the same result."""

from __future__ import annotations

import warnings

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from annotated_cases import N, cells, write
from reduset.anndata import metacells
from reference_metacells import majorities, means, summed

M = 25


def counted(**options):
    """Cells with counts in X, a column that lacks values, and one that is noise."""
    adata = cells(**options)
    rng = np.random.default_rng(3)
    adata.X = sparse.csr_matrix(rng.poisson(0.4, adata.shape).astype(np.float32))
    adata.obs["depth"] = np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N))
    adata.obs["noise"] = pd.Categorical(rng.choice(["x", "y", "z"], N), categories=["z", "x", "y"])
    return adata


def groups_of(adata, key="metacell"):
    return adata.obs[key].cat.codes.to_numpy()


def test_sums_sizes_labels_and_means_are_those_of_a_loop():
    adata = counted()
    found = metacells(adata, M, label_key="noise", mean_keys=["score", "depth"])
    groups = groups_of(adata)
    assert found.shape == (M, adata.n_vars)
    np.testing.assert_array_equal(found.X.toarray(), summed(adata.X.toarray(), groups, M))
    np.testing.assert_array_equal(found.obs["n_cells"], np.bincount(groups))
    labels, purity = majorities(adata.obs["noise"].tolist(), groups, M, ["z", "x", "y"])
    assert found.obs["noise"].tolist() == labels
    assert found.obs["noise"].cat.categories.tolist() == ["z", "x", "y"]
    np.testing.assert_allclose(found.obs["noise_purity"], purity)
    for key in ("score", "depth"):
        np.testing.assert_allclose(found.obs[key], means(adata.obs[key].to_numpy(), groups, M))
    for j in range(M):
        np.testing.assert_allclose(found.obsm["X_pca"][j], adata.obsm["X_pca"][groups == j].mean(axis=0), rtol=1e-5, atol=1e-6)
    assert found.var_names.tolist() == adata.var_names.tolist()
    assert found.obs_names.tolist() == adata.obs["metacell"].cat.categories.tolist()


@pytest.mark.fast_cases(9)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint16])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "dask"])
def test_totals_are_preserved_exactly(kind, dtype, monkeypatch):
    monkeypatch.setattr("reduset.anndata.representation.BLOCK_BYTES", 80 * 700)  # several blocks
    adata = counted()
    counts = np.random.default_rng(0).integers(0, 60_000, adata.shape).astype(dtype)  # whose sums float32 would round
    kinds = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}
    adata.layers["counts"] = da.from_array(counts, chunks=(400, 80)) if kind == "dask" else kinds[kind](counts)
    found = metacells(adata, M)
    assert found.uns["metacells"]["params"]["layer"] == "counts"
    assert sparse.issparse(found.X) == (kind in ("csr", "csc"))
    assert found.X.dtype == (np.int64 if np.dtype(dtype).kind in "iu" else np.float64)
    assert (np.asarray(found.X.sum(axis=0)).ravel() == counts.sum(axis=0, dtype=np.float64)).all()
    np.testing.assert_array_equal(sparse.csr_matrix(found.X).toarray(), summed(counts, groups_of(adata), M))


def test_permuted_cells_have_permuted_assignments_and_the_same_metacells():
    adata = counted()
    order = np.random.default_rng(1).permutation(N)
    other = adata[order].copy()
    first, second = (metacells(each, M, label_key="noise", sample_key="donor", rng=4) for each in (adata, other))
    assert adata.obs["metacell"].iloc[order].tolist() == other.obs["metacell"].tolist()
    assert (first.X != second.X).nnz == 0
    pd.testing.assert_frame_equal(first.obs, second.obs)
    np.testing.assert_array_equal(first.obsm["X_pca"], second.obsm["X_pca"])


def test_the_same_seed_gives_the_same_metacells_and_the_input_is_unchanged():
    adata = counted()
    before = adata.copy()
    first = metacells(adata, M, key_added=None, rng=2)
    second = metacells(adata, M, key_added=None, rng=2)
    assert (first.X != second.X).nnz == 0
    assert adata.obs.columns.tolist() == before.obs.columns.tolist()
    assert (adata.X != before.X).nnz == 0
    assert not adata.uns


def test_no_metacell_mixes_samples_and_small_samples_have_some():
    adata = counted()
    found = metacells(adata, M, sample_key="donor")
    for j, donor in enumerate(found.obs["donor"]):
        assert set(adata.obs["donor"][groups_of(adata) == j]) == {donor}
    assert set(found.obs["donor"]) == {"a", "b", "c"}
    assert len(found) == M
    proportions = found.obs["donor"].value_counts(normalize=True)
    assert abs(proportions["a"] - 0.7) < 0.05


def test_separate_types_are_not_mixed():
    adata = counted()
    found = metacells(adata, M, label_key="kind")
    assert (found.obs["kind_purity"] == 1).all()
    assert found.uns["metacells"]["purity"] == 1
    assert found.obs["n_cells"][found.obs["kind"] == "rare"].sum() == 40
    assert found.obs["kind"].cat.categories.tolist() == ["common", "never", "rare"]  # so that colours stay


def test_the_certificate_is_that_of_the_weighted_means():
    adata = counted()
    found = metacells(adata, M)
    facts = found.uns["metacells"]
    assert facts["interval"][0] <= facts["relative_error"] <= facts["interval"][1] <= facts["tol"]
    X, C, w = adata.obsm["X_pca"], found.obsm["X_pca"].astype(float), found.obs["n_cells"].to_numpy() / N

    def product(A, a, B, b):
        squares = ((A[:, None] - B[None]) ** 2).sum(axis=2)
        return a @ np.exp(-squares / (2 * facts["resolution"] ** 2)) @ b

    u = np.full(N, 1 / N)
    whole = product(X, u, X, u)
    error = np.sqrt((whole - 2 * product(X, u, C, w) + product(C, w, C, w)) / whole)
    assert facts["relative_error"] == pytest.approx(error, rel=1e-3)
    own = X - C[groups_of(adata)]
    assert facts["radius"] == pytest.approx(np.linalg.norm(own, axis=1).max(), rel=1e-5)
    assert facts["explained_variance"] == pytest.approx(1 - (own**2).sum() / ((X - X.mean(axis=0)) ** 2).sum(), rel=1e-5)
    assert "25 metacells of 1,500 cells" in facts["summary"]


def test_more_metacells_explain_more():
    explained = [metacells(counted(), m).uns["metacells"]["explained_variance"] for m in (5, 20, 80, 320)]
    assert explained == sorted(explained)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_backed_files(mode, kind, tmp_path):
    adata = counted()
    adata.X = {"csr": adata.X, "csc": adata.X.tocsc(), "dense": adata.X.toarray()}[kind]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    stored = anndata.read_h5ad(tmp_path / "cells.h5ad", backed=mode)
    found, expected = metacells(stored, M, label_key="noise"), metacells(adata, M, label_key="noise")
    np.testing.assert_array_equal(sparse.csr_matrix(found.X).toarray(), sparse.csr_matrix(expected.X).toarray())
    pd.testing.assert_frame_equal(found.obs, expected.obs)
    assert stored.obs["metacell"].tolist() == adata.obs["metacell"].tolist()
    part = metacells(stored[10:700], M, key_added=None)  # a view of a file, to which nothing is written
    assert part.obs["n_cells"].sum() == 690
    stored.file.close()
    write(found, tmp_path / "few.h5ad")
    again = anndata.read_h5ad(tmp_path / "few.h5ad")
    assert (sparse.csr_matrix(again.X) != sparse.csr_matrix(found.X)).nnz == 0
    assert again.uns["metacells"]["summary"] == found.uns["metacells"]["summary"]


@pytest.mark.parametrize("read", [anndata.read_zarr, anndata.experimental.read_lazy], ids=["zarr", "lazy"])
def test_zarr(read, tmp_path):
    write(counted(), tmp_path / "cells.zarr")
    found = metacells(read(tmp_path / "cells.zarr"), M, label_key="kind", key_added=None)
    expected = metacells(counted(), M, label_key="kind")
    np.testing.assert_array_equal(sparse.csr_matrix(found.X).toarray(), expected.X.toarray())
    assert found.obs["kind"].tolist() == expected.obs["kind"].tolist()
    assert found.var_names.tolist() == expected.var_names.tolist()


def test_which_matrix_is_summed():
    adata = counted()
    counts = adata.X.copy()
    adata.raw = adata
    adata.X = counts.log1p()
    raw = metacells(adata, M)
    assert raw.uns["metacells"]["params"]["layer"] == "raw"
    assert raw.X.sum() == counts.sum()
    adata.layers["spliced"] = 3 * counts
    assert metacells(adata, M, layer="spliced").X.sum() == 3 * counts.sum()
    assert metacells(adata, M, layer="X").X.sum() == pytest.approx(adata.X.sum(), rel=1e-6)  # what it is, because it was named
    adata.raw = None
    with pytest.raises(ValueError, match=r"layer must name a matrix of counts, and none of X holds whole numbers .* X, spliced"):
        metacells(adata, M)
    with pytest.raises(ValueError, match=r"layer .*got 'splice' \(did you mean 'spliced'\?\)"):
        metacells(adata, M, layer="splice")


def test_raw_has_its_own_genes():
    adata = counted()
    adata.raw = adata
    few = adata[:, :10].copy()
    few.X = few.X.log1p()
    found = metacells(few, M)
    assert found.var_names.tolist() == adata.var_names.tolist()
    np.testing.assert_array_equal(found.X.toarray(), summed(adata.X.toarray(), groups_of(few), M))


def test_without_coordinates_they_are_made_and_stored():
    adata = counted()
    del adata.obsm["X_pca"]
    with pytest.warns(UserWarning, match="truncated SVD of X"):
        found = metacells(adata, M)
    assert found.obsm["X_svd"].shape == (M, 50)
    assert adata.obsm["X_svd"].shape == (N, 50)
    assert "truncated SVD" in found.uns["metacells"]["note"]
    few = anndata.AnnData(np.random.default_rng(0).poisson(3.0, (200, 4)))
    found = metacells(few, 10, use_rep="X")
    np.testing.assert_allclose(found.obsm["X_mean"] * found.obs["n_cells"].to_numpy()[:, None], found.X, rtol=1e-5)


def test_one_cell_all_cells_and_the_default_size():
    adata = counted()
    one = metacells(adata[:1].copy(), 1, label_key="kind")
    assert one.shape == (1, adata.n_vars)
    assert one.obs["kind_purity"].tolist() == [1.0]
    part = adata[:60].copy()
    every = metacells(part, 60)
    assert every.obs["n_cells"].tolist() == [1] * 60
    np.testing.assert_array_equal(every.X.toarray()[groups_of(part)], part.X.toarray())
    assert every.uns["metacells"]["explained_variance"] == pytest.approx(1)
    assert len(metacells(adata)) == 20  # one for every 75 cells


def test_cells_in_one_place_form_one_metacell():
    adata = counted()
    adata.obsm["X_pca"] = np.repeat(adata.obsm["X_pca"][:30], 50, axis=0)
    found = metacells(adata, 100)
    assert len(found) == 30
    assert found.obs["n_cells"].tolist() == [50] * 30
    adata.obsm["X_pca"] = np.ones((N, 3))
    found = metacells(adata, 10)
    assert found.obs["n_cells"].tolist() == [N]
    np.testing.assert_array_equal(found.X.toarray()[0], adata.X.toarray().sum(axis=0))


def test_a_second_call_replaces_the_first_and_repeated_names_do_no_harm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = counted(unique=False)
    metacells(adata, M)
    metacells(adata, 7)
    metacells(adata, 9, key_added="other")
    assert (adata.obs["metacell"].nunique(), adata.obs["other"].nunique()) == (7, 9)


def test_a_view_becomes_a_copy_without_a_warning():
    adata = counted()
    view = adata[adata.obs["kind"] == "common"]
    found = metacells(view, 10)
    assert found.obs["n_cells"].sum() == view.n_obs
    assert "metacell" not in adata.obs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 0}, "size must be"),
        ({"size": N + 1}, f"size must be .* {N + 1}"),
        ({"tol": 0}, "tol must be"),
        (
            {"label_key": "knd"},
            r"label_key .*got 'knd' \(did you mean 'kind'\?\).* kind, donor",
        ),
        ({"sample_key": "doner"}, "sample_key must be one of the columns"),
        ({"sample_key": "donor", "size": 2}, "size must be at least the number of groups"),
        ({"mean_keys": ["kind"]}, "mean_keys must name columns of obs with numbers"),
        ({"mean_keys": ["scores"]}, "mean_keys must be one of the columns"),
        ({"use_rep": "X_pcaa"}, "use_rep must be one of"),
        ({"key_added": "donor"}, r"obs\['donor'\] exists"),
        ({"key_added": ""}, "key_added must be a name"),
        ({"key_added": "taken"}, r"uns\['taken'\] exists"),
    ],
    ids=str,
)
def test_what_raises(options, words):
    adata = counted()
    adata.uns["taken"] = 1
    with pytest.raises((ValueError, TypeError), match=words):
        metacells(adata, **({"size": M} | options))
    assert "metacell" not in adata.obs


def test_missing_labels_and_no_cells_raise():
    adata = counted()
    adata.obs.loc[adata.obs_names[[3, 5]], "donor"] = None
    for key in ("label_key", "sample_key"):
        with pytest.raises(ValueError, match=r"2 of 1,500 have none in obs\['donor'\]"):
            metacells(adata, M, **{key: "donor"})
    with pytest.raises(ValueError, match="must hold cells, got none"):
        metacells(adata[:0].copy())
    with pytest.raises(TypeError, match="must be an AnnData"):
        metacells(np.zeros((3, 2)), 1)
