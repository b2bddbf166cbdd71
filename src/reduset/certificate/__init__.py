"""How much was lost: the certificate, the bounds that hold before measuring, and the probes that measure.

A new way to measure is a class beside these and a line in the rule that chooses (`rule`).
May import: mean, kernels, weights, `_engine`.
"""

from reduset.certificate.by_scale import ErrorProfile
from reduset.certificate.certificate import Certificate, at_bandwidth

__all__ = ["Certificate", "ErrorProfile"]
