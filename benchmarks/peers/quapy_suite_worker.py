"""Run QuaPy's own tests in its environment, with our quantifier in place of QuaPy's.

It prints one JSON object per test: its name, and whether it passed, failed or does not apply, with the reason. Our quantifier gets
the classifier of the replaced one; its other options (``val_split``, ``n_jobs``, ``solver``) are dropped. Its seed is drawn from
NumPy's global generator, as QuaPy's methods do.
"""

from __future__ import annotations

import importlib
import io
import json
import unittest
import warnings
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import numpy as np
from quapy.method.base import BaseQuantifier

from reduset.proportions.quapy_adapter import ClassProportionsQuantifier

assert issubclass(ClassProportionsQuantifier, BaseQuantifier)


class Ours(ClassProportionsQuantifier):
    """Our quantifier with the signature of QuaPy's, with or without a classifier."""

    def __init__(self, classifier=None, random_state=None, **options):
        seed = int(np.random.randint(2**31)) if random_state is None else random_state  # noqa: NPY002
        super().__init__(classifier, random_state=seed)

    @classmethod
    def _get_param_names(cls):
        return ["classifier", "random_state"]

    def fit(self, X, y):
        self.model_ = ClassProportionsQuantifier(self.classifier, random_state=self.random_state).fit(X, y)
        self.classes_ = self.model_.classes_
        return self


# by test: the names to replace, or the reason why the test does not apply
OWN_PARTS = "tests a part of QuaPy without a quantifier"
AGGREGATIVE = "requires posteriors and proportions in two steps; ours takes rows"
A_METHOD = "tests the parameters of one method of QuaPy"
MODULES = {
    "test_base": OWN_PARTS,
    "test_bayesian_utils": OWN_PARTS,
    "test_calibration": OWN_PARTS,
    "test_functional": OWN_PARTS,
    "test_labelcollection": OWN_PARTS,
    "test_plot": OWN_PARTS,
    "test_protocols": OWN_PARTS,
    "test_reader": OWN_PARTS,
    "test_threshold_optim": A_METHOD,
    "test_hierarchy": "tests the classes of QuaPy's methods",
    "test_confidence": AGGREGATIVE,
    "test_labelshift": A_METHOD,
    "test_evaluation": {"test_evaluation_output": {"PCC": Ours}, "test_eval_speedup": AGGREGATIVE},
    "test_modsel": {name: {"PACC": Ours} for name in ("test_modsel", "test_modsel_parallel", "test_modsel_timeout")},
    "test_replicability": {
        "test_prediction_replicability": {"PACC": Ours},
        "test_parallel_replicability": {"PACC": Ours},
        "test_samping_replicability": OWN_PARTS,
    },
    "test_methods": {
        "test_non_aggregative": {"NON_AGGREGATIVE_METHODS": {Ours}},
        "test_ensembles": {"ACC": Ours},
        "test_dmx_noncanonical_labels": {"DMx": Ours},
        "test_dmy_noncanonical_labels": {"DMy": Ours},
        "test_kdeycs_noncanonical_labels": {"KDEyCS": Ours},
        "test_bbse": {"BBSEhard": Ours, "BBSEsoft": Ours},
        "test_leip": {"LEIP": Ours},
        "test_leip_fixed_tau": {"LEIP": Ours},
        "test_aggregative": AGGREGATIVE,
    },
}


def tests(suite):
    for each in suite:
        yield from tests(each) if isinstance(each, unittest.TestSuite) else (each,)


def main() -> None:
    warnings.simplefilter("ignore")
    for name, plan in MODULES.items():
        module = importlib.import_module(f"quapy.tests.{name}")
        for test in tests(unittest.defaultTestLoader.loadTestsFromModule(module)):
            method = test.id().rsplit(".", 1)[1]
            ours = plan if isinstance(plan, str) else plan.get(method, A_METHOD)
            verdict = ours
            if not isinstance(ours, str):
                result = unittest.TestResult()
                np.random.seed(0)  # noqa: NPY002
                with mock.patch.multiple(module, **ours), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    unittest.TestSuite([test]).run(result)
                verdict = "passed" if result.wasSuccessful() else "failed"
                if not result.wasSuccessful():
                    verdict += ": " + (result.failures + result.errors)[0][1].strip().splitlines()[-1]
            print(json.dumps({"test": f"{name}.{method}", "verdict": verdict}), flush=True)


if __name__ == "__main__":
    main()
