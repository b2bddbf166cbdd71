"""The output of `reduset compress`: the model, the report and the printed lines, for rows in memory and for streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reduset._messages import printable
from reduset.cli import messages
from reduset.cli.request import origin, spread_note, units_by_name, units_told

if TYPE_CHECKING:
    from reduset.cli.compress import CompressCommand
    from reduset.compression import Compression
    from reduset.io import Batches, Table
    from reduset.model import Model

MOST_SHARES = 12  # that are told one by one
MOST_OFF, MOST_TOLD = 0.05, 24  # of a column's peak, and how many columns are named


def applied(transform: Any, columns: Sequence[str], scales: Mapping[str, str]) -> Any:
    """The transform as it is kept with a model: one for all columns, or by column if some have another or none."""
    if isinstance(transform, str) and len(scales) == len(columns):
        return transform
    return dict(scales) or None


def write(
    request: CompressCommand, table: Table | Batches, rows: Any, notes: list[str], make: Callable[[dict[str, Any]], Model]
) -> list[str]:
    """Write the model and the report together, and return the notes.

    ``rows`` are those of the table, or a sample of them; ``make`` makes the model from a description of its origin.
    """
    from reduset import _archive

    scales = applied(request.reading()["transform"], table.columns, table.scales)
    model = make(
        origin(table.sources, notes) | {"transform": scales, "compensate": request.compensate, "encode": table.encoding or None}
    )
    with _archive.together():
        model.save(request.output)
        if request.report is not None:
            from reduset.report import write_compression

            write_compression(request.report, model)
    in_units = not getattr(model.mean.kernel, "is_isotropic", True)
    return [*notes, *(hidden(model) or ([] if in_units else spread_note(rows, table.columns)))]


def columns_off(off: Any, columns: Sequence[str]) -> list[str]:
    """Which columns the result shows otherwise than all rows do, the farthest off first."""
    far = [k for k in (-off).argsort(kind="stable").tolist() if off[k] > MOST_OFF]
    if not far:
        return []
    words = [f"{columns[k]} by {100 * off[k]:.2g} %" for k in far[:MOST_TOLD]]
    more = f" and {len(far) - MOST_TOLD} more columns" if len(far) > MOST_TOLD else ""
    return [
        f"taken alone, and at a tenth of its spread, the density of {', '.join(words)}{more} is off by more than "
        f"{100 * MOST_OFF:g} % of its peak; a larger --size shows more"
    ]


def above_random_rows(request: CompressCommand, small: Compression) -> list[str]:
    """The comparison with random rows, if the error is certified to be above theirs, and a better call."""
    from reduset.compression import summary

    found = summary.above_random_rows(small)
    if found is None:
        return []
    given = {"--select": request.select != "auto", "--weights": request.weights is not None, "--refine": request.refine}
    options = " and ".join(name for name, changed in given.items() if changed)
    better = f"leave out {options}" if options else "raise --size or --bandwidth"
    return [f"{found}; {better}, or use reduset sketch --size {small.size} for real rows with weights"]


def hidden(model: Model) -> list[str]:
    """What the bandwidth hides of some columns, in a sentence."""
    from reduset.report.figures import is_whitened, wide_columns
    from reduset.report.words import wide

    text = wide(wide_columns(model), len(model.columns), is_whitened(model))
    return [text] if text else []


def tell(request: CompressCommand, small: Compression, columns: Sequence[str], notes: list[str], **more: Any) -> None:
    """One JSON object, or a few lines."""
    certificate = small.certificate
    written = [request.output, *([] if request.report is None else [request.report])]
    facts = {
        "n": small.n_samples,
        "size": small.size,
        "pieces": request.pieces,
        "columns": columns,
        "kernel": small.mean.kernel.to_dict(),
        "resolution": small.resolution,
        "scales": units_by_name(small.mean.kernel, columns),
        "relative_error": certificate.relative_error,
        "interval": certificate.interval,
        "confidence": certificate.confidence,
        "near_median": near_median(small),
        "bound": certificate.bound,
        "norm": certificate.norm,
        "reached": small.reached,
        "selection": small.selection,
        "weights": small.weighting,
        "carrying_weight": int((small.mean.weights != 0).sum()),
        "negative_mass": certificate.negative_mass,
        "shares": shares(small),
        "seconds": small.timings,
        "notes": notes,
        "written": written,
    }
    details = small.details().splitlines() if request.verbose else []
    lines = [str(small), *units_told(small.mean.kernel, columns), *told_shares(request, small), *messages.ending(notes, written)]
    messages.answer(request, facts | more, *lines, *details)


def near_median(small: Compression) -> dict[str, float] | None:
    """The median distance, and the error at the measurable bandwidth nearest to it; None if they are not known."""
    return None if small.near_median is None else asdict(small.near_median)


def shares(small: Compression) -> dict[str, float] | None:
    """What share of the weight the atoms of each group have, where there are groups."""
    if small.groups is None:
        return None
    total = small.mean.mass
    return {str(name): float(small.mean.weights[small.groups == name].sum()) / total for name in sorted(set(small.groups.tolist()))}


def told_shares(request: CompressCommand, small: Compression) -> list[str]:
    """The shares in words, the largest first."""
    found = shares(small)
    if found is None or small.groups is None:
        return []
    atoms = {name: int((small.groups.astype(str) == name).sum()) for name in found}
    ranked = sorted(found, key=lambda name: -found[name])
    words = [f"{name} {100 * found[name]:.3g} % ({atoms[name]:,} atoms)" for name in ranked[:MOST_SHARES]]
    more = f", and {len(ranked) - MOST_SHARES} more" if len(ranked) > MOST_SHARES else ""
    return [printable(f"  shares     {request.group_column}: {', '.join(words)}{more}")]
