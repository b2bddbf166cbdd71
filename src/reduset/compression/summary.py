"""A result in a few lines, for people who never heard of a kernel: how many of how many, what was lost and how sure that is, how
fine the look was, and what carries weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reduset.certificate.certificate import ROUNDING, percent
from reduset.kernels import Kernel, RadialKernel
from reduset.mixture.component_mean import ComponentMean, SmallMean

if TYPE_CHECKING:
    from reduset.certificate import Certificate
    from reduset.compression.resolution import Resolution
    from reduset.compression.result import Compression

COVERING = ("Balanced",)  # selections that promise to be near every row
NEXT_TO_NOTHING = 1e-5  # as a share, below which digits are of no use to anybody
WEIGHTS = {
    "free": "the best of either sign",
    "sum_to_one": "the best that add up to the rows' weight",
    "clipped": "none negative",
    "simplex_projection": "none negative",
    "simplex": "none negative",
    "counts": "each what its nearest rows weigh",
    "own": "those of the selection",
}


def of_result(result: Compression) -> list[str]:
    """The lines of a result."""
    n, m, piece = result.n_samples, result.size, noun(result.mean)
    share = f", 1 in {n / m:,.0f}" if n >= 2 * m else ""
    lines = [
        f"{head(m, n, result.mean.dimension, piece)}{share}",
        f"lost       {lost(result.certificate)}",
        f"how fine   {fineness(result.mean.kernel) if result.resolved is None else resolved(result.resolved, m)}",
        f"weights    {_weights(result)}",
    ]
    if result.selection in COVERING and result.certificate.radius is not None:
        lines.insert(2, f"rare       {covering(result.certificate.radius, result.mean.kernel)}")
    if not result.reached:
        lines.append(f"NOT REACHED: what was asked for takes more {piece}s than allowed; see max_size")
    return lines


def covering(radius: float, kernel: Kernel) -> str:
    """How far any row is from the nearest piece."""
    units = "" if getattr(kernel, "unit_covariance", None) is None else ", in spreads of the columns"
    return f"every row is within {radius:.3g} of one of them{units}"


def noun(mean: SmallMean) -> str:
    """What a small mean is made of."""
    return "component" if isinstance(mean, ComponentMean) else "atom"


def head(size: int, rows: int, columns: int, piece: str = "atom") -> str:
    """How many of how many."""

    def counted(number: int, thing: str) -> str:
        return f"{number:,} {thing}{'' if number == 1 else 's'}"

    return f"{counted(size, f'weighted {piece}')} for {counted(rows, 'row')} of {counted(columns, 'column')}"


def lost(certificate: Certificate) -> str:
    """The measured error, and how sure it is."""
    low, high = certificate.interval
    if high < NEXT_TO_NOTHING:
        return f"less than {percent(NEXT_TO_NOTHING)}"
    text = percent(certificate.relative_error)
    if certificate.method == "exact":
        apart = high - low > ROUNDING * high
        text += f", between {percent(low)} and {percent(high)} by the rounding of coordinates" if apart else ", computed exactly"
    else:
        text += f", with {certificate.confidence:.0%} confidence between {percent(low)} and {percent(high)}"
    if certificate.relative_error > 1:
        text += "; WORSE THAN NOTHING: no atoms at all would be nearer to the rows"
    return text


def fineness(kernel: Kernel) -> str:
    """The scale at which rows and atoms were compared: finer differences are not in the figure."""
    if not isinstance(kernel, RadialKernel):
        return f"as {kernel!r} sees the rows"
    units = "" if kernel.unit_covariance is None else " spreads of the columns"
    return f"compared at distances of {kernel.width:.3g}{units} and more ({type(kernel).__name__}), not below"


def resolved(found: Resolution, size: int) -> str:
    """How small a detail is kept within the tolerance, beside what as many random rows would keep."""
    text = f"details of {found.bandwidth:.3g} and more"
    share = found.median / found.bandwidth
    text += f", {f'1/{share:.3g} of' if share >= 1 else f'{1 / share:.3g} times'} the median distance,"
    text += f" are within {percent(found.tol)}"
    if found.by_noise:
        return f"{text}; finer ones are noise: so few rows are off their law by more"
    if found.alone:
        return f"{text}, and so are all finer ones: there, rows that differ stand alone"
    rows = f"{size:,} random row{'' if size == 1 else 's'}"
    if found.random_rows is None:
        return f"{text}; {rows} lose more at all scales"
    return f"{text}; {rows} would be down to {found.random_rows:.3g}"


def _weights(result: Compression) -> str:
    """What kind they are, and one more line for each thing to know of them."""
    kind = result.weighting.removesuffix(" by group")
    words = [f"{result.weighting}: {WEIGHTS[kind]}"]
    negative = result.certificate.negative_mass
    if negative > 0:
        words.append(f"{percent(negative)} of them negative, so that sums over a part of the rows are not its share")
    if len(result.dropped):
        words.append(f"{len(result.dropped):,} more {noun(result.mean)}s were like others to rounding at this scale and left out")
    if result.selected > result.size:
        words.append(f"{result.selected - result.size:,} more {noun(result.mean)}s got none and are left out")
    return "\n             ".join(words)
