"""Every error in a report of a compression names its bandwidth."""

from __future__ import annotations

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, KernelMean, compress
from reduset.model import Model
from reduset.modes import segment
from reduset.report import PathDisplay, write_compression, write_segmentation
from reduset.report import words as told
from reduset.report.figures import path_figure
from reduset.stream import StreamCompressor
from report_cases import Page, embedded, image

SPACE = "\N{NO-BREAK SPACE}"


@pytest.fixture(scope="module")
def model():
    stream = StreamCompressor(Gaussian(0.4), 40, 0).partial_fit(np.random.default_rng(0).normal(size=(3000, 2)))
    return Model.of_stream(stream.sample(), stream.result())


def test_the_tiles_name_the_bandwidth_and_the_error_at_the_median_distance(model, tmp_path):
    write_compression(tmp_path / "r.html", model)
    texts, near = Page(tmp_path / "r.html").text(), model.near_median
    own, at_median = (told.percent(error).replace(SPACE, " ") for error in (model.certificate.relative_error, near.relative_error))
    assert "Error at bandwidth 0.4" in texts
    assert "Random rows at bandwidth 0.4" in texts
    assert f"The error at the median distance, {near.distance:.3g}, is {at_median}." in texts
    assert f"error {own} at bandwidth 0.4" in texts
    assert embedded(tmp_path / "r.html")["path"]["at"] == " at bandwidth 0.4"
    assert "Error by bandwidth" in texts  # a stream has it, too


def test_the_axis_of_a_display_has_the_bandwidth(model):
    pytest.importorskip("matplotlib")
    assert PathDisplay.from_model(model).plot().ax_.get_ylabel() == "relative error at bandwidth 0.4"


def test_a_kernel_without_a_bandwidth_has_plain_titles(tmp_path):
    full = KernelMean.from_samples(np.random.default_rng(0).normal(size=(200, 2)), FunctionKernel("rbf", gamma=0.5))
    shown = Model.of(full, compress(full, size=8, rng=0))
    assert told.lost(shown.certificate).title == "Error"
    assert told.random_rows(path_figure(shown), 200).title == "Random rows"
    write_compression(tmp_path / "r.html", shown)
    assert embedded(tmp_path / "r.html")["path"]["at"] == ""


def test_a_scale_near_the_median_distance_is_named_as_such(model):
    near = type(model.near_median)(0.05, 17.0, 20.0)
    meaning = told.lost(model.certificate, near=near).meaning
    assert meaning.endswith(f" The error at bandwidth 17, near the median distance, 20, is 5{SPACE}%.")


def test_a_segmentation_names_the_bandwidth_of_its_density(tmp_path):
    found = segment(image(), bandwidth=0.1, random_state=0)
    write_segmentation(tmp_path / "r.html", image(), found)
    assert "Error of the density at bandwidth 0.1" in Page(tmp_path / "r.html").text()
