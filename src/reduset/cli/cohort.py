"""`reduset cohort`: distances between samples, and a map of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, app


@app.command(epilog="Example: reduset cohort patients/*.fcs --transform asinh:150 --groups groups.csv --report cohort.html")
def cohort(
    data: o.Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The distances as a table: .csv, .tsv, .parquet or .feather.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write a report to look at, one HTML file.")] = None,
    group_column: Annotated[
        str | None, typer.Option("--group-column", help="One long table: the column that names a row's sample.")
    ] = None,
    groups: Annotated[
        Path | None, typer.Option("--groups", help="A table of two columns, sample and group, for the colours of the map.")
    ] = None,
    tol: Annotated[
        float | None, typer.Option("--tol", help="What each sample may lose; distances certain to 1 % if nothing is said.")
    ] = None,
    size: Annotated[int | None, typer.Option("--size", "-m", help="That many atoms.")] = None,
    layout: Annotated[str, typer.Option("--layout", help="isomap or mds.")] = "isomap",
    bandwidth: o.Bandwidth = "median",
    whiten: o.Whiten = False,
    columns: o.Columns = None,
    transform: o.Transform = None,
    compensate: o.Compensate = True,
    missing: o.Missing = "refuse",
    key: o.Key = None,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> int:
    """Compare samples, one a file or one a label, and draw a map on which those that are alike are near each other."""
    import numpy as np

    from reduset import _archive, io
    from reduset.cli import messages, request, targets
    from reduset.cohort import CohortMap
    from reduset.kernels import Gaussian

    o.use_threads(threads)
    for path, kinds in ((output, targets.ROWS), (report, targets.HTML)):
        if path is not None:
            targets.check(path, kinds, [*data, *([] if groups is None else [groups])])
    if output is None and report is None and not json:
        raise ValueError("nothing would be kept: give --output for the distances, --report for a page to look at, or --json")
    tables = io.read_bags(
        data,
        group_column=group_column,
        columns=o.names_of(columns),
        transform=o.transform_of(transform),
        compensate=compensate,
        missing=missing,
        key=key,
    )
    if len(tables) < 2:
        raise ValueError(f"a cohort needs at least 2 samples, got {', '.join(tables)}; name more files, or a --group-column")
    first = next(iter(tables.values()))
    labels = None if groups is None else _groups(groups, list(tables))
    options: dict[str, Any] = {name: value for name, value in (("size", size), ("tol", tol)) if value is not None}
    with messages.progress(quiet or json) as shown:
        pooled = np.concatenate([table.values[:: max(1, len(table) // 10_000)] for table in tables.values()])
        kernel = Gaussian(o.number_or_rule(bandwidth), covariance=request.covariance_of(pooled) if whiten else None)
        dimensions = max(1, min(2, len(tables) - 1))  # two samples lie on a line
        map_ = CohortMap(layout=layout, n_components=dimensions, kernel=kernel, random_state=seed, progress=shown, **options)
        map_.fit({name: table.values for name, table in tables.items()})
    names = [str(name) for name in map_.names_]
    notes = [*messages.notes_of(tables), *([] if whiten else request.spread_note(first.values, first.columns))]
    written: list[Path] = []
    with _archive.together():
        if output is not None:
            title = next(each for each in ("sample", "sample name", "_sample") if each not in names)
            io.write_rows(output, names, map_.distances_, labels={title: names})
            written.append(output)
        if report is not None:
            from reduset.report import write_cohort

            sources = [source for table in tables.values() for source in table.sources]
            about = request.origin(list(dict.fromkeys(sources)), notes) | {"columns": list(first.columns)}
            write_cohort(report, map_, groups=labels, about=about)
            written.append(report)
    if json:
        facts = {"samples": names, "distances": map_.distances_, "errors": map_.errors_, "map": map_.embedding_}
        print(messages.as_json(facts | {"notes": notes, "written": written}))
        return DONE
    largest = float(map_.distances_.max())
    rows = sum(len(table.values) for table in tables.values())
    messages.say(f"{len(names)} samples of {rows:,} rows together, {map_.kernel_!r}", quiet)
    messages.say(f"  distances  up to {largest:.4g}, each known to {float(map_.errors_.max()):.2g} or better", quiet)
    for text in notes:
        messages.say(f"  note       {text}", quiet)
    messages.say(f"  written    {', '.join(map(str, written))}", quiet)
    return DONE


def _groups(path: Path, names: list[str]) -> list[str | None]:
    """The group of each sample, from a table of two columns; a sample that is not in it has none."""
    from reduset import io
    from reduset.cli import messages

    known = dict(io.read_labels(path))
    found = [known.get(name, known.get(Path(name).name)) for name in names]
    if all(each is None for each in found):
        raise ValueError(
            f"--groups {path} names none of the samples, got {', '.join(list(known)[:3])}; the samples are {', '.join(names[:3])}"
        )
    without = [name for name, each in zip(names, found, strict=True) if each is None]
    if without:
        messages.note(f"note: --groups {path} has no group for {', '.join(without[:6])}{' …' if len(without) > 6 else ''}")
    return found
