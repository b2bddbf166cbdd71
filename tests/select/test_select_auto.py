"""Auto: the best of those tried, and what it says about the others."""

import numpy as np
import pytest

from cases import Given, GivenPlaces, cloud
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, compress
from reduset._engine import costs
from reduset.select import Auto, auto

ENOUGH = 100.0  # seconds, for all of them on any of the clouds here
KERNELS = [
    Gaussian(0.3),
    Gaussian("median", space="l2"),
    Laplacian(0.8, metric="cityblock"),
    Student(0.6),
    FunctionKernel("rbf", gamma=2.0),
]


def error_of(f, chosen):
    selector = GivenPlaces(chosen.atoms) if chosen.indices is None else Given(chosen.indices)
    return compress(f, size=len(chosen.atoms), select=selector, rng=0).certificate.relative_error


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize("seed", range(3))
def test_none_that_was_tried_loses_less(kernel, size, seed):
    f = KernelMean.from_samples(cloud(400, 3, seed), kernel)
    found = error_of(f, Auto(ENOUGH).select(f, size, rng=np.random.default_rng(seed)))
    streams = np.random.default_rng(seed).spawn(len(auto.TRIED))
    others = [error_of(f, selector.select(f, size, stream)) for (selector, _), stream in zip(auto.TRIED, streams, strict=True)]
    assert found <= min(others) * (1 + 1e-6)
    assert any(found == pytest.approx(other, rel=1e-6) for other in others)


def test_a_signed_mean_has_a_best_selector_too():
    f = KernelMean(cloud(300, 3), np.random.default_rng(0).normal(size=300), Gaussian(1.0))
    found = error_of(f, Auto(ENOUGH).select(f, 20, rng=np.random.default_rng(0)))
    streams = np.random.default_rng(0).spawn(len(auto.TRIED))
    others = [error_of(f, selector.select(f, 20, stream)) for (selector, _), stream in zip(auto.TRIED, streams, strict=True)]
    assert found <= min(others) * (1 + 1e-6)


def test_the_remark_names_the_choice_and_all_that_were_tried():
    small = compress(cloud(500, 3), Gaussian(0.5), size=20, select=Auto(ENOUGH), rng=0)
    assert small.selection == "Auto"
    chosen, rest = small.remark.split(", which explains most of ‖f‖²: ")
    energies = {name: float(energy) for name, energy in (each.split() for each in rest.split(", "))}
    assert list(energies) == ["KMeans", "Greedy", "KCenter", "Cholesky"]
    assert energies[chosen] == max(energies.values())
    assert small.remark.split("; ")[0] in small.details()
    assert (small.indices is None) == (chosen == "KMeans")


def test_energies_in_the_remark_are_those_that_the_atoms_explain():
    small = compress(cloud(500, 3), Gaussian(0.5), size=20, select=Auto(ENOUGH), rng=0)
    span = small._prefixes.span
    chosen, rest = small.remark.split(", which explains most of ‖f‖²: ")
    assert f"{chosen} {span.energy(span.size):.6g}" in rest


@pytest.mark.parametrize("budget", [1e-12, 1e-5])
def test_a_budget_for_nothing_is_enough_for_the_first(budget):
    small = compress(cloud(500, 3), Gaussian(0.5), size=20, select=Auto(budget), rng=0)
    first, *others = (str(selector) for selector, _ in auto.TRIED)
    tried, left_out = small.remark.split(f"; skipped, with 0 s left of {budget:.3g} s: ")
    assert tried.startswith(f"{first}, which explains most of ‖f‖²: {first} ")
    for name in others:
        assert name not in tried
        assert f"{name} (" in left_out
    assert small.size == 20


def test_a_budget_for_some_leaves_out_the_dear_ones():
    """Greedy looks at every pair of points, the others at every pair of a point and an atom."""
    f = KernelMean.from_samples(cloud(8000, 2), Gaussian(0.5))
    traversal = Auto(0.03).begin(f, np.random.default_rng(0))
    traversal.extend(10)
    tried, left_out = traversal.remark.split("; skipped, with ")
    assert " s left of 0.03 s: " in left_out
    assert "Greedy" in left_out
    for name in ("KCenter", "KMeans", "Cholesky"):
        assert name in tried


def test_the_budget_counts_estimates_and_no_clock(monkeypatch):
    """The same on any machine: where everything is said to be free, all are tried."""
    monkeypatch.setattr(costs, "of_sums", lambda *_: 0.0)
    monkeypatch.setattr(costs, "of_factor", lambda *_: 0.0)
    monkeypatch.setattr(auto, "TRIED", tuple((selector, lambda *_: 0.0) for selector, _ in auto.TRIED))
    assert "beyond" not in compress(cloud(), Gaussian(0.5), size=5, select=Auto(1e-12), rng=0).remark


def test_costs_grow_with_everything():
    for _, cost in auto.TRIED:
        assert 0 < cost(1000, 10, 2) < cost(1000, 20, 2)
        assert cost(1000, 10, 2) < cost(2000, 10, 2)
        assert cost(1000, 10, 2) < cost(1000, 10, 20)


@pytest.mark.parametrize("goal", [{"tol": 0.05}, {"plateau": 1e-3}])
def test_a_goal_is_reached_by_the_best_at_the_last_size(goal):
    X = cloud(400, 2)
    small = compress(X, Gaussian(0.8), select="auto", rng=0, **goal)
    assert small.reached
    assert "which explains most" in small.remark
    full = KernelMean.from_samples(X, Gaussian(0.8))
    assert small.certificate.relative_error == pytest.approx(full.distance(small.mean) / full.norm(), rel=1e-5)


def test_before_it_has_begun_there_are_no_atoms():
    traversal = Auto().begin(KernelMean.from_samples(cloud(), Gaussian(0.5)), np.random.default_rng(0))
    assert traversal.points.shape == (0, 2)
    assert traversal.indices is None
    assert traversal.remark == ""


@pytest.mark.parametrize(
    ("budget", "kind", "message"),
    [
        (0, ValueError, "budget .*got 0"),
        (-1.0, ValueError, "budget .*got -1.0"),
        (np.inf, ValueError, "budget .*got inf"),
        (np.nan, ValueError, "budget .*got nan"),
        ("1s", TypeError, "budget .*got '1s'"),
        (True, TypeError, "budget .*got True"),
        (None, TypeError, "budget .*got None"),
    ],
)
def test_what_is_no_number_of_seconds_is_refused(budget, kind, message):
    with pytest.raises(kind, match=message):
        Auto(budget)
