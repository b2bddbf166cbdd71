"""Class proportions of unlabelled points: the mixture of the classes' kernel means that is nearest to theirs.

May import: compression and what is below it.
"""

from reduset.proportions.estimator import ClassProportions, Proportions

__all__ = ["ClassProportions", "Proportions"]
