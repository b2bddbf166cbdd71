"""The methods of the comparison of sketches: functions of (rows, size, seed) that return the selected rows.

`sketching_remote` runs them in their environments; each function imports its library. Settings are the defaults of the library,
except where stated.

- `reduset`: `reduset.sketch`, with its weights and assignments.
- `hopper`: farthest-first traversal, exactly (Hopper, DeMeo & Berger, Bioinformatics 2020), by our `KCenter`, with the
  result of the plain loop. `treehopper`: its variant that splits the rows at the median of their first principal component until a
  part has at most `PART` rows, traverses each part separately, and takes the next row from the part with the largest radius.
- `geosketch`: Hie, Cho, DeMeo, Bryson & Berger, Cell Systems 2019.
- `sketchkh`: kernel herding on 1,000 random frequencies (Baskaran, Ranek, Shan, Stanley & Oliva, ACM-BCB 2022). Its bandwidth is
  half the median distance between rows. For proportions, this was better than the median distance, a quarter and an eighth of
  it, and the default of 1; each was tried once on 8,000 rows of rare_50 and of fcs_cytek at size 500.
- `scsampler` and, in 16 random parts as its authors do with large data, `scsampler-16` (Song, Xi, Li & Wang, Bioinformatics 2022).
- `leverage`: rows drawn with a probability proportional to their leverage, as in Seurat 5 (Hao et al., Nature Biotechnology 2023):
  a count sketch of the rows (Clarkson & Woodruff 2013), R of its QR, and the squared lengths of the rows of X R⁻¹ Π with a random
  projection Π (Drineas et al. 2012), omitted if it would have more columns than X.
- `kmeans`: the row nearest each centre of scikit-learn's `MiniBatchKMeans`; above `SEEDED` centres it starts at random rows, since
  k-means++ would take most of the time. Centres with the same nearest row result in fewer rows than requested.
- `uniform`: without replacement, as `scanpy.pp.sample` and `pp.subsample` do.
- `leiden` clusters a sketch: Leiden (Traag, Waltman & van Eck 2019) on the graph of 15 nearest neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

Found = dict[str, np.ndarray]
PART = 1000  # rows: TreeHopper's own default
SEEDED = 5000
COUNTED, DISTORTION = 5000, 0.5  # rows of the count sketch and ε of the projection: Seurat's defaults
NEIGHBOURS = 15


def reduset(X: np.ndarray, size: int, seed: int) -> Found:
    from reduset import sketch

    found = sketch(X, size, rng=seed)
    return {"indices": found.indices, "weights": found.weights, "owners": found.assignments}


def _farthest(X: np.ndarray, size: int, seed: int, groups: np.ndarray | None) -> Found:
    from reduset import Gaussian, KernelMean
    from reduset.select import KCenter

    traversal = KCenter(groups=groups).begin(KernelMean.from_samples(X, Gaussian(1.0)), np.random.default_rng(seed))
    traversal.extend(size)
    return {"indices": traversal.indices[:size]}


def hopper(X: np.ndarray, size: int, seed: int) -> Found:
    return _farthest(X, size, seed, None)


def treehopper(X: np.ndarray, size: int, seed: int) -> Found:
    # each part has a row of the sketch, so there are at most half as many parts as rows of the sketch
    return _farthest(X, size, seed, parts(X, max(PART, -(-4 * len(X) // size))))


def parts(X: np.ndarray, most: int) -> np.ndarray:
    """A label for each row: parts of at most this many rows, by halving along the first principal component."""
    labels, waiting, done = np.zeros(len(X), dtype=np.int64), [np.arange(len(X))], 0
    while waiting:
        rows = waiting.pop()
        if len(rows) <= most:
            labels[rows] = done
            done += 1
            continue
        centred = X[rows] - X[rows].mean(axis=0)
        along = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]
        order = np.argpartition(along, len(rows) // 2)
        waiting += [rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]]
    return labels


def geosketch(X: np.ndarray, size: int, seed: int) -> Found:
    from geosketch import gs

    return {"indices": np.asarray(gs(X, size, seed=seed), dtype=np.int64)}


def sketchkh(X: np.ndarray, size: int, seed: int) -> Found:
    from anndata import AnnData
    from sketchKH import sketch

    chosen, _ = sketch(AnnData(X), num_subsamples=size, gamma=median_distance(X, seed) / 2, frequency_seed=seed, n_jobs=1)
    return {"indices": np.asarray(chosen[0], dtype=np.int64)}


def median_distance(X: np.ndarray, seed: int, pairs: int = 10_000) -> float:
    first, second = np.random.default_rng(seed).integers(len(X), size=(2, pairs))
    apart = np.linalg.norm(X[first] - X[second], axis=1)
    return float(np.median(apart[first != second]))


def scsampler(X: np.ndarray, size: int, seed: int, split: int) -> Found:
    from scsampler import scsampler as sample

    return {"indices": np.asarray(sample(X, n_obs=size, random_state=seed, random_split=split), dtype=np.int64)}


def leverage(X: np.ndarray, size: int, seed: int) -> Found:
    rng = np.random.default_rng(seed)
    n, d = X.shape
    if n < 1.5 * COUNTED:
        scores = np.square(np.linalg.qr(X.astype(np.float64))[0]).sum(axis=1)
    else:
        buckets, signs = rng.integers(COUNTED, size=n), rng.choice([-1.0, 1.0], size=n)
        counted = np.stack([np.bincount(buckets, signs * X[:, j], minlength=COUNTED) for j in range(d)], axis=1)
        project = np.linalg.pinv(np.linalg.qr(counted)[1])
        columns = int(4 * np.log(n) / (DISTORTION**2 / 2 - DISTORTION**3 / 3))
        if columns < d:
            project = project @ rng.normal(scale=columns**-0.5, size=(d, columns))
        scores = np.square(X @ project.astype(X.dtype)).sum(axis=1, dtype=np.float64)
    return {"indices": rng.choice(n, size, replace=False, p=scores / scores.sum())}


def kmeans(X: np.ndarray, size: int, seed: int) -> Found:
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import pairwise_distances_argmin

    init = "k-means++" if size <= SEEDED else "random"
    centres = MiniBatchKMeans(size, batch_size=4096, init=init, n_init=1, random_state=seed).fit(X).cluster_centers_
    return {"indices": np.unique(pairwise_distances_argmin(centres.astype(X.dtype), X))}


def uniform(X: np.ndarray, size: int, seed: int) -> Found:
    return {"indices": np.random.default_rng(seed).choice(len(X), size, replace=False)}


def leiden(X: np.ndarray, size: int, seed: int) -> Found:
    import igraph
    import leidenalg
    from sklearn.neighbors import kneighbors_graph

    near = kneighbors_graph(X, min(NEIGHBOURS, len(X) - 1)).tocoo()
    graph = igraph.Graph(n=len(X), edges=np.column_stack([near.row, near.col])).simplify()
    found = leidenalg.find_partition(graph, leidenalg.RBConfigurationVertexPartition, seed=seed, n_iterations=2)
    return {"indices": np.asarray(found.membership)}


PEERS: dict[str, Callable[[np.ndarray, int, int], Found]] = {
    "hopper": hopper,
    "treehopper": treehopper,
    "geosketch": geosketch,
    "sketchkh": sketchkh,
    "scsampler": partial(scsampler, split=1),
    "scsampler-16": partial(scsampler, split=16),
    "leverage": leverage,
    "kmeans": kmeans,
    "uniform": uniform,
}
METHODS = {"reduset": reduset, **PEERS, "leiden": leiden}
