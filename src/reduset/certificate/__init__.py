"""The error of a compression: the certificate, the a-priori bounds, and the probes that measure the error.

A new way to measure is a new class here and a line in `rule`, which selects the probe.
May import: mean, kernels, weights, `_engine`.
"""

from reduset.certificate.bounds import Bounds, bounds_of
from reduset.certificate.by_frequencies import angles_have_digits
from reduset.certificate.by_scale import (
    STEPS,
    ErrorProfile,
    MedianError,
    Scales,
    WaveScales,
    bandwidth_where,
    median_distance,
    missing_mass,
    rung_bandwidths,
    square_norms,
    sum_of_squares,
)
from reduset.certificate.certificate import (
    DENSITY_ROWS,
    METHODS,
    NO_THEOREM,
    ROUNDING,
    Certificate,
    at_bandwidth,
    bandwidth_of,
    log_density_change,
)
from reduset.certificate.comparison import ZERO_NORM, certificate_between, distance_from, require_norm, surrogate
from reduset.certificate.frequencies import MASS_MISSING, FrequencyLadders, Waves, two_sided
from reduset.certificate.probe import SAFETY, Measurement, Probe
from reduset.certificate.rule import planned_method, probe_for

__all__ = ["Certificate", "ErrorProfile"]
