"""Whoever names the client: an address, or a client that is not the default one, does the work as the default client does."""

import numpy as np
import pytest
from distributed import Client, LocalCluster, default_client

from dask_cases import assert_equal, parts, points
from reduset import Gaussian, cohort, distributed

X = points(900)  # few: with a tolerance the selection goes through half of them


@pytest.fixture(scope="module")
def nobodys_cluster():
    """A cluster without a default client."""
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as made:
        yield made


def refuse(*_):
    raise AssertionError("this was not done by the cluster")


@pytest.fixture(params=["address", "client"])
def named(request, nobodys_cluster, monkeypatch):
    """A client by name, where the local threads would refuse the work."""
    with pytest.raises(ValueError, match="No clients found"):
        default_client()
    monkeypatch.setattr("reduset.distributed.scheduling.LocalScheduler.run", refuse)
    if request.param == "address":
        yield nobodys_cluster.scheduler_address
    else:
        with Client(nobodys_cluster, set_as_default=False) as client:
            yield client


@pytest.mark.parametrize("goal", [{"size": 20}, {"tol": 0.1}], ids=str)
def test_a_client_that_is_not_the_default_compresses(named, goal, monkeypatch):
    found = distributed.compress(parts(X, 300), Gaussian("scott"), rng=0, client=named, **goal)
    monkeypatch.undo()
    assert_equal(found, distributed.compress(parts(X, 300), Gaussian("scott"), rng=0, **goal))


def test_a_client_that_is_not_the_default_maps_a_cohort(named):
    bags = [X[k::4] for k in range(4)]
    found = distributed.CohortMap(size=20, random_state=0, client=named).fit(bags)
    np.testing.assert_array_equal(found.distances_, cohort.CohortMap(size=20, random_state=0).fit(bags).distances_)


def test_of_two_clusters_the_one_that_is_named_does_the_work(nobodys_cluster):
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as other, Client(other):
        with Client(nobodys_cluster, set_as_default=False) as client:
            found = distributed.compress(parts(X, 300), Gaussian(0.8), size=20, rng=0, client=client)
        assert not other.scheduler.task_prefixes
    assert_equal(found, distributed.compress(parts(X, 300), Gaussian(0.8), size=20, rng=0))
