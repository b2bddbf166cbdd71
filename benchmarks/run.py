"""Run benchmarks, record their figures, and write RESULTS.md from the records.

    python benchmarks/run.py speed/kernel_sums peers      # one benchmark, all of a folder
    python benchmarks/run.py --quick                      # a small version of each; nothing is recorded
    python benchmarks/run.py --stale                      # benchmarks whose sources changed since they were recorded
    python benchmarks/run.py --report                     # RESULTS.md from the records; nothing is measured

A benchmark is a file ``<folder>/<name>.py`` with

- a docstring: the question, the peers, and the goal;
- ``TITLE``, and ``SOURCES``: the packages and files of ``src/reduset`` that it measures;
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

from benchmarks._lib import BENCHMARKS, records, table  # noqa: E402, after the path

FOLDERS = {
    "peers": "Compared with other libraries",
    "speed": "Time and memory",
    "statistics": "Errors, levels and intervals",
    "applications": "Uses",
    "papers": "The five papers",
    "gpu": "GPU",
}
RESULTS = BENCHMARKS / "RESULTS.md"
HEAD = """# Results

Each table answers one question: what was measured, the figure, the goal. *Details* has all tables of a benchmark. Peers and reduset
are timed in the same run, in turns; times are medians. *Stale* marks figures that are older than the code they measure.
`python benchmarks/run.py NAME` measures again, `make bench-stale` lists what is stale.
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
    changed = record.stale(module.SOURCES)
    body = table(["what", "figure", "goal", "met"], summary_of(module, record.figures))
    target = records.file_of(name).with_suffix(".md")
    footer = f"*{record.machine}; {record.date}, commit {record.commit}*"
    target.write_text(f"# {module.TITLE}\n\n{details_of(module, record.figures).strip()}\n\n{footer}\n", encoding="utf-8")
    note = " *Stale.*" if changed else ""
    link = target.relative_to(BENCHMARKS).as_posix()
    return f"### {module.TITLE}\n\n{body}\n\nDetails: `{link}`, {record.date}.{note}\n"


def report() -> None:
    """Write RESULTS.md and the files of details."""
    parts = [HEAD]
    for folder, title in FOLDERS.items():
        parts += [f"## {title}\n", *filter(None, map(section_of, names([folder])))]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


def run(name: str, quick: bool) -> None:
    module, begun = module_of(name), time.perf_counter()
    print(f"{name} …", flush=True)
    figures = json.loads(json.dumps(module.measure(quick)))
    print(table(["what", "figure", "goal", "met"], summary_of(module, figures)), flush=True)
    details = details_of(module, figures)
    if not quick:
        print(details)
        records.store(name, figures, module.SOURCES)
    print(f"({time.perf_counter() - begun:.0f} s)\n", flush=True)


def stale(chosen: Sequence[str]) -> int:
    count = 0
    for name in chosen:
        record = records.load(name)
        changed = ["never measured"] if record is None else record.stale(module_of(name).SOURCES)
        if changed:
            count += 1
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            print(f"{name}: {'' if record is None else f'{record.date}, {record.commit}: '}{', '.join(changed[:3])}{more}")
    print(f"{count} of {len(chosen)} results are stale")
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="benchmarks such as speed/kernel_sums, or folders")
    parser.add_argument("--quick", action="store_true", help="a small version; nothing is recorded")
    parser.add_argument("--stale", action="store_true", help="list results that are older than their sources")
    parser.add_argument("--report", action="store_true", help="write RESULTS.md from the records alone")
    given = parser.parse_args()
    chosen = names(given.names)
    if given.stale:
        stale(chosen)
        return
    for name in () if given.report else chosen:
        run(name, given.quick)
    if not given.quick:
        report()


if __name__ == "__main__":
    main()
