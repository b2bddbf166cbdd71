"""Densities of an embedding at every cell: `reduset.anndata.density`, SciPy's `gaussian_kde` and what scanpy makes of it.

scanpy's `embedding_density` is SciPy's estimate, evaluated at the cells and scaled to [0, 1]: n² bumps. Beside it up to 40,000
cells, where values are compared; beyond, its time is that of 40,000 cells times the square of how many more there are. The cells:
twelve normal clusters of different shapes and sizes in the plane, float32. Each of ours runs in a fresh process; memory is the
highest resident memory of that process, the library and all cells among it, and beside it what there was before the call.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import gaussian_kde

from benchmarks._lib import table, verdict

TITLE = "Densities of an embedding, at every cell"

SMALL, SIZES = (5_001, 20_000, 40_000), (1_000_000, 12_500_000)
LIMIT, MEMORY = 60.0, 1.5
CLUSTERS = 12

OWN = """
import json, resource, sys, time
sys.path.insert(0, {folder!r})
import numpy as np, pandas as pd, anndata
from benchmarks.applications.embedding_density import cells
from reduset.anndata import density
from reduset.anndata.densities import EmbeddingDensity

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

n, annotated = {n}, {annotated}
places = cells(n)
EmbeddingDensity.of(places[:6000], 0.01, "compiled")  # what is compiled is compiled
if annotated:
    adata = anndata.AnnData(obs=pd.DataFrame(index=pd.RangeIndex(n).astype(str)), obsm={{"X_umap": places}})
before = peak()
begun = time.perf_counter()
if annotated:
    density(adata)
    facts = adata.uns["umap_density_params"]
else:
    facts = EmbeddingDensity.of(places, 0.01, "cells").facts()
seconds = time.perf_counter() - begun
found = [facts["relative_error"], facts["interval"][1], facts["sup_error"], facts["size"]]
print(json.dumps([seconds, before, peak(), *map(float, found)]))
"""


def cells(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres, shapes = 6 * rng.normal(size=(CLUSTERS, 2)), rng.normal(size=(CLUSTERS, 2, 2))
    shares = rng.dirichlet(np.full(CLUSTERS, 1.5))
    out = np.empty((n, 2), np.float32)
    for a in range(0, n, 1_000_000):
        of = rng.choice(CLUSTERS, min(n - a, 1_000_000), p=shares)
        out[a : a + len(of)] = centres[of] + np.einsum("nij,nj->ni", shapes[of], rng.normal(size=(len(of), 2)))
    return out


def ours(n: int, annotated: bool) -> list[float]:
    code = OWN.format(folder=str(Path(__file__).parent), n=n, annotated=annotated)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def small(n: int) -> tuple[float, float, float]:
    """Seconds of SciPy's and of ours, and the largest difference of scaled values."""
    from reduset.anndata.densities import EmbeddingDensity

    places = cells(n)
    begun = time.perf_counter()
    theirs = gaussian_kde(places.T.astype(np.float64))(places.T)
    theirs = (theirs - theirs.min()) / (theirs.max() - theirs.min())
    between = time.perf_counter()
    found = EmbeddingDensity.of(places, 0.01, "cells").scaled
    return between - begun, time.perf_counter() - between, float(np.abs(found - theirs).max())


def run() -> str:
    few = [(n, *small(n)) for n in SMALL]
    rows = [[f"{n:,}", f"{theirs:.3g}", f"{own:.3g}", "", "", "", f"{off:.1e}"] for n, theirs, own, off in few]
    last = few[-1]
    goals = []
    for n in SIZES:
        expected = last[1] * (n / last[0]) ** 2
        for annotated in (False, True):
            seconds, before, peak, error, high, sup, size = ours(n, annotated)
            words = f"{peak:.2f} ({before:.2f} before)"
            name = f"{n:,}, {'in an AnnData' if annotated else 'the coordinates alone'}"
            lost = f"{100 * error:.2g} % (at most {100 * high:.2g} %)"
            times = [f"{expected:.2g} (by n²)", f"{seconds:.3g}"]
            rows.append([name, *times, words, lost, f"{100 * sup:.2g} %", f"{size:,.0f} atoms"])
            if n == SIZES[-1] and not annotated:
                goals = [verdict(-seconds, -LIMIT), verdict(-peak, -MEMORY)]
    head = ["cells", "SciPy, as scanpy calls it, s", "ours, s", "peak, GB", "error, of the norm", "any value, of the peak"]
    head += ["difference of scaled values, or atoms"]
    told = f"{SIZES[-1]:,} cells in at most {LIMIT:g} s: {goals[0]}; in less than {MEMORY} GB: {goals[1]} (the coordinates alone)."
    return "\n\n".join([table(head, rows), told])
