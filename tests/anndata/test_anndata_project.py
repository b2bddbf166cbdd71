"""Labels, scores and embeddings carried from a sketch to all cells."""

from __future__ import annotations

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from annotated_cases import N, cells
from reduset.anndata import project, sketch


@pytest.fixture
def pair():
    adata = cells()
    sketch(adata, 80)
    return adata, adata[adata.obs["sketch"]].copy()


def by_loops(adata, labels, k):
    """The vote by its definition: label and share of each cell."""
    where = adata.obsm["X_pca"].astype(np.float32).astype(float)
    chosen = np.flatnonzero(adata.obs["sketch"])
    seat = {name: j for j, name in enumerate(adata.obs_names[chosen])}
    out = []
    for i, owner in enumerate(adata.obs["sketch_assignment"]):
        own = chosen[seat[owner]]
        near = chosen[np.argsort(((where[chosen] - where[own]) ** 2).sum(axis=1), kind="stable")[:k]]
        d = np.sqrt(((where[near] - where[i]) ** 2).sum(axis=1))
        a = (1 - (d / (1.05 * d.max())) ** 3) ** 3
        shares = {label: a[labels[near] == label].sum() / a.sum() for label in set(labels[near])}
        best = max(shares, key=shares.get)
        out.append((best, shares[best]))
    return out


def test_the_vote_is_that_of_its_definition(pair):
    adata, _ = pair
    labels = np.where(adata.obsm["X_pca"][:, 0] > 0, "right", "left").astype(object)
    adata.obs["side"] = pd.Categorical(np.where(adata.obs["sketch"], labels, None))
    project(adata, "side", n_neighbors=7)
    expected = by_loops(adata, labels, 7)
    outside = ~adata.obs["sketch"].to_numpy()
    sure = np.array([share for _, share in expected])
    np.testing.assert_allclose(adata.obs["side_sure"], sure, atol=1e-4)
    clear = outside & (sure > 0.501)
    assert (adata.obs["side"].astype(str).to_numpy() == np.array([label for label, _ in expected]))[clear].all()
    assert (adata.obs["side"].astype(str) == labels)[adata.obs["sketch"]].all()  # cells of the sketch keep their own


def test_labels_of_a_small_object_in_any_order(pair):
    adata, small = pair
    small.obs["cluster"] = small.obs["kind"].cat.rename_categories({"common": "0", "never": "1", "rare": "2"})
    small = small[::-1].copy()
    project(adata, "cluster", small=small)
    assert adata.obs["cluster"].dtype == "category"
    assert adata.obs["cluster"].value_counts().to_dict() == {"0": N - 40, "2": 40}
    assert adata.obs["cluster_sure"].between(0, 1).all()
    project(adata, "cluster", small=small, n_neighbors=3)  # what it wrote itself may be written again


@pytest.mark.parametrize("kind", ["text", "flag", "whole"])
def test_labels_stay_what_they_were(pair, kind):
    adata, small = pair
    rare = (small.obs["kind"] == "rare").to_numpy()
    small.obs["label"] = {"text": np.where(rare, "r", "c"), "flag": rare, "whole": np.where(rare, 7, 3)}[kind]
    project(adata, "label", small=small)
    found = adata.obs["label"]
    assert found.dtype.kind == {"text": "O", "flag": "b", "whole": "i"}[kind]
    assert (found == {"text": "r", "flag": True, "whole": 7}[kind]).tolist() == (adata.obs["kind"] == "rare").tolist()


def test_scores_are_means_of_neighbours(pair):
    adata, small = pair
    project(adata, "score", small=small, key_added="guess")
    truth, guess = adata.obs["score"], adata.obs["guess"]
    assert np.corrcoef(truth, guess)[0, 1] > 0.9
    assert (truth == guess)[adata.obs["sketch"]].all()
    assert adata.obs["guess_sure"].between(0, 1).all()
    small.obs["flat"] = 2.5
    project(adata, "flat", small=small)
    np.testing.assert_allclose(adata.obs["flat"], 2.5)
    assert (adata.obs["flat_sure"] == 1).all()


def test_embeddings_go_to_obsm(pair):
    adata, small = pair
    small.obsm["X_map"] = small.obsm["X_pca"][:, :2] * 2.0
    project(adata, "X_map", small=small)
    assert adata.obsm["X_map"].shape == (N, 2)
    chosen = adata.obs["sketch"].to_numpy()
    np.testing.assert_array_equal(adata.obsm["X_map"][chosen], small.obsm["X_map"])
    assert np.corrcoef(adata.obsm["X_map"][:, 0], adata.obsm["X_pca"][:, 0])[0, 1] > 0.9
    assert adata.obs["X_map_sure"].between(0, 1).all()


def test_after_writing_and_reading_and_in_a_part_that_has_all_assignments(pair, tmp_path):
    adata, small = pair
    project(adata, "kind", small=small, key_added="found")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    project(again, "kind", small=small, key_added="found")
    assert again.obs["found"].tolist() == adata.obs["found"].tolist()
    part = again[again.obs["sketch"] | (np.arange(N) % 2 == 0)].copy()
    project(part, "kind", small=small, key_added="found")
    assert part.obs["found"].tolist() == adata.obs.loc[part.obs_names, "found"].tolist()


def test_repeated_names_are_refused_with_the_way_out():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = cells(unique=False)
        sketch(adata, 80)
    with pytest.raises(ValueError, match=r"cell names must be unique.*adata.obs_names_make_unique\(\)"):
        project(adata, "kind", key_added="found")
    adata.obs_names_make_unique()
    sketch(adata, 80)
    small = adata[adata.obs["sketch"]].copy()
    project(adata, "kind", small=small, key_added="found")
    assert (adata.obs["found"].astype(str) == adata.obs["kind"].astype(str)).all()
    small.obs_names = ["same"] * 80
    with pytest.raises(ValueError, match="small must have unique cell names"):
        project(adata, "kind", small=small, key_added="found")


def test_more_neighbours_than_cells_of_the_sketch_are_all_of_them(pair):
    adata, small = pair
    project(adata, "kind", small=small, key_added="found", n_neighbors=1000)
    projected = adata.uns["sketch"]["projected"]
    assert (projected["name"].tolist(), projected["n_neighbors"].tolist()) == (["found"], [80])


def test_cells_in_one_place():
    adata = cells()
    adata.obsm["X_pca"] = np.zeros((N, 2))
    adata.obsm["X_pca"][:3] = 1.0
    sketch(adata, 2, coverage=0.5)
    small = adata[adata.obs["sketch"]].copy()
    small.obs["place"] = small.obsm["X_pca"][:, 0].astype(str)
    project(adata, "place", small=small)
    assert adata.obs["place"].astype(float).tolist() == adata.obsm["X_pca"][:, 0].tolist()


@pytest.mark.parametrize("empty", [np.nan, None, pd.Categorical([None] * N, ["x"])], ids=["numbers", "texts", "categories"])
def test_an_empty_column_may_be_filled_from_a_small_object(pair, empty):
    adata, small = pair
    adata.obs["label"] = adata.obs["more"] = empty
    small.obs["label"] = small.obs["kind"].astype(str)
    project(adata, "label", small=small)
    project(adata, "label", small=small, key_added="more")
    assert (
        adata.obs["label"].astype(str).tolist() == adata.obs["more"].astype(str).tolist() == adata.obs["kind"].astype(str).tolist()
    )


def test_sparse_arrays_are_embeddings_too(pair):
    adata, small = pair
    small.obsm["X_map"] = small.obsm["X_pca"][:, :2] * 2.0
    small.obsm["thin"] = sparse.csr_matrix(small.obsm["X_map"])
    project(adata, "X_map", small=small)
    project(adata, "thin", small=small)
    np.testing.assert_array_equal(adata.obsm["thin"], adata.obsm["X_map"])


@pytest.mark.filterwarnings("ignore:Forward slashes")
def test_names_with_strokes_survive_a_file(pair, tmp_path):
    adata, small = pair
    project(adata, "kind", small=small, key_added="B/T")
    project(adata, "score", small=small, key_added="name")
    with anndata.settings.override(disallow_forward_slash_in_h5ad=False):  # anndata 0.13 refuses such columns unless told
        adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    projected = again.uns["sketch"]["projected"]
    assert {fact: np.asarray(each).tolist() for fact, each in projected.items()} == {
        "name": ["B/T", "name"],
        "column": ["kind", "score"],
        "kind": ["labels", "scores"],
        "n_neighbors": [15, 15],
    }
    project(again, "kind", small=small, key_added="B/T", n_neighbors=3)  # what it wrote itself may be written again
    assert again.uns["sketch"]["projected"]["n_neighbors"].tolist() == [3, 15]


def test_whole_numbers_with_gaps_are_scores_and_it_is_told(pair):
    adata, _ = pair
    adata.obs["cluster"] = adata.obs["again"] = np.where(
        adata.obs["sketch"], np.where(adata.obs["kind"] == "rare", 7.0, 3.0), np.nan
    )
    with pytest.warns(UserWarning, match=r"adata.obs\['cluster'\] holds whole numbers.*averaged as scores; if they are labels: "):
        project(adata, "cluster")
    adata.obs["again"] = adata.obs["again"].astype("Int64").astype("category")  # the way out that is told
    adata.obs["half"] = np.where(adata.obs["sketch"], adata.obs["score"], np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        project(adata, "again")
        project(adata, "half")
    assert (adata.obs["again"].astype(int) == np.where(adata.obs["kind"] == "rare", 7, 3)).all()
