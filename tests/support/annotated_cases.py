"""Small AnnData objects for tests: two kinds of cells, one of them rare, of three donors."""

from __future__ import annotations

import warnings

import anndata
import numpy as np
import pandas as pd
from scipy import sparse

N, RARE = 1500, 40
COMMON = N - RARE


def cells(n_genes: int = 80, unique: bool = True) -> anndata.AnnData:
    """(n, genes) sparse X, X_pca of five columns, X_umap of two, kinds, donors and a score."""
    rng = np.random.default_rng(7)
    rare = np.arange(N) >= COMMON
    pca = rng.normal(size=(N, 5)) + 9.0 * rare[:, None]
    X = sparse.random(N, n_genes, 0.1, "csr", np.float32, rng=rng)
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(np.where(rare, "rare", "common"), categories=["common", "never", "rare"]),
            "donor": pd.Categorical(rng.choice(["a", "b", "c"], N, p=[0.7, 0.28, 0.02])),
            "score": pca[:, 0],
        },
        index=[f"cell{i if unique else i // 2}" for i in range(N)],
    )
    var = pd.DataFrame(index=[f"gene{j}" for j in range(n_genes)])
    return anndata.AnnData(X, obs=obs, var=var, obsm={"X_pca": pca, "X_umap": pca[:, :2].astype(np.float32)})


def write(adata: anndata.AnnData, path) -> None:
    """As .h5ad or .zarr, by the suffix; of zarr the library warns which defaults it is going to change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(adata, f"write_{path.suffix[1:]}")(path)
