"""Imports point one way, nothing heavy is imported unasked, a file holds one idea, and a name means one thing."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import reduset
from tree import PAGE, ROOMS, with_tree

PACKAGE = Path(reduset.__file__).parent

MOST_LINES = 450
MOST_MODULES = 12  # directly in the package


def module_of(path):
    """The dotted name of a file within the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TEXTS = {module_of(path): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


@cache  # and not when tests are collected, which each process does
def tree_of(module):
    return ast.parse(TEXTS[module])


@cache
def imports_of(module):
    """(module, name or None, whether only for type checkers) of everything that is imported, wherever in a file."""
    tree = tree_of(module)
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, None, id(node) in typing_only) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            found += [(node.module, alias.name, id(node) in typing_only) for alias in node.names]
    return found


def inside(module, name):
    """The module of the package that an import names, None for one of another package."""
    parts = [*module.split("."), *([name] if name else [])]
    if parts[0] != "reduset":
        return None
    while ".".join(parts[1:]) not in TEXTS:  # the last part may be a name inside a module
        parts.pop()
    return ".".join(parts[1:])


def neighbours(module):
    """The modules of the package that one imports when it runs."""
    return {inside(source, name) for source, name, typing_only in imports_of(module) if not typing_only} - {None}


def packages(module):
    """The first names of all that a module imports."""
    return {source.split(".")[0] for source, _, _ in imports_of(module)}


def room(module):
    return module.split(".")[0]


def faults(find):
    """What ``find`` says of each module, where it says something."""
    return {module: said for module in TEXTS if (said := find(module))}


def test_every_module_has_its_room():
    assert {room(module) for module in TEXTS if module} == set(ROOMS)


def test_the_tree_of_the_design_page_is_the_tree():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tree(page), "make tree"


def test_few_modules_lie_outside_the_rooms():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES


def test_imports_point_one_way():
    def backwards(module):
        mine = ROOMS.index(room(module))
        return [
            other for other in neighbours(module) if room(other) != room(module) and (not other or ROOMS.index(room(other)) > mine)
        ]

    assert not faults(lambda module: module and backwards(module))


def test_no_imports_run_in_a_circle():
    graph = {module: neighbours(module) - {module} for module in TEXTS}
    assert set(TopologicalSorter(graph).static_order()) == set(TEXTS)  # a circle raises


def test_the_parser_of_imports_sees_what_is_there():
    assert {"_validate", "_archive", "kernels", "_types"} <= neighbours("mean")
    assert "numba" in packages("_engine.compiled")


def test_no_private_name_is_imported_across_rooms():
    def private(module):
        found = [
            (source, name)
            for source, name, _ in imports_of(module)
            if source.startswith("reduset") and (name or "").startswith("_")
        ]
        return [each for each in found if inside(*each) != each[1] and room(inside(*each)) != room(module)]

    assert not faults(private)


def test_every_room_says_what_it_holds():
    for name in {room(module) for module in TEXTS if "." in module}:
        said = ast.get_docstring(tree_of(name)) or ""
        assert len(said.splitlines()) >= 3, f"{name}: what lives here, and what may be imported from where"
        assert "May import" in said, name
        if not name.startswith("_"):
            assert "__all__" in TEXTS[name], name


def test_a_name_of_a_class_is_used_once():
    names = Counter(node.name for module in TEXTS for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef))
    allowed = {"CohortMap"}  # in memory and on Dask: one name for users of either
    assert not {name for name, count in names.items() if count > 1} - allowed


def test_only_the_engine_compiles():
    assert not faults(lambda module: room(module) != "_engine" and "numba" in packages(module))


def test_no_module_imports_pickle_or_a_plotting_or_frame_library():
    forbidden = {"pickle", "matplotlib", "plotly", "pandas", "polars", "hypothesis", "pytest"}
    assert not faults(lambda module: forbidden & packages(module) - ({"matplotlib"} if module == "_drawing" else set()))


def test_no_file_is_long():
    assert not faults(lambda module: len(TEXTS[module].splitlines()) > MOST_LINES)


def test_every_file_opens_with_what_it_is():
    assert not faults(lambda module: not ast.get_docstring(tree_of(module)))


def test_users_never_meet_an_assertion():
    assert not faults(lambda module: [node.lineno for node in ast.walk(tree_of(module)) if isinstance(node, ast.Assert)])


HEAVY = ["anndata", "matplotlib", "plotly", "polars", "PIL", "dask", "onnx", "flowio", "h5py", "typer"]
OF_SCIKIT_LEARN = ["pandas", "pyarrow", "narwhals", "rich"]  # which it imports by itself where they are installed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("reduset, reduset.compression, reduset.io", HEAVY + OF_SCIKIT_LEARN),
        ("reduset.report, reduset.spectral, reduset.anndata", HEAVY),
    ],
)
def test_importing_the_package_imports_no_heavy_optional_one(modules, heavy):
    code = f"import sys, {modules}; print([m for m in sys.argv[1:] if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_exists():
    assert sorted(reduset.__all__) == reduset.__all__
    for name in reduset.__all__:
        assert hasattr(reduset, name)


def test_the_package_lists_its_public_rooms_and_names_and_nothing_else():
    public = {name for name in ROOMS if not name.startswith("_") and name != "cli"}
    assert set(dir(reduset)) == {*reduset.__all__, *public, "__version__"}
