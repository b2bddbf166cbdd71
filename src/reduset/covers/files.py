"""Files of embeddings as arrays: .npy and safetensors mapped into memory, and columns of lists in Parquet or Feather.

Folders, lists of files and glob patterns are one array, in natural order of the names. Rows of tables are read in batches. They are
loaded if they fit into the memory for them, and are otherwise copied into a temporary file, which is mapped.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset.covers.parts import RowParts, scratch
from reduset.data import has_paths
from reduset.io import FileError, counted_order, files_of, listed, mapped_array, need

TABLES = (".parquet", ".feather", ".arrow")
TENSORS = ".safetensors"
TENSOR_TYPES = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}
MAPPED = (np.float16, np.float32, np.float64)
BATCH = 1024  # rows of a table that are read at once


def expanded(data: Any) -> Any:
    """Paths with the files of glob patterns and folders of safetensors. Other data are unchanged."""
    if not has_paths(data):
        return data
    paths: list[str] = []
    for path in map(os.fspath, data if isinstance(data, list | tuple) else [data]):
        is_pattern = glob.has_magic(path) and not os.path.exists(path)
        names = glob.glob(path if is_pattern else os.path.join(glob.escape(path), f"*{TENSORS}"))
        if is_pattern and not names:
            raise FileError(f"{path}: no file has such a name")
        paths += sorted(names, key=lambda name: counted_order(os.path.basename(name))) or [path]
    return data if len(paths) == 1 and not isinstance(data, list | tuple) and paths[0] == os.fspath(data) else paths


def array_of(data: Any, column: str | None, limit: float) -> Any:
    """The rows of files that hold arrays or columns of lists. None for other data, which are read as tables of numbers."""
    paths = _paths_of_arrays(data, column)
    if not paths:
        return None
    suffix = _suffix(paths[0])
    if suffix in TABLES:
        return _table_rows(paths, column, limit)
    parts = [_tensor(path, column) if suffix == TENSORS else mapped_array(path) for path in paths]
    if suffix == ".npy" and not all(part.ndim == 2 and part.dtype in MAPPED for part in parts):
        return parts[0] if len(parts) == 1 else None
    for path, part in zip(paths, parts, strict=True):
        if part.shape[1] != parts[0].shape[1]:
            raise FileError(f"{path}: must have {parts[0].shape[1]} columns like {paths[0]}, got {part.shape[1]}")
    return parts[0] if isinstance(parts[0], RowParts) and len(parts) == 1 else RowParts(parts)


def _suffix(path: str) -> str:
    return Path(path).suffix.lower()


def _paths_of_arrays(data: Any, column: str | None) -> list[str]:
    """Paths of files with one suffix: .npy, safetensors, or tables if there is one file or they have a column of lists."""
    if not has_paths(data):
        return []
    paths = [os.fspath(path) for path in (data if isinstance(data, list | tuple) else [data])]
    files = files_of(paths) if any(map(os.path.isdir, paths)) else paths
    suffixes = set(map(_suffix, files))
    if len(suffixes) > 1 and not suffixes <= set(TABLES):
        return []
    if suffixes <= {".npy", TENSORS}:
        return files
    is_one = len(files) == 1 and not os.path.isdir(paths[0])
    return files if suffixes <= set(TABLES) and (is_one or column is not None or _has_lists(files[0])) else []


def _tensor(path: str, column: str | None) -> RowParts:
    """A tensor of a file, mapped into memory. The library checks the header, which has the position of the tensor."""
    library = need("reading safetensors", "safetensors", "safetensors")
    try:
        with library.safe_open(path, framework="np") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118  # it is no mapping
        with open(path, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length))
    except (OSError, ValueError, library.SafetensorError) as error:
        raise FileError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error
    names = [name for name, shape in shapes.items() if len(shape) == 2 and header[name]["dtype"] in TENSOR_TYPES]
    if not names or (column is not None and column not in names):
        title = "" if column is None else f" {column!r}"
        raise FileError(f"{path}: has no matrix{title} of floating-point numbers; it holds {listed(names or shapes)}")
    if column is None and len(names) > 1:
        raise FileError(f"{path}: has several matrices ({listed(names)}); choose one with column=")
    name = names[0] if column is None else column
    kind, offset = header[name]["dtype"], 8 + length + header[name]["data_offsets"][0]
    if not all(shapes[name]):
        raise FileError(f"{path}: {name!r} must hold at least one row and one column, got shape {tuple(shapes[name])}")
    values = np.memmap(path, TENSOR_TYPES[kind], "r", offset, tuple(shapes[name]))
    return RowParts([values], bfloat16=kind == "BF16")


# -- tables ----------------------------------------------------------------------------------------------------------------------


def _table_rows(paths: list[str], column: str | None, limit: float) -> NDArray[Any]:
    """Rows from a column of lists, or from all numeric columns."""
    opened = [_opened_table(path) for path in paths]
    names, kinds = [], []
    for path, (schema, _, _) in zip(paths, opened, strict=True):
        columns, kind = _columns(path, schema, column)
        names.append(columns)
        kinds.append(kind)
    values: Any = None
    done, count = 0, sum(rows for _, rows, _ in opened)
    for path, (_, _, batches), columns in zip(paths, opened, names, strict=True):
        with _naming_unreadable(path):
            for batch in batches(columns):
                part = _values(path, batch, columns)
                if values is None:
                    values = scratch((count, part.shape[1]), np.result_type(*kinds), limit)
                if done + len(part) > count:
                    raise FileError(f"{path}: has more rows than it states; it is damaged")
                if part.shape[1] != values.shape[1]:
                    lengths = listed(map(str, sorted({part.shape[1], values.shape[1]})))
                    raise FileError(f"{path}: the lists of {columns[0]!r} must have equal lengths, got {lengths}")
                values[done : done + len(part)] = part
                done += len(part)
    if values is None or done != count:
        raise FileError(f"{paths[0]}: must hold {max(count, 1):,} rows, got {done:,}")
    return np.asarray(values) if not isinstance(values, np.memmap) else values


def _opened_table(path: str) -> tuple[Any, int, Any]:
    """The schema and the number of rows of a table, and a function that reads columns in batches."""
    arrow = need("reading tables", "pyarrow", "tables")
    with _naming_unreadable(path):
        if _suffix(path) == ".parquet":
            parquet = need("reading tables", "pyarrow.parquet", "tables")
            with parquet.ParquetFile(path) as file:
                schema, rows = file.schema_arrow, file.metadata.num_rows

            def batches(columns: list[str]) -> Iterator[Any]:
                # A small buffer and one thread: otherwise whole row groups are in memory.
                with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
                    yield from file.iter_batches(batch_size=BATCH, columns=columns, use_threads=False)

            return schema, rows, batches
        reader = arrow.ipc.open_file(arrow.memory_map(path))
        schema, total = reader.schema, sum(reader.get_batch(k).num_rows for k in range(reader.num_record_batches))
        return schema, total, lambda columns: (reader.get_batch(k).select(columns) for k in range(reader.num_record_batches))


def _columns(path: str, schema: Any, column: str | None) -> tuple[list[str], Any]:
    """The column of lists, or the numeric columns, and the type of their values."""
    types = need("reading tables", "pyarrow", "tables").types
    if column is not None and column not in schema.names:
        raise FileError(f"{path}: has no column {column!r}; its columns are {listed(schema.names)}")
    fields = [field for field in schema if column is None or field.name == column]
    lists = [field for field in fields if _is_list(field.type)]
    if len(lists) > 1:
        raise FileError(f"{path}: has several columns of lists ({listed(field.name for field in lists)}); choose one with column=")
    if lists:
        kind = lists[0].type.value_type
        if not types.is_floating(kind):
            raise FileError(
                f"{path}: the lists of {lists[0].name!r} must hold floating-point values without missing entries, got {kind}"
            )
        return [lists[0].name], kind.to_pandas_dtype()
    numbers = [field for field in fields if types.is_floating(field.type)]
    if numbers:
        return [field.name for field in numbers], np.result_type(*(field.type.to_pandas_dtype() for field in numbers))
    numbers = [field for field in fields if types.is_integer(field.type)]
    # integers only if there are no floats, since they may be row numbers
    if not numbers:
        raise FileError(f"{path}: has neither a column of lists nor a numeric column; its columns are {listed(schema.names)}")
    return [field.name for field in numbers], np.float64


def _is_list(kind: Any) -> bool:
    types = need("reading tables", "pyarrow", "tables").types
    names = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(types, name)(kind) for name in names if hasattr(types, name))


def _has_lists(path: str) -> bool:
    """Whether a table has a column of lists."""
    return any(_is_list(field.type) for field in _opened_table(path)[0])


@contextmanager
def _naming_unreadable(path: str) -> Iterator[None]:
    arrow = need("reading tables", "pyarrow", "tables")
    try:
        yield
    except (OSError, arrow.ArrowException) as error:
        raise FileError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error


def _values(path: str, batch: Any, columns: list[str]) -> NDArray[Any]:
    """(k, d) values of a batch, from a column of lists of equal length or from numeric columns."""
    compute = need("reading tables", "pyarrow.compute", "tables")
    lists = batch.column(columns[0])
    if not _is_list(lists.type):
        return np.column_stack([np.asarray(batch.column(name).to_numpy(zero_copy_only=False), np.float64) for name in columns])
    lengths = np.unique(np.asarray(compute.list_value_length(lists).fill_null(-1)))
    if len(lengths) > 1 or (len(lengths) and lengths[0] < 1):
        raise FileError(f"{path}: the lists of {columns[0]!r} must have equal lengths, got {listed(map(str, lengths.tolist()))}")
    flat = lists.flatten()
    if flat.null_count:
        raise FileError(f"{path}: the lists of {columns[0]!r} must hold floating-point values without missing entries, got nulls")
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(lists), -1)
