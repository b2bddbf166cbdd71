"""A memory bank for anomaly detection (PatchCore): a sampler with the interface of anomalib's `KCenterGreedy`.

    python examples/memory_bank.py

Embeddings are torch tensors, on the processor or a GPU, or NumPy arrays. The result has the same type. The rows are those of the
definition: each one is the farthest from all earlier ones. Distances are computed lazily, and not for every pair of a row and a
centre (`reduset.cover`). As in anomalib, the first row is random, and it is not returned itself. There are four differences:

- Distances are between the embeddings. anomalib projects them to a few hundred random directions first; so does `projected=True`.
- The first row comes from `seed`, not from torch's global generator. `first` sets it.
- `selected_idxs` are centres from the start. anomalib ignores them for embeddings with two dimensions.
- Copies of chosen rows are never chosen. There are fewer rows if the embedding has fewer distinct rows than asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.random_projection import SparseRandomProjection, johnson_lindenstrauss_min_dim

from reduset import cover
from reduset.covers import audit

EPS = 0.9  # largest relative error of projected squared distances, as in anomalib


class KCenterGreedy:
    """Choose a proportion of the rows so that every row is near one of them.

    Parameters
    ----------
    embedding : (n, ...) torch tensor or NumPy array
        Rows with more than one dimension are flattened.
    sampling_ratio : float
        Proportion of the rows to choose.
    projected : bool
        Measure distances in a sparse random projection, if rows have more columns than it has directions (303 for 219,520 rows).
    first : int, optional
        The row from which selection starts. It is not returned. Default: a random row.
    seed : int
        Seed of the first row and of the projection.
    """

    def __init__(
        self, embedding: Any, sampling_ratio: float, *, projected: bool = False, first: int | None = None, seed: int = 0
    ) -> None:
        self.embedding = embedding
        self.coreset_size = int(len(embedding) * sampling_ratio)
        self.projected, self.first, self.seed = projected, first, seed

    def select_coreset_idxs(self, selected_idxs: Sequence[int] | None = None) -> list[int]:
        """The chosen row numbers, in order. ``selected_idxs`` are rows that are in the memory bank already."""
        rows = self.embedding.reshape(len(self.embedding), -1)
        directions = johnson_lindenstrauss_min_dim(len(rows), eps=EPS)
        if self.projected and directions < rows.shape[1]:
            host = np.asarray(rows.cpu() if hasattr(rows, "cpu") else rows)
            rows = SparseRandomProjection(directions, random_state=self.seed).fit_transform(host)
        first = int(np.random.default_rng(self.seed).integers(len(rows))) if self.first is None else self.first
        start = [first] if selected_idxs is None or not len(selected_idxs) else selected_idxs
        return cover(rows, self.coreset_size, start=start, assignments=False).indices.tolist()

    def sample_coreset(self, selected_idxs: Sequence[int] | None = None) -> Any:
        """The chosen rows, in the type and shape of the embedding."""
        return self.embedding[self.select_coreset_idxs(selected_idxs)]


def main() -> None:
    rng = np.random.default_rng(0)
    patches = (rng.normal(size=(30, 64))[rng.integers(30, size=20_000)] + 0.2 * rng.normal(size=(20_000, 64))).astype(np.float32)
    sampler = KCenterGreedy(patches, 0.01)
    bank = sampler.sample_coreset()
    print(f"{len(patches):,} patches -> a memory bank of {bank.shape[0]} × {bank.shape[1]}, {bank.dtype}")
    print(audit(patches, sampler.select_coreset_idxs()))


if __name__ == "__main__":
    main()
