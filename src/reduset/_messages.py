"""Messages: warnings that point at the caller's line, similar names, and text that is safe to print.

Control characters in a name could clear the screen or imitate a line of output. Marks of direction can make two names look equal.
An unpaired surrogate, from a file name that is not UTF-8, cannot be written. `printable` replaces all of them by escapes such as
`\\x1b`. The command and the reports pass every text through it.
"""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LIBRARIES = ("reduset", "sklearn", "contextlib")  # a warning points at the first frame outside of these
REAL_ROWS = "use sketch(data, size) for real rows with weights"  # the hint if `compress` is called for real rows
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")

_quiet: ContextVar[bool] = ContextVar("reduset_quiet", default=False)


class NotReachedWarning(UserWarning):
    """The tolerance was not reached within the largest size allowed."""


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress `NotReachedWarning` in the calling thread. A filter of warnings would affect all threads."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def is_quiet() -> bool:
    """Whether the caller is within `quietly`."""
    return _quiet.get()


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def closest(value: object, names: Iterable[str]) -> str | None:
    """The name most similar to a misspelled one, regardless of case, hyphens, underscores and spaces, or abbreviated by it."""
    if not isinstance(value, str):
        return None
    word, by_letters = _letters(value), {_letters(name): name for name in names}
    similar = difflib.get_close_matches(word, by_letters, 1) or [name for name in by_letters if _abbreviates(word, name)]
    return by_letters[similar[0]] if similar else None


def did_you_mean(value: object, names: Iterable[str]) -> str:
    """The end of a message with the most similar name, or ""."""
    similar = closest(value, names)
    return "" if similar is None else f"; did you mean {similar!r}?"


def _letters(name: str) -> str:
    return re.sub("[-_ ]", "", name.lower())


def _abbreviates(word: str, name: str) -> bool:
    """Whether a word abbreviates a name: the same first letter and its letters in the same order, as "sqrt" and "square root"."""
    letters = iter(name)
    return len(word) > 2 and word[0] == name[:1] and all(letter in letters for letter in word)


def printable(text: object, lines: bool = False) -> str:
    """A text with hidden characters as escapes; line breaks stay if ``lines``."""

    def escaped(match: re.Match[str]) -> str:
        return match[0] if lines and match[0] == "\n" else match[0].encode("unicode_escape").decode("ascii")

    return HIDDEN.sub(escaped, str(text))
