"""The engine is met at one seam: what its docstring names, no more, no less, and imported no earlier than it is asked for."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reduset
from reduset import _engine

PACKAGE = Path(reduset.__file__).parent
OUTSIDE = [path for path in PACKAGE.rglob("*.py") if "_engine" not in path.parts]
WITHOUT_A_COMPILER = ["blocks", "row_blocks", "run_all", "get_threads", "thread_limit", "physical_memory", "costs"]


def met(tree):
    """What a file asks the engine for: names it imports, and attributes of the engine where it imports all of it."""
    called = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("reduset._engine"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reduset._engine"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "reduset":
            called |= {alias.asname or alias.name for alias in node.names if alias.name == "_engine"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in called:
            yield f"reduset._engine.{node.attr}"


@pytest.fixture(scope="module")
def asked():
    """What each file outside the engine asks it for."""
    texts = {path: path.read_text(encoding="utf-8") for path in OUTSIDE}
    return {path: set(met(ast.parse(text))) for path, text in texts.items() if "_engine" in text}


def test_other_packages_import_only_public_names_of_the_engine(asked):
    seam = {f"reduset._engine.{name}" for name in _engine.__all__}
    assert not {str(path.relative_to(PACKAGE)): names - seam for path, names in asked.items() if names - seam}


def test_every_public_name_of_the_engine_is_used(asked):
    used = {name.rsplit(".", 1)[1] for names in asked.values() for name in names}
    assert set(_engine.__all__) - used == set()


def test_the_docstring_names_what_the_seam_has():
    said = set(re.findall(r"\w+", _engine.__doc__))
    assert set(_engine.__all__) <= said
    named = set(re.findall(r"`(\w+)`", _engine.__doc__)) - {"_types", "_messages"}
    assert named <= set(_engine.__all__)


def test_the_first_table_is_what_another_device_implements():
    head, rows = _engine.__doc__.split("\nprimitive ")[0], _engine.__doc__.split("=\n")[2].splitlines()[:-1]
    assert "To run on another device, implement" in head
    first = [row[:20].replace(",", " ").split() for row in rows]
    assert {name for names in first for name in names} <= set(_engine.__all__)


@pytest.mark.parametrize("name", _engine.__all__)
def test_every_name_of_the_seam_is_there_and_is_no_file_of_the_engine(name):
    assert hasattr(_engine, name)
    assert name == "costs" or not (PACKAGE / "_engine" / f"{name}.py").exists()  # or the file would take its place


def test_what_is_not_there_is_said_so():
    with pytest.raises(AttributeError, match="no attribute 'gramm'"):
        _engine.gramm()


def test_what_needs_no_compiler_does_not_wait_for_one():
    code = f"import sys; from reduset._engine import {', '.join(WITHOUT_A_COMPILER)}; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
