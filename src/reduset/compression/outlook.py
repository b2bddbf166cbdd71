"""What a search for a tolerance has before it: how many atoms it would take, from the errors of the sizes tried so far.

A doubling of the atoms divides the squared error by 2^e. For smooth kernels e grows with every doubling, at most like m^(2/d) (the
error of a Gaussian is about exp(−c·m^(2/d))): so e is let grow by as much as it last did, and by that at least. What is then far
beyond the most atoms allowed is not tried; where the errors say less, the search goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

SIZES_FROM = 512  # atoms, below which a curve says little
FAR_BEYOND = 4  # times the most atoms allowed
MOST_DOUBLINGS = 40


def atoms_needed(sizes: Sequence[int], squares: Sequence[float], goal: float, dimension: int) -> float:
    """About how many atoms bring the square down to the goal, 0 where three sizes are not known."""
    if len(sizes) < 3 or sizes[-1] < SIZES_FROM or min(squares) <= 0:
        return 0.0
    before, last = (log2(squares[k - 1] / squares[k]) / log2(sizes[k] / sizes[k - 1]) for k in (len(sizes) - 2, len(sizes) - 1))
    least = 2 ** (2 / dimension)
    growth = min(max(least, last / before if before > 0 else least), 4.0)
    missing, rate, doublings = log2(squares[-1] / goal) if goal > 0 else float("inf"), max(last, 1e-3), 0
    while missing > 0 and doublings < MOST_DOUBLINGS:
        rate *= growth
        missing -= rate
        doublings += 1
    return sizes[-1] * 2.0 ** (doublings + missing / rate if missing < 0 else doublings)
