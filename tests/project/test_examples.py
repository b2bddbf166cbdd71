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


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PICTURES = loaded(ROOT / "docs" / "_ext" / "site_pictures.py")
MEMORY_BANK = loaded(ROOT / "examples" / "memory_bank.py")


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


def greedy(rows: np.ndarray, size: int, centres: list[int]) -> list[int]:
    """k-centre by its definition: the farthest row from all centres, one after the other."""
    chosen = []
    distances = np.min([np.linalg.norm(rows - rows[centre], axis=1) for centre in centres], axis=0)
    for _ in range(size):
        chosen.append(int(distances.argmax()))
        distances = np.minimum(distances, np.linalg.norm(rows - rows[chosen[-1]], axis=1))
    return chosen


@pytest.mark.parametrize("shape", [(1500, 20), (600, 3, 4, 4)])
def test_a_memory_bank_has_the_rows_of_the_definition(shape):
    rows = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    flat = rows.reshape(len(rows), -1).astype(float)
    sampler = MEMORY_BANK.KCenterGreedy(rows, 0.05, first=7)
    chosen = sampler.select_coreset_idxs()
    assert chosen == greedy(flat, len(rows) // 20, [7])
    np.testing.assert_array_equal(sampler.sample_coreset(), rows[chosen])
    assert sampler.select_coreset_idxs(chosen[:9]) == greedy(flat, len(rows) // 20, chosen[:9])


def test_the_first_row_and_the_projection_of_a_memory_bank_come_from_its_seed():
    rows = np.random.default_rng(0).normal(size=(400, 500))
    one, other = (MEMORY_BANK.KCenterGreedy(rows, 0.1, seed=seed).select_coreset_idxs() for seed in (0, 1))
    assert one == MEMORY_BANK.KCenterGreedy(rows, 0.1).select_coreset_idxs() != other
    first = int(np.random.default_rng(0).integers(400))
    assert one == greedy(rows, 40, [first])
    projected = MEMORY_BANK.KCenterGreedy(rows, 0.1, projected=True).select_coreset_idxs()
    assert projected != one
    assert projected == MEMORY_BANK.KCenterGreedy(rows, 0.1, projected=True).select_coreset_idxs()


def test_the_example_of_a_memory_bank_prints_its_audit(capsys):
    MEMORY_BANK.main()
    assert "a memory bank of 200 × 64, float32" in capsys.readouterr().out
