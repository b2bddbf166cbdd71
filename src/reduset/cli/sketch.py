"""`reduset sketch`: choose rows or cells of files that represent all others, each with a weight."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from reduset._describe import Row
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import command

H5AD = frozenset({".h5ad"})
BYTES = 4, 32  # of working memory for each number and each row
SIZE, KEY = 5000, "sketch"
TRANSFORMED = (
    "statistics of columns, distances and the error are of transformed values; rows are written with the values of the file"
)


@command("cells.h5ad --rep X_pca --size 5000 --sample-key donor -o small.h5ad", "reduset.sketching:sketch")
class SketchCommand(o.ChannelReading, o.Clustered, o.Seeded, o.Writing):
    """Make a table smaller: real rows, or cells of an .h5ad, that represent all others, each with a weight.

    Parameters
    ----------
    output : .h5ad for cells of an .h5ad with all their annotations; .parquet, .feather, .csv or .tsv for rows with all columns of
        the file, and their weights.
    size : Number of rows or cells, by default 5,000.
    fraction : The proportion of rows, such as 0.01, instead of --size.
    rep : Coordinates of the cells of an .h5ad: a key of obsm, or X. By default X_pca; without it X if it has at most 50 columns,
        otherwise a truncated SVD of X.
    sample_key : The column of samples or batches. Each is sketched separately, with its proportion.
    assignments : Table of the sketch row or cell that represents each row or cell: .parquet, .feather, .csv or .tsv.
    encode : Text, categories and dates as numbers: auto (the default), none, or NAME=onehot (0/1 columns),
        NAME=ordinal:low:mid:high, NAME=days (since 1970), separated by commas.
    """

    data: o.Data
    output: Path
    size: o.Size = None
    fraction: float | None = None
    rep: str | None = None
    sample_key: str | None = None
    quotas: str = "square root"
    coverage: float | None = None
    calibrate: bool = True
    tol: float | None = None
    assignments: Path | None = None
    report: o.Report = None
    scales: str | None = None
    weight_column: str | None = None

    @property
    def writes_cells(self) -> bool:
        """Whether the output is an AnnData."""
        return self.output.suffix.lower() in H5AD

    def run(self) -> None:
        """Run it."""
        self.check()
        with self.on_engine():
            (self._cells if self.writes_cells else self._rows)()

    def check(self) -> None:
        """Raise an error for invalid options before any work."""
        from reduset import _validate
        from reduset.compression import QUOTAS

        o.check_proportion(self.tol, "--tol")
        self.check_engine(sample_key=self.sample_key, report=self.report, missing=self.missing == "drop")
        o.scales_of(self.scales, False, False)
        if self.size is not None and self.fraction is not None:
            raise ValueError(f"--size and --fraction both set the number of rows; omit one, got {self.size} and {self.fraction:g}")
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise ValueError(f"--fraction must lie between 0 and 1, got {self.fraction:g}; use --size for a number of rows")
        if self.coverage is not None and not 0 <= self.coverage <= 1:
            raise ValueError(f"--coverage must lie between 0 and 1, got {self.coverage:g}; it is a proportion of --size")
        _validate.one_of(self.quotas, "--quotas", QUOTAS)
        targets.check_all(
            (self.output, H5AD | targets.rows(), self.data),
            (self.assignments, targets.rows(), self.data),
            (self.report, targets.HTML, []),
        )
        annotated = [path.suffix.lower() in H5AD for path in self.data]
        if self.rep is not None and not all(annotated):
            raise ValueError("--rep is for .h5ad files; choose --columns of other tables")
        if self.rep is not None and self.key is not None:
            raise ValueError(f"--rep and --key both set the array of an .h5ad; omit one of them, got {self.rep} and {self.key}")
        (self._check_cells if self.writes_cells else self._check_rows)(annotated)

    def _check_rows(self, annotated: list[bool]) -> None:
        if self.assignments is not None and self.missing == "drop":
            raise ValueError(
                f"--assignments must number the rows of the files, and --missing drop removes some of them; got {self.assignments}"
                "; fill in or remove these rows in the files first, or omit --assignments"
            )
        if any(annotated) and self.rep is None and self.key is None:
            raise ValueError(f"{self.output} holds rows: choose the array of the .h5ad, such as --rep X_pca or --rep X")

    def _check_cells(self, annotated: list[bool]) -> None:
        if annotated != [True]:
            raise ValueError(
                f"{self.output} holds cells of one .h5ad file, got {', '.join(map(str, self.data))}; write rows, "
                f"-o {self.output.stem}.parquet"
            )
        if self.report is not None:
            raise ValueError(
                f"--report shows the columns of rows, and {self.output} holds cells; write rows, --rep X_pca -o "
                f"{self.output.stem}.parquet, or omit --report"
            )
        for option in self.changed("columns", "weight_column", "transform", "key", "encode", "scales", "calibrate", "engine"):
            raise ValueError(f"{option} is for rows, and {self.output} holds unchanged cells; use --rep, or write rows")

    def _arguments(self, n: int) -> dict[str, Any]:
        """The arguments of `sketch` for n rows."""
        size = min(SIZE, n) if self.size is None else self.size
        size = size if self.fraction is None else max(1, round(self.fraction * n))
        return self.given("tol", "quotas", "coverage") | {"size": size, "rng": self.seed, "progress": self.shows_progress}

    def _cells(self) -> None:
        """Cells of an .h5ad with all their annotations."""
        import numpy as np

        from reduset import _archive
        from reduset.anndata import opened, sketch, write_annotated

        with opened(str(self.data[0])) as adata:
            sketch(adata, use_rep=self.rep, sample_key=self.sample_key, **self._arguments(adata.n_obs))
            facts = dict(adata.uns[KEY])
            small = adata[np.asarray(adata.obs[KEY])].to_memory()
            named = {"cell": np.asarray(adata.obs_names, object), "assignment": np.asarray(adata.obs[f"{KEY}_assignment"])}
        with _archive.together():  # after the input is closed, so that an error here is not attributed to it
            write_annotated(str(self.output), small)
            targets.write_columns(self.assignments, named)
        summary, note = facts.pop("summary"), facts.pop("note")
        messages.answer(self, summary, [note] if note else [], self._written(), **facts, weight=f"{KEY}_weight")

    def _rows(self) -> None:
        """Rows of tables with all their columns."""
        import numpy as np

        from reduset import _archive, report
        from reduset.io import SEPARATORS, Work, is_text, need, pick_rows, write_table, write_text
        from reduset.sketching import sketch

        reading = self.reading()
        if self.rep is not None:
            reading["key"] = "X" if self.rep == "X" else f"obsm/{self.rep}"
        else:
            encode = ",".join(self.encode) if self.encode else "auto"
            reading |= {"encode": None if encode == "none" else encode, "identifiers": "omit"}
        work = Work(*BYTES, "the rows, and the work on them,", "choose fewer --columns")
        table = self.table(work, self.data, group_column=self.sample_key, **reading)
        scales = None if self.rep is not None and self.scales is None else o.scales_of(self.scales, False, table.in_one_unit)
        small = sketch(
            table.values,
            kernel=o.kernel_of("gaussian", None, None, scales),
            sample_weight=table.weights,
            groups=table.groups,
            calibrate=self.calibrate,
            **self._arguments(len(table)),
        )
        titles = dict(zip(small.kept.names, table.columns, strict=True))
        exceptions = tuple((titles[column], statistic) for column, statistic in small.exceptions)
        small = replace(small, columns=small.columns.renamed(table.columns), exceptions=exceptions)
        notes = [
            *map(messages.as_options, table.notes),
            *([] if scales is not None or self.rep is not None else messages.dominated_columns(table.values, table.columns)),
            *([TRANSFORMED] if table.scales else []),
            *([small.message] if small.message else []),
        ]
        suffix = self.output.suffix.lower()
        kept, picking_notes = pick_rows(self.data, table.file_rows(small.indices), reading["key"], suffix in SEPARATORS)
        notes += picking_notes
        write = partial(write_text, suffix=suffix) if suffix in SEPARATORS and is_text(kept) else write_table
        free_names = chain(("weight", "sketch_weight", "_weight"), (f"weight_{number}" for number in count(2)))
        weight = next(title for title in free_names if title not in kept.column_names)
        total = len(table) if table.weights is None else float(table.weights.sum())
        kept = kept.append_column(weight, need("writing rows", "pyarrow", "tables").array(small.weights * total))
        with _archive.together():
            write(str(self.output), kept)
            rows = np.where(small.assignments >= 0, small.indices[small.assignments], -1)  # −1 for rows of weight 0
            targets.write_columns(self.assignments, {"row": np.arange(len(rows)), "assignment": rows})
            if self.report is not None:
                about = messages.origin(table.sources, notes)
                report.write_sketch(self.report, small, table, sample_weight=table.weights, about=about)
        row = Row("", facts={"columns": table.columns, "transform": table.scales, "weight": weight})
        result = messages.with_scales(small.describe(), small.mean.kernel, table.columns, row)
        messages.answer(self, result, notes, self._written())

    def _written(self) -> list[Path]:
        return [self.output, *(path for path in (self.assignments, self.report) if path is not None)]
