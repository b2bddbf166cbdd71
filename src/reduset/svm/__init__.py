"""Fitted SVMs with few bumps: `compress_svm`, and what it returns."""

from reduset.svm.compressing import compress_svm
from reduset.svm.estimators import CompressedOneClassSVM, CompressedSVC, CompressedSVR
from reduset.svm.loss import SvmLoss

__all__ = ["CompressedOneClassSVM", "CompressedSVC", "CompressedSVR", "SvmLoss", "compress_svm"]
