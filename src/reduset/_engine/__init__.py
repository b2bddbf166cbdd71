"""The compute engine: compiled loops over blocks, in bounded memory. Other packages import from here, not from the modules below.

May import: `_types`, `_messages`. To run on another device, implement the functions of this first table (n points, m queries, d
dimensions):

==================== ==================================================================== ================ ======================
primitive            what it computes                                                     result           cost
==================== ==================================================================== ================ ======================
kernel_sums          Σᵢ wᵢ φ(xᵢ, q); with the `Profile` of a product also ⟨f, φ(·, q)⟩    (m,)             n·m·d
gradient_sums        the same and Σᵢ wᵢ ∇φ(xᵢ, q)                                         (m,), (m, d)     n·m·d
log_sums             log Σᵢ wᵢ φ(xᵢ, q), without underflow                                (m,)             n·m·d
LeafSums             the same to a given relative error, leaves near q point by point     (m,)             n·m·d/128 + near
gram, gram_by_rows   φ(xᵢ, yⱼ) as a matrix, or one row at a time on request               (n, m); (n,)     n·m·d; n·d a row
KernelMaps           Σⱼ φ(xᵢ, cⱼ) Aⱼₖ for all k at once; `product_matrix` the values      (n, p); (n, m)   n·m·(d + p)
gram_blocks          φ(xᵢ, yⱼ) for many bandwidths, block by block of rows                to `UseGram`     n·m·(d + bandwidths)
fourier_sums         Σᵢ wᵢ exp(i ω·xᵢ) on s ladders of frequencies ω, 2ω, 4ω, …           (s, rungs)       n·s·(d + rungs)
distance_histograms  histogram of the distances from q, with bin ends `distance_nodes`    (m, bins)        n·m·d
build_leaves         points sorted into boxes, for searches of near points               `Leaves`         n·(d + log n)
leaf_order           the same boxes, of any length, as an order of the rows               rows, starts     n·(d + log n)
nearest              nearest atom of each point and distance; also `nearest_by_block`     (n,), (n,)       n·m·d at worst
assigned_distances   distance of each point to its assigned centre                        (n,)             n·d
FarthestFirst        the farthest-first traversal (k-centre), which can be continued      (m,) rows, radii n·m·d at worst
LazyCover            the same for long rows, `HostRows` or `DeviceRows`, by products      (m,) rows, radii n·m·d at worst
near_rows            `NearRows`, rows within a radius: the net of a list, and all pairs     rows; pairs      n²·d/2 at worst
shadow_centres       a greedy cover by balls, in the order of the rows                    rows, (n,)       n·m·d at worst
rows_not_among       the rows that differ from all given points                           rows             n·(d + log m)
cluster_sums         Σ w and Σ w (x − c) over the points nearest to each centre c         (m,), (m, d)     as `nearest`
LabelSums            Σ v by the label of each row, for many columns v                     (m,)             n
draw_seeds           the seeds of k-means++                                               (m,) rows        n·m·d
equal_mass_strata    rows in strata of equal mass, cut along principal directions         rows, starts     n·d·log m
exchange             one of a few rows of each of k strata, so that Fourier sums, moments (k,)             k·s·(d + rungs)
                     and deciles come nearest to their `ColumnGoals`
balance_lists        the points kept from each pair in kernel halving; `balance_products` (lists, pairs)   pairs²·d
                     from a Gram matrix
Components           sums and moments of products of Gaussian components; at points       (m,) … (m, d, d) n·m·d, n·m·d²,
                     `component_sums` and `component_logs`                                                 n·m·d³
WindowSums           quadratic statistics of the last rows of a stream, for several       (n,)             n·p
                     window lengths
box_sums             integrals of kernel functions over boxes, from tail probabilities    (m,)             n·m·d
                     like `normal_tail`; `oblique_box_sums` with full covariances
from_whitened        components from unconstrained variables; gradients for these by      (m, d), (m, d²)  m·d³
                     `whitened_gradients`
==================== ==================================================================== ================ ======================

**Types of arguments.** `Frame` is the linear map to the coordinates of the loops. `Profile` holds the shape of a kernel: a metric
(SQUARED, CITYBLOCK or SOFT_CITYBLOCK) and a family (ROOT, LOGARITHM or TABLE). `has_single_products` tests whether single precision
suffices for products. `Leaves` and `LeafCover` hold points in boxes, `Moments` the sums of `Components`. Covariances use
`as_diagonal`, `as_full`, `is_shared`, `from_lower_rows`, `log_determinants`, `log_peaks` and LOG_2PI.

**Rows outside of main memory** are `BlockRows`. Primitives decorated with `over_blocks` (results combined by `add`) compute them
block by block. `map_rows` and `each_column` do so for other functions. `held_rows` fetches rows that are needed repeatedly.
`in_blocks` and `in_memory` test the kind of table.

**On the processor only** are matrices of the atoms and the machine itself: `cholesky_dropping` with its `pivot_floor`, `Pursuit`,
`order_by_energy`, `rows_by_weight`, `random_rows`, `valley_depths` between two groups of points, and `columnwise_gram`, a product
kernel over columns. Threads use `blocks`, `row_blocks`, `run_all`, `single_threaded_blas`, `get_threads`, `set_threads` and
`thread_limit`. `search_sizes` and `traversal_sizes` estimate memory. Others are `cached_property`, `physical_memory`, `costs`
(estimated seconds) and `report_compilation`, which reports when the compiler runs.

**On a GPU.** Most of the first table runs there if points or queries are on a GPU, or if `set_device` sends them (`get_device`).
`on_device` tests for such arrays. Rows are `DevicePoints`; `rows_of` and `column_of` select from them. `rows_in_place` prepares
rows for a traversal: `HostRows`, `DeviceRows`, or `FetchedRows` for rows outside of main memory; `sent_rows` prepares rows in main
memory for a GPU, and sends them in blocks if they do not fit there; `uses_gpu` tests whether to send them. `defining` converts rows
to the coordinates that define distances. `as_cupy` converts an array to CuPy, `to_device_of` moves small arrays, `take_on_device`
takes entries by an index, `array_module` returns the library and `device_of` the device. `as_given` returns results in the caller's
library, `to_numpy` in NumPy. `require_cpu` raises an error where only the processor is supported.

Names are imported on first use, so that code which only needs threads does not wait for the compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reduset._engine import costs

if TYPE_CHECKING:
    from reduset._engine.balance import balance_lists, balance_products
    from reduset._engine.boxes import box_sums, normal_tail, oblique_box_sums
    from reduset._engine.cached import cached_property
    from reduset._engine.centre_distances import array_module, assigned_distances, has_single_products
    from reduset._engine.compiled import report_compilation
    from reduset._engine.components import Components, Moments, component_logs, component_sums
    from reduset._engine.costs import physical_memory
    from reduset._engine.covariances import (
        LOG_2PI,
        as_diagonal,
        as_full,
        from_lower_rows,
        from_whitened,
        is_shared,
        log_determinants,
        log_peaks,
        whitened_gradients,
    )
    from reduset._engine.cuda.arrays import as_cupy, as_given, on_device, require_cpu
    from reduset._engine.cuda.chunks import to_device_of
    from reduset._engine.cuda.device_rows import DeviceRows
    from reduset._engine.cuda.points import DevicePoints, column_of, device_of, rows_of, take_on_device
    from reduset._engine.cuda.sent_rows import sent_rows
    from reduset._engine.device import get_device, set_device, uses_gpu
    from reduset._engine.distances import CITYBLOCK, LOGARITHM, ROOT, SOFT_CITYBLOCK, SQUARED, TABLE
    from reduset._engine.exchanging import ColumnGoals, exchange
    from reduset._engine.factor import Pursuit, cholesky_dropping, order_by_energy, pivot_floor
    from reduset._engine.farthest import FarthestFirst
    from reduset._engine.fourier import fourier_sums
    from reduset._engine.host_rows import FetchedRows, HostRows, near_rows, rows_in_place
    from reduset._engine.k_means import LabelSums, cluster_sums, draw_seeds
    from reduset._engine.kernel_blocks import (
        KernelMaps,
        UseGram,
        columnwise_gram,
        distance_histograms,
        distance_nodes,
        gram_blocks,
        product_matrix,
    )
    from reduset._engine.lazy_cover import LazyCover, defining, to_numpy
    from reduset._engine.leaf_sums import LeafSums
    from reduset._engine.leaves import Leaves, build_leaves, leaf_order
    from reduset._engine.neighbours import LeafCover, nearest, nearest_by_block
    from reduset._engine.passes import BlockRows, add, each_column, held_rows, in_blocks, in_memory, map_rows, over_blocks
    from reduset._engine.profile import Frame, Profile
    from reduset._engine.radius_search import NearRows
    from reduset._engine.rows import random_rows, rows_by_weight, rows_not_among
    from reduset._engine.shadows import shadow_centres
    from reduset._engine.strata import equal_mass_strata
    from reduset._engine.sums import gradient_sums, gram, gram_by_rows, kernel_sums, log_sums
    from reduset._engine.threads import blocks, get_threads, row_blocks, run_all, set_threads, single_threaded_blas, thread_limit
    from reduset._engine.valleys import valley_depths
    from reduset._engine.windows import WindowSums
    from reduset._engine.working_set import search_sizes, traversal_sizes

__all__ = ["KernelMaps", "LeafSums", "gradient_sums", "gram", "gram_by_rows", "has_single_products", "kernel_sums", "log_sums"]
__all__ += ["box_sums", "distance_histograms", "distance_nodes", "fourier_sums", "gram_blocks", "normal_tail", "oblique_box_sums"]
__all__ += ["FarthestFirst", "LabelSums", "balance_lists", "balance_products", "build_leaves", "cluster_sums", "draw_seeds"]
__all__ += ["LeafCover", "Leaves", "leaf_order", "nearest", "nearest_by_block", "product_matrix", "shadow_centres"]
__all__ += ["assigned_distances", "columnwise_gram", "equal_mass_strata", "exchange", "random_rows", "rows_not_among"]
__all__ += ["Components", "Moments", "component_logs", "component_sums", "from_whitened", "whitened_gradients"]
__all__ += ["DeviceRows", "FetchedRows", "HostRows", "LazyCover", "NearRows", "WindowSums", "near_rows", "valley_depths"]
__all__ += ["DevicePoints", "array_module", "as_cupy", "as_given", "column_of", "device_of", "on_device", "require_cpu", "rows_of"]
__all__ += ["defining", "get_device", "rows_in_place", "sent_rows", "set_device", "take_on_device"]
__all__ += ["to_device_of", "to_numpy", "uses_gpu"]
__all__ += ["BlockRows", "add", "each_column", "held_rows", "in_blocks", "in_memory", "map_rows", "over_blocks"]
__all__ += ["CITYBLOCK", "LOGARITHM", "ROOT", "SOFT_CITYBLOCK", "SQUARED", "TABLE", "ColumnGoals", "Frame", "Profile", "UseGram"]
__all__ += ["LOG_2PI", "as_diagonal", "as_full", "from_lower_rows", "is_shared", "log_determinants", "log_peaks"]
__all__ += ["Pursuit", "cholesky_dropping", "costs", "order_by_energy", "physical_memory", "pivot_floor", "rows_by_weight"]
__all__ += ["blocks", "cached_property", "get_threads", "report_compilation", "row_blocks", "run_all", "set_threads"]
__all__ += ["search_sizes", "single_threaded_blas", "thread_limit", "traversal_sizes"]

_HOMES = {
    "balance": "balance_lists balance_products",
    "boxes": "box_sums normal_tail oblique_box_sums",
    "cached": "cached_property",
    "centre_distances": "array_module assigned_distances has_single_products",
    "compiled": "report_compilation",
    "components": "Components Moments component_logs component_sums",
    "costs": "physical_memory",
    "covariances": "LOG_2PI as_diagonal as_full from_lower_rows from_whitened is_shared"
    " log_determinants log_peaks whitened_gradients",
    "cuda.arrays": "as_cupy as_given on_device require_cpu",
    "cuda.chunks": "to_device_of",
    "cuda.device_rows": "DeviceRows",
    "cuda.points": "DevicePoints column_of device_of rows_of take_on_device",
    "cuda.sent_rows": "sent_rows",
    "device": "get_device set_device uses_gpu",
    "distances": "CITYBLOCK LOGARITHM ROOT SOFT_CITYBLOCK SQUARED TABLE",
    "exchanging": "ColumnGoals exchange",
    "factor": "Pursuit cholesky_dropping order_by_energy pivot_floor",
    "farthest": "FarthestFirst",
    "fourier": "fourier_sums",
    "host_rows": "FetchedRows HostRows near_rows rows_in_place",
    "k_means": "LabelSums cluster_sums draw_seeds",
    "kernel_blocks": "KernelMaps UseGram columnwise_gram distance_histograms distance_nodes gram_blocks product_matrix",
    "lazy_cover": "LazyCover defining to_numpy",
    "leaf_sums": "LeafSums",
    "leaves": "Leaves build_leaves leaf_order",
    "radius_search": "NearRows",
    "neighbours": "LeafCover nearest nearest_by_block",
    "passes": "BlockRows add each_column held_rows in_blocks in_memory map_rows over_blocks",
    "profile": "Frame Profile",
    "rows": "random_rows rows_by_weight rows_not_among",
    "shadows": "shadow_centres",
    "strata": "equal_mass_strata",
    "sums": "gradient_sums gram gram_by_rows kernel_sums log_sums",
    "threads": "blocks get_threads row_blocks run_all set_threads single_threaded_blas thread_limit",
    "valleys": "valley_depths",
    "windows": "WindowSums",
    "working_set": "search_sizes traversal_sizes",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'reduset._engine' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"reduset._engine.{_HOME_OF[name]}"), name)
    return value
