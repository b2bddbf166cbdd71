"""CSV and TSV, also packed by gzip: text parsed by pyarrow, block by block.

The first megabytes decide: encoding (UTF-8, UTF-16 with its mark, else Latin-1), separator (the commonest of , ; tab | in the first
line), decimal commas, whether the first line names the columns (not where all of it are numbers), and what each column holds. A
column whose values are numbers for the larger part is one of numbers, so that a stray word in it is an error and not a category.
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
from reduset.io.paths import suffix_of
from reduset.io.reader import FLAG, NUMBER, SINGLE, TEXT, Block, FileReader, Format, Numbers, ReadOptions, is_date, unique_names
from reduset.io.table import FileError, one_line, refusing

HEAD = 1 << 20
BLOCK = 1 << 20  # a line must fit
TOO_LONG = f"a line is longer than {BLOCK >> 20} MiB; is it a table?"
MISSING = ["", "NA", "N/A", "#N/A", "nan", "NaN", "NAN", "-nan", "null", "NULL", "None", "none", "."]


class DelimitedReader(FileReader):
    """CSV or TSV: text in columns, with this separator or the commonest in its first line."""

    may_number_rows = True

    def __init__(self, path: str, _: ReadOptions, separator: str | None = None) -> None:
        self._csv, self._arrow = pyarrow(".csv"), pyarrow()
        self.title = "TSV" if separator == "\t" else "CSV"
        self._packed = suffix_of(path)[1]
        inside = f"gzip with {self.title} inside" if self._packed else self.title
        with refusing(path, inside), (gzip.open if self._packed else open)(path, "rb") as stream:
            head = stream.read(HEAD)
        if not head:
            raise FileError(f"{path}: is empty once unpacked")
        self._encoding, text = _decoded(path, head)
        lines = [line for line in text.splitlines() if line.strip()]
        if len(head) == HEAD and len(lines) == 1:
            raise FileError(f"{path}: its first line is longer than {HEAD >> 20} MiB; is it a table?")
        if not lines:
            raise FileError(f"{path}: holds blank lines alone")
        self._separator = separator or max(",;\t|", key=lambda mark: (_outside_quotes(lines[0]).count(mark), mark == ","))
        self.decimal = "," if self._separator in ";\t|" and _has_decimal_commas(lines[1:200], self._separator) else "."
        first, self._skip = _first_row(path, text, self._separator)
        headless = all(_is_number(cell) for cell in first)
        names, renamed = unique_names([f"column {k + 1}" for k in range(len(first))] if headless else first)
        self._names = names
        self._nameless = {name for name, cell in zip(names, first, strict=True) if not cell}
        self._skip = 0 if headless else self._skip
        super().__init__(path, self._look(path), None)
        self.notes += renamed
        if headless:
            self.notes.append("its first line holds numbers, not names: columns are called by their place")
        if self._encoding == "latin-1":
            self.notes.append("it is no UTF-8 and was read as Latin-1")
        if self.decimal == ",":
            self.notes.append("decimal commas")

    def _open(self, path: str, types: dict[str, Any] | None, names: list[str] | None) -> Any:
        reader = self._csv
        return reader.open_csv(
            self._arrow.input_stream(opened(path), compression="gzip" if self._packed else None),
            read_options=reader.ReadOptions(
                use_threads=False, block_size=BLOCK, column_names=self._names, skip_rows=self._skip, encoding=self._encoding
            ),
            parse_options=reader.ParseOptions(delimiter=self._separator, newlines_in_values=True),
            convert_options=reader.ConvertOptions(
                column_types=types,
                include_columns=names,
                decimal_point=self.decimal,
                null_values=MISSING,
                strings_can_be_null=True,
                check_utf8=self._encoding == "utf8",
            ),
        )

    def _look(self, path: str) -> dict[str, str]:
        """What each column holds, by the first block."""
        try:
            with self._open(path, None, None) as reader:
                batch = reader.read_next_batch()
        except StopIteration:
            batch = None
        except self._arrow.ArrowInvalid as error:
            raise FileError(f"{path}: {self._plainly(error)}") from error
        if batch is None or not batch.num_rows:
            raise FileError(f"{path}: has a line of names and no rows")
        kinds = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kind = kind_of(column.type)
            if kind == TEXT:
                some = [cell for cell in column.slice(0, 1000).to_pylist() if cell is not None]
                kind = NUMBER if 2 * sum(map(self._is_number, some)) > len(some) else TEXT
            if name in self._nameless and column.null_count == len(column):
                kind = "nothing"  # every line ends with a separator
            kinds[name] = NUMBER if kind == SINGLE else kind
        return kinds

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        arrow = self._arrow
        types = {name: self._type(self.kinds[name]) for name in names}
        for name in labels:
            if name not in types:
                types[name] = arrow.int64() if self.kinds[name] == NUMBER and self._whole(name) else arrow.string()
        try:
            with self._open(self.path, types, list(types)) as reader:
                for first, batch in counted(reader):
                    yield block_of_batch(first, batch, names, labels)
        except self._arrow.ArrowInvalid as error:
            raise FileError(f"{self.path}: {self._plainly(error)}") from error

    def _integers(self, name: str) -> Iterator[Numbers]:
        with self._open(self.path, {name: self._arrow.string()}, [name]) as reader:
            for batch in reader:
                cells = batch.column(0).drop_null()
                try:
                    yield cells.cast(self._arrow.int64()).to_numpy()
                except self._arrow.ArrowInvalid:  # fractions, or numbers beyond int64
                    whole = [int(cell) for cell in cells.unique().to_pylist() if INTEGER.fullmatch(cell)]
                    yield np.array(whole, dtype=object)

    def text_batches(self) -> Iterator[Any]:
        """Record batches of all cells as text, as they are written, cut into rows as for numbers."""
        arrow, reader = self._arrow, self._csv
        with reader.open_csv(
            arrow.input_stream(opened(self.path), compression="gzip" if self._packed else None),
            read_options=reader.ReadOptions(
                use_threads=False, block_size=BLOCK, column_names=self._names, skip_rows=self._skip, encoding=self._encoding
            ),
            parse_options=reader.ParseOptions(delimiter=self._separator, newlines_in_values=True),
            convert_options=reader.ConvertOptions(
                column_types=dict.fromkeys(self._names, arrow.string()),
                strings_can_be_null=False,
                check_utf8=self._encoding == "utf8",
            ),
        ) as batches:
            yield from batches

    def _type(self, kind: str) -> Any:
        """The Arrow type that a column of some kind is read as."""
        arrow = self._arrow
        if is_date(kind):  # in seconds where the first ones have no fractions; later ones may
            return arrow.timestamp("ns" if "[ns" in kind else "us", "UTC" if "tz=" in kind else None)
        return arrow.bool_() if kind == FLAG else arrow.float64()

    def _whole(self, name: str) -> bool:
        """Whether labels that look like numbers are whole ones, all of them, and lose nothing by it: 007 is a name."""
        with self._open(self.path, {name: self._arrow.string()}, [name]) as reader:
            for batch in reader:
                if not all(WHOLE.fullmatch(cell) for cell in batch.column(0).unique().to_pylist() if cell is not None):
                    return False
        return True

    def _plainly(self, error: Exception) -> str:
        """What pyarrow says, in the words of this library."""
        text = one_line(error)
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
        if ragged:
            row, wanted, seen = map(int, ragged.groups())
            return f"row {row - self._skip} has {seen} cells where the first line has {wanted}; correct it"
        odd = re.search(r"column #(\d+): Row #(\d+): CSV conversion error to \w+: invalid value '(.*)'", text)
        if odd:
            name, row, cell = self._names[int(odd[1])], int(odd[2]) - self._skip, odd[3][:40]
            return f"column {name!r} must hold numbers, got {cell!r} in row {row}; correct it, or choose other columns"
        return TOO_LONG if "straddling" in text else f"cannot be read as {self.title} ({text})"

    def _is_number(self, cell: str) -> bool:
        return _is_number(cell.replace(",", ".") if self.decimal == "," else cell)


WHOLE = re.compile(r"\s*(?:0|-?[1-9]\d{0,17})\s*")
INTEGER = re.compile(r"\s*[-+]?\d{1,300}\s*")
NUMERAL = re.compile(r"\s*[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan)\s*", re.IGNORECASE)


def _is_number(cell: str) -> bool:
    return NUMERAL.fullmatch(cell) is not None


def _decoded(path: str, head: bytes) -> tuple[str, str]:
    """The encoding, and the first lines as text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", head[: len(head) & ~1].decode("utf-16", "replace")
    if b"\x00" in head:
        raise FileError(f"{path}: holds binary data (a zero byte at {head.index(0):,}), not text; is its suffix right?")
    try:
        return "utf8", head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(head) == HEAD and error.start > HEAD - 4:  # a letter of several bytes, cut in two
            return "utf8", head[: error.start].decode("utf-8-sig")
        return "latin-1", head.decode("latin-1")


def _outside_quotes(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def _has_decimal_commas(lines: list[str], separator: str) -> bool:
    cells = [cell.strip().strip('"') for line in lines for cell in line.split(separator)]
    with_comma = sum(re.fullmatch(r"-?\d*,\d+(?:[eE][-+]?\d+)?", cell) is not None for cell in cells)
    return with_comma > sum(re.fullmatch(r"-?\d*\.\d+(?:[eE][-+]?\d+)?", cell) is not None for cell in cells)


def _first_row(path: str, text: str, separator: str) -> tuple[list[str], int]:
    """The cells of the first line that is not blank, and how many lines lie before the next."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        cells = next(cells for cells in reader if any(cell.strip() for cell in cells))
    except (StopIteration, csv.Error) as error:
        raise FileError(f"{path}: its first line holds no names of columns ({one_line(error)}); is it a table?") from error
    return [cell.strip() for cell in cells], reader.line_num


def _writer(separator: str) -> Callable[[Any, Any], None]:
    """What fills a stream with lines."""

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
