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

from reduset.cli import targets

if TYPE_CHECKING:
    from reduset.stream.estimator import StreamCompressor

EVERY = 30.0  # seconds
COMMAND = "reduset compress --stream"


def files_told(names: Sequence[str]) -> list[list[Any]]:
    """Name, size and time of change of every file: by these it is known again."""
    from reduset.io.formats import head_of

    told = []
    for name in names:
        head_of(name)  # says what is wrong with a file that is not there, or is none
        seen = os.stat(name)
        told.append([os.path.abspath(name), seen.st_size, seen.st_mtime_ns])
    return told


class Checkpoint:
    """Where a run is kept, if anywhere."""

    def __init__(self, path: Path | None, asked: dict[str, Any], every: float) -> None:
        self.path = path
        self.rows = 0  # of the files, up to which it is kept
        self._asked = asked
        self._every = every
        self._written = time.monotonic()

    def resume(self) -> tuple[StreamCompressor, int, int] | None:
        """The compressor as it was kept, the rows of the files it has seen, and how many of these were left out."""
        if self.path is None or not self.path.exists():
            return None
        from reduset.stream.estimator import StreamCompressor

        compressor = StreamCompressor.resume(self.path)
        about = compressor.about_
        if not isinstance(about, dict) or about.get("command") != COMMAND:
            raise ValueError(f"{self.path} is a checkpoint that `{COMMAND}` did not write; give --checkpoint another name")
        differences = list(_differences(about["asked"], self._asked))
        if differences:
            raise ValueError(
                f"{self.path} is the checkpoint of another run: {'; '.join(differences[:3])}"
                f"{f'; and {len(differences) - 3} more' if len(differences) > 3 else ''}. Run it as it was to go on, or remove "
                "the file to begin anew"
            )
        self.rows = int(about["rows"])
        return compressor, self.rows, int(about["dropped"])

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
        halves = glob.glob(glob.escape(str(self.path.parent / f".{self.path.name[:40]}.")) + "*.part")
        for name in [str(self.path), *halves]:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def word(self) -> str | None:
        """What to say to whoever interrupts."""
        if self.path is None:
            return None
        if not self.path.exists():
            return f"{self.path} was not written yet; the next run begins anew"
        return f"{self.path} holds {self.rows:,} rows; run the same command again to go on from there"


def check(path: Path, data: Sequence[Path], outputs: Sequence[Path | None]) -> None:
    """Refuse a place where no checkpoint can be written, or where it would overwrite something else."""
    targets.check_place(path, data)
    for other in outputs:
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
