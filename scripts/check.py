"""The tests of the packages that changed: since the branch left main, and what is not committed yet.

    python scripts/check.py            # or `make check`, after lint and types

A file of `src/reduset/<package>` or `tests/<package>` selects `tests/<package>` and the doctests of the package. Other files of the
source select the tests at the top of `tests`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "REDUSET_NUM_THREADS"), "1")


def git(*arguments: str) -> list[str]:
    """The lines that a git command prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def changed() -> set[str]:
    """Files that differ from the last commit that is on main too, and files that git does not track yet."""
    base = git("merge-base", "main", "HEAD")[0]
    return {*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")}


def targets(files: set[str]) -> list[str]:
    """Folders and files to test."""
    found = set()
    for parts in (Path(file).parts for file in files if file.endswith(".py")):
        if parts[:2] == ("src", "reduset") and len(parts) > 3:
            found |= {"/".join(parts[:3]), f"tests/{parts[2]}"}
        elif parts[:2] == ("src", "reduset"):
            found |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("test_*.py")}
        elif parts[0] == "tests" and parts[1:2] != ("support",):
            found.add("/".join(parts[:2]))
    return sorted(target for target in found if (ROOT / target).exists())


def main() -> None:
    """Test them, with the exit code of pytest."""
    chosen = targets(changed())
    if not chosen:
        print("no package changed")
        return
    print("testing", *chosen)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not slow and not gpu", *chosen]
    sys.exit(subprocess.run(command, cwd=ROOT, env=os.environ | ONE_THREAD, check=False).returncode)


if __name__ == "__main__":
    main()
