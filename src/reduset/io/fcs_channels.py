"""Channels of cytometry files, by their names: time and scatter, isotopes of mass cytometry, and pulses that are measured twice.

Isotopes as in Ce140Di, (Ce140)Dd or 140Ce_CD3, in the name or the label. A mass cytometry file has some of them, and no scatter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

FEWEST = 3  # isotopes of a mass cytometry file
# Measured along no dye: omitted unless named, and not transformed unless named. FS and SS are what Coulter writes.
NO_DYE = {
    "time or scatter": re.compile(r"fsc|ssc|(fs|ss)\b|time|hdr-t\b|event", re.IGNORECASE),
    "counted by the instrument": re.compile(r"hdr-\w+|(width|center|offset|residual)$", re.IGNORECASE),
}
REPEATED, NO_ISOTOPE = "another measurement of the same pulse", "not named by an isotope"
PULSES = ("-A", "-H", "-W")  # area, height and width of one detector's pulse
# Metals that reagents are tagged with, and those that bead and DNA channels see.
METALS = "Y|Rh|Pd|Ag|Cd|In|Sn|I|Xe|Cs|Ba|La|Ce|Pr|Nd|Sm|Eu|Gd|Tb|Dy|Ho|Er|Tm|Yb|Lu|Hf|Ta|Os|Ir|Pt|Au|Hg|Tl|Pb|Bi"
ISOTOPE = re.compile(
    rf"(?<![A-Za-z0-9])(?:\(?(?:{METALS})\)?[-_]?\d{{2,3}}\)?(?:D[id])?|\d{{2,3}}(?:{METALS})(?:D[id])?)(?![A-Za-z0-9])"
)
SCATTER = re.compile(r"(fsc|ssc|fs|ss|bsc)\b", re.IGNORECASE)


def no_dye(name: str) -> str | None:
    """What a channel is that is measured along no dye; None for one that is."""
    return next((what for what, names in NO_DYE.items() if names.match(name)), None)


def isotopes(names: Sequence[str], labels: Sequence[str]) -> list[int]:
    """The positions of channels that are named by an isotope, in their name or label."""
    return [
        place
        for place, texts in enumerate(zip(names, labels, strict=True))
        if any(ISOTOPE.search(text.replace("_", " ")) for text in texts)
    ]


def are_mass_channels(names: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether channels are those of a mass cytometer."""
    return not any(SCATTER.match(name) for name in names) and len(isotopes(names, labels)) >= FEWEST


def redundant(names: Sequence[str], dyes: Sequence[int]) -> list[int]:
    """The positions of dyes that measure a pulse once more: by height or width, if its area is there.

    If more detectors have a height than an area, the height is used, as on a FACSCalibur.
    """
    pulses = {place: (names[place][:-2], names[place][-1]) for place in dyes if names[place][-2:] in PULSES}
    stems = {way: {stem for stem, each in pulses.values() if each == way} for way in "AHW"}
    order = "AHW" if len(stems["A"]) >= len(stems["H"]) else "HAW"
    return [place for place, (stem, way) in pulses.items() if any(stem in stems[other] for other in order[: order.index(way)])]


def omitted(names: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Channels that do not measure a marker, or measure one once more, with what they are: read only if they are named."""
    found = {name: what for name in names if (what := no_dye(name))}
    dyes = [place for place, name in enumerate(names) if name not in found]
    if are_mass_channels(names, labels):
        others = set(dyes) - set(isotopes(names, labels))
        return found | {names[place]: NO_ISOTOPE for place in sorted(others)}
    return found | {names[place]: REPEATED for place in redundant(names, dyes)}
