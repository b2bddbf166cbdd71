"""Records of benchmarks: which changes of the code make them stale, and RESULTS.md, which is generated from them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from benchmarks._lib import sources  # noqa: E402, after the path
from benchmarks.run import RESULTS, module_of, names  # noqa: E402

MODULE = '''"""A module."""
from __future__ import annotations

import math

SIZE = 3


def area(side: float) -> float:
    """Of a square."""
    found = side * side  # not of a cube
    if found < 0:
        raise ValueError("side must be real")
    return found * SIZE


class Shape:
    """A shape."""

    side: float = 1.0

    def area(self):
        return area(self.side)
'''
TARGET = "benchmarks/RESULTS.md"


def package(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name.replace('_', '.')}").write_text(text, encoding="utf-8")
    return folder


def changed(tmp_path: Path, **texts: str) -> bool:
    """Whether the digest changes from ``MODULE`` to these files."""
    before, after = package(tmp_path / "before", a_py=MODULE), package(tmp_path / "after", **texts)
    return sources.digest(before, ["."]) != sources.digest(after, ["."])


def test_comments_types_messages_and_imports_change_no_digest(tmp_path):
    text = MODULE.replace("not of a cube", "a square").replace(": float)", ": int)").replace("import math\n", "")
    text = text.replace("must be real", "must be a real number").replace('"""Of a square."""', '"""The area of a square."""')
    assert text != MODULE
    assert not changed(tmp_path, a_py=text)


def test_a_definition_may_move_to_another_file_and_place(tmp_path):
    head, function, shape = re.split(r"\n\n\n", MODULE)
    assert not changed(tmp_path, b_py=f"{shape}\n\n\n{head.replace('SIZE = 3', '')}", c_py=f"{function}\n\n\nSIZE = 3\n")


@pytest.mark.parametrize(
    ("old", "new"), [("SIZE = 3", "SIZE = 4"), ("side * side", "side + side"), ("found < 0", "found <= 0"), ("= 1.0", "= 2.0"),
                 ("area(self.side)", "abs(self.side)"), ("ValueError", "TypeError")],
)  # fmt: skip
def test_any_other_change_does(tmp_path, old, new):
    assert changed(tmp_path, a_py=MODULE.replace(old, new))


def test_a_cuda_file_counts_without_its_comments(tmp_path):
    code = "int twice(int x) { return 2 * x; }"
    plain, commented = (package(tmp_path / name, a_cu=text) for name, text in (("one", code), ("two", f"// twice\n{code} /* x */")))
    other = package(tmp_path / "three", a_cu=code.replace("2", "3"))
    assert sources.digest(plain, ["."]) == sources.digest(commented, ["."]) != sources.digest(other, ["."])


def test_new_names_are_no_change(tmp_path):
    text = MODULE.replace("found", "product").replace("SIZE", "SIDES").replace("Shape", "Square")
    before, after = package(tmp_path / "before", a_py=MODULE), package(tmp_path / "after", b_py=text)
    assert sources.changed(after, ["b.py"], before) == []


def test_another_function_under_the_same_shape_is_a_change(tmp_path):
    both = MODULE + "\n\ndef cube(side):\n    return side**3\n"
    before = package(tmp_path / "before", a_py=both)
    after = package(tmp_path / "after", a_py=both.replace("area(self.", "cube(self."))
    assert sources.changed(after, ["a.py"], before) == ["a.py: Shape"]


@pytest.mark.parametrize("name", [*names(), *names(["gpu"])])
def test_the_sources_of_every_benchmark_exist(name):
    package = ROOT / "src" / "reduset"
    found = sources.files(package, module_of(name).SOURCES)
    assert found or name == "papers/sutherland2016_aic_bic"  # measures no code of the library


@pytest.mark.slow  # a process of its own, as `make bench-quick` runs it
@pytest.mark.parametrize("name", ["papers/zhang2010_figure1", "papers/sutherland2016_figure2"])
def test_the_quick_version_of_a_benchmark_has_a_summary_and_records_nothing(name, tmp_path):
    file, record = tmp_path / "figures.json", ROOT / "benchmarks" / f"{name.replace('/', '/results/')}.json"
    before = record.read_bytes()
    command = [sys.executable, ROOT / "benchmarks" / "run.py", name, "--quick", "--figures", file]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    summary = json.loads(file.read_text(encoding="utf-8"))["summary"]
    assert summary
    for row in summary:
        assert len(row) == 4
        assert row[0]
        assert re.search(r"\d", row[1])
        assert f"| {' | '.join(row)} |" in run.stdout
    assert record.read_bytes() == before


def test_results_are_short():
    assert len(RESULTS.read_text(encoding="utf-8").split()) <= 6000


def test_every_measured_figure_of_the_readme_is_in_the_results():
    """Numbers with the word after them, as in "404 MB"."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Measured")[1].split("\n## ")[0]
    bullets = "\n".join(line for line in section.splitlines() if line.startswith("- "))
    figures = re.findall(r"\d[\d,.×]*\d?(?: of \d[\d,.]*)?(?: (?:s|MB|GB|million|centres)\b)?", bullets)
    results = RESULTS.read_text(encoding="utf-8").replace(" × ", "×")
    missing = [figure for figure in figures if not re.search(rf"(?<![\d.,]){re.escape(figure.rstrip('.,'))}(?![\d])", results)]
    assert figures
    assert not missing
