"""`reduset compress --stream`: rows of files batch by batch into a compressor that sees each once, in memory that does not grow.

A run that ends early, by whatever, is taken up by its checkpoint (`resuming.py`), and its result is that of an unbroken run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset.cli import messages, request, results, resuming, targets
from reduset.cli.app import DONE
from reduset.cli.resuming import EVERY as EVERY

if TYPE_CHECKING:
    from reduset.compression.result import Compression
    from reduset.io import Batches, Table
    from reduset.stream.estimator import StreamCompressor


@dataclass(frozen=True)
class Asked:
    """What the command was asked for.

    Attributes
    ----------
    read : what is read of the files, as `reduset.io.batches` takes it
    """

    data: list[Path]
    output: Path
    report: Path | None
    size: int
    kernel: str
    bandwidth: float | str
    whiten: bool
    weights: str
    seed: int
    read: dict[str, Any]

    def told(self, files: list[str]) -> dict[str, Any]:
        """All that the result depends on, in plain values, by the names of the options."""
        return {
            "files": resuming.files_told(files),
            "--size": self.size,
            "--kernel": self.kernel,
            "--bandwidth": self.bandwidth,
            "--whiten": self.whiten,
            "--weights": self.weights,
            "--seed": self.seed,
            **{f"--{name.replace('_', '-')}": value for name, value in self.read.items()},
        }


def refuse(size: int | None, others: dict[str, bool]) -> int:
    """Refuse options that need all rows at once; the size."""
    for name, given in others.items():
        if given:
            way_out = "give --size" if name in ("--tol", "--plateau", "--max-size") else "leave it out"
            raise ValueError(f"{name} needs all rows at once, and --stream sees each once; {way_out}, or leave out --stream")
    if size is None:
        raise ValueError("--stream needs --size, the number of atoms to keep, such as --size 500")
    return size


def run(asked: Asked, checkpoint: Path | None, every: float, json: bool, quiet: bool) -> int:
    """Compress a stream of rows, and say how much was lost."""
    from reduset import io

    if checkpoint is not None:
        resuming.check(checkpoint, asked.data, (asked.output, asked.report))
    files = io.files_of(asked.data)
    kept = resuming.Checkpoint(checkpoint, asked.told(files), every)
    found = kept.resume()
    compressor, rows, dropped = (None, 0, 0) if found is None else found
    batches = io.batches(files, start=rows, **asked.read)
    if rows:
        messages.note(f"going on after {rows:,} rows, as {checkpoint} says", quiet or json)
    try:
        with messages.progress(quiet or json, "rows") as shown:
            compressor, dropped = _fed(compressor, batches, dropped, asked, kept, shown)
            kept.keep(compressor, batches.position, dropped, now=True)
        small = compressor.result()
    except KeyboardInterrupt:
        word = kept.word()
        if word is not None:
            messages.note(word)
        raise
    finally:
        batches.close()
    notes = [*batches.notes(dropped), *_seen_once(compressor, batches, asked)]
    notes, written = _written(compressor, small, batches, notes, asked)
    kept.remove()
    results.tell(small, batches.columns, notes, written, json, quiet, resumed=rows)
    return DONE


def _fed(
    compressor: StreamCompressor | None,
    batches: Batches,
    dropped: int,
    asked: Asked,
    kept: resuming.Checkpoint,
    shown: Callable[[str, int, int | None], None] | bool,
) -> tuple[StreamCompressor, int]:
    """The compressor after the rows that were left, and how many rows have been left out in all."""
    before = batches.position
    for table in batches:
        if compressor is None:
            compressor = _begun(asked, table)
        compressor.partial_fit(table.values, table.weights)
        dropped += batches.position - before - len(table)
        before = batches.position
        kept.keep(compressor, before, dropped)
        if callable(shown):
            shown("reading", before, batches.total)
    if compressor is None:
        raise RuntimeError("batches without a row are refused by their reader")
    return compressor, dropped + batches.position - before


def _begun(asked: Asked, table: Table) -> StreamCompressor:
    from reduset.stream.estimator import StreamCompressor

    covariance = request.covariance_of(table.values, table.weights) if asked.whiten else None
    kernel = request.kernel_of(asked.kernel, asked.bandwidth, covariance)
    return StreamCompressor(kernel, asked.size, asked.seed, weights=asked.weights)


def _seen_once(compressor: StreamCompressor, batches: Batches, asked: Asked) -> list[str]:
    """What was decided by the first rows, since a stream is seen once."""
    n, notes = compressor.n_samples_seen_, []
    if isinstance(asked.bandwidth, str) and n > compressor.buffer:
        notes.append(f"the bandwidth is by the rule {asked.bandwidth!r} of the first rows, at most {compressor.buffer:,} of them")
    if asked.whiten and n > batches.rows:
        notes.append(f"whitened by the covariance of the first {batches.rows:,} rows")
    return notes


def _written(
    compressor: StreamCompressor, small: Compression, batches: Batches, notes: list[str], asked: Asked
) -> tuple[list[str], list[Path]]:
    """Write the result; all notes, and the files."""
    from reduset.model.model import Model

    sample, model = compressor.sample(), None
    if asked.report is not None or asked.output.suffix.lower() in targets.MODEL:
        if sample.size < small.n_samples:
            notes = [*notes, f"its portrait is that of {sample.size:,} rows, drawn fairly from all"]
        transform = results.applied(asked.read["transform"], batches.columns, batches.scales)
        about = request.origin(batches.sources, notes) | {"transform": transform, "compensate": asked.read["compensate"]}
        model = Model.of_stream(sample, small, batches.columns, about)
    written = results.write(asked.output, asked.report, small, model, batches.columns)
    drowned = [] if asked.whiten else request.spread_note(sample.atoms, batches.columns)
    return [*notes, *(results.hidden(model) or drowned)], written
