"""Moving the atoms: the error as a function of their places alone, brought down by L-BFGS.

For places c the best weights α(c) are known in closed form, so the weights are no variables. With r = f − f_m at these weights,

    E(c) = ‖f − f_m‖² − ‖f‖² = αᵀKα − 2αᵀκ,        ∂E/∂c_l = −2 α_l ∇r(c_l),

the weights' own dependence on c drops out because they are optimal (the envelope theorem), for free weights as for those with a
given mass or on the simplex. K carries a ridge of rounding size, so that atoms may meet: it costs nothing, and two that have met
share one weight.

A step on the data costs O(n·m·d + m³/3). Where n is large the steps go in rounds, each on a model: a surrogate of N atoms (a larger
compression) for f, corrected to first order by one pass over the data at the round's start,

    κ_l(c) ≈ κ_l^N(c) + [κ_l − κ_l^N](c⁰) + ∇[κ_l − κ_l^N](c⁰)·(c_l − c_l⁰),

so that value and gradient at the start of a round are those of the data, whatever the surrogate is worth, and a place where the
rounds come to rest is a stationary point of the true error. Moves within a round are bounded, and a round that ends higher on the
data than it began is undone, and the next has a tighter bound. Where the surrogate is too coarse for that (a small bandwidth), all
steps go on the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from reduset._engine import costs, pivot_floor, single_threaded_blas
from reduset._types import Array, Precision, Report
from reduset.certificate.comparison import surrogate
from reduset.compression.prefixes import Prefixes
from reduset.compression.stages import Target, Weighed, certify, weigh_atoms
from reduset.kernels import ANY_FAMILY, RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import support
from reduset.weights import is_signed, weights_from

Slopes = Callable[[Array], tuple[Array, Array]]

SECONDS = 0.6  # what the steps may take, by the estimates of `costs`, where their number is not given
FEWEST_STEPS, MOST_STEPS = 5, 200
PATIENCE = 2.0  # seconds that the fewest steps may take; beyond, the atoms stay unless a number of steps is given
MEMORY = 20  # of L-BFGS, in steps
A_COORDINATE = 2.5e-9  # seconds that L-BFGS takes itself, for each step that it remembers
SMALL = 8192  # rows up to which every step sees the data
SURROGATE_ATOMS = (256, 2048)
ROUNDS, STEPS_A_ROUND = 5, 8  # at most, and at least
LOOKS_A_STEP = 1.8  # evaluations that a step takes, with its line search
CLOSE = 0.05  # share of κ that a surrogate may lack: beyond, its curvature means nothing
LEAST = 1e-15  # squared relative error that rounding leaves anyway
COARSE = 1e-4  # squared relative error above which single precision tells the steps apart


@dataclass(frozen=True)
class Moved:
    """Atoms that have been moved, and in words how that was done; ``stayed`` where no step was taken."""

    places: Array
    words: str
    stayed: bool = False

    @classmethod
    def nowhere(cls, atoms: Array, price: float) -> Moved:
        """Where steps would take longer than anybody who gave no number of them expects."""
        return cls(atoms, f"of which a step would take {price:.1f} s: give their number, refine=10", stayed=True)


def move(target: Target, weighed: Weighed, weighting: str, steps: int) -> tuple[Weighed, Prefixes]:
    """Move the atoms, unless the error, measured on the data with weights of this kind, is not lower after it.

    ``steps`` of 0 leaves their number to the time they take.
    """
    run, size = target.run, weighed.span.size
    before = certify(target, weighed, weighting)
    error = before.error(size).relative
    with run.clock.stage("refine"):
        report = run.progress.stage("moving")
        found = refine(target.full, weighed.span.atoms, weighting, error**2, steps, target.move_rng, report)
    if found.stayed:
        words = f"not moved by L-BFGS, {found.words}"
    else:
        moved = weigh_atoms(target, weighed.atoms.moved_to(found.places))
        after = certify(target, moved, weighting)
        lower = after.error(moved.span.size).relative
        if lower < error:
            words = f"moved by L-BFGS, {found.words}: error {error:.3g} before, {lower:.3g} after"
            return replace(moved, atoms=replace(moved.atoms, moved=words)), after
        words = f"not moved: L-BFGS, {found.words}, found nothing better"
    return replace(weighed, atoms=replace(weighed.atoms, moved=words)), before


def refine(
    full: KernelMean,
    atoms: Array,
    kind: str,
    lost: float,
    steps: int,
    rng: np.random.Generator,
    report: Report | None = None,
) -> Moved:
    """The atoms after at most ``steps`` steps of L-BFGS on the error at the best weights of a kind.

    Parameters
    ----------
    atoms : (m, d)
    kind : of the weights; the clipped and projected ones are fitted as "simplex", which they approximate
    lost : the squared relative error at the start
    steps : 0 for as many as take `SECONDS`
    """
    kernel = full.kernel
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"refine moves atoms along gradients, which {kernel!r} does not have; use {ANY_FAMILY}")
    points, present = support(full)
    if present is not None:  # rows of no weight would only change the order of sums, whose rounding the descent carries along
        full = KernelMean.unchecked(points, full.weights[present], kernel)
    signed = bool(full.stored_weights.min() < 0 < full.stored_weights.max())  # their sums cancel
    precision: Precision = "auto" if lost > COARSE and not signed else "double"
    shown = _Counter(report)
    problem = _Problem(kernel, kind, full.mass, len(atoms), max(lost, LEAST), shown)

    def on_data(places: Array) -> tuple[Array, Array]:
        return kernel.product_slopes(full.atoms, full.weights, places, precision)

    with single_threaded_blas():  # for results that do not depend on the number of threads; the products here are small
        first = on_data(atoms)
        enough = _surrogate_size(full, len(atoms))
        # one atom of a surrogate is to stand for n/N points, which must see each other
        if full.size > SMALL and np.abs(first[0]).mean() * enough > full.total:
            model = surrogate(full, enough, rng, precision == "double")
            if np.abs(_lacking(kernel, model, atoms, first)[0]).sum() <= CLOSE * np.abs(first[0]).sum():
                price = _price_of_step(model, len(atoms), "double", kind)
                if not steps and _too_dear(price):
                    return Moved.nowhere(atoms, price)
                shown.total = steps or _steps_within_time(price)
                passes = int(2 * SECONDS / costs.of_slopes(full.size, len(atoms), full.dimension))
                rounds = int(np.clip(min(shown.total // STEPS_A_ROUND, passes), 1, ROUNDS))
                return _in_rounds(problem, model, on_data, atoms, first, shown.total, rounds)
        price = _price_of_step(full, len(atoms), precision, kind)
        if not steps and _too_dear(price):
            return Moved.nowhere(atoms, price)
        shown.total = steps or _steps_within_time(price)
        return Moved(problem.descend(on_data, atoms, shown.total), f"{shown.total} steps at most")


def _in_rounds(
    problem: _Problem, model: KernelMean, on_data: Slopes, atoms: Array, first: tuple[Array, Array], count: int, rounds: int
) -> Moved:
    """Rounds of ``count`` steps in all on the model, each set right by the data where it starts."""
    bound = 1 / np.sqrt(atoms.shape[1])
    best, slopes = atoms, first
    least = problem.error(atoms, first[0])
    for _ in range(rounds):
        lacking = _lacking(problem.kernel, model, best, slopes)
        places = problem.descend(_corrected(problem.kernel, model, best, *lacking), best, -(-count // rounds), bound)
        found = on_data(places)
        error = problem.error(places, found[0])
        if error < least:
            best, slopes, least = places, found, error
        else:
            bound /= 4
    words = f"{count} steps at most on a compression of {model.size:,} atoms, set right by the data {rounds} times"
    return Moved(best, words)


def _surrogate_size(full: KernelMean, size: int) -> int:
    """As many atoms as take a fraction of the time (in many dimensions fewer), but well above those to be moved."""
    n, d = full.size, full.dimension
    quick = SECONDS / 2 / (costs.of_sums(n, 2, d) - costs.of_sums(n, 1, d))
    return int(np.clip(max(quick, 4 * size), *SURROGATE_ATOMS))


def _price_of_step(mean: KernelMean, size: int, precision: Precision, kind: str) -> float:
    n, d = mean.size, mean.dimension
    share = 0.5 if precision == "auto" and d < costs.MANY else 1.0
    weighing = costs.of_factor(size) + (0.0 if is_signed(kind) else costs.of_quadratic_program(size))
    own = costs.START + MEMORY * size * d * A_COORDINATE
    return share * costs.of_slopes(n, size, d) + costs.of_slopes(size, size, d) + weighing + own


def _steps_within_time(price: float) -> int:
    return int(np.clip(SECONDS / (LOOKS_A_STEP * price), FEWEST_STEPS, MOST_STEPS))


def _too_dear(price: float) -> bool:
    """Whether even the fewest steps would take longer than is borne unasked."""
    return FEWEST_STEPS * LOOKS_A_STEP * price > PATIENCE


def _lacking(kernel: RadialKernel, model: KernelMean, places: Array, slopes: tuple[Array, Array]) -> tuple[Array, Array]:
    """What the model lacks, in value and in gradient, of what the data say at these places."""
    value, gradient = kernel.product_slopes(model.atoms, model.weights, places)
    return slopes[0] - value, slopes[1] - gradient


def _corrected(kernel: RadialKernel, model: KernelMean, start: Array, lacking: Array, steeper: Array) -> Slopes:
    """The model's κ and its gradient, corrected to first order about the start."""

    def slopes(places: Array) -> tuple[Array, Array]:
        value, gradient = kernel.product_slopes(model.atoms, model.weights, places)
        return value + lacking + np.einsum("ij,ij->i", steeper, places - start), gradient + steeper

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
        self, kernel: RadialKernel, kind: str, mass: float, size: int, lost: float, count: Callable[[Array], None]
    ) -> None:
        self.kernel, self._mass, self._lost, self._count = kernel, mass, lost, count
        self._kind = kind if is_signed(kind) else "simplex"
        self._ridge = pivot_floor(size)

    def _weigh(self, places: Array, kappa: Array) -> tuple[float, Array]:
        """E and the best weights; the ridge is part of both."""
        gram = self.kernel.product_gram(places, places)
        gram[np.diag_indices(len(gram))] += self._ridge
        factor, failed = dpotrf(gram, lower=1, clean=1)
        if failed:
            return self._far(kappa)
        y = solve_triangular(factor, kappa, lower=True, check_finite=False)
        try:
            alpha = weights_from(factor, y, self._kind, self._mass)
        except RuntimeError:  # the quadratic program did not converge
            return self._far(kappa)
        gap = factor.T @ alpha - y
        return float(gap @ gap - y @ y), alpha

    def _far(self, kappa: Array) -> tuple[float, Array]:
        """Above any error worth a step, so that the line search turns back."""
        return 1.0 + len(kappa) * float(kappa @ kappa), np.zeros(len(kappa))

    def error(self, places: Array, kappa: Array) -> float:
        return self._weigh(places, kappa)[0]

    def descend(self, slopes: Slopes, start: Array, steps: int, bound: float = np.inf) -> Array:
        """The best places seen in ``steps`` steps from the start, no coordinate moved by more than the bound.

        The bound is part of the variables u, a move being bound·tanh(u/bound): a box of constraints would cost more than the steps.
        """
        # moves are in the kernel's own coordinates, in which all directions matter alike
        matrix = self.kernel.plain_frame(start).matrix
        to_data: Array = np.asarray(1 / np.asarray(matrix) if np.ndim(matrix) < 2 else np.linalg.inv(matrix), np.float64)
        unit, least, best = 0.0, np.inf, start

        def stretched(moves: Array, map_: Array) -> Array:
            return moves * map_ if map_.ndim < 2 else moves @ map_

        def value(u: Array) -> tuple[float, Array]:
            nonlocal unit, least, best
            share = np.tanh(u.reshape(start.shape) / bound)
            moves = u.reshape(start.shape) if np.isinf(bound) else bound * share
            places = start + stretched(moves, to_data)
            kappa, uphill = slopes(places)
            error, alpha = self._weigh(places, kappa)
            if unit == 0:  # what there is to gain counts as 1, or its gradient would be lost in rounding from the first step on
                unit = 1 / max(self._lost * abs(error), np.finfo(np.float64).tiny)
            if error < least:
                least, best = error, places
            _, own = self.kernel.product_slopes(places, alpha, places)
            slope = stretched(-2 * unit * alpha[:, None] * (uphill - own), to_data.T)
            return error * unit, (slope * (1 - share**2)).ravel()

        from scipy.optimize import minimize  # a tenth of the time that importing this package takes

        minimize(
            value,
            np.zeros(start.size),
            jac=True,
            method="L-BFGS-B",
            callback=self._count,
            options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0},
        )
        return best
