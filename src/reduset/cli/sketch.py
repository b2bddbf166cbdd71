"""`reduset sketch`: files in, rows or cells that stand for all others out, with the number that each stands for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset._messages import did_you_mean
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command
from reduset.cli.request import kernel_of, origin, spread_note, units_by_name, units_told

if TYPE_CHECKING:
    from reduset.sketching import Sketch

H5AD = frozenset({".h5ad"})
WORK = 4, 32  # bytes that a sketch takes for its work, a number and a row
# written out, since importing them would make help wait for the compiler; a test compares
SIZE, TOL, KEY = 5000, 0.05, "sketch"
QUOTAS = ("equal", "proportional", "square root")
TRANSFORMED = (
    "statistics of columns, distances and the error are of the transformed values; rows are written with the values of the file"
)


@command("cells.h5ad --rep X_pca --size 5000 --sample-key donor -o small.h5ad")
class SketchCommand(o.Reading, o.Seeded, o.Telling):
    """Make a table smaller: real rows, or cells of an .h5ad, that represent all others, each with a weight."""

    data: o.Data
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help=".h5ad for cells of an .h5ad with all that belongs to them; .parquet, .feather, .csv or .tsv for rows with all "
            "their columns as they are in the file, and their weights.",
        ),
    ]
    size: Annotated[int | None, typer.Option("--size", "-m", help=f"That many rows or cells ({SIZE}).")] = None
    fraction: Annotated[float | None, typer.Option("--fraction", help="The share of them, 0.01 say, in place of --size.")] = None
    rep: Annotated[
        str | None,
        typer.Option(
            "--rep",
            help="Of an .h5ad, the coordinates of the cells: a key of obsm, or X. Default: X_pca if there is one, else X if it has "
            "at most 50 columns, else a truncated SVD of X.",
        ),
    ] = None
    sample_key: Annotated[
        str | None,
        typer.Option("--sample-key", help="A column of samples or batches: each gets rows of its own, and keeps its share."),
    ] = None
    quotas: Annotated[
        str, typer.Option("--quotas", help="How --size is shared out among them: square root, proportional or equal.")
    ] = QUOTAS[-1]
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage",
            help="Proportion of --size for covering rows, far from all others: a smaller radius, and then the weights are "
            "necessary. If not given at most 0.01.",
        ),
    ] = None
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Adjust the weights, so that weighted means, standard deviations and deciles of columns equal those of all rows.",
        ),
    ] = True
    tol: Annotated[float, typer.Option("--tol", help="The error of the resolution, the finest detail that is kept so well.")] = TOL
    assignments: Annotated[
        Path | None,
        typer.Option(
            "--assignments",
            help="Table of the sketch row or cell that represents each row or cell: .parquet, .feather, .csv or .tsv.",
        ),
    ] = None
    report: o.Report = None
    scales: o.Scales = None
    columns: o.Columns = None
    weight_column: o.Weight = None
    transform: o.AutoTransform = None
    scales_channels = True
    compensate: o.Compensate = True
    missing: o.Missing = "refuse"
    key: o.Key = None
    encode: Annotated[
        list[str] | None,
        typer.Option(
            "--encode",
            help="How text, categories and dates become numbers: auto (the default), none, or NAME=onehot, "
            "NAME=ordinal:low:mid:high, NAME=days, separated by commas.",
        ),
    ] = None

    @property
    def writes_cells(self) -> bool:
        """Whether the output is an AnnData."""
        return self.output.suffix.lower() in H5AD

    def check(self) -> None:
        """Refuse what cannot be done before any work is."""
        o.check_tol(self.tol)
        o.scales_of(self.scales, False, False)
        if self.size is not None and self.fraction is not None:
            raise ValueError(f"--size and --fraction both say how many; give one of the two, got {self.size} and {self.fraction:g}")
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise ValueError(f"--fraction must lie between 0 and 1, got {self.fraction:g}; for a number of rows there is --size")
        if self.coverage is not None and not 0 <= self.coverage <= 1:
            raise ValueError(f"--coverage must lie between 0 and 1, got {self.coverage:g}; it is a proportion of --size")
        if self.quotas not in QUOTAS:
            hint = did_you_mean(self.quotas, QUOTAS)
            raise ValueError(f"--quotas must be {', '.join(QUOTAS[:-1])} or {QUOTAS[-1]}, got {self.quotas}{hint}")
        targets.check_all(
            (self.output, H5AD | targets.rows(), self.data),
            (self.assignments, targets.rows(), self.data),
            (self.report, targets.HTML, []),
        )
        annotated = [path.suffix.lower() in H5AD for path in self.data]
        if self.rep is not None and not all(annotated):
            raise ValueError("--rep is for .h5ad files; choose --columns of other tables")
        if self.rep is not None and self.key is not None:
            raise ValueError(
                f"--rep and --key both say what is read of an .h5ad; leave one of them out, got {self.rep} and {self.key}"
            )
        if not self.writes_cells:
            if self.assignments is not None and self.missing == "drop":
                raise ValueError(
                    f"--assignments must number the rows of the files, and --missing drop removes some of them; got "
                    f"{self.assignments}; fill in or remove these rows in the files first, or omit --assignments"
                )
            if any(annotated) and self.rep is None and self.key is None:
                raise ValueError(f"{self.output} holds rows: say which array of the .h5ad they are of, --rep X_pca say, or --rep X")
            return
        if not (len(annotated) == 1 and annotated[0]):
            raise ValueError(
                f"{self.output} holds cells of one .h5ad file, got {', '.join(map(str, self.data))}; write rows, "
                f"-o {self.output.stem}.parquet"
            )
        if self.report is not None:
            raise ValueError(
                f"--report shows the columns of rows, and {self.output} holds cells; write rows, --rep X_pca -o "
                f"{self.output.stem}.parquet, or leave --report out"
            )
        tables = {"--columns": self.columns, "--weight-column": self.weight_column, "--transform": self.transform}
        for name, given in (tables | {"--key": self.key, "--encode": self.encode, "--scales": self.scales}).items():
            if given:
                raise ValueError(f"{name} is for rows, and {self.output} holds cells as they are; choose --rep, or write rows")
        if not self.calibrate:
            raise ValueError(f"--no-calibrate is for rows, and {self.output} holds cells; leave it out, or write rows")

    def run(self) -> int:
        """Run it; the exit code."""
        self.check()
        return self._cells() if self.writes_cells else self._rows()

    def _encoding(self) -> str | None:
        """How text and dates become numbers: automatically, as given, or not at all."""
        given = ",".join(self.encode) if self.encode else "auto"
        return None if given == "none" else given

    def _count(self, n: int) -> int:
        """How many rows were asked for."""
        if self.fraction is not None:
            return max(1, round(self.fraction * n))
        return min(SIZE, n) if self.size is None else self.size

    def _cells(self) -> int:
        """Cells of an .h5ad, with all that belongs to them."""
        import numpy as np

        from reduset import _archive
        from reduset.anndata import opened, sketch, write_cells

        with opened(str(self.data[0])) as adata:
            with messages.progress(self.silent) as shown:
                sketch(
                    adata,
                    self._count(adata.n_obs),
                    use_rep=self.rep,
                    sample_key=self.sample_key,
                    quotas=self.quotas,
                    coverage=self.coverage,
                    rng=self.seed,
                    tol=self.tol,
                    progress=shown,
                )
            facts = dict(adata.uns[KEY])
            small = adata[np.asarray(adata.obs[KEY])].to_memory()
            named = {"cell": np.asarray(adata.obs_names, object), "assignment": np.asarray(adata.obs[f"{KEY}_assignment"])}
        with _archive.together():  # when the file that was read is closed, so that it is not blamed for what is wrong here
            write_cells(str(self.output), small)
            if self.assignments is not None:
                self._write_assignments(named)
        summary, note = facts.pop("summary"), facts.pop("note")
        self._tell(facts | {"weight": f"{KEY}_weight"}, summary, [note] if note else [])
        return DONE

    def _rows(self) -> int:
        """Rows of tables, with all their columns as they are."""
        import numpy as np

        from reduset import _archive
        from reduset.io import SEPARATORS, Work, is_text, need, pick_rows, read_for, write_table, write_text
        from reduset.sketching import sketch

        reading = self.reading()
        if self.rep is not None:
            reading["key"] = "X" if self.rep == "X" else f"obsm/{self.rep}"
        else:
            reading |= {"encode": self._encoding(), "identifiers": "omit"}
        work = Work(*WORK, "the rows, and the work on them,", "choose fewer --columns")
        table = read_for(work, self.data, group_column=self.sample_key, **reading)
        scales = None if self.rep is not None and self.scales is None else o.scales_of(self.scales, False, table.in_one_unit)
        with messages.progress(self.silent) as shown:
            small = sketch(
                table.values,
                self._count(len(table)),
                kernel=kernel_of("gaussian", None, None, scales),
                sample_weight=table.weights,
                groups=table.groups,
                quotas=self.quotas,
                coverage=self.coverage,
                calibrate=self.calibrate,
                tol=self.tol,
                rng=self.seed,
                progress=shown,
            )
        titles = dict(zip(small.kept.names, table.columns, strict=True))
        exceptions = tuple((titles[column], statistic) for column, statistic in small.exceptions)
        small = replace(small, columns=small.columns.renamed(table.columns), exceptions=exceptions)
        drowned = [] if scales is not None or self.rep is not None else spread_note(table.values, table.columns)
        notes = [
            *map(messages.as_options, table.notes),
            *drowned,
            *([TRANSFORMED] if table.scales else []),
            *([small.message] if small.message else []),
        ]
        total = len(table) if table.weights is None else float(table.weights.sum())
        suffix = self.output.suffix.lower()
        arrow = need("writing rows", "pyarrow", "tables")
        kept, told = pick_rows(self.data, table.file_rows(small.indices), reading["key"], suffix in SEPARATORS)
        notes += told
        write = partial(write_text, suffix=suffix) if suffix in SEPARATORS and is_text(kept) else write_table
        free_names = chain(("weight", "sketch_weight", "_weight"), (f"weight_{number}" for number in count(2)))
        name = next(title for title in free_names if title not in kept.column_names)
        kept = kept.append_column(name, arrow.array(small.weights * total))
        with _archive.together():
            write(str(self.output), kept)
            if self.assignments is not None:
                rows = np.where(small.assignments >= 0, small.indices[small.assignments], -1)  # −1 for rows of weight 0
                self._write_assignments({"row": np.arange(len(rows)), "assignment": rows})
            if self.report is not None:
                from reduset.report import write_sketch

                write_sketch(self.report, small, table, sample_weight=table.weights, about=origin(table.sources, notes))
        facts = _facts(small, table.columns) | {"transform": table.scales, "weight": name}
        self._tell(facts, str(small), notes, units_told(small.mean.kernel, table.columns))
        return DONE

    def _write_assignments(self, columns: dict[str, Any]) -> None:
        from reduset.io import need, write_table

        arrow = need("writing rows", "pyarrow", "tables")
        write_table(str(self.assignments), arrow.table({name: arrow.array(each) for name, each in columns.items()}))

    def _tell(self, facts: dict[str, Any], summary: str, notes: list[str], units: list[str] | None = None) -> None:
        written = [self.output, *(each for each in (self.assignments, self.report) if each is not None)]
        messages.answer(
            self, facts | {"notes": notes, "written": written}, summary, *(units or []), *messages.ending(notes, written)
        )


def _facts(small: Sketch, columns: Any) -> dict[str, Any]:
    """What a sketch says, for machines."""
    certificate = small.certificate
    return {
        "n": small.n_samples,
        "size": small.size,
        "columns": columns,
        "scales": units_by_name(small.mean.kernel, columns),
        "relative_error": certificate.relative_error,
        "interval": certificate.interval,
        "confidence": certificate.confidence,
        "resolution": small.resolution,
        "radius": certificate.radius,
        "tol": small.tol,
        "exact": small.exact,
        "exceptions": small.exceptions,
        "changes": small.columns.to_dict(),
        "seconds": small.timings,
    }
