"""Run the benchmarks and record them in RESULTS.md: all of them, or those named on the command line.

Each section is replaced as a whole, with the machine and the versions it was measured with.
"""

from __future__ import annotations

import importlib
import re
import sys
import time
from pathlib import Path

from harness import machine

SECTIONS = (
    "farthest_first",
    "subset",
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
    "balanced",
    "sketching",
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
    "spectral_figures",
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
GPU_SECTIONS = ("gpu_subset", "gpu_sums", "gpu_compress", "gpu_sending")  # for a machine with a CUDA device: `make bench-gpu`
RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = """# Results

Peers and ours are timed in the same run, in turns; times are medians of 3. Ratios say more than seconds: the machines differ.
`make bench` measures everything again and rewrites this file; `python benchmarks/run.py NAME` does one section.
"""


def recorded() -> dict[str, str]:
    if not RESULTS.exists():
        return {}
    return dict(re.findall(r"<!-- (\w+) -->\n(.*?)(?=\n<!-- \w+ -->|\Z)", RESULTS.read_text(encoding="utf-8"), flags=re.DOTALL))


def main(names: list[str]) -> None:
    every = (*SECTIONS, *GPU_SECTIONS)
    unknown = set(names) - set(every)
    if unknown:
        raise SystemExit(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    for name in names or SECTIONS:
        begun = time.perf_counter()
        print(f"{name} …", flush=True)
        module = importlib.import_module(name)
        body = module.run()
        print(body, f"\n({time.perf_counter() - begun:.0f} s)\n", flush=True)
        sections = recorded() | {name: f"## {module.TITLE}\n\n{body}\n\n*{machine()}*\n"}
        text = "\n".join(f"<!-- {key} -->\n{sections[key].strip()}\n" for key in every if key in sections)
        RESULTS.write_text(f"{HEAD}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
