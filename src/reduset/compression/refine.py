"""Moving the atoms: L-BFGS on the error as a function of the positions of the atoms alone.

The best weights α(c) for atoms at c have a closed form, so the weights are no variables. With r = f − f_m at these weights,

    E(c) = ‖f − f_m‖² − ‖f‖² = αᵀKα − 2αᵀκ,        ∂E/∂c_l = −2 α_l ∇r(c_l).

The derivative of the weights drops out because they are optimal (the envelope theorem). This holds for free weights, for weights of
a given sum, and on the simplex. K has a ridge of the size of rounding errors, so that atoms may coincide. The ridge costs nothing,
and two atoms that coincide divide one weight.

A step on the data costs O(n·m·d + m³/3). For large n, steps go in rounds, and each round uses a model of f. The model is a
surrogate of N atoms (a larger compression), corrected to first order by one pass over the data at the start of the round:

    κ_l(c) ≈ κ_l^N(c) + [κ_l − κ_l^N](c⁰) + ∇[κ_l − κ_l^N](c⁰)·(c_l − c_l⁰).

Value and gradient at the start of a round are then exact for any surrogate. So a point at which the rounds converge is a stationary
point of the true error. Moves within a round are bounded. A round that increases the error on the data is undone, and the next
round has a smaller bound. If the bandwidth is too small for the surrogate, all steps use the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from reduset import _engine
from reduset._engine import pivot_floor, single_threaded_blas
from reduset._types import Array, Precision, Report
from reduset.certificate import surrogate
from reduset.compression.prefixes import Prefixes
from reduset.compression.stages import Target, Weighed, certify, weigh_atoms
from reduset.kernels import ANY_FAMILY, RadialKernel
from reduset.mean import KernelMean
from reduset.select import support
from reduset.weights import is_signed, weights_from

Slopes = Callable[[Array], tuple[Array, Array]]

SECONDS = 0.6  # the time of all steps, estimated by `costs`, if their number is not given
MIN_STEPS, MAX_STEPS = 5, 200
PATIENCE = 2.0  # seconds for the fewest steps: if they take longer, atoms move only for a given number of steps
MEMORY = 20  # of L-BFGS, in steps
SECONDS_PER_COORDINATE = 2.5e-9  # of L-BFGS itself, for each step that it remembers
SMALL = 8192  # number of rows up to which every step uses the data
SURROGATE_ATOMS = (256, 2048)
ROUNDS, MIN_STEPS_PER_ROUND = 5, 8
EVALUATIONS_PER_STEP = 1.8  # with the line search
MAX_MISSING = 0.05  # of κ, by the surrogate: beyond, its curvature is meaningless
ROUNDING_ERROR = 1e-15  # squared relative error
SINGLE_PRECISION_ABOVE = 1e-4  # squared relative error: below, single precision does not resolve the steps


@dataclass(frozen=True)
class Moved:
    """Moved atoms, and a text on how they were moved; ``stayed`` if no step was taken."""

    points: Array
    text: str
    stayed: bool = False

    @classmethod
    def unmoved(cls, atoms: Array, price: float) -> Moved:
        """The unmoved atoms, if even the fewest steps would take too long and no number of steps was given."""
        return cls(atoms, f"since a step takes about {price:.1f} s; set the number of steps, such as refine=10", stayed=True)


def move(target: Target, weighed: Weighed, weighting: str, steps: int) -> tuple[Weighed, Prefixes]:
    """Move the atoms if that decreases the error, measured on the data with weights of this kind.

    ``steps=0`` chooses their number by the time that they take.
    """
    run, size = target.run, weighed.span.size
    before = certify(target, weighed, weighting)
    error = before.error(size).relative
    with run.clock.stage("refine"):
        report = run.progress.stage("moving")
        result = refine(target.full, weighed.span.atoms, weighting, error**2, steps, target.move_rng, report)
    if result.stayed:
        text = f"not moved by L-BFGS, {result.text}"
    else:
        atoms = replace(weighed.atoms, points=result.points, rows=None, order=None, kappa=None, in_order=False)
        moved = weigh_atoms(target, atoms)
        after = certify(target, moved, weighting)
        lower = after.error(moved.span.size).relative
        if lower < error:
            text = f"moved by L-BFGS, {result.text}: error {error:.3g} before, {lower:.3g} after"
            return replace(moved, atoms=replace(moved.atoms, moved=text)), after
        text = f"not moved: L-BFGS, {result.text}, did not decrease the error"
    return replace(weighed, atoms=replace(weighed.atoms, moved=text)), before


def refine(
    full: KernelMean,
    atoms: Array,
    kind: str,
    start_error: float,
    steps: int,
    rng: np.random.Generator,
    report: Report | None = None,
) -> Moved:
    """The atoms after at most ``steps`` steps of L-BFGS on the error at the best weights of a kind.

    Parameters
    ----------
    atoms : (m, d)
    kind : The kind of the weights. Clipped and projected weights are fitted as "simplex", which they approximate.
    start_error : The squared relative error at the start.
    steps : The number of steps. 0 chooses it so that they take `SECONDS`.
    """
    kernel = full.kernel
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"refine moves atoms along gradients, which {kernel!r} does not have; use {ANY_FAMILY}")
    rows, present = support(full)
    if present is not None:  # rows of weight 0 would change the order of sums, and so the rounding errors of the descent
        full = KernelMean.unchecked(rows, full.weights[present], kernel)
    signed = bool(full.stored_weights.min() < 0 < full.stored_weights.max())  # terms of their sums cancel
    precision: Precision = "auto" if start_error > SINGLE_PRECISION_ABOVE and not signed else "double"
    shown = _Counter(report)
    problem = _Problem(kernel, kind, full.mass, len(atoms), max(start_error, ROUNDING_ERROR), shown)

    def on_data(points: Array) -> tuple[Array, Array]:
        return kernel.product_slopes(full.atoms, full.weights, points, precision)

    with single_threaded_blas():  # for results that do not depend on the number of threads; the products here are small
        first = on_data(atoms)
        size = _surrogate_size(full, len(atoms))
        # an atom of a surrogate represents n/N points, and the kernel functions of these must overlap
        if full.size > SMALL and np.abs(first[0]).mean() * size > full.total:
            model = surrogate(full, size, rng, precision == "double")
            if np.abs(_lacking(kernel, model, atoms, first)[0]).sum() <= MAX_MISSING * np.abs(first[0]).sum():
                price = _price_of_step(model, len(atoms), "double", kind)
                if not steps and _is_too_slow(price):
                    return Moved.unmoved(atoms, price)
                shown.total = steps or _steps_within_time(price)
                passes = int(2 * SECONDS / _engine.costs.of_slopes(full.size, len(atoms), full.dimension))
                rounds = int(np.clip(min(shown.total // MIN_STEPS_PER_ROUND, passes), 1, ROUNDS))
                return _in_rounds(problem, model, on_data, atoms, first, shown.total, rounds)
        price = _price_of_step(full, len(atoms), precision, kind)
        if not steps and _is_too_slow(price):
            return Moved.unmoved(atoms, price)
        shown.total = steps or _steps_within_time(price)
        return Moved(problem.descend(on_data, atoms, shown.total), f"at most {shown.total} steps")


def _in_rounds(
    problem: _Problem, model: KernelMean, on_data: Slopes, atoms: Array, first: tuple[Array, Array], count: int, rounds: int
) -> Moved:
    """``count`` steps on the model in rounds, each corrected by the data at its start."""
    bound = 1 / np.sqrt(atoms.shape[1])
    best, slopes = atoms, first
    least = problem.error(atoms, first[0])
    for _ in range(rounds):
        lacking = _lacking(problem.kernel, model, best, slopes)
        points = problem.descend(_corrected(problem.kernel, model, best, *lacking), best, -(-count // rounds), bound)
        on_rows = on_data(points)
        error = problem.error(points, on_rows[0])
        if error < least:
            best, slopes, least = points, on_rows, error
        else:
            bound /= 4
    return Moved(best, f"at most {count} steps on a compression of {model.size:,} atoms, corrected by the data {rounds} times")


def _surrogate_size(full: KernelMean, size: int) -> int:
    """A size at which steps take a fraction of the time, well above the number of atoms to move; smaller in many dimensions."""
    n, d = full.size, full.dimension
    fast_enough = SECONDS / 2 / (_engine.costs.of_sums(n, 2, d) - _engine.costs.of_sums(n, 1, d))
    return int(np.clip(max(fast_enough, 4 * size), *SURROGATE_ATOMS))


def _price_of_step(mean: KernelMean, size: int, precision: Precision, kind: str) -> float:
    n, d = mean.size, mean.dimension
    speedup = 0.5 if precision == "auto" and d < _engine.costs.MANY else 1.0
    weighing = _engine.costs.of_factor(size) + (0.0 if is_signed(kind) else _engine.costs.of_quadratic_program(size))
    overhead = _engine.costs.START + MEMORY * size * d * SECONDS_PER_COORDINATE
    return speedup * _engine.costs.of_slopes(n, size, d) + _engine.costs.of_slopes(size, size, d) + weighing + overhead


def _steps_within_time(price: float) -> int:
    return int(np.clip(SECONDS / (EVALUATIONS_PER_STEP * price), MIN_STEPS, MAX_STEPS))


def _is_too_slow(price: float) -> bool:
    """Whether the fewest steps take longer than `PATIENCE`."""
    return MIN_STEPS * EVALUATIONS_PER_STEP * price > PATIENCE


def _lacking(kernel: RadialKernel, model: KernelMean, points: Array, slopes: tuple[Array, Array]) -> tuple[Array, Array]:
    """The differences of κ and of its gradient between the data and the model at these points."""
    value, gradient = kernel.product_slopes(model.atoms, model.weights, points)
    return slopes[0] - value, slopes[1] - gradient


def _corrected(kernel: RadialKernel, model: KernelMean, start: Array, lacking: Array, slope_lacking: Array) -> Slopes:
    """The model's κ and its gradient, corrected to first order around the start."""

    def slopes(points: Array) -> tuple[Array, Array]:
        value, gradient = kernel.product_slopes(model.atoms, model.weights, points)
        return value + lacking + np.einsum("ij,ij->i", slope_lacking, points - start), gradient + slope_lacking

    return slopes


class _Counter:
    """Steps done, over all rounds."""

    def __init__(self, report: Report | None) -> None:
        self._report, self._done, self.total = report, 0, 0

    def __call__(self, _: Array) -> None:
        self._done += 1
        if self._report is not None:
            self._report(min(self._done, self.total), self.total)


class _Problem:
    """E and its gradient for one kernel and kind of weights."""

    def __init__(
        self, kernel: RadialKernel, kind: str, mass: float, size: int, start_error: float, count: Callable[[Array], None]
    ) -> None:
        self.kernel, self._mass, self._start_error, self._count = kernel, mass, start_error, count
        self._kind = kind if is_signed(kind) else "simplex"
        self._ridge = pivot_floor(size)

    def _weigh(self, points: Array, kappa: Array) -> tuple[float, Array]:
        """E and the best weights; the ridge is part of both."""
        gram = self.kernel.product_gram(points, points)
        gram[np.diag_indices(len(gram))] += self._ridge
        factor, failed = dpotrf(gram, lower=1, clean=1)
        if failed:
            return self._rejected(kappa)
        y = solve_triangular(factor, kappa, lower=True, check_finite=False)
        try:
            alpha = weights_from(factor, y, self._kind, self._mass)
        except RuntimeError:  # the quadratic program did not converge
            return self._rejected(kappa)
        difference = factor.T @ alpha - y
        return float(difference @ difference - y @ y), alpha

    def _rejected(self, kappa: Array) -> tuple[float, Array]:
        """A value above the error at the start, so that the line search goes back."""
        return 1.0 + len(kappa) * float(kappa @ kappa), np.zeros(len(kappa))

    def error(self, points: Array, kappa: Array) -> float:
        return self._weigh(points, kappa)[0]

    def descend(self, slopes: Slopes, start: Array, steps: int, bound: float = np.inf) -> Array:
        """The best atoms in ``steps`` steps from the start; no coordinate moves by more than the bound.

        A move is bound·tanh(u/bound) with free variables u. Box constraints would take longer than the steps.
        """
        # moves are in the coordinates of the kernel, in which all directions have the same effect
        matrix = self.kernel.plain_frame(start).matrix
        to_data: Array = np.asarray(1 / np.asarray(matrix) if np.ndim(matrix) < 2 else np.linalg.inv(matrix), np.float64)
        unit, least, best = 0.0, np.inf, start

        def stretched(moves: Array, scaling: Array) -> Array:
            return moves * scaling if scaling.ndim < 2 else moves @ scaling

        def value(u: Array) -> tuple[float, Array]:
            nonlocal unit, least, best
            bounded = np.tanh(u.reshape(start.shape) / bound)
            moves = u.reshape(start.shape) if np.isinf(bound) else bound * bounded
            points = start + stretched(moves, to_data)
            kappa, uphill = slopes(points)
            error, alpha = self._weigh(points, kappa)
            if unit == 0:  # in units of the error at the start: a tiny gradient would be rounded to 0 at the first step
                unit = 1 / max(self._start_error * abs(error), np.finfo(np.float64).tiny)
            if error < least:
                least, best = error, points
            _, between = self.kernel.product_slopes(points, alpha, points)
            slope = stretched(-2 * unit * alpha[:, None] * (uphill - between), to_data.T)
            return error * unit, (slope * (1 - bounded**2)).ravel()

        from scipy.optimize import minimize  # here, since it is a tenth of the import time of this package

        minimize(
            value,
            np.zeros(start.size),
            jac=True,
            method="L-BFGS-B",
            callback=self._count,
            options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0},
        )
        return best
