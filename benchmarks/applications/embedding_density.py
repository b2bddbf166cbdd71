"""How fast, and in how much memory, are the densities of an embedding at every cell?

Against SciPy's `gaussian_kde`, which scanpy's `embedding_density` evaluates at the cells: n² kernel values, measured up to 40,000
cells and extrapolated by n². Goals: 12.5 million cells in 60 s and 1.5 GB. Cells are twelve normal clusters in the plane, float32.

``python -m benchmarks.applications.embedding_density CELLS coordinates|annotated`` is one fresh process; its memory includes the
library and the cells."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from benchmarks._lib import own_process, table, verdict
from benchmarks.speed.growth import memory

TITLE = "Densities of an embedding, at every cell"
SOURCES = ("anndata/densities.py", "compression", "mean.py")

FULL = {"small": (5_001, 20_000, 40_000), "sizes": (1_000_000, 12_500_000)}
QUICK = {"small": (2_001,), "sizes": (20_000,)}
LIMIT, MEMORY = 60.0, 1.5
CLUSTERS, TOL = 12, 0.01
FORMS = {"coordinates": "the coordinates alone", "annotated": "in an AnnData"}


def cells(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres, shapes = 6 * rng.normal(size=(CLUSTERS, 2)), rng.normal(size=(CLUSTERS, 2, 2))
    proportions = rng.dirichlet(np.full(CLUSTERS, 1.5))
    out = np.empty((n, 2), np.float32)
    for a in range(0, n, 1_000_000):
        of = rng.choice(CLUSTERS, min(n - a, 1_000_000), p=proportions)
        out[a : a + len(of)] = centres[of] + np.einsum("nij,nj->ni", shapes[of], rng.normal(size=(len(of), 2)))
    return out


def of_coordinates(coordinates: np.ndarray) -> Any:
    """The density without an AnnData."""
    from reduset.anndata.densities import _mean_of, embedding_density

    return embedding_density(_mean_of(coordinates, "cells"), coordinates, TOL, "cells")


def peak() -> float:
    """Peak memory of this process in GB."""
    return memory("VmHWM") / 1e9


def of_process(n: int, form: str) -> dict[str, float]:
    """Seconds, memory and errors of this process."""
    import anndata
    import pandas as pd

    from reduset.anndata import density

    coordinates = cells(n)
    of_coordinates(coordinates[:6000])  # compiles
    adata = None
    if form == "annotated":
        adata = anndata.AnnData(obs=pd.DataFrame(index=pd.RangeIndex(n).astype(str)), obsm={"X_umap": coordinates})
    before, begun = peak(), time.perf_counter()
    if adata is None:
        facts = of_coordinates(coordinates)[1]
    else:
        density(adata)
        facts = adata.uns["umap_density_params"]
    found = {"seconds": time.perf_counter() - begun, "before": before, "peak": peak(), "error": facts["relative_error"]}
    found |= {"high": facts["interval"][1], "sup": facts["sup_error"], "size": facts["size"]}
    return {name: float(value) for name, value in found.items()}


def small(n: int) -> tuple[float, float, float]:
    """Seconds of SciPy and of reduset, and the largest difference of scaled values."""
    coordinates = cells(n)
    begun = time.perf_counter()
    theirs = gaussian_kde(coordinates.T.astype(np.float64))(coordinates.T)
    theirs = (theirs - theirs.min()) / (theirs.max() - theirs.min())
    between = time.perf_counter()
    found = of_coordinates(coordinates)[0]
    return between - begun, time.perf_counter() - between, float(np.abs(found - theirs).max())


def measure(quick: bool) -> dict[str, Any]:
    sizes = QUICK if quick else FULL
    few = [(n, *small(n)) for n in sizes["small"]]
    rows = [[f"{n:,}", f"{theirs:.3g}", f"{own:.3g}", "", "", "", f"{off:.1e}"] for n, theirs, own, off in few]
    n, theirs, own, _ = few[-1]
    found = {
        (size, form): json.loads(own_process(__file__, str(size), form).stdout.splitlines()[-1])
        for size in sizes["sizes"]
        for form in FORMS
    }
    for (size, form), each in found.items():
        rows.append([
            f"{size:,}, {FORMS[form]}", f"{theirs * (size / n) ** 2:.2g} (by n²)", f"{each['seconds']:.3g}",
            f"{each['peak']:.2f} ({each['before']:.2f} before)",
            f"{100 * each['error']:.2g} % (at most {100 * each['high']:.2g} %)", f"{100 * each['sup']:.2g} %",
            f"{each['size']:,.0f} atoms",
        ])  # fmt: skip
    size = sizes["sizes"][-1]
    largest = found[size, "coordinates"]
    head = ["cells", "SciPy, as scanpy calls it, s", "reduset, s", "peak, GB", "error, of the norm", "any value, of the peak"]
    return {
        "summary": [
            [f"Time of {size:,} cells", f"{largest['seconds']:.3g} s", f"≤ {LIMIT:g} s", verdict(-largest["seconds"], -LIMIT)],
            ["Peak memory of the process", f"{largest['peak']:.2f} GB", f"≤ {MEMORY} GB", verdict(-largest["peak"], -MEMORY)],
            ["Error of the density, of its norm", f"{100 * largest['error']:.2g} %", f"≤ {TOL:.0%}",
             verdict(-largest["error"], -TOL)],
            [f"SciPy and reduset, {n:,} cells", f"{theirs:.3g} s, {own:.3g} s", "", ""],
            ["Largest difference of scaled values from SciPy's", f"{max(off for *_, off in few):.1e}", "", ""],
        ],
        "details": table([*head, "difference of scaled values, or atoms"], rows),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(of_process(int(sys.argv[1]), sys.argv[2])))
