"""What surrounds the command: libraries that are missing, streams that are closed or narrow, and names that are odd."""

from __future__ import annotations

import os
import subprocess
import sys

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "COLUMNS": "100"}
WITHOUT_TYPER = "import sys; sys.modules['typer'] = None; "


def python(code):
    return subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


def test_without_typer_one_line_says_what_to_install():
    done = python(WITHOUT_TYPER + "from reduset.cli import main; main(['--help'])")
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["reduset: error: the command needs typer and rich: pip install 'reduset[command]'"]


def test_without_typer_the_library_can_be_looked_through():
    done = python(WITHOUT_TYPER + "import pydoc, reduset; print(len(pydoc.render_doc(reduset)))")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000
