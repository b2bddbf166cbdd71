"""Metacells: purity on 10,000 simulated cells next to SEACells, and time and memory for 200,000 cells.

The cells are simulated: 20 types in five lineages, 16 of them from 20 % down to 1.5 %, four of 0.5 %; 2,000 genes; counts from a
negative binomial distribution with 1,500 counts a cell on average. Each type has a gradient of its own, so that types are no round
clouds. All methods get the same coordinates: 50 principal components of log-normalised counts. Purity is the proportion of the most
frequent type in a metacell, as a mean over metacells (SEACells' definition) and as a proportion of the cells.

Compared are the partition of `metacells`, plain k-means, the cells assigned to the rows of a sketch, strata of equal size (the
cells split recursively at the median along their first principal direction), a random assignment, and SEACells with the settings of
its tutorial, in an environment of its own (`make bench`, or REDUSET_METACELLS_PYTHON). REDUSET_METACELLS_FOUND may name a folder
with results of `metacells_worker.py` from an earlier run, `seed0.npz` and so on.

The 200,000 cells are 20 noisy copies of 10,000 simulated ones with 400 counts each, which gives 10 % nonzero entries. They run in a
fresh process; memory is its highest resident memory, with the library and all cells.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from harness import table, verdict

TITLE = "Metacells"

HERE = Path(__file__).resolve().parent
TYPES, LINEAGES, RARE, RARE_SHARE, GENES = 20, 5, 4, 0.005, 2000
CELLS, SIZE, DATA_SETS = 10_000, 133, 3  # 75 cells a metacell, as SEACells recommends
REPEATS = 5  # seeds of each method but SEACells, which takes minutes
MANY, COPIES, MANY_SIZE = 200_000, 20, 2000
SECONDS, MEMORY = 30.0, 2.0
COMPONENTS = 50

OWN = """
import json, resource, sys, time
sys.path.insert(0, {folder!r})
import anndata, numpy as np
from metacells import annotated, copied, simulated
from reduset.anndata import metacells

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

warm = annotated(*simulated(600, 400, 1))
metacells(warm, 40, key_added=None)  # compile first
adata = annotated(*copied({n}))
if {given}:
    from reduset.anndata.representation import representation
    adata.obsm["X_pca"] = representation(adata, None).values
before, begun, spent = peak(), time.perf_counter(), time.process_time()
found = metacells(adata, {m}, label_key="type", key_added=None)
seconds, spent = time.perf_counter() - begun, time.process_time() - spent
assert found.X.sum() == adata.X.sum(dtype=np.float64)
facts = found.uns["metacells"]
print(json.dumps([seconds, spent, before, peak(), adata.X.nnz / adata.X.shape[0] / adata.X.shape[1], facts["purity"],
                  int(found.obs["n_cells"].min()), int(found.obs["n_cells"].max())]))
"""


def simulated(n: int, depth: float, seed: int) -> tuple[Any, np.ndarray]:
    """(n, genes) sparse counts, and the type of each cell."""
    rng = np.random.default_rng(seed)

    def effect(count: int, proportion: float, size: float) -> np.ndarray:
        return rng.normal(0, size, (count, GENES)) * (rng.random((count, GENES)) < proportion)

    levels = rng.normal(-1.2, 1.2, GENES) + effect(LINEAGES, 0.2, 1.0)[np.arange(TYPES) % LINEAGES] + effect(TYPES, 0.08, 0.825)
    gradient = effect(TYPES, 0.08, 0.55)
    proportions = np.concatenate([np.geomspace(0.2, 0.015, TYPES - RARE), np.full(RARE, RARE_SHARE)])
    proportions[:-RARE] *= (1 - RARE * RARE_SHARE) / proportions[:-RARE].sum()
    types, blocks = rng.choice(TYPES, n, p=proportions), []
    for a in range(0, n, 5000):
        of = types[a : a + 5000]
        rates = np.exp(levels[of] + rng.uniform(-1.7, 1.7, (len(of), 1)) * gradient[of])
        rates *= (rng.lognormal(np.log(depth), 0.35, len(of)) / rates.sum(axis=1))[:, None]
        blocks.append(sparse.csr_matrix(rng.poisson(rng.gamma(4.0, rates / 4.0)).astype(np.float32)))
    return sparse.vstack(blocks, format="csr"), types


def copied(n: int) -> tuple[Any, np.ndarray]:
    """n cells: noisy copies of fewer simulated ones, whose counts are drawn again around theirs."""
    counts, types = simulated(n // COPIES, 400.0, 0)
    rng = np.random.default_rng(1)
    parts = []
    for _ in range(COPIES):
        part = counts.copy()
        part.data = rng.poisson(part.data).astype(np.float32)
        part.eliminate_zeros()
        parts.append(part)
    return sparse.vstack(parts, format="csr"), np.tile(types, COPIES)


def annotated(counts: Any, types: np.ndarray) -> Any:
    import anndata
    import pandas as pd

    obs = pd.DataFrame({"type": pd.Categorical(types.astype(str))}, index=pd.RangeIndex(len(types)).astype(str))
    return anndata.AnnData(counts, obs=obs)


def principal_components(counts: Any) -> np.ndarray:
    from sklearn.decomposition import PCA

    scaled = sparse.diags(1e4 / np.asarray(counts.sum(axis=1)).ravel()) @ counts
    found = PCA(COMPONENTS, svd_solver="covariance_eigh").fit_transform(scaled.log1p().toarray())
    return np.ascontiguousarray(found, np.float32)


def purity(groups: np.ndarray, types: np.ndarray) -> dict[str, float]:
    """Of a partition: mean purity of the metacells, of the cells, types that are the majority somewhere, and sizes."""
    both = np.zeros((groups.max() + 1, TYPES))
    np.add.at(both, (groups, types), 1)
    both = both[both.sum(axis=1) > 0]
    sizes, most = both.sum(axis=1), both.max(axis=1)
    return {
        "metacells": float((most / sizes).mean()),
        "cells": float(most.sum() / sizes.sum()),
        "types": len(np.unique(both.argmax(axis=1))),
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
    }


def strata(X: np.ndarray, size: int) -> np.ndarray:
    """Groups of equal size, by splits along the first principal direction."""
    groups, waiting, made = np.zeros(len(X), np.int64), [(np.arange(len(X)), size)], 0
    while waiting:
        rows, parts = waiting.pop()
        if parts == 1:
            groups[rows], made = made, made + 1
            continue
        offsets = X[rows] - X[rows].mean(axis=0)
        order = rows[np.argsort(offsets @ np.linalg.eigh(offsets.T @ offsets)[1][:, -1], kind="stable")]
        cut = round(len(rows) * (parts // 2) / parts)
        waiting += [(order[:cut], parts // 2), (order[cut:], parts - parts // 2)]
    return groups


def by_seacells(X: np.ndarray, seed: int) -> dict[str, Any]:
    kept = os.environ.get("REDUSET_METACELLS_FOUND")
    if kept is not None:
        path = Path(kept) / f"seed{seed}.npz"
        return dict(np.load(path)) if path.exists() else {}
    python = os.environ.get("REDUSET_METACELLS_PYTHON", str(HERE.parent / ".venv-metacells" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(f"no environment of SEACells at {python}: run `make bench`, or set REDUSET_METACELLS_PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, pca=X)
        call = [python, str(HERE / "metacells_worker.py"), str(given), str(found), str(SIZE)]
        process = subprocess.run(call, capture_output=True, text=True, check=False)
        if process.returncode:
            raise SystemExit(f"metacells_worker.py failed:\n{process.stderr[-2000:]}")
        return dict(np.load(found))


def partitions(X: np.ndarray, seed: int) -> dict[str, Callable[[], np.ndarray]]:
    from sklearn.cluster import KMeans

    from reduset import Gaussian, sketch
    from reduset.select.partition import partition

    def of_sketch() -> np.ndarray:
        found = sketch(X, SIZE, kernel=Gaussian(), rng=seed)
        return np.asarray(found.owners)

    return {
        "`metacells`": lambda: partition(X, SIZE, np.random.default_rng(seed), smooth=True).assignments,
        "without averages": lambda: partition(X, SIZE, np.random.default_rng(seed)).assignments,
        "without averages and exchanges": lambda: partition(X, SIZE, np.random.default_rng(seed), exchange=False).assignments,
        "scikit-learn's k-means": lambda: KMeans(SIZE, n_init=1, random_state=seed).fit(X).labels_,
        "assignments of a sketch": of_sketch,
        "strata of equal size": lambda: strata(X, SIZE),
        "random": lambda: np.random.default_rng(seed).integers(0, SIZE, len(X)),
    }


def compared() -> tuple[dict[str, list[dict[str, float]]], list[dict[str, Any]]]:
    """The purities of every method, data set by data set, and what SEACells took."""
    found: dict[str, list[dict[str, float]]] = {}
    taken = []
    for seed in range(DATA_SETS):
        counts, types = simulated(CELLS, 1500.0, seed)
        X = principal_components(counts)
        for repeat in range(REPEATS):
            for name, divide in partitions(X, repeat).items():
                found.setdefault(name, []).append(purity(divide(), types) | {"seed": seed})
        theirs = by_seacells(X, seed)
        if theirs:
            found.setdefault("SEACells", []).append(purity(theirs["groups"], types) | {"seed": seed})
            taken.append({key: theirs[key].item() for key in ("seconds", "processor", "iterations", "converged", "peak")})
    return found, taken


def _by_data_set(found: list[dict[str, float]], seeds: list[float]) -> np.ndarray:
    """(data sets, 2) both purities, averaged over the seeds of the method."""
    return np.array([np.mean([[one["metacells"], one["cells"]] for one in found if one["seed"] == seed], axis=0) for seed in seeds])


def large(given: bool) -> list[float]:
    code = OWN.format(folder=str(HERE), n=MANY, m=MANY_SIZE, given=given)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"metacells of {MANY:,} cells failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run() -> str:
    found, taken = compared()
    rows = []
    for name, each in found.items():
        mean = {key: float(np.mean([one[key] for one in each])) for key in ("metacells", "cells", "types")}
        sizes = f"{min(one['smallest'] for one in each):,.0f} to {max(one['largest'] for one in each):,.0f}"
        rows.append(
            [
                name,
                len({one["seed"] for one in each}),
                f"{mean['metacells']:.4f}",
                f"{mean['cells']:.4f}",
                f"{mean['types']:.1f} of {TYPES}",
                sizes,
            ]
        )
    head = ["groups", "data sets", "mean purity of metacells", "cells with the majority type", "types with a metacell", "sizes"]
    parts = [f"{CELLS:,} cells to {SIZE} metacells:", table(head, rows)]
    if taken:
        parts.append("Mean purity of metacells, and cells with the majority type, on the data sets that SEACells ran on:")
        seeds = [one["seed"] for one in found["SEACells"]]
        ours, theirs = (_by_data_set(found[name], seeds) for name in ("`metacells`", "SEACells"))
        lines = [[seed, *(f"{a:.4f}, {b:.4f}" for a, b in pair)] for seed, *pair in zip(seeds, ours, theirs, strict=True)]
        parts.append(table(["data set", f"`metacells`, mean of {REPEATS} seeds", "SEACells"], lines))
        parts.append(
            "SEACells took "
            + "; ".join(
                f"{each['seconds']:,.0f} s ({each['processor']:,.0f} s of processor time), {each['iterations']} iterations"
                f"{'' if each['converged'] else ' without converging'}, {each['peak'] / 1e9:.2f} GB"
                for each in taken
            )
            + f". Purity not below SEACells' on every data set: {'yes' if (ours >= theirs).all() else 'NO'}."
        )
    lines = []
    for given in (True, False):
        seconds, spent, before, peak, density, pure, least, most = large(given)
        name = "X_pca given" if given else "coordinates made from the counts"
        lines.append(
            [name, f"{seconds:.1f}", f"{spent:.1f}", f"{peak:.2f} ({before:.2f} before)", f"{pure:.4f}", f"{least} to {most}"]
        )
        if given:
            goals = verdict(-seconds, -SECONDS), verdict(-peak, -MEMORY)
    head = [f"{MANY:,} cells to {MANY_SIZE:,}", "seconds", "processor seconds", "peak, GB", "cells with the majority type", "sizes"]
    parts += [f"Counts with {100 * density:.0f} % nonzero entries of {GENES:,} genes:", table(head, lines)]
    parts.append(f"At most {SECONDS:g} s: {goals[0]}; less than {MEMORY:g} GB: {goals[1]}.")
    return "\n\n".join(parts)
