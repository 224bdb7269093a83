"""The operators: properties of all of them, and each against an independent definition."""

from collections import Counter

import cv2
import numpy as np
import pytest
import simplejpeg
from scipy.ndimage import convolve, gaussian_filter
from scipy.stats import binomtest, chisquare, kstest, norm, poisson

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.degradation.corruptions import NORMAL, SEVERITIES, normals
from steadyeye.degradation.counter_rng import draw, level_key, stream_key, uniform
from steadyeye.degradation.kernels import box, ends, line, measure_brightness, measure_changed_share
from steadyeye.degradation.operator import LEVELS, Context
from steadyeye.runner.sweep import operators
from steadyeye.testing import check_operator

KEY = stream_key(0, "a photo", "an operator")
NEED_A_NAME = ("albumentations", "callable", "kornia", "nrtk")
BLACK_BOX = sorted({*plugins.names("operators")} - {"gradient_descent", *NEED_A_NAME})
LAST = {name: plugins.build("operators", Spec(name)).last for name in BLACK_BOX}
CORRUPTIONS = {name for name, last in LAST.items() if last == SEVERITIES}
SHAPES = [(64, 48, 3), (31, 57, 3), (40, 40), (7, 9, 3), (1, 1, 3), (1, 6, 3), (2, 2)]


def picture(shape=(64, 48, 3), seed=0):
    """Noise over a gradient: every value occurs and neighbours differ."""
    rng = np.random.default_rng(seed)
    slope = np.linspace(0, 200, shape[1]).reshape(1, -1, *(1,) * (len(shape) - 2))
    return (slope + rng.integers(0, 56, shape)).astype(np.uint8)


def trail(name, image, key=KEY, gradient=None, **parameters):
    return plugins.build("operators", Spec(name, parameters)).start(image, Context(key, gradient))


def at(name, image, level, key=KEY, **parameters):
    return trail(name, image, key, **parameters)(level)


def test_there_are_fifteen_operators_nineteen_corruptions_and_the_users_own():
    every = {operator.name for operator in operators("all", gradients=True)}
    assert len(every) == 15
    assert every | CORRUPTIONS | {"callable"} <= set(plugins.names("operators"))
    assert len(CORRUPTIONS) == 19
    assert not every & CORRUPTIONS


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", BLACK_BOX)
def test_any_size_grey_or_rgb(name, shape):
    image = picture(shape)
    before = image.copy()
    operator = trail(name, image)
    assert np.array_equal(operator(0), image)
    for level in (1, 2, LAST[name]):
        degraded = operator(level)
        assert degraded.shape == image.shape
        assert degraded.dtype == np.uint8
    assert np.array_equal(image, before), "the input was changed"


@pytest.mark.parametrize("name", BLACK_BOX)
def test_the_contract_of_operators(name):
    assert check_operator(plugins.build("operators", Spec(name)))


@pytest.mark.parametrize("name", BLACK_BOX)
def test_a_level_is_the_same_alone_and_on_the_way(name):
    image = picture()
    operator = trail(name, image)
    steps = [operator(level) for level in range(LAST[name] + 1)]
    copies = [step.copy() for step in steps]
    for level in {0, 1, min(7, LAST[name]), LAST[name]}:
        assert np.array_equal(at(name, image, level), steps[level])
    assert all(map(np.array_equal, steps, copies)), "a level changed after it was handed out"


@pytest.mark.parametrize("name", BLACK_BOX)
def test_views_that_are_not_contiguous_are_images_too(name):
    image = picture((64, 96, 3))
    view = image[:, ::2, ::-1]
    assert np.array_equal(at(name, view, 5), at(name, np.ascontiguousarray(view), 5))


@pytest.mark.parametrize("name", BLACK_BOX)
def test_only_stochastic_operators_depend_on_the_stream(name):
    other, photo = stream_key(0, "another photo", "an operator"), picture()
    same = np.array_equal(at(name, photo, 3), at(name, photo, 3, other))
    assert same == ("stochastic" not in plugins.declaration("operators", name).kind)


def test_streams_depend_on_seed_image_and_operator():
    names = [(s, i, o) for s in (0, 1) for i in ("a", "b") for o in ("jpeg", "fog")]
    keys = [stream_key(*parts) for parts in names]
    assert len(set(keys)) == len(keys)


def test_random_numbers_are_those_of_splitmix64():
    """The first outputs of SplitMix64 seeded with 1234567, as published with the generator."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(draw(np.uint64(1234567), i + 1)) for i in range(3)] == published


def test_random_places_are_uniform():
    places = uniform(KEY, 1000, 100_001)
    assert len(places) == 100_001
    assert chisquare(np.bincount(places, minlength=1000)).pvalue > 0.01


# ---------------------------------------------------------------- deterministic: exact


def half_up(values):
    return np.floor(values + 0.5).astype(np.uint8)


def every_colour():
    """Every pair of a value and a largest channel, and their mixes, as one image."""
    value, channel = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    image = np.stack([value, np.minimum(channel, value), (value + channel) // 2], axis=-1)
    return image.astype(np.uint8)


@pytest.mark.parametrize(("name", "factor"), [("fade_black", 0.9), ("fade_white", 1.1)])
def test_fades_are_a_float_state_rounded_once(name, factor):
    image = every_colour()
    operator, state = trail(name, image), image.astype(np.float64)
    for level in range(1, LEVELS + 1):
        state = np.minimum(state * factor, 255)
        assert np.array_equal(operator(level), half_up(state)), level


def test_fade_grey_scales_the_saturation_alone():
    image = every_colour()
    operator = trail("fade_grey", image)
    value = image.max(axis=-1, keepdims=True).astype(np.float64)
    below = value - image
    for level in range(1, LEVELS + 1):
        below = below * 0.9
        assert np.array_equal(operator(level), half_up(value - below)), level


def test_fade_grey_keeps_hue_and_value_in_opencv_s_colour_space():
    image = picture((40, 40, 3))
    before = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2HSV)
    after = cv2.cvtColor(at("fade_grey", image, 5).astype(np.float32) / 255, cv2.COLOR_RGB2HSV)
    coloured = (before[..., 1] > 0.2) & (before[..., 2] > 0.2)
    assert np.abs(after[..., 2] - before[..., 2]).max() < 1e-6
    assert np.abs(after[..., 1] - before[..., 1] * 0.9**5)[coloured].max() < 0.02
    turn = np.abs(after[..., 0] - before[..., 0])[coloured]
    assert np.median(np.minimum(turn, 360 - turn)) < 2


def test_posterize_is_bins_of_the_original():
    image = every_colour()
    operator = trail("posterize", image)
    for level in range(1, LEVELS + 1):
        bins = 32 - level
        bin_numbers = np.minimum(image.astype(np.int64) * bins // 255, bins - 1)
        expected = (2 * (bin_numbers + 1) * 255 + bins) // (2 * bins)  # (i + 1) 255 / b, ½ upwards
        assert np.array_equal(operator(level), expected), level
        assert len(np.unique(expected)) <= bins


@pytest.mark.parametrize("shape", [(64, 48, 3), (33, 47, 3), (40, 40), (3, 3, 3)], ids=str)
def test_global_blur_is_the_rounded_mean_of_five_by_five(shape):
    state = picture(shape)
    operator = trail("global_blur", state)
    pad = ((2, 2), (2, 2)) + ((0, 0),) * (state.ndim - 2)
    for level in range(1, 8):
        wide = np.pad(state.astype(np.int64), pad, mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(wide, (5, 5), axis=(0, 1))
        state = ((windows.sum(axis=(-1, -2)) + 12) // 25).astype(np.uint8)
        assert np.array_equal(operator(level), state), level


def test_jpeg_is_the_codec_at_32_minus_level():
    image = picture()
    for level in (1, 15, 30):
        data = simplejpeg.encode_jpeg(image, 32 - level, "RGB", "420")
        assert np.array_equal(at("jpeg", image, level), simplejpeg.decode_jpeg(data, "RGB"))


def test_jpeg_differs_from_cv2_in_its_encoder_s_transform_alone():
    """Below quality 96 TurboJPEG takes a coarser DCT; from 96 on, and in decoding, they agree."""
    image = picture()

    def apart(quality):
        turbo_jpeg = simplejpeg.encode_jpeg(image, quality, "RGB", "420")
        how = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, 0x221111]
        _, cv2_jpeg = cv2.imencode(".jpg", image[..., ::-1], how)
        decoded = simplejpeg.decode_jpeg(turbo_jpeg, "RGB")
        assert np.array_equal(
            decoded, cv2.imdecode(np.frombuffer(turbo_jpeg, np.uint8), 1)[..., ::-1]
        )
        other = cv2.imdecode(cv2_jpeg, 1)[..., ::-1]
        return int(np.abs(decoded.astype(int) - other).max())

    assert apart(96) == 0
    assert apart(31) > 0


# ---------------------------------------------------------------- stochastic: distributions


def keys(count):
    return [stream_key(0, f"image {i}", "test") for i in range(count)]


def test_line_ends_are_uniform_on_their_edges():
    height, width = 20, 30
    line_ends = np.array([ends(key, height, width) for key in keys(20_000)])
    x0, y0, x1, y1 = line_ends.T
    assert ((x0 == 0) | (y0 == 0)).all()
    assert ((x1 == width - 1) | (y1 == height - 1)).all()
    first = np.where(x0 > 0, height + x0, y0)
    last = np.where(y1 < height - 1, y1, height + x1)
    # the pixel of the corner belongs to both edges and is drawn twice as often
    for places, corner in ((first, 0), (last, height + width - 1)):
        counts = np.bincount(places, minlength=height + width).astype(float)
        counts = np.delete(counts, [corner, height if corner == 0 else height - 1])
        assert chisquare(counts).pvalue > 0.01


@pytest.mark.parametrize("ink", [0, 255])
def test_a_line_is_one_pixel_wide_and_joins_its_ends(ink):
    for key in keys(200):
        image = np.full((40, 60, 3), 255 - ink, dtype=np.uint8)
        image = line(image, key, ink)
        x0, y0, x1, y1 = ends(key, 40, 60)
        cover = np.abs(image[..., 0].astype(float) - (255 - ink)) / 255
        assert cover[y0, x0] == 1
        assert cover[y1, x1] == pytest.approx(1, abs=0.01)
        # along its longer axis every step of an antialiased line has one pixel of ink
        axis = 1 if abs(y1 - y0) >= abs(x1 - x0) else 0
        steps = cover.sum(axis=axis)
        line_steps = steps[steps > 0]
        assert len(line_steps) == max(abs(x1 - x0), abs(y1 - y0)) + 1
        assert line_steps == pytest.approx(1, abs=0.02)


def test_boxes_have_uniform_sides_and_places_and_lie_inside():
    boxes = np.array([box(KEY, i, (50, 40), (2, 5)) for i in range(40_000)])
    y0, y1, x0, x1 = boxes.T
    assert y0.min() == 0
    assert (y1 <= 50).all()
    assert (x1 <= 40).all()
    for sides in (y1 - y0, x1 - x0):
        assert set(sides) == {2, 3, 4, 5}
        assert chisquare(np.bincount(sides)[2:]).pvalue > 0.01
    three = y0[y1 - y0 == 3]
    assert chisquare(np.bincount(three, minlength=48)).pvalue > 0.01


def test_random_boxes_are_a_tenth_of_height_plus_width():
    image = np.full((500, 400, 3), 255, dtype=np.uint8)
    black = (at("random_boxes", image, 1) == 0).all(axis=-1)
    boxes = cv2.connectedComponents(black.astype(np.uint8))[0] - 1
    assert 85 <= boxes <= 90  # 90 boxes, a few of which touch
    assert black.sum() == pytest.approx(90 * 3.5**2, rel=0.1)


def test_local_blur_replaces_boxes_by_their_means_one_after_the_other():
    image = picture((30, 20, 3))
    expected = image.astype(np.int64)
    level = level_key(KEY, 1)
    for i in range(50):
        y0, y1, x0, x1 = box(level, i, (30, 20), (2, 10))
        part = expected[y0:y1, x0:x1].reshape(-1, 3)
        part = (2 * part.sum(axis=0) + len(part)) // (2 * len(part))
        expected[y0:y1, x0:x1] = part
    assert np.array_equal(at("local_blur", image, 1), expected)


def test_noise_colours_are_uniform_and_their_number_is_a_fiftieth():
    image = np.zeros((500, 500, 3), dtype=np.uint8)
    noisy = at("random_noise", image, 30)
    expected = 1 - (1 - 1 / 250_000) ** (30 * 5_000)
    assert measure_changed_share(noisy, image) == pytest.approx(expected, rel=0.01)
    colours = noisy[noisy.any(axis=-1)]
    for channel in colours.T:
        assert chisquare(np.bincount(channel, minlength=256)).pvalue > 0.01
    pairs = np.histogram2d(colours[:, 0], colours[:, 1], bins=16)[0]
    assert chisquare(pairs.ravel()).pvalue > 0.01


@pytest.mark.parametrize("name", ["random_swap", "adjacent_swap"])
def test_swaps_conserve_every_pixel(name):
    image = picture((60, 50, 3))
    operator = trail(name, image)
    before = Counter(map(bytes, image.reshape(-1, 3)))
    for level in range(1, LEVELS + 1):
        assert Counter(map(bytes, operator(level).reshape(-1, 3))) == before


def number_pixels(height, width):
    """An image whose pixels are all different: their number in base 256."""
    number = np.arange(height * width).reshape(height, width)
    return np.stack([number // 65536, number // 256 % 256, number % 256], -1).astype(np.uint8)


def numbers(image):
    return image.astype(np.int64) @ np.array([65536, 256, 1])


def test_a_twentieth_of_the_pixels_is_swapped_a_level():
    image = number_pixels(200, 200)
    moved = measure_changed_share(at("random_swap", image, 1), image)
    # a pixel stays if none of the 2 × 2,000 places drawn is its own
    assert moved == pytest.approx(1 - (1 - 1 / 40_000) ** 4_000, rel=0.03)


def test_adjacent_swaps_go_to_all_eight_neighbours_alike():
    directions = Counter()
    for key in keys(300):
        image = number_pixels(21, 21)
        after = numbers(at("adjacent_swap", image, 1, key))
        for y, x in np.argwhere(after != numbers(image)):
            v, u = divmod(int(after[y, x]), 21)
            if 3 <= y <= 17 and 3 <= x <= 17:  # where all eight neighbours are inside
                directions[v - y, u - x] += 1
    near = {d: n for d, n in directions.items() if max(map(abs, d)) == 1}
    assert len(near) == 8
    assert sum(near.values()) > 0.9 * sum(directions.values())  # a few pixels are moved twice
    assert chisquare(list(near.values())).pvalue > 0.01


def test_fog_brightens_a_pixel_as_often_as_it_is_drawn():
    image = np.zeros((200, 200, 3), dtype=np.uint8)
    fogged = at("white_fog", image, 1)
    assert (fogged % 20 == 0).all()
    assert (fogged == fogged[..., :1]).all()
    hits = fogged[..., 0] // 20
    assert hits.sum() == 200 * 200 // 5, "every draw adds once, repeats included"
    mean = 0.2
    poisson = np.exp(-mean) * np.array([1, mean, mean**2 / 2])
    counts = np.bincount(hits.ravel(), minlength=4)
    expected = 40_000 * np.append(poisson, 1 - poisson.sum())
    assert chisquare([*counts[:3], counts[3:].sum()], expected).pvalue > 0.01


def test_white_fog_saturates_at_255():
    bright = np.full((50, 50, 3), 250, dtype=np.uint8)
    assert set(np.unique(at("white_fog", bright, 30))) <= {250, 255}


# ---------------------------------------------------------------- gradient, callables, errors


def test_gradient_descent_steps_against_the_sign():
    image = np.full((8, 8, 3), 100, dtype=np.uint8)
    slope = np.ones((8, 8, 3), dtype=np.float32)
    slope[:, :4] = -1
    slope[0] = 0
    degraded = trail("gradient_descent", image, gradient=lambda _: slope, step=2.0)(3)
    assert (degraded[1:, :4] == 106).all()
    assert (degraded[1:, 4:] == 94).all()
    assert (degraded[0] == 100).all()


def test_gradient_descent_l2_moves_by_its_step_in_the_root_mean_square():
    image = np.full((16, 16, 3), 100, dtype=np.uint8)
    slope = np.random.default_rng(0).normal(size=image.shape).astype(np.float32) * 1e-3
    operator = trail("gradient_descent", image, gradient=lambda _: slope, step=8.0, norm="l2")
    moved = operator(1).astype(float) - 100
    assert np.sqrt((moved**2).mean()) == pytest.approx(8, rel=0.02)


def darker(image, level):
    return image - np.minimum(image, 10 * level)


def noisy(image, severity=1, scale=1.0):
    return {"image": image + np.random.normal(size=image.shape) * severity * scale}


def test_a_callable_is_an_operator():
    image = picture()
    assert np.array_equal(at("callable", image, 3, path="test_degrade:darker"), darker(image, 3))


def test_a_callable_is_seeded_by_image_and_level():
    image, other = picture(), stream_key(0, "another", "noisy")
    options = {"path": "test_degrade:noisy", "level": "severity", "arguments": {"scale": 5.0}}
    once = trail("callable", image, **options)(2)
    assert once.dtype == np.uint8
    assert np.array_equal(once, trail("callable", image, **options)(2))
    assert not np.array_equal(once, trail("callable", image, other, **options)(2))
    assert not np.array_equal(once, image)


class Darker:
    """A transform as those of albumentations: built with its parameters, called with `image=`."""

    def __init__(self, by, times=1):
        self.by, self.times = by, times

    def set_random_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, *, image):
        shift = self.rng.integers(0, 5)
        return {"image": image - np.minimum(image, self.by * self.times + shift).astype(np.uint8)}


def test_a_transform_is_an_operator_with_values_in_place_of_levels():
    image = picture()
    options = {"path": "test_degrade:Darker", "level": "by", "values": [20, 60]}
    operator = trail("callable", image, **options, arguments={"times": 2})
    assert operator(1).mean() > operator(2).mean()
    assert np.array_equal(
        operator(2), trail("callable", image, **options, arguments={"times": 2})(2)
    )
    with pytest.raises(UsageError, match="has levels 0 to 2, not 3"):
        operator(3)


def crop_image(image, level):
    return image[level:]


@pytest.mark.parametrize(
    ("name", "parameters", "level", "message"),
    [
        ("callable", {"path": "test_degrade:crop_image"}, 1, "returns shape"),
        ("callable", {"path": "test_degrade:KEY"}, 1, "not a function"),
        ("callable", {"path": "test_degrade:Darker"}, 1, "name the argument that is its level"),
        ("callable", {"path": "test_degrade:darker", "levels": 0}, 1, "at least one level"),
        ("callable", {"path": "test_degrade:darker"}, 6, "has levels 0 to 5, not 6"),
        ("jpeg", {}, 31, "has levels 0 to 30, not 31"),
        ("jpeg", {}, -1, "has levels 0 to 30, not -1"),
        ("gradient_descent", {"step": -1.0}, 1, "give a step above 0"),
        ("gradient_descent", {"norm": "l1"}, 1, "l1"),
        ("jpg", {}, 1, "did you mean 'jpeg'"),
    ],
)
def test_invalid_arguments_of_operators_are_refused(name, parameters, level, message):
    with pytest.raises(UsageError, match=message):
        at(name, picture(), level, **parameters)


def test_images_of_another_kind_are_refused():
    with pytest.raises(UsageError, match="uint8"):
        at("jpeg", picture().astype(np.float32), 1)


# ---------------------------------------------------------------- measures


@pytest.mark.parametrize("shape", [(30, 20, 3), (30, 20), (30, 20, 4)], ids=str)
def test_changed_and_brightness_are_what_numpy_says(shape):
    image, other = picture(shape), picture(shape)
    other[3:9, 4:11] ^= 1
    if len(shape) == 3:
        other[20:25, 5, 1] ^= 255
    differ = (image != other).reshape(30 * 20, -1).any(axis=1).mean()
    assert measure_changed_share(other, image) == differ
    assert measure_brightness(image) == image.mean()


# ---------------------------------------------------------------- the corruptions of ImageNet-C
# Stated as the release states them, on values in 0…1. Hendrycks and Dietterich 2019.


def whole(values):
    """Values in 0…1 as grey values; the release cuts where we round."""
    return half_up(np.clip(values, 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
def test_contrast_is_the_distance_from_the_mean_of_each_channel(severity):
    values = picture() / 255
    means = values.mean(axis=(0, 1))
    factor = [0.4, 0.3, 0.2, 0.1, 0.05][severity - 1]
    assert np.array_equal(
        at("contrast", picture(), severity), whole(means + (values - means) * factor)
    )


@pytest.mark.parametrize("severity", range(1, 6))
def test_brightness_is_the_hsv_value_alone(severity):
    image = every_colour()
    pixels = at("brightness", image, severity)
    hsv = cv2.cvtColor((image / 255).astype(np.float32), cv2.COLOR_RGB2HSV)
    hsv[..., 2] = np.minimum(hsv[..., 2] + [0.1, 0.2, 0.3, 0.4, 0.5][severity - 1], 1)
    expected = 255 * cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    assert np.abs(pixels - expected).max() < 0.502


@pytest.mark.parametrize(("severity", "sigma"), list(enumerate((1, 2, 3, 4, 6), start=1)))
def test_gaussian_blur_is_scipys(severity, sigma):
    image = picture()
    values = image.astype(np.float64)
    expected = gaussian_filter(values, (sigma, sigma, 0), mode="nearest", truncate=4)
    pixels = at("gaussian_blur", image, severity)
    assert np.abs(pixels - expected).max() < 0.501


@pytest.mark.parametrize("severity", range(1, 6))
def test_defocus_blur_of_a_point_is_the_disk(severity):
    radius, softness = [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)][severity - 1]
    extent = max(radius, 8)
    y, x = np.mgrid[-extent : extent + 1, -extent : extent + 1]
    disk = (x**2 + y**2 <= radius**2) / np.sum(x**2 + y**2 <= radius**2)
    side = 3 if radius <= 8 else 5
    bell = np.exp(-((np.arange(side) - side // 2) ** 2) / (2 * softness**2))
    soft = convolve(disk, np.outer(bell, bell) / bell.sum() ** 2, mode="mirror")
    # a field of 20 × 20 white pixels, far from the edges: the sum of 400 disks
    image = np.zeros((80, 80, 1), dtype=np.uint8)
    image[30:50, 30:50] = 255
    expected = np.clip(convolve(image[..., 0].astype(np.float64), soft, mode="mirror"), 0, 255)
    assert np.abs(at("defocus_blur", image, severity)[..., 0] - expected).max() < 0.501


def test_normals_are_normal_and_the_same_at_all_severities():
    samples = normals(KEY, 200_001, NORMAL)
    assert kstest(samples, norm.cdf).pvalue > 0.01
    grey = np.full((100, 100, 3), 128, dtype=np.uint8)
    for severity, deviation in enumerate((0.08, 0.12, 0.18, 0.26, 0.38), start=1):
        noise = normals(KEY, grey.size, NORMAL).reshape(grey.shape)
        expected = whole(128 / 255 + deviation * noise.astype(np.float64))
        apart = np.abs(at("gaussian_noise", grey, severity).astype(int) - expected)
        assert apart.max() <= 1
        assert (apart > 0).mean() < 0.001


@pytest.mark.parametrize(("severity", "photons"), list(enumerate((60, 25, 12, 5, 3), start=1)))
@pytest.mark.parametrize("value", [0, 1, 100, 255])
def test_shot_noise_is_a_poisson_count(severity, photons, value):
    image = np.full((120, 120, 3), value, dtype=np.uint8)
    pixels = at("shot_noise", image, severity)
    counts = np.arange(200)
    grey = whole(counts / photons)
    share = np.bincount(grey, poisson.pmf(counts, value / 255 * photons), 256) * image.size
    histogram = np.bincount(pixels.ravel(), minlength=256)
    assert not histogram[share == 0].any()
    # values expected too seldom for the test are counted together
    often = share > 5
    histogram = np.append(histogram[often], histogram[~often].sum())
    share = np.append(share[often], share[~often].sum())
    if share[-1] < 1e-6:
        assert histogram[-1] == 0
        histogram, share = histogram[:-1], share[:-1]
    if len(share) > 1:
        assert chisquare(histogram, share * histogram.sum() / share.sum()).pvalue > 0.001
    else:
        assert histogram[0] == image.size


@pytest.mark.parametrize(
    ("severity", "share"), list(enumerate((0.03, 0.06, 0.09, 0.17, 0.27), start=1))
)
def test_impulse_noise_turns_values_to_black_or_white(severity, share):
    grey = np.full((200, 200, 3), 128, dtype=np.uint8)
    pixels = at("impulse_noise", grey, severity)
    black, white = int((pixels == 0).sum()), int((pixels == 255).sum())
    assert black + white == (pixels != 128).sum()
    assert binomtest(black + white, grey.size, share).pvalue > 0.001
    assert binomtest(black, black + white, 0.5).pvalue > 0.001
    # channels on their own
    turned = (pixels != 128).reshape(-1, 3)
    assert binomtest(int(turned.all(axis=1).sum()), len(turned), share**3).pvalue > 0.001
    if severity > 1:
        before = at("impulse_noise", grey, severity - 1)
        assert np.array_equal(pixels[before != 128], before[before != 128])
