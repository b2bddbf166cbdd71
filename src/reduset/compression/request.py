"""What was asked of `compress`, checked: which of size, tolerance and bandwidth are given, and of what the result is to be made.

Two of the three give the third. With a kernel, ``size`` gives the error and ``tol`` the size. Where its bandwidth is left open,
``size`` and ``tol`` give the resolution (``tol`` is 5 % where it is not said), and ``tol`` alone the scale at which the sample's
own noise is so large (`noise_scale`), and the size there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import on_device
from reduset._messages import REAL_ROWS
from reduset._types import KernelLike, SelectorLike
from reduset.compression import resolution, sizing
from reduset.compression.sizing import SizeGoal
from reduset.kernels import ANY_FAMILY, FAMILIES, Gaussian, RadialKernel
from reduset.mean import KernelMean
from reduset.mixture.component_mean import as_density
from reduset.select import Auto, Selector, as_selector, with_own_weights
from reduset.weights import KINDS
from reduset.weights.kinds import HINTS, OWN, SIGNED
from reduset.weights.simplex import require_mass

ATOMS, COMPONENTS = PIECES = ("atoms", "components")
PIECE_HINTS = {"rows": f"; {REAL_ROWS}"}
RESOLUTION, NOISE, GIVEN = "resolution", "noise", "given"  # where the bandwidth comes from
MOST_OPEN = resolution.SIZE  # atoms, where tol alone is given and decides both scale and size
MOST_COMPONENTS = 500  # where a tolerance decides how many
MOST_COLUMNS = 64  # of components, each of which has a covariance of d(d + 1)/2 numbers


@dataclass(frozen=True)
class Request:
    """A compression to be made.

    Attributes
    ----------
    full : the mean; where the bandwidth is open, with that of the median distance
    scale : where the bandwidth comes from: "resolution", "noise" or "given"
    size, tol : as given or by default
    goal : how many pieces, at one bandwidth
    pieces : "atoms" or "components"
    kind : of the weights
    steps : to move the atoms by: None for none, 0 where it is left to the time they take
    steady : whether weights may give way where random rows would be better at a finer scale: where nobody chose them
    """

    full: KernelMean
    scale: str
    size: int | None
    tol: float | None
    goal: SizeGoal
    pieces: str
    selector: Selector
    kind: str
    steps: int | None
    steady: bool
    confidence: float

    @property
    def searches(self) -> tuple[int, float]:
        """Size and tolerance of a search for the resolution."""
        if self.size is None or self.tol is None:
            raise RuntimeError("no search for a resolution was asked for")
        return self.size, self.tol


def is_left_open(kernel: KernelLike) -> bool:
    """Whether a kernel has a bandwidth that nobody has given."""
    named = isinstance(kernel, str) and kernel in FAMILIES
    return kernel is None or named or (isinstance(kernel, RadialKernel) and kernel.bandwidth is None)


def checked(
    full: KernelMean,
    is_open: bool,
    *,
    size: int | None,
    tol: float | None,
    plateau: float | None,
    max_size: int | None,
    pieces: str,
    select: SelectorLike,
    refine: bool | int,
    weights: str | None,
    groups: Any,
    confidence: float,
) -> Request:
    """The request, or an error that names what does not go together."""
    _validate.one_of(pieces, "pieces", PIECES, PIECE_HINTS)
    selector = as_selector(select)
    own_end = plateau is not None or (selector.ending and size is None and tol is None)
    scale = GIVEN if own_end or not is_open else NOISE if size is None and tol is not None else RESOLUTION
    if not own_end and not is_open and not selector.ending:
        resolution.require_two_of_three(full, size, tol)
    if scale == RESOLUTION:
        if max_size is not None:
            raise ValueError(
                f"max_size goes with tol or plateau alone, got it with size={size!r}; size is how many atoms there are"
            )
        size, tol = resolution.by_default(full, size, tol)
    elif max_size is None and size is None and plateau is None:
        most = MOST_COMPONENTS if pieces == COMPONENTS else MOST_OPEN if scale == NOISE else None
        max_size = None if most is None else min(most, full.size)
    at_one = None if scale == RESOLUTION else size
    goal = sizing.asked_for(full.size, selector.ending, max_size, size=at_one, tol=tol, plateau=plateau)
    seen_at_all_scales = scale != GIVEN or pieces == COMPONENTS
    kind = _kind(_default_kind(seen_at_all_scales, refine) if weights is None else weights, selector, full)
    if pieces == COMPONENTS:
        _require_components(full, selector, refine, plateau, groups)
        full = as_density(full)  # so that norms are told as those of the result
    steps = None if pieces == COMPONENTS else _steps(refine, kind, full)
    return Request(full, scale, size, tol, goal, pieces, selector, kind, steps, weights is None, _validate.confidence(confidence))


def _default_kind(at_all_scales: bool, refine: bool | int) -> str:
    """Weights that fine and coarse scales bear alike, or the best at one of them."""
    return "free" if not at_all_scales else "simplex" if refine is False else "sum_to_one"


def _require_components(full: KernelMean, selector: Selector, refine: bool | int, plateau: float | None, groups: Any) -> None:
    """Refuse what components do not have."""
    if on_device(full.atoms):
        raise TypeError(
            "pieces='components' are fitted on the processor; bring X over (X.get(), or X.cpu()), or use pieces='atoms'"
        )
    if not isinstance(full.kernel, Gaussian):
        raise TypeError(f"pieces='components' needs a Gaussian kernel, got {full.kernel!r}; use Gaussian(h), or pieces='atoms'")
    if full.dimension > MOST_COLUMNS:
        raise ValueError(
            f"pieces='components' takes up to {MOST_COLUMNS} columns, since each component has a covariance of its own, got "
            f"{full.dimension}; use pieces='atoms', or fewer columns (their principal components)"
        )
    if full.stored_weights.min() < 0:
        raise ValueError(
            f"pieces='components' are a density, and need weights that are not negative, got one of {full.weights.min():.3g}; use "
            "pieces='atoms', or simplify(mean, size)"
        )
    for name, given in (("select", not isinstance(selector, Auto)), ("refine", refine is not False)):
        if given:
            raise ValueError(f"{name} chooses or moves atoms, pieces='components' are fitted by themselves; leave one of them out")
    for name, given in (("plateau", plateau is not None), ("groups", groups is not None)):
        if given:
            raise ValueError(f"{name} goes with atoms, not with pieces='components'; leave one of them out")


def _kind(weights: str, selector: Selector, full: KernelMean) -> str:
    """The kind of weights, where the selector and the mean have such."""
    kind = _validate.one_of(weights, "weights", (*KINDS, OWN), HINTS)
    if kind == OWN and not selector.weighs:
        raise ValueError(
            f"weights='own' are the selector's own, and {selector} has none ({with_own_weights()} do); use weights='free'"
        )
    if kind not in (*SIGNED, OWN):
        require_mass(kind, full.mass)
    return kind


def _steps(refine: Any, kind: str, full: KernelMean) -> int | None:
    """The number of steps to move the atoms by: None for none, 0 where it is left to the time they take."""
    if not isinstance(refine, bool | np.bool_ | int | np.integer):
        raise TypeError(f"refine must be True, False or a number of steps, got {refine!r}")
    if refine is False or refine is np.False_:
        return None
    if kind == OWN:
        raise ValueError("weights='own' belong to the atoms as they were selected, refine moves them; use weights='free'")
    if not isinstance(full.kernel, RadialKernel):
        raise TypeError(f"refine needs a kernel with a gradient, {full.kernel!r} has none; use {ANY_FAMILY}")
    if isinstance(refine, bool | np.bool_):
        return 0
    return _validate.whole(refine, "refine", 1, None, "it is a number of steps, or True or False")
