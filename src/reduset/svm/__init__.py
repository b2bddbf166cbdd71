"""Reduced sets of fitted SVMs: `compress_svm`, and the classifiers, regressions and outlier detectors of few bumps it returns.

May import: simplification, compression and what is below them.
"""

from reduset.svm.compressing import compress_svm
from reduset.svm.estimators import CompressedOneClassSVM, CompressedSVC, CompressedSVR
from reduset.svm.loss import SvmLoss

__all__ = ["CompressedOneClassSVM", "CompressedSVC", "CompressedSVR", "SvmLoss", "compress_svm"]
