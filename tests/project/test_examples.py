"""The examples run, and leave a picture."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from matplotlib import image

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def colours(picture: np.ndarray) -> int:
    """How many colours a picture has. Each is one number here: rows take a hundred times as long to sort."""
    red, green, blue = np.moveaxis((255 * picture[..., :3]).astype(np.uint32), -1, 0)
    return len(np.unique(65536 * red + 256 * green + blue))


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
    assert "12,150 rows × 5 columns -> 607 weighted atoms" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    pixels = image.imread(picture)[..., :3]
    assert min(pixels.shape[:2]) > 500
    assert colours(pixels) > 1000, "the picture is nearly empty"


def _pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pictures", ROOT / "docs" / "_ext" / "site_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PICTURES = _pictures()


@pytest.mark.parametrize("script", PICTURES.SCRIPTS, ids=lambda script: script.stem)
def test_every_gallery_script_draws_a_picture_like_the_one_that_its_page_shows(script, tmp_path):
    (figure,) = PICTURES.figures(script)
    figure.savefig(tmp_path / "drawn.png")
    drawn = image.imread(tmp_path / "drawn.png")[..., :3]
    kept = image.imread(ROOT / "docs" / "pictures" / f"{script.stem.removeprefix('plot_')}.png")[..., :3]
    assert drawn.shape == kept.shape
    assert colours(drawn) > 50, "the picture is nearly empty"
    assert np.mean(np.abs(drawn - kept).max(axis=2) > 0.2) < 0.1, "draw it anew: make pictures"


def test_every_picture_of_the_pages_has_a_script():
    reports = {"report", "segments"}  # of the demo's reports: scripts/report_pictures.py
    assert {picture.stem for picture in (ROOT / "docs" / "pictures").glob("*.png")} == set(PICTURES.ORDER) | reports
    for name in reports:
        picture = ROOT / "docs" / "pictures" / f"{name}.png"
        assert f"](pictures/{name}.png)" in (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
        assert picture.stat().st_size < 200_000
        assert colours(image.imread(picture)) > 50, "draw it anew: make screenshots"
    assert {script.stem.removeprefix("plot_") for script in PICTURES.SCRIPTS} == set(PICTURES.ORDER)


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
