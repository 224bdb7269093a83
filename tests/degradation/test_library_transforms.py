"""Transforms of Albumentations, Kornia and NRTK by spec: the same output as the libraries."""

import cv2
import numpy as np
import pytest

from steadyeye import testing
from steadyeye.api import evaluate
from steadyeye.core import plugins
from steadyeye.core.boxes import boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import Context, move_boxes

KEY = stream_key(0, "image", "operator")
BLUR = {"level": "blur_limit", "values": [[3, 3], [9, 9], [15, 15]]}


def picture(channels=3):
    return np.random.default_rng(0).integers(0, 256, (48, 64, channels)).astype(np.uint8)


def build(kind, **parameters):
    return plugins.load("operators", kind)(**parameters)


def degrade(operator, image, level=1, key=KEY):
    return operator.start(image, Context(key))(level)


SEEDED = [
    "albumentations(name='RandomRain')",
    "albumentations(name='GaussNoise')",
    "albumentations(name='Rotate')",
    "kornia(name='RandomGaussianNoise')",
    "kornia(name='RandomAffine', arguments={'degrees': 30})",
    "nrtk(name='RandomTranslationPerturber')",
]


@pytest.mark.parametrize("text", SEEDED)
def test_an_image_and_level_always_gets_the_same_and_another_another(text):
    operator, image = plugins.build("operators", parse(text)), picture()
    assert testing.check_operator(operator)
    before = image.copy()
    once = degrade(operator, image)
    np.random.seed(3)
    assert np.array_equal(once, degrade(plugins.build("operators", parse(text)), image))
    assert not np.array_equal(once, degrade(operator, image, key=stream_key(0, "b", "operator")))
    assert (once.shape, once.dtype) == (image.shape, np.uint8)
    assert np.array_equal(image, before), "the input was changed"
    assert degrade(operator, image, 0) is image


def test_albumentations_makes_what_it_makes_by_itself():
    import albumentations

    operator, image = build("albumentations", name="MotionBlur", **BLUR), picture()
    assert (operator.name, operator.last) == ("albumentations.MotionBlur", 3)
    for level, (size, _) in enumerate(BLUR["values"], start=1):
        alone = albumentations.MotionBlur(blur_limit=(size, size), p=1)
        alone.set_random_seed((int(KEY) + level) % 2**32)
        assert np.array_equal(degrade(operator, image, level), alone(image=image)["image"])


@pytest.mark.parametrize(
    ("kind", "name"), [("albumentations", "HorizontalFlip"), ("kornia", "RandomHorizontalFlip")]
)
def test_the_chance_of_a_transform_may_be_its_level(kind, name):
    """It was refused as given twice, where it was given once."""
    operator, image = build(kind, name=name, level="p", values=[0.0, 1.0]), picture()
    assert np.array_equal(degrade(operator, image, 1), image)
    assert np.array_equal(degrade(operator, image, 2), image[:, ::-1])


def test_kornia_makes_what_it_makes_by_itself():
    import kornia
    import torch

    spec = {"name": "RandomGaussianNoise", "level": "std", "values": [0.02, 0.1]}
    operator, image = build("kornia", **spec), picture()
    state = torch.random.get_rng_state()
    for level, std in enumerate(spec["values"], start=1):
        pixels = degrade(operator, image, level)
        assert torch.equal(torch.random.get_rng_state(), state), "torch's own generator moved"
        with torch.random.fork_rng():
            torch.manual_seed((int(KEY) + level) % 2**32)
            values = torch.from_numpy(image).permute(2, 0, 1)[None] / 255
            noisy = kornia.augmentation.RandomGaussianNoise(std=std, p=1.0)(values)[0]
        expected = np.rint(noisy.clamp(0, 1).permute(1, 2, 0).numpy() * 255)
        assert np.array_equal(pixels, expected)


def test_nrtk_makes_what_it_makes_by_itself():
    from nrtk.impls.perturb_image.environment import HazePerturber
    from nrtk.impls.perturb_image.photometric.blur import AverageBlurPerturber

    image = picture()
    blur = build("nrtk", name="AverageBlurPerturber", level="ksize", values=[3, 7])
    for level, size in enumerate((3, 7), start=1):
        expected, _ = AverageBlurPerturber(ksize=size)(image=image)
        assert np.array_equal(degrade(blur, image, level), expected)
    expected, _ = HazePerturber()(image=image)
    assert np.array_equal(degrade(build("nrtk", name="HazePerturber"), image), expected)


def test_a_grey_image_stays_one():
    image = picture(1)
    pixels = degrade(build("albumentations", name="RandomRain"), image)
    assert (pixels.shape, pixels.dtype) == (image.shape, np.uint8)
    assert not np.array_equal(pixels, image)


def find_box(image):
    """The tight box of what is bright."""
    rows, columns = np.nonzero(image[..., 0] > 128)
    return np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])


def test_what_leaves_the_image_but_for_the_rounding_of_a_library_is_ignored():
    shift = {"translate_px": {"x": [-17, -17], "y": [-8, -8]}}
    operator = build("albumentations", name="Affine", arguments=shift)
    before = boxes([[0, 17, 17, 60], [0, 17, 18, 60]], [0, 0])
    moved = move_boxes(operator, before, 1, (120, 160), KEY)
    assert moved.crowd.tolist() == [True, False]
    assert moved.boxes.round(3).tolist() == [[0, 0, 0, 0], [0, 9, 1, 52]]


@pytest.mark.parametrize(
    "text",
    [
        "albumentations(name='HorizontalFlip')",
        "albumentations(name='Rotate', arguments={'limit': [90, 90]})",
        "albumentations(name='Affine', arguments={'translate_percent': 0.2})",
        "albumentations(name='Affine', arguments={'scale': [0.5, 0.5]})",
        "albumentations(name='Perspective')",
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_true_boxes_go_where_the_object_goes(text, seed):
    """The box of a bright rectangle, against the pixels of the picture that comes out."""
    image = np.zeros((120, 160, 3), dtype=np.uint8)
    image[50:70, 60:90] = 255
    operator, key = plugins.build("operators", parse(text)), stream_key(seed, "image", "operator")
    pixels = degrade(operator, image, key=key)
    before = np.array([[60.0, 50, 90, 70], [500.0, 500, 600, 600]])
    moved = operator.move(before.copy(), 1, image.shape[:2], key)
    assert np.abs(moved[0] - find_box(pixels)).max() <= 2
    assert (moved[1] == 0).all(), "what was outside is nowhere"
    if "Flip" not in text:
        assert not np.array_equal(moved[0], before[0])


def test_boxes_that_leave_the_image_have_no_area():
    shift = {"translate_px": {"x": [100, 100], "y": [0, 0]}}
    operator = build("albumentations", name="Affine", arguments=shift)
    moved = operator.move(np.array([[10.0, 10, 20, 20], [80.0, 10, 90, 20]]), 1, (64, 128), KEY)
    assert np.allclose(moved, [[110, 10, 120, 20], [0, 0, 0, 0]], atol=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "albumentations(name='RandomGridShuffle')",  # gave the box of one piece of an object
        "kornia(name='RandomAffine', arguments={'degrees': 30})",
        "nrtk(name='RandomTranslationPerturber')",
        "nrtk(name='RadialDistortionPerturber', arguments={'k': [0.2, 0, 0]})",
    ],
)
def test_transforms_that_move_objects_are_refused_with_true_boxes(text):
    operator = plugins.build("operators", parse(text))
    with pytest.raises(UsageError, match="does not go with true boxes"):
        operator.move(np.zeros((1, 4)), 1, (10, 10), KEY)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("albumentations(name='RandomRian')", "did you mean 'RandomRain'"),
        ("albumentations(name='DualTransform')", "no transform of Albumentations named"),
        ("albumentations(name='RandomRain', arguments={'slant': 3})", "did you mean 'slant_range'"),
        ("albumentations(name='Blur', level='blur_limit')", "give the argument that is the level"),
        ("albumentations(name='Blur', values=[3])", "give the argument that is the level"),
        ("albumentations(name='Blur', level='blur_limit', values=[])", "values is empty"),
        ("albumentations(name='Blur', level='p', values=[1], arguments={'p': 1})", "give it once"),
        ("albumentations(name='Blur', arguments={'blur_limit': 'a'})", "Blur fails: ValueError"),
        ("kornia(name='RandomMotionBlur')", "missing 3 required positional arguments"),
        ("kornia(name='RandomMotionBlurr')", "did you mean 'RandomMotionBlur'"),
        ("nrtk(name='Haze')", "no perturber of NRTK named 'Haze'"),
        ("nrtk(name='HazePerturber', arguments={'depth': 3})", "named 'depth'; known: factor"),
        ("nrtk(name='GaussianNoisePerturber')", "requires the `skimage` extra"),
    ],
)
def test_invalid_transforms_are_refused_in_one_line(text, why):
    with pytest.raises(UsageError, match=why) as caught:
        plugins.build("operators", parse(text))
    assert "\n" not in str(caught.value)


def test_a_transform_of_another_size_is_refused():
    crop = build("albumentations", name="RandomCrop", arguments={"height": 20, "width": 20})
    with pytest.raises(UsageError, match=r"from \(48, 64, 3\) to \(20, 20, 3\)"):
        degrade(crop, picture())


def test_a_sweep_over_transforms_of_libraries(tmp_path):
    """Bright and dark pictures; a blur leaves them so, an inversion turns every answer."""
    for name, level in (("dark", 40), ("light", 200)):
        (tmp_path / name).mkdir()
        for i in range(6):
            cv2.imwrite(str(tmp_path / name / f"{i}.png"), picture() // 8 + np.uint8(level))

    def classify(images):
        light = images.mean(axis=(1, 2, 3)) / 255
        return np.stack([1 - light, light], axis=1)

    run = evaluate(
        classify,
        f"image_folder(root='{tmp_path}')",
        operators="albumentations(name='InvertImg'), nrtk(name='AverageBlurPerturber', "
        "level='ksize', values=[3, 5])",
    )
    cells = {cell.name: cell for cell in run.degraded_accuracy().cells}
    assert [level.value for level in cells["albumentations.InvertImg"].cells] == [1, 0]
    assert [level.value for level in cells["nrtk.AverageBlurPerturber"].cells] == [1, 1, 1]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("numpy:true_divide", 255.0, "'numpy:true_divide' returns float64 in 0…1, which would be"),
        ("numpy:greater", 100, "'numpy:greater' returns bool in 0…1, which would be black"),
        ("numpy:divide", 0.0, "'numpy:divide' returns NaN or infinity; return grey values 0…255"),
        ("numpy:matmul", 2, "'numpy:matmul' fails: ValueError: matmul: "),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_that_returns_no_grey_values_is_refused(path, value, message):
    """Libraries that have images in 0…1 would make black ones without a word."""
    with pytest.raises(UsageError, match=message):
        testing.degrade_example(build("callable", path=path, values=[value]), level=1)


def test_floats_and_black_images_of_a_function_count_as_grey_values():
    black = testing.degrade_example(build("callable", path="numpy:multiply", values=[0.0]), level=1)
    assert black.endswith("→ 0")
    half = testing.degrade_example(build("callable", path="numpy:multiply", values=[0.5]), level=1)
    assert half.endswith("127 → 64")
