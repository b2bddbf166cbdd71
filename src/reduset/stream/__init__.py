"""Compression of rows that come one chunk after the other, in memory that does not grow.

The estimator, the buffer before its sketch, and the sketch: candidate atoms, online k-centre, waves, a reservoir; and the file.
May import: compression and what is below it.
"""

from reduset.stream.estimator import StreamCompressor

__all__ = ["StreamCompressor"]
