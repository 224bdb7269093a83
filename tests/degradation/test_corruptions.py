"""The corruptions of ImageNet-C compared with their definitions and with imagecorruptions."""

import colorsys
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from image_statistics import NAMES, make_photo, measure_change
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates, zoom

from steadyeye.core import plugins
from steadyeye.core.defaults import IMAGENET_C, IMAGENET_C_EXTRA
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.degradation.corruption_errors import ALEXNET, ALEXNET_CLEAN
from steadyeye.degradation.corruptions import blur_along, find_zoom
from steadyeye.degradation.counter_rng import draw, stream_key
from steadyeye.degradation.operator import Context
from steadyeye.degradation.operators import elastic_transform, glass_blur
from steadyeye.degradation.operators.fog import draw_plasma
from steadyeye.metrics.mce import mce
from steadyeye.metrics.relative_mce import relative_mce
from steadyeye.testing import example_corruptions, example_sweep

REFERENCE = json.loads((Path(__file__).parent / "imagecorruptions.json").read_text())
NAMED = (*IMAGENET_C, *IMAGENET_C_EXTRA)


def at(name, image, severity, seed=0):
    operator = plugins.build("operators", Spec(name))
    return operator.start(image, Context(stream_key(seed, "photo", name)))(severity)


@pytest.fixture(scope="module")
def photos():
    return [make_photo(seed) for seed in range(REFERENCE["seeds"])]


@pytest.mark.parametrize("name", NAMED)
def test_images_change_as_imagecorruptions_changes_them(name, photos):
    # one standard error of each side, and what rounding instead of cutting off changes
    assert REFERENCE["statistics"] == list(NAMES)
    # our frost is drawn, where theirs is photographs: as bright and as rough, within a quarter
    loose = 0.25 if name == "frost" else 0.04
    for severity, rows in enumerate(REFERENCE[name], start=1):
        own = [
            measure_change(image, at(name, image, severity, seed))
            for seed, image in enumerate(photos)
        ]
        errors = np.std(own, axis=0, ddof=1) / math.sqrt(len(own))
        for title, value, error, (reference, reference_error) in zip(
            NAMES, np.mean(own, axis=0), errors, rows, strict=True
        ):
            allowed = 0.6 + loose * abs(reference) + 4 * math.hypot(error, reference_error)
            assert abs(value - reference) < allowed, (severity, title, value, reference)


def test_the_reference_tells_severities_apart():
    # the test above could not fail if what is allowed were wider than what corruptions do
    for name in NAMED:
        first, last = np.array(REFERENCE[name][0]), np.array(REFERENCE[name][4])
        allowed = 0.6 + 0.04 * np.abs(first[:, 0]) + 4 * np.hypot(first[:, 1], last[:, 1])
        assert (np.abs(last[:, 0] - first[:, 0]) > allowed).any(), name


@pytest.mark.parametrize("angle", [-45, -10.5, 0, 33, 45, 90, -120])
def test_motion_blur_is_a_weighted_sum_of_shifted_images(angle):
    image = make_photo(1, (40, 50)).astype(np.float32)
    weights = [math.exp(-(i**2) / (2 * 5**2)) for i in range(31)]
    padded = np.pad(image, ((32, 32), (32, 32), (0, 0)), mode="edge").astype(np.float64)
    expected = np.zeros(image.shape)
    for i, weight in enumerate(weights):
        down = math.ceil(i * math.sin(math.radians(angle)) - 0.5)
        right = math.ceil(i * math.cos(math.radians(angle)) - 0.5)
        expected += weight / sum(weights) * padded[32 + down :, 32 + right :][:40, :50]
    assert np.abs(blur_along(image, 15, 5, angle) - expected).max() < 0.01


@pytest.mark.parametrize("shape", [(60, 84), (33, 47), (2, 3)])
@pytest.mark.parametrize(
    ("severity", "last", "step"),
    [(1, 1.11, 0.01), (2, 1.16, 0.01), (3, 1.21, 0.02), (4, 1.26, 0.02), (5, 1.31, 0.03)],
)
def test_zoom_blur_is_the_mean_of_enlargements_by_scipy(shape, severity, last, step):
    image = make_photo(2, shape)
    layers = [image.astype(np.float64)]
    for factor in np.arange(1, last, step):
        parts = [math.ceil(side / factor) for side in shape]
        first = [(side - part) // 2 for side, part in zip(shape, parts, strict=True)]
        middle = image[first[0] : first[0] + parts[0], first[1] : first[1] + parts[1]]
        enlarged = zoom(middle.astype(np.float64), (factor, factor, 1), order=1)
        layers.append(enlarged[: shape[0], : shape[1]])
    assert np.abs(at("zoom_blur", image, severity) - np.mean(layers, axis=0)).max() < 0.51


def test_enlarged_sides_are_at_least_as_long():
    for side in range(1, 300):
        for factor in (1.01, 1.3, 2.0, 4.5):
            part = find_zoom(side, factor)
            assert round(part.source * factor) >= side
            assert part.start + part.scale * (side - 1) <= side - 1 + 1e-9


@pytest.mark.parametrize("severity", range(1, 6))
def test_elastic_transform_reads_pixels_from_smoothly_moved_places(severity):
    image = make_photo(3, (60, 80))
    strength = 250 * (0.05, 0.065, 0.085, 0.1, 0.12)[severity - 1]
    key = stream_key(0, "photo", "elastic_transform")
    draws = elastic_transform._draw_steps(key, 60 * 80).reshape(2, 60, 80) * (2 * 0.005 * 60)
    assert np.abs(draws).max() <= 0.3
    down, right = (
        gaussian_filter(field, (0.6, 0.8), mode="reflect", truncate=3) * strength for field in draws
    )
    places = np.mgrid[:60, :80] + np.stack((down, right))
    expected = np.stack(
        [map_coordinates(image[..., c].astype(np.float64), places, order=1) for c in range(3)],
        axis=-1,
    )
    inside = (slice(10, -10), slice(10, -10))
    apart = np.abs(at("elastic_transform", image, severity) - expected)[inside]
    # cv2 finds places to 1/32 of a pixel
    assert apart.mean() < 0.8


@pytest.mark.parametrize("severity", range(1, 6))
def test_pixelate_equals_pillow(severity):
    image = make_photo(4, (96, 131))
    small = tuple(int(side * (0.6, 0.5, 0.4, 0.3, 0.25)[severity - 1]) for side in (131, 96))
    reduced = Image.fromarray(image).resize(small, Image.Resampling.BOX)
    expected = np.asarray(reduced.resize((131, 96), Image.Resampling.NEAREST))
    apart = np.abs(at("pixelate", image, severity).astype(int) - expected)
    # Pillow rounds rows and then columns; where a box ends half way in a pixel it may differ
    assert (apart > 1).mean() < 0.06


@pytest.mark.parametrize(("severity", "quality"), list(enumerate((25, 18, 15, 10, 7), start=1)))
def test_jpeg_compression_is_nearly_pillows(severity, quality):
    image, file = make_photo(5, (64, 96)), io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    expected = np.asarray(Image.open(file)).astype(int)
    assert np.abs(at("jpeg_compression", image, severity) - expected).mean() < 1.3


@pytest.mark.parametrize("severity", range(1, 6))
def test_saturate_scales_the_hsv_saturation_alone(severity):
    factor, summand = [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)][severity - 1]
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)
    image[0] = [[7 * i] * 3 for i in range(20)]
    for pixel, changed in zip(
        image.reshape(-1, 3), at("saturate", image, severity).reshape(-1, 3), strict=True
    ):
        hue, saturation, value = colorsys.rgb_to_hsv(*(pixel / 255))
        expected = colorsys.hsv_to_rgb(hue, min(saturation * factor + summand, 1), value)
        assert np.abs(changed - 255 * np.array(expected)).max() < 0.51


@pytest.mark.parametrize("severity", range(1, 6))
def test_speckle_noise_grows_with_the_value(severity):
    deviation = (0.15, 0.2, 0.35, 0.45, 0.6)[severity - 1]
    for value in (0, 40, 80):
        changed = at("speckle_noise", np.full((80, 80, 3), value, dtype=np.uint8), severity)
        # half of the draws are below the value, and 0 ends few of these
        spread = np.percentile(changed, 84.13) - np.percentile(changed, 50)
        assert abs(spread - deviation * value) < 1.5


@pytest.mark.parametrize(("step", "passes"), [(1, 2), (2, 1), (2, 3), (3, 2), (4, 2)])
def test_glass_blur_copies_neighbours_from_the_lower_right_on(step, passes):
    image = np.random.default_rng(0).integers(0, 256, (20, 31, 3), dtype=np.uint8)
    expected, changed, i = image.copy(), image.copy(), 0
    glass_blur._copy_neighbours(changed, np.uint64(5), step, passes)
    for _ in range(passes):
        for y in range(20 - step, step, -1):
            for x in range(31 - step, step, -1):
                bits = int(draw(np.uint64(5), i))
                down, right = (((bits >> 32) * 2 * step) >> 32), (((bits % 2**32) * 2 * step) >> 32)
                expected[y, x] = expected[y + down - step, x + right - step]
                i += 1
    assert np.array_equal(changed, expected)
    assert (changed != image).any()
    even = np.full((30, 30, 3), 200, dtype=np.uint8)
    assert np.array_equal(at("glass_blur", even, 5), even)


def test_plasma_is_as_rough_as_its_decay_says():
    fields = [draw_plasma(np.uint64(1009 * i), 64, 2.0) for i in range(20)]
    assert all(field.min() == 0 and field.max() == 1 for field in fields)
    # on a torus the first row follows the last
    steps = [np.abs(np.diff(field, axis=0)).mean() for field in fields]
    seams = [np.abs(field[0] - field[-1]).mean() for field in fields]
    assert np.mean(seams) == pytest.approx(np.mean(steps), rel=0.3)
    rougher = [np.abs(np.diff(draw_plasma(np.uint64(i), 64, 1.4), axis=0)).mean() for i in range(9)]
    assert np.mean(rougher) > 2 * np.mean(steps)


def test_mud_and_water_lie_where_they_lay_before():
    image = make_photo(6)
    changed = [at("spatter", image, severity) for severity in range(1, 6)]
    assert (changed[0] >= image).all(), "water brightens"
    covered = (changed[3] != image).any(axis=2)
    assert 0.01 < covered.mean() < 0.3
    brown = changed[3][covered].mean(axis=0)
    assert brown[0] > brown[1] > brown[2]


def test_snow_falls_within_45_degrees_of_the_vertical():
    black = np.zeros((128, 128, 3), dtype=np.uint8)
    for seed in range(4):
        flakes = at("snow", black, 4, seed)[..., 0].astype(float)
        down, across = (np.abs(np.diff(flakes, axis=axis)).mean() for axis in (0, 1))
        assert down < across


# ---------------------------------------------------------------- corruption errors


def naive_errors(predictions, relative):
    """The definition in loops: sums over severities, over those of AlexNet."""
    tags, wrong = predictions.tags, ~predictions.right
    clean = np.mean([wrong[i] for i in range(len(wrong)) if tags["level"][i] == 0])
    errors = {}
    for corruption in ALEXNET:
        own = sum(
            np.mean(wrong[(tags["operator"] == corruption) & (tags["level"] == severity)])
            - (clean if relative else 0)
            for severity in range(1, 6)
        )
        errors[corruption] = own / (5 * (ALEXNET[corruption] - (ALEXNET_CLEAN if relative else 0)))
    return errors


@pytest.mark.parametrize(("metric", "relative"), [(mce, False), (relative_mce, True)])
def test_corruption_errors_are_ratios_to_alexnet(metric, relative):
    predictions = example_corruptions(40, seed=2)
    expected = naive_errors(predictions, relative)
    result = metric(predictions)
    assert {cell.name: cell.value for cell in result.cells} == pytest.approx(expected)
    assert result.value == pytest.approx(np.mean(list(expected.values())))
    assert result.low < result.value < result.high
    assert any("ImageNet" in note for note in result.notes)


def test_without_a_baseline_it_is_the_mean_error():
    predictions = example_corruptions()
    rows = predictions.tags["level"] > 0
    result = mce(predictions, baseline="none")
    assert result.value == pytest.approx(1 - predictions.right[rows].mean())
    assert not any("ImageNet" in note for note in result.notes)


def test_alexnets_errors_are_of_the_fifteen_in_order():
    assert list(ALEXNET) == list(IMAGENET_C)
    assert all(ALEXNET_CLEAN < error < 1 for error in ALEXNET.values())


def test_a_sweep_that_lacks_corruptions_or_severities_is_refused():
    with pytest.raises(UsageError, match="has no gaussian_noise, shot_noise"):
        mce(example_sweep())
    with pytest.raises(UsageError, match=r"gaussian_noise at levels \[1, 2, 3\]"):
        mce(example_sweep(levels=3, operators=IMAGENET_C))
    with pytest.raises(UsageError, match="no baseline named 'resnet'"):
        mce(example_corruptions(), baseline="resnet")
