"""Are class proportions from sparse class means as exact as from all rows, and are their intervals and checks right?

MNIST as in the paper (2017, Section VI-B, Figure 5 and Table II), against the same code on all rows (``size="all",
norm="kernel"``); shared atoms against separate atoms of each class; coverage of intervals and detection of an unknown class on
pendigits. Goals: error within 2 % of that of all rows, 20 times as fast. Errors are ℓ1 distances from the proportions in the
sample."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks._lib import data_folder, seconds, table, verdict
from reduset import Gaussian, KernelMean
from reduset.proportions import ClassProportions
from reduset.proportions.likelihood import most_likely
from reduset.proportions.simplex_fit import SimplexFit
from reduset.select import KMeans
from reduset.weights import span_of

TITLE = "Class proportions"
SOURCES = ("proportions", "select/kmeans.py", "weights/span.py")

CONCENTRATIONS = np.arange(1, 32) / 10
COMPARED = {
    "mnist_digits0to4": (4.5, 6000),
    "pendigits": (1.94, 7494),
}  # bandwidth and rows, for shared atoms against separate ones
MOST_ERROR, FASTER = 1.02, 20.0
FULL_WAY, DEFAULT_WAY = "full", "sparse, by likelihood (the default)"


class Sizes(NamedTuple):
    """What is measured."""

    training: int | None  # rows; None is all
    concentrations: np.ndarray
    a_concentration: int  # samples
    rows: int  # of a sample
    size: int | None  # atoms; None is the default
    own_sizes: tuple[int, ...]  # atoms, shared or separate
    samples: int  # for these
    repetitions: int  # for intervals


FULL = Sizes(None, CONCENTRATIONS, 10, 1000, None, (50, 100, 200, 500), 200, 400)
QUICK = Sizes(300, CONCENTRATIONS[::10], 2, 100, 20, (20,), 5, 8)
WAYS: dict[str, dict[str, Any]] = {
    "sparse, norm='kernel'": {"norm": "kernel", "method": "matching"},
    "sparse, norm='kernel', twice the atoms": {"norm": "kernel", "size": 1000, "method": "matching"},
    "sparse, norm='whitened'": {"method": "matching"},
    DEFAULT_WAY: {},
    FULL_WAY: {"norm": "kernel", "size": "all", "method": "matching"},
}
Part = tuple[list[list[str]], str]  # rows of the summary, and the details


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    with np.load(data_folder() / f"{name}.npz") as f:
        X, Q = (f[key].astype(np.float64) for key in ("X_train", "X_test"))
        y, z = f["y_train"], f["y_test"]
    if name.startswith("mnist"):
        return X / 255, y, Q / 255, z
    return X / X.std(axis=0), y, Q / X.std(axis=0), z


def draw(labels: np.ndarray, classes: np.ndarray, pi: np.ndarray, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of a sample with these proportions, drawn from each class; with replacement only if there are too few."""
    chosen = []
    for code, count in zip(classes, rng.multinomial(rows, pi), strict=True):
        pool = np.flatnonzero(labels == code)
        chosen.append(rng.choice(pool, count, replace=count > len(pool)))
    return np.concatenate(chosen)


def solve(model: ClassProportions, values: np.ndarray, samples: list[np.ndarray]) -> np.ndarray:
    """predict_proportions of each sample, from values computed once for all rows: the same numbers in less time."""
    if model.method == "likelihood":
        return np.stack([most_likely(model._sample_ratios(rows, values[rows])) for rows in samples])
    return model._class_means.fit.solve(np.stack([values[rows].mean(axis=0) for rows in samples]), model.solver)


def some(labels: np.ndarray, count: int | None) -> np.ndarray:
    """Row numbers, all in their order, or some at random."""
    order = np.arange(len(labels))
    return order if count is None else np.random.default_rng(0).permutation(order)[:count]


def mnist(sizes: Sizes) -> Part:
    X, y, Q, z = load("mnist_digits0to4")
    kept = some(y, sizes.training)
    X, y, classes = X[kept], y[kept], np.unique(y)
    rng = np.random.default_rng(0)
    omega = np.repeat(sizes.concentrations, sizes.a_concentration)
    truths = np.stack([rng.dirichlet(np.full(len(classes), w)) for w in omega])
    samples = [draw(z, classes, pi, sizes.rows, rng) for pi in truths]
    realised = np.stack([[np.mean(z[rows] == c) for c in classes] for rows in samples])
    ClassProportions(random_state=0).fit(X[:300], y[:300])  # compiles
    ClassProportions(random_state=0, norm="kernel", size="all", method="matching").fit(X[:300], y[:300])
    found: dict[str, tuple[np.ndarray, float, float, ClassProportions]] = {}
    for name, options in WAYS.items():
        given = options if sizes.size is None or name == FULL_WAY else options | {"size": sizes.size}
        model = ClassProportions(random_state=0, **given)
        fit = seconds(partial(model.fit, X, y))
        once = float(np.median([seconds(partial(model.predict_proportions, Q[rows])) for rows in samples[:3]]))
        error = np.abs(solve(model, model._class_means.values(Q), samples) - realised).sum(axis=1)
        found[name] = error, fit, once, model
    blind = np.abs(rng.dirichlet(np.ones(len(classes)), len(omega)) - realised).sum(axis=1)

    def at(error: np.ndarray, w: float) -> float:
        return error[np.abs(omega - w) < 0.25].mean()

    shown = (0.2, 1.0, 2.0, 3.0)
    full, count = found[FULL_WAY], len(sizes.concentrations)
    rows, ratios = [], {}
    for name, (error, fit, once, model) in found.items():
        total, of_full = fit + count * once, full[1] + count * full[2]
        ratios[name] = error.mean() / full[0].mean(), of_full / total
        ratio, faster = ratios[name]
        judged = ["", "", ""] if name == FULL_WAY else [f"{faster:.0f}×", verdict(-ratio, -MOST_ERROR), verdict(faster, FASTER)]
        rows.append([
            name, len(model.atoms_), f"{model.kernel_.width:.3g}", *(f"{at(error, w):.4f}" for w in shown), f"{error.mean():.4f}",
            f"{ratio:.3f}", f"{fit:.2f} s", f"{1e3 * once:.1f} ms", f"{total:.1f} s", *judged,
        ])  # fmt: skip
    guessed = [*(f"{at(blind, w):.2f}" for w in shown), f"{blind.mean():.2f}", f"{blind.mean() / full[0].mean():.0f}"]
    rows.append(["random guess", "", "", *guessed, *[""] * 6])
    head = ["means", "atoms", "bandwidth", *(f"ω ≈ {w:g}" for w in shown), "all ω", "of full", "fit, search included", "a sample"]
    head += [f"fit and {count} samples", "faster", "error within 2 %", f"{FASTER:g}×"]
    return [
        [f"MNIST, {name}: error ratio, faster by", f"{ratio:.3f}, {faster:.0f}×", f"≤ {MOST_ERROR}, ≥ {FASTER:g}×",
         "yes" if ratio <= MOST_ERROR and faster >= FASTER else "NO"]
        for name, (ratio, faster) in ratios.items() if name in (DEFAULT_WAY, "sparse, norm='kernel'")
    ], (
        f"**MNIST, digits 0 to 4**: {len(y):,} training rows of 784 columns; {sizes.a_concentration} samples of {sizes.rows:,} "
        f"test rows at each of {count} concentrations ω of a Dirichlet distribution, as in the paper, which found the sparse means "
        "10 times faster. Mean ℓ1 error.\n\n" + table(head, rows)
    )  # fmt: skip


def own_atoms(X: np.ndarray, y: np.ndarray, classes: np.ndarray, size: int, kernel: Gaussian):
    """The alternative: each class mean is compressed separately, and products are those of the compressed means."""
    means = []
    for code in classes:
        full = KernelMean.from_samples(X[y == code], kernel)
        atoms = KMeans().select(full, size // len(classes), rng=0).atoms
        seen = span_of(kernel, atoms, kernel.product_sums(full.atoms, full.weights, atoms))
        means.append(KernelMean(seen.atoms, seen.weights("free", 1.0, seen.size), kernel))
    return means, SimplexFit(np.array([[f.inner(g) for g in means] for f in means]))


def shared_or_own(sizes: Sizes) -> Part:
    rows, nearer = [], []
    for name, (width, count) in COMPARED.items():
        X, y, Q, z = load(name)
        keep = np.random.default_rng(0).permutation(len(y))[: sizes.training or count]
        X, y = X[keep], y[keep]
        classes, kernel, rng = np.unique(y), Gaussian(width), np.random.default_rng(1)
        truths = [rng.dirichlet(np.ones(len(classes))) for _ in range(sizes.samples)]
        samples = [draw(z, classes, pi, sizes.rows, rng) for pi in truths]
        realised = np.stack([[np.mean(z[chosen] == c) for c in classes] for chosen in samples])
        full = ClassProportions(kernel, size="all", norm="kernel", method="matching").fit(X, y)
        reference = solve(full, full._class_means.values(Q), samples)
        error = np.abs(reference - realised).sum(axis=1).mean()
        for size in sizes.own_sizes:
            model = ClassProportions(kernel, size=size, norm="kernel", random_state=0, method="matching").fit(X, y)
            shared = solve(model, model._class_means.values(Q), samples)
            means, mixer = own_atoms(X, y, classes, size, kernel)
            values = np.stack([mean(Q) for mean in means], axis=1)
            own = mixer.solve(np.stack([values[chosen].mean(axis=0) for chosen in samples]))
            away = [np.abs(estimate - reference).sum(axis=1).mean() for estimate in (shared, own)]
            errors = [np.abs(estimate - realised).sum(axis=1).mean() / error for estimate in (shared, own)]
            nearer.append(away[1] / away[0])
            rows.append([name, len(y), size, *(f"{each:{form}}" for pair in zip(away, errors, strict=True)
                                               for each, form in zip(pair, (".4f", ".3f"), strict=True))])  # fmt: skip
    head = ["data", "rows", "atoms", "shared: from full", "error over full's", "separate: from full", "error over full's"]
    figure = f"{min(nearer):.1f} to {max(nearer):.1f}×"
    return [["Distance from full estimate, separate over shared atoms", figure, "", ""]], (
        "**Shared atoms against separate atoms of each class**, as many in all, at one bandwidth, `norm='kernel'`: the distance of "
        f"the estimate from the full one, and its error over the full one's ({sizes.samples} samples of {sizes.rows:,} test "
        "rows).\n\n" + table(head, rows)
    )


def intervals(sizes: Sizes) -> Part:
    X, y, Q, z = load("pendigits")
    X, y = np.concatenate([X, Q]), np.concatenate([y, z])
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: sizes.training or 7494], order[7494:]
    known, unknown = np.arange(9), (0.0, 0.05, 0.1, 0.2)
    fixed = {} if sizes.size is None else {"size": sizes.size}
    ways = {
        "the default": {},
        "matching": {"method": "matching"},
        "matching, norm='kernel'": {"method": "matching", "norm": "kernel"},
    }
    rows, coverage, alarms = [], {}, {}
    for name, options in ways.items():
        model = ClassProportions(random_state=0, **options, **fixed).fit(X[train], y[train])
        rng = np.random.default_rng(2)
        held, widths = [], []
        for _ in range(sizes.repetitions):
            pi = rng.dirichlet(np.ones(10))
            found = model.estimate(X[test[draw(y[test], model.classes_, pi, 300, rng)]])
            held.append((found.interval[:, 0] <= pi) & (pi <= found.interval[:, 1]))
            widths.append(np.diff(found.interval).mean())
        coverage[name] = np.mean(held)
        nine = y[train] < 9
        model = ClassProportions(random_state=0, **options, **fixed).fit(X[train][nine], y[train][nine])
        flagged = []
        for proportion in unknown:
            doubts, foreign = [], []
            for _ in range(sizes.repetitions // 4):
                pi = np.append((1 - proportion) * rng.dirichlet(np.ones(9)), proportion)
                found = model.estimate(X[test[draw(y[test], np.append(known, 9), pi, 300, rng)]])
                doubts.append(not found.fits)
                foreign.append(found.foreign)
            alarms[name, proportion] = np.mean(doubts)
            flagged.append(f"{np.mean(doubts):.0%} ({np.mean(foreign):.1%})")
        rows.append([name, f"{coverage[name]:.1%}", f"{np.mean(widths):.3f}", *flagged])
    first = next(iter(ways))
    head = ["means", "coverage", "width", "flagged at 0 % of 9s", *(f"{proportion:.0%}" for proportion in unknown[1:])]
    return [
        ["Coverage of the 95 % intervals, the default", f"{coverage[first]:.1%}", "95 %", ""],
        [
            "Flagged at 0, 5, 10, 20 % of an unknown class",
            ", ".join(f"{alarms[first, each]:.0%}" for each in unknown),
            "",
            "",
        ],
    ], (
        f"**Intervals and checks** on pendigits, split at random: coverage of the 95 % intervals ({sizes.repetitions} samples of "
        "300 rows, 10 classes), and the proportion of samples flagged (with the mean of `foreign`) if the digit 9 is not in the "
        f"training rows and makes up a proportion of the sample ({sizes.repetitions // 4} samples each).\n\n" + table(head, rows)
    )


def measure(quick: bool) -> dict[str, Any]:
    parts = [part(QUICK if quick else FULL) for part in (mnist, shared_or_own, intervals)]
    return {"summary": [row for rows, _ in parts for row in rows], "details": "\n\n".join(text for _, text in parts)}
