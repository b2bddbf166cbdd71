"""Populations: cells of many samples on shared atoms, the finest populations, and these merged by mode into ones with names.

`valleys` says whether two groups of cells have a valley between them, `merging` merges those that have none, `naming` gives what is
left names by its markers, `strays` joins what a sample that was stained otherwise has for itself, `finding` has it all, `result`
what was found.

May import: sketching, compression and what is below them.
"""

from reduset.populations.finding import find_populations
from reduset.populations.result import Populations

__all__ = ["Populations", "find_populations"]
