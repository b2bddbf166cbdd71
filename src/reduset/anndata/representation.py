"""The coordinates of cells: an array of obsm, X itself, or a truncated SVD of X, as one float32 array read by blocks of rows.

Arrays may be in memory, dense or sparse, in HDF5 or zarr files, or Dask arrays. Each is read by blocks of rows, so that only one
block of the genes is held at a time. The SVD is that of X minus its mean, which is never made dense, by subspace iteration,

    W ← orth(Σ_blocks Bᵀ(B W) − n·μ(μᵀW)),

with one pass over the rows each, and a last pass for the scores: `PASSES` in all, for any n. It stores n × 60 numbers. If X holds
counts, each row is first scaled to `TARGET` counts and replaced by log(1 + x), as is usual before PCA: without it, the first
component is the number of counts of a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._messages import warn
from reduset.anndata.annotated import few_cells, missing_from
from reduset.io import check_room

PCA, SVD = "X_pca", "X_svd"
FEW_COLUMNS = 50
COMPONENTS, BEYOND = 50, 10  # of the SVD, and directions beside them that make it converge
PASSES = 5
TARGET = 1e4  # counts of a cell after scaling
PART = 1 << 25  # bytes of dense rows held at a time
TIMES = 8  # as many of genes, since each block of them adds to a matrix of genes by directions
CHECKED_ROWS = 1000  # by which an array is recognised as counts

Rows = Callable[[int, int], Any]


@dataclass(frozen=True)
class Representation:
    """(n, d) float32 coordinates, their name, and a note on how they were chosen; ``made`` if they are new and to be stored."""

    values: NDArray[np.float32]
    name: str
    note: str = ""
    made: bool = False


def representation(adata: Any, use_rep: str | None, rng: np.random.Generator | None = None) -> Representation:
    """The coordinates of cells; None takes X_pca, else an SVD that was made before, else X if it has few columns, else its SVD."""
    name, note = use_rep, ""
    if name is None:
        name = next((each for each in (PCA, SVD) if each in adata.obsm), "X")
        if name == "X" and adata.X is not None:
            if adata.n_vars > FEW_COLUMNS:
                return _decomposed(adata, np.random.default_rng(0) if rng is None else rng)
            note = f"distances are measured in X itself, which has {adata.n_vars:,} column{'s' * (adata.n_vars != 1)}"
            warn(f"adata has no obsm['{PCA}'], so {note}; use_rep='X' chooses this without a warning")
        elif name == SVD:
            note = f"distances are measured in obsm['{SVD}'], for there is no obsm['{PCA}']"
    there = [*adata.obsm, *(["X"] if adata.X is not None else [])]
    if name not in there:
        raise ValueError(
            missing_from("use_rep", name, "X and the arrays in obsm", there) + "; None takes X_pca, or makes an SVD of X"
        )
    width, rows = _opened(adata, name)
    check_room(f"obsm[{name!r}]" if name != "X" else "X", 4.0 * adata.n_obs * width, "all its columns", "choose use_rep with fewer")
    values, title = np.empty((adata.n_obs, width), np.float32), "X" if name == "X" else f"obsm[{name!r}]"
    for a, b in spans(adata.n_obs, width):
        values[a:b] = single(adata, dense(rows(a, b)), a, title)
    check_finite(adata, values, title)
    return Representation(values, name, note)


def single(adata: Any, block: NDArray[Any], first: int, name: str) -> NDArray[np.float32]:
    """Rows in single precision; refused where it does not reach as far as they do."""
    with np.errstate(over="ignore"):
        found = block.astype(np.float32)
    beyond = first + np.flatnonzero((np.isinf(found) & np.isfinite(block)).any(axis=1)) if np.isinf(found).any() else ()
    if len(beyond):
        raise ValueError(
            f"{name} must fit in single precision (float32, up to {np.finfo(np.float32).max:.2g}), and {len(beyond):,} of cells "
            f"{first:,} to {first + len(block) - 1:,} have larger numbers there ({few_cells(adata, beyond)}); scale it, or leave "
            "these cells out"
        )
    return found


def check_finite(adata: Any, values: NDArray[Any], name: str) -> None:
    """Refuse coordinates that are none, and say how many cells have such."""
    bad = np.flatnonzero(~np.isfinite(values.sum(axis=1, dtype=np.float64)))
    if len(bad):
        raise ValueError(
            f"{name} must be finite, and {len(bad):,} of {len(values):,} cells have NaN or infinite numbers there "
            f"({few_cells(adata, bad)}); leave these cells out, or compute it anew"
        )


def _opened(adata: Any, name: str) -> tuple[int, Rows]:
    """How many columns an array has, and its rows from a to b."""
    if name == "X" and adata.isbacked and adata.is_view:  # whose X would be read at once
        return adata.n_vars, lambda a, b: adata[a:b].X
    item = adata.X if name == "X" else adata.obsm[name]
    if hasattr(item, "iloc"):
        frame = item
        kinds = [str(kind) for kind in frame.dtypes if getattr(kind, "kind", "O") not in "fiub"]
        if kinds:
            raise ValueError(f"obsm[{name!r}] is a frame with columns that hold no numbers ({kinds[0]}); choose another use_rep")
        return frame.shape[1], lambda a, b: frame.iloc[a:b].to_numpy()
    if len(item.shape) != 2 or item.shape[1] == 0 or np.dtype(item.dtype).kind not in "fiub":
        raise ValueError(f"use_rep must name an array of numbers with columns, got {name!r}, {item.dtype} of shape {item.shape}")
    return int(item.shape[1]), lambda a, b: item[a:b]


def spans(n: int, width: float) -> Iterator[tuple[int, int]]:
    """Blocks of rows of ``width`` numbers, each of at most `PART` bytes."""
    step = max(1, int(PART / (8 * width)))
    for a in range(0, n, step):
        yield a, min(a + step, n)


def in_memory(block: Any) -> Any:
    """A block in memory; Dask's are computed, sparse ones stay sparse."""
    return block.compute() if hasattr(block, "compute") else block


def dense(block: Any) -> NDArray[Any]:
    """A block in memory as a dense array."""
    found = in_memory(block)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


# -- the SVD ------------------------------------------------------------------------------------------------------------------


def _decomposed(adata: Any, rng: np.random.Generator) -> Representation:
    """The first left singular vectors of X minus its mean, times their singular values: what PCA gives."""
    n, width = adata.n_obs, adata.n_vars
    kept = min(COMPONENTS, n, width)
    found = min(kept + BEYOND, n, width)
    check_room("X", 4.0 * n * found, "its SVD", "choose use_rep")
    _, rows = _opened(adata, "X")
    directions = np.linalg.qr(rng.standard_normal((width, found)))[0].astype(np.float32)
    scores = np.empty((n, found), np.float32)
    counts = holds_counts(dense(rows(0, min(n, CHECKED_ROWS))))
    for each in range(PASSES):
        sums, product, last = np.zeros(width), np.zeros((width, found)), each == PASSES - 1
        for a, b in spans(n, width / TIMES):
            block = _as_floats(rows(a, b))
            if each == 0:
                _check_block(adata, block, a)
            block = _log_normalised(block) if counts else block
            part = np.asarray(block @ directions)
            sums += np.asarray(block.sum(axis=0), np.float64).ravel()
            if last:
                scores[a:b] = part
            else:
                product += np.asarray(block.T @ part)
        mean = sums / n
        if not last:
            product -= np.outer(sums, mean @ directions)
            directions = np.linalg.qr(product)[0].astype(np.float32)
    scores -= (mean @ directions).astype(np.float32)
    variances, turn = np.linalg.eigh(scores.T.astype(np.float64) @ scores)
    order = np.argsort(variances)[::-1][:kept]
    values = np.ascontiguousarray(scores @ turn[:, order].astype(np.float32))
    note = f"distances are measured in a truncated SVD of X ({len(order)} components of {width:,} columns, centred)"
    if counts:
        note += f"; X holds counts, so each cell was first scaled to {TARGET:,.0f} counts and log(1 + x) taken"
    note += f". It is stored as obsm['{SVD}']"
    warn(f"adata has no obsm['{PCA}'], so {note}")
    return Representation(values, SVD, note, made=True)


def _as_floats(block: Any) -> Any:
    found = in_memory(block)
    if hasattr(found, "toarray"):
        return found.tocsr().astype(np.float32)
    return np.asarray(found, np.float32)


def _check_block(adata: Any, block: Any, first: int) -> None:
    """Refuse numbers that are none, by the cells that have them."""
    sums = np.asarray(block.sum(axis=1), np.float64).ravel()
    bad = first + np.flatnonzero(~np.isfinite(sums))
    if len(bad):
        raise ValueError(
            f"X must be finite, and {len(bad):,} of the cells {first:,} to {first + len(sums) - 1:,} have numbers there that are "
            f"NaN, infinite or too large for single precision ({few_cells(adata, bad)}); leave these cells out"
        )


def _log_normalised(block: Any) -> Any:
    """log(1 + x) of each row scaled to `TARGET` counts; a row without counts stays 0."""
    totals = np.asarray(block.sum(axis=1), np.float64).ravel()
    factors = (TARGET / np.where(totals > 0, totals, 1)).astype(np.float32)
    if hasattr(block, "toarray"):
        return block.multiply(factors[:, None]).tocsr().log1p()
    return np.log1p(block * factors[:, None])


def holds_counts(values: NDArray[Any]) -> bool:
    """Whether all numbers are whole and none negative, with more than 0 and 1 among them."""
    return bool((values >= 0).all() and (values == np.round(values)).all() and values.max() > 1)
