"""Mass cytometry, known by what a file says of itself: no scatter, and channels named by isotopes.

As in Ce140Di, (Ce140)Dd or 140Ce_CD3, in the name or the label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reduset.cytometry.opening import FileChannels

FEWEST = 3
# Metals that reagents are tagged with, and those that bead and DNA channels see.
METALS = "Y|Rh|Pd|Ag|Cd|In|Sn|I|Xe|Cs|Ba|La|Ce|Pr|Nd|Sm|Eu|Gd|Tb|Dy|Ho|Er|Tm|Yb|Lu|Hf|Ta|Os|Ir|Pt|Au|Hg|Tl|Pb|Bi"
ISOTOPE = re.compile(
    rf"(?<![A-Za-z0-9])(?:\(?(?:{METALS})\)?[-_]?\d{{2,3}}\)?(?:D[id])?|\d{{2,3}}(?:{METALS})(?:D[id])?)(?![A-Za-z0-9])"
)
SCATTER = re.compile(r"(fsc|ssc|fs|ss|bsc)\b", re.IGNORECASE)


def isotopes(names: Sequence[str], labels: Sequence[str]) -> list[int]:
    """The places of channels that are named by an isotope, in their name or label."""
    return [
        place
        for place, texts in enumerate(zip(names, labels, strict=True))
        if any(ISOTOPE.search(text.replace("_", " ")) for text in texts)
    ]


def is_mass(file: FileChannels) -> bool:
    """Whether a file is one of mass cytometry."""
    scattered = any(SCATTER.match(name) for name in file.names)
    return file.is_fcs and not scattered and len(isotopes(file.names, file.labels)) >= FEWEST
