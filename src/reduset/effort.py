"""How long things take, roughly, on two cores: what a time budget is spent by.

Budgets are kept by estimates and not by a clock, so that the same seed gives the same result on any machine and on any day. The
figures are of `benchmarks/RESULTS.md`'s machine; another is faster or slower by a factor, and keeps the budget up to it.
"""

from __future__ import annotations

SUM, SUM_A_COORDINATE = 2.0e-9, 0.11e-9
SLOPE, SLOPE_A_COORDINATE = 2.5e-9, 0.2e-9
FLOP = 4e-11  # of a factorisation in double precision
START = 1e-4  # of a call into compiled code and back


def of_sums(points: int, queries: int, dimension: int) -> float:
    """Seconds for kernel sums in double precision."""
    return START + points * queries * (SUM + SUM_A_COORDINATE * dimension)


def of_slopes(points: int, queries: int, dimension: int) -> float:
    """Seconds for kernel sums with gradients in double precision."""
    return START + points * queries * (SLOPE + SLOPE_A_COORDINATE * dimension)


def of_factor(size: int) -> float:
    """Seconds for a Cholesky factor and its solves."""
    return START + FLOP * size**2 * (size / 3 + 50)


def of_quadratic_program(size: int) -> float:
    """Seconds for weights on the simplex."""
    return START + 2.5e-9 * size**3
