"""The examples run, and leave a picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib import image

ROOT = Path(__file__).resolve().parent.parent


def test_photograph_prints_the_result_and_draws_a_picture(tmp_path):
    picture = tmp_path / "pictures" / "photograph.png"
    # the package may be installed, or only on the path of this process
    path = os.pathsep.join(entry for entry in sys.path if entry)
    result = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "photograph.py"), "--small", "--output", str(picture)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert "Compression of 12,150 points to 607 atoms in 5-D" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    pixels = image.imread(picture)[..., :3]
    assert min(pixels.shape[:2]) > 500
    assert len(np.unique((255 * pixels).astype(np.uint8).reshape(-1, 3), axis=0)) > 1000, "the picture is nearly empty"


def test_the_quapy_example_says_so_where_quapy_is_missing(tmp_path):
    path = os.pathsep.join(entry for entry in sys.path if entry)
    result = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "quapy_quantifier.py")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert "QuaPy is not installed" in result.stdout or "mean absolute error" in result.stdout
