"""A lab's files as the samples of a study: panel and sample tables, channels by name, cleaning, gates and scales.

`read_cohort` does it all; each step is a file of its own.

May import: `io`, the uses, and what is below them.
"""

from reduset.cytometry.panel import Panel, PanelMarker, read_panel
from reduset.cytometry.reading import read_cohort

__all__ = ["Panel", "PanelMarker", "read_cohort", "read_panel"]
