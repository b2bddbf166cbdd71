"""Data in partitions, clusters on this machine, and comparisons of results, for the tests with Dask."""

import contextlib

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from cases import cloud


def parts(X, rows=1500, columns=None):
    """X as a Dask array of so many rows (and columns) a partition."""
    return da.from_array(X, chunks=(rows, columns or X.shape[1]))


def points(n, d=3, seed=0):
    return cloud(n, d, seed)


@contextlib.contextmanager
def cluster(workers=2, processes=False):
    """A cluster on this machine, without a dashboard, and its client."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=processes, dashboard_address=":0") as made,
        Client(made) as client,
    ):
        yield made, client


def assert_equal(one, other):
    """Equal to the last bit."""
    np.testing.assert_array_equal(one.mean.atoms, other.mean.atoms)
    np.testing.assert_array_equal(one.mean.weights, other.mean.weights)
    assert one.certificate == other.certificate
    assert one.n_samples == other.n_samples


def true_error(X, mean):
    """‖f − f_m‖ / ‖f‖ by the definition, from all pairs."""
    kernel = mean.kernel
    w = np.full(len(X), 1 / len(X))
    square = float(w @ kernel.product_sums(X, w, X))
    lost = square - 2 * float(mean.weights @ kernel.product_sums(X, w, mean.atoms))
    lost += float(mean.weights @ kernel.product_sums(mean.atoms, mean.weights, mean.atoms))
    return np.sqrt(max(lost, 0.0) / square)
