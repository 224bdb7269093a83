"""Augmentation by operators that move objects: true boxes move with them."""

import numpy as np
import pytest

from steadyeye.core.boxes import boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.training.augmentation import augmentation
from steadyeye.training.batches import ImageCache, Lesson, read_training_batches
from steadyeye.training.protocol import Example, Examples

FLIP = "albumentations(name='HorizontalFlip', levels=1)"
SHIFT = "albumentations(name='Affine', arguments={'translate_px': {'x': [-20, 20], 'y': [-9, 9]}})"


def draw_rectangle(number):
    """A white rectangle of its own on black, and its corners."""
    rng = np.random.default_rng(number)
    x0, y0 = rng.integers(0, 30), rng.integers(0, 20)
    x1, y1 = x0 + rng.integers(4, 10), y0 + rng.integers(4, 8)
    image = np.zeros((32, 48, 3), np.uint8)
    image[y0:y1, x0:x1] = 255
    return image, [x0, y0, x1, y1]


def find_rectangle(image):
    """The corners of what is white, from the pixels alone; None where nothing is."""
    rows, columns = np.nonzero(image[..., 0] > 127)
    if not len(rows):
        return None
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


class BoxTask:
    """A task whose network is given the image and the boxes as they came."""

    def fit(self, image):
        return image

    def prepare(self, example, image):
        return image, example.boxes


def read_epochs(text, n=20, epochs=3):
    """(image, boxes) of each example in each epoch, as a detector would be given them."""
    pictures = [draw_rectangle(i) for i in range(n)]
    items = [
        Example(f"{i}", f"{i}", lambda image=image: image, (0,), boxes([corners], [0]))
        for i, (image, corners) in enumerate(pictures)
    ]
    side = Examples("toy", Classes(("white",)), tuple(items), "")
    operators = augmentation(text)
    operators.check_boxes()
    lesson = Lesson(BoxTask(), side, side, operators, 2, operators.move_boxes)
    steps = [(epoch, epoch, range(n)) for epoch in range(epochs)]
    batches = read_training_batches(lesson, ImageCache(lesson.task.fit), steps, n)
    return [row for _, batch in batches for row in batch], [corners for _, corners in pictures]


@pytest.mark.parametrize(
    "text", [FLIP, SHIFT, f"{FLIP}, plain", f"{FLIP}, {SHIFT}, jpeg(levels=1)"]
)
def test_boxes_are_where_the_pixels_are(text):
    rows, before = read_epochs(text)
    moved = 0
    for number, (image, truth) in enumerate(rows):
        corners = find_rectangle(image)
        if corners is None:
            assert truth.crowd.all(), "what is no longer in the image is ignored"
            continue
        assert np.abs(truth.boxes[~truth.crowd] - corners).max(initial=0) <= 1, (number, corners)
        moved += corners != before[number % len(before)]
    assert moved > 10


def test_operators_that_move_nothing_keep_the_boxes():
    rows, before = read_epochs("jpeg(levels=1:5), gaussian_noise", epochs=1)
    assert [truth.boxes.tolist() for _, truth in rows] == [[corners] for corners in before]


def test_boxes_of_another_draw_are_not_taken():
    """Half of the images of a mixture are plain; the boxes follow the same draw as the image."""
    rows, before = read_epochs(f"{FLIP}, plain(share=0.5)")
    flipped = [truth.boxes[0].tolist() != before[i % 20] for i, (_, truth) in enumerate(rows)]
    assert 15 < sum(flipped) < 45


@pytest.mark.parametrize(
    "text",
    [
        "kornia(name='RandomHorizontalFlip')",
        f"kornia(name='RandomRotation', arguments={{'degrees': 30}}), {FLIP}",
    ],
)
def test_operators_that_do_not_say_where_are_refused(text):
    with pytest.raises(
        UsageError, match="without returning their new places, so it does not go with true boxes"
    ):
        augmentation(text).check_boxes()
