"""`reduset compress`: files in, a model or weighted rows out, and how much was lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, NOT_REACHED, app

if TYPE_CHECKING:
    from reduset.compression.result import Compression
    from reduset.io import Table

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
    stream: Annotated[
        bool, typer.Option("--stream", help="Read rows once, batch by batch, for files larger than the memory; needs --size.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="With --stream: the file by which the same command goes on where it was interrupted."),
    ] = None,
    checkpoint_every: Annotated[
        float | None, typer.Option("--checkpoint-every", min=0.0, help="Seconds between checkpoints; 30 if not given.")
    ] = None,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> int:
    """Replace the rows of files by few weighted atoms, and say how much was lost."""
    from reduset import io
    from reduset.cli import messages, request, results, streaming, targets
    from reduset.compression.compressing import compress_quietly
    from reduset.model.model import Model

    o.use_threads(threads)
    targets.check(output, targets.MODEL | targets.ROWS, data)
    if report is not None:
        targets.check(report, targets.HTML)
    if group_column is not None and select not in ("auto", "kcenter"):
        raise ValueError(f"--group-column goes with --select kcenter, got {select!r}; leave one of them out")
    if group_column is not None and group_column in (o.names_of(columns) or ()):
        raise ValueError(f"--group-column {group_column} is a label, and cannot be one of --columns; leave it out of one")
    goals = {name: goal for name, goal in (("size", size), ("tol", tol), ("plateau", plateau)) if goal is not None}
    kind = weights or ("simplex" if output.suffix.lower() in targets.ROWS else "free")
    width = o.number_or_rule(bandwidth)
    read = {
        "columns": o.names_of(columns),
        "weight_column": weight_column,
        "transform": o.transform_of(transform),
        "compensate": compensate,
        "missing": missing,
        "key": key,
    }
    if stream:
        whole = {name: goal is not None for name, goal in (("--tol", tol), ("--plateau", plateau), ("--max-size", max_size))}
        whole |= {"--select": select != "auto", "--refine": refine, "--group-column": group_column is not None}
        atoms = streaming.refuse(size, whole)
        asked = streaming.Asked(data, output, report, atoms, kernel, width, whiten, kind, seed, read)
        return streaming.run(asked, checkpoint, streaming.EVERY if checkpoint_every is None else checkpoint_every, json, quiet)
    for name, given in (("--checkpoint", checkpoint), ("--checkpoint-every", checkpoint_every)):
        if given is not None:
            raise ValueError(f"{name} goes with --stream, which reads batch by batch; add --stream, or leave it out")
    table = io.read(data, group_column=group_column, **read)
    full = request.mean_of(table, kernel, width, whiten)
    with messages.progress(quiet or json) as shown:
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
    applied = results.applied(read["transform"], table.columns, table.scales)
    about = request.origin(table.sources, table.notes) | {"transform": applied, "compensate": compensate}
    model = None
    if report is not None or output.suffix.lower() in targets.MODEL:
        model = Model.of(full, small, table.columns, about)
    written = results.write(output, report, small, model, table.columns, _labels(group_column, table, small))
    drowned = [] if whiten else request.spread_note(table.values, table.columns)
    results.tell(small, table.columns, [*table.notes, *(results.hidden(model) or drowned)], written, json, quiet)
    if not small.reached:
        messages.note("the tolerance was not reached; raise --max-size, or widen --bandwidth", quiet)
    return DONE if small.reached else NOT_REACHED


def _selector(name: str, table: Table) -> Any:
    if table.groups is None:
        return name
    from reduset.select import KCenter

    return KCenter(groups=table.groups)


def _labels(group_column: str | None, table: Table, small: Compression) -> dict[str, Any] | None:
    """The label of each atom, where there are labels."""
    if group_column is None or table.groups is None or small.indices is None:
        return None
    return {group_column: table.groups[small.indices]}
