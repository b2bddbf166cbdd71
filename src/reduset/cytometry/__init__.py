"""A lab's files as the samples of a study: panel and sample tables, channels by name, cleaning, gates and scales.

`read_cohort` does it all; each step is a file of its own. What comes out of a study: `study_tables` and `study_fcs`.

May import: `io`, the uses, and what is below them.
"""

from reduset.cytometry.panel import Panel, PanelMarker, read_panel
from reduset.cytometry.reading import read_cohort
from reduset.cytometry.study_fcs import write_sketch_fcs
from reduset.cytometry.study_tables import write_tables

__all__ = ["Panel", "PanelMarker", "read_cohort", "read_panel", "write_sketch_fcs", "write_tables"]
