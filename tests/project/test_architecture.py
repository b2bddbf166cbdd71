"""Imports point down and cross packages by public names; optional libraries are imported lazily; files are short and documented."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import reduset
from tree import LAYERS, PAGE, with_tree

PACKAGE = Path(reduset.__file__).parent

MAX_LINES = 450
MAX_TOP_LEVEL_MODULES = 12


def module_of(path):
    """The dotted name of a file within the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TEXTS = {module_of(path): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


@cache  # lazily: each test process collects this file
def syntax_tree(module):
    return ast.parse(TEXTS[module])


@cache
def imports_of(module):
    """(module, name or None, whether only for type checkers) of every import in a file."""
    tree = syntax_tree(module)
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(alias.name, None, id(node) in typing_only) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "use absolute imports"
            imports += [(node.module, alias.name, id(node) in typing_only) for alias in node.names]
    return imports


def internal_module(source, name):
    """The module of reduset that an import refers to, None for another library."""
    parts = [*source.split("."), *([name] if name else [])]
    if parts[0] != "reduset":
        return None
    while ".".join(parts[1:]) not in TEXTS:  # the last part may be a name inside a module
        parts.pop()
    return ".".join(parts[1:])


@cache
def internal_imports(module, type_checking=False):
    """The modules of reduset that a module imports; those for type checkers only if asked for."""
    return {internal_module(source, name) for source, name, only in imports_of(module) if type_checking or not only} - {None}


def libraries(module):
    """The top-level packages that a module imports."""
    return {source.split(".")[0] for source, _, _ in imports_of(module)}


def package(module):
    return module.split(".")[0]


def failures(check):
    """{module: failure} of the modules for which ``check`` returns one."""
    return {module: failure for module in TEXTS if (failure := check(module))}


def test_every_package_has_a_layer():
    assert {package(module) for module in TEXTS if module} == set(LAYERS)


def test_the_tree_on_the_design_page_is_current():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tree(page), "make tree"


def test_the_number_of_top_level_modules_is_limited():
    assert len(list(PACKAGE.glob("*.py"))) <= MAX_TOP_LEVEL_MODULES


def test_imports_point_down():
    def upward(module):
        layer = LAYERS.index(package(module))
        others = {other for other in internal_imports(module) if package(other) != package(module)}
        return [other for other in others if not other or LAYERS.index(package(other)) > layer]

    assert not failures(lambda module: module and upward(module))


def test_packages_import_only_public_names_of_each_other():
    def inner(module):
        others = internal_imports(module, type_checking=True)
        return [other for other in others if "." in other and package(other) != package(module)]

    assert not failures(inner)


def test_there_are_no_import_cycles():
    graph = {module: internal_imports(module) - {module} for module in TEXTS}
    assert set(TopologicalSorter(graph).static_order()) == set(TEXTS)  # a cycle raises


def test_the_import_parser_sees_known_imports():
    assert {"_validate", "_archive", "kernels", "_types"} <= internal_imports("mean")
    assert "numba" in libraries("_engine.compiled")


def test_no_private_name_is_imported_across_packages():
    def private(module):
        return [
            (source, name)
            for source, name, _ in imports_of(module)
            if source.startswith("reduset") and (name or "").startswith("_")
            if internal_module(source, name) != name and package(internal_module(source, name)) != package(module)
        ]

    assert not failures(private)


def test_every_package_documents_its_content_and_its_imports():
    for name in {package(module) for module in TEXTS if "." in module}:
        docstring = ast.get_docstring(syntax_tree(name)) or ""
        assert len(docstring.splitlines()) >= 3, name
        assert "May import" in docstring, name
        if not name.startswith("_"):
            assert "__all__" in TEXTS[name], name


def test_class_names_are_unique():
    names = Counter(node.name for module in TEXTS for node in ast.walk(syntax_tree(module)) if isinstance(node, ast.ClassDef))
    assert not {name for name, count in names.items() if count > 1}


def test_only_the_engine_compiles():
    assert not failures(lambda module: package(module) != "_engine" and "numba" in libraries(module))


def test_no_module_imports_pickle_or_a_plotting_or_frame_library():
    forbidden = {"pickle", "matplotlib", "plotly", "pandas", "polars", "hypothesis", "pytest"}
    assert not failures(lambda module: forbidden & libraries(module) - ({"matplotlib"} if module == "_drawing" else set()))


def test_files_are_short():
    assert not failures(lambda module: len(TEXTS[module].splitlines()) > MAX_LINES)


def test_every_file_has_a_docstring():
    assert not failures(lambda module: not ast.get_docstring(syntax_tree(module)))


def test_the_library_has_no_assertions():
    assert not failures(lambda module: [node.lineno for node in ast.walk(syntax_tree(module)) if isinstance(node, ast.Assert)])


HEAVY = ["anndata", "matplotlib", "plotly", "polars", "PIL", "dask", "ray", "onnx", "flowio", "h5py", "typer"]
IMPORTED_BY_SCIKIT_LEARN = ["pandas", "pyarrow", "narwhals", "rich"]  # if they are installed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("reduset, reduset.compression, reduset.io", HEAVY + IMPORTED_BY_SCIKIT_LEARN),
        ("reduset.report, reduset.spectral, reduset.anndata", HEAVY),
    ],
)
def test_imports_of_the_library_leave_optional_libraries_out(modules, heavy):
    code = f"import sys, {modules}; print([m for m in sys.argv[1:] if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_exists():
    assert sorted(reduset.__all__) == reduset.__all__
    for name in reduset.__all__:
        assert hasattr(reduset, name)


def test_dir_lists_the_public_packages_and_names():
    public = {name for name in LAYERS if not name.startswith("_") and name != "cli"}
    assert set(dir(reduset)) == {*reduset.__all__, *public, "__version__"}
