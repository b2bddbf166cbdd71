"""Run SEACells once, in its environment: `metacells_worker.py cells.npz found.npz SIZE`.

The settings are those of its tutorial: an adaptive Gaussian kernel on 15 nearest neighbours of X_pca, archetypes initialised from
10 eigenvectors, then at least 10 and at most 50 iterations until the residual changes by less than 1e-5 of its first value. The
result has the metacell of each cell, the number of iterations, the seconds (wall clock and processor), and the peak resident
memory of the process. It is stored after every iteration.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings

import numpy as np

MIN_ITERATIONS, MAX_ITERATIONS = 10, 50


def main(source: str, target: str, size: str) -> None:
    warnings.simplefilter("ignore")
    import anndata
    import pandas as pd
    import SEACells

    coordinates = np.load(source)["pca"].astype(np.float64)
    cells = pd.DataFrame(index=[f"cell{i}" for i in range(len(coordinates))])
    adata = anndata.AnnData(np.zeros((len(coordinates), 1), np.float32), obs=cells, obsm={"X_pca": coordinates})
    np.random.seed(0)  # noqa: NPY002 - SEACells draws from the global generator
    begun, before = time.perf_counter(), time.process_time()
    model = SEACells.core.SEACells(
        adata, build_kernel_on="X_pca", n_SEACells=int(size), n_waypoint_eigs=10, convergence_epsilon=1e-5, verbose=False
    )
    model.construct_kernel_matrix()
    model.initialize_archetypes()
    model.initialize()
    for iteration in range(1, MAX_ITERATIONS + 1):  # as its `fit`, which raises where it has not converged in the end
        model.step()
        change = abs(model.RSS_iters[-2] - model.RSS_iters[-1])
        converged = bool(change < model.convergence_threshold)
        np.savez(
            target,
            groups=pd.factorize(model.get_hard_assignments()["SEACell"])[0],
            seconds=time.perf_counter() - begun,
            processor=time.process_time() - before,
            iterations=iteration,
            converged=converged,
            peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )
        if converged and iteration >= MIN_ITERATIONS:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
