"""Budgets hold for whole calls: dear steps are not taken unasked, nothing dear is done twice, and seconds by stage add up."""

import time

import numpy as np
import pytest

from cases import cloud
from reduset import Gaussian, compress
from reduset.compression import prefixes
from reduset.compression import refine as moving
from reduset.compression.clock import Clock
from reduset.weights import kinds


@pytest.mark.parametrize("rows", [400, 9000])
@pytest.mark.parametrize("kind", ["simplex", "clipped", "simplex_projection", "counts"])
def test_steps_that_take_too_long_are_not_taken_unasked_on_data_or_model(rows, kind, monkeypatch):
    monkeypatch.setattr(moving.costs, "of_quadratic_program", lambda size: 20.0)
    X = cloud(rows, 2)
    still = compress(X, Gaussian("median"), size=8, weights=kind, rng=0)
    small = compress(X, Gaussian("median"), size=8, weights=kind, refine=True, rng=0)
    assert "not moved by L-BFGS, of which a step would take 20.0 s: give their number, refine=10" in small.remark
    np.testing.assert_array_equal(small.indices, still.indices)
    np.testing.assert_array_equal(small.mean.weights, still.mean.weights)
    assert compress(X, Gaussian("median"), size=8, weights=kind, refine=3, rng=0).indices is None


@pytest.mark.parametrize("refine", [False, True])
def test_the_quadratic_program_of_a_size_is_solved_once(refine, monkeypatch):
    solved = []
    plain = kinds.quadratic_program

    def watched(L, y, mass):
        solved.append(len(y))
        return plain(L, y, mass)

    monkeypatch.setattr(kinds, "quadratic_program", watched)
    monkeypatch.setattr(moving, "PATIENCE", 0.0)
    compress(cloud(400, 2), Gaussian("median"), size=8, weights="simplex", refine=refine, rng=0)
    assert len(solved) == len(set(solved))


@pytest.mark.parametrize(
    "options", [{"size": 8}, {"tol": 0.02}, {"size": 8, "refine": 5}, {"size": 8, "weights": "simplex"}], ids=str
)
def test_seconds_by_stage_add_up(options, monkeypatch):
    plain = prefixes.Prefixes._found

    def slowly(self, size):
        time.sleep(0.02)
        return plain(self, size)

    monkeypatch.setattr(prefixes.Prefixes, "_found", slowly)
    timings = compress(cloud(400, 2), Gaussian("median"), rng=0, **options).timings
    assert sum(seconds for name, seconds in timings.items() if name != "total") == pytest.approx(timings["total"])


def test_a_stage_within_a_stage_counts_once():
    clock = Clock()
    with clock.stage("certify"), clock.stage("weigh"):
        time.sleep(0.02)
    timings = clock.timings()
    assert timings["weigh"] > 0.019
    assert timings["certify"] + timings["weigh"] == pytest.approx(timings["total"])
