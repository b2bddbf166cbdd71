"""The packages of the source in docs/design.md, from the first sentence of each: `make tree` writes the list, a test compares it.

With `--files`, every file is printed as well, with the first sentence of its docstring.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "reduset"
PAGE = ROOT / "docs" / "design.md"
BEGIN, END = "<!-- tree: made by scripts/tree.py -->\n```\n", "```\n<!-- end of tree -->"
WIDTH, INDENT, MIN_TEXT = 96, 27, 24

# The packages by layer, the lowest first: each may import those before it, never those after it. Some are a single module.
LAYERS = [
    *("_types", "_messages", "_describe", "_engine", "_frames", "_validate", "_progress", "_drawing", "_archive", "io"),
    "data",
    *("bandwidth", "kernels", "mean", "mixture", "weights", "certificate", "select", "simplification", "compression"),  # the core
    *("stream", "sketching"),
    *("density", "modes", "proportions", "cohort", "drift", "svm", "spectral", "features", "explain"),  # the uses
    *("covers", "anndata", "model", "report", "cytometry", "cli", "__main__"),  # the doors
]


def sentence(path: Path) -> str:
    """The first sentence of the docstring of a file."""
    docstring = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split())
    return re.split(r"\.(?:\s|$)", docstring, maxsplit=1)[0]


def line(name: str, description: str) -> str:
    """One line of the tree; a long one is cut at the last punctuation that fits."""
    text = f"{name:<{INDENT}} {description}"
    if len(text) > WIDTH:
        breaks = [match.start() for match in re.finditer(r"[:;,]\s| \(", text) if INDENT + MIN_TEXT < match.start() <= WIDTH]
        balanced = [end for end in breaks if text[:end].count("(") == text[:end].count(")")]
        text = text[: balanced[-1]] if balanced else text[: WIDTH - 2].rsplit(" ", 1)[0] + " …"
    return text.rstrip() + "\n"


def tree(files: bool = False) -> str:
    """The packages by layer; with every file, if ``files``."""
    lines = ["src/reduset/\n", line("  __init__.py", sentence(PACKAGE / "__init__.py"))]
    for package in LAYERS:
        folder = PACKAGE / package
        if not folder.is_dir():
            lines.append(line(f"  {package}.py", sentence(PACKAGE / f"{package}.py")))
            continue
        lines.append(line(f"  {package}/", sentence(folder / "__init__.py")))
        if files:
            modules = sorted(set(folder.glob("*.py")) - {folder / "__init__.py"})
            lines += [line(f"    {path.name}", sentence(path)) for path in modules]
    return "".join(lines)


def with_tree(page: str) -> str:
    """The page with the tree between its marks."""
    before, rest = page.split(BEGIN, 1)
    return before + BEGIN + tree() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    PAGE.write_text(with_tree(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(tree(files="--files" in sys.argv))
