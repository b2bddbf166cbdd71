"""Dask in odd places: called by a task of its own cluster."""

import pytest

from dask_cases import assert_equal, cluster, parts, points
from reduset import Gaussian
from reduset.distributed import compress


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_may_compress_on_its_own_cluster(workers):
    X = points(3000, 2)

    def compressed():
        return compress(parts(X, 500), Gaussian(0.5), size=10, rng=0)

    with cluster(workers) as (_, client):
        inside = client.submit(compressed, pure=False).result(timeout=60)
    assert_equal(inside, compressed())
