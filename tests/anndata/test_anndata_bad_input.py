"""What is refused, with the parameter, the rule, what was seen and the way out."""

from __future__ import annotations

import sys

import anndata
import numpy as np
import pandas as pd
import pytest

from annotated_cases import N, cells
from reduset.anndata import densities, density, project, sketch


@pytest.fixture
def adata():
    return cells()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"use_rep": "X_pcaa"}, r"use_rep .*got 'X_pcaa' \(did you mean 'X_pca'\?\)"),
        ({"size": N + 1}, f"size must be .* {N + 1}"),
        ({"size": 0}, "size must be"),
        ({"size": 0.1}, "for a proportion use fraction=0.1"),
        ({"size": 10, "fraction": 0.1}, "size and fraction both"),
        ({"fraction": 1.5}, "fraction must be at most 1"),
        ({"fraction": -1}, "fraction must be"),
        ({"sample_key": "doner"}, r"sample_key .*got 'doner' \(did you mean 'donor'\?\)"),
        ({"sample_key": "donor", "size": 2}, "at least the number of groups"),
        ({"quotas": "fair"}, "quotas must be"),
        ({"key_added": "donor"}, r"obs\['donor'\] exists"),
        ({"key_added": ""}, "key_added must be a name"),
    ],
    ids=str,
)
def test_sketch_refuses(adata, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        sketch(adata, **({"size": 50} | options if "fraction" not in options or "size" in options else options))
    assert "sketch" not in adata.obs


@pytest.mark.parametrize(("value", "words"), [("cells.h5ad", "anndata.read_h5ad"), (np.zeros((3, 2)), "got ndarray")])
def test_what_is_no_anndata(value, words):
    with pytest.raises(TypeError, match=words):
        sketch(value)


def test_without_the_library_the_extra_is_named(adata, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ValueError, match=r"needs anndata, which is not installed: pip install 'reduset\[anndata\]'"):
        sketch(adata)


def test_no_cells_and_no_arrays(adata):
    with pytest.raises(ValueError, match="must hold cells, got none"):
        sketch(adata[:0].copy())
    with pytest.raises(ValueError, match="there are none"):
        sketch(anndata.AnnData(obs=pd.DataFrame(index=["a", "b"])), 1)


def test_samples_that_are_missing_are_counted(adata):
    adata.obs.loc[adata.obs_names[[3, 5]], "donor"] = None
    with pytest.raises(ValueError, match=r"2 of 1,500 have none in obs\['donor'\] \(the first are cell3, cell5\)"):
        sketch(adata, 50, sample_key="donor")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_coordinates_that_are_no_numbers_are_counted(adata, bad):
    adata.obsm["X_pca"][[4, 9], 1] = bad
    with pytest.raises(ValueError, match=r"2 of 1,500 cells have other numbers \(the first are cell4, cell9\)"):
        sketch(adata, 50)
    adata.obsm["X_umap"][7, 0] = bad
    with pytest.raises(ValueError, match=r"1 of 1,500 cells have other numbers \(cell7\)"):
        density(adata)


def test_coordinates_beyond_single_precision_are_told_so(adata):
    adata.obsm["X_pca"] = adata.obsm["X_pca"].astype(float)
    adata.obsm["X_pca"][[4, 9], 1] = 1e39
    with pytest.raises(
        ValueError, match=r"obsm\['X_pca'\] must be finite in single precision .*other numbers \(the first are cell4, "
    ):
        sketch(adata, 50)
    adata.obsm["X_umap"] = adata.obsm["X_umap"].astype(float)
    adata.obsm["X_umap"][7, 0] = -1e39
    with pytest.raises(ValueError, match=r"obsm\['X_umap'\] must be finite in single precision .*\(cell7\); omit"):
        density(adata)


def test_genes_that_are_no_numbers_are_found():
    values = np.random.default_rng(0).normal(size=(40, 60))
    values[8, 3] = np.nan
    with pytest.raises(ValueError, match="X must be finite"):
        sketch(anndata.AnnData(values), 5, use_rep=None)


def test_a_frame_with_texts_is_no_representation(adata):
    adata.obsm["words"] = pd.DataFrame({"a": ["x"] * N}, index=adata.obs_names)
    with pytest.raises(ValueError, match="columns that hold no numbers"):
        sketch(adata, 50, use_rep="words")


def test_a_view_of_a_file_is_refused_and_a_copy_of_it_is_not(adata, tmp_path):
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    view = backed[backed.obs["kind"] == "common"]
    with pytest.raises(ValueError, match=r"view of a file.*to_memory\(\)"):
        sketch(view, 20)
    assert sketch(view, 20, copy=True).obs["sketch"].sum() == 20
    backed.file.close()


def test_uns_of_others_is_not_lost(adata):
    adata.uns["sketch"] = {"mine": 1}
    with pytest.raises(ValueError, match=r"uns\['sketch'\] exists"):
        sketch(adata, 20)
    assert adata.uns["sketch"] == {"mine": 1}


# -- project ------------------------------------------------------------------------------------------------------------------


def test_project_without_a_sketch(adata):
    with pytest.raises(ValueError, match="make one first"):
        project(adata, "kind")


def test_project_of_a_column_that_is_not_there(adata):
    sketch(adata, 50)
    with pytest.raises(ValueError, match=r"column .*got 'kinds' \(did you mean 'kind'\?\)"):
        project(adata, "kinds")
    with pytest.raises(ValueError, match=r"or the keys of adata\.obsm, got 'kinds'"):
        project(adata, "kinds")


def test_project_of_an_array_of_texts(adata):
    sketch(adata, 50)
    adata.obsm["words"] = pd.DataFrame({"a": ["x"] * N}, index=adata.obs_names)
    with pytest.raises(ValueError, match=r"obsm\['words'\] must hold numbers"):
        project(adata, "words")


def test_project_does_not_write_into_what_holds_something_for_the_sketch(adata):
    sketch(adata, 50)
    adata.obs["mine"] = np.where(adata.obs["sketch"], 1.5, np.nan)
    with pytest.raises(ValueError, match=r"obs\['mine'\] has values already, .*; choose another key_added"):
        project(adata, "score", key_added="mine")


def test_project_does_not_write_over_what_others_wrote(adata):
    sketch(adata, 50)
    with pytest.raises(ValueError, match=r"obs\['kind'\] has values for cells outside the sketch.*key_added"):
        project(adata, "kind")


def test_project_after_a_subset_says_that_assignments_are_gone(adata):
    sketch(adata, 50)
    part = adata[np.arange(N) % 2 == 0].copy()
    with pytest.raises(ValueError, match=r"made for 1,500 cells, and adata now has 750"):
        project(part, "kind", key_added="more")
    rest = adata[~adata.obs["sketch"]].copy()
    with pytest.raises(ValueError, match="marks no cell"):
        project(rest, "kind", key_added="more")


def test_project_of_values_that_are_missing_in_the_sketch(adata):
    sketch(adata, 50)
    small = adata[adata.obs["sketch"]].copy()
    small.obs["label"] = pd.Categorical([None, *["x"] * 49])
    with pytest.raises(ValueError, match="1 of 50 have none"):
        project(adata, "label", small=small)
    with pytest.raises(ValueError, match="1 are missing"):
        project(adata, "kind", small=small[1:].copy(), key_added="more")


def test_project_wants_neighbours(adata):
    sketch(adata, 50)
    with pytest.raises(ValueError, match="n_neighbors must be"):
        project(adata, "kind", key_added="more", n_neighbors=0)


# -- density ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"basis": "umaps"}, "basis must .*'umap'"),
        ({"components": "1"}, "components must be two numbers from 1 to 2"),
        ({"components": "1,3"}, "components must be two numbers"),
        ({"components": "x,y"}, "components must be two numbers"),
        ({"groupby": "doner"}, "groupby must be one of"),
        ({"key_added": "score"}, r"obs\['score'\] exists"),
        ({"tol": 0}, "tol must be"),
    ],
    ids=str,
)
def test_density_refuses(adata, options, words):
    with pytest.raises(ValueError, match=words):
        density(adata, **options)


def test_density_of_too_few_cells(adata, monkeypatch):
    def none(*_):
        pytest.fail("groups must be looked at before the first density is computed")

    monkeypatch.setattr(densities, "embedding_density", none)
    adata.obs["lonely"] = pd.Categorical(["one", "one", *["many"] * (N - 2)])
    with pytest.raises(ValueError, match=r"of one must have at least 3 cells"):
        density(adata, groupby="lonely")
    assert "umap_density_lonely" not in adata.obs
    adata.obsm["X_umap"][:, 1] = adata.obsm["X_umap"][:, 0]
    with pytest.raises(ValueError, match="do not lie on one line"):
        density(adata)
