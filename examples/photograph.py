"""A photograph as a cloud of points: its 273,280 pixels, replaced by 1,000 weighted atoms, with the error that this costs.

Run it with ``python examples/photograph.py``; the picture goes to out/photograph.png. The command `reduset demo`
makes reports of the same photograph.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from scipy.spatial import cKDTree
from sklearn.datasets import load_sample_image

from reduset import Compression, Gaussian, KernelMean, compress

matplotlib.use("Agg")  # a file, not a window
import matplotlib.pyplot as plt

# A pixel is (red, green, blue, across, down). Colours run from 0 to 255; positions are scaled so that the picture's longer
# side spans half of that. Crossing the whole picture then counts as much as half the way from black to full red: colour decides,
# and position tells apart what only happens to look alike.
LONGER_SIDE = 128.0

# A quarter of the range of a colour. Shades and places closer than this count as alike, sky and roof as different. The rules of
# `reduset.bandwidth` answer other questions: "scott" (16 here) suits a density estimate, "median" (169) a test.
KERNEL = Gaussian(64.0)

SIZE = 1000
TOLERANCE = 0.01
QUERIES = 5000

INK, PALE, PAPER, NIGHT, ACCENT = "#22262b", "#7b8189", "#fbfaf7", "#14171c", "#c2452d"


def pixels(image: np.ndarray) -> np.ndarray:
    """(n, 5): the colour and the scaled position of every pixel."""
    height, width, _ = image.shape
    down, across = np.mgrid[:height, :width] * (LONGER_SIDE / max(height, width))
    return np.column_stack([image.reshape(-1, 3), across.ravel(), down.ravel()])


def warm_up(X: np.ndarray) -> None:
    """Compile what the demo uses, so that the times below are those of every later run."""
    few = KernelMean.from_samples(X[::20], KERNEL)
    few(X[:1], precision="single")
    compress(few, size=64, select="kcenter", rng=0)


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def seconds(task: Any) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = task()
    return time.perf_counter() - begun, result


def tell(full: KernelMean, small: Compression, by_error: Compression, rng: np.random.Generator) -> None:
    """What happened, in plain sentences."""
    low, high = small.certificate.interval
    print(f"\nIn:    {full.size:,} pixels, each a point of five numbers (colour and position).")
    print("       A bump sits on every one; their mean f tells how common a colour is at a place.")
    print(f"Out:   {small.size:,} of those pixels, each with a weight: {full.size / small.size:,.0f} times fewer bumps.")
    print(f"Lost:  {percent(small.certificate.relative_error)} of f, measured (95 % sure: {percent(low)} to {percent(high)}).")
    print(f"Time:  {small.timings['total']:.2f} s for choosing, weighing and measuring together.")
    Q = full.atoms[rng.choice(full.size, min(QUERIES, full.size), replace=False)]
    slow, before = seconds(lambda: full(Q))
    fast, after = seconds(lambda: small.mean(Q))
    change = np.abs(after - before).max() / before.max()
    print(
        f"Use:   f at {len(Q):,} pixels takes {slow:.2f} s from all pixels and {fast:.3f} s from the atoms.\n"
        f"       That is {slow / fast:,.0f} times less, and the values there differ by at most {percent(change)} of the largest."
    )
    print(
        f"Or:    ask for an error instead of a size. tol={TOLERANCE:g} ({percent(TOLERANCE)}) takes {by_error.size:,} atoms"
        f"{'' if by_error.reached else ' and more'}, found in {by_error.timings['total']:.2f} s.\n"
    )


def draw(image: np.ndarray, X: np.ndarray, small: Compression, by_error: Compression, path: Path) -> None:
    """Four panels: the photograph, the atoms, the photograph from the atoms' colours, and the error over size."""
    plt.rcParams.update({"font.size": 12, "font.family": "DejaVu Sans", "text.color": INK, "axes.labelcolor": INK})
    figure = plt.figure(figsize=(15, 11.7), facecolor=PAPER)
    figure.text(0.035, 0.95, f"{len(X):,} pixels, {small.size:,} atoms", fontsize=28, fontweight="bold", va="center")
    low, high = small.certificate.interval
    summary = (
        f"{len(X) / small.size:,.0f} times fewer, at the price of {percent(small.certificate.relative_error)} "
        f"(95 % sure: {percent(low)} to {percent(high)}), in {small.timings['total']:.2f} s"
    )
    figure.text(0.035, 0.912, summary, fontsize=15.5, color=PALE, va="center")

    def panel(left: float, bottom: float, right: float, top: float, title: str, title_at: float) -> Any:
        figure.text(title_at, top + 0.012, title, fontsize=13.5)
        return figure.add_axes((left, bottom, right - left, top - bottom))

    nearest = cKDTree(small.mean.atoms).query(X)[1]
    repainted = small.mean.atoms[nearest, :3].reshape(image.shape).astype(np.uint8)
    draw_image(panel(0.035, 0.475, 0.485, 0.86, "The photograph", 0.035), image)
    draw_image(panel(0.035, 0.04, 0.485, 0.425, "Every pixel in the colour of its nearest atom", 0.035), repainted)
    title = "The atoms in their places, as large as their weights (rings: below 0)"
    draw_atoms(panel(0.515, 0.475, 0.965, 0.86, title, 0.515), image.shape, small)
    title = "What is lost, ‖f − fₘ‖ / ‖f‖, for every number of atoms"
    draw_path(panel(0.56, 0.082, 0.965, 0.425, title, 0.515), small, by_error)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, facecolor=PAPER)
    plt.close(figure)


def bare(axes: Any) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_image(axes: Any, image: np.ndarray) -> None:
    axes.imshow(image, interpolation="antialiased")
    bare(axes)


def draw_atoms(axes: Any, shape: tuple[int, ...], small: Compression) -> None:
    """Discs for positive weights, rings for negative ones: the best weights may take away as well as add."""
    height, width, _ = shape
    across, down = small.indices % width, small.indices // width
    weights, colours = small.mean.weights, small.mean.atoms[:, :3] / 255
    area = 1000 * np.abs(weights) / np.abs(weights).max() + 4
    order = np.argsort(-area)
    added, taken = order[weights[order] > 0], order[weights[order] <= 0]
    axes.set_facecolor(NIGHT)
    axes.scatter(across[added], down[added], s=area[added], c=colours[added], linewidths=0, alpha=0.93)
    axes.scatter(across[taken], down[taken], s=area[taken], facecolors="none", edgecolors=colours[taken], linewidths=1.0, alpha=0.8)
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal")
    bare(axes)


def draw_path(axes: Any, small: Compression, by_error: Compression) -> None:
    """The errors of all prefixes, and the certificate at the sizes taken."""
    longest = max(small, by_error, key=lambda c: c.size)
    axes.set_facecolor(PAPER)
    axes.plot(longest.path.sizes, longest.path.relative_errors, color=INK, linewidth=2)
    for result, note in ((small, f"size={small.size}"), (by_error, f"tol={TOLERANCE:g}")):
        error, (low, high) = result.certificate.relative_error, result.certificate.interval
        bar = [[max(error - low, 0.0)], [max(high - error, 0.0)]]
        axes.errorbar(
            result.size, error, yerr=bar, fmt="o", color=ACCENT, markersize=8, capsize=7, elinewidth=2, capthick=2, zorder=3
        )
        axes.annotate(
            f"{note}\n{result.size:,} atoms, {percent(error)}",
            (result.size, error),
            xytext=(-18, -8),
            textcoords="offset points",
            ha="right",
            va="center",
            color=ACCENT,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("atoms (the bars are the 95 % intervals)", color=PALE)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.grid(True, which="major", color="#e3e1da", linewidth=0.9)
    axes.tick_params(which="both", length=0, colors=PALE)
    axes.margins(x=0.03, y=0.12)
    for spine in axes.spines.values():
        spine.set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="only a crop of the photograph, for a quick look")
    parser.add_argument("--output", type=Path, default=Path("out/photograph.png"), help="where the picture goes")
    options = parser.parse_args()

    image = load_sample_image("china.jpg")
    if options.small:
        image = image[20:110, 150:285]
    X = pixels(image)
    print("Compiling the inner loops: about 15 s the first time, nothing after that.", flush=True)
    warm_up(X)

    full = KernelMean.from_samples(X, kernel=KERNEL)
    # k-centre: a thousand atoms that cover every shade and place, the rare ones too, in a moment
    small = compress(full, size=min(SIZE, full.size // 20), select="kcenter", rng=0, progress=True)
    by_error = compress(full, tol=TOLERANCE, select="kcenter", rng=0, progress=True)
    print(small)
    tell(full, small, by_error, np.random.default_rng(0))
    draw(image, X, small, by_error, options.output)
    print(f"The picture is in {options.output}")


if __name__ == "__main__":
    main()
