"""Engines on this machine: processes, a Dask cluster and Ray, and partitions for each."""

import contextlib
import os
import secrets
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import ray

from dask_cases import cluster

# Ray writes no token to the home folder and reports nothing; it keeps the first token that a process uses
RAY_SETTINGS = {"RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN", secrets.token_hex()), "RAY_USAGE_STATS_ENABLED": "0"}
os.environ |= RAY_SETTINGS


@contextlib.contextmanager
def ray_of(workers=2):
    """Ray on this machine."""
    ray.init(num_cpus=workers, include_dashboard=False, object_store_memory=1 << 28, log_to_driver=False, logging_level="ERROR")
    try:
        yield ray
    finally:
        ray.shutdown()


@contextlib.contextmanager
def engine(name, workers=2):
    """An engine with so many workers, as `partitions` takes it."""
    if name == "threads":
        with ThreadPoolExecutor(workers) as executor:
            yield executor
    elif name == "processes":
        with ProcessPoolExecutor(workers, get_context("spawn")) as executor:
            yield executor
    else:
        with cluster(workers, processes=True) if name == "dask" else ray_of(workers):
            yield name
