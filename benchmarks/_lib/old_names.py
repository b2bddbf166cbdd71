"""Today's imports for the library's code at an earlier commit: a name is imported from the file that defined it then.

``install`` adds a finder for modules below ``reduset``. A module that does not exist, or one without a name that is imported from
it, takes this name from the module with a definition of that name. Ambiguous and unknown names raise as usual.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import reduset

PACKAGE = Path(reduset.__file__).parent
DEFINITION = re.compile(r"^(?:def|class) (\w+)|^(\w+)(?:: [^=\n]+)? = ", re.MULTILINE)


@cache
def definitions() -> dict[str, set[str]]:
    """The modules that define each name at the top."""
    modules: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("reduset", *path.relative_to(PACKAGE).with_suffix("").parts)
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for name in {first or second for first, second in DEFINITION.findall(path.read_text(encoding="utf-8"))}:
            modules.setdefault(name, set()).add(module)
    return modules


def lookup(module: str) -> Callable[[str], Any]:
    """``__getattr__`` of a module: names that are defined in exactly one other module."""

    def attribute(name: str) -> Any:
        homes = definitions().get(name, set()) - {module}
        if name.startswith("__") or len(homes) != 1:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes.pop()), name)

    return attribute


class _Empty(importlib.abc.Loader):
    """A module that did not exist: every name is looked up."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(__path__=[], __getattr__=lookup(module.__name__))


class OldNames(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if not fullname.startswith("reduset."):
            return None
        if importlib.machinery.PathFinder.find_spec(fullname, path) is not None:
            return None
        return importlib.util.spec_from_loader(fullname, _Empty())


def install() -> None:
    """Import missing modules and names from where they were defined."""
    sys.meta_path.insert(0, OldNames())
    folders = [path.parent.relative_to(PACKAGE).parts for path in PACKAGE.rglob("__init__.py")]
    for parts in [*folders, *((path.stem,) for path in PACKAGE.glob("[a-z]*.py"))]:
        module = importlib.import_module(".".join(("reduset", *parts)))
        vars(module).setdefault("__path__", [])  # today it may be a package
        vars(module).setdefault("__getattr__", lookup(module.__name__))
