"""Covers: rows chosen so that every other row is near one of them. Exact k-centre, or a cover of a given radius.

For embeddings and other rows with many columns, by the million: in memory, in memory-mapped files, or on a GPU.

May import: `io`, `_validate`, `_engine`.
"""

from reduset.covers.covering import METRICS, cover
from reduset.covers.result import Cover

__all__ = ["Cover", "cover"]
