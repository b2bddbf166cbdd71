"""simplify: reduce a mixture to fewer components, by groups and then jointly, with its L2 error (Zhang & Kwok 2010).

May import: mixture, compression and their imports.
"""

from reduset.simplification.grouping import centres_within
from reduset.simplification.joint_fit import JointFit, lbfgs
from reduset.simplification.local_fit import ComponentArrays
from reduset.simplification.pipeline import fewest
from reduset.simplification.simplifying import Simplification, fitting_stages, simplify

__all__ = ["Simplification", "simplify"]
