"""`reduset compress --stream`: rows of files batch by batch into a compressor that sees each once, in memory that does not grow.

A run that ends early, by whatever, is taken up by its checkpoint (`checkpoints.py`), and its result is that of an unbroken run.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from reduset.cli import messages, results
from reduset.cli.app import DONE
from reduset.cli.checkpoints import RunCheckpoint, files_told
from reduset.cli.options import given, number_or_rule, scales_of
from reduset.cli.request import covariance_of, kernel_of

if TYPE_CHECKING:
    from reduset.cli.compress import CompressCommand
    from reduset.cli.messages import ShowProgress
    from reduset.io import Batches, Table
    from reduset.stream import StreamCompressor

MEDIAN = "median"  # the bandwidth that is taken where none is given
WITH_SIZE = ("tol", "plateau", "max_size")  # which --size is given in place of


def run(request: CompressCommand) -> int:
    """Compress a stream of rows, and say how much was lost."""
    from reduset import io
    from reduset._messages import quietly
    from reduset.model import Model

    _refuse(request)
    files = io.files_of(request.data)
    checkpoint = RunCheckpoint(request, _told(request, files))
    compressor, rows, dropped = checkpoint.resume()
    batches = io.batches(files, start=rows, **request.reading())
    if rows:
        messages.note(f"going on after {rows:,} rows, as {request.checkpoint} says", request.silent)
    try:
        with messages.progress(request.silent, "rows") as shown:
            compressor, dropped = _fed(compressor, batches, dropped, request, checkpoint, shown)
            checkpoint.keep(compressor, batches.position, dropped, now=True)
        with quietly():
            small = compressor.result()
    except KeyboardInterrupt:
        checkpoint.say_where()
        raise
    finally:
        batches.close()
    sample = compressor.sample()
    notes = [*batches.notes(dropped), *_seen_once(compressor, batches, request), *results.above_random_rows(request, small)]
    if sample.size < small.n_samples:
        notes.append(f"its portrait is that of {sample.size:,} rows, drawn fairly from all")
    make = partial(Model.of_stream, sample, small, batches.columns)
    notes = results.write(request, batches, sample.atoms, notes, make)
    checkpoint.remove()
    results.tell(request, small, batches.columns, notes, resumed=rows)
    return DONE


def _refuse(request: CompressCommand) -> None:
    """Refuse options that need all rows at once."""
    whole = given(tol=request.tol, plateau=request.plateau, max_size=request.max_size)
    whole |= {"select": True} if request.select != "auto" else {}
    whole |= {"refine": True} if request.refine else {}
    for name in whole | given(group_column=request.group_column):
        way_out = "give --size" if name in WITH_SIZE else "leave it out"
        option = f"--{name.replace('_', '-')}"
        raise ValueError(f"{option} needs all rows at once, and --stream sees each once; {way_out}, or leave out --stream")
    if request.size is None:
        raise ValueError("--stream needs --size, the number of atoms to keep, such as --size 500")


def _told(request: CompressCommand, files: list[str]) -> dict[str, Any]:
    """All that the result depends on, in plain values, by the names of the options."""
    return {
        "files": files_told(files),
        "--size": request.size,
        "--kernel": request.kernel,
        "--bandwidth": number_or_rule(request.bandwidth or MEDIAN),
        "--scales": request.scales,
        "--whiten": request.whiten,
        "--weights": request.weighting,
        "--seed": request.seed,
        **{f"--{name.replace('_', '-')}": value for name, value in request.reading().items()},
    }


def _fed(
    compressor: StreamCompressor | None,
    batches: Batches,
    dropped: int,
    request: CompressCommand,
    checkpoint: RunCheckpoint,
    shown: ShowProgress | bool,
) -> tuple[StreamCompressor, int]:
    """The compressor after the rows that were left, and how many rows have been left out in all."""
    before = batches.position
    for table in batches:
        if compressor is None:
            compressor = _begun(request, table)
        compressor.partial_fit(table.values, sample_weight=table.weights)
        dropped += batches.position - before - len(table)
        before = batches.position
        checkpoint.keep(compressor, before, dropped)
        if callable(shown):
            shown("reading", before, batches.total)
    if compressor is None:
        raise RuntimeError("batches without a row are refused by their reader")
    return compressor, dropped + batches.position - before


def _begun(request: CompressCommand, table: Table) -> StreamCompressor:
    from reduset.stream import StreamCompressor

    covariance = covariance_of(table.values, table.weights) if request.whiten else None
    scales = scales_of(request.scales, request.whiten, table.in_one_unit)
    kernel = kernel_of(request.kernel, number_or_rule(request.bandwidth or MEDIAN), covariance, scales)
    return StreamCompressor(kernel, request.size or 0, request.seed, weights=request.weighting or "free")


def _seen_once(compressor: StreamCompressor, batches: Batches, request: CompressCommand) -> list[str]:
    """What was decided by the first rows, since a stream is seen once."""
    n, rule, notes = compressor.n_samples_seen_, number_or_rule(request.bandwidth or MEDIAN), []
    first = f"of the first rows, at most {compressor.buffer:,} of them"
    longer = n > compressor.buffer
    if request.bandwidth is None:
        where = f" {first}" if longer else ""
        notes.append(f"the bandwidth is the median distance{where}: rows seen once have no resolution to search for")
    elif isinstance(rule, str) and longer:
        notes.append(f"the bandwidth is by the rule {rule!r} {first}")
    if isinstance(getattr(compressor.kernel, "scales", None), str) and longer:
        notes.append(f"the scales of columns are those {first}")
    if request.whiten and n > batches.rows:
        notes.append(f"whitened by the covariance of the first {batches.rows:,} rows")
    return notes
