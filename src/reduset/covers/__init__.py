"""Covers: rows chosen so that every other row is near one of them, by number (k-centre) or for a given radius.

They suit embeddings and other wide rows by the million. Rows may be in memory, in memory-mapped files, or on a GPU.

May import: `io`, `_validate`, `_engine`.
"""

from reduset.covers.auditing import Audit, audit
from reduset.covers.covering import cover
from reduset.covers.near import ORDERS, Pairs
from reduset.covers.result import Component, Cover, Group
from reduset.covers.rows import METRICS

__all__ = ["Audit", "Component", "Cover", "Group", "Pairs", "audit", "cover"]
