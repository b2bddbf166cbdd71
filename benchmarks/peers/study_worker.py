"""Run FlowSOM or Milo on cohorts of real cells and print one line of JSON per cohort: `study_worker.py OPTIONS`, also JSON.

It runs in the environment of the two (see `study_rivals`), which lacks this library, so cohorts are drawn again from the same
seeds. FlowSOM answers with counts per sample and cluster, of all cells and of planted ones; Milo answers with its findings.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cohort_real_data import PlantedCohort, real_cohort

NEIGHBOURS = {"milo": 60, "milo, wide": 150}  # neighbourhoods of about 80 cells, as Milo advises, and of about 200
INDEX_SHARE, MILO_RATE = 0.1, 0.10


def pooled(cohort: PlantedCohort) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All cells, the sample of each, and whether it was planted."""
    sample = np.repeat(np.arange(len(cohort.bags)), [len(bag) for bag in cohort.bags])
    return np.concatenate(cohort.bags).astype(np.float32), sample, np.concatenate(cohort.planted)


def by_sample(labels: np.ndarray, sample: np.ndarray, chosen: np.ndarray | slice = slice(None)) -> list[list[int]]:
    """(N, k) number of cells of each label in each sample."""
    names, codes = np.unique(labels, return_inverse=True)
    cells = sample[chosen] * len(names) + codes[chosen]
    return np.bincount(cells, minlength=(sample.max() + 1) * len(names)).reshape(-1, len(names)).tolist()


def flowsom(cohort: PlantedCohort, seed: int) -> dict[str, Any]:
    """A map of 10 × 10 nodes and 20 metaclusters, the defaults of CATALYST."""
    import anndata
    from flowsom import FlowSOM
    from loguru import logger

    logger.remove()
    cells, sample, planted = pooled(cohort)
    begun = time.process_time()
    data = anndata.AnnData(cells)
    data.var_names = list(cohort.markers)
    model = FlowSOM(data, cols_to_use=list(cohort.markers), xdim=10, ydim=10, n_clusters=20, seed=seed)
    seconds = time.process_time() - begun
    found = model.get_cell_data().obs
    answer: dict[str, Any] = {"seconds": seconds}
    for name in ("clustering", "metaclustering"):
        labels = found[name].to_numpy().astype(int)
        answer[name] = {"counts": by_sample(labels, sample), "planted": by_sample(labels, sample, planted)}
    return answer


def milo(cohort: PlantedCohort, seed: int, neighbours: int) -> dict[str, Any]:
    """Neighbourhoods of a nearest-neighbour graph, tested with pydeseq2 (edgeR needs R)."""
    import anndata
    import pandas
    import pertpy
    import scanpy

    cells, sample, planted = pooled(cohort)
    obs = pandas.DataFrame(
        {"sample": [f"s{k}" for k in sample], "group": cohort.labels[sample]}, index=[str(k) for k in range(len(cells))]
    )
    begun = time.perf_counter()
    data = anndata.AnnData(cells, obs=obs)
    data.obsm["X_markers"] = cells
    tool = pertpy.tl.Milo()
    both = tool.load(data)
    scanpy.pp.neighbors(both["rna"], use_rep="X_markers", n_neighbors=neighbours, random_state=seed)
    tool.make_nhoods(both["rna"], prop=INDEX_SHARE, seed=seed)
    both = tool.count_nhoods(both, sample_col="sample")
    tool.da_nhoods(both, design="~group", solver="pydeseq2")
    seconds = time.perf_counter() - begun
    members = both["rna"].obsm["nhoods"]
    sizes = np.asarray(members.sum(axis=0)).ravel()
    purity = np.asarray(members.T @ planted.astype(float)).ravel() / sizes
    found = both["milo"].var["SpatialFDR"].to_numpy(float) <= MILO_RATE
    up = both["milo"].var["logFC"].to_numpy(float) > 0
    return {
        "seconds": seconds,
        "k": len(sizes),
        "purity": float(purity.max()),
        "found": bool((found & up & (purity >= 0.5)).any()),
        "false": int((found & (purity < 0.1)).sum()),
        "size": float(np.median(sizes)),
        "effect": float(np.median(both["milo"].var["logFC"].to_numpy(float)[purity >= 0.5])) if (purity >= 0.5).any() else "",
    }


METHODS = {"flowsom": flowsom, **{name: partial(milo, neighbours=many) for name, many in NEIGHBOURS.items()}}


def main(options: str) -> None:
    warnings.simplefilter("ignore")
    asked = json.loads(options)
    for seed in asked["seeds"]:
        rng = np.random.default_rng([seed, round(100 * asked["spread"])])
        cohort = real_cohort(Path(asked["data"]), rng, spread=asked["spread"])
        answer = METHODS[asked["method"]](cohort, seed)
        print("answer " + json.dumps({"seed": seed, **answer}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
