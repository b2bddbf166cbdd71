"""`reduset distance`: how far two samples are apart, each a model or a file of rows, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, app

if TYPE_CHECKING:
    from reduset.model import Model

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
    from reduset.cli import request, telling
    from reduset.mean import KernelMean

    o.use_threads(threads)
    models = {path: _model(path) for path in (a, b)}
    guide = next((model for model in models.values() if model is not None), None)
    read: dict[str, Any] = {"columns": o.names_of(columns), "transform": o.transform_of(transform), "compensate": compensate}
    if guide is not None:
        about = guide.about
        read = {"columns": list(guide.columns), "transform": about.get("transform"), "compensate": about.get("compensate", True)}
    means, unsure = [], 0.0
    for path in (a, b):
        model = models[path]
        if model is not None:
            means.append(model.mean)
            unsure += model.certificate.interval[1] * model.certificate.norm
            continue
        table = io.read(path, missing=missing, key=key, **read)
        chosen = means[0].kernel if means else guide.mean.kernel if guide is not None else None
        if chosen is None:
            means.append(request.mean_of(table, kernel, o.number_or_rule(bandwidth), False))
        else:
            means.append(KernelMean.from_samples(table.values, chosen, table.weights))
    apart = means[0].distance(means[1])
    norms = [mean.norm() for mean in means]
    if json:
        print(telling.as_json({"distance": apart, "uncertainty": unsure, "norms": norms, "kernel": means[0].kernel.to_dict()}))
        return DONE
    print(f"{apart:.6g}" + (f" ± {unsure:.2g} by what the models lost" if unsure else ""))
    print(f"  of norms {norms[0]:.4g} and {norms[1]:.4g}, {means[0].kernel!r}")
    if apart <= unsure:
        print("  the models are too coarse to tell them apart; compress with a smaller --tol")
    return DONE


def _model(path: Path) -> Model | None:
    """The model in a file; None for files of rows, .npz files of arrays among them."""
    from reduset import archive
    from reduset.model import Model

    return Model.load(path) if path.suffix.lower() == ".npz" and archive.has_header(path) else None
