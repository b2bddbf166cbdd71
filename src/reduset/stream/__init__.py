"""Compression of rows that come in chunks and are read once, in bounded memory.

The estimator has a buffer of rows before a sketch: candidate atoms, Fourier sums and a sample. May import: compression and the
packages below it.
"""

from reduset.stream.estimator import StreamCompressor

__all__ = ["StreamCompressor"]
