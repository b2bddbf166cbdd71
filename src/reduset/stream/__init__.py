"""Compression of rows that come one chunk after the other, in memory that does not grow.

May import: compression and what is below it.
"""

from reduset.stream.estimator import StreamCompressor

__all__ = ["StreamCompressor"]
