"""Whether a tag, the source, the citation and the changelog speak of one version: `python scripts/tagged.py v0.2.0`."""

from __future__ import annotations

import re
import sys

from requirements import ROOT


def version() -> str:
    """The version that the source states, read without importing it."""
    text = (ROOT / "src" / "reduset" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "([^"]+)"$', text, flags=re.MULTILINE)[1]


def faults(tag: str, stated: str, citation: str, changelog: str) -> list[str]:
    """What stands against publishing under this tag."""
    found = re.search(r"^## \[([^]]+)\] - (.*)$", changelog, flags=re.MULTILINE)
    first, dated = found.groups() if found else ("none", "")
    cited = re.search(r"^version: (.*)$", citation, flags=re.MULTILINE)
    said = {"the tag": tag.removeprefix("v"), "CITATION.cff": cited[1] if cited else "none", "CHANGELOG.md": first}
    told = [f"{where} says {what}, the source {stated}" for where, what in said.items() if what != stated]
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", dated):
        told.append(f"CHANGELOG.md: '## [{first}] - {dated}' needs the day of the release, as in '## [{stated}] - 2030-01-31'")
    return told


if __name__ == "__main__":
    files = [(ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md")]
    if told := faults(sys.argv[1], version(), *files):
        sys.exit("\n".join(told))
