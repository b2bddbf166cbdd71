"""The same as `background` on six tables that were looked at only when everything had been chosen."""

from __future__ import annotations

from background import measured

TITLE = "Backgrounds for explanations, held out"


def run() -> str:
    text = (
        "The kernel, its share of pairs of columns and the way rows are chosen were picked on the ten tables of the section "
        "before. These six were looked at afterwards.\n\n"
    )
    return text + measured("held out")
