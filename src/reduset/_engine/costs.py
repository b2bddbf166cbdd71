"""Estimated seconds of the main computations on two cores, for time budgets.

Budgets use estimates instead of a clock, so that the same seed gives the same result on any machine. The constants were measured on
the machine of `benchmarks/RESULTS.md`. On another machine, times differ by a factor.
"""

from __future__ import annotations

MANY = 40  # dimensions from which sums use matrix products (`sums.BLAS_FROM`)
FLOP = 4e-11  # seconds of one operation of a factorisation in double precision
START = 1e-4  # seconds to call compiled code and return


def of_sums(points: int, queries: int, dimension: int) -> float:
    """Seconds for kernel sums in double precision."""
    if dimension < MANY:
        return START + points * (35e-9 + 1e-9 * dimension) + points * queries * (0.4e-9 + 0.055e-9 * dimension)
    return START + points * (220e-9 + 0.5e-9 * dimension) + points * queries * (0.8e-9 + 0.021e-9 * dimension)


def of_slopes(points: int, queries: int, dimension: int) -> float:
    """Seconds for kernel sums with gradients in double precision."""
    if dimension < MANY:
        return START + points * (45e-9 + 1.5e-9 * dimension) + points * queries * (0.6e-9 + 0.1e-9 * dimension)
    return START + points * 400e-9 + points * queries * (1e-9 + 0.072e-9 * dimension)


def of_factor(size: int) -> float:
    """Seconds for a Cholesky factor and its solves."""
    return START + FLOP * size**2 * (size / 3 + 50)


def of_quadratic_program(size: int) -> float:
    """Seconds for weights on the simplex."""
    return START + 2.5e-9 * size**3
