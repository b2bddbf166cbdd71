"""`reduset compress --stream`: rows of files, batch by batch, into a compressor that reads each once in bounded memory.

A checkpoint keeps the state of the compressor, all options, the number of rows that were read, and the number of omitted rows. The
same command resumes from it, with the same result as a run without a break. A checkpoint of other options, or of files with another
size or time of change, raises an error.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset.cli import messages, targets
from reduset.cli import options as o

if TYPE_CHECKING:
    from reduset.cli.compress import CompressCommand
    from reduset.compression import Compression
    from reduset.io import Batches, Table
    from reduset.mean import KernelMean
    from reduset.stream import StreamCompressor

MEDIAN = "median"  # the default bandwidth
GOALS = ("tol", "plateau", "max_size")  # options that --size replaces
CHECKPOINT_SECONDS = 30.0
COMMAND = "reduset compress --stream"


def compressed(request: CompressCommand) -> tuple[Compression, KernelMean, Batches, list[str], Checkpoint]:
    """The compression of a stream, a sample of its rows, the batches that were read, notes, and the checkpoint."""
    from reduset import io
    from reduset._messages import quietly
    from reduset._progress import Progress

    _check(request)
    files = io.files_of(request.data)
    checkpoint = Checkpoint(request, _settings(request, files))
    compressor, dropped = checkpoint.resume()
    rows = checkpoint.resumed
    batches = io.batches(files, start=rows, **request.reading())
    if rows:
        messages.note(f"resumed after {rows:,} rows from {request.checkpoint}", request.silent)
    progress = Progress(request.shows_progress)
    try:
        position = batches.position
        for table in batches:
            compressor = compressor or _begun(request, table)
            compressor.partial_fit(table.values, sample_weight=table.weights)
            dropped += batches.position - position - len(table)
            position = batches.position
            checkpoint.keep(compressor, position, dropped)
            progress.stage("reading")(position, batches.total or position)
        if compressor is None:
            raise RuntimeError("batches without a row raise an error when they are read")
        dropped += batches.position - position
        checkpoint.keep(compressor, batches.position, dropped, now=True)
        with quietly():
            small = compressor.result()
    except KeyboardInterrupt:
        checkpoint.note()
        raise
    finally:
        progress.close()
        batches.close()
    sample = compressor.sample()
    notes = [*batches.notes(dropped), *_first_rows(compressor, batches, request)]
    if sample.size < small.n_samples:
        notes.append(f"marginal densities are estimated from {sample.size:,} random rows")
    return small, sample, batches, notes, checkpoint


def _check(request: CompressCommand) -> None:
    """Raise an error for options that need all rows at once."""
    for option in request.changed(*GOALS, "select", "refine", "group_column"):
        way_out = "give --size" if option in map(o.option_of, GOALS) else "omit it"
        raise ValueError(f"{option} needs all rows at once, and --stream reads each once; {way_out}, or omit --stream")
    if request.size is None:
        raise ValueError("--stream needs --size, the number of atoms, such as --size 500")


def _settings(request: CompressCommand, files: list[str]) -> dict[str, Any]:
    """Everything that the result depends on, as plain values by the names of options."""
    named = {name: getattr(request, name) for name in ("size", "kernel", "scales", "whiten", "seed")}
    named |= {"bandwidth": o.number_or_rule(request.bandwidth or MEDIAN), "weights": request.weighting}
    return {"files": identities(files)} | as_options(named | request.reading())


def _begun(request: CompressCommand, table: Table) -> StreamCompressor:
    """A compressor with the scales and the covariance of the first rows."""
    from reduset.stream import StreamCompressor

    covariance = o.covariance_of(table.values, table.weights) if request.whiten else None
    scales = o.scales_of(request.scales, request.whiten, table.in_one_unit)
    kernel = o.kernel_of(request.kernel, o.number_or_rule(request.bandwidth or MEDIAN), covariance, scales)
    return StreamCompressor(kernel, request.size or 0, request.seed, weights=request.weighting or "free")


def _first_rows(compressor: StreamCompressor, batches: Batches, request: CompressCommand) -> list[str]:
    """Notes on parameters that the first rows determined, because a stream is read once."""
    n, rule, notes = compressor.n_samples_seen_, o.number_or_rule(request.bandwidth or MEDIAN), []
    first = f"of the first rows, at most {compressor.buffer:,} of them"
    is_longer = n > compressor.buffer
    if request.bandwidth is None:
        notes.append(
            f"the bandwidth is the median distance{f' {first}' if is_longer else ''}; a stream has no search for a resolution"
        )
    elif isinstance(rule, str) and is_longer:
        notes.append(f"the bandwidth is by the rule {rule!r} {first}")
    if isinstance(getattr(compressor.kernel, "scales", None), str) and is_longer:
        notes.append(f"the scales of columns are those {first}")
    if request.whiten and n > batches.rows:
        notes.append(f"whitened by the covariance of the first {batches.rows:,} rows")
    return notes


def identities(names: Sequence[str]) -> list[list[Any]]:
    """The path, size and time of change of every file."""
    from reduset.io import head_of

    known = []
    for name in names:
        head_of(name)  # raises an error for a file that cannot be read
        status = os.stat(name)
        known.append([os.path.abspath(name), status.st_size, status.st_mtime_ns])
    return known


class Checkpoint:
    """The checkpoint of a run, if --checkpoint is given."""

    def __init__(self, request: CompressCommand, settings: dict[str, Any]) -> None:
        self.path = request.checkpoint
        if self.path is not None:
            targets.check_location(self.path, request.data)
            for other in (request.output, request.report):
                if other is not None and os.path.abspath(other) == os.path.abspath(self.path):
                    raise ValueError(f"{self.path} cannot be the checkpoint and the output; give one of them another name")
        self.rows = self.resumed = 0  # rows of the files before the checkpoint, now and at the start
        self._settings = settings
        self._seconds = CHECKPOINT_SECONDS if request.checkpoint_every is None else request.checkpoint_every
        self._written = time.monotonic()

    def resume(self) -> tuple[StreamCompressor | None, int]:
        """The compressor of the checkpoint, if it exists, and its number of omitted rows."""
        if self.path is None or not self.path.exists():
            return None, 0
        from reduset.stream import StreamCompressor

        compressor = StreamCompressor.resume(self.path)
        about = compressor.about_
        check_same_run(self.path, about, COMMAND, self._settings, "rows", "dropped")
        self.rows = self.resumed = about["rows"]
        return compressor, about["dropped"]

    def keep(self, compressor: StreamCompressor, rows: int, dropped: int, now: bool = False) -> None:
        """Write it if enough time has passed, or now."""
        if self.path is None or rows == self.rows or not (now or time.monotonic() - self._written >= self._seconds):
            return
        compressor.checkpoint(self.path, {"command": COMMAND, "asked": self._settings, "rows": rows, "dropped": dropped})
        self.rows, self._written = rows, time.monotonic()

    def remove(self) -> None:
        """Remove it, and partial files of killed runs next to it."""
        if self.path is None:
            return
        kept = Path(os.path.realpath(self.path))
        parts = glob.glob(glob.escape(str(kept.parent / f".{kept.name[:40]}.")) + "*.part")
        for name in [str(kept), *parts]:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def note(self) -> None:
        """Print how to resume after an interrupt."""
        if self.path is not None:
            kept = f"holds {self.rows:,} rows; run the same command again to resume"
            messages.note(f"{self.path} {kept if self.path.exists() else 'was not written yet; the next run starts again'}")


def as_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings by the names of their options."""
    return {o.option_of(name): value for name, value in settings.items()}


def check_same_run(path: Path, about: Any, command: str, settings: dict[str, Any], *counts: str) -> None:
    """Raise an error for a checkpoint of another command, without these numbers of rows, or of other options or files."""
    if not isinstance(about, dict) or about.get("command") != command:
        raise ValueError(f"{path} is not a checkpoint of `{command}`; give --checkpoint another name")
    if not isinstance(about.get("asked"), dict) or not all(_is_count(about.get(name)) for name in counts):
        raise ValueError(f"{path} lacks the options or the number of rows of its run; remove it to start again")
    differences = list(_differences(about["asked"], settings))
    if differences:
        more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
        raise ValueError(
            f"{path} is the checkpoint of another run: {'; '.join(differences[:3])}{more}. Use the same options and files to "
            "resume, or remove it to start again"
        )


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**63


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """The options and files that differ."""
    for name in now | before:
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if name == "files":
            yield _file_difference(old or [], new or [])
        else:
            yield f"{name} was {_option_text(old)}, and is now {_option_text(new)}"


def _option_text(value: Any) -> str:
    if value is None:
        return "not given"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _file_difference(before: list[list[Any]], now: list[list[Any]]) -> str:
    if len(before) != len(now):
        return f"it read {len(before):,} file{'s' if len(before) > 1 else ''}, and now the number is {len(now):,}"
    old, new = next((old, new) for old, new in zip(before, now, strict=True) if old != new)
    if old[0] != new[0]:
        return f"it read {old[0]}, not {new[0]}"
    if old[1] != new[1]:
        return f"{new[0]} had {old[1]:,} bytes, and now has {new[1]:,}"
    return f"{new[0]} was written again since"
