"""Sketches: rows of the data that stand for all others, rare ones among them, with weights, and with what was lost.

May import: compression, select, certificate and what these may.
"""

from reduset.sketching.result import Sketch
from reduset.sketching.sketching import sketch

__all__ = ["Sketch", "sketch"]
