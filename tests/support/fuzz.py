"""Valid files of every kind, made wrong at random, and read: `make fuzz SECONDS=3600`.

Files are read in a child process with limits on its memory and on the time of each file. A file must be read, or raise a ValueError
or an OSError with a message. A crash, a timeout or another exception is a failure, and its file is kept in build/fuzz. In HDF5
files, crashes and timeouts count as errors: these files are as safe as the HDF5 library. Seed and number identify a file:
`--seed 0 --first 4711 --count 1` makes it again.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "src")]
KEPT = ROOT / "build" / "fuzz"
ROOM = 4 << 30  # bytes beyond what the libraries take
PATIENCE = 30.0  # seconds for a file
AT_ONCE = 2000  # files of a child
OF_HDF5 = (".h5ad", ".h5")
NOW = "now.json"  # what the child is at


def child(folder: Path, seed: int, first: int, count: int, kinds: list[str], until: float) -> None:
    """Make and read files, a line for each failure and one in the end."""
    import numpy as np

    from fuzz_kinds import KINDS

    warnings.simplefilter("ignore")
    valid = {}
    for kind in kinds:
        suffix, make, _, use = KINDS[kind]
        path = folder / f"valid0.{suffix}"
        make(path)
        valid[kind] = path.read_bytes()
        use(path, None)  # compiles, and shows that what is not mutated is read
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if os.path.exists("/proc") else ROOM
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, resource.RLIM_INFINITY))
    read: Counter[str] = Counter()
    number = first
    for number in range(first, first + count):
        if time.time() > until:
            break
        kind = kinds[number % len(kinds)]
        suffix, _, mutate, use = KINDS[kind]
        path, rng = folder / f"case.{suffix}", np.random.default_rng([seed, number])
        try:
            wrong = mutate(valid[kind], rng)
        except Exception as error:  # no fault of a reader's: the fuzzer is to be mended, and says where
            raise SystemExit(f"file {number} of seed {seed}, {kind}, could not be made wrong: {error!r}") from error
        path.unlink(missing_ok=True)  # HDF5 knows a file that is still open by its inode, and would not look at the new bytes
        path.write_bytes(wrong)
        (folder / NOW).write_text(json.dumps({"kind": kind, "number": number, "file": path.name, "counts": read}))
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            use(path, rng)
            read[f"{kind} read"] += 1
        except (ValueError, OSError) as error:
            read[f"{kind} refused"] += 1
            if not str(error):
                tell(path, kind, number, seed, "an error without a word")
        except BaseException:
            tell(path, kind, number, seed, traceback.format_exc())
        faulthandler.cancel_dump_traceback_later()
    else:
        number += 1
    print(json.dumps({"next": number, "counts": read}), flush=True)


def tell(path: Path, kind: str, number: int, seed: int, what: str) -> None:
    """Keep a file that failed, and say so."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{kind}-{seed}-{number}{path.suffix}"
    shutil.copyfile(path, kept)
    print(json.dumps({"failed": str(kept), "what": what}), flush=True)


def run(
    seconds: float, seed: int, first: int, count: int | None, kinds: list[str]
) -> tuple[int, Counter[str], list[dict[str, str]]]:
    """Let children work until time or files are spent: how many files, how they ended by kind, and the failures."""
    until, number, counts, failures = time.time() + seconds, first, Counter(), []
    last = None if count is None else first + count
    with tempfile.TemporaryDirectory(prefix="reduset-fuzz-") as name:
        folder = Path(name)
        while time.time() < until and (last is None or number < last):
            some = AT_ONCE if last is None else min(AT_ONCE, last - number)
            words = [sys.executable, __file__, "--child", name, str(seed), str(number), str(some), ",".join(kinds), str(until)]
            (folder / NOW).unlink(missing_ok=True)
            ended = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
            lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
            failures += [line for line in lines if "failed" in line]
            done = next((line for line in lines if "next" in line), None)
            if done is not None:
                number = done["next"]
                counts.update(done["counts"])
                continue
            if not (folder / NOW).exists() or "could not be made wrong" in ended.stderr:
                raise SystemExit(f"the child could not go on:\n{ended.stderr}")
            now = json.loads((folder / NOW).read_text())
            kept = KEPT / f"{now['kind']}-{seed}-{now['number']}{Path(now['file']).suffix}"
            counts.update(now["counts"])
            number = now["number"] + 1
            if kept.suffix in OF_HDF5:  # as safe as the HDF5 library, which crashes on some damaged files
                counts[f"{now['kind']} refused"] += 1
                continue
            KEPT.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / now["file"], kept)
            how = f"no end after {PATIENCE:g} s" if "Timeout" in ended.stderr else f"the process ended with code {ended.returncode}"
            failures.append({"failed": str(kept), "what": f"{how}\n{ended.stderr[-3000:]}"})
    return number - first, counts, failures


def main(words: list[str] | None = None) -> int:
    """Run it; 0 where nothing failed."""
    from fuzz_kinds import KINDS

    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=None, help="another each time if not given")
    asked.add_argument("--first", type=int, default=0, help="the number of the first file")
    asked.add_argument("--count", type=int, default=None, help="how many files, whatever the time")
    asked.add_argument("--kinds", default=",".join(KINDS), help="some of them")
    given = asked.parse_args(words)
    seed = int.from_bytes(os.urandom(4), "little") if given.seed is None else given.seed
    began = time.time()
    files, counts, failures = run(1e9 if given.count else given.seconds, seed, given.first, given.count, given.kinds.split(","))
    for failure in failures:
        print(f"FAILED {failure['failed']}\n{failure['what']}")
    for kind in given.kinds.split(","):
        print(f"{kind:<12}{counts[f'{kind} refused']:>8,} refused{counts[f'{kind} read']:>8,} read")
    print(f"{files:,} files with seed {seed} in {time.time() - began:,.0f} s: {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        where, seed_, first_, count_, kinds_, until_ = sys.argv[2:]
        child(Path(where), int(seed_), int(first_), int(count_), kinds_.split(","), float(until_))
    else:
        sys.exit(main())
