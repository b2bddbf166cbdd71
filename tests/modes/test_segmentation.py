"""Segmentation: flat colours are means, segments are the regions of the image, and every kind of image comes back as it was."""

import numpy as np
import pytest

from reduset import NotReachedWarning
from reduset.compression import error_text
from reduset.modes import SparseMeanShift, segment
from reduset.modes.segmentation import features, flat, pixels

HEIGHT, WIDTH = 18, 24
REGIONS = np.zeros((HEIGHT, WIDTH), int)  # three
REGIONS[:, 12:] = 1
REGIONS[9:, 12:] = 2
LEVELS = np.array([0.1, 0.5, 0.9])


def noisy(seed=0, noise=0.02):
    """Shares of 1, (h, w)."""
    rng = np.random.default_rng(seed)
    return np.clip(LEVELS[REGIONS] + noise * rng.normal(size=REGIONS.shape), 0, 1)


def in_colour(channels, seed=0):
    grey = noisy(seed)
    layers = [grey, 1 - grey, np.abs(grey - 0.5), np.random.default_rng(seed).random(grey.shape)]
    return np.stack(layers[:channels], axis=2)


KINDS = {
    "grey float": noisy(),
    "grey single": noisy().astype(np.float32),
    "grey half": noisy().astype(np.float16),
    "grey 8 bits": np.rint(255 * noisy()).astype(np.uint8),
    "grey 16 bits": np.rint(65535 * noisy()).astype(np.uint16),
    "signed": np.rint(127 * noisy()).astype(np.int8),
    "one channel": noisy()[:, :, None],
    "RGB float": in_colour(3),
    "RGB 8 bits": np.rint(255 * in_colour(3)).astype(np.uint8),
    "RGBA 8 bits": np.rint(255 * in_colour(4)).astype(np.uint8),
    "RGBA float": in_colour(4),
    "columns first": np.asfortranarray(in_colour(3)),
    "rows from the bottom": in_colour(3)[::-1],
}
KIND = pytest.mark.parametrize("kind", KINDS)


def cut(image, **options):
    return segment(image, **{"bandwidth": 0.1, "spatial": 0.2, "random_state": 0} | options)


def same_regions(labels, regions):
    pairs = set(zip(labels.ravel().tolist(), regions.ravel().tolist(), strict=True))
    return len(pairs) == len(np.unique(labels)) == len(np.unique(regions))


@KIND
def test_the_regions_are_found_and_the_image_keeps_its_kind(kind):
    image = KINDS[kind]
    before = image.copy()
    found = cut(image)
    regions = REGIONS[::-1] if kind == "rows from the bottom" else REGIONS
    assert found.count == 3
    assert found.labels.shape == (HEIGHT, WIDTH)
    assert same_regions(found.labels, regions)
    assert (found.image.dtype, found.image.shape) == (image.dtype, image.shape)
    np.testing.assert_array_equal(image, before)


@KIND
def test_flat_colours_are_the_means_of_their_segments(kind):
    image = KINDS[kind]
    found = cut(image)
    whole = image.dtype.kind in "iu"
    given, coloured = (np.asarray(a, np.float64).reshape(HEIGHT, WIDTH, -1) for a in (image, found.image))
    for k in range(found.count):
        mean = given[found.labels == k].mean(axis=0)
        colours = coloured[found.labels == k]
        assert len(np.unique(colours[:, :3], axis=0)) == 1
        np.testing.assert_allclose(colours[0, :3], mean[:3], atol=0.5 if whole else 2e-3)


@pytest.mark.parametrize("kind", ["RGBA 8 bits", "RGBA float"])
def test_transparency_is_kept_and_does_not_count(kind):
    image = KINDS[kind]
    found = cut(image)
    np.testing.assert_array_equal(found.image[:, :, 3], image[:, :, 3])
    np.testing.assert_array_equal(found.labels, cut(image[:, :, :3]).labels)


def test_black_and_white_images():
    image = REGIONS > 0
    found = cut(image)
    assert found.count == 2
    assert found.image.dtype == bool
    np.testing.assert_array_equal(found.image, image)


def test_a_list_of_lists_is_an_image():
    np.testing.assert_array_equal(cut(noisy().tolist()).labels, cut(noisy()).labels)


@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 3), (1, 1, 4)])
def test_one_pixel_is_one_segment(shape):
    image = np.full(shape, 7, np.uint8)
    found = segment(image, bandwidth=0.1, random_state=0)
    assert found.count == 1
    np.testing.assert_array_equal(found.image, image)


def test_one_colour_within_a_bandwidth_is_one_segment():
    found = cut(np.full((5, 9), 200, np.uint8), bandwidth=0.5)
    assert found.count == 1
    assert (found.image == 200).all()


def test_the_more_position_counts_the_more_segments_there_are():
    """Two squares of one colour in opposite corners."""
    image = np.zeros((20, 20))
    image[:6, :6] = image[14:, 14:] = 1.0
    assert cut(image, spatial=0.05).count == 2
    corners = cut(image, spatial=1.0)
    assert corners.labels[2, 2] != corners.labels[17, 17]


@KIND
def test_colours_alone_know_nothing_of_position(kind):
    image = KINDS[kind]
    shuffled = np.random.default_rng(0).permutation(image.reshape(HEIGHT * WIDTH, *image.shape[2:])).reshape(image.shape)
    for each in (image, shuffled):
        found = cut(each, spatial=0)
        assert found.count == 3
    assert same_regions(cut(image, spatial=0).labels, REGIONS[::-1] if kind == "rows from the bottom" else REGIONS)


@pytest.mark.covering_cases
@KIND
@pytest.mark.parametrize("spatial", [0, 0.2])
def test_the_regions_are_found_by_way_of_a_mixture(kind, spatial):
    image = KINDS[kind]
    found = cut(image, via="mixture", radius=25 / 255, spatial=spatial)
    assert same_regions(found.labels, REGIONS[::-1] if kind == "rows from the bottom" else REGIONS)
    assert 0 < found.certificate.relative_error < 0.1
    assert "  error      " in str(found)
    np.testing.assert_array_equal(found.labels, cut(image, via="mixture", radius=25 / 255, spatial=spatial).labels)


def test_colours_alone_may_have_any_unit():
    image = np.rint(255 * in_colour(3))
    found = cut(image, via="mixture", radius=25.0, bandwidth=20.0, spatial=0)
    np.testing.assert_array_equal(
        found.labels, cut(image / 255, via="mixture", radius=25 / 255, bandwidth=20 / 255, spatial=0).labels
    )


def test_segments_too_small_go_to_the_nearest_mode():
    image = noisy(noise=0.0)
    image[3, 3:5] = 0.56  # two pixels of nearly the colour of the second region
    image[15, 2] = 1.0  # one of nearly the third's
    alone = cut(image, bandwidth=0.01, spatial=0.01, size=image.size)
    assert alone.count == 5
    found = cut(image, bandwidth=0.01, spatial=0.01, size=image.size, min_size=3)
    assert found.count == 3
    assert (found.labels[3, 3:5] == found.labels[0, 20]).all()
    assert found.labels[15, 2] == found.labels[17, 20]
    assert np.bincount(found.labels.ravel()).min() >= 3


def test_the_largest_segment_stays_however_small():
    assert cut(noisy(), min_size=10**6).count == 1


def test_labels_are_numbered_without_gaps():
    found = cut(noisy(noise=0.05), bandwidth=0.04, min_size=8)
    assert sorted(np.unique(found.labels)) == list(range(found.count))


def test_it_is_mean_shift_of_the_features():
    image = KINDS["RGB float"]
    shift = SparseMeanShift(bandwidth=0.1, random_state=0).fit(features(image, 0.2))
    found = cut(image)
    np.testing.assert_array_equal(found.labels.ravel(), shift.labels_)
    assert found.certificate.relative_error == shift.certificate_.relative_error == 0
    assert found.bandwidth == 0.1


def test_features_are_position_and_colour():
    image = np.zeros((2, 5, 3), np.uint8)
    image[1, 4] = [255, 51, 0]
    X = features(image, 2.0)
    assert X.shape == (10, 5)
    np.testing.assert_allclose(X[0], 0.0)
    np.testing.assert_array_equal(features(image, 0), X[:, 2:])
    np.testing.assert_allclose(X[-1], [1 * 2 / 5, 4 * 2 / 5, 1.0, 0.2, 0.0])
    np.testing.assert_allclose(features(pixels(np.full((1, 1), 65535, np.uint16)), 1.0), [[0, 0, 1.0]])
    np.testing.assert_allclose(features(pixels(np.array([[True]])), 1.0), [[0, 0, 1.0]])
    np.testing.assert_allclose(features(pixels(np.array([[-1.5]])), 1.0), [[0, 0, -1.5]])


def test_means_of_whole_numbers_are_rounded():
    image = np.array([[0, 1, 1, 9]], np.uint8)[:, :, None]
    np.testing.assert_array_equal(flat(image, np.array([0, 0, 0, 1]))[:, :, 0], [[1, 1, 1, 9]])


def test_the_result_says_what_it_is_in_plain_words():
    found = cut(noisy())
    lines = str(found).splitlines()
    assert lines[0] == "18 × 24 pixels in 3 segments (largest 50.0%, 25.0%, 25.0%)"
    assert lines[1].startswith(f"  error      {error_text(found.certificate)} of the density")
    assert lines[2].startswith(f"  bandwidth  {found.bandwidth:.3g}")
    assert not [sign for sign in ("‖", "ν", "bound") if sign in str(found)]


def test_options_go_to_the_mean_shift():
    with pytest.warns(NotReachedWarning, match="was not reached with 2 atoms; the error is"):
        assert cut(noisy(), tol=0.03, max_size=2).count <= 2


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (np.zeros(5), ValueError, r"image .*got an array of shape \(5,\)"),
        (np.zeros((3, 3, 2)), ValueError, r"got an array of shape \(3, 3, 2\)"),
        (np.zeros((2, 3, 3, 3)), ValueError, r"got an array of shape \(2, 3, 3, 3\)"),
        (np.zeros((0, 3)), ValueError, r"got an array of shape \(0, 3\)"),
        (np.full((3, 3), np.nan), ValueError, "image .*got NaN or infinity"),
        (np.array([["a"]]), TypeError, "image .*got dtype <U1"),
        (np.zeros((3, 3), complex), TypeError, "image .*got dtype complex128"),
        (np.zeros((3, 3), np.int64), TypeError, r"8 or 16 bits, .*got dtype int64; use image.astype\(np.uint8\)"),
        (np.zeros((3, 3), np.uint32), TypeError, "8 or 16 bits, .*got dtype uint32"),
    ],
)
def test_bad_images_are_named(image, error, message):
    with pytest.raises(error, match=message):
        cut(image)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"min_size": 0}, ValueError, "min_size .*got 0"),
        ({"min_size": 1.5}, TypeError, "min_size .*got 1.5"),
        (
            {"spatial": -1.0},
            ValueError,
            "spatial .*got -1.0",
        ),
        ({"bandwidth": -1.0}, ValueError, "bandwidth .*got -1.0"),
        ({"cluster_all": False}, ValueError, "cluster_all .*got False"),
    ],
)
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        cut(noisy(), **options)


def test_floats_beyond_white_are_warned_of():
    with pytest.warns(UserWarning, match="up to 255, .*position; divide .*such as 255"):
        cut(255.0 * KINDS["RGB float"] / KINDS["RGB float"].max(), bandwidth=20.0)


def test_masked_images_are_refused():
    with pytest.raises(TypeError, match="image must not be masked"):
        segment(np.ma.masked_array(np.zeros((4, 4)), mask=np.eye(4)))


def test_a_radius_in_the_wrong_units_is_told():
    image = np.random.default_rng(0).integers(0, 256, size=(20, 20, 3)).astype(np.uint8)
    with pytest.warns(UserWarning, match=r"radius=25 covers all rows.* 25/255"):
        segment(image, bandwidth=0.1, spatial=0, via="mixture", radius=25, random_state=0)
