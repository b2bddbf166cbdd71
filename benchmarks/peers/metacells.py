"""How pure are metacells compared with those of SEACells, and what do 200,000 cells take?

Also compared: k-means, the assignments of a sketch, strata of equal size and random groups, on 10,000 simulated cells; SEACells
runs with the settings of its tutorial in its environment (`metacells_worker.py`), and its groups are kept in build/. Goals: purity
not below SEACells on every data set; 200,000 cells in at most 30 s and 2 GB.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._lib import ROOT, own_process, table, verdict
from benchmarks._lib.remote import exchange, omitted

TITLE = "Metacells"
SOURCES = ("select/clustering.py", "anndata/metacell.py", "anndata/representation.py")

TYPES, LINEAGES, RARE, RARE_PROPORTION, GENES = 20, 5, 4, 0.005, 2000
COPIES = 20
SECONDS, MEMORY = 30.0, 2.0
COMPONENTS = 50
OURS, SEACELLS = "`metacells`", "SEACells"
KEPT = ROOT / "build" / "metacells"


@dataclass(frozen=True)
class Plan:
    """Numbers of cells and metacells of the comparison and of the large run, data sets, and seeds of each method but SEACells."""

    cells: int = 10_000
    size: int = 133  # 75 cells per metacell, as SEACells recommends
    data_sets: int = 3
    repeats: int = 5
    many: int = 200_000
    many_size: int = 2000
    coordinates: tuple[str, ...] = ("`X_pca` given", "coordinates from the counts")


QUICK = Plan(cells=800, size=20, data_sets=1, repeats=1, many=2000, many_size=40, coordinates=("`X_pca` given",))
Purities = dict[str, list[dict[str, float]]]  # of each method


def measure(quick: bool) -> dict[str, Any]:
    plan = QUICK if quick else Plan()
    found, taken = compared(plan, not quick)
    large = [json.loads(own_process(__file__, str(plan.many), str(plan.many_size), name).stdout) for name in plan.coordinates]
    text = "\n\n".join([TEXT, *comparison(plan, found, taken), *of_many(plan, large)])
    return {"summary": rows_of(plan, found, large[0]), "details": text + omitted("metacells") * quick}


TEXT = """\
The cells are simulated: 20 types in five lineages, 16 of them with proportions from 20 % to 1.5 %, four with 0.5 %; 2,000 genes;
counts from a negative binomial distribution with 1,500 counts per cell on average. Each type has a gradient, so types are not
round. All methods get the same coordinates: 50 principal components of log-normalised counts. Purity is the proportion of the most
frequent type in a metacell: its mean over metacells (the definition of SEACells), and the proportion of cells of the majority type.
Strata split the cells recursively at the median along their first principal direction.

The large data are 20 noisy copies of simulated cells with 400 counts each, with 10 % nonzero entries. They run in a new process;
memory is its peak resident memory, with the library and all cells."""


def simulated(n: int, depth: float, seed: int) -> tuple[Any, np.ndarray]:
    """(n, genes) sparse counts, and the type of each cell."""
    rng = np.random.default_rng(seed)

    def effect(count: int, proportion: float, size: float) -> np.ndarray:
        return rng.normal(0, size, (count, GENES)) * (rng.random((count, GENES)) < proportion)

    levels = rng.normal(-1.2, 1.2, GENES) + effect(LINEAGES, 0.2, 1.0)[np.arange(TYPES) % LINEAGES] + effect(TYPES, 0.08, 0.825)
    gradient = effect(TYPES, 0.08, 0.55)
    proportions = np.concatenate([np.geomspace(0.2, 0.015, TYPES - RARE), np.full(RARE, RARE_PROPORTION)])
    proportions[:-RARE] *= (1 - RARE * RARE_PROPORTION) / proportions[:-RARE].sum()
    types, blocks = rng.choice(TYPES, n, p=proportions), []
    for a in range(0, n, 5000):
        of = types[a : a + 5000]
        rates = np.exp(levels[of] + rng.uniform(-1.7, 1.7, (len(of), 1)) * gradient[of])
        rates *= (rng.lognormal(np.log(depth), 0.35, len(of)) / rates.sum(axis=1))[:, None]
        blocks.append(sparse.csr_matrix(rng.poisson(rng.gamma(4.0, rates / 4.0)).astype(np.float32)))
    return sparse.vstack(blocks, format="csr"), types


def copied(n: int) -> tuple[Any, np.ndarray]:
    """n cells: noisy copies of fewer simulated cells, with counts drawn again around the originals."""
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
    """Of a partition: both purities, the number of types with the majority in a metacell, and the extreme sizes."""
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


def by_seacells(X: np.ndarray, size: int, seed: int) -> dict[str, Any]:
    """The groups of SEACells, seconds and memory; from an earlier run if there is one."""
    kept = KEPT / f"seed{seed}.npz"
    if not kept.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        np.savez(kept, **exchange("metacells", "metacells_worker.py", {"pca": X}, str(size)))
    with np.load(kept) as file:
        return {key: file[key] if file[key].ndim else file[key].item() for key in file.files}


def partitions(X: np.ndarray, size: int, seed: int) -> dict[str, Callable[[], np.ndarray]]:
    from sklearn.cluster import KMeans

    from reduset import Gaussian, sketch
    from reduset.select.clustering import partition

    def of_sketch() -> np.ndarray:
        found = sketch(X, size, kernel=Gaussian(), rng=seed)
        return np.asarray(found.assignments)

    return {
        OURS: lambda: partition(X, size, np.random.default_rng(seed), smooth=True).assignments,
        "without averages": lambda: partition(X, size, np.random.default_rng(seed)).assignments,
        "without averages and exchanges": lambda: partition(X, size, np.random.default_rng(seed), exchange=False).assignments,
        "scikit-learn's k-means": lambda: KMeans(size, n_init=1, random_state=seed).fit(X).labels_,
        "assignments of a sketch": of_sketch,
        "strata of equal size": lambda: strata(X, size),
        "random": lambda: np.random.default_rng(seed).integers(0, size, len(X)),
    }


def compared(plan: Plan, with_seacells: bool) -> tuple[Purities, list[dict[str, Any]]]:
    """The purities of every method, data set by data set, and the cost of SEACells."""
    found: Purities = {}
    taken = []
    for seed in range(plan.data_sets):
        counts, types = simulated(plan.cells, 1500.0, seed)
        X = principal_components(counts)
        for repeat in range(plan.repeats):
            for name, divide in partitions(X, plan.size, repeat).items():
                found.setdefault(name, []).append(purity(divide(), types) | {"seed": seed})
        if with_seacells:
            theirs = by_seacells(X, plan.size, seed)
            found.setdefault(SEACELLS, []).append(purity(theirs["groups"], types) | {"seed": seed})
            taken.append({key: theirs[key] for key in ("seconds", "processor", "iterations", "converged", "peak")})
    return found, taken


def by_data_set(found: list[dict[str, float]], data_sets: int) -> np.ndarray:
    """(data sets, 2) both purities, averaged over the seeds of the method."""
    return np.array(
        [np.mean([[one["metacells"], one["cells"]] for one in found if one["seed"] == k], axis=0) for k in range(data_sets)]
    )


def mean_of(found: list[dict[str, float]], key: str) -> float:
    return float(np.mean([one[key] for one in found]))


def rows_of(plan: Plan, found: Purities, large: dict[str, Any]) -> list[list[str]]:
    rows = [["mean purity of metacells", f"{mean_of(found[OURS], 'metacells'):.4f}", "", ""]]
    if SEACELLS in found:
        least = float((by_data_set(found[OURS], plan.data_sets) - by_data_set(found[SEACELLS], plan.data_sets)).min())
        rows.append(["the same, SEACells", f"{mean_of(found[SEACELLS], 'metacells'):.4f}", "", ""])
        rows.append(["purity above SEACells, smallest of both kinds and all data sets", f"{least:+.4f}", "≥ 0", verdict(least, 0)])
    seconds, peak, what = large["seconds"], large["peak"], f"{plan.many:,} cells to {plan.many_size:,}, {plan.coordinates[0]}"
    rows.append([f"{what}, seconds", f"{seconds:.1f}", f"≤ {SECONDS:g}", verdict(-seconds, -SECONDS)])
    rows.append([f"{what}, peak memory, GB", f"{peak:.2f}", f"≤ {MEMORY:g}", verdict(-peak, -MEMORY)])
    return rows


def comparison(plan: Plan, found: Purities, taken: list[dict[str, Any]]) -> list[str]:
    rows = [
        [
            name,
            f"{mean_of(each, 'metacells'):.4f}",
            f"{mean_of(each, 'cells'):.4f}",
            f"{mean_of(each, 'types'):.1f} of {TYPES}",
            f"{min(one['smallest'] for one in each):,.0f} to {max(one['largest'] for one in each):,.0f}",
        ]
        for name, each in found.items()
    ]
    head = ["groups", "mean purity of metacells", "cells of the majority type", "types with a metacell", "sizes"]
    parts = [f"{plan.cells:,} cells to {plan.size} metacells, mean of {plan.data_sets} data sets:", table(head, rows)]
    if taken:
        parts.append("Both purities by data set:")
        pairs = [by_data_set(found[name], plan.data_sets) for name in (OURS, SEACELLS)]
        lines = [[seed, *(f"{a:.4f}, {b:.4f}" for a, b in pair)] for seed, pair in enumerate(zip(*pairs, strict=True))]
        parts.append(table(["data set", f"{OURS}, mean of {plan.repeats} seeds", SEACELLS], lines))
        costs = "; ".join(
            f"{each['seconds']:,.0f} s ({each['processor']:,.0f} s of processor time), {each['iterations']} iterations"
            f"{'' if each['converged'] else ' without convergence'}, {each['peak'] / 1e9:.2f} GB"
            for each in taken
        )
        parts.append(f"Cost of SEACells: {costs}.")
    return parts


def of_many(plan: Plan, large: list[dict[str, Any]]) -> list[str]:
    lines = [
        [
            name,
            f"{each['seconds']:.1f}",
            f"{each['processor']:.1f}",
            f"{each['peak']:.2f} ({each['before']:.2f} before)",
            f"{each['purity']:.4f}",
            f"{each['smallest']} to {each['largest']}",
        ]
        for name, each in zip(plan.coordinates, large, strict=True)
    ]
    head = [
        f"{plan.many:,} cells to {plan.many_size:,}",
        "seconds",
        "processor seconds",
        "peak, GB",
        "cells of the majority type",
        "sizes",
    ]
    return [f"Counts with {large[0]['density']:.0%} nonzero entries of {GENES:,} genes:", table(head, lines)]


def large_run(n: int, size: int, given: bool) -> dict[str, Any]:
    """One run of `metacells` in this process."""
    import resource

    from reduset.anndata import metacells
    from reduset.anndata.representation import representation

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

    metacells(annotated(*simulated(600, 400, 1)), 40, key_added=None)  # compiles
    adata = annotated(*copied(n))
    if given:
        adata.obsm["X_pca"] = representation(adata, None).values
    before, begun, spent = peak(), time.perf_counter(), time.process_time()
    found = metacells(adata, size, label_key="type", key_added=None)
    seconds, spent = time.perf_counter() - begun, time.process_time() - spent
    if found.X.sum() != adata.X.sum(dtype=np.float64):
        raise AssertionError("metacells must keep the sum of all counts")
    sizes = found.obs["n_cells"]
    return {
        "seconds": seconds, "processor": spent, "before": before, "peak": peak(),
        "density": adata.X.nnz / adata.X.shape[0] / adata.X.shape[1], "purity": found.uns["metacells"]["purity"],
        "smallest": int(sizes.min()), "largest": int(sizes.max()),
    }  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(large_run(int(sys.argv[1]), int(sys.argv[2]), "given" in sys.argv[3])))
