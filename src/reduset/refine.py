"""Moving the atoms: the error as a function of their places alone, brought down by L-BFGS.

For places c the best weights α(c) are known in closed form, so the weights are no variables. With r = f − f_m at these weights,

    E(c) = ‖f − f_m‖² − ‖f‖² = αᵀKα − 2αᵀκ,        ∂E/∂c_l = −2 α_l ∇r(c_l),

the weights' own dependence on c drops out because they are optimal (the envelope theorem), for free weights as for those with a
given mass or on the simplex. K carries a ridge of rounding size, so that atoms may meet: a ridge costs nothing, and a duplicate
then is one atom with its weight shared.

A step costs O(N·m·d + m³/3) for a target of N atoms: the mean itself where it is small, a stand-in where a good one exists, and all
of the data otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.optimize import minimize

from reduset import effort
from reduset._engine.factor import pivot_floor
from reduset._engine.sums import Precision
from reduset._engine.threads import single_threaded_blas
from reduset.mean import KernelMean
from reduset.radial import RadialKernel
from reduset.stand_in import stand_in
from reduset.weigh import weights_from

Array = NDArray[np.float64]
Report = Callable[[int, int], None]

SECONDS = 1.0  # what the steps may take, by the estimates of `effort`, where their number is not given
FEWEST_STEPS, MOST_STEPS = 12, 300
MEMORY = 20  # of L-BFGS, in steps
SMALL = 8192  # a mean of so many atoms is its own target
STAND_IN_ATOMS = 2048
MUCH_CLOSER = 0.03  # a target's error over the start's, squared: what is left is then the target's fault to a few percent
COARSE = 1e-5  # squared relative error above which single precision tells the steps apart


@dataclass(frozen=True)
class Target:
    """What the atoms are fitted to, and how it is summed."""

    mean: KernelMean
    precision: Precision
    words: str


def target(mean: KernelMean, start: float, size: int, rng: np.random.Generator) -> Target:
    """The mean, or a smaller one much closer to it than the atoms are at the start, of squared relative error ``start``."""
    if mean.size <= SMALL:
        return Target(mean, "double", "the data")
    stand = stand_in(mean, max(STAND_IN_ATOMS, 4 * size), rng)
    if stand.relative_error**2 <= MUCH_CLOSER * start:
        return Target(stand.mean, "double", f"a compression of {stand.mean.size:,} atoms")
    return Target(mean, "auto" if start > COARSE else "double", "the data")


def steps_for(target: Target, size: int) -> int:
    """How many steps fit into the time for them."""
    n, d = target.mean.size, target.mean.dimension
    share = 1.0 if target.precision == "double" else 0.5
    price = share * effort.of_slopes(n, size, d) + effort.of_slopes(size, size, d) + effort.of_factor(size)
    return int(np.clip(SECONDS / price, FEWEST_STEPS, MOST_STEPS))


def refine(target: Target, atoms: Array, kind: str, steps: int, report: Report | None = None) -> Array:
    """The atoms after ``steps`` steps of L-BFGS on the error at the best weights of a kind.

    Parameters
    ----------
    atoms : (m, d)
    kind : of the weights; "clipped" and "simplex_projection" are fitted as "simplex", which they approximate
    """
    kernel = target.mean.kernel
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"refine moves atoms along gradients, which {kernel!r} does not have; use Gaussian, Laplacian or Student")
    problem = _Problem(target, kernel, atoms, kind)
    done = 0

    def count(_: Array) -> None:
        nonlocal done
        done += 1
        if report is not None:
            report(done, steps)

    minimize(
        problem.value,
        np.zeros(atoms.size),
        jac=True,
        method="L-BFGS-B",
        callback=count,
        options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0},
    )
    return problem.best


class _Problem:
    """E and its gradient in moves from the start, in bandwidths; the best places seen are kept."""

    def __init__(self, target: Target, kernel: RadialKernel, atoms: Array, kind: str) -> None:
        self._target, self._kernel, self._start = target, kernel, atoms
        self._kind = kind if kind in ("free", "sum_to_one") else "simplex"
        # moves are in the kernel's own coordinates, in which all directions matter alike
        matrix = kernel.plain_frame(atoms).matrix
        self._to_data = 1.0 / matrix if isinstance(matrix, float) else np.linalg.inv(matrix)
        self._ridge = pivot_floor(len(atoms))
        self._unit = 0.0
        self._least = np.inf
        self.best = atoms

    def _places(self, moves: Array) -> Array:
        moves = moves.reshape(self._start.shape)
        return self._start + (moves * self._to_data if isinstance(self._to_data, float) else moves @ self._to_data)

    def value(self, moves: Array) -> tuple[float, Array]:
        target, kernel = self._target.mean, self._kernel
        places = self._places(moves)
        kappa, uphill = kernel.product_slopes(target.atoms, target.weights, places, self._target.precision)
        gram = kernel.product_gram(places, places)
        gram[np.diag_indices(len(gram))] += self._ridge
        alpha = self._weights(gram, kappa)
        _, own = kernel.product_slopes(places, alpha, places)
        error = float(alpha @ (gram @ alpha) - 2 * (alpha @ kappa))
        if self._unit == 0:
            self._unit = 1 / max(abs(error), np.finfo(np.float64).tiny)
        if error < self._least:
            self._least, self.best = error, places
        slope = -2 * alpha[:, None] * (uphill - own)
        slope = slope * self._to_data if isinstance(self._to_data, float) else slope @ self._to_data.T
        return error * self._unit, (slope * self._unit).ravel()

    def _weights(self, gram: Array, kappa: Array) -> Array:
        with single_threaded_blas():  # results must not depend on the number of threads
            factor, failed = dpotrf(gram, lower=1, clean=1)
        if failed:
            return np.zeros(len(kappa))  # no step goes here: E is then 0, above the start's
        y = solve_triangular(factor, kappa, lower=True, check_finite=False)
        return weights_from(factor, y, self._kind, self._target.mean.mass)
