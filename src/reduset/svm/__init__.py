"""Reduced sets of fitted SVMs: `compress_svm`, and the smaller classifiers, regressors and outlier detectors that it returns.

May import: simplification, compression and their imports.
"""

from reduset.svm.compressing import compress_svm
from reduset.svm.estimators import CompressedOneClassSVM, CompressedSVC, CompressedSVR
from reduset.svm.loss import SvmLoss

__all__ = ["CompressedOneClassSVM", "CompressedSVC", "CompressedSVR", "SvmLoss", "compress_svm"]
