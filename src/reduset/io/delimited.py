"""CSV and TSV, also compressed by gzip, parsed by pyarrow block by block.

The first megabyte determines the encoding: UTF-8, UTF-16 with a byte order mark, or Latin-1. It also determines the separator (the
most frequent of , ; tab | in the first line), decimal commas, and the type of each column. The first line has names unless all of
its cells are numbers. A column with mostly numbers is numeric, so a stray word in it is an error and not a category.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from reduset.io.arrow import PYARROW, block_of_batch, counted, kind_of, opened, pyarrow
from reduset.io.guard import suffix_of
from reduset.io.reader import FLAG, NUMBER, SINGLE, TEXT, Block, FileReader, Format, Numbers, ReadOptions, is_date, unique_names
from reduset.io.table import FileError, one_line, refusing

HEAD = 1 << 20
BLOCK = 1 << 20  # a line must fit
MISSING = ["", "NA", "N/A", "#N/A", "nan", "NaN", "NAN", "-nan", "null", "NULL", "None", "none", "."]
WHOLE = re.compile(r"\s*(?:0|-?[1-9]\d{0,17})\s*")  # integers that lose no digit or zero; 007 is a name
INTEGER = re.compile(r"\s*[-+]?\d{1,300}\s*")
NUMERAL = re.compile(r"\s*[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan)\s*", re.IGNORECASE)
COMMA_NUMERAL, POINT_NUMERAL = (re.compile(rf"-?\d*{mark}\d+(?:[eE][-+]?\d+)?") for mark in (",", r"\."))


class DelimitedReader(FileReader):
    """CSV or TSV: text in columns, with the given separator or the most frequent one in its first line."""

    may_number_rows = True

    def __init__(self, path: str, _: ReadOptions, separator: str | None = None) -> None:
        self._csv, self._arrow = pyarrow(".csv"), pyarrow()
        self.title = "TSV" if separator == "\t" else "CSV"
        self._packed = suffix_of(path)[1]
        with (
            refusing(path, f"gzip with {self.title} inside" if self._packed else self.title),
            (gzip.open if self._packed else open)(path, "rb") as stream,
        ):
            head = stream.read(HEAD)
        if not head:
            raise FileError(f"{path}: is empty once unpacked")
        self._encoding, text = _decoded(path, head)
        lines = [line for line in text.splitlines() if line.strip()]
        if len(head) == HEAD and len(lines) == 1:
            raise FileError(f"{path}: its first line is longer than {HEAD >> 20} MiB; is it a table?")
        if not lines:
            raise FileError(f"{path}: holds blank lines only")
        unquoted = re.sub(r'"[^"]*"', "", lines[0])
        self._separator = separator or max(",;\t|", key=lambda mark: (unquoted.count(mark), mark == ","))
        self.decimal = "," if self._separator in ";\t|" and _has_decimal_commas(lines[1:200], self._separator) else "."
        first, skipped = _first_row(path, text, self._separator)
        has_names = not all(map(NUMERAL.fullmatch, first))
        self._names, renamed = unique_names(first if has_names else [f"column {k + 1}" for k in range(len(first))])
        self._nameless = {name for name, cell in zip(self._names, first, strict=True) if not cell}
        self._skip = skipped if has_names else 0
        super().__init__(path, self._kinds(path), None)
        self.notes += renamed
        if not has_names:
            self.notes.append("its first line holds numbers, not names: columns are named by position")
        if self._encoding == "latin-1":
            self.notes.append("it is no UTF-8 and was read as Latin-1")
        if self.decimal == ",":
            self.notes.append("decimal commas")

    def _open(self, path: str, types: dict[str, Any] | None, names: list[str] | None = None, as_text: bool = False) -> Any:
        """pyarrow's reader; ``as_text`` takes cells as written, without missing values or decimal commas."""
        convert = {} if as_text else {"null_values": MISSING, "decimal_point": self.decimal}
        return self._csv.open_csv(
            self._arrow.input_stream(opened(path), compression="gzip" if self._packed else None),
            read_options=self._csv.ReadOptions(
                use_threads=False, block_size=BLOCK, column_names=self._names, skip_rows=self._skip, encoding=self._encoding
            ),
            parse_options=self._csv.ParseOptions(delimiter=self._separator, newlines_in_values=True),
            convert_options=self._csv.ConvertOptions(
                column_types=types,
                include_columns=names,
                strings_can_be_null=not as_text,
                check_utf8=self._encoding == "utf8",
                **convert,
            ),
        )

    def _kinds(self, path: str) -> dict[str, str]:
        """The type of each column by the first block."""
        try:
            with self._open(path, None) as reader:
                batch = reader.read_next_batch()
        except StopIteration:
            batch = None
        except self._arrow.ArrowInvalid as error:
            raise FileError(f"{path}: {self._explained(error)}") from error
        if batch is None or not batch.num_rows:
            raise FileError(f"{path}: has a line of names and no rows")
        kinds = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kind = kind_of(column.type)
            if kind == TEXT:
                cells = [cell for cell in column.slice(0, 1000).to_pylist() if cell is not None]
                numerals = sum(
                    NUMERAL.fullmatch(cell.replace(",", ".") if self.decimal == "," else cell) is not None for cell in cells
                )
                kind = NUMBER if 2 * numerals > len(cells) else TEXT
            if name in self._nameless and column.null_count == len(column):
                kind = "nothing"  # every line ends with a separator
            kinds[name] = NUMBER if kind == SINGLE else kind
        return kinds

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        types = {name: self._type(self.kinds[name]) for name in names}
        for name in labels:
            if name not in types:
                is_whole = self.kinds[name] == NUMBER and self._is_whole(name)
                types[name] = self._arrow.int64() if is_whole else self._arrow.string()
        try:
            with self._open(self.path, types, list(types)) as reader:
                for first, batch in counted(reader):
                    yield block_of_batch(first, batch, names, labels)
        except self._arrow.ArrowInvalid as error:
            raise FileError(f"{self.path}: {self._explained(error)}") from error

    def _cells(self, name: str) -> Iterator[Any]:
        """The cells of a column as text, block by block, missing ones as null."""
        with self._open(self.path, {name: self._arrow.string()}, [name]) as reader:
            yield from (batch.column(0) for batch in reader)

    def _integers(self, name: str) -> Iterator[Numbers]:
        for cells in self._cells(name):
            try:
                yield cells.drop_null().cast(self._arrow.int64()).to_numpy()
            except self._arrow.ArrowInvalid:  # fractions, or numbers beyond int64
                texts = cells.drop_null().unique().to_pylist()
                yield np.array([int(text) for text in texts if INTEGER.fullmatch(text)], dtype=object)

    def _is_whole(self, name: str) -> bool:
        """Whether all labels of a numeric column are integers that lose nothing as such."""
        return all(WHOLE.fullmatch(text) for cells in self._cells(name) for text in cells.unique().to_pylist() if text is not None)

    def text_batches(self) -> Iterator[Any]:
        """Record batches of all cells as text, as written, with the same rows as blocks of numbers."""
        with self._open(self.path, dict.fromkeys(self._names, self._arrow.string()), as_text=True) as batches:
            yield from batches

    def _type(self, kind: str) -> Any:
        """The Arrow type for reading a column."""
        if is_date(kind):  # pyarrow infers seconds if the first ones have no fractions, but later ones may have some
            return self._arrow.timestamp("ns" if "[ns" in kind else "us", "UTC" if "tz=" in kind else None)
        return self._arrow.bool_() if kind == FLAG else self._arrow.float64()

    def _explained(self, error: Exception) -> str:
        """An error of pyarrow with the row, the column and the way out."""
        text = one_line(error)
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
        if ragged:
            row, expected, cells = map(int, ragged.groups())
            return f"row {row - self._skip} has {cells} cells where the first line has {expected}; correct it"
        invalid = re.search(r"column #(\d+): Row #(\d+): CSV conversion error to \w+: invalid value '(.*)'", text)
        if invalid:
            name, row, cell = self._names[int(invalid[1])], int(invalid[2]) - self._skip, invalid[3][:40]
            return f"column {name!r} must hold numbers, got {cell!r} in row {row}; correct it, or choose other columns"
        if "straddling" in text:
            return f"a line is longer than {BLOCK >> 20} MiB; is it a table?"
        return f"cannot be read as {self.title} ({text})"


def _decoded(path: str, head: bytes) -> tuple[str, str]:
    """The encoding, and the first lines as text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", head[: len(head) & ~1].decode("utf-16", "replace")
    if b"\x00" in head:
        raise FileError(f"{path}: holds binary data (a zero byte at {head.index(0):,}), not text; is its suffix right?")
    try:
        return "utf8", head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(head) == HEAD and error.start > HEAD - 4:  # a character of several bytes is cut in two
            return "utf8", head[: error.start].decode("utf-8-sig")
        return "latin-1", head.decode("latin-1")


def _has_decimal_commas(lines: list[str], separator: str) -> bool:
    cells = [cell.strip().strip('"') for line in lines for cell in line.split(separator)]
    with_comma, with_point = (sum(map(bool, map(pattern.fullmatch, cells))) for pattern in (COMMA_NUMERAL, POINT_NUMERAL))
    return with_comma > with_point


def _first_row(path: str, text: str, separator: str) -> tuple[list[str], int]:
    """The cells of the first line that is not blank, and the number of lines up to it."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        cells = next(cells for cells in reader if any(cell.strip() for cell in cells))
    except (StopIteration, csv.Error) as error:
        raise FileError(f"{path}: its first line holds no column names ({one_line(error)}); is it a table?") from error
    return [cell.strip() for cell in cells], reader.line_num


def _writer(separator: str) -> Callable[[Any, Any], None]:
    def write(stream: Any, table: Any) -> None:
        pyarrow(".csv").write_csv(table, stream, pyarrow(".csv").WriteOptions(delimiter=separator))

    return write


FORMATS = tuple(
    Format(title, suffixes, opener, needs=PYARROW, gzipped=True, write=_writer(separator), written=suffixes[:1])
    for title, suffixes, opener, separator in (
        ("CSV", (".csv", ".txt"), DelimitedReader, ","),
        ("TSV", (".tsv", ".tab"), partial(DelimitedReader, separator="\t"), "\t"),
    )
)
