"""Gaussian mixtures with a covariance for each component.

May import: mean, kernels, `_engine`.
"""

from reduset.mixture.component_mean import COMPONENT_MEAN, ComponentMean, SmallMean, as_density
from reduset.mixture.covariances import inverses, solved
from reduset.mixture.mixture import Mixture
from reduset.mixture.pieces import Pieces, own_covariance

__all__ = ["ComponentMean", "Mixture"]
