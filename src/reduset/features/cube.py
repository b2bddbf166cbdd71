"""The unit cube that bags live in: the box of the points that were fitted, with a margin, mapped to [0, 1]ᵈ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._messages import warn
from reduset._types import Array, Floats

OUTSIDE = ("clip", "refuse")


@dataclass(frozen=True)
class CubeScaler:
    """Min–max scaling to the unit cube, column by column: x ↦ (x − low)/width."""

    low: Array
    width: Array

    @classmethod
    def around(cls, bags: list[Floats], margin: float) -> CubeScaler:
        """The box of all points, wider by ``margin`` of its width on every side; a column without spread lies in the middle."""
        low = np.min([bag.min(axis=0) for bag in bags], axis=0).astype(np.float64)
        high = np.max([bag.max(axis=0) for bag in bags], axis=0).astype(np.float64)
        width = high - low
        flat = width <= 0
        width[flat] = 1.0
        low[flat] -= 0.5
        pad = np.where(flat, 0.0, margin * width)
        return cls(low - pad, width + 2 * pad)

    def coordinates(self, bags: list[Floats], outside: str, names: list[Any]) -> list[Array]:
        """The bags in the cube. Points outside are moved to its faces, with a word on how many; or refused, with the bag's name."""
        mapped, moved, touched = [], 0, 0
        for name, bag in zip(names, bags, strict=True):
            unit = (bag - self.low) / self.width
            out = int(np.count_nonzero(((unit < 0) | (unit > 1)).any(axis=1)))
            if out and outside == "refuse":
                raise ValueError(
                    f"bags[{name!r}] has {out} of {len(bag)} points outside of the box that was fitted; use outside='clip' to move "
                    "them to its faces, or fit with a larger margin"
                )
            if out:
                moved, touched = moved + out, touched + 1
                np.clip(unit, 0.0, 1.0, out=unit)
            mapped.append(np.ascontiguousarray(unit, np.float64))
        if moved:
            warn(
                f"{moved:,} points of {touched:,} bags lie outside of the box that was fitted, and were moved to its faces; fit "
                "with a larger margin, or use outside='refuse'",
            )
        return mapped
