"""Gaussian mixtures with a covariance for each component.

May import: mean, kernels, `_engine`.
"""

from reduset.mixture.component_mean import (
    COMPONENT_MEAN,
    ComponentMean,
    SmallMean,
    as_density,
    kappa_of,
    mean_of,
    own_sums_of,
    pieces_of,
    sums_of,
)
from reduset.mixture.conditioning import conditional as conditional_of
from reduset.mixture.conditioning import marginal as marginal_of
from reduset.mixture.covariances import (
    MIN_EIGENVALUE,
    NDIM,
    diagonals,
    inverses,
    log_squares,
    not_positive,
    projected,
    solved,
    symmetric,
    widened,
)
from reduset.mixture.mixture import Mixture, as_mixture
from reduset.mixture.pieces import OWN, ComponentPieces, Pieces, frame_of, own_covariance

__all__ = ["ComponentMean", "Mixture"]
