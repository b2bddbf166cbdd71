"""Definitions of the code that a benchmark measures, compared without regard to their file, order, comments and types.

A definition is a statement at the top of a module: a function, a class or a constant. Imports, docstrings, annotations and the
texts of exceptions are omitted, because no figure depends on them. A CUDA file is one definition. ``digest`` combines the
definitions of the files that a benchmark names, so that a function may move to another of them. ``changed`` compares two versions
of the whole package, and accepts new names.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NAMED = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.keyword: "arg", ast.FunctionDef: "name", ast.ClassDef: "name",
         ast.AsyncFunctionDef: "name", ast.ExceptHandler: "name", ast.MatchAs: "name", ast.MatchStar: "name"}  # fmt: skip


@dataclass(frozen=True)
class Definition:
    """One definition: its tree with blanks in place of names, and the names in the order of the tree."""

    title: str
    shape: str
    names: tuple[str, ...]
    local: frozenset[str]

    def renamed(self, old: Definition) -> dict[str, str] | None:
        """The new name of each name of another definition, without those of variables; None if more than names differ."""
        if self.shape != old.shape:
            return None
        forth, back = dict(zip(old.names, self.names, strict=True)), dict(zip(self.names, old.names, strict=True))
        if any(forth[one] != other or back[other] != one for one, other in zip(old.names, self.names, strict=True)):
            return None
        return {one: other for one, other in forth.items() if one != other and not (one in old.local and other in self.local)}


def files(package: Path, sources: Iterable[str]) -> list[Path]:
    """The Python and CUDA files of these packages and files."""
    found: set[Path] = set()
    for source in sources:
        path = package / source
        if not path.exists():
            raise FileNotFoundError(f"SOURCES names {source}, which is not in {package}")
        found |= {file for file in path.rglob("*") if file.suffix in (".py", ".cu")} if path.is_dir() else {path}
    return sorted(found)


def definitions(package: Path, sources: Iterable[str] = (".",)) -> list[Definition]:
    return [found for file in files(package, sources) for found in _of_file(file, package)]


def digest(package: Path, sources: Iterable[str]) -> str:
    parts = sorted({f"{found.shape} {found.names}" for found in definitions(package, sources)})
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def changed(package: Path, sources: Iterable[str], before: Path) -> list[str]:
    """The definitions in ``sources`` that are nowhere in an earlier version of the package, even under another name.

    A name may change if it is a variable, or if the old name is gone from the package and the new one was not in it.
    """
    old, new = definitions(before), definitions(package)
    names_then, names_now = (frozenset(name for found in version for name in found.names) for version in (old, new))
    by_shape: dict[str, list[Definition]] = {}
    for found in old:
        by_shape.setdefault(found.shape, []).append(found)

    def known(now: Definition) -> bool:
        renames = (now.renamed(then) for then in by_shape.get(now.shape, ()))
        return any(
            all(one not in names_now and other not in names_then for one, other in names.items())
            for names in renames
            if names is not None
        )

    return [found.title for found in definitions(package, sources) if not known(found)]


@functools.cache
def _of_file(path: Path, package: Path) -> list[Definition]:
    title, text = path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")
    if path.suffix == ".cu":
        return [Definition(title, " ".join(COMMENT.sub(" ", text).split()), (), frozenset())]
    return [_definition(node, title) for node in ast.parse(text).body if _decides(node)]


def _decides(node: ast.stmt) -> bool:
    """Whether figures can depend on a statement: not on imports, docstrings, ``__all__`` and what only type checkers read."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
        return False
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return False
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return not text and not isinstance(node, ast.Import | ast.ImportFrom)


def _definition(node: ast.stmt, title: str) -> Definition:
    title = f"{title}: {getattr(node, 'name', ast.unparse(node).splitlines()[0][:40])}"
    names, local = [], set()
    for part in ast.walk(node):
        _strip(part)
    inner = isinstance(node, ast.FunctionDef | ast.ClassDef)
    for part in ast.walk(node):
        field = NAMED.get(type(part))
        if field and getattr(part, field) is not None:
            names.append(getattr(part, field))
            if inner and (isinstance(part, ast.arg) or (isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))):
                local.add(names[-1])
            setattr(part, field, "_")
    shape = hashlib.sha256(ast.unparse(node).encode()).hexdigest()[:16]
    return Definition(title, shape, tuple(names), frozenset(local))


def _strip(node: ast.AST) -> None:
    """Remove annotations, the arguments of raised exceptions, and statements on which no figure depends."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.returns = None
    elif isinstance(node, ast.arg):
        node.annotation = None
    elif isinstance(node, ast.AnnAssign):
        node.annotation = ast.Constant(None)
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        node.exc.args, node.exc.keywords = [], []
    for field in ("body", "orelse", "finalbody"):
        body = getattr(node, field, None)
        if isinstance(body, list):
            setattr(node, field, [part for part in body if _decides(part)])
