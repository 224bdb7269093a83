"""Detections in another format than expected: they are written in it here, from its definition."""

import json

import cv2
import numpy as np
import pytest
from forked import steadyeye

import steadyeye as se
from steadyeye.core.boxes import BoxTable, areas, from_sides
from steadyeye.core.format import percent
from steadyeye.predictions.box_format import describe_mismatch

IMAGES = 30
EXPECTED = "boxes are x0 y0 x1 y1 in pixels of the image"


def make(seed=0, per_image=6, classes=5, same=False):
    """Sizes (height, width) of images, and rows of true boxes in them: image, class, corners."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(300, 900, (IMAGES, 2)) if not same else np.full((IMAGES, 2), 640)
    image = np.repeat(np.arange(IMAGES), per_image)
    height, width = sizes[image].T
    low = rng.uniform(0, 0.6, (len(image), 2)) * np.stack([width, height], 1)
    side = rng.uniform(0.1, 0.4, (len(image), 2)) * np.stack([width, height], 1)
    return sizes, image, rng.integers(0, classes, len(image)), np.concatenate([low, low + side], 1)


def table(image, label, corners, crowd=None):
    n = len(image)
    crowd = np.zeros(n, np.bool_) if crowd is None else crowd
    return BoxTable(image, label, corners, np.ones(n), crowd, areas(corners))


def resize(kind, side):
    """Corners in pixels of an image → those in an input of `side` × `side`."""

    def of(corners, height, width):
        scale = side / np.maximum(height, width)
        if kind == "stretched":
            return corners * np.stack([side / width, side / height] * 2, 1)
        scaled = corners * scale[:, None]
        if kind == "upper left":
            return scaled
        pad = np.stack([(side - width * scale) / 2, (side - height * scale) / 2] * 2, 1)
        return scaled + pad

    return of


def shares_read_as_pixels(kind, side):
    """Shares of an input of `side` × `side`, which a decoder took for its pixels."""

    def of(corners, height, width):
        in_input = resize(kind, side)
        at_zero, at_one = (
            in_input(np.full_like(corners, value), height, width) for value in (0.0, 1.0)
        )
        return (in_input(corners, height, width) / side - at_zero) / (at_one - at_zero)

    return of


def centres(corners):
    side = corners[:, 2:] - corners[:, :2]
    return np.concatenate([corners[:, :2] + side / 2, side], 1)


def sides(corners):
    return np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)


def shares(corners, height, width):
    return corners / np.stack([width, height] * 2, 1)


FORMATS = {
    "x0 y0 x1 y1 where x y width height": lambda b, h, w: from_sides(b),
    "x y width height where x0 y0 x1 y1": lambda b, h, w: sides(b),
    "centres with width and height where x y": lambda b, h, w: from_sides(centres(b)),
    "centres with width and height where x0 y0": lambda b, h, w: centres(b),
    "in the order y, x": lambda b, h, w: b[:, [1, 0, 3, 2]],
    "shares of the image's sides": shares,
    "x y width height where x0 y0 x1 y1 was expected, shares": lambda b, h, w: sides(
        shares(b, h, w)
    ),
    "in the order y, x, shares": lambda b, h, w: shares(b, h, w)[:, [1, 0, 3, 2]],
    "centres with width and height where x0 y0 x1 y1 was expected, shares": lambda b, h, w: centres(
        shares(b, h, w)
    ),
    "percent of the image's sides": lambda b, h, w: 100 * shares(b, h, w),
    "at 2 times its size": lambda b, h, w: b * 2,
    "at 0.5 times its size": lambda b, h, w: b / 2,
    "320 × 320, to which the image was stretched": resize("stretched", 320),
    "640 × 640 with the image in its middle": resize("middle", 640),
    "1024 × 1024 with the image in its upper left": resize("upper left", 1024),
    "shares of an input of 416 × 416, read as its pixels: ": (
        shares_read_as_pixels("stretched", 416)
    ),
    "shares of an input of 320 × 320, read as its pixels: ": (
        shares_read_as_pixels("upper left", 320)
    ),
    "shares of an input of 640 × 640, read as its pixels, with the image in its middle": (
        shares_read_as_pixels("middle", 640)
    ),
    "centres with width and height where x0 y0 x1 y1 was expected, in pixels of an input of 416": (
        lambda b, h, w: centres(resize("middle", 416)(b, h, w))
    ),
}


@pytest.mark.parametrize("words", FORMATS)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_each_format_is_named(words, noise):
    """Also where a fifth of the objects is not detected, and others are that are not there."""
    sizes, image, label, corners = make()
    height, width = sizes[image].T
    rng = np.random.default_rng(1)
    moved = corners + noise * rng.standard_normal(corners.shape) * 100
    detected = rng.random(len(image)) < 0.8
    wrong = rng.random(len(image)) < 0.5
    written = FORMATS[words](moved, height, width)
    detections = table(
        image[detected], np.where(wrong, label + 1, label)[detected], written[detected]
    )
    both = np.concatenate([written[detected], written[detected]])
    order = np.argsort(np.concatenate([image[detected]] * 2), kind="stable")
    labels = np.concatenate([label[detected], detections.label])
    detections = table(np.concatenate([image[detected]] * 2)[order], labels[order], both[order])
    sentence = describe_mismatch(table(image, label, corners), detections, sizes)
    assert sentence.startswith("the boxes seem to be ")
    assert words in sentence
    assert f"of {len(image)} objects are found at IoU 0.5" in sentence
    assert EXPECTED in sentence


@pytest.mark.parametrize(("whole", "words"), [(1, "shares"), (100, "percent")])
def test_true_boxes_in_parts_of_the_image_are_named(whole, words):
    """As in labels of tools that store shares or percent; the detections are in pixels."""
    sizes, image, label, corners = make()
    height, width = sizes[image].T
    truth = table(image, label, whole * shares(corners, height, width))
    detected = np.arange(len(image)) % 5 != 0
    detections = table(image[detected], label[detected], corners[detected])
    sentence = describe_mismatch(truth, detections, sizes)
    assert sentence.startswith(f"the true boxes seem to be {words} of the image's sides: read")
    assert f"{percent(0.8)} of 180 objects" in sentence
    assert describe_mismatch(truth, detections, np.zeros_like(sizes)) == ""


def test_the_shares_are_those_of_the_definition():
    sizes, image, label, corners = make()
    detected = np.arange(len(image)) % 5 != 0
    written = from_sides(corners)
    truth, detections = (
        table(image, label, corners),
        table(image[detected], label[detected], written[detected]),
    )
    hits = [
        any(
            label[j] == label[i] and image[j] == image[i] and overlap(corners[i], written[j]) >= 0.5
            for j in np.flatnonzero(detected)
        )
        for i in range(len(image))
    ]
    right = [
        any(
            label[j] == label[i] and image[j] == image[i] and overlap(corners[i], corners[j]) >= 0.5
            for j in np.flatnonzero(detected)
        )
        for i in range(len(image))
    ]
    sentence = describe_mismatch(truth, detections, sizes)
    assert f"read that way, {percent(np.mean(right))} of 180 objects" in sentence
    assert f"instead of {percent(np.mean(hits))}" in sentence


def overlap(box, other):
    """Intersection over union of two boxes."""
    wide = min(box[2], other[2]) - max(box[0], other[0])
    high = min(box[3], other[3]) - max(box[1], other[1])
    shared = max(wide, 0) * max(high, 0)
    size = [(b[2] - b[0]) * (b[3] - b[1]) for b in (box, other)]
    return shared / (sum(size) - shared)


@pytest.mark.parametrize(
    ("recall", "seed"),
    [*((recall, 0) for recall in (0.05, 0.1, 0.3, 0.45, 0.8, 1.0)), (0.1, 2), (0.3, 4), (0.8, 1)],
)
def test_a_detector_that_finds_little_is_not_warned_of(recall, seed):
    """With hundreds of weak boxes anywhere in every image, as of a detector without a threshold."""
    sizes, image, label, corners = make(seed, classes=1 + seed)
    rng = np.random.default_rng(seed)
    detected = rng.random(len(image)) < recall
    weak = np.repeat(np.arange(IMAGES), 300)
    height, width = sizes[weak].T
    scale = np.stack([width, height], 1)
    low = rng.uniform(0, 0.9, (len(weak), 2))
    high = low + rng.uniform(0.02, 0.6, low.shape)
    boxes = np.concatenate([corners[detected], np.concatenate([low * scale, high * scale], 1)])
    images = np.concatenate([image[detected], weak])
    labels = np.concatenate([label[detected], rng.integers(0, 1 + seed, len(weak))])
    order = np.argsort(images, kind="stable")
    detections = table(images[order], labels[order], boxes[order])
    assert describe_mismatch(table(image, label, corners), detections, sizes) == ""


def test_nothing_is_said_of_few_objects_other_classes_or_none():
    sizes, image, label, corners = make()
    truth, wrong = table(image, label, corners), from_sides(corners)
    few = image < 3
    assert describe_mismatch(truth, table(image, label + 9, wrong), sizes) == ""
    assert (
        describe_mismatch(
            table(image[few], label[few], corners[few]), table(image, label, wrong), sizes
        )
        == ""
    )
    crowd = table(image, label, corners, np.ones(len(image), np.bool_))
    assert describe_mismatch(crowd, table(image, label, wrong), sizes) == ""
    none = table(image[:0], label[:0], corners[:0])
    assert describe_mismatch(none, none, sizes) == describe_mismatch(truth, none, sizes) == ""
    assert describe_mismatch(None, table(image, label, wrong), sizes) == ""


def test_where_sizes_are_unknown_the_order_still_tells():
    sizes, image, label, corners = make()
    truth, unknown = table(image, label, corners), np.zeros_like(sizes)
    sentence = describe_mismatch(truth, table(image, label, from_sides(corners)), unknown)
    assert "x0 y0 x1 y1 where x y width height" in sentence
    height, width = sizes[image].T
    written = resize("middle", 640)(corners, height, width)
    assert "640" not in describe_mismatch(truth, table(image, label, written), unknown)


def test_shares_are_noticed_without_true_boxes():
    sizes, image, label, corners = make()
    height, width = sizes[image].T
    sentence = describe_mismatch(None, table(image, label, shares(corners, height, width)), sizes)
    assert sentence.startswith("no detection of 180 reaches beyond 1 × 1 pixel")
    assert EXPECTED in sentence


@pytest.mark.parametrize("kind", ["stretched", "upper left", "middle"])
def test_shares_of_the_input_are_noticed_without_true_boxes(kind):
    """Read as pixels of the input they reach further than one pixel of a larger image."""
    sizes, image, label, corners = make()
    height, width = sizes[image].T
    written = shares_read_as_pixels(kind, 416)(corners, height, width)
    assert written.max() > 1
    sentence = describe_mismatch(None, table(image, label, written), sizes)
    assert "of 180 reaches beyond" in sentence
    assert EXPECTED in sentence


def find_bright(images):
    """The bright rectangle of each image in pixels of an input of 320 × 320, as a person."""
    answers = []
    for image in images:
        rows, columns = (image[..., 0] > 128).nonzero()
        box = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1], np.float64)
        height, width = image.shape[:2]
        stretched = box * 320 / [width, height, width, height]
        answers.append(([stretched.tolist()], [0.9], [0]))
    return answers


@pytest.mark.slow
def test_a_report_begins_with_it(tmp_path):
    """Of a detector whose boxes are in pixels of its input, and of a saved file of corners."""
    rng = np.random.default_rng(0)
    images, annotations, saved = [], [], []
    for number in range(25):
        width, height = rng.integers(400, 700, 2).tolist()
        x, y = rng.integers(0, 200, 2).tolist()
        w, h = rng.integers(50, 150, 2).tolist()
        pixels = np.zeros((height, width, 3), np.uint8)
        pixels[y : y + h, x : x + w] = 255
        cv2.imwrite(str(tmp_path / f"{number}.png"), pixels)
        images.append(
            {"id": number, "file_name": f"{number}.png", "width": width, "height": height}
        )
        annotations.append(
            {"id": number, "image_id": number, "category_id": 1, "bbox": [x, y, w, h]}
        )
        corners = [x, y, x + w, y + h]
        saved.append({"image_id": number, "category_id": 1, "bbox": corners, "score": 0.5})
    saved.append({"image_id": 0, "category_id": 1, "bbox": [300, 300, 9, 9], "score": 0.1})
    categories = [{"id": 1, "name": "person"}]
    content = {"images": images, "categories": categories, "annotations": annotations}
    (tmp_path / "truth.json").write_text(json.dumps(content))
    (tmp_path / "saved.json").write_text(json.dumps(saved))
    data = f"coco(annotations='{tmp_path / 'truth.json'}', images='{tmp_path}')"
    model = "callable_detector(path='test_box_format:find_bright')"
    run = se.evaluate(model, data, out=tmp_path / "run")
    assert "320 × 320, to which the image was stretched" in run.predictions.warning
    html = run.report(tmp_path / "report.html").read_text()
    assert f"{percent(1.0)} of 25 objects" in html
    out = ["--out", str(tmp_path / "scored"), "--quiet"]
    done = steadyeye("score", str(tmp_path / "saved.json"), "--data", data, *out, check=True)
    (headline,) = [line for line in done.stdout.splitlines() if " has an " in line]
    assert "The boxes seem to be x0 y0 x1 y1 where x y width height was expected" in headline
