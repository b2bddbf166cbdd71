"""Tables that lie on their side are named, and tables that only look a little like it are left alone."""

import warnings

import numpy as np
import pandas as pd
import pytest

from reduset import Gaussian, KernelMean, compress
from reduset._validate import warn_if_lying
from reduset.cohort import CohortMap
from reduset.density import SparseKernelDensity

SAID = r"rows are observations here, and this looks like the \(d, n\) of scipy.stats.gaussian_kde; pass X.T"


@pytest.mark.parametrize("shape", [(2, 200), (2, 1000), (3, 5000), (5, 10_000), (10, 5000), (20, 10**6)])
def test_few_rows_of_very_many_columns_are_named(shape):
    with pytest.warns(UserWarning, match=SAID):
        warn_if_lying(np.broadcast_to(0.0, shape))


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((100, 20_000), id="samples of genes"),
        pytest.param((24, 30_000), id="a small study of genes"),
        pytest.param((10, 1536), id="a few embeddings"),
        pytest.param((4, 768), id="fewer embeddings"),
        pytest.param((1, 4096), id="one embedding"),
        pytest.param((2, 100), id="two rows"),
        pytest.param((50, 784), id="images"),
        pytest.param((1000, 2), id="rows"),
    ],
)
def test_tables_of_many_columns_are_left_alone(shape):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_lying(np.broadcast_to(0.0, shape))


def test_a_frame_says_itself_what_its_columns_are():
    warn_if_lying(pd.DataFrame(np.zeros((3, 1000))))


@pytest.mark.parametrize(
    "use",
    [
        lambda X: KernelMean.from_samples(X, Gaussian(1.0)),
        lambda X: compress(X, Gaussian(1.0), size=1, rng=0),
        lambda X: SparseKernelDensity(bandwidth=1.0, size=2).fit(X),
    ],
    ids=["from_samples", "compress", "density"],
)
def test_every_door_says_so_once_and_goes_on(use):
    X = np.random.default_rng(0).normal(size=(2, 500))
    with pytest.warns(UserWarning, match=SAID) as heard:
        assert use(X) is not None
    assert len([each for each in heard if "gaussian_kde" in str(each.message)]) == 1


def test_bags_may_have_few_rows_of_many_columns():
    bags = [np.random.default_rng(k).normal(size=(3, 500)) for k in range(4)]
    CohortMap(kernel=Gaussian(30.0), size=2, random_state=0).fit(bags)
