"""What is said to people: warnings that point at their line, and texts that others wrote made fit to be shown.

A terminal obeys control characters, so a column's name could clear the screen or fake a line of the answer; marks of direction
make a name read as another; half a surrogate, from a file name that is no UTF-8, cannot be written at all. All of these become
escapes, `\\x1b` for one. Every text that the command prints or a report holds goes through `printable`.
"""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

BETWEEN = ("reduset", "sklearn", "contextlib")  # whose frames lie between the fault and the line that a user can change
REAL_ROWS = "use sketch(data, size) for real rows with weights"  # recommended where `compress` is asked for them
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


_quiet: ContextVar[bool] = ContextVar("reduset_quiet", default=False)


class NotReachedWarning(UserWarning):
    """The tolerance was not reached within the largest size allowed."""


@contextmanager
def quietly() -> Iterator[None]:
    """No `NotReachedWarning` from the calling thread inside; those of other threads are heard, as no filter of warnings could."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def is_quiet() -> bool:
    """Whether the caller is within `quietly`."""
    return _quiet.get()


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn on the line of whoever called the library: the first frame that is neither ours nor one of the wrappers around us."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def closest(value: object, names: Iterable[str]) -> str | None:
    """The name that a misspelled one may stand for: similar up to case, hyphens, underscores and spaces, or abbreviated by it."""
    if not isinstance(value, str):
        return None
    word, by_letters = _letters(value), {_letters(name): name for name in names}
    close = difflib.get_close_matches(word, by_letters, 1) or [each for each in by_letters if _abbreviates(word, each)]
    return by_letters[close[0]] if close else None


def did_you_mean(value: object, names: Iterable[str]) -> str:
    """The end of a message that names the closest of the names; nothing if none is close."""
    found = closest(value, names)
    return "" if found is None else f"; did you mean {found!r}?"


def _letters(name: str) -> str:
    return re.sub("[-_ ]", "", name.lower())


def _abbreviates(word: str, name: str) -> bool:
    """Whether a name has the letters of a word in their order, from its first on: "sqrt" of "square root"."""
    rest = iter(name)
    return len(word) > 2 and word[0] == name[:1] and all(letter in rest for letter in word)


def printable(text: object, lines: bool = False) -> str:
    """A text with what no terminal should be sent as escapes; line breaks stay where ``lines`` says that they are ours."""
    return HIDDEN.sub(lambda found: found[0] if lines and found[0] == "\n" else _escape(found[0]), str(text))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
