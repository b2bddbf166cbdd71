"""`reduset compress`: reads files, writes a model of weighted atoms or components, and reports its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset._describe import Row, counted, percent
from reduset.cli import messages, streaming, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, NOT_REACHED, command

if TYPE_CHECKING:
    from reduset.compression import Compression
    from reduset.io import Batches, Table
    from reduset.model import Model

DEFAULT_TOL = 0.01  # at a given bandwidth
ATOMS = "atoms"
WORK = 4, 24  # bytes of working memory for each number and each row, as in docs/scaling.md
LISTED_GROUPS, LISTED_COLUMNS = 12, 8  # groups and columns that a line names
NOTED_DIFFERENCE = 0.05  # of the peak of a column's density


@command(
    "events.fcs --transform asinh:150 --tol 0.01 -o small.npz --report small.html",
    "reduset.compression:compress",
)
class CompressCommand(o.ChannelReading, o.Clustered, o.Seeded, o.Writing):
    """Approximate the density of the rows of files by weighted atoms or components, and report the error.

    The result is a model for other commands. For a smaller table, use reduset sketch.

    Parameters
    ----------
    output : The model to write, such as small.npz.
    bandwidth : A number in the columns' units (--scales), or a rule: {rules}. By default the resolution: the smallest bandwidth at
        which the error of --size atoms (1,000) is at most --tol (0.05), there and at all larger ones.
    group_column : Labels of groups. Each group has its own atoms and keeps its proportion exactly.
    select : How atoms are chosen: {selectors}.
    weights : {weightings}, or own (of the selector). simplex: the best non-negative weights, the default without --bandwidth. free:
        the smallest error, possibly with negative weights, the default with --bandwidth.
    refine : Move the atoms to lower the error.
    verbose : Print bounds, the selection and timings as well.
    stream : Read rows once, batch by batch, for files larger than the memory; needs --size.
    checkpoint : With --stream: the file from which the same command resumes after an interrupt.
    checkpoint_every : Seconds between checkpoints, by default 30.
    """

    data: o.Data
    output: Path
    size: o.Size = None
    tol: float | None = None
    plateau: float | None = None
    max_size: int | None = None
    pieces: str = ATOMS
    kernel: str = "gaussian"
    bandwidth: str | None = None
    scales: str | None = None
    weight_column: str | None = None
    group_column: str | None = None
    whiten: bool = False
    select: str = "auto"
    weights: str | None = None
    refine: bool = False
    report: o.Report = None
    verbose: bool = False
    stream: bool = False
    checkpoint: Path | None = None
    checkpoint_every: Annotated[float | None, typer.Option("--checkpoint-every", min=0.0)] = None

    @property
    def searches(self) -> bool:
        """Whether the bandwidth is searched for: the resolution."""
        return not self.stream and self.bandwidth is None and self.plateau is None

    @property
    def weighting(self) -> str | None:
        """The kind of weights; None is the default of the library."""
        return self.weights or (None if self.searches or self.pieces != ATOMS else "free")

    def check(self) -> None:
        """Raise an error for invalid options before any work."""
        if self.size is not None and self.tol is not None and not self.stream:
            if self.bandwidth is not None:
                raise ValueError(
                    "two of --size, --tol and --bandwidth determine the third; omit one of them, got "
                    f"{self.size}, {self.tol:g} and {self.bandwidth}"
                )
            if self.plateau is not None:
                raise ValueError(
                    "--size and --tol determine the resolution, and --plateau is not used; omit one of the three, got "
                    f"--size {self.size} and --tol {self.tol:g}"
                )
        self._check_pieces()
        components = self.pieces != ATOMS and self.pieces
        self.check_engine(stream=self.stream, group_column=self.group_column, whiten=self.whiten, pieces=components)
        o.scales_of(self.scales, self.whiten, False)
        if self.output.suffix.lower() in targets.rows():
            raise ValueError(
                f"{self.output} holds rows, and compress writes a model; use reduset sketch … -o {self.output} for real rows with "
                f"weights, or write a model: -o {self.output.stem}.npz"
            )
        targets.check_all((self.output, targets.MODEL, self.data), (self.report, targets.HTML, []))
        o.check_proportion(self.tol, "--tol")
        group = self.group_column
        if group is not None and group in (o.names_of(self.columns) or ()):
            raise ValueError(f"--group-column {group} is a label, and cannot be one of --columns; omit it from one of them")
        if not self.stream:
            for option in self.changed("checkpoint", "checkpoint_every"):
                raise ValueError(f"{option} needs --stream, which reads batch by batch; add --stream, or omit it")

    def _check_pieces(self) -> None:
        """Raise an error for options that --pieces does not support."""
        from reduset import _validate
        from reduset.compression import PIECE_HINTS, PIECES

        if _validate.one_of(self.pieces, "--pieces", PIECES, PIECE_HINTS) == ATOMS:
            return
        if self.stream:
            raise ValueError(f"--pieces {self.pieces} needs all rows at once, and --stream reads each once; omit one of the two")
        for option in self.changed("select", "refine", "plateau", "group_column"):
            raise ValueError(f"{option} is for atoms, components are fitted to all rows at once; omit it, or use --pieces atoms")

    def run(self) -> int:
        """Run it; the exit code."""
        self.check()
        with self.on_engine():
            return self._stream() if self.stream else self._model()

    def _model(self) -> int:
        """Compress all rows; the exit code."""
        from reduset.io import Work
        from reduset.mean import KernelMean
        from reduset.model import Model, column_differences

        work = Work(
            *WORK, "the rows, and the work on them,", "choose fewer --columns, or read them in batches: --stream --size 500"
        )
        table = self.table(work, self.data, group_column=self.group_column, **self.reading())
        small = _compressed(self, table)
        full = KernelMean.from_samples(table.values, small.mean.kernel, table.weights)
        notes = list(table.notes)
        if self.group_column is not None and self.searches:
            notes.append("the bandwidth is the resolution of all rows together; the error at this bandwidth differs between groups")
        notes += above_random_rows(self, small)
        differences = column_differences(full, small.mean)
        notes += _large_differences(differences, table.columns)
        notes = write(self, table, table.values, notes, partial(Model.of, full, small, table.columns))
        tell(self, small, table.columns, notes, marginals=dict(zip(table.columns, differences.tolist(), strict=True)))
        if not small.reached:
            way_out = "raise --size or --tol" if self.searches else "raise --max-size, or widen --bandwidth"
            messages.note(f"the tolerance was not reached; {way_out}", self.quiet)
        return DONE if small.reached else NOT_REACHED

    def _stream(self) -> int:
        """Compress the rows as a stream; the exit code."""
        from reduset.model import Model

        small, sample, batches, notes, checkpoint = streaming.compressed(self)
        notes = [*notes, *above_random_rows(self, small)]
        notes = write(self, batches, sample.atoms, notes, partial(Model.of_stream, sample, small, batches.columns))
        checkpoint.remove()
        tell(self, small, batches.columns, notes, resumed=checkpoint.resumed)
        return DONE


def _compressed(request: CompressCommand, table: Table) -> Compression:
    """The compression of all rows, by group if there are groups."""
    from reduset._messages import quietly
    from reduset.compression import TOL, compress

    scales = o.scales_of(request.scales, request.whiten, table.in_one_unit)
    covariance = o.covariance_of(table.values, table.weights) if request.whiten else None
    goals = request.given("size", "tol", "plateau")
    if not goals and not (request.searches and request.max_size is None):
        goals = {"tol": TOL if request.searches else DEFAULT_TOL}
    with quietly():
        return compress(
            table.values,
            kernel=o.kernel_of(request.kernel, o.number_or_rule(request.bandwidth), covariance, scales),
            sample_weight=table.weights,
            **goals | request.given("max_size", "pieces", "select", "refine"),
            groups=table.groups,
            weights=request.weighting,
            rng=request.seed,
            progress=request.shows_progress,
        )


def applied_transform(transform: Any, columns: Sequence[str], scales: Mapping[str, str]) -> Any:
    """The transform as a model keeps it: one for all columns, or by column if some have another or none."""
    if isinstance(transform, str) and len(scales) == len(columns):
        return transform
    return dict(scales) or None


def write(
    request: CompressCommand, table: Table | Batches, rows: Any, notes: list[str], make: Callable[[dict[str, Any]], Model]
) -> list[str]:
    """Write the model and the report together, and return the notes, including notes on the model.

    ``rows`` are the rows of the table, or a sample of them. ``make`` makes the model from a description of its origin.
    """
    from reduset import _archive, report

    transform = applied_transform(request.reading()["transform"], table.columns, table.scales)
    reading = {"transform": transform, "compensate": request.compensate, "encode": table.encoding or None}
    model = make(messages.origin(table.sources, notes) | reading)
    with _archive.together():
        model.save(request.output)
        if request.report is not None:
            report.write_compression(request.report, model)
    oversmoothed = report.oversmoothing_note(model)
    if oversmoothed:
        return [*notes, oversmoothed]
    return [*notes, *(messages.dominated_columns(rows, table.columns) if getattr(model.mean.kernel, "is_isotropic", True) else [])]


def _large_differences(differences: Any, columns: Sequence[str]) -> list[str]:
    """A note on columns with a marginal density that differs from all rows by more than 5 %, the largest difference first."""
    large = [k for k in (-differences).argsort(kind="stable").tolist() if differences[k] > NOTED_DIFFERENCE]
    if not large:
        return []
    texts = [f"{columns[k]} {percent(float(f'{differences[k]:.2g}'))}" for k in large[:LISTED_COLUMNS]]
    more = f" and {counted(len(large) - LISTED_COLUMNS, 'more column')}" if len(large) > LISTED_COLUMNS else ""
    return [
        f"marginal densities differ from those of all rows by more than {percent(NOTED_DIFFERENCE)} of the peak, at a tenth of the "
        f"column's spread: {', '.join(texts)}{more}; raise --size for finer detail"
    ]


def above_random_rows(request: CompressCommand, small: Compression) -> list[str]:
    """A note if the error is significantly above the error of as many random rows, with a better call."""
    comparison = small.above_random_rows()
    if comparison is None:
        return []
    changed = request.changed("select", "weights", "refine")
    better = f"omit {' and '.join(changed)}" if changed else "raise --size or --bandwidth"
    return [f"{comparison}; {better}, or use reduset sketch --size {small.size} for real rows with weights"]


def tell(request: CompressCommand, small: Compression, columns: Sequence[str], notes: list[str], **more: Any) -> None:
    """Print one JSON object or a few lines."""
    proportions = "" if small.groups is None else f"{request.group_column}: {_proportions(small)}"
    groups = Row("groups", proportions, facts={"columns": columns})
    details = small.details().splitlines() if request.verbose else []
    result = messages.with_scales(small.describe(), small.mean.kernel, columns, groups)
    text = result if request.json or not details else "\n".join([str(result), *details])
    messages.answer(request, text, notes, [path for path in (request.output, request.report) if path is not None], **more)


def _proportions(small: Compression) -> str:
    """The proportions of the groups, the largest first."""
    labels = small.groups.astype(str)  # type: ignore[union-attr]
    proportions: dict[str, float] = small.describe().facts()["shares"]
    ranked = sorted(proportions, key=lambda name: -proportions[name])
    texts = [f"{name} {percent(proportions[name])} ({int((labels == name).sum()):,} atoms)" for name in ranked[:LISTED_GROUPS]]
    return ", ".join(texts) + (f", and {len(ranked) - LISTED_GROUPS} more" if len(ranked) > LISTED_GROUPS else "")
