"""The wheel, looked into and installed: `make dist` calls `--contents`, `make test-wheel` the rest.

It must hold every file of the package and nothing else. Then it is installed into empty environments: the core alone, each extra
alone, and `all`. In each one `wheel_doors.py` imports every public name and tries what each extra brings; in the core the first
example of the README is run, in `all` the demo. Wheels of others come from the package index, so a network is needed.

An extra alone is a copy of the core's environment to which the extra is added, so that the inner loops are compiled once and not
a dozen times: the compiler's cache lies beside the source and is copied with it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from requirements import NAME, ROOT, requirements, users_extras

PACKAGE = ROOT / "src" / NAME
SUFFIXES = (".py", ".cu", ".cuh", ".html", ".js", ".css", ".typed")
ABOUT = ("METADATA", "WHEEL", "entry_points.txt", "licenses/LICENSE", "RECORD")
DOORS = ROOT / "scripts" / "wheel_doors.py"
NOT_INSTALLED = ("gpu",)  # CuPy is as large as all the others together, and of no use without a device
NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\s*^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def expected(version: str) -> set[str]:
    """The names of the files that a wheel of this tree must have."""
    files = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*") if path.suffix in SUFFIXES}
    return files | {f"{NAME}-{version}.dist-info/{name}" for name in ABOUT}


def fault_of_contents(wheel: Path) -> str | None:
    """What a wheel lacks, or has beside what it should; None if it is whole."""
    parts = wheel.name.removesuffix(".whl").split("-")
    if parts[0] != NAME or parts[2:] != ["py3", "none", "any"]:
        return f"{wheel.name}: a wheel for every machine is called {NAME}-<version>-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        there = {name for name in archive.namelist() if not name.endswith("/")}
    wanted = expected(parts[1])
    different = (("lacks", wanted - there), ("has beside", there - wanted))
    told = [f"{word} {', '.join(sorted(names))}" for word, names in different if names]
    return f"{wheel.name} {' and '.join(told)}" if told else None


def readme_example(text: str) -> tuple[str, str]:
    """The first example of a page that shows what it prints, and what that is."""
    found = EXAMPLE.search(text)
    if found is None:
        raise ValueError("README.md must show a Python example followed by what it prints; there is none")
    return found[1], found[2]


def alike(printed: str, shown: str) -> bool:
    """Whether two texts are the same up to their numbers."""
    one, other = (" ".join(NUMBER.sub("#", text).split()) for text in (printed, shown))
    return one == other


def settings() -> list[tuple[str, list[str]]]:
    """Each environment: its name, and the extras that must be open in it."""
    single = [extra for extra in users_extras() if extra not in ("all", "demo")]
    alone = [(extra, [extra]) for extra in single if extra not in NOT_INSTALLED and requirements(extra)]
    brought = set(requirements("all"))
    return [*alone, ("all", [extra for extra in single if set(requirements(extra)) <= brought])]


class Environment:
    """A virtual environment in a folder of its own, which sees nothing of this checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.programs / "python"

    @classmethod
    def empty(cls, folder: Path) -> Environment:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        return cls(folder)

    def copy(self, folder: Path) -> Environment:
        shutil.copytree(self.folder, folder, symlinks=True)
        return Environment(folder)

    def install(self, wheel: Path, extra: str | None = None) -> None:
        asked = f"{NAME}[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
        self.run([str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", asked])

    def run(self, words: list[str], code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program outside the checkout; another code than the one expected ends it all."""
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        done = subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True)
        if done.returncode != code:
            raise SystemExit(f"{self.folder.name}: {' '.join(words)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def doors(self, extras: list[str]) -> None:
        done = self.run([str(self.python), "-I", str(DOORS), *extras])
        print(f"{self.folder.name:>9}: {done.stdout.strip().partition(': ')[2]}", flush=True)


def try_core(core: Environment, readme: str) -> None:
    """The core alone: the README's example, and the command that says what it lacks."""
    code, shown = readme_example(readme)
    printed = core.run([str(core.python), "-I", "-c", code]).stdout
    if not alike(printed, shown):
        raise SystemExit(f"README.md: its first example should print\n{shown}\nand printed\n{printed}")
    told = core.run([str(core.programs / NAME)], code=2)
    if told.stderr.count("\n") != 1 or "reduset[command]" not in told.stderr:
        raise SystemExit(f"the command without its extra should say in one line which it is, and said\n{told.stderr}")
    print(f"     core: the README's example prints what it shows; {told.stderr.strip()}", flush=True)
    core.doors([])


def try_all(whole: Environment, extras: list[str]) -> None:
    """All extras: every door, and the demo."""
    whole.doors(extras)
    told = whole.run([str(whole.programs / NAME), "demo", "--crop", "--folder", "out"]).stdout
    print(f"      all: reduset demo: {told.strip().splitlines()[-1]}", flush=True)


def main() -> None:
    """Look into the wheel, and install it unless only its contents are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=lambda name: Path(name).resolve())
    parser.add_argument("--contents", action="store_true", help="only look at the names of its files")
    parser.add_argument("--only", nargs="*", help="the environments to try, besides the core")
    asked = parser.parse_args()
    if fault := fault_of_contents(asked.wheel):
        raise SystemExit(fault)
    print(f"{asked.wheel.name}: {asked.wheel.stat().st_size / 1e6:.2f} MB, every file of the package and nothing else")
    if asked.contents:
        return
    with tempfile.TemporaryDirectory() as folder:
        core = Environment.empty(Path(folder) / "core")
        core.install(asked.wheel)
        try_core(core, (ROOT / "README.md").read_text(encoding="utf-8"))
        for name, extras in settings():
            if asked.only is not None and name not in asked.only:
                continue
            place = Path(folder) / name
            made = Environment.empty(place) if name == "all" else core.copy(place)
            made.install(asked.wheel, name)
            if name == "all":
                try_all(made, extras)
            else:
                made.doors(extras)
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
