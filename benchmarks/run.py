"""Run the benchmarks and record them in RESULTS.md: all of them, or those named on the command line.

    python benchmarks/run.py kernel_sums papers/cruz2017_table1
    python benchmarks/run.py --quick papers/cruz2017_table1     # a small version; nothing is recorded
    python benchmarks/run.py --report                           # RESULTS.md from the recorded figures, nothing measured

A benchmark in a folder has two functions. ``measure(quick)`` returns its figures, which are stored in ``results/<name>.json`` of
the folder with the date, the machine and the versions. ``report(figures)`` formats them as Markdown. The others have one function,
``run()``, which returns the Markdown. Each section of RESULTS.md is replaced as a whole.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import re
import time
from pathlib import Path
from types import ModuleType

from harness import machine

SECTIONS = (
    "farthest_first",
    "cover",
    "kernel_sums",
    "whole_compression",
    "growth",
    "start_up",
    "interrupts",
    "edges",
    "fuzzing",
    "shares",
    "resolution",
    "resolution_peers",
    "rare_groups",
    "sketching",
    "sketch_clusters",
    "sketch_tables",
    "metacells",
    "embedding_density",
    "pieces",
    "columns",
    "fcs_files",
    "command",
    "stream",
    "stream_batch",
    "stream_dask",
    "scaling_plan",
    "stream_kills",
    "certificate",
    "selector_speed",
    "equal_weights",
    "peers",
    "paper_sparsity",
    "paper_bandwidth",
    "paper_figure6",
    "paper_kl",
    "paper_effects",
    "paper_2014",
    "density",
    "density_tails",
    "from_kdes",
    "mean_shift",
    "proportions",
    "proportions_quapy",
    "cohort",
    "study_speed",
    "study_level",
    "study_power",
    "study_paired",
    "study_sizes",
    "svm",
    "background",
    "background_held_out",
    "mixture_toys",
    "mixture_reduction",
    "mixture_density",
    "spectral",
    "peer_suites",
    "features_gram",
    "features_speed",
    "features_components",
    "features_images",
    "drift_level",
    "drift_power",
    "drift_speed",
    "drift_run_length",
    "drift_e_detector",
    "drift_corner",
)
GPU_SECTIONS = ("gpu_cover", "gpu_sums", "gpu_compress", "gpu_sending")  # for a machine with a CUDA device: `make bench-gpu`
RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = """# Results

Peers and ours are timed in the same run, in turns; times are medians of 3. Ratios say more than seconds: the machines differ.
`make bench` measures everything again and rewrites this file; `python benchmarks/run.py NAME` does one section.
"""


def recorded() -> dict[str, str]:
    """The sections of RESULTS.md by name."""
    if not RESULTS.exists():
        return {}
    return dict(
        re.findall(r"<!-- ([\w/]+) -->\n(.*?)(?=\n<!-- [\w/]+ -->|\Z)", RESULTS.read_text(encoding="utf-8"), flags=re.DOTALL)
    )


def foldered() -> tuple[str, ...]:
    """The names of the benchmarks in folders, such as papers/cruz2017_table1."""
    return tuple(sorted(f"{path.parent.name}/{path.stem}" for path in RESULTS.parent.glob("papers/*.py") if path.stem[0] != "_"))


def stored_at(name: str) -> Path:
    """The file with the figures of a benchmark in a folder."""
    folder, stem = name.split("/")
    return RESULTS.parent / folder / "results" / f"{stem}.json"


def module_of(name: str) -> ModuleType:
    return importlib.import_module(name.replace("/", "."))


def section_of(name: str) -> str:
    """The section of a benchmark in a folder, from its stored figures."""
    stored = json.loads(stored_at(name).read_text(encoding="utf-8"))
    module = module_of(name)
    return f"## {module.TITLE}\n\n{module.report(stored['figures'])}\n\n*{stored['machine']}, {stored['date']}*\n"


def write_results(sections: dict[str, str]) -> None:
    every = (*SECTIONS, *foldered(), *GPU_SECTIONS)
    text = "\n".join(f"<!-- {key} -->\n{sections[key].strip()}\n" for key in every if key in sections)
    RESULTS.write_text(f"{HEAD}\n{text}", encoding="utf-8")


def measured(name: str, quick: bool) -> str:
    """Run a benchmark and return its section; figures of a full run in a folder are stored."""
    module = module_of(name)
    if "/" not in name:
        return f"## {module.TITLE}\n\n{module.run()}\n\n*{machine()}*\n"
    figures = module.measure(quick)
    if quick:
        return module.report(json.loads(json.dumps(figures)))
    stored = {"date": datetime.date.today().isoformat(), "machine": machine(), "figures": figures}
    stored_at(name).parent.mkdir(exist_ok=True)
    stored_at(name).write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return section_of(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    every = (*SECTIONS, *foldered(), *GPU_SECTIONS)
    unknown = set(given.names) - set(every)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    for name in () if given.report else given.names or (*SECTIONS, *foldered()):
        begun = time.perf_counter()
        print(f"{name} …", flush=True)
        body = measured(name, given.quick)
        print(body, f"\n({time.perf_counter() - begun:.0f} s)\n", flush=True)
        if not given.quick:
            write_results(recorded() | {name: body})
    if given.report:
        write_results(recorded() | {name: section_of(name) for name in foldered() if stored_at(name).exists()})


if __name__ == "__main__":
    main()
