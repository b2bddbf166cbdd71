"""Mutation check: each fault of mutations.json is planted in a copy of the tree, and the tests are to find it.

The copy lies in a temporary folder; the tree itself is never changed. For each fault the tests of the package in which it lies are
run first, then all tests and doctests without those marked slow; with `--slow`, what survives meets the slow ones, too. The first
test that fails is run once more without the fault, and must pass there: a test that always fails finds nothing. A line is printed
for each fault, and `build/mutations.json` is written. The exit code is 1 if more than 4 faults survive, or, with `--slow`, any.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FAULTS = ROOT / "scripts" / "mutations.json"
RESULTS = ROOT / "build" / "mutations.json"
ENGINE = Path("src/reduset/_engine")
NOT_COPIED = (".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "build", "dist", "out")  # nor any .venv
MOST_SURVIVORS = 4  # of the tests without the slow ones
PATIENCE = 3600.0  # seconds for a run of the tests; a fault that makes them wait for ever is found
QUICK = ("-m", "not slow and not gpu")
ENDED_WELL = (0, 5)  # exit codes of pytest: all passed, and nothing to run
NOTE = "REDUSET_MUTATIONS_NOTE"  # the variable that names the file in which the first failure is written down
TESTS = ("tests/", "src/")  # how the names of tests begin


@dataclass(frozen=True)
class Fault:
    """A text that occurs once in a file, what takes its place, and what a user would see."""

    number: int
    file: str
    before: str
    after: str
    why: str

    def planted_in(self, tree: Path) -> str:
        """The text of its file in a tree, with the fault."""
        text = (tree / self.file).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise SystemExit(f"fault {self.number}: {self.file} has {self.before!r} {text.count(self.before)} times, not once")
        found = text.replace(self.before, self.after)
        ast.parse(found, self.file)
        return found

    @property
    def place(self) -> Path:
        """What it changes: its file; all of the engine where it lies there, for compiled callers hold what they call."""
        return ENGINE if Path(self.file).is_relative_to(ENGINE) else Path(self.file)

    def own_tests(self) -> list[str]:
        """The tests of the package, or of the single module, that it lies in."""
        name = Path(self.file).parts[2].removesuffix(".py")
        if (ROOT / "tests" / name).is_dir():
            return [f"tests/{name}"]
        return sorted(f"tests/{path.name}" for path in (ROOT / "tests").glob(f"test*_{name.strip('_')}*.py"))


def note_failure(report: Any) -> None:
    """As a plugin of the tests: write down which failed first, in whichever process that was."""
    if report.failed and NOTE in os.environ:
        with contextlib.suppress(FileExistsError), open(os.environ[NOTE], "x", encoding="utf-8") as file:
            file.write(report.nodeid)


pytest_runtest_logreport = pytest_collectreport = note_failure


class Copy:
    """A copy of the tree in a folder, of which the tests are run."""

    def __init__(self, folder: Path) -> None:
        self.tree, self._note, self._whole, plugin = (folder / name for name in ("tree", "note", "whole", "plugin"))
        for path in (self.tree, plugin):
            path.mkdir()
        shutil.copy2(__file__, plugin)
        for path in ROOT.iterdir():  # with their times, by which compiled code stays valid
            if path.name not in NOT_COPIED and not path.name.startswith(".venv"):
                (shutil.copytree if path.is_dir() else shutil.copy2)(path, self.tree / path.name)
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "REDUSET_NUM_THREADS"), "1")
        paths = os.pathsep.join(map(str, (self.tree / "src", plugin)))  # which comes before the installed package
        self._env = os.environ | threads | {"PYTHONPATH": paths, "CI": "true", NOTE: str(self._note)}
        self._env.pop("PYTHONDONTWRITEBYTECODE", None)
        code, said = self._run([sys.executable, "-c", "import reduset; print(reduset.__file__)"])
        if code != 0 or not Path(said.strip()).is_relative_to(self.tree):
            raise SystemExit(f"the copy in {self.tree} is not what is imported, but: {said.strip()}")

    def plant(self, fault: Fault) -> None:
        """Put a fault in; what was compiled of the engine goes where it is there."""
        text, place = fault.planted_in(self.tree), self.tree / fault.place
        (shutil.copytree if place.is_dir() else shutil.copy2)(place, self._whole)
        (self.tree / fault.file).write_text(text, encoding="utf-8")
        for path in place.rglob("*.nb[ic]"):
            path.unlink()

    def restore(self, fault: Fault) -> None:
        """Take a fault out, and what was compiled with it."""
        place = self.tree / fault.place
        if place.is_dir():
            shutil.rmtree(place)
        shutil.move(self._whole, place)

    def first_failure(self, tests: list[str], *filters: str) -> str | None:
        """The first of some tests that fails, of all where none are named; None where all pass."""
        self._note.unlink(missing_ok=True)
        options = ["-x", "-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider", "-p", Path(__file__).stem, *filters]
        code, said = self._run([sys.executable, "-m", "pytest", *options, *tests])
        if code in ENDED_WELL:
            return None
        noted = self._note.read_text(encoding="utf-8") if self._note.exists() else ""
        return noted or (said.strip().splitlines() or [f"exit code {code}"])[-1]

    def _run(self, words: list[str]) -> tuple[int, str]:
        """A command in the copy: its exit code and what it said. What it started ends with it where that takes too long."""
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
        with subprocess.Popen(words, cwd=self.tree, env=self._env, start_new_session=True, **streams) as process:
            try:
                said, _ = process.communicate(timeout=PATIENCE)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                return 1, f"no end after {PATIENCE:g} s"
        return process.returncode, said


def look_for(fault: Fault, copy: Copy, slow: bool) -> dict[str, Any]:
    """Plant a fault, run the tests, and tell which found it, among which tests, and in how many seconds."""
    began, own = time.monotonic(), fault.own_tests()
    stages: list[tuple[str, list[str], tuple[str, ...]]] = [("own", own, QUICK)] if own else []
    stages += [("all", [], QUICK), *([("slow", [], ())] if slow else [])]
    found = among = None
    copy.plant(fault)
    try:
        for stage, tests, filters in stages:
            found = copy.first_failure(tests, *filters)
            if found is not None:
                among = stage
                break
    finally:
        copy.restore(fault)
    seconds = round(time.monotonic() - began, 1)
    if found is not None:
        without = copy.first_failure([found.split("[")[0]] if found.startswith(TESTS) else own, *filters)
        if without is not None:
            raise SystemExit(f"fault {fault.number}: found by {found}, but without it this fails, too: {without}; mend that first")
    return asdict(fault) | {"found_by": found, "among": among, "seconds": seconds}


def main(words: list[str] | None = None) -> int:
    """Run it; 0 where enough faults were found."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    asked.add_argument("--slow", action="store_true", help="run what survives again, with the slow tests")
    asked.add_argument("--only", type=int, nargs="+", metavar="K", help="these faults alone, by number from 1")
    given = asked.parse_args(words)
    every = [Fault(number, **told) for number, told in enumerate(json.loads(FAULTS.read_text(encoding="utf-8")), 1)]
    for fault in every:
        fault.planted_in(ROOT)  # says at once what cannot be planted
    unknown = sorted(set(given.only or ()) - {fault.number for fault in every})
    if unknown:
        raise SystemExit(f"--only takes numbers from 1 to {len(every)}, got {unknown[0]}")
    faults = [fault for fault in every if given.only is None or fault.number in given.only]
    earlier = json.loads(RESULTS.read_text(encoding="utf-8")) if given.only and RESULTS.exists() else []
    results = {each["number"]: each for each in earlier}
    RESULTS.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reduset-mutations-") as folder:
        copy = Copy(Path(folder).resolve())
        for fault in faults:
            results[fault.number] = told = look_for(fault, copy, given.slow)
            how = "SURVIVED" if told["found_by"] is None else f"{told['among']}: {told['found_by']}"
            print(f"{fault.number:>3}  {fault.file}  {how}  {told['seconds']:,.0f} s", flush=True)
            in_order = [results[number] for number in sorted(results)]
            RESULTS.write_text(json.dumps(in_order, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    quickly = sum(results[fault.number]["among"] in ("own", "all") for fault in faults)
    survived = [fault.number for fault in faults if results[fault.number]["found_by"] is None]
    print(f"{quickly} of {len(faults)} found without slow tests; survived all that ran: {', '.join(map(str, survived)) or 'none'}")
    return 1 if len(faults) - quickly > MOST_SURVIVORS or (given.slow and survived) else 0


if __name__ == "__main__":
    sys.exit(main())
