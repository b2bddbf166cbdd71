"""The steps of an expensive reduction: one method is followed to the end, in single precision, at the error of both."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from reduset.svm import compress_svm, compressing, expansion_fit
from reduset.svm.expansion_fit import ExpansionTarget
from reduset.svm.machines import read

X, Y = make_moons(400, noise=0.25, random_state=0)
SVM = SVC(gamma=2.0).fit(X, Y)


def steps_taken(monkeypatch):
    taken, slopes = [], ExpansionTarget._slopes

    def counted(self, *given):
        taken.append(1)
        return slopes(self, *given)

    monkeypatch.setattr(ExpansionTarget, "_slopes", counted)
    small = compress_svm(SVM, size=12, X=X, rng=0, polish=100)
    return len(taken), small


def test_only_the_method_ahead_is_followed_where_steps_are_expensive(monkeypatch):
    both, best = steps_taken(monkeypatch)
    monkeypatch.setattr(compressing, "HEAT_WORK", 0.0)
    monkeypatch.setattr(expansion_fit, "SINGLE_WORK", 0.0)
    monkeypatch.setattr(compressing, "HEAT_STEPS", 10)
    one, small = steps_taken(monkeypatch)
    assert one < 0.7 * both
    assert small.loss_.relative < 1.15 * best.loss_.relative


def test_slopes_in_single_precision_are_those_in_double():
    machine = read(SVM)
    target = ExpansionTarget(machine.full, X, 0.1)
    started = target.refit(compressing._start(machine.full, machine.parts, 12, "mixture", np.random.default_rng(0)))
    squares = started.widths**2
    exact = target._slopes(started.centres, squares)
    near = target._slopes(started.centres, squares, target._single_points(float(squares.min())))
    assert near[0].error == pytest.approx(exact[0].error, rel=1e-3)
    for one, two in zip(near[1:], exact[1:], strict=True):
        np.testing.assert_allclose(one, two, atol=1e-3 * np.abs(two).max())


def test_points_far_from_the_origin_for_their_width_stay_in_double_precision():
    machine = read(SVM)
    assert ExpansionTarget(machine.full, X, 0.1)._single_points(1e-6) is None
