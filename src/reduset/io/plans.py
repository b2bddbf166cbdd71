"""What is read of each file, settled before any of it is: the columns, their scales, and how many rows there are.

Files are opened one after the other to be looked at, and closed: of thousands only what was seen is kept. A single one stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reduset.io.automatic import ChannelSample, automatic_scales
from reduset.io.building import Chunk, TableBuilder, chunks, scales_of
from reduset.io.choice import ColumnChoice, choose, choose_alike
from reduset.io.encoded import encoded, encoding_of
from reduset.io.folders import files_of
from reduset.io.guard import READ, Work
from reduset.io.identifiers import without_identifiers
from reduset.io.reader import NONE, FileReader, ReadOptions
from reduset.io.registry import open_file
from reduset.io.table import FileError, Table

ROWS = 65536
BLOCK = 1 << 19  # bytes of a block of rows, about
FEW = 3  # files that are named with a note of theirs


Opener = Callable[[], FileReader]


@dataclass(frozen=True)
class FilePlan:
    """What is read of one file."""

    path: str
    choice: ColumnChoice
    rows: int | None
    scales: dict[str, str]
    notes: tuple[str, ...]
    encoding: dict[str, Any]
    open: Callable[[], FileReader]
    channels: ChannelSample | None = None
    in_one_unit: bool = False
    has_channels: bool = False

    @classmethod
    def of(
        cls, source: FileReader, choice: ColumnChoice, transform: Any, reopen: Callable[[], FileReader] | None = None
    ) -> FilePlan:
        """What is read of an open file, which stays open unless there is a way to open it again."""
        scales, told = scales_of(transform, source, choice)
        return cls(
            source.path,
            choice,
            source.rows,
            {title: one.name for title, one in scales.items()},
            (*source.notes, *choice.notes, *told),
            source.encoding,
            (lambda: source) if reopen is None else reopen,
            in_one_unit=source.in_one_unit,
            has_channels=source.automatic != NONE,
        )


class ReadPlan:
    """What is read of all files: the same columns of each.

    Attributes
    ----------
    files : what is read of each.
    first : the file that the others must be like.
    rows : of all files together; None where some file does not say.
    options : what is asked of each, settled: columns and scales by name.
    """

    def __init__(self, files: Sequence[FilePlan], options: ReadOptions) -> None:
        self.files = files
        self.first = files[0]
        counts = [file.rows for file in files]
        self.rows = None if None in counts else sum(count or 0 for count in counts)
        self.single = all(file.choice.single for file in files)
        self.options = options
        transformed = set(self.first.choice.titles) <= set(self.first.scales)
        self.in_one_unit = all(file.in_one_unit or (file.has_channels and transformed) for file in files)

    def chunks(self, file: FilePlan, most: int = ROWS, start: int = 0) -> Iterator[Chunk]:
        """The rows of one file from the block with row ``start`` on; blocks have at most so many rows, and fit in the cache."""
        rows = min(most, max(1024, min(ROWS, BLOCK // (8 * len(self.first.choice.titles)))))
        return chunks(file.open(), file.choice, self.options, self.single, rows, start)

    def builder(self, rows: int | None, work: Work = READ) -> TableBuilder:
        """Room for a table of so many rows, beside what is done with it."""
        return TableBuilder(self.first.path, rows, self.first.choice, self.single, work)

    def table(self, builder: TableBuilder, files: Sequence[FilePlan], looked_at: int) -> Table:
        """What was gathered of some files, of so many rows that were looked at."""
        if looked_at and not builder.rows:
            raise FileError(f"{self.first.path}: no rows are left, for each lacks a value; choose fewer columns")
        values, weights, groups = builder.finish(self.first.path)
        dropped = looked_at - len(values)
        sources = tuple(file.path for file in files)
        titles, scales, encoding = self.first.choice.titles, self.first.scales, self.first.encoding
        kinds = [file.channels for file in files if file.channels is not None and file.channels.automatic != NONE]
        channels = tuple(kinds) if len(kinds) == len(files) else ()
        notes = notes_of(files, dropped)
        return Table(
            values, titles, weights, groups, sources, notes, dropped, scales, encoding, channels, in_one_unit=self.in_one_unit
        )


def plan_of(paths: Any, options: ReadOptions) -> ReadPlan:
    """What is read of all files, each of which is opened and looked at."""
    names = files_of(paths)
    files: list[FilePlan] = []
    counting: tuple[str, ...] = ()
    openers = [partial(open_file, name, options) for name in names]
    encoders, options = encoding_of(openers, options)
    sampled: list[ChannelSample] = []
    for name, opener in zip(names, openers, strict=True):
        reopen = partial(encoded, opener, encoders)
        source = reopen()
        choice = choose_alike(source, options, files[0].choice, names[0]) if files else choose(source, options)
        if not files and options.columns is None:
            plain, choice = choice, without_identifiers(source, choice, options.identifiers == "omit")
            counting = choice.notes[len(plain.notes) :]
            if len(choice.names) < len(plain.names):
                options = replace(options, columns=list(choice.titles))
        elif counting:
            choice = replace(choice, notes=(*choice.notes, *counting))  # what the first file shows holds for all
        files.append(FilePlan.of(source, choice, options.transform, reopen if len(names) > 1 else None))
        if files[-1].scales != files[0].scales:  # scatter and time of FCS files are left alone
            raise FileError(f"{name}: transform takes other columns than in {names[0]}; say it for each column by name")
        if options.automatic:
            sampled.append(ChannelSample.of(source, choice))
        elif options.transform is None and not options.linear:
            files[-1] = replace(files[-1], channels=ChannelSample.of(source, choice, some=False))
    return ReadPlan(*_on_estimated_scales(files, options, sampled))


def _on_estimated_scales(
    files: list[FilePlan], options: ReadOptions, sampled: Sequence[ChannelSample]
) -> tuple[list[FilePlan], ReadOptions]:
    """The same with scales for channels that have none yet, one for each in all files; unchanged unless it is asked for."""
    if not options.automatic:
        return files, options
    scales, notes = automatic_scales(sampled, files[0].choice.titles, options.transform or {})
    if not scales:
        return files, options
    made = [replace(file, scales=file.scales | scales, notes=(*file.notes, *notes)) for file in files]
    return made, replace(options, transform=dict(options.transform or {}) | scales)


def gathered_notes(said: Sequence[tuple[str, Sequence[str]]], what: str) -> list[str]:
    """What is said of each of many by name: once where it is the same of all, else with the names of those it is said of."""
    told: dict[str, list[str]] = {}
    for name, notes in said:
        for note in dict.fromkeys(notes):
            told.setdefault(note, []).append(name)
    gathered = []
    for note, names in told.items():
        if len(names) == len(said):
            gathered.append(note)
        elif len(names) <= FEW:
            gathered += [f"{name}: {note}" for name in names]
        else:
            gathered.append(f"{names[0]} and {len(names) - 1:,} other {what}: {note}")
    return gathered


def notes_of(files: Sequence[FilePlan], dropped: int) -> tuple[str, ...]:
    """What there is to say of files: once where it is the same of all, else with the names of those it is said of."""
    notes = gathered_notes([(file.path, file.notes) for file in files], "files")
    if dropped:
        notes.append(f"{dropped:,} row{'s' if dropped > 1 else ''} with missing values left out")
    return tuple(notes)
