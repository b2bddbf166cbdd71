"""Distances of many kernel means: D_ij = ‖f_i − f_j‖, the maximum mean discrepancy in "rkhs", the L2 distance in "l2".

Means on the same atoms have the Gram matrix K = L Lᵀ of the atoms. In an orthonormal basis of their span, f_i is the vector Lᵀα_i.
D is the Euclidean distance of these vectors, in O(m³/3 + N m²) and without cancellation. Other means need all inner products G, by
O((Σn)²/2) kernel evaluations in bounded memory, and D² = G_ii + G_jj − 2 G_ij. Differences below about 1e-8 of the norms are
rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from reduset._engine import single_threaded_blas, to_numpy
from reduset._progress import Progress
from reduset._types import Array, ProgressLike
from reduset.kernels import exponential
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.weights import CHOLESKY_UP_TO, FactoredSpan


def distances(
    means: Sequence[KernelMean],
    others: Sequence[KernelMean] | None = None,
    *,
    progress: ProgressLike = False,
) -> Array:
    """The distances between kernel means, full or compressed.

    Parameters
    ----------
    means : List of KernelMean, all with the same kernel.
    others : List of KernelMean, optional. By default, ``means`` are compared with each other.
    progress : bool, or a function of (stage, done, total).

    Returns
    -------
    (N, M) array; symmetric with a diagonal of 0 without ``others``

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.cohort import distances
    >>> means = [KernelMean.from_samples(np.array([[0.0], [x]]), Gaussian(1.0)) for x in (0.0, 1.0, 4.0)]
    >>> distances(means).round(3)
    array([[0.   , 0.444, 0.707],
           [0.444, 0.   , 0.703],
           [0.707, 0.703, 0.   ]])
    """
    means = checked(means, "means")
    columns = means if others is None else checked(others, "others")
    for other in (*means[1:], *columns):
        means[0]._require_compatible(other)
    with closing(Progress(progress)) as shown:
        return between(means, None if others is None else columns, shown)


def between(means: list[KernelMean], others: list[KernelMean] | None, progress: Progress) -> Array:
    """The distances of checked lists with one kernel."""
    columns = means if others is None else others
    if on_same_atoms([*means, *columns]) and means[0].size <= CHOLESKY_UP_TO:
        result = _within_span(means, columns)
    else:
        result = _from_products(means, others, progress.stage("distances"))
    if others is None:
        np.fill_diagonal(result, 0.0)
    return result


def checked(means: Any, name: str, kinds: tuple[type, ...] = (KernelMean,)) -> list[Any]:
    """A list of kernel means, or of densities of several kinds, at least one."""
    listed = list(means)
    if not listed:
        raise ValueError(f"{name} must hold at least one {'KernelMean' if len(kinds) == 1 else 'density'}, got none")
    for k, mean in enumerate(listed):
        if not isinstance(mean, kinds):
            way_out = "use KernelMean.from_samples(X, kernel), or .mean of a Compression"
            if isinstance(mean, Mixture):
                way_out = "compress with pieces='atoms', or compare two at a time by a.distance(b) or a.kl(b)"
            wanted = " or a ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{name}[{k}] must be a {wanted}, got {type(mean).__name__}; {way_out}")
    return listed


def on_same_atoms(means: Sequence[KernelMean]) -> bool:
    """Whether the means differ only in their weights."""
    return all(mean.size == means[0].size and np.array_equal(mean.atoms, means[0].atoms) for mean in means[1:])


def _within_span(means: Sequence[KernelMean], others: Sequence[KernelMean]) -> Array:
    first = means[0]
    with single_threaded_blas():  # so that the result does not depend on the number of threads
        span = FactoredSpan(first.kernel, np.asarray(first.atoms, np.float64), np.zeros(first.size))
        rows, columns = (_coordinates([mean.weights for mean in group], span) for group in (means, others))
    return cdist(rows, columns) * exponential(first.kernel.log_energy(first.dimension) / 2)


def _coordinates(weights: Sequence[Array], span: FactoredSpan) -> Array:
    """(N, k) coordinates of means with these weights. Equal weights have equal coordinates, although rounding in the last rows of a
    matrix product can differ."""
    stacked = np.stack(weights)
    _, first, group = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
    kept = np.sort(first)  # in the given order
    return np.asarray((stacked[kept] @ span.coordinates)[np.searchsorted(kept, first[group.ravel()])])


def _from_products(means: list[KernelMean], others: list[KernelMean] | None, report: Callable[[int, int], None]) -> Array:
    """The distances from all inner products; within one list, each pair is evaluated once."""
    columns = means if others is None else others
    norms = np.array([mean.inner(mean) for mean in means])
    other_norms = norms if others is None else np.array([mean.inner(mean) for mean in others])
    products = np.zeros((len(means), len(columns)))
    is_shared = others is not None and on_same_atoms(columns)  # one pass over each mean, not one for each pair
    weights = np.stack([mean.weights for mean in columns]) if is_shared else np.empty(0)
    energy = means[0].kernel.log_energy(means[0].dimension)
    for i, mean in enumerate(means):
        report(i, len(means))
        if is_shared:
            values = to_numpy(mean.kernel.product_sums(mean.atoms, mean.weights, columns[0].atoms))
            products[i] = weights @ values * exponential(energy)
        elif others is not None:
            products[i] = [mean.inner(other) for other in others]
        else:
            products[i, i + 1 :] = products[i + 1 :, i] = [mean.inner(other) for other in means[i + 1 :]]
    return np.sqrt(np.maximum(norms[:, None] + other_norms - 2 * products, 0.0))
