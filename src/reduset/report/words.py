"""Numbers as text, and the cards and sentences that explain an error without kernel theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._describe import counted, shortened, significant
from reduset.certificate import DENSITY_ROWS, Certificate, MedianError, at_bandwidth
from reduset.compression import Resolution, at_resolution
from reduset.kernels import Gaussian
from reduset.report.figures import ROUNDING, PathFigure, ProfileFigure

SPACE = "\N{NO-BREAK SPACE}"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SMALLEST_P = 1e-6  # smaller p-values are printed as a bound
METHODS = {
    "exact": "computed exactly, from every pair of rows",
    "frequencies": "measured with random Fourier features over all rows",
    "rows": "measured on a sample of rows",
}
LISTED_COLUMNS = 4


@dataclass(frozen=True)
class Card:
    """A main result at the head of a report: a title, a number, and one sentence."""

    title: str
    figure: str
    meaning: str


def percent(proportion: float) -> str:
    """A percentage with three digits: 1.23 %, 1,690 %, 2.5 × 10⁻⁷ %; a dash for NaN."""
    if not np.isfinite(proportion):
        return "—"
    digits = f"{100 * proportion:.3g}"
    mantissa, _, power = digits.partition("e")
    if 0 < abs(100 * proportion) < 1e-4:
        digits = f"{mantissa}{SPACE}×{SPACE}10{str(int(power)).translate(RAISED)}"
    elif power:
        digits = f"{float(digits):,.0f}"
    return f"{digits}{SPACE}%"


def p_told(p_value: float, name: str = "p") -> str:
    """A p-value with two digits, or an upper bound: p = 0.031."""
    if p_value < SMALLEST_P:
        return f"{name}{SPACE}<{SPACE}10⁻⁶".strip()
    return f"{name}{SPACE}={SPACE}{p_value:.2g}" if name else f"{p_value:.2g}"


def count(number: float, noun: str = "") -> str:
    """A number with commas and a plural: 1,000 atoms."""
    return counted(number, noun) if noun else f"{round(number):,}"


def roughly(number: float) -> str:
    """A number with two digits: 57,000."""
    if number < 10:
        return f"{number:.2g}"
    scale = 10 ** max(int(np.floor(np.log10(number))) - 1, 0)
    return f"{round(number / scale) * scale:,}"


def plain(value: Any) -> str:
    """A plain value as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(entry)}" for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        texts = [plain(entry) for entry in value]
        return ("; " if any("," in text for text in texts) else ", ").join(texts)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def kept(n: int, m: int, piece: str = "atom", zeros: int = 0) -> Card:
    """The reduction, and how many of the ``m`` weights are 0."""
    if m >= n:
        text = f"Every one of the {count(n, 'row')} is an atom" if piece == "atom" else f"There are as many {piece}s as rows"
        return Card("Kept", "all", f"{text}: nothing was reduced.")
    verb = "represents" if m == 1 else "represent"
    text = f"{count(m, f'weighted {piece}')} {verb} {count(n, 'row')}: {percent(m / n)} of them."
    if zeros:
        text += f" {zeros:,} of the {m:,} {'has' if zeros == 1 else 'have'} weight 0 at this size."
    return Card("Kept", one_in(n / m), text)


def one_in(ratio: float) -> str:
    """A reduction: 1 in 1,250."""
    return f"1 in {count(ratio) if ratio >= 10 else roughly(ratio)}"


def lost(certificate: Certificate, noun: str = "row", piece: str = "atom", near: MedianError | None = None) -> Card:
    """The measured error with its bandwidth, its interval and the method."""
    title = f"Error{at_bandwidth(certificate.bandwidth)}"
    if certificate.relative_error < ROUNDING:
        return Card(title, percent(0.0), "Zero up to rounding errors.")
    low, high = certificate.interval
    how = METHODS.get(certificate.method, f"measured by {certificate.method}").replace("row", noun)
    meaning = f"{how[0].upper()}{how[1:]}."
    if certificate.method != "exact":
        meaning = f"{percent(certificate.confidence)} confidence interval {percent(low)} to {percent(high)}, {how}."
    if certificate.relative_error > 1:
        meaning = f"Larger than the error of the zero function, 100{SPACE}%: more {piece}s are needed. {meaning}"
    if near is not None and near.bandwidth != certificate.bandwidth:
        where = "the median distance" if near.is_exact else f"bandwidth {significant(near.bandwidth)}, near the median distance"
        meaning += f" The error at {where}, {significant(near.distance)}, is {percent(near.relative_error)}."
    return Card(title, percent(certificate.relative_error), meaning)


def error(certificate: Certificate, noun: str = "row", piece: str = "atom") -> str:
    """The definition of the error."""
    text = "" if noun == "row" else f"Segments are computed with weighted atoms that represent all {noun}s. "
    text += (
        f"The error is the distance between the density of the {piece}s and the density of all {noun}s, in the kernel's norm, "
        f"divided by the norm of the full density. 0{SPACE}% means equal densities. 100{SPACE}% is the error of a "
        "density that is zero everywhere."
    )
    if certificate.log_density_change is not None:
        change = np.expm1(min(certificate.log_density_change, 700.0))
        text += f" At {DENSITY_ROWS} sampled {noun}s, the densities differ by at most {percent(change)}."
    return text


def promised(path: PathFigure) -> Card | None:
    """The a-priori bound of the error; None without a bound below 100 %."""
    if path.bound is None or path.bound >= 1:
        return None
    if path.bound < ROUNDING:
        return Card("Bound", f"≤ {percent(0.0)}", "Known before measuring: every row is an atom, or equal to one.")
    text = "An upper bound of the error, known before measuring, from the distance of each row to its nearest atom."
    return Card("Bound", f"≤ {percent(path.bound)}", text)


def finest(resolved: Resolution, size: int) -> Card:
    """The resolution."""
    text = f"The smallest bandwidth at which the error is at most {percent(resolved.tol)}, there and at all larger ones: "
    return Card("Resolution", f"{significant(resolved.bandwidth)}", f"{text}{at_resolution(resolved, size)}.")


def random_rows(path: PathFigure, n: int, signed: bool = False) -> Card:
    """The error of a random subsample. Signed weights have no such comparison."""
    title = f"Random rows{at_bandwidth(path.bandwidth)}"
    if path.random_errors is None or path.alike is None or path.random_sizes is None:
        why = "Some rows have negative weights" if signed else "The norm of the full density is not known"
        return Card(title, "—", f"{why}, so there is no comparison with random rows.")
    drawn = float(path.random_errors[0]) / np.sqrt(path.size)
    ratio = drawn / path.error if path.error > ROUNDING else np.inf
    text = f"The root mean square error of {count(path.size, 'random row')} at the same bandwidth"
    text += f": {roughly(ratio)} times the error of the {path.piece}s. " if 1.05 < ratio < np.inf else ". "
    atoms = count(path.size, path.piece)
    if path.alike >= n:
        text += f"{count(n)} random rows, drawn with replacement, have a larger error than the {atoms}."
    else:
        text += f"{roughly(np.ceil(path.alike))} random rows have the error of the {atoms}."
    return Card(title, percent(drawn), text)


def fine(shown: ProfileFigure) -> str:
    """The resolution, compared with random rows in the same number."""
    atoms, drawn, tol = count(shown.size, shown.piece), count(shown.size, "random row"), percent(shown.tol)
    if shown.finest is None:
        text = f"The error of {atoms} is not certified to be at most {tol} at any bandwidth"
    else:
        text = f"The error of {atoms} is at most {tol} at bandwidth {significant(shown.finest)} and all larger ones"
        text += f", with {percent(shown.confidence)} confidence"
    if np.isnan(shown.random_rows).all():
        return f"{text}."
    if shown.random_finest is None:
        return f"{text}. The error of {drawn} is above {tol} at every bandwidth."
    return f"{text}. The error of {drawn} is at most {tol} only from bandwidth {significant(shown.random_finest)} on."


def noise(shown: ProfileFigure, n: int) -> str:
    """The sampling error of the rows."""
    if np.isnan(shown.noise).all():
        return ""
    text = f"The sampling error of the {count(n, 'row')} themselves is"
    if shown.noise_finest is None:
        return f"{text} above {percent(shown.tol)} at every bandwidth."
    if shown.noise_finest == shown.bandwidths[-1]:
        return f"{text} {percent(shown.noise[-1])} at the smallest bandwidth shown."
    return f"{text} above {percent(shown.tol)} below bandwidth {significant(shown.noise_finest)}."


def curves(piece: str, kernel: Any, has_bars: bool) -> str:
    """A sentence on the curves of each column."""
    text = (
        f"the red curve is the density of the {piece}s, and the strip below is their difference. Above each figure are the "
        "bandwidth of the densities, in the unit of the column, and the largest difference."
    )
    if has_bars:
        text = (
            f"Grey bars are the histogram of all rows. The dotted curve is the density of all rows, {text} Densities are smoothed, "
            "so they extend beyond the smallest and the largest value."
        )
    else:
        text = f"Grey is the density of all rows, {text}"
    if isinstance(kernel, Gaussian) and kernel.covariance is None:
        return text  # curves are then marginals of the density
    return f"{text} Along single columns, the curves use a Gaussian kernel with the same bandwidth."


def wide(names: Sequence[str], columns: int, whitened: bool = False) -> str:
    """A sentence on columns along which the bandwidth smooths all rows into one mode; empty for none."""
    if not names:
        return ""
    every = len(names) == columns > 1
    listed = [shortened(name) for name in names[:LISTED_COLUMNS]]
    listed += [f"{len(names) - LISTED_COLUMNS} more"] if len(names) > LISTED_COLUMNS else []
    text = "every column" if every else " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
    remedy = "A smaller bandwidth shows more detail"
    remedy += "." if every or columns == 1 or whitened else "; so may --scales or --whiten, if columns are in different units."
    return (
        f"Along {text} the bandwidth is more than half of the whole range. The density then has a single mode for any rows, and "
        f"the error does not measure finer detail. {remedy}"
    )
