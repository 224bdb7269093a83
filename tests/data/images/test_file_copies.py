"""Images with the same content under other names."""

import shutil

import numpy as np
import pytest
from PIL import Image

from steadyeye.data.sources.image_folder import image_folder


@pytest.fixture
def images(tmp_path):
    """Five images without compression, so of one size, which end in the same bytes but for one."""
    rng = np.random.default_rng(0)
    for number in range(5):
        pixels = np.zeros((64, 64, 3), np.uint8)
        # bmp begins with the last row
        pixels[0 if number == 4 else -1] = rng.integers(0, 256, (64, 3))
        path = tmp_path / "photos" / ("cat" if number % 2 else "dog") / f"{number}.bmp"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return tmp_path / "photos"


def notes(images):
    return [note for note in image_folder(root=str(images)).notes if "same content" in note]


def test_different_images_of_one_size_are_no_copies(images):
    assert notes(images) == []


def test_copies_in_one_class_and_in_another_are_counted(images):
    """Twice the same image is no second observation, and in two classes one label is wrong."""
    shutil.copy(images / "cat" / "1.bmp", images / "cat" / "copy.bmp")
    assert notes(images) == [
        "1 of 6 images with the same content as another, first 'cat/copy.bmp' as 'cat/1.bmp'; "
        "intervals treat them as different images"
    ]
    shutil.copy(images / "cat" / "3.bmp", images / "dog" / "copy.bmp")
    assert notes(images) == [
        "2 of 7 images with the same content as another (1 in another class), first 'dog/copy.bmp' "
        "as 'cat/3.bmp'; intervals treat them as different images"
    ]
