"""The quantifier of QuaPy estimates what ClassProportions does, with its parameters; QuaPy's own tests are a benchmark."""

import importlib.util
import inspect
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression

from reduset import Gaussian
from reduset.proportions import ClassProportions, quapy_adapter
from reduset.proportions.quapy_adapter import ClassProportionsQuantifier

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(80, 2)) + np.repeat([[0.0], [2.0]], 40, axis=0), np.repeat(["a", "b"], 40)


@pytest.mark.parametrize("options", [{}, {"method": "matching", "norm": "kernel"}, {"classifier": LogisticRegression()}])
def test_it_estimates_what_class_proportions_does(options):
    options = {"kernel": Gaussian(1.0), "size": 12} | options
    quantifier = ClassProportionsQuantifier(**options)
    assert quantifier.fit(X, Y) is quantifier
    assert list(quantifier.classes_) == ["a", "b"]
    plain = ClassProportions(**options, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(quantifier.predict(X[20:]), plain.predict_proportions(X[20:]))
    np.testing.assert_array_equal(quantifier.quantify(X[20:]), quantifier.predict(X[20:]))
    np.testing.assert_array_equal(quantifier.estimate(X[20:], 0.9).interval, plain.estimate(X[20:], 0.9).interval)
    again = pickle.loads(pickle.dumps(quantifier))
    np.testing.assert_array_equal(again.predict(X[20:]), quantifier.predict(X[20:]))


def test_its_parameters_are_those_of_class_proportions_and_of_the_classifier():
    own, ours = (inspect.signature(which).parameters for which in (ClassProportionsQuantifier, ClassProportions))
    assert set(own) == set(ours)
    assert {name for name in own if own[name].default != ours[name].default} == {"random_state"}
    quantifier = clone(ClassProportionsQuantifier(LogisticRegression())).set_params(size=20, classifier__C=0.5)
    assert quantifier.fit(X, Y).size == 20
    assert quantifier.classifier_.C == 0.5


def test_it_is_a_quantifier_where_quapy_is_installed(monkeypatch):
    for name in ("quapy", "quapy.method", "quapy.method.base"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    base = type("BaseQuantifier", (BaseEstimator,), {})
    sys.modules["quapy.method.base"].BaseQuantifier = base
    spec = importlib.util.spec_from_file_location("adapter_with_quapy", quapy_adapter.__file__)  # a second module; the first stays
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # for its dataclass
    spec.loader.exec_module(module)
    assert issubclass(module.ClassProportionsQuantifier, base)
