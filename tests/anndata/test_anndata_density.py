"""Densities of embeddings: those of scipy, within what is certified, under the names that scanpy plots."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy.stats import gaussian_kde

from annotated_cases import N, cells
from reduset import KernelMean
from reduset.anndata import densities, density

RNG = np.random.default_rng(3)


def embedded(n):
    places = np.concatenate([RNG.normal(size=(n // 2, 2)), RNG.normal([5, 1], [0.5, 1.5], size=(n - n // 2, 2))])
    obs = pd.DataFrame(index=[f"c{i}" for i in range(n)])
    return anndata.AnnData(obs=obs, obsm={"X_umap": places.astype(np.float32)})


def scaled(places):
    values = gaussian_kde(np.asarray(places, float).T)(np.asarray(places, float).T)
    return (values - values.min()) / (values.max() - values.min())


@pytest.mark.parametrize("way", ["exact", "lattice", "far"])
def test_values_are_those_of_scipy_within_what_is_certified(way, monkeypatch):
    adata = embedded(2000)
    if way != "exact":
        monkeypatch.setattr(densities, "MAX_EXACT", 100)
    if way == "far":
        monkeypatch.setattr(densities, "MAX_LATTICE_POINTS", 10)
    density(adata)
    found = adata.uns["umap_density_params"]
    assert (found["covariate"], found["components"]) == (None, [1, 2])
    off = np.abs(adata.obs["umap_density"] - scaled(adata.obsm["X_umap"])).max()
    assert off <= 2 * found["sup_error"] + 1e-6  # the peak that all are divided by may be off too
    assert found["relative_error"] <= 0.01
    assert (found["size"] == 2000) == (way == "exact")


def test_a_tolerance_that_is_not_reached_is_reported(monkeypatch):
    monkeypatch.setattr(densities, "MAX_EXACT", 100)
    monkeypatch.setattr(densities, "MAX_LATTICE_POINTS", 10)
    monkeypatch.setattr(densities, "MAX_ATOMS", 5)
    with pytest.warns(UserWarning, match=r"tol=0.01 was not reached"):
        density(embedded(2000))


def test_splines_are_as_near_as_is_said():
    places = embedded(8000).obsm["X_umap"]
    mean = densities._mean_of(places, "places")
    lattice = densities._Lattice.of(mean, 0.01)
    weights = lattice.weights(places)
    small = KernelMean.from_samples(lattice.coordinates(weights), mean.kernel, weights[weights > 0])
    exact = small(places)
    assert np.abs(lattice.smoothed(weights, places) - exact).max() < densities.SPLINE_ERROR * exact.max()
    assert weights.sum() == pytest.approx(len(places))
    np.testing.assert_allclose(
        weights[weights > 0] @ lattice.coordinates(weights) / 8000, places.mean(axis=0, dtype=float), atol=1e-9
    )
    assert small.distance(mean) < 0.005 * mean.norm()


def test_groups_have_densities_of_their_own():
    adata = cells()
    density(adata, groupby="kind")
    found = adata.obs["umap_density_kind"]
    for kind in ("common", "rare"):
        own = (adata.obs["kind"] == kind).to_numpy()
        np.testing.assert_allclose(found[own], scaled(adata.obsm["X_umap"][own]), atol=1e-6)
    params = adata.uns["umap_density_kind_params"]
    assert params["covariate"] == "kind"
    assert params["groups"]["name"].tolist() == ["common", "rare"]


def test_components_and_names(tmp_path):
    adata = cells()
    adata.obsm["X_diffmap"] = adata.obsm["X_pca"][:, :3]
    density(adata, "pca", components="2,3", key_added="mine")
    np.testing.assert_allclose(adata.obs["mine"], scaled(adata.obsm["X_pca"][:, 1:3].astype(np.float32)), atol=1e-6)
    density(adata, "diffmap")
    np.testing.assert_allclose(adata.obs["diffmap_density"], scaled(adata.obsm["X_pca"][:, 1:3].astype(np.float32)), atol=1e-6)
    density(adata, "diffmap")  # over its own
    adata.write_h5ad(tmp_path / "cells.h5ad")
    assert len(anndata.read_h5ad(tmp_path / "cells.h5ad").obs["mine"]) == N
