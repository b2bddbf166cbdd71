"""`reduset compress`: reads files, writes a model of few weighted atoms or components, and reports its error."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reduset._messages import did_you_mean
from reduset.cli import messages, results, streaming, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, NOT_REACHED, command
from reduset.cli.request import covariance_of, kernel_of

if TYPE_CHECKING:
    from reduset.compression import Compression
    from reduset.io import Table

DEFAULT_TOL = 0.01
ATOMS, COMPONENTS = PIECES = ("atoms", "components")  # a test compares them with the library's
WORK = 4, 24  # bytes that compress takes for its work, a number and a row: what docs/scaling.md says
WAY_OUT = "choose fewer --columns, or read them batch by batch: --stream --size 500"
# written out, since importing them would make help wait for the compiler; a test compares
SELECTORS = "auto, cholesky, columnnorm, greedy, herding, kcenter, kmeans, paring, random, shadow or thinning"
WEIGHTS_HELP = (
    "simplex (the best non-negative ones; the default without --bandwidth), free (the best, possibly negative; the default with "
    "--bandwidth), sum_to_one, clipped, sum_to_one_clipped, simplex_projection, own."
)
PIECES_HELP = (
    "What the model is made of: atoms (weighted points), or components (Gaussians with covariances of their own; for densities, "
    "some hundred have the error of thousands of atoms)."
)


@command("events.fcs --transform asinh:150 --tol 0.01 -o small.npz --report small.html")
class CompressCommand(o.Reading, o.Seeded, o.Telling):
    """Approximate the density of the rows of files by few weighted atoms or components, and report the error.

    The result is a model for other commands. For a smaller table, use reduset sketch.
    """

    data: o.Data
    output: Annotated[Path, typer.Option("--output", "-o", help="The model to write, such as small.npz.")]
    size: Annotated[int | None, typer.Option("--size", "-m", help="The number of atoms or components.")] = None
    tol: Annotated[
        float | None,
        typer.Option("--tol", help="The share that may be lost; with a --bandwidth, the fewest atoms that keep to it (0.01)."),
    ] = None
    plateau: Annotated[float | None, typer.Option("--plateau", help="Stop where the curve flattens (1e-8, say).")] = None
    max_size: Annotated[int | None, typer.Option("--max-size", help="The most atoms, with --tol or --plateau.")] = None
    pieces: Annotated[str, typer.Option("--pieces", help=PIECES_HELP)] = ATOMS
    kernel: o.KernelName = "gaussian"
    bandwidth: o.OpenBandwidth = None
    scales: o.Scales = None
    columns: o.Columns = None
    weight_column: o.Weight = None
    group_column: Annotated[
        str | None, typer.Option("--group-column", help="Labels; each group gets atoms of its own and keeps its exact share.")
    ] = None
    whiten: o.Whiten = False
    transform: o.AutoTransform = None
    scales_channels = True
    compensate: o.Compensate = True
    missing: o.Missing = "refuse"
    key: o.Key = None
    encode: o.Encode = None
    select: Annotated[str, typer.Option("--select", help=f"How atoms are chosen: {SELECTORS}.")] = "auto"
    weights: Annotated[str | None, typer.Option("--weights", help=WEIGHTS_HELP)] = None
    refine: Annotated[bool, typer.Option("--refine", help="Move the atoms to where the loss is least.")] = False
    report: o.Report = None
    verbose: o.Verbose = False
    stream: Annotated[
        bool, typer.Option("--stream", help="Read rows once, batch by batch, for files larger than the memory; needs --size.")
    ] = False
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="With --stream: the file by which the same command goes on where it was interrupted."),
    ] = None
    checkpoint_every: Annotated[
        float | None, typer.Option("--checkpoint-every", min=0.0, help="Seconds between checkpoints; 30 if not given.")
    ] = None

    @property
    def searches(self) -> bool:
        """Whether the bandwidth is what is asked for: the resolution."""
        return not self.stream and self.bandwidth is None and self.plateau is None

    @property
    def weighting(self) -> str | None:
        """The kind of weights; None is the library's default."""
        return self.weights or (None if self.searches or self.pieces == COMPONENTS else "free")

    def check(self) -> None:
        """Refuse what cannot be done before any work is."""
        if self.size is not None and self.tol is not None and not self.stream:  # which says of each why not
            if self.bandwidth is not None:
                raise ValueError(
                    "--size, --tol and --bandwidth are three, of which two give the third; leave one of them out, got "
                    f"{self.size}, {self.tol:g} and {self.bandwidth}"
                )
            if self.plateau is not None:
                raise ValueError(
                    "--size and --tol give the resolution, which --plateau has no use for; leave one of the three out, got "
                    f"--size {self.size} and --tol {self.tol:g}"
                )
        self._check_pieces()
        o.scales_of(self.scales, self.whiten, False)
        if self.output.suffix.lower() in targets.rows():
            raise ValueError(
                f"{self.output} holds rows, and compress writes a model; use reduset sketch … -o {self.output} for real rows with "
                f"weights, or write a model: -o {self.output.stem}.npz"
            )
        targets.check_all((self.output, targets.MODEL, self.data), (self.report, targets.HTML, []))
        o.check_tol(self.tol)
        group = self.group_column
        if group is not None and group in (o.names_of(self.columns) or ()):
            raise ValueError(f"--group-column {group} is a label, and cannot be one of --columns; leave it out of one")
        if not self.stream:
            for name in o.given(checkpoint=self.checkpoint, checkpoint_every=self.checkpoint_every):
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} goes with --stream, which reads batch by batch; add --stream, or leave it out")

    def _check_pieces(self) -> None:
        """Refuse what the pieces asked for have no use for."""
        if self.pieces not in PIECES:
            hint = "; use reduset sketch for real rows with weights" if self.pieces == "rows" else did_you_mean(self.pieces, PIECES)
            raise ValueError(f"--pieces must be {ATOMS} or {COMPONENTS}, got {self.pieces}{hint}")
        if self.pieces == ATOMS:
            return
        if self.stream:
            raise ValueError(
                f"--pieces {self.pieces} needs all rows at once, and --stream sees each once; leave out one of the two"
            )
        fitted = {"--select": self.select != "auto", "--refine": self.refine, "--plateau": self.plateau is not None}
        for name in (name for name, given in (fitted | {"--group-column": self.group_column is not None}).items() if given):
            raise ValueError(f"{name} is for atoms, components are fitted to all rows at once; leave it out, or use --pieces atoms")

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset.io import Work, read_for
        from reduset.mean import KernelMean
        from reduset.model import Model
        from reduset.model.columns import column_differences

        self.check()
        if self.stream:
            return streaming.run(self)
        work = Work(
            *WORK, "the rows, and the work on them,", "choose fewer --columns, or read them batch by batch: --stream --size 500"
        )
        table = read_for(work, self.data, group_column=self.group_column, **self.reading())
        small = _compressed(self, table)
        full = KernelMean.from_samples(table.values, small.mean.kernel, table.weights)
        notes = list(table.notes)
        if self.group_column is not None and self.searches:
            notes.append("the bandwidth is the resolution of all rows together; each group has an error of its own there")
        notes += results.above_random_rows(self, small)
        off = column_differences(full, small.mean)
        notes += results.columns_off(off, table.columns)
        notes = results.write(self, table, table.values, notes, partial(Model.of, full, small, table.columns))
        results.tell(self, small, table.columns, notes, marginals=dict(zip(table.columns, off.tolist(), strict=True)))
        if not small.reached:
            way_out = "raise --size or --tol" if self.searches else "raise --max-size, or widen --bandwidth"
            messages.note(f"the tolerance was not reached; {way_out}", self.quiet)
        return DONE if small.reached else NOT_REACHED


def _compressed(request: CompressCommand, table: Table) -> Compression:
    """The mean of all rows by few atoms; each group has its own, where there are groups."""
    from reduset._messages import quietly
    from reduset.compression.compressing import compress
    from reduset.compression.plan import TOL

    scales = o.scales_of(request.scales, request.whiten, table.in_one_unit)
    covariance = covariance_of(table.values, table.weights) if request.whiten else None
    goals = o.given(size=request.size, tol=request.tol, plateau=request.plateau)
    if not goals and not (request.searches and request.max_size is None):
        goals = {"tol": TOL if request.searches else DEFAULT_TOL}
    with messages.progress(request.silent) as shown, quietly():
        return compress(
            table.values,  # with a kernel whose bandwidth may be open, which a mean of them has decided
            kernel=kernel_of(request.kernel, o.number_or_rule(request.bandwidth), covariance, scales),
            sample_weight=table.weights,
            **goals,
            max_size=request.max_size,
            pieces=request.pieces,
            select=request.select,
            groups=table.groups,
            refine=request.refine,
            weights=request.weighting,
            rng=request.seed,
            progress=shown,
        )
