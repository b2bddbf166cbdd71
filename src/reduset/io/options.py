"""What is asked of files: which columns, on which scales, what becomes of missing values. Checked before a file is opened."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from reduset._validate import flag, one_of


@dataclass(frozen=True)
class ReadOptions:
    """What was asked for; the attributes are the arguments of ``read``."""

    columns: Any = None
    weight_column: str | None = None
    group_column: str | None = None
    transform: Any = None
    compensate: bool = True
    missing: str = "refuse"
    key: str | None = None

    def checked(self) -> ReadOptions:
        """The same, checked as far as it can be without a file; the columns a list of names."""
        one_of(self.missing, "missing", ("refuse", "drop"))
        if self.key is not None and not isinstance(self.key, str):
            raise TypeError(f"key must be the name of an array in the file, got {self.key!r}")
        return replace(self, columns=_names(self.columns), compensate=flag(self.compensate, "compensate"))


def options_of(**given: Any) -> ReadOptions:
    """What was asked for by name."""
    known = [each.name for each in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected argument {name!r}; there are {', '.join(known)}")
    return ReadOptions(**given).checked()


def _names(columns: Any) -> list[str] | None:
    """The names asked for, as a list without repetition."""
    if columns is None:
        return None
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"columns must be names, got {name!r}; the columns of plain arrays are called x0, x1, …")
        if names.count(name) > 1:
            raise ValueError(f"columns must be at least one name, each once; got {name!r} twice")
    if not names:
        raise ValueError("columns must not be empty")
    return names
