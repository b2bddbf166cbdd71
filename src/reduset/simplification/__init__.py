"""simplify: a mixture of fewer components, group by group and then jointly, with its L2 error (Zhang & Kwok 2010).

May import: mixture, compression and what is below them.
"""

from reduset.simplification.grouping import centres_within
from reduset.simplification.simplifying import Simplification, simplify

__all__ = ["Simplification", "simplify"]
