"""The plan of a compression. Only this module resolves defaults and "auto".

Two of size, tolerance and bandwidth determine the third:

given
    The kernel has a bandwidth. ``size`` determines the error, and ``tol`` the size. ``plateau`` is the rule of the 2017 paper.
resolution
    The bandwidth is the finest at which ``size`` atoms have an error of at most ``tol``, there and at coarser scales.
noise
    With ``tol`` alone, the bandwidth is the scale at which the sampling error of the rows equals ``tol``.

`DEFAULTS` has the selection, the weighting and the largest size for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from reduset import _validate
from reduset._describe import percent
from reduset._engine import in_memory
from reduset._messages import REAL_ROWS
from reduset._types import KernelLike, SelectorLike
from reduset.certificate import METHODS, planned_method, require_norm
from reduset.kernels import ANY_FAMILY, FAMILIES, Gaussian, RadialKernel
from reduset.mean import KernelMean
from reduset.select import KMEANS_ROWS, KMeans, Selector, as_selector, with_own_weights
from reduset.weights import HINTS, OWN, WEIGHTINGS, description_of, is_signed, require_mass

ATOMS, COMPONENTS = PIECES = ("atoms", "components")
PIECE_HINTS = {"rows": f"; {REAL_ROWS}"}
GIVEN, RESOLUTION, NOISE = "given", "resolution", "noise"
SIZE, TOL, MOST_ATOMS = 1000, 0.05, 5000
SIZE_HINT = "it is at most the number of points"
MAX_COMPONENTS = 500
MAX_COMPONENT_COLUMNS = 64  # each component has a covariance of d(d + 1)/2 numbers
BY_SELECTOR, BY_SCALES, FITTED = "selector", "scales", "fitted"
SQUARE_ROOT = "square root"  # the default rule for the sizes of groups


@dataclass(frozen=True)
class Defaults:
    """The default options.

    Attributes
    ----------
    choice : "selector", "scales" or "fitted"
        How atoms for a search over bandwidths are chosen. "scales" chooses k-means centres or thinned rows by their errors at all
        scales. "fitted" fits components.
    selector : Selector for "auto" at one bandwidth. None keeps `Auto`, the best of several.
    weighting, moved_weighting : Kinds of weights, for atoms that stay and for atoms that ``refine`` moves.
    most : Largest size if a tolerance determines it.
    """

    choice: str
    selector: Selector | None
    weighting: str
    moved_weighting: str
    most: int


# free weights are the best at one bandwidth, and weights on the simplex are good at fine and coarse scales
DEFAULTS = {
    (GIVEN, ATOMS): Defaults(BY_SELECTOR, None, "free", "free", MOST_ATOMS),
    (RESOLUTION, ATOMS): Defaults(BY_SCALES, None, "simplex", "sum_to_one", MOST_ATOMS),
    # k-means, since other selectors have smaller errors at one scale and larger errors at coarser scales
    (NOISE, ATOMS): Defaults(BY_SCALES, KMeans(rows=KMEANS_ROWS), "simplex", "sum_to_one", SIZE),
    (GIVEN, COMPONENTS): Defaults(FITTED, None, "simplex", "sum_to_one", MAX_COMPONENTS),
    (RESOLUTION, COMPONENTS): Defaults(FITTED, None, "simplex", "sum_to_one", MOST_ATOMS),
    (NOISE, COMPONENTS): Defaults(FITTED, None, "simplex", "sum_to_one", MAX_COMPONENTS),
}


@dataclass(frozen=True)
class Plan:
    """All decisions of a compression, with every default resolved.

    Attributes
    ----------
    bandwidth : "given", "resolution" or "noise"
    pieces : "atoms" or "components"
    choice : "selector", "scales" or "fitted", as in `Defaults`
    selector : Selector of the atoms.
    weighting : Kind of the weights.
    scale_robust : Whether weights change if random rows are better at a finer scale; only if ``weights`` was not set.
    size, tol, plateau : Goals, None if not set. A selector may end by itself without a goal.
    most : Largest number of atoms.
    steps : Steps that move the atoms. None does not move them, and 0 uses the time that is allowed.
    confidence : Level of the certificate's interval.
    measurement : "exact", "frequencies" or "rows": how the error is measured
    """

    bandwidth: str
    pieces: str
    choice: str
    selector: Selector
    weighting: str
    scale_robust: bool
    size: int | None
    tol: float | None
    plateau: float | None
    most: int
    steps: int | None
    confidence: float
    measurement: str

    @property
    def goal(self) -> str:
        """The goal as an argument, such as "tol=0.01"; empty if the selector decides."""
        searched = self.bandwidth != GIVEN
        named = {"tol": self.tol} if searched else {"size": self.size, "tol": self.tol, "plateau": self.plateau}
        return next((f"{name}={value}" for name, value in named.items() if value is not None), "")

    @property
    def name(self) -> str:
        """The name of the selection, for results."""
        return FITTED if self.choice == FITTED else str(self.selector)

    def for_group(self, part: KernelMean, size: int | None, groups: int) -> Self:
        """The plan for one of several groups of rows, at the bandwidth of its mean."""
        require_norm(part)
        weighting = "sum_to_one" if self.weighting == "free" else self.weighting
        if weighting != OWN and not is_signed(weighting):
            require_mass(weighting, part.mass)
        return replace(
            self,
            bandwidth=GIVEN,
            choice=BY_SELECTOR,
            selector=self.selector.for_part_of(groups),
            weighting=weighting,
            scale_robust=False,
            size=size,
            tol=self.tol if size is None else None,
            most=min(self.most, part.size) if size is None else size,
            measurement=planned_method(part),
        )

    def lines(self) -> list[str]:
        """The plan as text, one line for each decision."""
        chosen = str(self.selector)
        if self.choice == FITTED:
            chosen = "components fitted by L-BFGS"
        elif self.choice == BY_SCALES and self.bandwidth == RESOLUTION:
            chosen = "KMeans or Thinning, by their errors at all scales"
        weights = f"{self.weighting}: {description_of(self.weighting)}"
        tolerance = "" if self.tol is None else percent(self.tol)
        most = f"at most {self.most:,} {self.pieces}"
        bandwidth = {
            GIVEN: "as given",
            RESOLUTION: f"the finest with an error of at most {tolerance}",
            NOISE: f"where the sampling error of the rows is {tolerance}",
        }[self.bandwidth]
        if self.size is not None:
            stop = f"at {self.size:,} {self.pieces}"
        elif self.tol is not None:
            stop = f"at an error of at most {tolerance}, {most}"
        elif self.plateau is not None:
            stop = f"at an atom that adds at most {self.plateau:g} of the energy so far, {most}"
        else:
            stop = f"where the selector ends, {most}"
        moved = {None: "no", 0: "as many steps as take about a second"}.get(self.steps, f"at most {self.steps} steps")
        entries = {"select": chosen, "weigh": weights, "bandwidth": bandwidth, "stop": stop, "measure": METHODS[self.measurement]}
        if self.steps is not None:
            entries["move"] = moved
        return [f"{label:<10} {text}" for label, text in entries.items()]


def is_left_open(kernel: KernelLike) -> bool:
    """Whether a kernel has a bandwidth that is not set."""
    named = isinstance(kernel, str) and kernel in FAMILIES
    return kernel is None or named or (isinstance(kernel, RadialKernel) and kernel.bandwidth is None)


def plan_of(
    full: KernelMean,
    is_open: bool,
    *,
    size: int | None = None,
    tol: float | None = None,
    plateau: float | None = None,
    max_size: int | None = None,
    pieces: str = ATOMS,
    select: SelectorLike = "auto",
    refine: bool | int = False,
    weights: str | None = None,
    grouped: bool = False,
    confidence: float = 0.95,
) -> Plan:
    """The plan for a mean. ``is_open`` means that its bandwidth is searched for. Raises for options that exclude each other."""
    if full.stored_weights.min() < 0:
        require_norm(full)
    full.kernel.log_energy(full.dimension)  # raises for a kernel that is not a density or not in L2
    _validate.one_of(pieces, "pieces", PIECES, PIECE_HINTS)
    selector = as_selector(select)
    ends_itself = plateau is not None or (selector.ending and size is None and tol is None)
    bandwidth = GIVEN if ends_itself or not is_open else NOISE if size is None and tol is not None else RESOLUTION
    defaults = DEFAULTS[bandwidth, pieces]
    if not ends_itself and not is_open and not selector.ending:
        _require_two_of_three(full, size, tol)
    if bandwidth == RESOLUTION:
        if max_size is not None:
            raise ValueError(
                f"max_size needs tol or plateau alone, got it with size={size!r}; omit it, since size sets the number of atoms"
            )
        size = min(SIZE, full.size) if size is None else _validate.whole(size, "size", 1, full.size, SIZE_HINT)
        tol, most = TOL if tol is None else _validate.tolerance(tol), min(MOST_ATOMS, full.size)
    else:
        default_most = MOST_ATOMS if grouped else defaults.most
        size, tol, plateau, most = _one_goal(full.size, selector.ending, default_most, max_size, size, tol, plateau)
    default_weighting = defaults.weighting if refine is False else defaults.moved_weighting
    weighting = _validate.one_of(default_weighting if weights is None else weights, "weights", (*WEIGHTINGS, OWN), HINTS)
    if weighting == OWN and not selector.weighs:
        raise ValueError(
            f"weights='own' needs a selector that has weights ({with_own_weights()}), got {selector}; use weights='free'"
        )
    if weighting != OWN and not WEIGHTINGS[weighting].signed:
        require_mass(weighting, full.mass)
    choice = BY_SELECTOR
    if pieces == COMPONENTS:
        _require_components(full, selector, refine, plateau, grouped)
    if selector.automatic:
        choice = defaults.choice
        if defaults.selector is not None and not grouped:  # each group has its own plan, at one bandwidth
            selector = defaults.selector
    steps = None if refine is False or pieces == COMPONENTS else _steps(refine, weighting, full)
    confidence = _validate.confidence(confidence)
    robust = weights is None and weighting == "simplex" and steps is None and pieces == ATOMS
    goals = (size, tol, plateau, most)
    measurement = planned_method(full)
    return Plan(bandwidth, pieces, choice, selector, weighting, robust, *goals, steps, confidence, measurement)


def _require_two_of_three(full: KernelMean, size: int | None, tol: float | None) -> None:
    """Raise if both of size and tol are given with a bandwidth, or none."""
    if (size is None) == (tol is None):
        given = "give size or tol" if size is None else f"omit one of size={size!r} and tol={tol!r}"
        rule = "two of size (a number of atoms), tol (a relative error) and the kernel's bandwidth determine the third"
        if not isinstance(full.kernel, RadialKernel):
            raise ValueError(f"{rule}: {full.kernel!r} has no bandwidth to search for, so {given}")
        raise ValueError(f"{rule}: {full.kernel!r} has a bandwidth, so {given}, or give points without a kernel")


def _one_goal(
    n: int, ending: bool, default: int, max_size: int | None, size: int | None, tol: float | None, plateau: float | None
) -> tuple[int | None, float | None, float | None, int]:
    """Check size, tolerance, plateau and the largest size. There is exactly one goal, or none if the selector ends by itself."""
    given = {name: goal for name, goal in (("size", size), ("tol", tol), ("plateau", plateau)) if goal is not None}
    if len(given) > 1 or (not given and not ending):
        raise ValueError(
            "give exactly one of size (a number of atoms), tol (a relative error) and plateau (the ε rule); "
            f"got {' and '.join(given) or 'none'}"
        )
    if size is not None:
        size = _validate.whole(size, "size", 1, n, SIZE_HINT)
        if max_size is not None:
            raise ValueError("max_size needs tol or plateau, got it with size; omit it")
        return size, None, None, size
    default = MOST_ATOMS if plateau is not None else default
    most = min(n, default) if max_size is None else _validate.whole(max_size, "max_size", 1, n)
    tol = None if tol is None else _validate.tolerance(tol, "tol")
    plateau = None if plateau is None else _validate.tolerance(plateau, "plateau")
    return None, tol, plateau, most


def _require_components(full: KernelMean, selector: Selector, refine: bool | int, plateau: float | None, grouped: bool) -> None:
    """Raise for options and means that components do not support."""
    if not in_memory(full.atoms):
        raise TypeError("pieces='components' needs X in main memory; load it (X.get(), or reduset.io.read), or use pieces='atoms'")
    if not isinstance(full.kernel, Gaussian):
        raise TypeError(f"pieces='components' needs a Gaussian kernel, got {full.kernel!r}; use Gaussian(h), or pieces='atoms'")
    if full.dimension > MAX_COMPONENT_COLUMNS:
        raise ValueError(
            f"pieces='components' takes up to {MAX_COMPONENT_COLUMNS} columns, since each component has a covariance matrix, got "
            f"{full.dimension}; use pieces='atoms', or principal components"
        )
    if full.stored_weights.min() < 0:
        raise ValueError(
            f"pieces='components' needs non-negative weights, got one of {full.weights.min():.3g}; use pieces='atoms', or "
            "simplify(mean, size)"
        )
    options = {"select": not selector.automatic, "refine": refine is not False, "plateau": plateau is not None, "groups": grouped}
    for name, is_given in options.items():
        if is_given:
            raise ValueError(f"{name} is not supported with pieces='components'; omit one of them")


def _steps(refine: Any, kind: str, full: KernelMean) -> int | None:
    """The number of steps that move the atoms: None for none, 0 to use the time that is allowed."""
    if not isinstance(refine, bool | np.bool_ | int | np.integer):
        raise TypeError(f"refine must be True, False or a number of steps, got {refine!r}")
    if refine is np.False_:
        return None
    if kind == OWN:
        raise ValueError("weights='own' needs unmoved atoms, and refine moves them; use weights='free'")
    if not isinstance(full.kernel, RadialKernel):
        raise TypeError(f"refine needs a kernel with a gradient, {full.kernel!r} has none; use {ANY_FAMILY}")
    if isinstance(refine, bool | np.bool_):
        return 0
    return _validate.whole(refine, "refine", 1, None, "it is a number of steps, or True or False")
