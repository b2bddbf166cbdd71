"""Checkpoints of a stream: written now and then, and taken up again by the same command; those of another run are refused.

Beside the compressor's state a checkpoint keeps what was asked for, how many rows of the files were read, and how many of these
were left out for missing values. What was asked for must be the same to the last option, and the files of the same size and time,
else the rows that were seen and those still to come would be of two different things.
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

if TYPE_CHECKING:
    from reduset.cli.compress import CompressCommand
    from reduset.stream import StreamCompressor

EVERY = 30.0  # seconds
COMMAND = "reduset compress --stream"


def files_told(names: Sequence[str]) -> list[list[Any]]:
    """Name, size and time of change of every file: by these it is known again."""
    from reduset.io import head_of

    told = []
    for name in names:
        head_of(name)  # says what is wrong with a file that is not there, or is none
        seen = os.stat(name)
        told.append([os.path.abspath(name), seen.st_size, seen.st_mtime_ns])
    return told


class RunCheckpoint:
    """The checkpoint of a run: where it is kept, if anywhere."""

    def __init__(self, request: CompressCommand, asked: dict[str, Any]) -> None:
        self.path = request.checkpoint
        if self.path is not None:
            _check(self.path, request)
        self.rows = 0  # of the files, up to which it is kept
        self._asked = asked
        self._every = EVERY if request.checkpoint_every is None else request.checkpoint_every
        self._written = time.monotonic()

    def resume(self) -> tuple[StreamCompressor | None, int, int]:
        """The compressor as it was kept, if it was, the rows of the files it has seen, and how many of these were left out."""
        if self.path is None or not self.path.exists():
            return None, 0, 0
        from reduset.stream import StreamCompressor

        compressor = StreamCompressor.resume(self.path)
        about = compressor.about_
        if not isinstance(about, dict) or about.get("command") != COMMAND:
            raise ValueError(f"{self.path} is a checkpoint that `{COMMAND}` did not write; give --checkpoint another name")
        counts = [about.get(name) for name in ("rows", "dropped")]
        if not isinstance(about.get("asked"), dict) or not all(type(count) is int and 0 <= count < 2**63 for count in counts):
            raise ValueError(f"{self.path} does not say what was asked for, or how many rows were read; remove it to begin anew")
        differences = list(_differences(about["asked"], self._asked))
        if differences:
            raise ValueError(
                f"{self.path} is the checkpoint of another run: {'; '.join(differences[:3])}"
                f"{f'; and {len(differences) - 3} more' if len(differences) > 3 else ''}. Run it as it was to go on, or remove "
                "the file to begin anew"
            )
        self.rows = about["rows"]
        return compressor, self.rows, about["dropped"]

    def keep(self, compressor: StreamCompressor, rows: int, dropped: int, now: bool = False) -> None:
        """Write it where it is time to, or now."""
        if self.path is None or rows == self.rows or not (now or time.monotonic() - self._written >= self._every):
            return
        about = {"command": COMMAND, "asked": self._asked, "rows": rows, "dropped": dropped}
        compressor.checkpoint(self.path, about)
        self.rows, self._written = rows, time.monotonic()

    def remove(self) -> None:
        """Take it away, for all is done; and what killed runs have left half-written beside it."""
        if self.path is None:
            return
        kept = Path(os.path.realpath(self.path))  # of a link, what it leads to
        halves = glob.glob(glob.escape(str(kept.parent / f".{kept.name[:40]}.")) + "*.part")
        for name in [str(kept), *halves]:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def say_where(self) -> None:
        """Tell whoever interrupts."""
        if self.path is not None:
            kept = f"holds {self.rows:,} rows; run the same command again to go on from there"
            messages.note(f"{self.path} {kept if self.path.exists() else 'was not written yet; the next run begins anew'}")


def _check(path: Path, request: CompressCommand) -> None:
    """Refuse a place where no checkpoint can be written, or where it would overwrite something else."""
    targets.check_place(path, request.data)
    for other in (request.output, request.report):
        if other is not None and os.path.abspath(other) == os.path.abspath(path):
            raise ValueError(f"{path} cannot be the checkpoint and the output; give one of them another name")


def _differences(was: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """What is asked for now and was not then, in words."""
    for name in now | was:
        before, after = was.get(name), now.get(name)
        if before == after:
            continue
        if name == "files":
            yield _changed(before or [], after or [])
        else:
            yield f"{name} was {_said(before)}, and is now {_said(after)}"


def _said(value: Any) -> str:
    if value is None:
        return "not given"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _changed(before: list[list[Any]], after: list[list[Any]]) -> str:
    if len(before) != len(after):
        return f"it reads {len(before):,} file{'s' if len(before) > 1 else ''}, and now there are {len(after):,}"
    old, new = next((old, new) for old, new in zip(before, after, strict=True) if old != new)
    if old[0] != new[0]:
        return f"it reads {old[0]}, and not {new[0]}"
    if old[1] != new[1]:
        return f"{new[0]} had {old[1]:,} bytes, and has {new[1]:,} now"
    return f"{new[0]} was written anew since"
