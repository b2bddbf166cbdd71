"""Parquet, Arrow and Feather, and frames in memory: columns by pyarrow, only those that were chosen, batch by batch."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from reduset.io.guard import need
from reduset.io.source import FLAG, NUMBER, SINGLE, TEXT, Block, Labels, Numbers, Source, encode
from reduset.io.table import FileError, refusing


def kind_of(kind: Any) -> str:
    """What a column of an Arrow type holds."""
    types = need("pyarrow", "this").types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_float32(kind) or types.is_float16(kind):
        return SINGLE
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return NUMBER
    if types.is_boolean(kind):
        return FLAG
    return TEXT if types.is_string(kind) or types.is_large_string(kind) or "string" in str(kind) else str(kind)


def numbers(array: Any) -> Numbers:
    """A column as numbers, NaN where one is missing; not copied where nothing is."""
    arrow = need("pyarrow", "this")
    types = arrow.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_boolean(array.type) or types.is_decimal(array.type) or types.is_null(array.type):
        array = array.cast(arrow.float64())
    if array.null_count:
        single = types.is_float16(array.type) or types.is_float32(array.type)
        array = array.cast(arrow.float32() if single else arrow.float64(), safe=False).fill_null(float("nan"))
    return _plain(array)


def _plain(array: Any) -> Numbers:
    """Numbers of which none is missing, not copied. Arrow's own way to NumPy imports pandas, which takes up to a second."""
    return np.from_dlpack(array)


def labels(array: Any) -> Labels:
    """A column as labels."""
    types = need("pyarrow", "this").types
    if types.is_floating(array.type):
        return encode(numbers(array))
    if not types.is_dictionary(array.type):
        array = array.dictionary_encode()
    categories = [None if item is None else item if type(item) is int else str(item) for item in array.dictionary.to_pylist()]
    codes = _plain(array.indices.fill_null(-1)).astype(np.int64)
    if None in categories:
        codes[codes == categories.index(None)] = -1
        categories = ["" if item is None else item for item in categories]
    return Labels(codes, categories)


class ArrowSource(Source):
    """Whatever gives record batches of chosen columns."""

    def __init__(self, path: str, schema: Any, rows: int | None) -> None:
        with refusing(path, self.format):
            names = Counter(schema.names)
            kinds = {field.name: kind_of(field.type) for field in schema}
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            raise FileError(f"{path}: two columns are named {twice!r}; rename one of them")
        super().__init__(path, kinds, rows)

    @abstractmethod
    def _batches(self, names: list[str], rows: int, start: int) -> Iterable[tuple[int, Any]]:
        """Record batches of these columns, about ``rows`` rows each, with the rows before each; those before ``start`` may lack."""

    def blocks(self, names: Sequence[str], label: str | None, rows: int) -> Iterator[Block]:
        return (block for _, block in self.blocks_from(names, label, rows, 0))

    def blocks_from(self, names: Sequence[str], label: str | None, rows: int, start: int) -> Iterator[tuple[int, Block]]:
        wanted = list(dict.fromkeys([*names, *([] if label is None else [label])]))
        with refusing(self.path, self.format):
            for first, batch in self._batches(wanted, rows, start):
                if batch.num_rows and first + batch.num_rows > start:
                    found = None if label is None else labels(batch.column(batch.schema.get_field_index(label)))
                    yield first, ([numbers(batch.column(batch.schema.get_field_index(name))) for name in names], found)


def _counted(batches: Iterable[Any], first: int = 0) -> Iterator[tuple[int, Any]]:
    """Each with the number of rows before it."""
    for batch in batches:
        yield first, batch
        first += batch.num_rows


class ParquetSource(ArrowSource):
    """Parquet; the pages of columns that were not chosen are never read."""

    format = "Parquet"

    def __init__(self, path: str) -> None:
        parquet = need("pyarrow.parquet", "reading Parquet")
        with refusing(path, self.format), parquet.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        super().__init__(path, schema, rows)

    def _batches(self, names: list[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        parquet = need("pyarrow.parquet", "reading Parquet")
        # through a small buffer, and by one thread: else whole groups of rows lie in memory, which may be all rows
        with parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 16) as file:
            first = 0
            for group in range(file.metadata.num_row_groups):  # one by one, so that batches end with them and they can be skipped
                count = file.metadata.row_group(group).num_rows
                if first + count > start:
                    found = file.iter_batches(batch_size=rows, row_groups=[group], columns=names, use_threads=False)
                    yield from _counted(found, first)
                first += count


class FeatherSource(ArrowSource):
    """Arrow's own files: Feather (the same with another suffix), and streams."""

    format = "Arrow or Feather"

    def __init__(self, path: str) -> None:
        need("pyarrow", "reading Arrow")
        with refusing(path, self.format):
            with open(path, "rb") as stream:
                self._streamed = not stream.read(6).startswith(b"ARROW1")
            with self._open(path, None) as reader:
                schema = reader.schema
                rows = None if self._streamed or not hasattr(reader, "count_rows") else reader.count_rows()
        super().__init__(path, schema, rows)

    def _open(self, path: str, fields: list[int] | None) -> Any:
        arrow, ipc = need("pyarrow", "reading Arrow"), need("pyarrow.ipc", "reading Arrow")
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        if self._streamed:
            return ipc.open_stream(arrow.OSFile(path), options=options)
        return ipc.open_file(arrow.memory_map(path), options=options)  # of what is not packed, only the rows at hand are read

    def _batches(self, names: list[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        places = list(self.kinds)
        # where all are wanted none is named: pyarrow copies what is chosen by name, and else leaves it in the file until it is used
        whole = self._whole_batches([places.index(name) for name in names] if len(names) < len(places) else None)
        return _counted(batch.slice(at, rows) for batch in whole for at in range(0, batch.num_rows, rows))

    def _whole_batches(self, fields: list[int] | None) -> Iterator[Any]:
        with self._open(self.path, fields) as reader:
            if self._streamed:
                yield from reader
                return
            count = reader.num_record_batches
        for number in range(count):
            with self._open(self.path, fields) as reader:  # anew, so that what was read before does not stay in memory
                batch = reader.get_batch(number)
            yield batch


class FrameSource(ArrowSource):
    """A frame in memory: pandas, polars (lazy too) and Arrow objects, through narwhals."""

    format = "a frame"

    def __init__(self, frame: Any, wanted: Sequence[str] | None) -> None:
        nw = need("narwhals", "reading frames")
        arrow = need("pyarrow", "reading frames")
        name = f"{type(frame).__module__.split('.')[0]} {type(frame).__name__}"
        try:
            if hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "columns"):
                frame = arrow.table(frame)
            elif isinstance(frame, arrow.RecordBatch):
                frame = arrow.Table.from_batches([frame])
            seen = nw.from_native(frame)
        except (TypeError, arrow.ArrowInvalid) as error:  # a single column, say
            raise TypeError(
                f"frame must be a pandas, polars or Arrow table, got {type(frame).__name__}; files go to read"
            ) from error
        known = seen.collect_schema().names()
        if wanted is not None:
            missing = [column for column in wanted if column not in known]
            seen = seen.select([column for column in known if column in wanted]) if not missing else seen
        if isinstance(seen, nw.LazyFrame):
            seen = seen.collect()
        with refusing(name, self.format):
            self._table = seen.rename({column: str(column) for column in known if not isinstance(column, str)}).to_arrow()
        super().__init__(name, self._table.schema, self._table.num_rows)

    def _batches(self, names: list[str], rows: int, start: int) -> Iterable[tuple[int, Any]]:
        return _counted(self._table.select(names).to_batches(max_chunksize=rows))
