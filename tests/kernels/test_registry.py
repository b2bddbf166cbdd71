"""The registry: every kernel by its name, wherever kernels are named, and nothing imported to know the names."""

import subprocess
import sys

import numpy as np
import pytest

import reduset
from cases import KERNELS as INSTANCES
from cases import cloud
from reduset import FunctionKernel, Model, kernels
from reduset.cli.entry import run
from reduset.density import SparseKernelDensity
from reduset.kernels import ANY_FAMILY, FAMILIES, RadialKernel, listed
from reduset.kernels.lookup import KERNELS, as_kernel, kernel_from
from reduset.spectral.base import kernel_and_gamma


@pytest.mark.parametrize("name", FAMILIES)
def test_a_name_leads_to_its_class_at_every_door(name, tmp_path):
    kind = KERNELS[name]
    assert issubclass(kind, RadialKernel)
    assert (kind.name, kind.__name__) == (name, FAMILIES[name])
    assert getattr(reduset, FAMILIES[name]) is getattr(kernels, FAMILIES[name]) is kind
    assert FAMILIES[name] in reduset.__all__
    assert kernel_from(kind(2.0).to_dict()) == kind(2.0)
    assert as_kernel(kind(2.0)) == kind(2.0)
    np.save(tmp_path / "rows.npy", cloud())
    words = ["compress", str(tmp_path / "rows.npy"), "--size", "5", "--select", "kcenter", "-o", str(tmp_path / "small.npz"), "-q"]
    assert run([*words, "--kernel", name, "--bandwidth", "0.7", "--scales", "none"]) == 0
    assert Model.load(tmp_path / "small.npz").mean.kernel == kind(0.7)
    assert isinstance(SparseKernelDensity(kernel=name, size=5, random_state=0).fit(cloud()).mean_.kernel, kind)
    assert isinstance(kernel_and_gamma(name, None, 2)[0], kind)


def test_texts_name_every_kernel(capsys):
    assert listed(["a", "b", "c"]) == "a, b or c"
    assert listed(["a", "b"], "and") == "a and b"
    assert all(name in ANY_FAMILY for name in FAMILIES.values())
    with pytest.raises(TypeError, match=f"use {ANY_FAMILY}"):
        FunctionKernel("rbf").noise(1, 2, np.random.default_rng(0))
    assert run(["compress", "--help"]) == 0
    assert f"{listed(FAMILIES)}." in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_the_shared_laws_are_tried_on_every_kernel():
    assert {type(kernel) for kernel in INSTANCES.values()} >= set(KERNELS.values())


def test_what_is_not_there_is_said_plainly():
    with pytest.raises(AttributeError, match=r"module 'reduset\.kernels' has no attribute 'Epanechnikov'"):
        _ = kernels.Epanechnikov
    assert sorted(kernels.__all__) == dir(kernels)


def test_names_cost_no_import():
    code = "import sys, reduset.kernels, reduset.cli.options; print([m for m in ('numpy', 'scipy', 'numba') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
