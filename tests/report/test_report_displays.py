"""Displays draw the numbers that the report has, on axes given or new."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.decomposition import PCA

from drift_cases import result
from reduset import FunctionKernel, Gaussian, KernelMean, Student, compress
from reduset.report import (
    AtomsDisplay,
    CohortDisplay,
    DensityDisplay,
    DriftDisplay,
    EmbeddingDisplay,
    PathDisplay,
    ProfileDisplay,
    write_cohort,
    write_compression,
    write_drift,
)
from report_cases import GROUPS, cohort, embedded, laws, model, resolved, unpacked

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_a_path_is_drawn_with_the_numbers_of_the_report(tmp_path):
    shown = model(d=1)
    write_compression(tmp_path / "r.html", shown)
    data = embedded(tmp_path / "r.html")["path"]
    display = PathDisplay.from_model(shown).plot()
    lines = {line.get_label(): line for line in display.ax_.lines}
    np.testing.assert_array_equal(lines["atoms"].get_xdata(), data["sizes"])
    np.testing.assert_array_equal(lines["atoms"].get_ydata(), data["errors"])
    np.testing.assert_array_equal(lines["random rows"].get_ydata(), data["random_errors"])
    np.testing.assert_array_equal(lines["a-priori bound"].get_ydata(), [data["bound"]])
    vain = PathDisplay.from_model(model())
    assert vain.figure.bound > 1
    assert "bound" not in [line.get_label() for line in vain.plot().ax_.lines]
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    assert display.figure_ is display.ax_.figure


def test_components_are_ellipses_of_their_covariances():
    shown = laws()
    display = AtomsDisplay.from_model(shown, ("c2", 0)).plot(linewidths=2.0)
    drawn = display.ax_.collections[0]
    assert drawn.get_linewidths()[0] == 2.0
    np.testing.assert_allclose(drawn.get_offsets(), shown.mean.means[:, [2, 0]])
    display.figure_.canvas.draw()
    to_data = display.ax_.transData.inverted()
    for path, matrix, place, covariance in zip(
        drawn.get_paths() * shown.size,
        drawn.get_transforms(),
        shown.mean.means[:, [2, 0]],
        shown.mean.covariances[:, [2, 0]][:, :, [2, 0]],
        strict=True,
    ):
        line = drawn.get_transform().transform(path.vertices[:-1] @ matrix[:2, :2].T)  # in pixels about the centre
        away = to_data.transform(line + display.ax_.transData.transform(place)) - place
        on = np.abs(np.hypot(*path.vertices[:-1].T) - path.vertices.max()) < 1e-6  # the others steer the curves
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)[on], 1.0, rtol=1e-6)
    reach = np.sqrt(shown.mean.covariances[:, 2, 2])
    low, high = display.ax_.get_xlim()
    assert low < (shown.mean.means[:, 2] - reach).min() < (shown.mean.means[:, 2] + reach).max() < high
    alone = AtomsDisplay.from_mean(shown.mean, [1], shown.columns).plot()
    np.testing.assert_allclose(alone.figure.covariances[:, 0, 0], shown.mean.covariances[:, 1, 1])
    assert len(alone.ax_.collections) == 3  # bars, and markers of either sign


def test_displays_of_components_say_so():
    shown = laws()
    assert "components" in [line.get_label() for line in PathDisplay.from_model(shown).plot().ax_.lines]
    assert f"{shown.size} components" in [line.get_label() for line in ProfileDisplay.from_model(shown).plot().ax_.lines]
    display = DensityDisplay.from_model(shown, "c2").plot()
    line = next(line for line in display.ax_.lines if line.get_label() == "components")
    np.testing.assert_allclose(line.get_ydata(), shown.mean.marginal([2])(display.figure.grids[0][:, None]), rtol=1e-6)


def test_a_profile_is_drawn_with_the_numbers_of_the_report(tmp_path):
    shown = resolved()
    write_compression(tmp_path / "r.html", shown)
    data = embedded(tmp_path / "r.html")["profile"]
    for step in (-1, 5):
        drawn = data["sizes"][data["steps"][step]]
        display = ProfileDisplay.from_model(shown, step).plot()
        lines = {line.get_label(): line for line in display.ax_.lines}
        np.testing.assert_array_equal(lines[f"{drawn['size']} atoms"].get_xdata(), data["bandwidths"])
        np.testing.assert_array_equal(lines[f"{drawn['size']} atoms"].get_ydata(), drawn["errors"])
        np.testing.assert_array_equal(lines[f"{drawn['size']} random rows"].get_ydata(), drawn["random_rows"])
        np.testing.assert_array_equal(lines["sampling error of the rows"].get_ydata(), data["noise"])
        assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
        assert display.ax_.get_ylim()[1] < 4
    band = display.ax_.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == max(drawn["high"])
    within = ProfileDisplay.from_model(shown).plot().ax_.lines[-1]
    assert within.get_label() == f"at most 20 % from bandwidth {shown.resolution:.3g} on"
    np.testing.assert_array_equal(within.get_xdata(), [data["bandwidths"][0], shown.resolution, shown.resolution])


def test_a_profile_of_a_compression_at_a_given_bandwidth_marks_that_bandwidth():
    full = KernelMean.from_samples(np.random.default_rng(0).normal(size=(300, 2)), Gaussian(0.8))
    small = compress(full, size=12, rng=0)
    display = ProfileDisplay.from_compression(small).plot(color="black")
    lines = {line.get_label(): line for line in display.ax_.lines}
    own = lines["at the bandwidth of the kernel"]
    np.testing.assert_allclose([*own.get_xdata(), *own.get_ydata()], [0.8, small.certificate.relative_error], rtol=1e-6)
    assert lines["12 atoms"].get_color() == "black"
    whole = compress(full, size=300, select="kcenter", rng=0)  # nothing lost, and no random rows to compare with
    labels = [line.get_label() for line in ProfileDisplay.from_compression(whole).plot().ax_.lines]
    assert "300 random rows" not in labels
    with pytest.raises(ValueError, match="profile is not available for this result"):
        ProfileDisplay.from_compression(compress(KernelMean(full.atoms, full.weights, FunctionKernel("rbf")), size=3, rng=0))


def test_a_density_is_drawn_with_the_numbers_of_the_report(tmp_path):
    shown = model()
    write_compression(tmp_path / "r.html", shown)
    data = embedded(tmp_path / "r.html")
    one = DensityDisplay.from_model(shown, "height")
    np.testing.assert_array_equal(one.figure.full.astype(np.float32), unpacked(data["marginals"])[0])
    np.testing.assert_array_equal(one.plot(color="black").ax_.lines[0].get_ydata(), shown.portrait.marginals_of(shown.mean)[0])
    two = DensityDisplay.from_model(shown, [0, 2], step=4)
    np.testing.assert_array_equal(two.figure.full.astype(np.float32), unpacked(data["joint"])[1])
    np.testing.assert_array_equal(two.figure.small, shown.portrait.joint_of(shown.at(4))[1])
    for kind in ("full", "small", "difference"):
        mesh = two.plot(kind=kind).ax_.collections[0]
        np.testing.assert_array_equal(np.asarray(mesh.get_array()).ravel(), getattr(two.figure, kind).T.ravel())
    turned = DensityDisplay.from_model(shown, [2, 0], step=4)
    np.testing.assert_array_equal(turned.figure.full, two.figure.full.T)
    np.testing.assert_array_equal(turned.figure.grids[0], two.figure.grids[1])


@pytest.mark.parametrize(("sign", "least"), [(1.0, 0.0), (-1.0, -1.0)])
def test_a_density_of_both_signs_has_both_colours(sign, least):
    rows = np.random.default_rng(0).normal(size=(40, 2))
    full = KernelMean(rows, np.where(rows[:, 0] > 0, 1.0, sign), Gaussian(0.5))
    display = DensityDisplay.from_means(full, full, (0, 1)).plot(kind="full")
    low, high = display.ax_.collections[0].get_clim()
    assert high == np.abs(display.figure.full).max()
    assert low == least * high


def test_atoms_are_drawn_at_their_places_with_areas_of_their_weights():
    shown = model()
    display = AtomsDisplay.from_model(shown, ["height", "c2"]).plot()
    positive, negative = display.ax_.collections
    weights = shown.mean.weights
    assert (weights < 0).any()
    np.testing.assert_array_equal(positive.get_offsets(), shown.mean.atoms[weights >= 0][:, [0, 2]])
    np.testing.assert_array_equal(negative.get_offsets(), shown.mean.atoms[weights < 0][:, [0, 2]])
    assert len(negative.get_facecolors()) == 0
    areas = np.abs(weights) / np.abs(weights).max()
    np.testing.assert_allclose(positive.get_sizes(), np.maximum(160 * areas[weights >= 0], 2))
    one = AtomsDisplay.from_mean(shown.mean, 1, names=shown.columns).plot()
    assert one.ax_.get_ylabel() == "weight"


def test_displays_are_made_from_compressions_and_means_too():
    full = KernelMean.from_samples(np.random.default_rng(0).normal(size=(300, 2)), Student(1.0))
    small = compress(full, size=12, rng=0)
    path = PathDisplay.from_compression(small).plot()
    assert "random rows" not in [line.get_label() for line in path.ax_.lines]
    display = DensityDisplay.from_means(full, small, (0, 1))
    assert display.figure.names == ("x1", "x2")
    assert np.abs(display.figure.difference).max() < 0.2 * display.figure.full.max()
    assert len(AtomsDisplay.from_mean(small).figure.weights) == small.size


def test_a_cohort_is_drawn_with_the_numbers_of_the_report(tmp_path):
    fitted = cohort()
    write_cohort(tmp_path / "r.html", fitted, groups=GROUPS)
    data = embedded(tmp_path / "r.html")
    display = CohortDisplay.from_estimator(fitted, groups=GROUPS).plot(labels=True)
    drawn = np.concatenate([each.get_offsets() for each in display.ax_.collections])
    order = [k for group in (*dict.fromkeys(g for g in GROUPS if g), None) for k in range(6) if GROUPS[k] == group]
    np.testing.assert_allclose(drawn - fitted.embedding_.mean(axis=0), unpacked(data["places"])[order], atol=1e-6)
    assert [text.get_text() for text in display.ax_.texts] == fitted.names_
    assert len({each.get_paths()[0].vertices.shape for each in display.ax_.collections}) > 1  # shapes, not colours alone
    matrix = display.plot(kind="distances", labels=True).ax_.images[0].get_array()
    np.testing.assert_array_equal(matrix, fitted.distances_[np.ix_(data["order"], data["order"])])


def test_an_embedding_is_drawn_by_groups_or_by_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    ax = plt.subplots()[1]
    display = EmbeddingDisplay.from_estimator(PCA(2).fit(X), X, values=X[:, 0]).plot(ax, s=4)
    assert display.ax_ is ax
    np.testing.assert_allclose(ax.collections[0].get_offsets(), PCA(2).fit_transform(X))
    np.testing.assert_array_equal(ax.collections[0].get_array(), X[:, 0])
    grouped = EmbeddingDisplay.from_array(X, groups=["a", "b"] * 30).plot()
    assert len(grouped.ax_.collections) == 2
    assert len(EmbeddingDisplay.from_array(X[:, :1]).plot().ax_.collections) == 1


def test_displays_name_what_is_wrong():
    shown = model()
    with pytest.raises(ValueError, match=r"columns .*got 'width'"):
        DensityDisplay.from_model(shown, "width")
    for wrong in ([0, 0], [0, 1, 2], []):
        with pytest.raises(ValueError, match="columns must be one column, or two different columns"):
            DensityDisplay.from_model(shown, wrong)
    with pytest.raises(ValueError, match=r"positions .*got 3"):
        AtomsDisplay.from_model(shown, 3)
    with pytest.raises(ValueError, match=r"kind .*got 'none'"):
        DensityDisplay.from_model(shown, 0).plot(kind="none")
    with pytest.raises(ValueError, match=r"kind .*got 'tree'"):
        CohortDisplay.from_estimator(cohort()).plot(kind="tree")
    with pytest.raises(ValueError, match=r"names .*got 1"):
        AtomsDisplay.from_mean(shown.mean, names=["a"])
    with pytest.raises(ValueError, match="give groups or values, not both"):
        EmbeddingDisplay.from_array(np.zeros((2, 2)), groups=[1, 2], values=[1, 2])
    with pytest.raises(ValueError, match="values must have one entry for each of the 2 rows"):
        EmbeddingDisplay.from_array(np.zeros((2, 2)), values=[1])
    with pytest.raises(ValueError, match=r"places must be \(n, k\)"):
        EmbeddingDisplay.from_array(np.zeros(3))
    with pytest.raises(ValueError, match=r"groups .*got 1"):
        EmbeddingDisplay.from_array(np.zeros((2, 2)), groups=[1]).plot()
    wide = model(d=8)
    with pytest.raises(ValueError, match="two different ones among the first 6, which have joint densities"):
        DensityDisplay.from_model(wide, [0, 7])


def test_drift_is_drawn_with_the_numbers_of_the_report(tmp_path):
    found = result()
    write_drift(tmp_path / "r.html", found)
    data = embedded(tmp_path / "r.html")
    display = DriftDisplay.from_result(found).plot()
    assert display.columns == data["pair"]
    cells = display.ax_.collections[0]
    np.testing.assert_allclose(np.sort(cells.get_array()), np.sort(np.subtract(data["cells"]["after"], data["cells"]["before"])))
    places = unpacked(data["cells"]["places"])[data["pair"]].T
    np.testing.assert_array_equal(np.sort(cells.get_offsets(), axis=0), np.sort(places, axis=0))
    assert cells.get_clim() == (-data["cells"]["most"], data["cells"]["most"])
    centres = [line.get_xydata()[0].tolist() for line in display.ax_.lines[1::2]]
    assert centres == [[region["centre"][k] for k in data["pair"]] for region in data["regions"]]
    assert [text.get_text() for text in display.ax_.texts] == [str(k + 1) for k in range(len(data["regions"]))]


def test_the_outline_of_a_region_is_two_standard_deviations_wide():
    found = result()
    display = DriftDisplay.from_result(found, ["c3", "few"]).plot(alpha=0.5)
    outlines = display.ax_.lines[::2]
    for region, outline in zip(found.where(), outlines, strict=True):
        np.testing.assert_allclose(np.ptp(outline.get_xydata(), axis=0) / 4, region.extent[[3, 2]], rtol=1e-3)
        assert outline.get_linestyle() == ("-" if region.change > 0 else ":")
    assert display.ax_.get_xlabel() == "c3"


def test_columns_and_chance_are_drawn_too():
    found = result()
    bars = DriftDisplay.from_result(found).plot(kind="columns").ax_
    names = [label.get_text() for label in bars.get_yticklabels()]
    assert names == [each.name for each in found.columns()]
    assert sum(bool(text.get_text()) for text in bars.texts) == sum(each.p_value <= found.alpha for each in found.columns())
    steps = DriftDisplay.from_result(found, "height").plot(kind="column").ax_
    assert sum(patch.get_data().values.sum() for patch in steps.patches) == pytest.approx(2.0)
    values = DriftDisplay.from_result(found, "few").plot(kind="column").ax_
    assert sum(patch.get_height() for patch in values.patches) == pytest.approx(2.0)
    chance = DriftDisplay.from_result(found).plot(kind="null").ax_
    assert {line.get_label(): line.get_xdata()[0] for line in chance.lines}["95 % quantile without drift"] == found.null_quantile
    alone = DriftDisplay.from_result(result(d=1)).plot()
    assert alone.ax_.get_ylabel() == "proportion gained or lost"


def test_names_of_columns_are_no_formulas_and_kinds_are_checked():
    found = result(names=("a$b$", "$\\frac", "few", "c3"))
    display = DriftDisplay.from_result(found, [0, 1]).plot()
    display.figure_.canvas.draw()
    assert display.ax_.get_xlabel() == "a\\$b\\$"
    with pytest.raises(ValueError, match=r"kind .*got 'pie'"):
        display.plot(kind="pie")
    with pytest.raises(ValueError, match="columns must be among"):
        DriftDisplay.from_result(found, "nowhere")
