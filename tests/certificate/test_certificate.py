"""The bounds are laws: none is ever broken, whatever the data, the kernel, the space or the weights."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reduset
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, compress
from reduset.certificate.bounds import bounds_of
from reduset.certificate.certificate import METHODS
from reduset.select import KCenter, Random
from reduset.weights import KINDS

KERNELS = [
    Gaussian(1.0),
    Gaussian(1.0, normalized=True, space="l2"),
    Gaussian(0.5, covariance=[2.0, 0.5]),
    Laplacian(1.0),
    Laplacian(2.0, space="l2"),
    Laplacian(1.0, metric="cityblock"),
    Laplacian(1.0, metric="cityblock", space="l2", normalized=True),
    Student(1.0),
    Student(1.0, exponent=0.8, space="l2"),
    Student(2.0, exponent=3.0, normalized=True, space="l2"),
]

# clouds on a coarse grid have ties, duplicates, lines and single places; floats have none of these
clouds = st.one_of(
    hnp.arrays(np.float64, st.tuples(st.integers(2, 25), st.just(2)), elements=st.integers(-3, 3).map(float)),
    hnp.arrays(np.float64, st.tuples(st.integers(2, 25), st.just(2)), elements=st.floats(-4, 4, width=32)),
)


def distance(full: KernelMean, small: KernelMean) -> float:
    """‖f − f_m‖ from the matrix of all inner products."""
    points = np.concatenate([full.atoms, small.atoms])
    signed = np.concatenate([full.weights, -small.weights])
    square = signed @ full.kernel.product_gram(points, points) @ signed
    return float(np.sqrt(max(square, 0) * np.exp(full.kernel.log_energy(full.dimension))))


def largest_difference(full: KernelMean, small: KernelMean) -> float:
    rng = np.random.default_rng(0)
    queries = np.concatenate(
        [full.atoms, full.atoms + rng.normal(size=full.atoms.shape), rng.uniform(-6, 6, size=(200, full.dimension))]
    )
    return float(np.abs(full(queries) - small(queries)).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(max_examples=30, deadline=None)
@given(X=clouds, kind=st.sampled_from(KINDS), selector=st.sampled_from([KCenter(), Random()]), data=st.data())
def test_no_bound_is_ever_broken(kernel, X, kind, selector, data):
    size = data.draw(st.integers(1, len(X)), label="size")
    weights = data.draw(hnp.arrays(np.float64, len(X), elements=st.sampled_from([0.5, 1.0, 2.0, 3.0])), label="sample_weight")
    full = KernelMean.from_samples(X, kernel, weights)
    small = compress(full, size=size, select=selector, weights=kind, rng=0)
    scale = full.norm()
    for result in (small, small.at(max(1, small.size // 2))):
        certificate = result.certificate
        truth = distance(full, result.mean)
        # what the dense oracle itself loses: large weights of both signs, where atoms nearly coincide, cancel in it
        rounding = 3e-8 * (1 + np.abs(result.mean.weights).sum()) * np.exp(kernel.log_energy(2) / 2)
        if certificate.method == "exact":
            assert certificate.relative_error * scale == pytest.approx(truth, abs=rounding)
        else:
            assert certificate.relative_error * scale / 2 <= truth + rounding
            assert truth <= 2 * certificate.relative_error * scale + rounding
        if certificate.bound is None:
            assert isinstance(selector, Random) or len(small.dropped)
            assert result is not small
            continue
        assert truth <= certificate.bound * (1 + 1e-9) + rounding
        assert certificate.bound <= certificate.theorem_bound * (1 + 1e-12)
        if certificate.sup_bound is not None:
            peak = np.exp(kernel.log_peak(2))
            assert largest_difference(full, result.mean) <= certificate.sup_bound * (1 + 1e-9) + 1e-6 * peak
        assert (certificate.sup_bound is None) == (kernel.space == "l2")
        low, high = certificate.interval
        assert low <= certificate.relative_error <= high


def test_an_interval_holds_its_estimate_even_where_rounding_parts_them():
    corners = "-1 1 -3 1 2 -2 1 1 0 0 -2 1 -1 -2 3 0 -2 0 3 0 -2 -2 0 -1 1 3 -2 -2 0 -3 -2 -2 -2 0 3 1 3 -1 -1 1 0 0"
    X = np.array(corners.split(), float).reshape(-1, 2)
    full = KernelMean.from_samples(X, Gaussian(0.5, covariance=np.diag([2.0, 0.5])), np.full(21, 0.5))
    certificate = compress(full, size=7, select=Random(), weights="sum_to_one", rng=0).certificate
    low, high = certificate.interval
    assert low <= certificate.relative_error <= high


@settings(max_examples=30, deadline=None)
@given(X=clouds, kind=st.sampled_from(KINDS), data=st.data())
def test_signed_weights_keep_the_bounds(X, kind, data):
    signs = data.draw(hnp.arrays(np.float64, len(X), elements=st.sampled_from([-2.0, -1.0, 1.0, 1.5])))
    assume(signs.sum() > 0)
    full = KernelMean(X, signs, Gaussian(1.0))
    small = compress(full, size=data.draw(st.integers(1, len(X))), weights=kind, rng=0)
    rounding = 3e-8 * (1 + np.abs(signs).sum() + np.abs(small.mean.weights).sum())
    assert distance(full, small.mean) <= small.certificate.bound * (1 + 1e-9) + rounding


def test_bounds_are_those_of_the_paper():
    """Theorem 1, Corollary 2 and the simplex bound, written out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    kernel = Gaussian(1.5, normalized=True)
    small = compress(X, kernel, size=20, select=KCenter(first=0))
    C = float(np.exp(kernel.log_peak(3)))
    gram = C * kernel.product_gram(X, X[small.indices])
    rest = np.setdiff1d(np.arange(60), small.indices)
    nu = gram[rest].max(axis=1).min()
    theorem = (1 - 20 / 60) * np.sqrt((C**2 - nu**2) / C)
    assert small.certificate.incoherence == pytest.approx(nu, rel=1e-6)
    assert small.certificate.theorem_bound == pytest.approx(theorem, rel=1e-6)
    summed = np.mean(np.sqrt(np.maximum(C - gram.max(axis=1) ** 2 / C, 0)))
    assert small.certificate.bound == pytest.approx(summed, rel=1e-6)
    assert small.certificate.sup_bound == pytest.approx(np.sqrt(C) * summed, rel=1e-6)
    on_simplex = compress(X, kernel, size=20, select=KCenter(first=0), weights="simplex")
    assert on_simplex.certificate.bound <= (1 - 20 / 60) * np.sqrt(2 * (C - nu)) * (1 + 1e-9)


def test_at_states_theorem_one_for_the_prefix():
    X = np.random.default_rng(1).normal(size=(300, 2))
    small = compress(X, Gaussian(1.0), size=50, select=KCenter(first=0))
    fresh = compress(X, Gaussian(1.0), size=20, select=KCenter(first=0))
    prefix = small.at(20)
    assert prefix.certificate.theorem_bound == pytest.approx(fresh.certificate.theorem_bound, rel=1e-5)
    assert prefix.certificate.incoherence == pytest.approx(fresh.certificate.incoherence, rel=1e-5)


def test_moved_atoms_have_a_bound_too():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    full = KernelMean.from_samples(X, Gaussian(1.0))
    atoms = rng.normal(size=(15, 2))
    bounds = bounds_of(full, atoms, 0.0, None)
    kappa = full.kernel.product_sums(X, full.weights, atoms)
    K = full.kernel.product_gram(atoms, atoms)
    best = KernelMean(atoms, np.linalg.solve(K, kappa), full.kernel)
    assert distance(full, best) <= bounds.summed <= bounds.theorem


def test_a_density_gets_its_largest_change():
    X = np.random.default_rng(3).normal(size=(3000, 2))
    rough = compress(X, Gaussian("scott", normalized=True), size=60, weights="simplex", rng=0)
    fine = compress(X, Gaussian("scott", normalized=True), size=400, weights="simplex", rng=0)
    assert fine.certificate.log_density_change < rough.certificate.log_density_change
    full = KernelMean.from_samples(X, Gaussian("scott", normalized=True))
    everywhere = np.abs(rough.mean.log_density(X, "double") - full.log_density(X, "double")).max()
    assert 0 < rough.certificate.log_density_change <= everywhere * (1 + 1e-9)
    assert compress(X, Gaussian("scott"), size=60, rng=0).certificate.log_density_change is None


def test_an_error_above_one_is_called_what_it_is():
    X = np.random.default_rng(4).normal(size=(2000, 5))
    small = compress(X, Gaussian(0.3), size=5, weights="clipped", rng=0)
    assert small.certificate.relative_error > 1
    assert "WORSE THAN THE ZERO FUNCTION" in str(small)


def test_a_negative_inner_product_breaks_no_bound():
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.9, 0.1]])
    for kind in KINDS:
        full = KernelMean.from_samples(X, FunctionKernel("cosine"))
        small = compress(full, size=1, weights=kind, select=KCenter(first=0))
        assert distance(full, small.mean) <= small.certificate.bound * (1 + 1e-9)


def test_nothing_approximated_by_something_is_no_small_error():
    full = KernelMean.from_samples(np.array([[1.0, 0.0], [-1.0, 0.0]]), FunctionKernel("cosine"))
    assert full.norm() == pytest.approx(0, abs=1e-9)
    assert compress(full, size=1, weights="simplex", select=KCenter(first=0)).certificate.relative_error > 1


def test_a_density_in_many_dimensions_prints_although_its_constants_underflow():
    X = np.random.default_rng(0).normal(size=(500, 300))
    for kernel in (Gaussian("median", normalized=True, space="l2"), Gaussian(0.05, normalized=True)):
        small = compress(X, kernel, size=10, rng=0)
        assert "error" in str(small)
        assert "error " in small.details()
        assert 0 <= small.certificate.relative_error <= 1


def test_the_pages_know_every_way_to_measure():
    root = Path(__file__).resolve().parents[2]
    table = (root / "docs" / "certificate.md").read_text(encoding="utf-8").split("| `method` |")[1].split("\n\n")[0]
    assert re.findall(r'^\| `"(\w+)"`', table, flags=re.M) == list(METHODS)


def methods_in(tree):
    """The texts that are given as the method of a measurement or of a certificate."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and "Measurement" in ast.unparse(call.func):
            yield from (text for last in call.args[-1:] for text in texts_in(last))
        if isinstance(call, ast.Call) and "Certificate" in ast.unparse(call.func):
            yield from (text for each in call.keywords if each.arg == "method" for text in texts_in(each.value))


def texts_in(node):
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def test_every_way_to_measure_that_the_source_names_is_known():
    source = Path(reduset.__file__).parent
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in source.rglob("*.py")]
    assert {method for tree in trees for method in methods_in(tree)} == set(METHODS)


@pytest.mark.parametrize("gap", [2e-14, 1e-13, 1e-12, 1e-10])
def test_a_laplacian_certificate_holds_for_rows_that_nearly_coincide(gap):
    """Its spectrum has no variance, so that few of any drawn frequencies are as high as such gaps need."""
    full = KernelMean.from_samples(np.array([[gap, 0.0], [0.0, 0.0]]), Laplacian(1.0), np.array([0.5, 0.5]))
    certificate = compress(full, size=1, select="kcenter", weights="free", rng=0).certificate
    truth = 0.5 * np.sqrt(-np.expm1(-2 * gap)) / full.norm()
    low, high = certificate.interval
    assert low <= truth <= high
    assert certificate.relative_error == pytest.approx(truth, rel=0.1)
