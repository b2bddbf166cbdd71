"""Imports point one way, nothing heavy is imported unasked, and a file holds one idea."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import reduset

PACKAGE = Path(reduset.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Each may import those before it, never itself or those after it; a folder stands for all its modules.
ORDER = [
    "_engine",
    "_columns",
    "_frames",
    "_validate",
    "_progress",
    "_drawing",
    "spectrum",
    "bandwidth",
    "radial",
    "kernels",
    "function_kernel",
    "archive",
    "mean",
    "effort",
    "ladders",
    "weigh",
    "probe",
    "stand_in",
    "select",
    "certificate",
    "nested",
    "refine",
    "run",
    "search",
    "compression",
    "outcome",
    "reservoir",
    "covering",
    "sites",
    "tally",
    "flow",
    "checkpoint",
    "stream",
    "likelihood",
    "slices",
    "density",
    "mixture",
    "partition",
    "local_fit",
    "polish",
    "gauge",
    "stages",
    "simplification",
    "cells",
    "few_components",
    "hills",
    "climb",
    "clusterings",
    "segmentation",
    "modes",
    "sweeps",
    "mixing",
    "matching",
    "mixture_search",
    "proportions",
    "cohort",
    "distributed",
    "svm",
    "spectral",
    "features",
    "io",
    "portrait",
    "model",
    "report",
    "cli",
    "__main__",
]

DRAWING = ["_drawing"]  # where matplotlib is imported, when the first plot is drawn

MOST_LINES = 450


def module_of(path):
    """The dotted name of a file within the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def imported_modules(path):
    """The modules of the package that a file imports, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] != "reduset":
                continue
            while ".".join(parts[1:]) not in MODULES:  # the last part may be a name inside a module
                parts.pop()
            found.add(".".join(parts[1:]))
    return found


def imported_packages(path):
    """The first names of all absolute imports of a file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def rank(module):
    return ORDER.index(module.split(".")[0])


def test_every_module_has_its_place_in_the_order():
    assert {module.split(".")[0] for module in MODULES if module} == set(ORDER)


@pytest.mark.parametrize("module", [module for module in MODULES if module])
def test_imports_point_one_way(module):
    folder = module.split(".")[0]
    for other in imported_modules(MODULES[module]):
        assert other != "", f"{module} imports the package itself"
        inside = other.split(".")[0] == folder
        assert inside or rank(other) < rank(module), f"{module} imports {other}, which comes after it"


def test_no_imports_run_in_a_circle():
    graph = {module: imported_modules(path) - {module} for module, path in MODULES.items()}
    assert set(TopologicalSorter(graph).static_order()) == set(MODULES)  # a circle raises


def test_the_parser_of_imports_sees_what_is_there():
    assert {"_validate", "archive", "kernels", "_engine.profile"} <= imported_modules(MODULES["mean"])
    assert "numba" in imported_packages(MODULES["_engine.compiled"])


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith("_engine")])
def test_only_the_engine_compiles(module):
    assert "numba" not in imported_packages(MODULES[module])


@pytest.mark.parametrize("module", list(MODULES))
def test_no_module_imports_pickle_or_a_plotting_or_frame_library(module):
    forbidden = {"pickle", "matplotlib", "plotly", "pandas", "polars", "hypothesis", "pytest"}
    allowed = {"matplotlib"} if module in DRAWING else set()
    assert not (forbidden - allowed) & imported_packages(MODULES[module])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_is_long(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_file_opens_with_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_users_never_meet_an_assertion(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]


HEAVY = ["matplotlib", "plotly", "polars", "PIL", "dask", "onnx", "flowio", "h5py", "typer"]
OF_SCIKIT_LEARN = ["pandas", "pyarrow", "narwhals", "rich"]  # which it imports by itself where they are installed


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [("reduset, reduset.compression, reduset.io", HEAVY + OF_SCIKIT_LEARN), ("reduset.report, reduset.spectral", HEAVY)],
)
def test_importing_the_package_imports_no_heavy_optional_one(modules, heavy):
    code = f"import sys, {modules}; print([m for m in sys.argv[1:] if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_exists():
    assert sorted(reduset.__all__) == reduset.__all__
    for name in reduset.__all__:
        assert hasattr(reduset, name)
