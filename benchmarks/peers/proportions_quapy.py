"""Class proportions against QuaPy's quantifiers, on the same samples of its protocols; and QuaPy's own tests, with ours put in."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

from benchmarks._lib import data_folder, table, verdict

TITLE = "Class proportions against QuaPy"

HERE = Path(__file__).resolve().parent
PROTOCOLS = ("grid", "uniform", "natural")


def quapy_python() -> str:
    """The interpreter of the environment that QuaPy is in."""
    python = os.environ.get("REDUSET_QUAPY_PYTHON", str(HERE.parent / ".venv-quapy" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(f"no environment of QuaPy at {python}: run `make bench`, or set REDUSET_QUAPY_PYTHON")
    return python


def lines(script: str, *arguments: str) -> list[dict]:
    """What a script of QuaPy's environment prints, an object a line."""
    paths = [str(HERE.parent / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    process = subprocess.run(
        [quapy_python(), str(HERE / script), *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}, capture_output=True, text=True,
    )  # fmt: skip
    if process.returncode:
        raise SystemExit(f"{script} failed:\n{process.stderr[-2000:]}")
    return list(map(json.loads, process.stdout.splitlines()))


def rivals(row: dict, rows: list[dict]) -> list[dict]:
    """The peers on the same set, with the same classifier; those with logistic regression for what looks at rows."""
    classifier = "logistic regression" if row["classifier"] == "none" else row["classifier"]
    return [each for each in rows if each["set"] == row["set"] and each["classifier"] == classifier
            and "reduset" not in each["method"] and "failed" not in each]  # fmt: skip


def against_quapy() -> str:
    first, *found = lines("quapy_worker.py", str(data_folder()))
    parts = []
    for name in dict.fromkeys(row["set"] for row in found):
        mine = [row for row in found if row["set"] == name]
        rows = []
        for row in mine:
            if "failed" in row:
                rows.append([row["method"], row["classifier"], *[""] * 6, f"failed: {row['failed']}", "", ""])
                continue
            cells = []
            for protocol in PROTOCOLS:
                ratio = row[protocol] / min(each[protocol] for each in rivals(row, found))
                cells += [f"{1e3 * row[protocol]:.2f}", f"{ratio:.2f}"]
            ours = row["method"] == "reduset"
            worst = max(row[p] / min(each[p] for each in rivals(row, found)) for p in PROTOCOLS)
            rows.append([row["method"], row["classifier"], *cells, f"{row['fit']:.1f} s", f"{1e3 * row['uniform seconds']:.1f} ms",
                         verdict(-worst, -1.005) if ours else ""])  # fmt: skip
        head = ["method", "classifier"]
        for protocol in PROTOCOLS:
            head += [f"{protocol}: error × 1000", "of the best peer's"]
        parts.append(
            f"*{name}, {mine[0]['rows']:,} training rows, {mine[0]['splits']} splits*\n\n"
            + table([*head, "fit", "a sample", "at most the best of each"], rows)
        )
    text = (
        "**QuaPy's quantifiers and ours** on samples of 100 rows by its protocols: prevalences on a grid (of two classes 21 "
        "steps, of ten (0, ⅓, ⅔, 1), so that at most three are in a sample), uniform on the simplex, and natural. Columns "
        "standardised, rows split at random, several times. Mean absolute error over classes, samples and splits, × 1000, and "
        "over that of the best peer in that column with the same classifier; 'reduset' without one is measured against the best "
        "peer with logistic regression. A peer that is "
        f"best in one column seldom is in the next. QuaPy {first['versions']['quapy']}, parameters as it sets them.\n\n"
    )
    return text + "\n\n".join(parts)


def own_tests() -> str:
    found = lines("quapy_suite_worker.py")
    counts = Counter(row["verdict"] if not row["verdict"].startswith("failed") else "failed" for row in found)
    rows = [
        [f"not applicable: {name}" if name not in ("passed", "failed") else name, count] for name, count in counts.most_common()
    ]
    failed = [
        f"`{row['test']}` ({row['verdict'].removeprefix('failed: ')})" for row in found if row["verdict"].startswith("failed")
    ]
    text = (
        "**QuaPy's own tests**, those that its package brings, with ours in the place of the quantifier that a test makes. It gets "
        "that quantifier's classifier and none of its other options.\n\n"
    )
    return text + table(["of the tests", "how many"], rows) + ("\n\nFailed: " + ", ".join(failed) + "." if failed else "")


def run() -> str:
    return "\n\n".join([against_quapy(), own_tests()])


if __name__ == "__main__":
    print(run())
