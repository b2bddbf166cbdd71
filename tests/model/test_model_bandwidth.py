"""A model keeps the bandwidth of its error and the error at the median distance; files say nothing else than their kernel."""

from __future__ import annotations

import numpy as np
import pytest

from archive_cases import header_of, reseal
from reduset import Gaussian, KernelMean, compress
from reduset.model import Model
from reduset.stream import StreamCompressor

ROWS = np.random.default_rng(0).normal(size=(500, 2))


@pytest.fixture
def saved(tmp_path):
    full = KernelMean.from_samples(ROWS, Gaussian(0.7))
    path = tmp_path / "small.npz"
    Model.of(full, compress(full, size=20, rng=0)).save(path)
    return path


def test_both_errors_come_back_and_are_printed(saved):
    small = compress(KernelMean.from_samples(ROWS, Gaussian(0.7)), size=20, rng=0)
    back = Model.load(saved)
    assert back.certificate.bandwidth == 0.7
    assert back.near_median == small.near_median
    errors = [line.strip() for line in str(small).splitlines()[1:3]]
    assert [line.strip() for line in str(back).splitlines()[2:4]] == errors


def test_a_stream_keeps_its_profile_and_its_error_at_the_median_distance(tmp_path):
    stream = StreamCompressor(Gaussian(0.5), 20, 0).partial_fit(ROWS)
    small = stream.result()
    Model.of_stream(stream.sample(), small).save(tmp_path / "small.npz")
    back = Model.load(tmp_path / "small.npz")
    assert back.near_median == small.near_median
    np.testing.assert_array_equal(back.profile().relative_errors, small.with_all_selected().profile().relative_errors)


def test_older_files_have_the_bandwidth_of_their_kernel(saved):
    certificate = {name: value for name, value in header_of(saved)["certificate"].items() if name != "bandwidth"}
    reseal(saved, certificate=certificate, near_median=None)
    back = Model.load(saved)
    assert back.certificate.bandwidth == 0.7
    assert back.near_median is None
    assert "at bandwidth 0.7" in str(back)


@pytest.mark.parametrize("bandwidth", [0.5, -1.0, "0.7", float("nan"), True])
def test_another_bandwidth_than_the_kernels_raises_an_error(saved, bandwidth):
    reseal(saved, certificate=header_of(saved)["certificate"] | {"bandwidth": bandwidth})
    with pytest.raises(ValueError, match=r"certificate\.bandwidth must"):
        Model.load(saved)


@pytest.mark.parametrize(
    "changes", [{"bandwidth": 0.0}, {"distance": float("inf")}, {"relative_error": -1.0}, {"relative_error": "x"}, {"more": 1.0}]
)
def test_a_hostile_error_at_the_median_distance_raises_an_error(saved, changes):
    reseal(saved, near_median=header_of(saved)["near_median"] | changes)
    with pytest.raises(ValueError, match="near_median"):
        Model.load(saved)


@pytest.mark.parametrize("told", [[1.0, 2.0, 3.0], 5, "x"])
def test_an_error_at_the_median_distance_is_an_object(saved, told):
    reseal(saved, near_median=told)
    with pytest.raises(ValueError, match="near_median must be an object"):
        Model.load(saved)
