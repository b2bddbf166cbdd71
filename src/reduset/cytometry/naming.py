"""Names of populations: for each marker high, low or between; and the fewest of these that tell a population from all others.

Where these are few, markers in which it is high and stands out follow, up to three words in all. A marker's border is where two
classes of its cells differ most (Otsu 1979). A population is high in it where three quarters of its cells lie above, low where
three quarters lie below, and between otherwise: "CD3+ CD4+ CD8−".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Floats

BINS = 256
SURE = 0.75  # of its cells
SIGNS = {1: "+", -1: "−", 0: "±"}
USUAL_WORDS, MOST_WORDS = 3, 5


def border(values: Floats, weights: Array) -> float:
    """Otsu's border of one marker: where the variance between its two classes is largest."""
    low, high = np.percentile(values, [0.1, 99.9])
    if not high > low:
        return float(low)
    counts, edges = np.histogram(np.clip(values, low, high), BINS, (low, high), weights=weights)
    places = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)[:-1]
    above = below[-1] + counts[-1] - below
    sums = np.cumsum(counts * places)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = below * above * (sums[:-1] / below - (sums[-1] - sums[:-1]) / above) ** 2
    best = np.flatnonzero(between == np.nanmax(between))  # a gap without cells has one value all through: its middle
    return float((edges[best[0] + 1] + edges[best[-1] + 1]) / 2)


def signs(above: Array) -> NDArray[np.int64]:
    """1, −1 or 0 from the shares of a population's cells above the border of a marker."""
    return np.where(above >= SURE, 1, np.where(above <= 1 - SURE, -1, 0))


def short_names(codes: NDArray[np.int64], separations: Array, markers: Sequence[str]) -> list[str]:
    """A name of each of the populations, from (k, d) signs and how much each marker stands out; equal ones are numbered."""
    names = [_short_name(k, codes, separations, markers) for k in range(len(codes))]
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(f"{name} ({seen[name]})" if names.count(name) > 1 else name)
    return unique


def _short_name(k: int, codes: NDArray[np.int64], separations: Array, markers: Sequence[str]) -> str:
    """The signs that tell one population from the others: those first that exclude most of them, high ones before low ones."""
    others = [j for j in range(len(codes)) if j != k]
    chosen: list[int] = []
    while others and len(chosen) < MOST_WORDS:
        free = [m for m in range(len(markers)) if m not in chosen]
        told = {m: sum(codes[j, m] != codes[k, m] for j in others) for m in free}
        best = max(free, key=lambda m: (told[m], codes[k, m], -m), default=None)
        if best is None or told[best] == 0:
            break
        chosen.append(best)
        others = [j for j in others if codes[j, best] == codes[k, best]]
    high = [m for m in range(len(markers)) if codes[k, m] == 1 and m not in chosen]
    chosen += sorted(high, key=lambda m: -separations[k, m])[: max(0, USUAL_WORDS - len(chosen))]
    ordered = sorted(chosen, key=lambda m: (-codes[k, m], m))
    return " ".join(f"{markers[m]}{SIGNS[int(codes[k, m])]}" for m in ordered) or "all cells"
