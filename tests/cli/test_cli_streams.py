"""What surrounds the command: libraries that are missing, streams that are closed or narrow, and names that are odd."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from reduset import io
from reduset.cli.entry import run

pytestmark = pytest.mark.slow

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "COLUMNS": "100"}
WITHOUT_TYPER = "import sys; sys.modules['typer'] = None; "


def python(code):
    return subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


def test_without_typer_one_line_says_what_to_install():
    done = python(WITHOUT_TYPER + "from reduset.cli import main; main(['--help'])")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "reduset: error: the command needs typer, which is not installed: pip install 'reduset[command]'"
    ]


def test_without_typer_the_library_can_be_looked_through():
    done = python(WITHOUT_TYPER + "import pydoc, reduset; print(len(pydoc.render_doc(reduset)))")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000


def shell(line, folder, **environment):
    """A line of a shell, where `reduset` is the command."""
    script = f'reduset() {{ "{sys.executable}" -m reduset "$@"; }}; set -o pipefail; {line}'
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=ENVIRONMENT | environment, capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Some rows in a file, and a model of them."""
    folder = tmp_path_factory.mktemp("streams")
    X = np.random.default_rng(0).normal(size=(50, 2))
    io.write_rows(folder / "rows.csv", ["größe", "x"], X)
    assert run(["compress", str(folder / "rows.csv"), "--size", "5", "-q", "-o", str(folder / "small.npz")]) == 0
    return folder


@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_fault(buffered, folder):
    done = shell("reduset info small.npz | true", folder, PYTHONUNBUFFERED=buffered)
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_stream_of_few_letters_gets_escapes_and_json_stays_json(folder):
    words = "rows.csv --size 5 --select kcenter -o again.npz"
    done = shell(f"reduset compress {words} --verbose", folder, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert r"\u2016f\u2016" in done.stdout
    done = shell(f"reduset compress {words} --json", folder, PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["columns"] == ["größe", "x"]


def test_closed_streams_change_nothing_but_what_is_seen(folder):
    assert shell("reduset compress rows.csv --size 5 --select kcenter -o closed.npz 2>&- >&-", folder).returncode == 0
    assert (folder / "closed.npz").exists()
    assert shell("reduset info nothing.npz 2>&-", folder).returncode == 2


def test_an_output_that_is_full_is_said(folder):
    done = shell("reduset info small.npz > /dev/full", folder)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["reduset: error: [Errno 28] No space left on device"]


def test_no_words_at_all_give_the_help_and_nothing_else(folder):
    done = shell("reduset", folder)
    assert (done.returncode, done.stderr) == (2, "")
    assert "Usage: reduset" in done.stdout
