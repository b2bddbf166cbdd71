"""The README as a package index shows it, which knows nothing of the files beside it: hatchling calls this when it builds.

Links to files of the project lead to the address that `Source` of `project.urls` names; without one they become plain words, and
pictures are left out. Everything else stays as it is written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # the tests read this file where nothing is built
    MetadataHookInterface = object

LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?!https?:|#|mailto:)(?P<path>[^)\s]+)\)")


def for_an_index(text: str, source: str | None = None) -> str:
    """A page without links that only lead somewhere in a checkout."""

    def elsewhere(link: re.Match[str]) -> str:
        if source is None:
            return "" if link["picture"] else link["words"]
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['words']}]({source.rstrip('/')}/{kind}/HEAD/{link['path']})"

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(elsewhere, text))


class LongDescription(MetadataHookInterface):
    """Sets the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_an_index(text, source)}
