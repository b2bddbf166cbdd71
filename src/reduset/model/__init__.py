"""A compression and what is known of it in one object and one file.

May import: compression and what is below it.
"""

from reduset.model.columns import column_differences
from reduset.model.model import Model

__all__ = ["Model"]
