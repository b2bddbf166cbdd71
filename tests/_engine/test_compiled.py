"""Compiling: it is told when one waits for it, and what has no way in from Python is called by compiled functions alone."""

import ast
from pathlib import Path

import numpy as np
from numba import njit

from reduset import _engine
from reduset._engine import report_compilation

FILES = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(_engine.__file__).parent.glob("*.py")]


def decorators(function):
    """The names of what decorates a function."""
    return {each.func.id for each in function.decorator_list if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)}


def test_compiling_is_told_once_with_all_that_is_compiled_on_the_way():
    told = []

    @njit
    def below(x):
        return x + 1

    @njit
    def above(x):
        return below(x) + np.empty(3)[0] * 0

    with report_compilation(told.append):
        above(1)
        assert told == [True, False]
        above(2)
        assert told == [True, False]
    above(1.5)
    assert told == [True, False]


def called(node):
    """The name that a call calls, by itself or through `partial`."""
    what = node.args[0] if isinstance(node.func, ast.Name) and node.func.id == "partial" else node.func
    return what.id if isinstance(what, ast.Name) else None


def test_python_calls_nothing_that_has_no_way_in():
    everywhere = set()
    for tree in FILES:
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        everywhere |= {each.name for each in functions if "inner" in decorators(each) and not each.name.startswith("_")}
    assert "longer" in everywhere
    for tree in FILES:
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        inside = everywhere | {each.name for each in functions if "inner" in decorators(each)}
        compiled = [each for each in functions if decorators(each) & {"inner", "compiled", "njit", "overload"}]
        within = {id(node) for each in compiled for node in ast.walk(each)}
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and id(node) not in within]
        assert inside & {called(node) for node in calls} == set()
