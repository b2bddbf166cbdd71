"""Compensation: what channels see of each other's dyes is taken out, events · S⁻¹, by the spillover matrix S that the file carries.

S[i, j] is what channel j sees of dye i, as a share of what channel i sees: $SPILLOVER in FCS 3.1, SPILL before it, $COMP in 3.0.
Its channels are named by $PnN; some files have their labels ($PnS) there, or their numbers. The percentages $DFCiTOj of 2.0 are not
applied: no file says whether its instrument has done so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset.io.table import FileError, listed

WITHOUT = "pass compensate=False"


@dataclass(frozen=True)
class Spillover:
    """The matrix (k, k) and the places of its k channels."""

    matrix: NDArray[np.float64]
    places: list[int]

    def take_out(self, events: NDArray[Any]) -> NDArray[np.float64]:
        """(n, k) events of its channels, compensated."""
        return np.asarray(np.linalg.solve(self.matrix.T, events.T.astype(np.float64)).T, np.float64)


def spillover_of(
    path: str, text: dict[str, str], names: list[str], labels: Sequence[str] = ()
) -> tuple[Spillover | None, str | None]:
    """The matrix of a file with channels of these names and labels, if it has one, and a note."""
    for key in ("spillover", "spill", "comp"):
        if text.get(key, "").strip():
            return _parsed(path, key, text[key], names, labels)
    shares = [value for key, value in text.items() if re.fullmatch(r"dfc[0-9]+to[0-9]+", key)]
    if any(_is_number(share) and float(share) for share in shares):
        return None, "its percentages of spillover ($DFCiTOj) may have been taken out by the instrument: not compensated"
    return None, None


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def _as_named(channels: list[str], names: list[str], labels: Sequence[str]) -> tuple[list[str], str]:
    """The names of channels that are given by their labels or numbers, each in one way alone, and a word on it."""
    if any(channel in names for channel in channels):
        return channels, ""
    if all(list(labels).count(channel) == 1 for channel in channels):
        return [names[list(labels).index(channel)] for channel in channels], ", named by labels"
    if all(re.fullmatch("[1-9][0-9]{0,5}", channel) and int(channel) <= len(names) for channel in channels):
        return [names[int(channel) - 1] for channel in channels], ", named by numbers"
    return channels, ""


def _parsed(path: str, key: str, value: str, names: list[str], labels: Sequence[str]) -> tuple[Spillover | None, str | None]:
    cells = [cell.strip() for cell in value.split(",")]
    title = "SPILL" if key == "spill" else f"${key.upper()}"
    if not any(_is_number(cell) for cell in cells[1:]) and cells[0] != "0":  # a matrix that nobody filled in
        return None, f"its spillover matrix ({title}) holds no numbers, got {value[:60]!r}: not compensated"
    try:
        count = int(cells[0])
        nameless = key == "comp" and len(cells) == 1 + count * count
        channels = names[:count] if nameless else cells[1 : 1 + count]
        numbers = np.array(cells[1:] if nameless else cells[1 + count :], float)
        matrix = numbers.reshape(count, count)
    except ValueError as error:
        raise FileError(f"{path}: its spillover matrix ({title}) cannot be read: {value[:60]!r}; {WITHOUT}") from error
    if not count or np.array_equal(matrix, np.eye(count)):
        return None, f"its spillover matrix ({title}) is the identity: nothing to compensate"
    if nameless and (count != len(names) or (matrix < 0).any()):
        return None, f"its {title} names no channels and is no spillover matrix of all of them: not compensated"
    channels, how = _as_named(channels, names, labels)
    absent = [name for name in channels if name not in names]
    if len(absent) == count:
        return None, f"none of the channels of its spillover matrix ({title}) is there: not compensated"
    if absent:
        raise FileError(f"{path}: its spillover matrix ({title}) names {listed(absent)}, which it does not hold; {WITHOUT}")
    if len(set(channels)) < count or not np.isfinite(matrix).all() or np.linalg.cond(matrix) > 1e12:
        raise FileError(f"{path}: its spillover matrix ({title}) cannot be inverted; {WITHOUT}")
    return Spillover(
        matrix, [names.index(name) for name in channels]
    ), f"compensated by its spillover matrix ({count} channels{how})"
