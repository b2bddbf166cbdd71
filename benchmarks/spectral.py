"""Kernel PCA and manifolds on atoms: time, accuracy and memory against scikit-learn, errors against rivals of the same size."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import make_moons, make_swiss_roll
from sklearn.decomposition import PCA, KernelPCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from harness import data_folder, table, verdict
from reduset import Gaussian
from reduset.spectral import Nystroem, ReducedDiffusionMap, ReducedKernelPCA

TITLE = "Kernel PCA and manifolds on few atoms"
# the paper's σ as the bandwidth and its number of components; USPS in [0, 1]
SETS = {"german_numer": (30.0, 5), "pendigits": (120.0, 5), "usps": (18.0, 15)}
ELLS = (3.5, 4.0, 4.5, 5.0)
SPLITS = 10


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows in a fixed random order, and their labels."""
    with np.load(data_folder() / f"{name}.npz") as file:
        parts = [k[1:] for k in file.files if k.startswith("X")]
        X, y = (np.concatenate([file[letter + part] for part in parts]) for letter in "Xy")
    order = np.random.default_rng(0).permutation(len(X))
    return X[order].astype(np.float64), y[order]


def neighbours(model, X, y, cut: int) -> float:
    """3-NN accuracy on the coordinates of the rows from ``cut`` on."""
    return float(KNeighborsClassifier(3).fit(model.transform(X[:cut]), y[:cut]).score(model.transform(X[cut:]), y[cut:]))


def timed(model, X, cut: int) -> float:
    """Seconds to fit on the first rows and to transform the others."""
    begun = time.perf_counter()
    model.fit(X[:cut]).transform(X[cut:])
    return time.perf_counter() - begun


def speed() -> str:
    rows = []
    for name in ("pendigits", "usps"):
        X, y = load(name)
        h, k = SETS[name]
        cut = int(0.9 * len(X))
        ours = ReducedKernelPCA(k, kernel=Gaussian(h))
        seconds = float(np.median([timed(ours, X, cut) for _ in range(3)]))
        accuracy = neighbours(ours, X, y, cut)
        for solver in ("auto", "arpack"):
            theirs = KernelPCA(k, kernel="rbf", gamma=0.5 / h**2, eigen_solver=solver)
            their_seconds = timed(theirs, X, cut)
            their_accuracy = neighbours(theirs, X, y, cut)
            good = their_seconds >= 10 * seconds and accuracy >= their_accuracy - 0.01
            times = f"{seconds:.2f}", f"{their_seconds:.2f}", f"{their_seconds / seconds:.0f}×"
            row = name, f"{cut:,}", f"{len(ours.atoms_):,}", solver, *times, f"{accuracy:.3f}", f"{their_accuracy:.3f}"
            rows.append((*row, "yes" if good else "NO"))
    head = (
        "data",
        "rows",
        "atoms",
        "scikit-learn's solver",
        "ours, s",
        "theirs, s",
        "faster",
        "3-NN ours",
        "3-NN theirs",
        "10×, 1 point",
    )
    return "Fit and transform of the rest at ℓ = 4, 3-NN on the coordinates (90 % of the rows to fit):\n\n" + table(head, rows)


def gap(wanted: np.ndarray, found: np.ndarray) -> float:
    """‖O − ÕA‖_F / ‖O‖_F for the best A."""
    return float(np.linalg.norm(wanted - found @ np.linalg.lstsq(found, wanted, rcond=None)[0]) / np.linalg.norm(wanted))


def through_data(model: ReducedKernelPCA, X: np.ndarray, queries: np.ndarray, kernel: Gaussian) -> np.ndarray:
    """The paper's Nyström: eigenvectors extended from the atoms to all rows, and the rows kept to transform."""
    vectors = model.transform(X)
    return np.asarray(kernel.product_gram(queries, X) @ (vectors / np.linalg.norm(vectors, axis=0)))


def embeddings() -> str:
    rows, told = [], []
    for name, most in (("german_numer", 1000), ("pendigits", 3500)):
        X = load(name)[0][:most]
        h, k = SETS[name]
        kernel = Gaussian(h)
        whole = ReducedKernelPCA(k, kernel=kernel, reduce=None, centre=False).fit(X)
        everywhere, total = True, np.zeros(2)
        for ell in ELLS:
            errors = []
            for seed in range(SPLITS):
                order = np.random.default_rng(seed).permutation(len(X))
                train, test = X[order[: int(0.8 * len(X))]], X[order[int(0.8 * len(X)) :]]
                wanted = whole.transform(test)
                shadow = ReducedKernelPCA(k, kernel=kernel, ell=ell, centre=False).fit(train)
                m = len(shadow.atoms_)
                few = {"kernel": kernel, "size": m, "centre": False, "random_state": seed}
                sub = ReducedKernelPCA(k, reduce="random", **few).fit(train)
                means = ReducedKernelPCA(k, reduce="kmeans", **few).fit(train)
                features = Nystroem(kernel, n_components=m, random_state=seed).fit(train)
                axes = np.linalg.svd(features.transform(train), full_matrices=False)[2][:k].T
                found = [shadow.transform(test), sub.transform(test), through_data(sub, train, test, kernel)]
                found += [features.transform(test) @ axes, means.transform(test), through_data(means, train, test, kernel)]
                errors.append([m / len(train), *(gap(wanted, each) for each in found)])
            share, *mean = np.mean(errors, axis=0)
            everywhere &= mean[0] < mean[1]
            total += mean[0], mean[2]
            rows.append((name, ell, f"{share:.0%}", *(f"{each:.2e}" for each in mean)))
        told.append(
            f"{name}: below the paper's uniform Nyström on average: {verdict(total[1] / total[0], 1.0)}; "
            f"below subsampling everywhere: {'yes' if everywhere else 'NO'}."
        )
    head = (
        "data",
        "ℓ",
        "kept",
        "shadow",
        "subsample",
        "Nyström of the paper",
        "Nyström features + SVD",
        "k-means atoms",
        "weighted Nyström of the paper",
    )
    return (
        "Embedding of held-out rows against kernel PCA of all, ‖O − ÕA‖/‖O‖, 5 components, uncentred, equal m, "
        f"means of {SPLITS} splits. "
        + "The Nyström kinds of the paper keep all rows to transform; the others only atoms:\n\n"
        + table(head, rows)
        + "\n\n"
        + " ".join(told)
    )


def large() -> tuple[np.ndarray, np.ndarray]:
    """100,000 rows of 16 columns: pendigits drawn with noise, the last 10,000 from rows that the others know nothing of."""
    X, y = load("pendigits")
    rng = np.random.default_rng(1)
    known = int(0.9 * len(X))
    rows = np.concatenate([rng.integers(0, known, 90_000), rng.integers(known, len(X), 10_000)])
    return X[rows] + 3.0 * rng.normal(size=(100_000, 16)), y[rows]


def worker() -> None:
    """One fit in a process of its own, so that the peak is its own."""
    X, _ = large()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    pca = ReducedKernelPCA(10, kernel=Gaussian(120.0)).fit(X)
    seconds = time.perf_counter() - begun
    pca.transform(X)
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, before / 2**20, len(pca.atoms_))


def many_rows() -> str:
    out = subprocess.run([sys.executable, __file__, "worker"], capture_output=True, text=True, check=True).stdout.split()
    seconds, peak, _, atoms = map(float, out)
    X, y = large()
    cut, rows = 90_000, []
    models = {f"shadow, ℓ = {ell:g}": ReducedKernelPCA(10, kernel=Gaussian(120.0), ell=ell) for ell in (4.0, 3.0)}
    sizes = []
    for name, model in models.items():
        spent = timed(model, X, cut)
        sizes.append(len(model.atoms_))
        rows.append((name, f"{sizes[-1]:,}", f"{spent:.2f}", f"{neighbours(model, X, y, cut):.4f}"))
    for m in (sizes[-1], 500, 100):  # with the first of the sizes the features alone would take 4 GB
        features = make_pipeline(Nystroem(Gaussian(120.0), n_components=m, random_state=0), PCA(10, random_state=0))
        spent = timed(features, X, cut)
        rows.append(("uniform Nyström, then PCA", f"{m:,}", f"{spent:.2f}", f"{neighbours(features, X, y, cut):.4f}"))
    good = "yes" if seconds < 20 and peak < 1.5 else "NO"
    text = (
        f"100,000×16 rows, 10 components: {seconds:.1f} s, {atoms:,.0f} atoms, peak {peak:.2f} GB (under 20 s and 1.5 GB: {good}). "
    )
    return (
        text
        + "Accuracy of 3-NN on the coordinates of 10,000 rows left out:\n\n"
        + table(("method", "atoms", "fit + transform, s", "3-NN"), rows)
    )


def manifolds() -> str:
    rows = []
    for name, h in (("Swiss roll", 3.0), ("two moons", 0.25)):
        for seed in range(3):
            n = 4000
            X = (
                make_swiss_roll(n, random_state=seed)[0]
                if name == "Swiss roll"
                else make_moons(n, noise=0.05, random_state=seed)[0]
            )
            whole = ReducedDiffusionMap(3, kernel=Gaussian(h), reduce=None).fit_transform(X)
            for reduce in ("kmeans", "shadow"):
                few = ReducedDiffusionMap(3, kernel=Gaussian(h), reduce=reduce, size=n // 20, random_state=0).fit_transform(X)
                match = [abs(np.corrcoef(whole[:, k], few[:, k])[0, 1]) for k in range(3)]
                rows.append((name, seed, reduce, *(f"{each:.4f}" for each in match), verdict(min(match), 0.99)))
    head = ("data", "seed", "atoms", "first", "second", "third", "≥ 0.99")
    return "Diffusion maps of 4,000 rows, reduced 20×, against the dense one: correlation of coordinates:\n\n" + table(head, rows)


def run() -> str:
    warnings.simplefilter("ignore", UserWarning)
    return "\n\n".join([speed(), embeddings(), many_rows(), manifolds()])


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    worker() if sys.argv[1:] == ["worker"] else print(globals()[sys.argv[1]]())
