"""The printed form of a compression: size, error with its confidence interval and bandwidth, resolution, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reduset.certificate.certificate import ROUNDING, at_bandwidth, percent
from reduset.kernels import Kernel, RadialKernel
from reduset.mixture.component_mean import ComponentMean, SmallMean
from reduset.weights.kinds import DESCRIPTIONS, WEIGHTINGS

if TYPE_CHECKING:
    from reduset.certificate import Certificate
    from reduset.certificate.by_scale import MedianError
    from reduset.compression.certifying import Resolution
    from reduset.compression.result import Compression

MASS_ROUNDING = 1e-9
NEGLIGIBLE = 1e-5  # errors below this are printed as a bound
ABOVE = 1.005  # times the error of random rows, so that equal figures give no warning
INDENT = "\n              "  # of further lines of an entry


def of_result(result: Compression) -> list[str]:
    """The lines of a result."""
    n, m, piece = result.n_samples, result.size, noun(result.mean)
    ratio = f" ({n / m:,.0f}x)" if n >= 2 * m else ""
    errors = INDENT.join(error_lines(result.certificate, result.mean.kernel, result.resolved, result.near_median))
    lines = [f"Compression: {head(m, n, result.mean.dimension, piece)}{ratio}", f"error       {errors}"]
    if result.resolved is not None:
        lines.append(f"resolution  {resolution(result.resolved, m)}")
    lines.append(f"weights     {_weights(result)}")
    if not result.reached:
        lines.append(f"NOT REACHED: the goal needs more {piece}s than allowed; raise max_size")
    lines += [f"note        {note}" for note in result.notes]
    return lines


def noun(mean: SmallMean) -> str:
    """The name of what a small mean is made of."""
    return "component" if isinstance(mean, ComponentMean) else "atom"


def counted(number: int, thing: str) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def head(size: int, rows: int, columns: int, piece: str = "atom") -> str:
    """The size before and after: 200,000 rows × 3 columns -> 500 weighted atoms."""
    return f"{counted(rows, 'row')} × {counted(columns, 'column')} -> {counted(size, f'weighted {piece}')}"


def error_lines(certificate: Certificate, kernel: Kernel, resolved: Resolution | None, near: MedianError | None) -> list[str]:
    """The error at the bandwidth of the kernel and, if it is known, at the median distance."""
    lines = [f"{error(certificate)}, {scale(kernel, resolved)}"]
    if near is not None:
        lines.append(at_median(near))
    if certificate.relative_error > 1:
        lines.append("WORSE THAN THE ZERO FUNCTION, whose error is 100 %")
    return lines


def at_median(near: MedianError) -> str:
    """The error at the median distance, or at the nearest bandwidth at which it is measured."""
    text = f"{percent(near.relative_error)} at "
    if near.is_exact:
        return f"{text}the median distance, {near.distance:.3g}"
    return f"{text}bandwidth {near.bandwidth:.3g}, the nearest measured to the median distance, {near.distance:.3g}"


def above_random_rows(result: Compression) -> str | None:
    """The comparison with as many random rows of equal weight, if the error is certified to be above theirs; else None."""
    kernel, certificate, rows = result.mean.kernel, result.certificate, result._prefixes
    signed = rows.total > abs(rows.mass) * (1 + MASS_ROUNDING)  # then no rows of equal weight stand for all
    if not result.has_profile or not isinstance(kernel, RadialKernel) or signed:
        return None
    few = np.sqrt(result.n_samples / max(result.n_samples - 1, 1))  # rows drawn without replacement
    random = float(result.profile(kernel.width).random_rows[0]) * few
    if not 0 < ABOVE * random < certificate.interval[0]:
        return None
    return (
        f"the error of {percent(certificate.relative_error)}{at_bandwidth(certificate.bandwidth)} is above that of "
        f"{counted(result.size, 'random row')}, {percent(random)}"
    )


def better_weights(kind: str) -> str:
    """The weights of a smaller error, as a recommendation."""
    if WEIGHTINGS[kind].finish is None:
        return "raise size or the bandwidth"
    return f"use weights='simplex', the best non-negative ones, or leave out weights (got {kind!r})"


def error(certificate: Certificate) -> str:
    """The measured error with its confidence interval."""
    low, high = certificate.interval
    if high < NEGLIGIBLE:
        return f"below {percent(NEGLIGIBLE)}"
    if certificate.method != "exact":
        interval = f"({certificate.confidence:.0%} CI {percent(low)[:-2]}-{percent(high)})"
        return f"{percent(certificate.relative_error)}  {interval.replace('%', ' %', 1)}"
    rounded = high - low > ROUNDING * high
    return percent(certificate.relative_error) + (f"  (rounding: {percent(low)[:-2]}-{percent(high)})" if rounded else "  (exact)")


def scale(kernel: Kernel, resolved: Resolution | None) -> str:
    """The scales at which an error holds."""
    if resolved is not None:
        return "at the resolution and all coarser scales"
    if not isinstance(kernel, RadialKernel):
        return f"with {kernel!r}"
    units = "" if kernel.is_isotropic else ", in units of the columns' scales"
    return f"at bandwidth {kernel.width:.3g} ({type(kernel).__name__}{units})"


def resolution(resolved: Resolution, size: int) -> str:
    """The smallest bandwidth within the tolerance, compared with the median distance and with random rows."""
    ratio = resolved.median / resolved.bandwidth
    text = f"{resolved.bandwidth:.3g} = median distance {f'/ {ratio:.3g}' if ratio >= 1 else f'× {1 / ratio:.3g}'}"
    if resolved.by_noise:
        return f"{text}; at finer scales the sampling error of the rows exceeds {percent(resolved.tol)}"
    if resolved.alone:
        return f"{text}; at all finer scales too, since distinct rows do not overlap there"
    rows = counted(size, "random row")
    if resolved.random_rows is None:
        return f"{text}   ({rows}: above {percent(resolved.tol)} at every bandwidth)"
    return f"{text}   ({rows}: {resolved.random_rows:.3g})"


def _weights(result: Compression) -> str:
    """The kind of the weights, their sum and their signs."""
    kind = result.weighting.removesuffix(" by group")
    negative, total = result.certificate.negative_mass, float(result.mean.weights.sum())
    sign = f"signed, {percent(negative)} negative" if negative > 0 else "non-negative"
    described = result.weighting if result.weighting == "simplex" else f"{result.weighting}: {DESCRIPTIONS[kind]}"
    lines = [f"{sign}, sum {total:.4g} ({described})"]
    if len(result.dropped):
        lines.append(f"{counted(len(result.dropped), f'more {noun(result.mean)}')} omitted as redundant at this bandwidth")
    if result._asked is not None and result.selected < result._asked:
        lines.append(f"{result.selected:,} of the {result._asked:,} atoms asked for: more are redundant at this bandwidth")
    if result.selected > result.size:
        lines.append(f"{counted(result.selected - result.size, f'more {noun(result.mean)}')} omitted with weight 0")
    return INDENT.join(lines)
