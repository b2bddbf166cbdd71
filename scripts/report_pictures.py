"""The pictures of docs/report.md: `make screenshots` runs the demo, opens its reports in Chromium and keeps the tops of two."""

import os
import shutil
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
COLOURS = 200  # of a palette: a third of the bytes, and nobody sees the difference
# name: report, width of the window, the first element that is shown and the first that is not, with the space before each
SHOTS = {
    "report": ("small.html", 1160, ("body", 0), ("#pairs-title", 60)),
    "segments": ("segments.html", 760, ("#images-title", 20), ("#segments-title", 52)),
}


def main() -> None:
    """Make the demo in a folder that is thrown away, and the pictures of its reports in docs/pictures."""
    browser = os.environ.get("REDUSET_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("no Chromium found: run scripts/browser.sh, or set REDUSET_BROWSER to a browser's path")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        subprocess.run([sys.executable, "-m", "reduset", "demo", "--folder", "out", "--quiet"], cwd=folder, check=True)
        started = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name, (report, width, *ends) in SHOTS.items():
            page = started.new_page(viewport={"width": width, "height": 900})
            page.goto((Path(folder) / "out" / report).as_uri())
            page.wait_for_timeout(1500)
            top, bottom = (page.locator(element).first.bounding_box()["y"] - before for element, before in ends)
            shot = page.screenshot(full_page=True, clip={"x": 0, "y": top, "width": width, "height": bottom - top})
            picture = Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
            picture.save(PICTURES / f"{name}.png", optimize=True)
            print((PICTURES / f"{name}.png").relative_to(ROOT))
        started.close()


if __name__ == "__main__":
    main()
