"""Budgets hold for whole calls: dear steps are not taken unasked, nothing dear is done twice, and seconds by stage add up."""

import time

import numpy as np
import pytest

from cases import cloud
from reduset import Gaussian, NotReachedWarning, compress
from reduset._engine import costs
from reduset._progress import Clock
from reduset.compression import prefixes
from reduset.compression import refine as moving
from reduset.compression.searches import GIVE_UP_FACTOR, atoms_needed
from reduset.weights import weightings


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("rows", [400, 9000])
@pytest.mark.parametrize("kind", ["simplex", "clipped", "sum_to_one_clipped", "simplex_projection"])
def test_steps_that_take_too_long_are_not_taken_unasked_on_data_or_model(rows, kind, monkeypatch):
    monkeypatch.setattr(costs, "of_quadratic_program", lambda size: 20.0)
    X = cloud(rows, 2)
    still = compress(X, Gaussian("median"), size=8, weights=kind, rng=0)
    small = compress(X, Gaussian("median"), size=8, weights=kind, refine=True, rng=0)
    assert "not moved by L-BFGS, since a step takes about 20.0 s; set the number of steps, such as refine=10" in small.remark
    np.testing.assert_array_equal(small.indices, still.indices)
    np.testing.assert_array_equal(small.mean.weights, still.mean.weights)
    assert compress(X, Gaussian("median"), size=8, weights=kind, refine=3, rng=0).indices is None


@pytest.mark.parametrize("refine", [False, True])
def test_the_quadratic_program_of_a_size_is_solved_once(refine, monkeypatch):
    solved = []
    plain = weightings.quadratic_program

    def watched(L, y, mass):
        solved.append(len(y))
        return plain(L, y, mass)

    monkeypatch.setattr(weightings, "quadratic_program", watched)
    monkeypatch.setattr(moving, "PATIENCE", 0.0)
    compress(cloud(400, 2), Gaussian("median"), size=8, weights="simplex", refine=refine, rng=0)
    assert len(solved) == len(set(solved))


@pytest.mark.parametrize(
    "options", [{"size": 8}, {"tol": 0.02}, {"size": 8, "refine": 5}, {"size": 8, "weights": "simplex"}], ids=str
)
def test_seconds_by_stage_add_up(options, monkeypatch):
    plain = prefixes.Prefixes.error

    def slowly(self, size):
        time.sleep(0.02)
        return plain(self, size)

    monkeypatch.setattr(prefixes.Prefixes, "error", slowly)
    timings = compress(cloud(400, 2), Gaussian("median"), rng=0, **options).timings
    assert sum(seconds for name, seconds in timings.items() if name != "total") == pytest.approx(timings["total"])


def test_a_stage_within_a_stage_counts_once():
    clock = Clock()
    with clock.stage("certify"), clock.stage("weigh"):
        time.sleep(0.02)
    timings = clock.timings()
    assert timings["weigh"] > 0.019
    assert timings["certify"] + timings["weigh"] == pytest.approx(timings["total"])


# -- a tolerance out of reach ------------------------------------------------------------------------------------------------------


SIZES = [32 * 2**k for k in range(8)]


@pytest.mark.covering_cases
@pytest.mark.parametrize("d", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("reached_at", [1000, 2000, 5000])
@pytest.mark.parametrize("tol", [0.1, 0.01, 1e-4])
def test_a_curve_that_reaches_the_goal_is_followed_to_its_end(d, reached_at, tol):
    squares = [tol ** (2 * (m / reached_at) ** (2 / d)) for m in SIZES]
    for seen in range(1, len(SIZES) + 1):
        assert atoms_needed(SIZES[:seen], squares[:seen], tol**2, d) < GIVE_UP_FACTOR * 5000


def test_a_power_of_the_size_that_leads_far_beyond_is_told_at_the_first_size_that_says_anything():
    squares = [m**-0.2 for m in SIZES]
    assert atoms_needed(SIZES[:5], squares[:5], 1e-4, 10) > GIVE_UP_FACTOR * 5000
    assert atoms_needed(SIZES[:4], squares[:4], 1e-4, 10) == 0.0
    assert np.isfinite(atoms_needed(SIZES, [0.5] * 8, 1e-4, 10))


def test_a_tolerance_out_of_reach_is_told_early():
    X = np.random.default_rng(0).normal(size=(20_000, 8))
    words = r"tol=0.01 was not reached with 512 atoms.* It cannot be reached with 5,000 atoms: .* about 20,000, .* give size=5000"
    with pytest.warns(NotReachedWarning, match=words):
        small = compress(X, Gaussian("scott"), tol=0.01, select="kcenter", rng=0)
    assert not small.reached
    assert small.size == 512
    assert small.certificate.relative_error > 0.5
