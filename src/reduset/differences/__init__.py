"""Which populations differ between groups of samples, and whether the samples differ at all: samples are the units, never cells.

`design` says what is compared and what is held fixed, `relabelling` in how many ways the samples could have been labelled,
`fitting` the statistics of many populations under all of these, `discovery` what can be called found, `whole` the test of all at
once, `comparing` has it all.

May import: `_validate` and what is below it.
"""

from reduset.differences.comparing import Differences, compare
from reduset.differences.design import Design, DesignError, design_of
from reduset.differences.whole import WholeTest, compare_whole

__all__ = ["Design", "DesignError", "Differences", "WholeTest", "compare", "compare_whole", "design_of"]
