"""Compression on Dask: data in partitions, on one machine or many, compressed where they are.

What may be given (`partitions`), who does the work (`scheduling`), two passes over the rows (`two_pass`), and a task a bag.
May import: stream, cohort, compression and what is below them.
"""

try:
    import dask
except ImportError as error:
    raise ImportError("reduset.distributed needs Dask, which is not installed: pip install 'reduset[dask]'") from error

from reduset.distributed.cohort_map import CohortMap
from reduset.distributed.two_pass import compress

__all__ = ["CohortMap", "compress"]
