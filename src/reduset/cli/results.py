"""What `reduset compress` writes and tells in the end, whichever way the rows were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reduset.compression.result import Compression
    from reduset.model.model import Model


def applied(transform: Any, columns: Sequence[str], scales: Mapping[str, str]) -> Any:
    """The transform by columns, where it was for all and some were left alone: in another format they would not be."""
    if not isinstance(transform, str) or len(scales) == len(columns):
        return transform
    return dict.fromkeys(scales, transform) or None


def write(
    output: Path, report: Path | None, small: Compression, model: Model | None, columns: Sequence[str], groups: Any = None
) -> list[Path]:
    """Write the model or the weighted rows, and the report, together; which files these are."""
    from reduset import _archive, io

    written = [output]
    with _archive.together():
        if output.suffix.lower() == ".npz" and model is not None:
            model.save(output)
        else:
            io.write_rows(output, columns, small.mean.atoms, small.mean.weights, groups)
        if report is not None and model is not None:
            from reduset.report import write_compression

            write_compression(report, model)
            written.append(report)
    return written


def hidden(model: Model | None) -> list[str]:
    """What the bandwidth hides of some columns, in a sentence."""
    if model is None:
        return []
    from reduset.report.captions import wide
    from reduset.report.figures import wide_columns

    text = wide(wide_columns(model), len(model.columns))
    return [text] if text else []


def tell(
    small: Compression, columns: Sequence[str], notes: list[str], written: list[Path], json: bool, quiet: bool, **more: Any
) -> None:
    """One JSON object, or a few lines."""
    from reduset.cli import messages

    if json:
        print(messages.as_json(_facts(small, columns, notes, written) | more))
        return
    messages.say(str(small), quiet)
    for text in notes:
        messages.say(f"  note       {text}", quiet)
    messages.say(f"  written    {', '.join(map(str, written))}", quiet)


def _facts(small: Compression, columns: Sequence[str], notes: list[str], written: list[Path]) -> dict[str, Any]:
    certificate = small.certificate
    return {
        "n": small.n_samples,
        "size": small.size,
        "columns": columns,
        "kernel": small.mean.kernel.to_dict(),
        "relative_error": certificate.relative_error,
        "interval": certificate.interval,
        "confidence": certificate.confidence,
        "bound": certificate.bound,
        "norm": certificate.norm,
        "reached": small.reached,
        "selection": small.selection,
        "weights": small.weighting,
        "seconds": small.timings,
        "notes": notes,
        "written": written,
    }
