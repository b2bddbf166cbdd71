"""`reduset cohort`: distances between samples, and a map of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command
from reduset.cli.request import are_pictures, covariance_of, origin, spread_note, units_by_name, units_told

if TYPE_CHECKING:
    from reduset._types import ProgressLike
    from reduset.cohort import CohortMap
    from reduset.io import Table


@command("patients/*.csv --groups groups.csv --report cohort.html -o distances.csv")
class CohortCommand(o.Reading, o.Seeded, o.Telling):
    """Map samples, one a file or one a label: distances between them, and a map on which similar samples are close.

    To compare groups of patients by the populations of their cells, use reduset study.
    """

    data: o.Data
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The distances as a table: .csv, .tsv, .parquet or .feather."),
    ] = None
    report: o.Report = None
    group_column: Annotated[
        str | None, typer.Option("--group-column", help="One long table: the column that names a row's sample.")
    ] = None
    groups: Annotated[
        Path | None, typer.Option("--groups", help="A table of two columns, sample and group, for the colours of the map.")
    ] = None
    tol: Annotated[
        float | None, typer.Option("--tol", help="What each sample may lose; distances certain to 1 % if nothing is said.")
    ] = None
    size: o.Size = None
    distance: Annotated[
        str, typer.Option("--distance", help="mmd: how far the kernel means are apart; kl: how well densities are told apart.")
    ] = "mmd"
    pieces: Annotated[
        str | None,
        typer.Option(
            "--pieces",
            help="What stands for a sample: atoms, weighted points; or components, Gaussians with shapes of their own, for kl, "
            "whose default they are.",
        ),
    ] = None
    layout: Annotated[str, typer.Option("--layout", help="isomap or mds.")] = "isomap"
    bandwidth: Annotated[
        str | None,
        typer.Option("--bandwidth", "-b", help="A number, or a rule, such as scott; if not given median, for kl iqr."),
    ] = None
    scales: o.Scales = None
    whiten: o.Whiten = False

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset import _archive, io

        o.check_tol(self.tol)
        o.scales_of(self.scales, self.whiten, False)
        inputs = [*self.data, *([] if self.groups is None else [self.groups])]
        written = targets.check_all((self.output, targets.rows(), inputs), (self.report, targets.HTML, inputs))
        if not written and not self.json:
            raise ValueError("nothing would be kept: give --output for the distances, --report for a page to look at, or --json")
        tables = io.read_bags(self.data, group_column=self.group_column, **self.reading())
        if len(tables) < 2:
            raise ValueError(f"a cohort needs at least 2 samples, got {', '.join(tables)}; name more files, or a --group-column")
        first = next(iter(tables.values()))
        labels = None if self.groups is None else _groups(self.groups, list(tables))
        with messages.progress(self.silent) as shown:
            found = _map_of(tables, self, shown)
        names = [str(name) for name in found.names_]
        in_units = not getattr(found.kernel_, "is_isotropic", True)
        notes = [*messages.notes_of(tables), *([] if in_units else spread_note(first.values, first.columns))]
        with _archive.together():
            if self.output is not None:
                title = next(each for each in ("sample", "sample name", "_sample") if each not in names)
                io.write_rows(self.output, names, found.distances_, labels={title: names})
            if self.report is not None:
                from reduset.report import write_cohort

                sources = [source for table in tables.values() for source in table.sources]
                about = origin(list(dict.fromkeys(sources)), notes) | {"columns": list(first.columns)}
                write_cohort(self.report, found, groups=labels, about=about)
        facts = {"samples": names, "distances": found.distances_, "errors": found.errors_, "map": found.embedding_}
        facts["scales"] = units_by_name(found.kernel_, first.columns)
        messages.answer(
            self,
            facts | {"notes": notes, "written": written},
            f"{len(names)} samples of {sum(map(len, tables.values())):,} rows together, {found.kernel_!r}",
            f"  distances  up to {found.distances_.max():.4g}, {_known(found)}",
            *units_told(found.kernel_, first.columns),
            *messages.ending(notes, written),
        )
        return DONE


def _map_of(tables: dict[str, Table], request: CohortCommand, shown: ProgressLike) -> CohortMap:
    """The map of all samples, by one kernel."""
    import numpy as np

    from reduset.cohort import CohortMap
    from reduset.kernels import Gaussian

    pooled = np.concatenate([table.values[:: max(1, len(table) // 10_000)] for table in tables.values()])
    pictures = are_pictures([source for table in tables.values() for source in table.sources])
    scales = o.scales_of(request.scales, request.whiten, pictures)
    densities = request.distance == "kl"
    width = request.bandwidth or ("iqr" if densities else "median")
    covariance = covariance_of(pooled) if request.whiten else None
    kernel = Gaussian(o.number_or_rule(width), covariance=covariance, scales=scales, normalized=densities)
    dimensions = max(1, min(2, len(tables) - 1))  # two samples lie on a line
    goals = o.given(size=request.size, tol=request.tol, pieces=request.pieces)
    found = CohortMap(
        request.distance,
        layout=request.layout,
        n_components=dimensions,
        kernel=kernel,
        random_state=request.seed,
        progress=shown,
        **goals,
    )
    return found.fit({name: table.values for name, table in tables.items()})


def _known(found: CohortMap) -> str:
    """What is known of the distances, and of what stands for the samples."""
    if found.distance != "kl":
        return f"each known to {found.errors_.max():.2g} or better"
    sizes = {each.size for each in found.compressions_ or ()}
    few = f"{max(sizes):,} {found.pieces_}" if len(sizes) == 1 else f"up to {max(sizes):,} {found.pieces_}"
    lost = max(each.certificate.relative_error for each in found.compressions_ or ())
    return f"up to {found.errors_.max():.2g} by chance of the draws; {few} a sample, which lose {lost:.2g} of it at most"


def _groups(path: Path, names: list[str]) -> list[str | None]:
    """The group of each sample, from a table of two columns; a sample that is not in it has none."""
    from reduset import io

    known = io.read_labels(path)
    found = [known.get(name, known.get(Path(name).name)) for name in names]
    if all(each is None for each in found):
        raise ValueError(
            f"--groups {path} names none of the samples, got {', '.join(list(known)[:3])}; the samples are {', '.join(names[:3])}"
        )
    without = [name for name, each in zip(names, found, strict=True) if each is None]
    if without:
        messages.note(f"note: --groups {path} has no group for {', '.join(without[:6])}{' …' if len(without) > 6 else ''}")
    return found
