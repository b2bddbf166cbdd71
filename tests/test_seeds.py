"""`rng` and `random_state` are two names of the seed: every public function, method and class accepts either."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reduset
import surface
from reduset import Gaussian, KernelMean, compress, sketch
from reduset._validate import seeded
from reduset._validate.parameters import OTHER_NAME
from reduset.density import SparseKernelDensity
from reduset.drift import DriftMonitor
from reduset.proportions.quapy_adapter import ClassProportionsQuantifier

X = np.random.default_rng(0).normal(size=(300, 2))


def _seed_of(value):
    """The name of the seed that a callable takes; None where there is none, or where it must be a generator (no default)."""
    try:
        parameters = inspect.signature(value).parameters
    except ValueError:
        return None
    return next(
        (name for name in OTHER_NAME if name in parameters and parameters[name].default is not inspect.Parameter.empty), None
    )


def _public():
    """All public callables with a seed, by name; methods as functions."""
    packages = [name for name in dir(reduset) if not name.startswith("_") and name not in reduset.__all__]
    found = {"reduset.proportions.ClassProportionsQuantifier": ClassProportionsQuantifier}
    for module in [reduset, *(importlib.import_module(f"reduset.{package}") for package in packages)]:
        for name in surface.names_of(module):
            value, place = getattr(module, name), f"{module.__name__}.{name}"
            if callable(value) and _seed_of(value):
                found.setdefault(place, value)
            if inspect.isclass(value):
                methods = {member: getattr(value, member) for member in dir(value) if not member.startswith("_")}
                found |= {
                    f"{place}.{member}": each for member, each in methods.items() if inspect.isfunction(each) and _seed_of(each)
                }
    return found


PUBLIC = _public()
CLASSES = {name: value for name, value in PUBLIC.items() if inspect.isclass(value)}
ESTIMATORS = {name: value for name, value in CLASSES.items() if issubclass(value, BaseEstimator)}
FUNCTIONS = {name: value for name, value in PUBLIC.items() if not inspect.isclass(value)}


def _required(value):
    """Something for every parameter that has no default."""
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.signature(value).parameters.values()
    return [None for each in parameters if each.default is each.empty and each.kind in kinds]


def test_the_surface_has_seeds_to_look_at():
    assert {"reduset.compress", "reduset.sketch", "reduset.KernelMean.sample"} <= FUNCTIONS.keys()
    assert {
        "reduset.density.SparseKernelDensity",
        "reduset.drift.DriftMonitor",
        "reduset.stream.StreamCompressor",
    } <= CLASSES.keys()
    assert len(FUNCTIONS) > 25
    assert len(ESTIMATORS) > 14


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_rng_and_methods_of_estimators_what_scikit_learn_has(name):
    assert _seed_of(FUNCTIONS[name]) == ("random_state" if name == "reduset.density.SparseKernelDensity.sample" else "rng")


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_random_state(name):
    assert _seed_of(CLASSES[name]) == "random_state"


@pytest.mark.parametrize("name", PUBLIC)
def test_both_names_at_once_are_an_error_that_names_both(name):
    with pytest.raises(TypeError, match=r"rng and random_state.*got both"):
        PUBLIC[name](*_required(PUBLIC[name]), rng=0, random_state=0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_know_the_other_name(name):
    """Called with nothing sensible, they complain of that and not of the seed's name."""
    value = FUNCTIONS[name]
    with pytest.raises(Exception) as caught:  # noqa: PT011 (whatever the first check is)
        value(*_required(value), **{OTHER_NAME[_seed_of(value)]: 0})
    assert "unexpected keyword" not in str(caught.value)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_store_rng_as_random_state(name):
    made = ESTIMATORS[name](rng=7)
    assert made.random_state == 7
    assert not hasattr(made, "rng")
    assert "rng" not in made.get_params()
    assert clone(made).get_params()["random_state"] == 7
    assert made.set_params(rng=8) is made
    assert made.random_state == 8
    with pytest.raises(TypeError, match=r"set_params .*got both"):
        made.set_params(rng=1, random_state=1)


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_show_one_name(name):
    assert len(OTHER_NAME.keys() & inspect.signature(PUBLIC[name]).parameters.keys()) == 1


def test_either_name_gives_the_same_result():
    assert np.array_equal(
        compress(X, Gaussian(0.5), size=9, rng=3).indices, compress(X, Gaussian(0.5), size=9, random_state=3).indices
    )
    assert np.array_equal(sketch(X, 20, rng=3).indices, sketch(X, 20, random_state=3).indices)
    mean = KernelMean.from_samples(X, Gaussian(0.5))
    assert np.array_equal(mean.sample(5, rng=3), mean.sample(5, random_state=3))
    density = SparseKernelDensity(bandwidth=0.5, rng=3).fit(X)
    assert np.array_equal(density.sample(5, rng=3), density.sample(5, random_state=3))
    one, other = DriftMonitor(X, ert=500, rng=3), DriftMonitor(X, ert=500, random_state=3)
    assert np.array_equal(one.update(X[:50] + 1).statistic, other.update(X[:50] + 1).statistic)


def test_a_seed_by_position_counts_as_given():
    mean = KernelMean.from_samples(X, Gaussian(0.5))
    with pytest.raises(TypeError, match=r"KernelMean.sample takes one of rng and random_state.*got both"):
        mean.sample(5, 3, random_state=3)


def test_parameters_of_steps_accept_either_name():
    pipeline = make_pipeline(StandardScaler(), SparseKernelDensity())
    pipeline.set_params(sparsekerneldensity__rng=4)
    assert pipeline[-1].random_state == 4


def test_unknown_keywords_are_still_an_error():
    @seeded
    def drawn(count, *, rng=None):
        return count, rng

    assert drawn(3, random_state=5) == (3, 5)
    assert str(inspect.signature(drawn)) == "(count, *, rng=None)"
    with pytest.raises(TypeError, match="unexpected keyword argument 'seed'"):
        drawn(3, seed=5)
