"""`reduset compress`: files in, a model or weighted rows out, and how much was lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, NOT_REACHED, app

if TYPE_CHECKING:
    from reduset.compression import Compression
    from reduset.io import Table
    from reduset.model import Model

EXAMPLE = "Example: reduset compress events.fcs --transform asinh:150 --tol 0.01 -o small.npz --report small.html"
DEFAULT_TOL = 0.01


@app.command(epilog=EXAMPLE)
def compress(
    data: o.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="small.npz for a model; .parquet, .feather, .csv or .tsv for weighted rows.")
    ],
    size: Annotated[int | None, typer.Option("--size", "-m", help="That many atoms.")] = None,
    tol: Annotated[
        float | None, typer.Option("--tol", help="As few atoms as keep the loss within this share; 0.01 if nothing is said.")
    ] = None,
    plateau: Annotated[float | None, typer.Option("--plateau", help="Stop where the curve flattens (1e-8, say).")] = None,
    max_size: Annotated[int | None, typer.Option("--max-size", help="The most atoms, with --tol or --plateau.")] = None,
    kernel: o.KernelName = "gaussian",
    bandwidth: o.Bandwidth = "median",
    columns: o.Columns = None,
    weight_column: o.Weight = None,
    group_column: Annotated[
        str | None, typer.Option("--group-column", help="Labels; each group is covered by atoms of its own.")
    ] = None,
    whiten: o.Whiten = False,
    transform: o.Transform = None,
    compensate: o.Compensate = True,
    missing: o.Missing = "refuse",
    key: o.Key = None,
    select: Annotated[str, typer.Option("--select", help="How atoms are chosen: auto, kcenter, kmeans, greedy, …")] = "auto",
    weights: Annotated[
        str | None, typer.Option("--weights", help="free, sum_to_one, simplex, …; simplex for weighted rows.")
    ] = None,
    refine: Annotated[bool, typer.Option("--refine", help="Move the atoms to where the loss is least.")] = False,
    report: Annotated[Path | None, typer.Option("--report", help="Write a report to look at, one HTML file.")] = None,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> int:
    """Replace the rows of files by few weighted atoms, and say how much was lost."""
    from reduset import archive, io
    from reduset.cli import request, targets, telling
    from reduset.model import Model
    from reduset.outcome import compress_quietly

    o.use_threads(threads)
    targets.check(output, targets.MODEL | targets.ROWS, data)
    if report is not None:
        targets.check(report, targets.HTML)
    if group_column is not None and select not in ("auto", "kcenter"):
        raise ValueError(f"--group-column goes with --select kcenter, got {select!r}; leave one of them out")
    if group_column is not None and group_column in (o.names_of(columns) or ()):
        raise ValueError(f"--group-column {group_column} is a label, and cannot be one of --columns; leave it out of one")
    goals = {name: goal for name, goal in (("size", size), ("tol", tol), ("plateau", plateau)) if goal is not None}
    chosen = o.transform_of(transform)
    kind = weights or ("simplex" if output.suffix.lower() in targets.ROWS else "free")
    table = io.read(
        data,
        columns=o.names_of(columns),
        weight_column=weight_column,
        group_column=group_column,
        transform=chosen,
        compensate=compensate,
        missing=missing,
        key=key,
    )
    full = request.mean_of(table, kernel, o.number_or_rule(bandwidth), whiten)
    with telling.progress(quiet or json) as shown:
        small = compress_quietly(
            full,
            **(goals or {"tol": DEFAULT_TOL}),
            max_size=max_size,
            select=_selector(select, table),
            refine=refine,
            weights=kind,
            rng=seed,
            progress=shown,
        )
    about = request.origin(table.sources, table.notes) | {"transform": _applied(chosen, table), "compensate": compensate}
    model = None
    if report is not None or output.suffix.lower() in targets.MODEL:
        model = Model.of(full, small, table.columns, about)
    with archive.together():
        written = _write(output, table, small, model, group_column)
        if report is not None and model is not None:
            from reduset.report import write_compression

            write_compression(report, model)
            written.append(report)
    drowned = [] if whiten else request.spread_note(table.values, table.columns)
    told = [*table.notes, *(_hidden(model) or drowned)]
    if json:
        print(telling.as_json(_facts(small, table, told, written)))
    else:
        telling.say(str(small), quiet)
        for text in told:
            telling.say(f"  note       {text}", quiet)
        telling.say(f"  written    {', '.join(map(str, written))}", quiet)
    if not small.reached:
        telling.note("the tolerance was not reached; raise --max-size, or widen --bandwidth", quiet)
    return DONE if small.reached else NOT_REACHED


def _hidden(model: Model | None) -> list[str]:
    """What the bandwidth hides of some columns, in a sentence."""
    if model is None:
        return []
    from reduset.report.figures import wide_columns
    from reduset.report.words import wide

    text = wide(wide_columns(model), len(model.columns))
    return [text] if text else []


def _selector(name: str, table: Table) -> Any:
    if table.groups is None:
        return name
    from reduset.select import KCenter

    return KCenter(groups=table.groups)


def _applied(transform: Any, table: Table) -> Any:
    """The transform by columns, where it was for all and some were left alone: in another format they would not be."""
    if not isinstance(transform, str) or len(table.scales) == len(table.columns):
        return transform
    return dict.fromkeys(table.scales, transform) or None


def _write(output: Path, table: Table, small: Compression, model: Model | None, group_column: str | None) -> list[Path]:
    if output.suffix.lower() == ".npz" and model is not None:
        model.save(output)
        return [output]
    from reduset import io

    groups = None
    if group_column is not None and table.groups is not None and small.indices is not None:
        groups = {group_column: table.groups[small.indices]}
    io.write_rows(output, table.columns, small.mean.atoms, small.mean.weights, groups)
    return [output]


def _facts(small: Compression, table: Table, notes: list[str], written: list[Path]) -> dict[str, Any]:
    certificate = small.certificate
    return {
        "n": small.n_samples,
        "size": small.size,
        "columns": table.columns,
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
