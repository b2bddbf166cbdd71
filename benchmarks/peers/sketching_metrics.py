"""Measures of the quality of a sketch, each with the paper that uses it.

- Partial Hausdorff distance: the 1 − 1e-4 quantile of the distances from all rows to the sketch (Hie et al. 2019, geosketch); and
  their maximum, which farthest-first traversal minimises (DeMeo & Berger 2020, Hopper).
- Recall of planted rare types: the proportion of types with a row in the sketch (Hie et al. 2019; Song et al. 2022, scSampler), and
  the mean number of such rows.
- Error of the types' proportions: the mean over types of |sketch − all rows|, and the total variation, which is half of the sum
  (Baskaran et al. 2022, sketchKH).
- Adjusted Rand index with the labels of all rows, when only the sketch is clustered and every row gets the cluster of its nearest
  sketch row (Hie et al. 2019; Hao et al. 2023, Seurat 5): k-means with as many clusters as labels, and Leiden. `ari_all` is that of
  k-means on all rows. `ari_same` is the index with the clusters of k-means on all rows: the change by clustering the sketch.
- Maximum mean discrepancy with a Gaussian kernel (Gretton et al. 2012; Baskaran et al. 2022), relative to the norm of the data's
  own kernel mean, at bandwidths of the median distance over 1, 2, 4 and 8. It uses random Fourier features (Rahimi & Recht 2007),
  the same for every method and seed.
- KL divergence of the sketch's marginals from those of all rows (Song et al. 2022 compare distributions of genes): 50 bins of
  equal counts a column, mean over columns.

"Plain" gives the rows of a sketch equal weights. "Weighted" uses the weights of the method; if it has none, the weight of a row is
the number of rows nearest to it. Proportions, KL, MMD and k-means are measured both ways for every method. Leiden has no weights.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.peers.sketching_data import Labelled
from reduset import get_threads

PARTIAL = 1e-4
BINS = 50
SCALES = (1, 2, 4, 8)  # bandwidths: the median distance over these
FREQUENCIES = 512
RARE = {"1": 0.01, "05": 0.005, "01": 0.001}  # keys: per cent, as in the names of the columns
TREE_UP_TO = 10  # columns; beyond, a matrix product is quicker
BLOCK = 2**25  # entries of a block of distances
COLUMNS = (
    *("rows", "seconds", "peak", "traced", "hausdorff", "hausdorff_max"),
    *(f"{name}_{kind}" for name in ("mae", "tv", "kl", *(f"mmd{s}" for s in SCALES)) for kind in ("plain", "weighted")),
    *("ari_kmeans_plain", "ari_kmeans_weighted", "ari_leiden", "ari_all", "ari_same_plain", "ari_same_weighted"),
    *(f"{name}_{share}" for name in ("recall", "found") for share in RARE),
)


def nearest(X: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every row of X, the nearest row of S and its distance."""
    if X.shape[1] <= TREE_UP_TO:
        distance, owners = cKDTree(S).query(X, workers=get_threads())
        return owners, distance
    centre = S.mean(axis=0)
    A = (S - centre).astype(np.float32)
    half, owners = 0.5 * np.square(A).sum(axis=1), np.empty(len(X), dtype=np.int64)
    distance, step = np.empty(len(X)), max(1, BLOCK // len(S))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        B = X[rows] - centre
        score = B @ A.T
        score -= half
        owners[rows] = score.argmax(axis=1)
        distance[rows] = np.linalg.norm(B.astype(np.float64) - A[owners[rows]], axis=1)  # from differences: products cancel
    return owners, distance


class Truth:
    """All rows, and the statistics that are computed once."""

    def __init__(self, data: Labelled, kept: Path) -> None:
        self.data = data
        self.types = len(data.planted)
        self.shares = np.bincount(data.labels, minlength=self.types) / len(data.labels)
        self._edges = [np.unique(np.quantile(column, np.arange(1, BINS) / BINS)) for column in data.X.T]
        self._marginals = self._histograms(data.X, None)
        rng = np.random.default_rng(0)
        i, j = rng.integers(len(data.X), size=(2, 10_000))
        median = np.median(np.linalg.norm(data.X[i] - data.X[j], axis=1)[i != j])
        drawn = rng.normal(size=(len(SCALES), data.X.shape[1], FREQUENCIES))
        self._waves = [(s / median * W).astype(np.float32) for s, W in zip(SCALES, drawn, strict=True)]
        if not kept.exists():  # minutes for a million rows
            kept.parent.mkdir(parents=True, exist_ok=True)
            part = kept.with_suffix(".part.npz")
            means = np.stack([_means(data.X, W, None) for W in self._waves])
            np.savez(part, means=means, clusters=self._clusters(data.X, None, 0))
            part.rename(kept)
        with np.load(kept) as file:
            self._means, self._all = file["means"], file["clusters"]
        self._ari = float(adjusted_rand_score(data.labels, self._all))

    def _histograms(self, S: np.ndarray, weights: np.ndarray | None) -> list[np.ndarray]:
        total = len(S) if weights is None else weights.sum()
        bins = (
            (np.searchsorted(edges, column, side="right"), len(edges) + 1) for edges, column in zip(self._edges, S.T, strict=True)
        )
        return [np.bincount(which, weights, minlength=count) / total for which, count in bins]

    def of_weights(self, chosen: np.ndarray, weights: np.ndarray, kind: str) -> dict[str, float]:
        """The measures that depend on the weights of the rows."""
        S = self.data.X[chosen]
        off = np.abs(np.bincount(self.data.labels[chosen], weights, minlength=self.types) - self.shares)
        found = {"mae": off.mean(), "tv": off.sum() / 2}
        divergences = []
        for q, p in zip(self._histograms(S, weights), self._marginals, strict=True):
            met = (q > 0) & (p > 0)
            divergences.append(np.sum(q[met] * np.log(q[met] / p[met])))
        found["kl"] = np.mean(divergences)
        for scale, W, means in zip(SCALES, self._waves, self._means, strict=True):
            found[f"mmd{scale}"] = np.linalg.norm(_means(S, W, weights) - means) / np.linalg.norm(means)
        return {f"{name}_{kind}": float(value) for name, value in found.items()}

    def rare(self, chosen: np.ndarray) -> dict[str, float]:
        counts, found = np.bincount(self.data.labels[chosen], minlength=self.types), {}
        for name, share in RARE.items():
            rows = counts[np.isclose(self.data.planted, share)]
            if len(rows):
                found |= {f"recall_{name}": float(np.mean(rows > 0)), f"found_{name}": float(rows.mean())}
        return found

    def carried_back(self, clusters: np.ndarray, owners: np.ndarray) -> float:
        return float(adjusted_rand_score(self.data.labels, clusters[owners]))

    def measure(self, indices: np.ndarray, weights: np.ndarray | None, owners: np.ndarray | None, seed: int) -> dict[str, float]:
        """All measures but Leiden; with weights and assignments if the method has its own. Repeated rows count repeatedly."""
        S = self.data.X[indices]
        near, distance = nearest(self.data.X, S)
        counts = np.bincount(near, minlength=len(S)) / len(near)
        found = {"rows": len(np.unique(indices)), "hausdorff_max": float(distance.max())}
        found["hausdorff"] = float(np.quantile(distance, 1 - PARTIAL))
        self.owners = near if owners is None else owners  # for Leiden, which runs in another process
        for kind, given in {"plain": np.full(len(S), 1 / len(S)), "weighted": counts if weights is None else weights}.items():
            found |= self.of_weights(indices, given, kind)
            clusters = self._clusters(S, len(S) * given, seed)
            found[f"ari_kmeans_{kind}"] = self.carried_back(clusters, self.owners)
            found[f"ari_same_{kind}"] = float(adjusted_rand_score(self._all, clusters[self.owners]))
        return found | self.rare(indices) | {"ari_all": self._ari}

    def _clusters(self, S: np.ndarray, weights: np.ndarray | None, seed: int) -> np.ndarray:
        with warnings.catch_warnings():  # about fewer distinct rows than clusters
            warnings.simplefilter("ignore")
            return KMeans(min(self.types, len(S)), n_init=3, random_state=seed).fit(S, sample_weight=weights).labels_


def _means(X: np.ndarray, W: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(2, frequencies) the means of cos and sin of the rows' products with the frequencies."""
    total, step = np.zeros((2, W.shape[1])), 50_000
    for start in range(0, len(X), step):
        angles = X[start : start + step] @ W
        part = None if weights is None else weights[start : start + step]
        for k, wave in enumerate((np.cos, np.sin)):
            values = wave(angles).astype(np.float64)
            total[k] += values.sum(axis=0) / len(X) if part is None else part @ values
    return total
