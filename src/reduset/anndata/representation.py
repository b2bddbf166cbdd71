"""Matrices of an AnnData, read by blocks of rows: coordinates of the cells, a truncated SVD of X, and sums of counts over groups.

Arrays may be in memory, dense or sparse, in HDF5 or zarr files, or Dask arrays. Only one block of the genes is in memory at a time.

Coordinates are one float32 array. The SVD decomposes X minus its mean, which is never made dense, by subspace iteration,

    W ← orth(Σ_blocks Bᵀ(B W) − n·μ(μᵀW)),

with one pass over the rows per iteration and a last pass for the scores. There are `PASSES` passes for any n. It stores n × 60
numbers. If X holds counts, each row is first scaled to `TARGET` counts and replaced by log(1 + x), as is usual before PCA.
Otherwise the first component would be the number of counts of a cell.

Sums are S = Pᵀ X, where P has a 1 for every cell in the column of its group. They are computed by sparse matrix products, in
O(nonzeros of X). Sums of integers are int64, and sums of floating-point numbers are float64, so that counts are added without
rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from reduset._messages import warn
from reduset._types import Indices
from reduset.anndata.annotated import first_cells, unknown_name
from reduset.io import check_room

PCA, SVD, RAW = "X_pca", "X_svd", "raw"
MAX_PLAIN_COLUMNS = 50  # an X with more columns is reduced by an SVD
COMPONENTS, OVERSAMPLING = 50, 10  # of the SVD; additional directions speed up its convergence
PASSES = 5
TARGET = 1e4  # counts of a cell after scaling
BLOCK_BYTES = 1 << 25  # of dense rows
GENES_FACTOR = 8  # blocks are larger for the SVD and for sparse sums, because they cost a fixed amount per block
CHECKED_ROWS = 1000  # rows that decide whether a matrix holds counts

Rows = Callable[[int, int], Any]


@dataclass(frozen=True)
class Representation:
    """(n, d) float32 coordinates, their name, and a note on the choice. ``made`` is True if they are new and must be stored."""

    values: NDArray[np.float32]
    name: str
    note: str = ""
    made: bool = False


def representation(adata: Any, use_rep: str | None) -> Representation:
    """The coordinates of cells. None takes X_pca, X_svd of an earlier call, X if it has few columns, or its SVD, in this order."""
    name, note = use_rep, ""
    if name is None:
        name = next((key for key in (PCA, SVD) if key in adata.obsm), "X")
        if name == "X" and adata.X is not None:
            if adata.n_vars > MAX_PLAIN_COLUMNS:
                return _decomposed(adata)
            note = f"distances are measured in X itself, which has {adata.n_vars:,} column{'s' * (adata.n_vars != 1)}"
            warn(f"adata has no obsm['{PCA}'], so {note}; use_rep='X' makes the same choice without a warning")
        elif name == SVD:
            note = f"distances are measured in obsm['{SVD}'], because there is no obsm['{PCA}']"
    names = [*adata.obsm, *(["X"] if adata.X is not None else [])]
    if name not in names:
        message = unknown_name("use_rep", name, "X and the arrays in obsm", names)
        raise ValueError(f"{message}; None takes X_pca, or computes an SVD of X")
    title = "X" if name == "X" else f"obsm[{name!r}]"
    width, rows = rows_of(adata, name)
    check_room(title, 4.0 * adata.n_obs * width, "all its columns", "choose use_rep with fewer")
    return Representation(single(adata, rows, width, title), name, note)


def single(adata: Any, rows: Rows, width: int, name: str) -> NDArray[np.float32]:
    """(n, width) all rows in single precision, read by blocks. Raises an error for numbers that are not finite in float32."""
    values = np.empty((adata.n_obs, width), np.float32)
    for a, b in spans(adata.n_obs, width):
        with np.errstate(over="ignore"):
            values[a:b] = dense(rows(a, b))
    check_finite(adata, name, values)
    return values


def check_finite(adata: Any, name: str, block: Any, first: int = 0) -> None:
    """Raise an error for cells with numbers that are not finite in single precision; ``first`` is the number of the first cell."""
    bad = first + np.flatnonzero(~np.isfinite(np.asarray(block.sum(axis=1, dtype=np.float64)).ravel()))
    if len(bad):
        raise ValueError(
            f"{name} must be finite in single precision (float32, up to {np.finfo(np.float32).max:.2g}), and {len(bad):,} of "
            f"{block.shape[0]:,} cells have other numbers ({first_cells(adata, bad)}); omit these cells, or scale it"
        )


def rows_of(adata: Any, name: str) -> tuple[int, Rows]:
    """The number of columns of X or an array of obsm, and a function that returns its rows from a to b."""
    if name == "X" and adata.isbacked and adata.is_view:  # view.X would be read as a whole
        return adata.n_vars, lambda a, b: adata[a:b].X
    array = adata.X if name == "X" else adata.obsm[name]
    if hasattr(array, "iloc"):
        kinds = [str(kind) for kind in array.dtypes if getattr(kind, "kind", "O") not in "fiub"]
        if kinds:
            raise ValueError(f"obsm[{name!r}] is a frame with columns that hold no numbers ({kinds[0]}); choose another array")
        return array.shape[1], lambda a, b: array.iloc[a:b].to_numpy()
    if len(array.shape) != 2 or array.shape[1] == 0 or np.dtype(array.dtype).kind not in "fiub":
        raise ValueError(f"{name!r} must be an array of numbers with columns, got {array.dtype} of shape {array.shape}")
    return int(array.shape[1]), lambda a, b: array[a:b]


def spans(n: int, width: float) -> Iterator[tuple[int, int]]:
    """Blocks of rows of ``width`` numbers, each of at most `BLOCK_BYTES` bytes."""
    step = max(1, int(BLOCK_BYTES / (8 * width)))
    for a in range(0, n, step):
        yield a, min(a + step, n)


def in_memory(block: Any) -> Any:
    """A block in memory. Dask arrays are computed. Sparse matrices stay sparse, in CSR format."""
    block = block.compute() if hasattr(block, "compute") else block
    return block.tocsr() if hasattr(block, "tocsr") else np.asarray(block)


def dense(block: Any) -> NDArray[Any]:
    """A block in memory as a dense array."""
    block = in_memory(block)
    return np.asarray(block.toarray() if sparse.issparse(block) else block)


# -- the SVD ------------------------------------------------------------------------------------------------------------------


def _decomposed(adata: Any) -> Representation:
    """The first left singular vectors of X minus its mean, times their singular values, as PCA gives."""
    n, width = adata.n_obs, adata.n_vars
    count = min(COMPONENTS + OVERSAMPLING, n, width)
    check_room("X", 4.0 * n * count, "its SVD", "choose use_rep")
    _, rows = rows_of(adata, "X")
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((width, count)))[0].astype(np.float32)
    scores = np.empty((n, count), np.float32)
    counts = holds_counts(rows(0, min(n, CHECKED_ROWS)))
    for number in range(PASSES):
        is_last = number == PASSES - 1
        sums, product = np.zeros(width), np.zeros((width, count))
        for a, b in spans(n, width / GENES_FACTOR):
            block = in_memory(rows(a, b)).astype(np.float32, copy=False)
            if number == 0:
                check_finite(adata, "X", block, a)
            block = _log_normalised(block) if counts else block
            scores[a:b] = block @ directions
            sums += np.asarray(block.sum(axis=0), np.float64).ravel()
            if not is_last:
                product += np.asarray(block.T @ scores[a:b])
        mean = sums / n
        if not is_last:
            product -= np.outer(sums, mean @ directions)
            directions = np.linalg.qr(product)[0].astype(np.float32)
    scores -= (mean @ directions).astype(np.float32)
    variances, rotation = np.linalg.eigh(scores.T.astype(np.float64) @ scores)
    order = np.argsort(variances)[::-1][: min(COMPONENTS, n, width)]
    values = np.ascontiguousarray(scores @ rotation[:, order].astype(np.float32))
    note = f"distances are measured in a truncated SVD of X ({len(order)} components of {width:,} columns, centred)"
    if counts:
        note += f"; X holds counts, so each cell was first scaled to {TARGET:,.0f} counts and log(1 + x) taken"
    note += f". It is stored as obsm['{SVD}']"
    warn(f"adata has no obsm['{PCA}'], so {note}")
    return Representation(values, SVD, note, made=True)


def _log_normalised(block: Any) -> Any:
    """log(1 + x) of each row scaled to `TARGET` counts; a row without counts stays 0."""
    totals = np.asarray(block.sum(axis=1), np.float64).ravel()
    factors = (TARGET / np.where(totals > 0, totals, 1)).astype(np.float32)[:, None]
    return block.multiply(factors).tocsr().log1p() if sparse.issparse(block) else np.log1p(block * factors)


def holds_counts(block: Any) -> bool:
    """Whether all numbers are non-negative integers, not only 0 and 1."""
    values = dense(block)
    return bool((values >= 0).all() and (values == np.round(values)).all() and values.max() > 1)


# -- sums of counts -----------------------------------------------------------------------------------------------------------


def counts_of(adata: Any, layer: str | None) -> tuple[str, Any, Any]:
    """Name, matrix (cells, genes) and genes of a layer, "X" or "raw". None takes the first of "counts", X and raw with counts."""

    def matrix_of(name: str) -> tuple[Any, Any]:
        if name == RAW and RAW not in adata.layers:
            return adata.raw.X, adata.raw.var
        return adata.X if name == "X" else adata.layers[name], adata.var

    names = [*["X"] * (adata.X is not None), *[RAW] * (adata.raw is not None), *map(str, adata.layers)]
    if layer is not None:
        if layer not in names:
            raise ValueError(unknown_name("layer", layer, "X, raw and the layers of adata", names))
        return layer, *matrix_of(layer)
    candidates = [name for name in ("counts", "X", RAW) if name in names]
    for name in candidates:
        matrix, var = matrix_of(name)
        if holds_counts(matrix[: min(CHECKED_ROWS, matrix.shape[0])]):
            return name, matrix, var
    raise ValueError(
        f"layer must name a matrix of counts, and none of {', '.join(candidates) or 'X and raw'} holds whole numbers only; pass "
        f"layer= one of {', '.join(names) or 'adata.layers'} to sum it as it is"
    )


def group_sums(matrix: Any, groups: Indices, count: int) -> Any:
    """(count, genes) the sum of the rows of each group, sparse (CSR) if the matrix is sparse and otherwise dense."""
    n, width = matrix.shape
    dtype = np.dtype(np.int64 if np.dtype(matrix.dtype).kind in "iub" else np.float64)
    if getattr(matrix, "format", None) == "csc":  # read by blocks of columns, in the order of storage
        members = _members(groups, count, dtype).T.tocsr()  # (n, count), so that the product below has two CSR factors
        blocks = (sparse.csc_matrix(matrix[:, a:b]) for a, b in spans(width, max(1.0, n / GENES_FACTOR)))
        parts = [(block.astype(dtype, copy=False).T @ members).T for block in blocks]
        return sparse.hstack(parts, format="csr") if parts else sparse.csr_matrix((count, width), dtype=dtype)
    is_sparse = sparse.issparse(in_memory(matrix[:1]))
    sums = (
        _members(groups[a:b], count, dtype) @ in_memory(matrix[a:b]).astype(dtype, copy=False)
        for a, b in spans(n, max(1.0, width / GENES_FACTOR if is_sparse else width))
    )
    if is_sparse:
        return _added(sums)
    total = np.zeros((count, width), dtype)
    for part in sums:
        total += part
    return total


def _members(groups: Indices, count: int, dtype: np.dtype[Any]) -> Any:
    """(count, cells) matrix with a 1 for each cell in the row of its group."""
    return sparse.csr_matrix((np.ones(len(groups), dtype), (groups, np.arange(len(groups)))), shape=(count, len(groups)))


def _added(parts: Iterator[Any]) -> Any:
    """The sum of sparse matrices. Partial sums of similar size are merged, so that none is copied for every block."""
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
