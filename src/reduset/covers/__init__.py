"""Covers: rows chosen so that every other row is near one of them, by number (k-centre) or for a given radius.

They suit embeddings and other wide rows by the million. Rows may be in memory, in memory-mapped files, or on a GPU.

May import: `io`, `_validate`, `_engine`.
"""

from reduset.covers.audit import Audit, audit
from reduset.covers.covering import METRICS, ORDERS, cover
from reduset.covers.result import Component, Cover, Group, Pairs

__all__ = ["Audit", "Component", "Cover", "Group", "Pairs", "audit", "cover"]
