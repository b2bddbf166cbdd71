"""Subsets: rows so chosen that every other is near one of them. Exact k-centre, or a cover of a given radius.

For embeddings and other long rows, by the million: in memory, in files that are mapped, or on a GPU.

May import: `io`, `_validate`, `_engine`.
"""

from reduset.subset.result import Subset
from reduset.subset.subsetting import subset

__all__ = ["Subset", "subset"]
