"""The public surface, one line a name with its signature: `make surface` records it, a test compares it.

`tests/project/public_surface.txt` is what the source offers now; `tests/project/surface-<version>.txt` what the last release
offered, which `python scripts/surface.py --release` writes. What differs between the two has to be in the changelog's section of
the version that is being made: what came by its name, anywhere in the section; what went by its name, under Removed or Moved.

Names are those of `__all__` of every public package, and the public members of their classes that reduset itself defines: what
scikit-learn adds to an estimator is not ours, and differs between its versions. Types are left out: mypy looks at these.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "project"
RECORD = FOLDER / "public_surface.txt"
GONE = ("Removed", "Moved")  # headings under which the changelog says what is there no more
MADE_BY_SCIKIT_LEARN = re.compile(r"set_\w+_request")


def names_of(module: Any) -> list[str]:
    """The public names of a module: those it lists, or those that are defined there."""
    own = [name for name, value in vars(module).items() if not name.startswith("_") and _home(value) == module.__name__]
    return sorted(getattr(module, "__all__", own))


def _home(value: Any) -> str | None:
    return getattr(value, "__module__", None)


def signature(value: Any) -> str:
    """The parameters of what can be called, without their types; nothing of what cannot."""
    try:
        parameters = inspect.signature(value).parameters.values() if callable(value) else None
    except ValueError:  # some exceptions and compiled functions have none to show
        parameters = None
    if parameters is None:
        return ""
    shown, marked = [], False
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL or (each.kind is each.KEYWORD_ONLY and not marked):
            marked = True
            shown += [f"*{each.name}"] if each.kind is each.VAR_POSITIONAL else ["*"]
        if each.kind is each.VAR_KEYWORD:
            shown.append(f"**{each.name}")
        elif each.kind is not each.VAR_POSITIONAL:
            default = "" if each.default is each.empty else f"={re.sub(r' at 0x[0-9a-f]+', '', repr(each.default))}"
            shown.append(each.name + default)
    return f"({', '.join(shown)})"


def members(kind: type) -> Iterator[str]:
    """The public members of a class that reduset defines, methods with their parameters."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if (_home(base) or "").split(".")[0] == "reduset":
            found |= dict.fromkeys(inspect.get_annotations(base)) | vars(base)
            found |= dict.fromkeys(getattr(base, "__dataclass_fields__", {}))
    for name in sorted(found):
        if not name.startswith("_") and not MADE_BY_SCIKIT_LEARN.fullmatch(name) and not _is_foreign(found[name]):
            value = inspect.getattr_static(kind, name, None)
            callable_ = isinstance(value, staticmethod | classmethod) or inspect.isfunction(value)
            yield name + (signature(getattr(kind, name)) if callable_ else "")


def _is_foreign(value: Any) -> bool:
    """Whether a function is a wrapped one of scikit-learn."""
    return inspect.isfunction(value) and (_home(value) or "").split(".")[0] == "sklearn"


def surface() -> list[str]:
    """A line for every public name, sorted: those of the package, of its packages, and of their classes."""
    import reduset

    packages = [name for name in dir(reduset) if not name.startswith("_") and name not in reduset.__all__]
    lines, told = [], {}
    for module in [reduset, *(importlib.import_module(f"reduset.{package}") for package in packages)]:
        for name in names_of(module):
            value, place = getattr(module, name), f"{module.__name__}.{name}"
            first = told.setdefault(id(value), place) if callable(value) else place
            if first != place:
                lines.append(f"{place} = {first}")
                continue
            lines.append(place + signature(value))
            if inspect.isclass(value):
                lines += [f"{place}.{member}" for member in members(value)]
    return sorted(lines)


def bare(line: str) -> str:
    """The name of a line, without what it takes or what it is."""
    return re.split(r"[( ]", line, maxsplit=1)[0]


def released() -> tuple[str, list[str]]:
    """The last release and its surface; ("", []) before the first."""
    files = {tuple(map(int, path.stem.removeprefix("surface-").split("."))): path for path in FOLDER.glob("surface-*.txt")}
    if not files:
        return "", []
    last = files[max(files)]
    return last.stem.removeprefix("surface-"), last.read_text(encoding="utf-8").splitlines()


def sections(changelog: str) -> tuple[str, dict[str, str]]:
    """The version that the changelog has first, and the texts under its headings."""
    found = re.search(r"^## \[([^]]+)\][^\n]*\n(.*?)(?=^## |\Z)", changelog, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError("CHANGELOG.md needs a section '## [version] - unreleased'; there is none")
    parts = re.split(r"^### +(.*)$", found[2], flags=re.MULTILINE)
    return found[1], dict(zip(parts[1::2], parts[2::2], strict=True))


def mentions(text: str, name: str) -> bool:
    """Whether a text has a name in backquotes, alone or as a part of an expression."""
    words = {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}
    return name.rpartition(".")[2] in words


def untold(before: list[str], now: list[str], texts: dict[str, str]) -> list[str]:
    """What came, changed or went without a word in the changelog.

    A class that is new stands for its members, and one that went too. A name is told by its last word, in whatever package.
    """
    old, new = ({bare(line): line for line in lines} for lines in (before, now))
    everything, gone = "\n".join(texts.values()), "\n".join(texts.get(heading, "") for heading in GONE)
    faults = []
    for name in sorted(old.keys() | new.keys()):
        whole = name.rpartition(".")[0]
        if old.get(name) == new.get(name) or (whole in old) != (whole in new):
            continue
        if name not in new:
            if not mentions(gone, name):
                faults.append(f"{name} went: say so under {' or '.join(GONE)}")
        elif not mentions(everything, name):
            faults.append(f"{name} {'changed' if name in old else 'came'}: {new[name]}")
    return faults


if __name__ == "__main__":
    RECORD.write_text("\n".join(surface()) + "\n", encoding="utf-8")
    if "--release" in sys.argv[1:]:
        import reduset

        for path in FOLDER.glob("surface-*.txt"):
            path.unlink()
        (FOLDER / f"surface-{reduset.__version__}.txt").write_bytes(RECORD.read_bytes())
