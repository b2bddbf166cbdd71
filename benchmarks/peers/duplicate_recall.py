"""Which near-duplicates does the published recipe miss?

The recipe (SemDeDup, arXiv:2303.09540): k-means of the embeddings, then all pairs within each cluster. Pairs across clusters are
missed. Here it is scikit-learn's MiniBatchKMeans with 1,000 and √n clusters. It is compared with `cover`, and with all pairs in
double precision. Embeddings are random ReLU features of handwritten digits and of distorted copies of some of them. Goal: `cover`
misses no pair.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from benchmarks._lib import data_folder, table
from reduset import cover

TITLE = "Near-duplicates that k-means misses"
SOURCES = ("covers/near.py", "covers/result.py", "_engine/radius_search.py", "_engine/radius_tiles.py")
TIMED = False

FEATURES, COPIED = 512, 0.5
MAX_SHIFT, MAX_NOISE = 0.5, 0.15  # pixels, and standard deviation of the noise for grey values from 0 to 1
EPS = (0.01, 0.02, 0.05, 0.1)
CLUSTERS = 1000
ROWS = 2048  # of a block of all pairs
NOTE = f"""Half of the digits have a copy: shifted by up to half a pixel, with noise. Embeddings are {FEATURES} random ReLU
features, centred. *Missed* is the proportion of pairs within eps that the method does not find. *Left* is the number of kept rows
with another kept row within eps, if the first row of each pair that was found is kept. Times include k-means."""


def embeddings(quick: bool) -> np.ndarray:
    """Random features of digits and of distorted copies of some of them."""
    rng = np.random.default_rng(0)
    with np.load(data_folder() / "mnist_digits0to4.npz") as file:
        images = file["X_train"][: 2_000 if quick else None].reshape(-1, 28, 28) / np.float32(255)
    sources = rng.choice(len(images), round(COPIED * len(images)), replace=False)
    shifted = np.stack([np.roll(images[k], rng.integers(-1, 2, 2), (0, 1)) for k in sources])
    shift, noise = rng.uniform(0, (MAX_SHIFT, MAX_NOISE), (len(sources), 2)).astype(np.float32).T[:, :, None, None]
    copies = (1 - shift) * images[sources] + shift * shifted + noise * rng.normal(size=shifted.shape).astype(np.float32)
    rows = np.concatenate([images, copies]).reshape(-1, 784)
    features = np.maximum((rows - rows.mean(axis=0)) @ rng.normal(size=(784, FEATURES)).astype(np.float32), 0)
    return (features - features.mean(axis=0))[rng.permutation(len(features))]


def all_pairs(rows: np.ndarray, eps: float) -> np.ndarray:
    """(p, 2) all pairs within a cosine distance, in double precision."""
    unit = rows / np.linalg.norm(rows.astype(float), axis=1)[:, None]
    found = []
    for a in range(0, len(unit), ROWS):
        for b in range(a, len(unit), ROWS):
            found.append(np.argwhere(1 - unit[a : a + ROWS] @ unit[b : b + ROWS].T <= eps) + np.array([a, b]))
    pairs = np.concatenate(found)
    return pairs[pairs[:, 0] < pairs[:, 1]]


def within_clusters(rows: np.ndarray, clusters: int) -> tuple[list[np.ndarray], np.ndarray, float]:
    """All pairs of each cluster up to the largest eps, as row numbers and distances, and the time."""
    begun = time.perf_counter()
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    labels = MiniBatchKMeans(clusters, random_state=0, n_init=1).fit_predict(unit)
    pairs, distances = [], []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        gaps = 1 - unit[members] @ unit[members].T
        one, other = np.nonzero(np.triu(gaps <= max(EPS), 1))
        pairs.append(np.column_stack([members[one], members[other]]))
        distances.append(gaps[one, other])
    return np.concatenate(pairs), np.concatenate(distances), time.perf_counter() - begun


def keys(pairs: np.ndarray, n: int) -> np.ndarray:
    return pairs[:, 0] * n + pairs[:, 1]


def left_over(pairs: np.ndarray, found: np.ndarray, n: int) -> int:
    """The number of kept rows with another kept row near, if the first row of each pair that was found is kept."""
    kept = np.ones(n, bool)
    for one, other in found[np.lexsort((found[:, 1], found[:, 0]))].tolist():
        if kept[one]:
            kept[other] = False
    return len(np.unique(pairs[kept[pairs].all(axis=1)]))


def measure(quick: bool) -> dict[str, Any]:
    rows = embeddings(quick)
    n = len(rows)
    many, root = CLUSTERS // 10 if quick else CLUSTERS, round(np.sqrt(n))
    counts = {f"k-means, {many:,} clusters": many, f"k-means, √n = {root} clusters": root}
    recipes = {name: within_clusters(rows, clusters) for name, clusters in counts.items()}
    figures = []
    for eps in EPS:
        true = all_pairs(rows, eps)
        begun = time.perf_counter()
        chosen = cover(rows, radius=eps, metric="cosine", keep="first")
        own = chosen.pairs(eps)
        seconds = time.perf_counter() - begun
        found = {"cover": (np.column_stack([own.first, own.second]), seconds)}
        found |= {name: (pairs[distances <= eps], seconds) for name, (pairs, distances, seconds) in recipes.items()}
        for name, (pairs, seconds) in found.items():
            missed = len(np.setdiff1d(keys(true, n), keys(pairs, n)))
            line = {"eps": eps, "method": name, "pairs": len(true), "missed": missed, "seconds": seconds}
            figures.append(line | {"left": left_over(true, pairs, n)})
    return {"rows": n, "figures": figures}


def summary(figures: dict[str, Any]) -> list[list[str]]:
    lines = figures["figures"]
    own = sum(line["missed"] for line in lines if line["method"] == "cover")
    rows = [[f"Pairs that cover misses, eps {EPS[0]:g} to {EPS[-1]:g}", f"{own:,}", "0", "yes" if own == 0 else "NO"]]
    for name in dict.fromkeys(line["method"] for line in lines if line["method"] != "cover"):
        shares = [line["missed"] / max(line["pairs"], 1) for line in lines if line["method"] == name]
        rows.append([f"Pairs missed by {name}", f"{min(shares):.1%} to {max(shares):.1%}", "", ""])
    return rows


def details(figures: dict[str, Any]) -> str:
    lines = [
        [
            f"{line['eps']:g}",
            line["method"],
            f"{line['pairs']:,}",
            f"{line['missed']:,} ({line['missed'] / max(line['pairs'], 1):.1%})",
            f"{line['left']:,}",
            f"{line['seconds']:.1f} s",
        ]
        for line in figures["figures"]
    ]
    head = ["eps", "method", "pairs within eps", "missed", "left", "time"]
    return f"{figures['rows']:,} × {FEATURES} float32. {' '.join(NOTE.splitlines())}\n\n{table(head, lines)}"
