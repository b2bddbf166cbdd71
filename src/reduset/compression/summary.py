"""The printed form of a compression: size, error with its confidence interval and bandwidth, resolution, weights."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from reduset._describe import Description, Row, counted, percent, significant
from reduset.certificate import ROUNDING
from reduset.kernels import FunctionKernel, Kernel, RadialKernel
from reduset.mixture import ComponentMean, SmallMean
from reduset.weights import WEIGHTINGS, description_of

if TYPE_CHECKING:
    from reduset.certificate import Certificate, MedianError
    from reduset.compression.result import Compression
    from reduset.compression.stages import Resolution

NEGLIGIBLE = 1e-5  # errors below this are printed as a bound


def describe(result: Compression) -> Description:
    """Size, error, resolution and weights of a compression."""
    n, m, piece = result.n_samples, result.size, noun(result.mean)
    certificate, near, groups = result.certificate, result.near_median, proportions(result)
    ratio = f" ({n / m:,.0f}x)" if n >= 2 * m else ""
    kernel = result.mean.kernel
    is_stored = not isinstance(kernel, FunctionKernel) or isinstance(kernel.function, str)
    rows = [
        Row("", facts={"n": n, "size": m, "pieces": f"{piece}s", "kernel": kernel.to_dict() if is_stored else repr(kernel)}),
        Row(
            "error",
            error_lines(certificate, kernel, result.resolved, near),
            "‖f − f_m‖ / ‖f‖, the distance of the two functions relative to the norm of the full one.",
            {
                "relative_error": certificate.relative_error,
                "interval": certificate.interval,
                "confidence": certificate.confidence,
                "near_median": None if near is None else asdict(near),
                "bound": certificate.bound,
                "norm": certificate.norm,
                "reached": result.reached,
            },
        ),
        Row(
            "resolution",
            "" if result.resolved is None else at_resolution(result.resolved, m),
            "The smallest bandwidth at which the error is within the tolerance, there and at all larger bandwidths.",
            {"resolution": result.resolution},
        ),
        Row(
            "weights",
            _weights(result),
            "The weights of the terms of the small function.",
            {
                "selection": result.selection,
                "weights": result.weighting,
                "carrying_weight": int((result.mean.weights != 0).sum()),
                "negative_mass": certificate.negative_mass,
            },
        ),
        Row("", facts={"shares": groups, "seconds": result.timings}),
    ]
    if not result.reached:
        rows.append(Row("NOT REACHED", f"the goal needs more {piece}s than allowed; raise max_size"))
    rows += [Row("note", note) for note in result.notes]
    return Description(f"Compression: {head(m, n, result.mean.dimension, piece)}{ratio}", tuple(rows))


def proportions(result: Compression) -> dict[str, float] | None:
    """The proportion of the weight of each group; None without groups."""
    if result.groups is None:
        return None
    weights, total = result.mean.weights, result.mean.mass
    return {str(name): float(weights[result.groups == name].sum()) / total for name in sorted(set(result.groups.tolist()))}


def noun(mean: SmallMean) -> str:
    """The name of the terms of a small mean."""
    return "component" if isinstance(mean, ComponentMean) else "atom"


def head(size: int, rows: int, columns: int, piece: str = "atom") -> str:
    """The size before and after: 200,000 rows × 3 columns -> 500 weighted atoms."""
    return f"{counted(rows, 'row')} × {counted(columns, 'column')} -> {counted(size, f'weighted {piece}')}"


def error_lines(certificate: Certificate, kernel: Kernel, resolved: Resolution | None, near: MedianError | None) -> list[str]:
    """The error at the bandwidth of the kernel and, if it is known, at the median distance."""
    lines = [f"{error_text(certificate)}, {scale(kernel, resolved)}"]
    if near is not None:
        lines.append(at_median(near))
    if certificate.relative_error > 1:
        lines.append("WORSE THAN THE ZERO FUNCTION, whose error is 100 %")
    return lines


def at_median(near: MedianError) -> str:
    """The error at the median distance, or at the nearest bandwidth at which it is measured."""
    text = f"{percent(near.relative_error)} at "
    distance = significant(near.distance)
    if near.is_exact:
        return f"{text}the median distance, {distance}"
    return f"{text}bandwidth {significant(near.bandwidth)}, the nearest measured to the median distance, {distance}"


def better_weights(kind: str) -> str:
    """A recommendation of weights with a smaller error."""
    if WEIGHTINGS[kind].optimal:
        return "raise size or the bandwidth"
    return f"use weights='simplex', the best non-negative ones, or omit weights (got {kind!r})"


def error_text(certificate: Certificate) -> str:
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
    return f"at bandwidth {significant(kernel.width)} ({type(kernel).__name__}{units})"


def at_resolution(resolved: Resolution, size: int) -> str:
    """The smallest bandwidth within the tolerance, compared with the median distance and with random rows."""
    ratio = resolved.median / resolved.bandwidth
    text = f"{significant(resolved.bandwidth)} = median distance {f'/ {ratio:.3g}' if ratio >= 1 else f'× {1 / ratio:.3g}'}"
    if resolved.by_noise:
        return f"{text}; at finer scales the sampling error of the rows exceeds {percent(resolved.tol)}"
    if resolved.alone:
        return f"{text}; at all finer scales too, since distinct rows do not overlap there"
    rows = counted(size, "random row")
    if resolved.random_rows is None:
        return f"{text}   ({rows}: above {percent(resolved.tol)} at every bandwidth)"
    return f"{text}   ({rows}: {significant(resolved.random_rows)})"


def _weights(result: Compression) -> list[str]:
    """The kind of the weights, their sum and their signs."""
    kind = result.weighting.removesuffix(" by group")
    negative, total = result.certificate.negative_mass, float(result.mean.weights.sum())
    sign = f"signed, {percent(negative)} negative" if negative > 0 else "non-negative"
    described = result.weighting if result.weighting == "simplex" else f"{result.weighting}: {description_of(kind)}"
    lines = [f"{sign}, sum {total:.4g} ({described})"]
    if len(result.dropped):
        lines.append(f"{counted(len(result.dropped), f'more {noun(result.mean)}')} omitted as redundant at this bandwidth")
    if result.selected > result.size:
        lines.append(f"{counted(result.selected - result.size, f'more {noun(result.mean)}')} omitted with weight 0")
    return lines
