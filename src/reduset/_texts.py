"""Texts that others wrote, as they may be shown: names of columns and files, notes, what a model's file tells.

A terminal obeys control characters, so a column's name could clear the screen or fake a line of the answer; marks of direction
make a name read as another; half a surrogate, from a file name that is no UTF-8, cannot be written at all. All of these become
escapes, `\\x1b` for one. Every text that the command prints or a report holds goes through here.
"""

from __future__ import annotations

import re

HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def printable(text: object, lines: bool = False) -> str:
    """A text with what no terminal should be sent as escapes; line breaks stay where ``lines`` says that they are ours."""
    return HIDDEN.sub(lambda found: found[0] if lines and found[0] == "\n" else _escape(found[0]), str(text))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
