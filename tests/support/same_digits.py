"""Do two trees of the source give the same digits? Named calls of the public names, and a digest of what each returns.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1    # while recording: threads of BLAS sum in another order
    python tests/support/same_digits.py record a.json [--files FOLDER] [--only TEXT]
    python tests/support/same_digits.py compare a.json b.json    # the names that differ; exits with 1 if there are any
    python tests/support/same_digits.py read-files FOLDER out.json    # what the files hold that another tree wrote
    python tests/support/same_digits.py show NAME    # line by line what is digested, for diff

A digest is over types, shapes and bytes of arrays, floats to the last bit, texts and warnings; over no time and no address. The
tree is the one that `import reduset` finds, and the command is run by the same Python. The calls are in same_digits_calls.py,
same_digits_uses.py, same_digits_learning.py and same_digits_files.py.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import reduset

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "polars", "pyarrow")
LEFT_OUT = {"timings", "seconds", "versions"}
OTHERS = {"views_"}  # fitted attributes whose members are not public


def lines(value: Any, at: str = "") -> Iterator[str]:
    """What is told of a value, one line each; a type that is not known is an error, for its repr may hold an address."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.hasobject:
        yield f"{at} object {value.shape}"
        value = value.tolist()
    if value is None or (isinstance(value, bool | int | str | bytes) and not isinstance(value, np.generic)):
        yield f"{at} {type(value).__name__} {value!r}"
    elif isinstance(value, np.ndarray | np.generic):
        some = np.array2string(np.ravel(value)[:3], separator=",")
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        yield f"{at} {value.dtype.str} {value.shape} {digest[:32]} {some}"
    elif isinstance(value, float):
        yield f"{at} float {value.hex()} {value!r}"
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key not in LEFT_OUT:
                yield from lines(each, f"{at}.{key}")
    elif isinstance(value, list | tuple):
        yield f"{at} {len(value)}"
        for k, each in enumerate(value):
            yield from lines(each, f"{at}[{k}]")
    elif isinstance(value, BaseEstimator):
        yield from lines({name: each for name, each in sorted(vars(value).items()) if _fitted(name)}, at)
    elif is_dataclass(value):
        yield from lines({field.name: getattr(value, field.name) for field in fields(value) if not field.name.startswith("_")}, at)
        if isinstance(value, reduset.Compression):
            yield from lines(value.path, f"{at}.path")
        if "__str__" in vars(type(value)):
            yield f"{at} {re.sub(r'time  .*', '', str(value))!r}"
    elif isinstance(value, reduset.Kernel):
        yield f"{at} {value!r}"
    elif hasattr(value, "to_numpy"):
        yield f"{at} {[str(name) for name in getattr(value, 'columns', [])]}"
        yield from lines(np.asarray(value.to_numpy()), at)
    else:
        raise TypeError(f"{at}: nothing is known of a {type(value).__name__}")


def _fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name not in OTHERS


def told(call: Callable[[], Any]) -> list[str]:
    """All lines of a call in an empty folder of its own: what it returns, or raises, and what it warns of."""
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        found = list(lines(call()))
    heard = sorted({f"{each.category.__name__}: {each.message}" for each in caught if issubclass(each.category, UserWarning)})
    return found + heard


def digests(calls: Mapping[str, Callable[[], Any]]) -> dict[str, str]:
    """A digest of each; what a call raised is recorded in its place."""
    found = {}
    for k, (name, call) in enumerate(calls.items(), 1):
        begun = time.perf_counter()
        try:
            found[name] = hashlib.sha256("\n".join(told(call)).encode()).hexdigest()
        except Exception as error:
            found[name] = f"raised {type(error).__name__}: {error}"
            print(f"\n{name} {found[name]}", file=sys.stderr)
        print(f"\r{k}/{len(calls)} {name} {time.perf_counter() - begun:.1f} s\033[K", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def machine() -> str:
    """The processor and the versions, which digests depend on."""
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{platform.machine()}, Python {platform.python_version()}, {versions}"


def write(path: Path, calls: Mapping[str, Callable[[], Any]]) -> int:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if os.environ.get(name) != "1":
            raise SystemExit(f"{name} must be 1, got {os.environ.get(name)!r}: export {name}=1")
    begun, found = time.perf_counter(), digests(calls)
    told_of = {"tree": str(Path(reduset.__file__).parent), "machine": machine(), "digests": found}
    path.write_text(json.dumps(told_of, indent=1) + "\n", encoding="utf-8")
    raised = sum(digest.startswith("raised ") for digest in found.values())
    print(f"{len(found)} calls of {told_of['tree']} in {time.perf_counter() - begun:.0f} s, {raised} raised")
    return int(raised > 0)


def compare(one: Path, other: Path) -> int:
    """Print the names that differ; 1 where there are any."""
    ours, theirs = (json.loads(path.read_text(encoding="utf-8")) for path in (one, other))
    if ours["machine"] != theirs["machine"]:
        print(f"recorded on different machines or versions:\n  {ours['machine']}\n  {theirs['machine']}")
    mine, others = ours["digests"], theirs["digests"]
    for name in sorted({*mine, *others}):
        if name not in mine or name not in others:
            print(f"missing in {other if name in mine else one}: {name}")
        elif mine[name] != others[name]:
            print(f"differs: {name}")
    same = sum(mine[name] == others.get(name) for name in mine)
    print(f"{same} of {len({*mine, *others})} the same: {ours['tree']} and {theirs['tree']}")
    return int(mine != others)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_subparsers(dest="way", required=True)
    record = ways.add_parser("record")
    record.add_argument("out", type=Path)
    record.add_argument("--files", type=Path)
    record.add_argument("--only", default="")
    read = ways.add_parser("read-files")
    read.add_argument("folder", type=Path)
    read.add_argument("out", type=Path)
    both = ways.add_parser("compare")
    both.add_argument("one", type=Path)
    both.add_argument("other", type=Path)
    show = ways.add_parser("show")
    show.add_argument("name")
    given = parser.parse_args()
    if given.way == "compare":
        return compare(given.one, given.other)

    from same_digits_calls import CALLS
    from same_digits_files import reading, write_files

    if given.way == "show":
        print("\n".join(told(CALLS[given.name])))
        return 0
    if given.way == "read-files":
        return write(given.out, reading(given.folder.resolve()))
    if given.files is not None:
        given.files.mkdir(parents=True, exist_ok=True)
        write_files(given.files)
    chosen = {name: call for name, call in CALLS.items() if given.only in name}
    if not chosen:
        raise SystemExit(f"no call has {given.only!r} in its name")
    return write(given.out, chosen)


if __name__ == "__main__":
    sys.exit(main())
