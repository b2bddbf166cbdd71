"""The error of a compression: the certificate, the a-priori bounds, and the probes that measure the error.

A new way to measure is a new class here and a line in `rule`, which selects the probe.
May import: mean, kernels, weights, `_engine`.
"""

from reduset.certificate.bounds import Bounds
from reduset.certificate.by_frequencies import angles_have_digits
from reduset.certificate.by_scale import ErrorProfile, MedianError, Scales, WaveScales, missing_mass
from reduset.certificate.certificate import DENSITY_ROWS, METHODS, NO_THEOREM, Certificate, at_bandwidth, bandwidth_of
from reduset.certificate.frequencies import SAFETY, FrequencyLadders, Waves, two_sided
from reduset.certificate.probe import Measurement, Probe
from reduset.certificate.rule import probe_for, rows_needed

__all__ = ["Certificate", "ErrorProfile"]
