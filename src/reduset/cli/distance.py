"""`reduset distance`: how far two samples are apart, each a model or a file of rows, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, app

if TYPE_CHECKING:
    from reduset.model.model import Model

Side = Annotated[Path, typer.Argument(help="A model, or a file of rows.")]


@app.command(epilog="Example: reduset distance before.npz after.npz")
def distance(
    a: Side,
    b: Side,
    kernel: o.KernelName = "gaussian",
    bandwidth: o.Bandwidth = "median",
    columns: o.Columns = None,
    transform: o.Transform = None,
    compensate: o.Compensate = True,
    missing: o.Missing = "refuse",
    key: o.Key = None,
    threads: o.Threads = None,
    json: o.Json = False,
) -> int:
    """The distance of two kernel means (maximum mean discrepancy), with what compressing them can have changed.

    A model brings its kernel, columns and transform; two models must have the same kernel. Two files of rows take theirs from
    the options.
    """
    from reduset import io
    from reduset.cli import messages, request
    from reduset.mean import KernelMean

    o.use_threads(threads)
    found = [_model(path) for path in (a, b)]
    models = [model for model in found if model is not None]
    if len(models) == 2:
        _check_alike(a, b, *models)
    read: dict[str, Any] = {"columns": o.names_of(columns), "transform": o.transform_of(transform), "compensate": compensate}
    if models:
        about = models[0].about
        read = {
            "columns": list(models[0].columns),
            "transform": about.get("transform"),
            "compensate": about.get("compensate", True),
        }
    rows = [path for path, model in zip((a, b), found, strict=True) if model is None]
    read_in = io.read_bags(rows, missing=missing, key=key, **read) if rows else {}  # the same columns of both
    notes, tables = messages.notes_of(read_in), iter(read_in.values())
    chosen, means = models[0].mean.kernel if models else None, []
    for model in found:
        if model is not None:
            means.append(model.mean)
        elif chosen is not None:
            means.append(KernelMean.from_samples(next(tables).values, chosen))
        else:
            means.append(request.mean_of(next(tables), kernel, o.number_or_rule(bandwidth), False))
            chosen = means[0].kernel
    unsure = sum(model.certificate.interval[1] * model.certificate.norm for model in models)
    apart = means[0].distance(means[1])
    norms = [mean.norm() for mean in means]
    if json:
        facts = {"distance": apart, "uncertainty": unsure, "norms": norms, "kernel": means[0].kernel.to_dict(), "notes": notes}
        print(messages.as_json(facts))
        return DONE
    print(f"{apart:.6g}" + (f" ± {unsure:.2g} by what the models lost" if unsure else ""))
    print(f"  of norms {norms[0]:.4g} and {norms[1]:.4g}, {means[0].kernel!r}")
    for text in notes:
        print(f"  note: {text}")
    if models and apart <= unsure:
        print("  the models are too coarse to tell them apart; compress with a smaller --tol")
    return DONE


def _model(path: Path) -> Model | None:
    """The model in a file; None for files of rows, .npz files of arrays among them."""
    from reduset import _archive
    from reduset.model.model import Model

    return Model.load(path) if path.suffix.lower() == ".npz" and _archive.has_header(path) else None


def _check_alike(a: Path, b: Path, first: Model, second: Model) -> None:
    """Refuse models of different things: as many columns do not make them the same ones."""
    if first.columns != second.columns:
        seen = f"{', '.join(first.columns[:6])} and {', '.join(second.columns[:6])}"
        raise ValueError(
            f"{a} and {b} must be of the same columns in the same order, got {seen}; compress one again with --columns"
        )
    for name in ("transform", "compensate"):
        mine, other = (model.about.get(name) for model in (first, second))
        if name in first.about and name in second.about and mine != other:
            raise ValueError(f"{a} and {b} must have the same --{name}, got {mine} and {other}; compress one of them again")
