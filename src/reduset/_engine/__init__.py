"""The only place that knows about speed: compiled loops over blocks, in bounded memory. Other rooms import from here, not below.

May import: `_types`, `_messages`. To run on another device, implement the functions of this first table (n points, m queries, d
dimensions):

==================== ==================================================================== ================ ======================
primitive            what it computes                                                     result           cost
==================== ==================================================================== ================ ======================
kernel_sums          Σᵢ wᵢ φ(xᵢ, q); by a product's `Profile` also ⟨f, φ(·, q)⟩            (m,)             n·m·d
gradient_sums        the same and Σᵢ wᵢ ∇φ(xᵢ, q)                                         (m,), (m, d)     n·m·d
log_sums             log Σᵢ wᵢ φ(xᵢ, q), without underflow                                (m,)             n·m·d
NearSums             the same to a given relative error, leaves near q point by point     (m,)             n·m·d/128 + near
gram, gram_by_rows   φ(xᵢ, yⱼ) at once, or by the row as it is asked for                  (n, m); (n,)     n·m·d; n·d a row
KernelMaps           Σⱼ φ(xᵢ, cⱼ) Aⱼₖ for all k at once; `product_matrix` the values        (n, p); (n, m)   n·m·(d + p)
gram_blocks          φ(xᵢ, yⱼ) for many bandwidths, block by block of rows                to `UseGram`     n·m·(d + bandwidths)
wave_sums            Σᵢ wᵢ exp(i ω·xᵢ) on s ladders ω, 2ω, 4ω, …                           (s, rungs)       n·s·(d + rungs)
gap_histograms       how much weight is how far from q (at `gap_nodes`)                   (m, bins)        n·m·d
grow                 points sorted into boxes, which the next four look into              `Leaves`         n·(d + log n)
cells                the same boxes, of any length, as an order of the rows               rows, starts     n·(d + log n)
nearest              each point's nearest atom and its distance; `each_nearest` by block  (n,), (n,)       n·m·d at worst
own_gaps             how far each point is from the centre that owns it                   (n,)             n·d
FarthestFirst        the farthest-first traversal (k-centre), continued as wanted         (m,) rows, radii n·m·d at worst
LazyCover            the same of long rows, `HostRows` or `DeviceRows`, by products       (m,) rows, radii n·m·d at worst
shadow_centres       a greedy cover by balls, in the order of the rows                    rows, (n,)       n·m·d at worst
rows_apart           the rows that equal none of a few places                             rows             n·(d + log m)
cell_sums            Σ w and Σ w (x − c) over the points nearest to each centre c          (m,), (m, d)     as `nearest`
LabelSums            Σ v by the label of each row, of many columns v                        (m,)             n
draw_seeds           the seeds of k-means++                                               (m,) rows        n·m·d
equal_mass_strata    rows in strata of equal mass, cut along principal directions         rows, starts     n·d·log m
exchange             which of a few rows of each of k strata, so that waves, moments and   (k,)             k·s·(d + rungs)
                     deciles add up best to those of `ColumnGoals`
balance_lists        which of each pair stays in kernel halving; `balance_products` of    (lists, pairs)   pairs²·d
                     a Gram matrix
Components           sums and moments of products of Gaussian components; `sums_at` and   (m,) … (m, d, d) n·m·d, n·m·d²,
                     `logs_at` at points                                                                   n·m·d³
WindowSums           quadratic statistics of the last rows of a stream, at several        (n,)             n·p
                     lengths of window
box_sums             how much of bumps lies in boxes, by tails of a law on a line, as       (m,)             n·m·d
                     `normal_tail` is; `oblique_box_sums` of full covariances
place_whitened       components from variables about a start; back by `whitened_slopes`   (m, d), (m, d²)  m·d³
==================== ==================================================================== ================ ======================

What these speak in: `Frame` (coordinates), `Profile` (a kernel's shape) by its metrics SQUARED, CITYBLOCK, SOFT_CITYBLOCK and
families ROOT, LOGARITHM, TABLE, and whether it `has_single_products`; `Leaves`, `leaves_for`, `LeafCover`, `Moments`; covariances
by `as_diagonal`, `as_full`, `is_shared`, `from_lower_rows`, `log_determinants`, `log_peaks`, LOG_2PI.

What stays with the processor, matrices of the atoms alone and the machine itself: `cholesky_dropping` and its `pivot_floor`,
`Pursuit`, `order_by_energy`, `rows_by_weight`, `first_of_order`, `line_dips` between two groups of points, `columnwise_gram`,
products of kernels of single columns; `blocks`, `row_blocks`, `run_all`, `single_threaded_blas`, `get_threads`, `set_threads`,
`threads_here`, `cached_property`, `physical_memory`, `costs`, how long it takes, and `compiling_told`, when one waits for the
compiler.

Most of the first table goes to a GPU where points or queries lie on one, or are sent there (`set_device`, `get_device`). What lies
there is `on_device`: rows as `DevicePoints`, of which `rows_of` and `column_of` take some, and at which a traversal looks as
`rows_in_place`; anything as CuPy's by `as_cupy`, other numbers `beside` values or `taken` by an index, `arrays_of` the library,
`home_of` the device. `as_given` gives results back in the library of the question, `to_numpy` here, and `refuse_device` refuses
what only the processor computes.

A name is imported when it is first asked for: what only needs threads does not wait for the compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reduset._engine import costs

if TYPE_CHECKING:
    from reduset._engine.balance import balance_lists, balance_products
    from reduset._engine.blas import single_threaded_blas
    from reduset._engine.boxes import box_sums, normal_tail
    from reduset._engine.cached import cached_property
    from reduset._engine.centre_gaps import has_single_products, own_gaps
    from reduset._engine.coincident import rows_apart
    from reduset._engine.columnwise import columnwise_gram
    from reduset._engine.compiled import compiling_told
    from reduset._engine.components import Components, Moments, logs_at, sums_at
    from reduset._engine.covariances import LOG_2PI, as_diagonal, as_full, from_lower_rows, is_shared, log_determinants, log_peaks
    from reduset._engine.cuda.arrays import as_cupy, as_given, on_device, refuse_device
    from reduset._engine.cuda.depths import beside
    from reduset._engine.cuda.device_rows import DeviceRows
    from reduset._engine.cuda.points import DevicePoints, column_of, home_of, rows_of, taken
    from reduset._engine.depths import LOGARITHM, ROOT, TABLE
    from reduset._engine.device import get_device, set_device
    from reduset._engine.dips import line_dips
    from reduset._engine.draws import first_of_order, rows_by_weight
    from reduset._engine.exchanging import ColumnGoals, exchange
    from reduset._engine.factor import cholesky_dropping, pivot_floor
    from reduset._engine.farthest import FarthestFirst
    from reduset._engine.gaps import CITYBLOCK, SOFT_CITYBLOCK, SQUARED
    from reduset._engine.label_sums import LabelSums
    from reduset._engine.lazy_cover import LazyCover, to_numpy
    from reduset._engine.leaves import Leaves, cells, grow
    from reduset._engine.lloyd import cell_sums
    from reduset._engine.maps import KernelMaps, product_matrix
    from reduset._engine.memory import physical_memory
    from reduset._engine.near import NearSums
    from reduset._engine.neighbours import LeafCover, each_nearest, leaves_for, nearest
    from reduset._engine.oblique_boxes import oblique_box_sums
    from reduset._engine.profile import Frame, Profile
    from reduset._engine.pursuit import Pursuit, order_by_energy
    from reduset._engine.radii import gap_histograms, gap_nodes
    from reduset._engine.ranks import arrays_of
    from reduset._engine.row_places import HostRows, rows_in_place
    from reduset._engine.seeds import draw_seeds
    from reduset._engine.shadows import shadow_centres
    from reduset._engine.strata import equal_mass_strata
    from reduset._engine.sums import gradient_sums, gram, gram_by_rows, kernel_sums, log_sums
    from reduset._engine.sweep import UseGram, gram_blocks
    from reduset._engine.threads import blocks, get_threads, row_blocks, run_all, set_threads, threads_here
    from reduset._engine.waves import wave_sums
    from reduset._engine.whitened import place_whitened, whitened_slopes
    from reduset._engine.windows import WindowSums

__all__ = ["gradient_sums", "gram", "gram_blocks", "gram_by_rows", "kernel_sums", "log_sums", "wave_sums"]
__all__ += ["box_sums", "gap_histograms", "gap_nodes", "normal_tail", "oblique_box_sums"]
__all__ += ["KernelMaps", "NearSums", "has_single_products", "product_matrix"]
__all__ += ["FarthestFirst", "balance_lists", "balance_products", "draw_seeds", "each_nearest", "grow", "nearest", "shadow_centres"]
__all__ += ["cells", "columnwise_gram", "equal_mass_strata", "exchange", "own_gaps", "rows_apart"]
__all__ += ["Components", "logs_at", "place_whitened", "sums_at", "whitened_slopes"]
__all__ += ["DeviceRows", "HostRows", "LazyCover", "WindowSums", "line_dips"]
__all__ += ["DevicePoints", "as_cupy", "as_given", "beside", "on_device", "refuse_device"]
__all__ += ["get_device", "set_device"]
__all__ += ["CITYBLOCK", "LOGARITHM", "ROOT", "SOFT_CITYBLOCK", "SQUARED", "TABLE", "Frame", "Profile"]
__all__ += ["ColumnGoals", "LeafCover", "Leaves", "Moments", "UseGram", "leaves_for"]
__all__ += ["LOG_2PI", "as_diagonal", "as_full", "from_lower_rows", "is_shared", "log_determinants", "log_peaks"]
__all__ += ["Pursuit", "cholesky_dropping", "costs", "order_by_energy", "physical_memory", "pivot_floor", "rows_by_weight"]
__all__ += [
    "LabelSums",
    "arrays_of",
    "cell_sums",
    "column_of",
    "first_of_order",
    "home_of",
    "rows_in_place",
    "rows_of",
    "taken",
    "to_numpy",
]
__all__ += [
    "blocks",
    "cached_property",
    "compiling_told",
    "get_threads",
    "row_blocks",
    "run_all",
    "set_threads",
    "single_threaded_blas",
    "threads_here",
]

_HOMES = {
    "balance": "balance_lists balance_products",
    "blas": "single_threaded_blas",
    "boxes": "box_sums normal_tail",
    "cached": "cached_property",
    "centre_gaps": "has_single_products own_gaps",
    "coincident": "rows_apart",
    "columnwise": "columnwise_gram",
    "compiled": "compiling_told",
    "components": "Components Moments logs_at sums_at",
    "covariances": "LOG_2PI as_diagonal as_full from_lower_rows is_shared log_determinants log_peaks",
    "cuda.arrays": "as_cupy as_given on_device refuse_device",
    "cuda.depths": "beside",
    "cuda.device_rows": "DeviceRows",
    "cuda.points": "DevicePoints column_of home_of rows_of taken",
    "depths": "LOGARITHM ROOT TABLE",
    "device": "get_device set_device",
    "dips": "line_dips",
    "draws": "first_of_order rows_by_weight",
    "exchanging": "ColumnGoals exchange",
    "factor": "cholesky_dropping pivot_floor",
    "farthest": "FarthestFirst",
    "gaps": "CITYBLOCK SOFT_CITYBLOCK SQUARED",
    "label_sums": "LabelSums",
    "lloyd": "cell_sums",
    "maps": "KernelMaps product_matrix",
    "lazy_cover": "LazyCover to_numpy",
    "leaves": "Leaves cells grow",
    "memory": "physical_memory",
    "near": "NearSums",
    "neighbours": "LeafCover each_nearest leaves_for nearest",
    "oblique_boxes": "oblique_box_sums",
    "profile": "Frame Profile",
    "pursuit": "Pursuit order_by_energy",
    "radii": "gap_histograms gap_nodes",
    "row_places": "HostRows rows_in_place",
    "ranks": "arrays_of",
    "seeds": "draw_seeds",
    "shadows": "shadow_centres",
    "strata": "equal_mass_strata",
    "sums": "gradient_sums gram gram_by_rows kernel_sums log_sums",
    "sweep": "UseGram gram_blocks",
    "threads": "blocks get_threads row_blocks run_all set_threads threads_here",
    "waves": "wave_sums",
    "whitened": "place_whitened whitened_slopes",
    "windows": "WindowSums",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'reduset._engine' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"reduset._engine.{_HOME_OF[name]}"), name)
    return value
