"""Class proportions of unlabelled points: the mixture of the class kernel means that is nearest to their kernel mean.

May import: compression and the packages below it.
"""

from reduset.proportions.estimator import ClassProportions, Proportions

__all__ = ["ClassProportions", "Proportions"]
