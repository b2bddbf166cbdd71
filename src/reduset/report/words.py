"""What the figures mean, in words for people who never heard of a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset.certificate import Certificate
from reduset.certificate.by_scale import MedianError
from reduset.certificate.certificate import DENSITY_ROWS, NO_THEOREM, at_bandwidth
from reduset.compression import Resolution, at_resolution
from reduset.kernels import Gaussian
from reduset.report.figures import ROUNDING, PathFigure, ProfileFigure

SPACE = "\N{NO-BREAK SPACE}"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
RAREST = 1e-6  # p-value that is told apart from smaller ones
MEASURED = {
    "exact": "computed exactly, from every pair of rows",
    "frequencies": "measured with random Fourier features over all rows",
    "rows": "measured on a sample of rows",
}


@dataclass(frozen=True)
class Card:
    """One figure at the head of a report: what it is, the figure, and what it means."""

    title: str
    figure: str
    meaning: str


def percent(share: float) -> str:
    """Three digits: 1.23 %, 1,690 %, 2.5 × 10⁻⁷ %; a dash for what is not known."""
    if not np.isfinite(share):
        return "—"
    digits = f"{100 * share:.3g}"
    mantissa, _, power = digits.partition("e")
    if 0 < abs(100 * share) < 1e-4:
        digits = f"{mantissa}{SPACE}×{SPACE}10{str(int(power)).translate(RAISED)}"
    elif power:
        digits = f"{float(digits):,.0f}"
    return f"{digits}{SPACE}%"


def confidence(certificate: Certificate) -> str:
    """95 %."""
    return percent(certificate.confidence)


def p_told(p_value: float, name: str = "p") -> str:
    """Two digits, and no more zeros than anybody can tell apart."""
    if p_value < RAREST:
        return f"{name}{SPACE}<{SPACE}10⁻⁶".strip()
    return f"{name}{SPACE}={SPACE}{p_value:.2g}" if name else f"{p_value:.2g}"


def count(number: float, thing: str = "") -> str:
    """With commas, and a plural: 1,000 atoms."""
    text = f"{round(number):,}"
    return f"{text} {thing}{'' if round(number) == 1 else 's'}" if thing else text


def shortened(text: str, most: int = 32) -> str:
    """A name that is too long, without its middle: names that begin alike often differ at the end."""
    if len(text) <= most:
        return text
    last = (most - 1) // 2
    return text[: most - 1 - last] + "…" + text[len(text) - last :]


def figures(number: float) -> str:
    """Three digits: 24,600."""
    return f"{float(f'{number:.3g}'):,g}"


def roughly(number: float) -> str:
    """Two digits: 57,000."""
    if number < 10:
        return f"{number:.2g}"
    scale = 10 ** max(int(np.floor(np.log10(number))) - 1, 0)
    return f"{round(number / scale) * scale:,}"


def kept(n: int, m: int, piece: str = "atom") -> Card:
    """How much smaller it is."""
    if m >= n:
        told = f"Every one of the {count(n, 'row')} is an atom" if piece == "atom" else f"There are as many {piece}s as rows"
        return Card("Kept", "all", f"{told}: nothing was made smaller.")
    return Card(
        "Kept",
        f"1 in {roughly(n / m)}",
        f"{count(m, f'weighted {piece}')} stand{'s' if m == 1 else ''} for {count(n, 'row')}: {percent(m / n)} of them.",
    )


def lost(certificate: Certificate, thing: str = "row", piece: str = "atom", near: MedianError | None = None) -> Card:
    """The measured error with its bandwidth, its interval, and how it was measured; of rows, or of pixels."""
    title = f"Error{at_bandwidth(certificate.bandwidth)}"
    if certificate.relative_error < ROUNDING:
        return Card(title, percent(0.0), "Nothing but rounding.")
    low, high = certificate.interval
    how = MEASURED.get(certificate.method, f"measured by {certificate.method}").replace("row", thing)
    if certificate.method == "exact":
        meaning = how[0].upper() + how[1:] + "."
    else:
        meaning = f"Between {percent(low)} and {percent(high)} with {confidence(certificate)} confidence, {how}."
    if certificate.relative_error > 1:
        meaning = f"Worse than nothing: the zero function is closer to the data than these {piece}s are. " + meaning
    if near is not None and near.bandwidth != certificate.bandwidth:
        meaning += f" {at_median(near)}."
    return Card(title, percent(certificate.relative_error), meaning)


def at_median(near: MedianError) -> str:
    """The error at the median distance, or at the nearest bandwidth at which it is measured."""
    where = "the median distance" if near.is_exact else f"bandwidth {near.bandwidth:.3g}, near the median distance"
    return f"The error at {where}, {near.distance:.3g}, is {percent(near.relative_error)}"


def error(certificate: Certificate, thing: str = "row", piece: str = "atom") -> str:
    """What the error is."""
    text = "" if thing == "row" else f"Segments are found on few weighted atoms that stand for all {thing}s. "
    text += (
        f"The error is how far the {piece}s are from all {thing}s: the distance of their two densities in the kernel's norm, as a "
        f"share of the norm of the full one. 0{SPACE}% is no difference at all, 100{SPACE}% is knowing nothing."
    )
    if certificate.log_density_change is not None:
        change = np.expm1(min(certificate.log_density_change, 700.0))
        text += f" The density itself changed by {percent(change)} at most on {DENSITY_ROWS} sampled {thing}s."
    return text


def promised(path: PathFigure) -> Card:
    """The bound that holds before measuring."""
    if path.bound is None:
        told = "Of components, which are fitted," if path.piece == "component" else "For atoms chosen in this way"
        return Card("Promised", "nothing", f"{told} nothing is certain before measuring; the measured error stands alone.")
    if path.bound >= 1:
        meaning = (
            f"What is certain before measuring is a loss of {percent(path.bound)} at most, which says nothing; the measured error "
            "does."
        )
        return Card("Promised", "nothing", meaning)
    if path.bound < ROUNDING:
        return Card("Promised", f"≤ {percent(0.0)}", "Certain before anything was measured: every row is an atom, or equal to one.")
    meaning = (
        "Certain before anything was measured, from how far each row is from its nearest atom. Such a bound counts the worst "
        "case, so what was really lost is less."
    )
    return Card("Promised", f"≤ {percent(path.bound)}", meaning)


def finest(found: Resolution, size: int) -> Card:
    """The resolution, if it was searched for."""
    meaning = f"The smallest bandwidth at which the error is at most {percent(found.tol)}, there and at all larger ones: "
    return Card("Resolution", f"{found.bandwidth:.3g}", f"{meaning}{at_resolution(found, size)}.")


def random_rows(path: PathFigure, n: int, signed: bool = False) -> Card:
    """What a random subsample would have done; there is none of rows whose weights have both signs."""
    title = f"Random rows{at_bandwidth(path.bandwidth)}"
    if path.random_errors is None or path.alike is None or path.random_sizes is None:
        why = "Some rows have negative weights" if signed else "The norm of the full density is not known"
        return Card(title, "—", f"{why}, so there is no random subsample to compare with.")
    drawn = float(path.random_errors[0]) / np.sqrt(path.size)
    meaning = f"The error of {count(path.size, 'random row')} at the same bandwidth (root mean square)"
    times = drawn / path.error if path.error > ROUNDING else np.inf
    meaning += f": {roughly(times)} times as much. " if 1.05 < times < np.inf else ". "
    if path.alike >= n:
        meaning += f"Not even {count(n)} random draws would do as well as the {count(path.size, path.piece)}."
    else:
        meaning += f"It takes {roughly(np.ceil(path.alike))} random rows to do as well as the {count(path.size, path.piece)}."
    return Card(title, percent(drawn), meaning)


def fine(shown: ProfileFigure) -> str:
    """The resolution of the atoms, compared with as many random rows."""
    atoms, drawn, tol = count(shown.size, shown.piece), count(shown.size, "random row"), percent(shown.tol)
    if shown.finest is None:
        text = f"The error of {atoms} is not certified to be at most {tol} at any bandwidth"
    else:
        text = f"The error of {atoms} is at most {tol} at bandwidth {shown.finest:.3g} and all larger ones"
        text += f", with {percent(shown.confidence)} confidence"
    if np.isnan(shown.random_rows).all():
        return text + "."
    if shown.random_finest is None:
        return f"{text}. The error of {drawn} is larger at every bandwidth."
    return f"{text}. With {drawn} it is at most {tol} only from bandwidth {shown.random_finest:.3g} on."


def noise(shown: ProfileFigure, n: int) -> str:
    """The sampling error of the rows themselves."""
    if np.isnan(shown.noise).all():
        return ""
    text = f"The sampling error of the {count(n, 'row')} themselves is"
    if shown.noise_finest is None:
        return f"{text} above {percent(shown.tol)} at every bandwidth."
    if shown.noise_finest == shown.bandwidths[-1]:
        return f"{text} {percent(shown.noise[-1])} at the smallest bandwidth shown."
    return f"{text} above {percent(shown.tol)} below bandwidth {shown.noise_finest:.3g}."


def curves(piece: str, counted: bool) -> str:
    """What is drawn for each column: the rows as they were counted, if that is known, and two smoothed curves."""
    curves = f"the red curve is the density of the {piece}s, and the strip below is their difference"
    if not counted:
        return f"Grey is the density of all rows, {curves}. Both are smoothed at the bandwidth next to the name."
    return (
        f"Grey bars are all rows as they were counted. The dotted curve is the density of all rows, {curves}. Curves are smoothed "
        "at the bandwidth next to the name, so they reach beyond the smallest and the largest value, and are round where a column "
        "has few values."
    )


def densities(kernel: Any) -> str:
    """What the pictures of densities are."""
    if isinstance(kernel, Gaussian) and kernel.covariance is None:
        return "Each curve is a marginal of the density itself, or as fine as its grid allows."
    return "Each curve shows the weighted points at the kernel's scale, smoothed by a Gaussian of its bandwidth along each column."


def wide(names: Sequence[str], columns: int, whitened: bool = False) -> str:
    """What a bandwidth hides that is wider than half of a column's range, and what would help that was not done."""
    if not names:
        return ""
    every = len(names) == columns > 1
    shown = [shortened(name) for name in names[:4]] + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    listed = "every column" if every else " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    remedy = "A smaller bandwidth would show more"
    remedy += "." if every or columns == 1 or whitened else "; so may --scales or --whiten, where columns are in different units."
    return (
        f"Along {listed} the bandwidth is more than half of the whole range: any rows would make a single hump there, so the error "
        f"tells nothing of finer detail. {remedy}"
    )


def figures_of(certificate: Certificate) -> dict[str, str]:
    """All figures of a certificate, by name."""

    def figure(value: float | None) -> str:
        return "—" if value is None or np.isnan(value) else f"{value:.6g}"

    low, high = certificate.interval
    return {
        "relative error ‖f − f_m‖ / ‖f‖": figure(certificate.relative_error),
        "bandwidth": figure(certificate.bandwidth),
        f"{confidence(certificate)} interval": f"{figure(low)} to {figure(high)}",
        "measured by": certificate.method,
        "norm ‖f‖": figure(certificate.norm),
        "energy C of one bump": figure(certificate.energy),
        "bound on ‖f − f_m‖": figure(certificate.bound),
        "the same by Theorem 1": NO_THEOREM if (certificate.incoherence or 0.0) < 0 else figure(certificate.theorem_bound),
        "bound on the largest difference": figure(certificate.sup_bound),
        "incoherence ν": figure(certificate.incoherence),
        "largest change of the log-density seen": figure(certificate.log_density_change),
    }


def plain(value: Any) -> str:
    """A value that somebody told, as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
