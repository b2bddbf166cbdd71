"""Run benchmarks, record their figures, and write RESULTS.md from the records.

    python benchmarks/run.py speed/kernel_sums peers      # one benchmark, all of a folder
    python benchmarks/run.py --quick                      # a small version of each; nothing is recorded
    python benchmarks/run.py --stale                      # benchmarks whose sources changed since they were recorded
    python benchmarks/run.py --confirm                    # keep stale records whose figures the new code returns as well
    python benchmarks/run.py --report                     # RESULTS.md from the records; nothing is measured

A benchmark is a file ``<folder>/<name>.py`` with

- a docstring: the question, the peers, and the goal;
- ``TITLE``, and ``SOURCES``: the packages and files of ``src/reduset`` that decide its figures;
- ``TIMED = True`` if its main figures are times; all in ``speed`` and ``gpu`` are;
- ``measure(quick)``: the figures, as JSON can hold them;
- ``summary(figures)``: rows of (what, figure, goal, whether it is met) for RESULTS.md; the last two may be "";
- ``details(figures)``: all tables as Markdown, written to ``results/<name>.md``.

Without the last two functions, ``figures["summary"]`` and ``figures["details"]`` take their place.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the folder `statistics` must not hide Python's module

from benchmarks._lib import BENCHMARKS, LIBRARY, ROOT, old_names, records, table  # noqa: E402, after the path
from benchmarks._lib.confirmation import Differs, OldSources, check  # noqa: E402

FOLDERS = {
    "peers": "Compared with other libraries",
    "speed": "Time and memory",
    "statistics": "Errors, levels and intervals",
    "applications": "Uses",
    "papers": "The five papers",
    "gpu": "GPU",
}
RESULTS = BENCHMARKS / "RESULTS.md"
MET = {"yes": "", "NO": "**not met**"}
HEAD = """# Results

Each table answers one question; the file below it has all tables of that benchmark. Peers and reduset run in turns on one machine,
and times are medians. *Confirmed*: the code has changed since, and the quick version still prints the same numbers up to 3 %, or
takes at most 1.1 times as long. *Stale*: the code has changed since, and the figures are not confirmed.
`python benchmarks/run.py NAME` measures again, `make bench-stale` lists stale results, `make bench-confirm` confirms them.
"""


def names(given: Sequence[str] = ()) -> list[str]:
    """The benchmarks of these names and folders; all but those of the GPU if none is given."""
    every = [
        f"{folder}/{path.stem}" for folder in FOLDERS for path in sorted((BENCHMARKS / folder).glob("*.py")) if is_benchmark(path)
    ]
    unknown = [name for name in given if name not in every and name not in FOLDERS]
    if unknown:
        raise SystemExit(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(every)}")
    if not given:
        return [name for name in every if not name.startswith("gpu/")]
    return [name for name in every if name in given or name.split("/")[0] in given]


def is_benchmark(path: Path) -> bool:
    return path.stem[0] != "_" and "\nTITLE = " in path.read_text(encoding="utf-8")


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.{name.replace('/', '.')}")


def summary_of(module: ModuleType, figures: dict[str, Any]) -> list[list[str]]:
    rows = module.summary(figures) if hasattr(module, "summary") else figures["summary"]
    return [[str(entry) for entry in row] for row in rows]


def details_of(module: ModuleType, figures: dict[str, Any]) -> str:
    return module.details(figures) if hasattr(module, "details") else figures["details"]


def section_of(name: str) -> str:
    """The section of RESULTS.md, and the file of details, from the record."""
    record, module = records.load(name), module_of(name)
    if record is None:
        return ""
    rows = summary_of(module, record.figures)
    entries = [[what, figure, ", ".join(filter(None, (goal, MET.get(met, met))))] for what, figure, goal, met in rows]
    body = "\n".join(["measured |figure |goal", "---|---|---", *(" |".join(entry).rstrip() for entry in entries)])
    target = records.file_of(name).with_suffix(".md")
    footer = f"*{record.machine}; measured {record.date}, commit {record.commit}*"
    if record.confirmed:
        footer += f"\n\n*Confirmed {record.confirmed}*"
    target.write_text(f"# {module.TITLE}\n\n{details_of(module, record.figures).strip()}\n\n{footer}\n", encoding="utf-8")
    note = ", *stale*" if record.stale(module.SOURCES) else ""
    return f"### {module.TITLE}\n\n{body}\n\n`{target.relative_to(BENCHMARKS).as_posix()}`, {record.dates()}{note}\n"


def report() -> None:
    """Write RESULTS.md and the files of details."""
    parts = [HEAD]
    for folder, title in FOLDERS.items():
        parts += [f"## {title}\n", *filter(None, map(section_of, names([folder])))]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


def run(name: str, quick: bool, file: Path | None) -> None:
    if LIBRARY != ROOT / "src":
        old_names.install()
    module, begun = module_of(name), time.perf_counter()
    print(f"{name} …", flush=True)
    figures = json.loads(json.dumps(module.measure(quick)))
    seconds = time.perf_counter() - begun
    summary = summary_of(module, figures)
    print(table(["what", "figure", "goal", "met"], summary), flush=True)
    details = details_of(module, figures)
    if not quick:
        print(details)
        records.store(name, figures, module.SOURCES)
    if file is not None:
        file.write_text(json.dumps({"summary": summary, "figures": figures, "seconds": seconds}), encoding="utf-8")
    print(f"({seconds:.0f} s)\n", flush=True)


def stale(chosen: Sequence[str]) -> None:
    found = [(name, records.load(name)) for name in chosen]
    old = [(name, record) for name, record in found if record is None or record.stale(module_of(name).SOURCES)]
    for name, record in old:
        print(f"{name}: {'never measured' if record is None else f'{record.dates()}, commit {record.commit}'}")
    print(f"{len(old)} of {len(chosen)} results are stale")


def confirm(chosen: Sequence[str]) -> None:
    """Confirm the stale records whose figures are the same with the code of their commit and with today's."""
    sources, kept = OldSources(), 0
    for name in chosen:
        record, module = records.load(name), module_of(name)
        if record is None or not record.stale(module.SOURCES):
            continue
        timed = getattr(module, "TIMED", name.split("/")[0] in ("speed", "gpu"))
        try:
            reason = check(name, module.SOURCES, sources.at(record.commit), timed)
        except Differs as difference:
            print(f"{name}: stale, {difference}", flush=True)
            kept += 1
            continue
        records.confirm(name, record, module.SOURCES, reason)
        print(f"{name}: confirmed, {reason}", flush=True)
    print(f"{kept} of {len(chosen)} results remain stale")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="benchmarks such as speed/kernel_sums, or folders")
    parser.add_argument("--quick", action="store_true", help="a small version; nothing is recorded")
    parser.add_argument("--stale", action="store_true", help="list results that are older than their sources")
    parser.add_argument("--confirm", action="store_true", help="keep stale records whose figures the new code returns as well")
    parser.add_argument("--figures", metavar="FILE", type=Path, help="also write the figures of one benchmark to a JSON file")
    parser.add_argument("--report", action="store_true", help="write RESULTS.md from the records alone")
    given = parser.parse_args()
    chosen = names(given.names)
    if given.stale:
        stale(chosen)
        return
    if given.confirm:
        confirm(chosen)
    for name in () if given.report or given.confirm else chosen:
        run(name, given.quick, given.figures)
    if not given.quick:
        report()


if __name__ == "__main__":
    main()
