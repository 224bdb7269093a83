import cv2
import numpy as np
import pytest
from PIL import Image as Pillow

import steadyeye as se
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.data.images import image_file
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.preprocessing.resample import resample

FILTERS = {
    "box": Pillow.Resampling.BOX,
    "bilinear": Pillow.Resampling.BILINEAR,
    "hamming": Pillow.Resampling.HAMMING,
    "bicubic": Pillow.Resampling.BICUBIC,
    "lanczos": Pillow.Resampling.LANCZOS,
}
SIZES = [(480, 854), (720, 1280), (360, 270), (100, 90), (224, 224), (31, 300), (256, 256)]


def by_pillow(image, size, resized, interpolation):
    height, width = resized
    whole = Pillow.fromarray(image).resize((width, height), FILTERS[interpolation])
    top, left = round((height - size[0]) / 2), round((width - size[1]) / 2)
    return np.asarray(whole)[top : top + size[0], left : left + size[1]]


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_resize_and_crop_equal_pillow_to_the_bit(interpolation, height, width):
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    before = image.copy()
    recipe = Preprocessing((224, 224), 256, (0, 0, 0), (1, 1, 1), interpolation)
    out = np.empty((3, 224, 224), dtype=np.float32)
    recipe(image, out)
    short = min(height, width)
    resized = (int(256 * height / short), int(256 * width / short))
    expected = by_pillow(image, (224, 224), resized, interpolation)
    np.testing.assert_array_equal(out, expected.transpose(2, 0, 1))
    np.testing.assert_array_equal(image, before)


def test_images_that_may_be_written_and_others_are_resized_by_one_function():
    """It is compiled for each kind of array, which takes seconds."""
    image = np.random.default_rng(2).integers(0, 256, (90, 70, 3), dtype=np.uint8)
    fixed = image.copy()
    fixed.flags.writeable = False
    recipe = Preprocessing((32, 32), 40, (0, 0, 0), (1, 1, 1))
    np.testing.assert_array_equal(recipe.fit(image), recipe.fit(fixed))
    assert image.flags.writeable
    assert len(resample.signatures) == 1


def test_exact_resize_and_normalisation():
    image = np.random.default_rng(1).integers(0, 256, (77, 130, 3), dtype=np.uint8)
    recipe = Preprocessing((64, 80), (64, 80), (127, 120, 110), (128, 60, 50), "bilinear")
    out = np.empty((3, 64, 80), dtype=np.float32)
    recipe(image, out)
    expected = by_pillow(image, (64, 80), (64, 80), "bilinear").astype(np.float64)
    expected = (expected - recipe.mean) / recipe.std
    np.testing.assert_allclose(out, expected.transpose(2, 0, 1), atol=1e-5)


def test_crop_larger_than_the_resized_image_is_refused():
    with pytest.raises(UsageError, match="resize at least as large"):
        Preprocessing((224, 224), 200, (0, 0, 0), (1, 1, 1))


def test_unknown_interpolation_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'bicubic'"):
        Preprocessing((224, 224), 224, (0, 0, 0), (1, 1, 1), "bicubik")


def test_jpeg_and_png_decode_to_rgb(tmp_path):
    image = np.zeros((40, 60, 3), dtype=np.uint8)
    image[..., 0] = 200
    for suffix in ("png", "jpg", "bmp"):
        Pillow.fromarray(image).save(tmp_path / f"a.{suffix}", quality=95)
        pixels = image_file.read(tmp_path / f"a.{suffix}")
        assert pixels.shape == image.shape
        assert abs(pixels.astype(int) - image).max() <= 4


def test_grey_jpeg_is_read_as_rgb(tmp_path):
    Pillow.new("L", (32, 16), 77).save(tmp_path / "grey.jpg")
    assert image_file.read(tmp_path / "grey.jpg").shape == (16, 32, 3)


def test_a_file_that_is_no_image_is_named(tmp_path):
    whole = tmp_path / "whole.jpg"
    Pillow.fromarray(np.random.default_rng(0).integers(0, 256, (99, 99, 3), np.uint8)).save(whole)
    (tmp_path / "cut.jpg").write_bytes(whole.read_bytes()[:2000])
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.png").write_text("no image")
    for name in ("cut.jpg", "empty.png", "text.png", "absent.jpg"):
        with pytest.raises(SampleError, match=name):
            image_file.read(tmp_path / name)


def test_thumbnail_keeps_the_aspect():
    data = image_file.thumbnail(np.zeros((720, 1280, 3), dtype=np.uint8))
    assert image_file.decode(data, "thumbnail").shape == (270, 480, 3)


@pytest.mark.parametrize("suffix", ["png", "webp", "tiff", "big.tiff", "avif"])
def test_opacity_is_left_out_as_by_pillow(suffix, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 4), dtype=np.uint8)
    path = tmp_path / f"a.{suffix}"
    options = {"webp": {"lossless": True, "exact": True}, "big.tiff": {"big_tiff": True}}
    Pillow.fromarray(pixels).save(path, **options.get(suffix, {}))
    expected = np.asarray(Pillow.open(path).convert("RGB"))
    np.testing.assert_array_equal(image_file.read(path), expected)


PIXELS = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8)


def write_mixture(folder):
    """Eight pictures that can be read, and four that cannot."""
    folder.mkdir()
    whole = Pillow.fromarray(PIXELS)
    for mode, name in [("L", "grey.png"), ("CMYK", "four.tif"), ("P", "palette.png")]:
        whole.convert(mode).save(folder / name)
    whole.convert("CMYK").save(folder / "four.jpg")
    whole.convert("1").save(folder / "bits.png")
    whole.convert("LA").save(folder / "opaque.png")
    turned = Pillow.Exif()
    turned[0x0112] = 6
    whole.save(folder / "turned.jpg", exif=turned)
    cv2.imwrite(str(folder / "sixteen.png"), PIXELS[..., ::-1].astype(np.uint16) * 257)
    for name in ("four.jpg", "grey.png"):
        content = (folder / name).read_bytes()
        (folder / f"cut-{name}").write_bytes(content[: len(content) // 2])
    (folder / "empty.jpg").touch()
    Pillow.fromarray(PIXELS[..., 0].astype(np.float32)).save(folder / "float.tif")


def test_a_mixture_of_pictures_is_read_as_by_pillow_and_the_rest_is_counted(tmp_path):
    write_mixture(tmp_path / "set")
    for path in (tmp_path / "set").glob("*.*"):
        if path.name.startswith(("cut-", "empty", "float", "sixteen")):
            continue
        # Pillow decodes JPEG with another rounding of the colours
        away = np.abs(image_file.read(path) - np.asarray(Pillow.open(path).convert("RGB"), int))
        assert away.max() <= (1 if path.suffix == ".jpg" else 0), path.name
    np.testing.assert_array_equal(image_file.read(tmp_path / "set" / "sixteen.png"), PIXELS)

    def see_dark(images):
        return np.tile([0.9, 0.1], (len(images), 1))

    data = [(path, int(path.suffix == ".jpg")) for path in sorted((tmp_path / "set").iterdir())]
    run = se.evaluate(see_dark, data, classes=["dark", "light"], on_error="skip")
    accuracy = run.accuracy()
    assert (len(run.predictions), accuracy.n, accuracy.value) == (12, 8, 6 / 8)
    report = run.report(tmp_path / "report.md").read_text()
    assert "4 of 12 samples" in report


def test_a_tiff_of_32_bits_is_said_to_be_one(tmp_path):
    write_mixture(tmp_path / "set")
    with pytest.raises(SampleError, match=r"float.tif': .*or has values of 32 bits; convert it"):
        image_file.read(tmp_path / "set" / "float.tif")
