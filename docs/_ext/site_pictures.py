"""The look of the gallery's pictures, and the pictures of the pages: `make pictures` draws docs/pictures from the gallery scripts.

The site runs the scripts itself. The pictures are kept as well, because the pages are also read where nothing is built.
"""

import runpy
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # files, not windows
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))

# Okabe and Ito's colours, which all kinds of sight tell apart
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
STYLE = {
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#6b7078",
    "axes.labelcolor": "#22262b",
    "axes.titlecolor": "#22262b",
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "xtick.color": "#6b7078",
    "ytick.color": "#6b7078",
    "font.size": 10,
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "figure.facecolor": "white",
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
    "image.cmap": "cividis",
    "savefig.dpi": 110,
}


ORDER = [
    *("compress", "resolution", "select", "density", "modes", "mixtures", "svm", "spectral", "features", "proportions", "cohort"),
    *("study", "drift", "sketch"),
]


def place(script: str) -> tuple[int, str]:
    """Where a script stands in the gallery: that of the pages, others after them."""
    name = Path(script).stem.removeprefix("plot_")
    return ORDER.index(name) if name in ORDER else len(ORDER), name


def use_style(gallery_conf: Any = None, script: Any = None) -> None:
    """Called by the gallery before every script."""
    plt.rcParams.update(STYLE)


def figures(script: Path) -> list[Any]:
    """Run a script and return the figures it leaves open."""
    plt.close("all")
    with matplotlib.rc_context():
        use_style()
        runpy.run_path(str(script))
    return [plt.figure(number) for number in plt.get_fignums()]


def main() -> None:
    """Draw the first figure of every script into docs/pictures."""
    for script in SCRIPTS:
        picture = ROOT / "docs" / "pictures" / f"{script.stem.removeprefix('plot_')}.png"
        figures(script)[0].savefig(picture, metadata={"Software": None})
        print(picture.relative_to(ROOT))


if __name__ == "__main__":
    main()
