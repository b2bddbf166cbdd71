"""Sums of counts over groups of cells: S = Pᵀ X, where P has a 1 for every cell in the column of its group.

X is X, a layer or raw, dense or sparse, in memory, in a file or a Dask array. It is read by blocks of rows (of columns if it is
compressed by columns), and each block is summed by a sparse matrix product: O(nonzeros of X). Only one block and the sums are held.
Sums of integers are int64, sums of floating-point numbers float64, so that counts are added without rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from reduset._types import Indices
from reduset.anndata.annotated import missing_from
from reduset.anndata.representation import CHECKED_ROWS, dense, holds_counts, in_memory, spans

RAW, COUNTS = "raw", "counts"
DENSE_BLOCK, SPARSE_BLOCK = 1, 8  # how many times `PART` bytes a block of a dense or sparse matrix would take if stored dense


@dataclass(frozen=True)
class Counts:
    """A matrix of cells and genes, with the name it has in the AnnData and the annotation of its genes."""

    name: str
    matrix: Any
    var: Any

    @classmethod
    def chosen(cls, adata: Any, layer: str | None) -> Counts:
        """The layer with this name, "X" or "raw"; None for the first of layers["counts"], X and raw that holds counts."""
        if layer is not None:
            there = _names(adata)
            if layer not in there:
                raise ValueError(missing_from("layer", layer, "X, raw and the layers of adata", there))
            return cls._named(adata, layer)
        tried = [each for each in (COUNTS, "X", RAW) if each in _names(adata)]
        for name in tried:
            found = cls._named(adata, name)
            if found.are_counts():
                return found
        raise ValueError(
            f"layer must name a matrix of counts, and none of {', '.join(tried) or 'X and raw'} holds whole numbers only; pass "
            f"layer= one of {', '.join(_names(adata)) or 'adata.layers'} to sum it as it is"
        )

    @classmethod
    def _named(cls, adata: Any, name: str) -> Counts:
        if name == RAW and name not in adata.layers:
            return cls(name, adata.raw.X, adata.raw.var)
        return cls(name, adata.X if name == "X" else adata.layers[name], adata.var)

    def are_counts(self) -> bool:
        """Whether the first rows hold whole numbers only."""
        return holds_counts(dense(self.matrix[: min(CHECKED_ROWS, self.matrix.shape[0])]))

    def sums(self, groups: Indices, count: int) -> Any:
        """(count, genes) the sum of the cells of each group, sparse (CSR) if the matrix is sparse, else dense."""
        kind = getattr(self.matrix, "format", None)
        if kind == "csc":
            return self._by_columns(groups, count)
        first = in_memory(self.matrix[:1])
        is_sparse = hasattr(first, "toarray")
        dtype = np.dtype(np.int64 if np.dtype(first.dtype).kind in "iub" else np.float64)
        parts = self._parts(groups, count, dtype, SPARSE_BLOCK if is_sparse else DENSE_BLOCK)
        if is_sparse:
            return _added(parts)
        total = np.zeros((count, self.matrix.shape[1]), dtype)
        for part in parts:
            total += part
        return total

    def _parts(self, groups: Indices, count: int, dtype: np.dtype[Any], factor: int) -> Iterator[Any]:
        """The sums of one block of rows after the other."""
        n, width = self.matrix.shape
        for a, b in spans(n, max(1.0, width / factor)):
            block = in_memory(self.matrix[a:b])
            block = block.tocsr() if hasattr(block, "tocsr") else np.asarray(block)
            yield _members(groups[a:b], count, dtype) @ block.astype(dtype, copy=False)

    def _by_columns(self, groups: Indices, count: int) -> Any:
        n, width = self.matrix.shape
        dtype = np.dtype(np.int64 if np.dtype(self.matrix.dtype).kind in "iub" else np.float64)
        members = _members(groups, count, dtype).T.tocsr()  # (n, count), so that the product below has two CSR factors
        parts = []
        for a, b in spans(width, max(1.0, n / SPARSE_BLOCK)):
            block = sparse.csc_matrix(in_memory(self.matrix[:, a:b])).astype(dtype, copy=False)
            parts.append((block.T @ members).T)
        return sparse.hstack(parts, format="csr") if parts else sparse.csr_matrix((count, width), dtype=dtype)


def _names(adata: Any) -> list[str]:
    return [
        *([] if adata.X is None else ["X"]),
        *([] if adata.raw is None else [RAW]),
        *(str(each) for each in adata.layers),
    ]


def _members(groups: Indices, count: int, dtype: np.dtype[Any]) -> Any:
    """(count, cells) 1 where a cell belongs to a group."""
    cells = np.arange(len(groups))
    return sparse.csr_matrix((np.ones(len(groups), dtype), (groups, cells)), shape=(count, len(groups)))


def _added(parts: Iterator[Any]) -> Any:
    """The sum of sparse matrices. Partial sums are merged when they have similar sizes, so that none is copied for every block."""
    pending: list[Any] = []
    for part in parts:
        pending.append(part)
        while len(pending) > 1 and pending[-1].nnz >= pending[-2].nnz / 2:
            pending.append(pending.pop() + pending.pop())
    total = pending.pop()
    while pending:
        total = total + pending.pop()
    total.sort_indices()
    return sparse.csr_matrix(total)
