"""`reduset cohort`: distances between samples, and a map of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reduset._describe import Description, Row, counted, percent
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import command

if TYPE_CHECKING:
    from reduset.cohort import CohortMap
    from reduset.io import Table

POOLED_ROWS = 10_000  # of each sample, for the covariance


@command("patients/*.csv --groups groups.csv --report cohort.html -o distances.csv", "reduset.cohort:CohortMap")
class CohortCommand(o.Reading, o.Seeded, o.Writing):
    """Map samples, one for each file or label: distances between samples, and a map on which similar samples are close.

    To compare groups of patients by the populations of their cells, use reduset study.

    Parameters
    ----------
    output : Table of the distances: .csv, .tsv, .parquet or .feather.
    group_column : For one long table: the column with the sample of each row.
    groups : Table of two columns, sample and group, for the colours of the map.
    bandwidth : A number in the columns' units (--scales), or a rule: {rules}. By default median, for kl iqr.
    """

    data: o.Data
    output: Path | None = None
    report: o.Report = None
    group_column: str | None = None
    groups: Path | None = None
    tol: float | None = None
    size: o.Size = None
    distance: str = "mmd"
    pieces: str | None = None
    layout: str = "isomap"
    bandwidth: str | None = None
    scales: str | None = None
    whiten: bool = False

    def run(self) -> None:
        """Run it."""
        from reduset import _archive, io, report

        o.check_proportion(self.tol, "--tol")
        o.scales_of(self.scales, self.whiten, False)
        inputs = [*self.data, *([] if self.groups is None else [self.groups])]
        written = targets.check_all((self.output, targets.rows(), inputs), (self.report, targets.HTML, inputs))
        if not written and not self.json:
            raise ValueError("no output is set: give --output for the distances, --report for a report, or --json")
        tables = io.read_bags(self.data, group_column=self.group_column, **self.reading())
        if len(tables) < 2:
            raise ValueError(f"a cohort needs at least 2 samples, got {', '.join(tables)}; name more files, or a --group-column")
        first = next(iter(tables.values()))
        columns, values = first.columns, first.values
        labels = None if self.groups is None else _groups(self.groups, list(tables))
        cohort = self._map(tables)
        kernel, names = cohort.kernel_, [str(name) for name in cohort.names_]
        is_isotropic = getattr(kernel, "is_isotropic", True)
        notes = [*messages.notes_of(tables), *(messages.dominated_columns(values, columns) if is_isotropic else [])]
        with _archive.together():
            if self.output is not None:
                title = next(title for title in ("sample", "sample name", "_sample") if title not in names)
                io.write_rows(self.output, names, cohort.distances_, labels={title: names})
            if self.report is not None:
                sources = dict.fromkeys(source for table in tables.values() for source in table.sources)
                about = messages.origin(list(sources), notes) | {"columns": list(columns)}
                report.write_cohort(self.report, cohort, groups=labels, about=about)
        distances = f"{self.distance}, up to {cohort.distances_.max():.4g}, {_precision(cohort)}"
        facts = {"samples": names, "distances": cohort.distances_, "errors": cohort.errors_, "map": cohort.embedding_}
        result = Description(
            f"Cohort: {counted(len(names), 'sample')}, {counted(sum(map(len, tables.values())), 'row')} in all",
            (Row("distances", distances, facts=facts), Row("kernel", repr(kernel))),
        )
        messages.answer(self, messages.with_scales(result, kernel, columns), notes, written)

    def _map(self, tables: dict[str, Table]) -> CohortMap:
        """The map of all samples, with one kernel."""
        import numpy as np

        from reduset.cohort import CohortMap
        from reduset.kernels import Gaussian

        is_divergence = self.distance == "kl"
        images = o.are_images([source for table in tables.values() for source in table.sources])
        pooled = np.concatenate([table.values[:: max(1, len(table) // POOLED_ROWS)] for table in tables.values()])
        kernel = Gaussian(
            o.number_or_rule(self.bandwidth or ("iqr" if is_divergence else "median")),
            covariance=o.covariance_of(pooled) if self.whiten else None,
            scales=o.scales_of(self.scales, self.whiten, images),
            normalized=is_divergence,
        )
        cohort = CohortMap(
            **self.given("distance", "layout", "size", "tol", "pieces"),
            n_components=max(1, min(2, len(tables) - 1)),  # two samples lie on a line
            kernel=kernel,
            random_state=self.seed,
            progress=self.shows_progress,
        )
        return cohort.fit({name: table.values for name, table in tables.items()})


def _precision(cohort: CohortMap) -> str:
    """The largest error of the distances; for divergences also the size and the error of the densities."""
    if cohort.distance != "kl":
        return f"error at most {cohort.errors_.max():.2g}"
    compressions = cohort.compressions_ or ()
    sizes = {small.size for small in compressions}
    error = max(small.certificate.relative_error for small in compressions)
    pieces = f"{'' if len(sizes) == 1 else 'up to '}{max(sizes):,} {cohort.pieces_}"
    return f"standard error at most {cohort.errors_.max():.2g}; {pieces} per sample, error at most {percent(error)}"


def _groups(path: Path, names: list[str]) -> list[str | None]:
    """The group of each sample, from a table of two columns; None for samples that are not in it."""
    from reduset import io

    known = io.read_labels(path)
    groups = [known.get(name, known.get(Path(name).name)) for name in names]
    if all(group is None for group in groups):
        raise ValueError(
            f"--groups {path} names none of the samples, got {', '.join(list(known)[:3])}; the samples are {', '.join(names[:3])}"
        )
    without = [name for name, group in zip(names, groups, strict=True) if group is None]
    if without:
        messages.note(f"note: --groups {path} has no group for {', '.join(without[:6])}{' …' if len(without) > 6 else ''}")
    return groups
