"""Boxes in data of Python, with the real packages: the numbers are those of the same COCO file."""

import json

import maite.protocols.object_detection as od
import numpy as np
import pytest
import torch
from PIL import Image

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.data.python_boxes import read_boxes

NAMES = ["cat", "dog"]
TRUTH = [
    ([[2, 2, 12, 12], [15, 4, 25, 20]], [0, 1]),
    ([[4, 4, 20, 20]], [1]),
    ([], []),
    ([[1, 1, 9, 9], [10, 10, 22, 22]], [0, 0]),
    ([[0, 0, 16, 16]], [0]),
]


def draw():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (24, 28 + n, 3), np.uint8) for n in range(len(TRUTH))]


def answer(image):
    """Boxes of an image, known by its width: the first a little off, the class of one wrong."""
    number = image.shape[1] - 28
    corners, labels = TRUTH[number]
    corners = np.array(corners, float).reshape(-1, 4)
    corners += np.array([0, 0, number / 2, 1])
    labels = np.array(labels, int)
    if number == 3:
        labels = 1 - labels
    return corners, np.linspace(0.9, 0.6, len(labels)), labels


def detect(images):
    return [answer(image) for image in images]


detect.fingerprint = "detect"


class Target:
    def __init__(self, boxes, labels, scores):
        self.boxes, self.labels, self.scores = boxes, labels, scores


class MaiteData:
    metadata = {"id": "set", "index2label": dict(enumerate(NAMES))}  # noqa: RUF012

    def __len__(self):
        return len(TRUTH)

    def __getitem__(self, index):
        corners, labels = TRUTH[index]
        target = Target(np.array(corners).reshape(-1, 4), np.array(labels), np.ones(len(labels)))
        return draw()[index].transpose(2, 0, 1), target, {"id": index}


class MaiteDetector:
    """As MAITE allows, a row of scores over the classes for each box."""

    metadata = {"id": "detector", "index2label": dict(enumerate(NAMES))}  # noqa: RUF012

    def __call__(self, batch):
        rows = [answer(np.moveaxis(image, 0, -1)) for image in batch]
        return [Target(torch.tensor(b), torch.tensor(i), torch.tensor(s)) for b, s, i in rows]


def torchmetrics_rows(images):
    rows = [answer(image) for image in images]
    parts = ("boxes", "scores", "labels")
    return [dict(zip(parts, map(torch.tensor, row), strict=True)) for row in rows]


def as_torchvision():
    return [
        (torch.from_numpy(image).permute(2, 0, 1),
         {"boxes": torch.tensor(corners, dtype=torch.float).reshape(-1, 4),
          "labels": torch.tensor(labels, dtype=torch.long)})
        for image, (corners, labels) in zip(draw(), TRUTH, strict=True)
    ]  # fmt: skip


def hugging_face():
    import datasets

    sides = [[[x, y, r - x, b - y] for x, y, r, b in corners] for corners, _ in TRUTH]
    objects = [
        {"bbox": boxes, "category": labels} for boxes, (_, labels) in zip(sides, TRUTH, strict=True)
    ]
    kinds = {
        "bbox": datasets.List(datasets.List(datasets.Value("float32"), length=4)),
        "category": datasets.List(datasets.ClassLabel(names=NAMES)),
    }
    features = datasets.Features({"image": datasets.Image(), "objects": kinds})
    rows = {"image": [Image.fromarray(image) for image in draw()], "objects": objects}
    return datasets.Dataset.from_dict(rows, features=features)


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """The numbers by the road of files: COCO's JSON, and the function as a named detector."""
    root = tmp_path_factory.mktemp("boxes")
    images, annotations = [], []
    for number, (image, (corners, labels)) in enumerate(zip(draw(), TRUTH, strict=True)):
        Image.fromarray(image).save(root / f"{number}.png")
        height, width = image.shape[:2]
        file = {"id": number, "file_name": f"{number}.png", "height": height, "width": width}
        images.append(file)
        for (x, y, r, b), label in zip(corners, labels, strict=True):
            annotations.append({
                "id": len(annotations) + 1, "image_id": number, "category_id": label + 1,
                "bbox": [x, y, r - x, b - y], "area": (r - x) * (b - y), "iscrowd": 0,
            })  # fmt: skip
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(NAMES)]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (root / "coco.json").write_text(json.dumps(content))
    (root / "classes.txt").write_text("\n".join(NAMES))
    spec = f"callable_detector(path='test_python_boxes:detect', classes='{root}/classes.txt')"
    run = se.evaluate(spec, f"coco(annotations='{root}/coco.json', images='{root}')")
    return numbers(run)


def numbers(run):
    return [run.map().value, run.map(iou="coco").value, run.mar().value, run.accuracy().value]


DATA = {"torchvision": as_torchvision, "Hugging Face": hugging_face, "MAITE": MaiteData}
MODELS = {"tuples": detect, "torchmetrics": torchmetrics_rows, "MAITE": MaiteDetector()}


@pytest.mark.parametrize(
    ("data", "model"),
    [("torchvision", "torchmetrics"), ("Hugging Face", "tuples"), ("MAITE", "MAITE")],
)
def test_the_numbers_are_those_of_the_same_file(data, model, native, monkeypatch):
    if data == "MAITE":
        assert isinstance(MaiteData(), od.Dataset)
        assert isinstance(MODELS["MAITE"], od.Model)
    run = se.evaluate(MODELS[model], DATA[data](), classes=NAMES)
    assert numbers(run) == pytest.approx(native, abs=1e-9)
    assert 0 < native[0] < 1


class Mirror:
    """An augmentation of MAITE that flips images and boxes."""

    metadata = {"id": "mirror"}  # noqa: RUF012

    def __call__(self, batch):
        images, targets, metadata = batch
        flipped = []
        for image, target in zip(images, targets, strict=True):
            width, boxes = image.shape[2], np.array(target.boxes, float).reshape(-1, 4)
            boxes[:, [0, 2]] = width - boxes[:, [2, 0]]
            flipped.append(Target(boxes, target.labels, target.scores))
        return [image[..., ::-1] for image in images], flipped, metadata


def flipped_detect(images):
    return [(np.column_stack([i.shape[1] - b[:, 2], b[:, 1], i.shape[1] - b[:, 0], b[:, 3]]), s, n)
            for i, (b, s, n) in ((image, answer(image)) for image in images)]  # fmt: skip


def test_an_augmentation_changes_images_and_boxes_alike(native):
    assert isinstance(Mirror(), od.Augmentation)
    run = se.evaluate(flipped_detect, MaiteData(), classes=NAMES, augmentation=Mirror())
    assert numbers(run) == pytest.approx(native, abs=1e-9)
    plain = se.evaluate(detect, MaiteData(), augmentation=Mirror(), classes=NAMES)
    assert plain.map().value < native[0]
    with pytest.raises(UsageError, match=r"goes with data of Python.*give operators"):
        se.evaluate(detect, "coco(annotations='a.json')", augmentation=Mirror())


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ({"boxes": [[0, 0, 1, 1]]}, "they have no labels"),
        ({"boxes": [[0, 0, 1, 1]], "labels": [1, 2]}, "1 boxes and 2 of"),
        ({"boxes": [[5, 0, 1, 1]], "labels": [1]}, "ends before it begins"),
        ({"boxes": [[0, 0, np.nan, 1]], "labels": [1]}, "at no number"),
        ({"boxes": [[0, 0, 1, 1]], "labels": [0.5]}, "neither a number nor a name"),
        ({"boxes": np.ones((4, 2)), "labels": [0, 1]}, r"the shape \(4, 2\), and not \(n, 4\)"),
        ([{"bbox": [0, 0, 1, 1], "category_id": 7}], r"evaluate coco\(annotations"),
    ],
)
def test_boxes_that_cannot_be_meant_are_one_line_with_an_example(label, words):
    with pytest.raises(UsageError, match=words) as error:
        read_boxes(label, "items/00000000")
    assert "give {'boxes':" in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_and_boxes_do_not_mix():
    data = [*as_torchvision()[:1], (draw()[1], "cat")]
    with pytest.raises(UsageError, match="has no boxes and others do"):
        se.evaluate(detect, data, classes=NAMES)


CORNERS = [[10, 20, 30, 60], [5, 5, 9, 8]]
SIDES = [[10, 20, 20, 40], [5, 5, 4, 3]]
CENTRES = [[20, 40, 20, 40], [7, 6.5, 4, 3]]


@pytest.mark.parametrize(
    ("form", "values"), [("XYXY", CORNERS), ("XYWH", SIDES), ("CXCYWH", CENTRES)]
)
def test_boxes_of_torchvision_are_read_in_their_format(torchvision, form, values):
    from torchvision.tv_tensors import BoundingBoxes

    boxes = BoundingBoxes(
        torch.tensor(values, dtype=torch.float32), format=form, canvas_size=(99, 99)
    )
    for keys in (("boxes", "labels"), ("bbox", "category")):
        row = read_boxes(dict(zip(keys, (boxes, torch.tensor([0, 1])), strict=True)), "one")
        np.testing.assert_array_equal(row.corners, CORNERS)


@pytest.mark.parametrize("pack", [list, np.array, torch.tensor])
def test_objects_of_hugging_face_are_read_as_lists_arrays_and_tensors(pack):
    label = {"bbox": pack(SIDES), "category": pack([1, 0]), "area": pack([700, 10])}
    row = read_boxes(label, "one")
    np.testing.assert_array_equal(row.corners, CORNERS)
    assert row.labels == (1, 0)
    assert row.area.tolist() == [700, 10]


class Supervised:
    """`Detections` of supervision: numbers of the detector's own classes, and their names."""

    xyxy = np.array(CORNERS, float)
    class_id = np.array([0, 1])
    confidence = np.array([0.9, 0.8])
    data = {"class_name": np.array(["dog", "cat"])}  # noqa: RUF012


def test_the_names_of_supervision_go_before_its_numbers():
    """A detector of 80 classes numbers them in its own way, whatever the classes of the data."""
    assert read_boxes(Supervised(), "one").labels == ("dog", "cat")
    data = [(ONE, {"boxes": CORNERS, "labels": [1, 0]})]
    run = se.evaluate(lambda images: [Supervised() for _ in images], data, classes=NAMES)
    assert run.map().value == 1


ONE = np.zeros((99, 99, 3), np.uint8)
OBJECTS = [(ONE, {"boxes": CORNERS, "labels": [0, 1]})]


def detect_as(row):
    return lambda images: [row for _ in images]


@pytest.mark.parametrize("row", [
    (CORNERS, [0.9, 0.8], ["cat", "dog"]),
    [CORNERS, [0.9, 0.8], [0, 1]],
    (np.array(CORNERS), np.array([0.9, 0.8]), np.array([0.0, 1.0])),
    {"boxes": torch.tensor(CORNERS).bfloat16(), "scores": torch.ones(2).bfloat16(),
     "labels": torch.tensor([0.0, 1.0])},
    # as a network returns them while it is trained
    (list(torch.tensor(CORNERS, dtype=torch.float32, requires_grad=True)),
     list(torch.tensor([0.9, 0.8], requires_grad=True)), list(torch.tensor([0, 1]))),
])  # fmt: skip
def test_a_row_of_boxes_is_read_in_all_its_forms(row):
    assert se.evaluate(detect_as(row), OBJECTS, classes=NAMES).map().value == 1


@pytest.mark.parametrize("row", [([], [], []), [torch.zeros(0)] * 3, (np.zeros((0, 4)), [], [])])
def test_an_empty_first_row_is_boxes(row):
    assert se.evaluate(detect_as(row), OBJECTS, classes=NAMES).map().value == 0


@pytest.mark.parametrize(("row", "words"), [
    # labels before scores, as torchvision orders them
    ((CORNERS, [0.9, 0.8], [0.6, 0.7]), "the label 0.6 is neither a number nor a name"),
    ((np.ones((4, 2)), [0.9, 0.8], [0, 1]), r"the shape \(4, 2\)"),
    ((CORNERS, [0.9, 0.8], ["cat", "cow"]), r"class 'cow', which is not one of its classes; give"),
])  # fmt: skip
def test_a_row_that_means_something_else_is_refused(row, words):
    with pytest.raises(UsageError, match=words):
        se.evaluate(detect_as(row), OBJECTS, classes=NAMES)


@pytest.mark.parametrize("box", [[30, 20, 10, 60], [np.nan, 20, 30, 60]])
def test_an_image_with_impossible_boxes_can_be_skipped_in_every_form(box):
    """Of mappings too: they were refused for the whole run, whatever `on_error` said."""
    good = {"boxes": CORNERS, "scores": [0.9, 0.8], "labels": [0, 1]}

    def detect_one(images):
        return [good if image[0, 0, 0] == 0 else good | {"boxes": [box, box]} for image in images]

    data = [*OBJECTS, (ONE + 1, OBJECTS[0][1])]
    with pytest.raises(UsageError, match="skip such samples"):
        se.evaluate(detect_one, data, classes=NAMES)
    run = se.evaluate(detect_one, data, classes=NAMES, on_error="skip")
    assert [bool(error) for error in run.predictions.errors] == [False, True]


def test_shares_of_the_sides_are_no_pixels():
    shares = (np.array(CORNERS) / 99).tolist()
    with pytest.raises(
        UsageError, match=r"the data: all boxes lie within 1 × 1 pixel.*give pixels"
    ):
        se.evaluate(detect_as(()), [(ONE, {"boxes": shares, "labels": [0, 1]})], classes=NAMES)
    run = se.evaluate(detect_as((shares, [0.9, 0.8], [0, 1])), OBJECTS, classes=NAMES)
    assert "no detection of 2 reaches beyond 1 × 1 pixel" in " ".join(run.predictions.notes)


def test_a_function_that_detects_is_asked_of_footage_without_labels(tmp_path):
    """Ten frames with a square that is not found in two of them."""
    folder = tmp_path / "clip"
    folder.mkdir()
    for number in range(10):
        pixels = np.zeros((40, 60, 3), np.uint8)
        pixels[10:30, 10 + number : 30 + number] = 0 if number in (4, 5) else 255
        Image.fromarray(pixels).save(folder / f"{number:03}.png")

    def find_square(images):
        places = [np.argwhere(image[..., 0] > 128) for image in images]
        sides = [(p.min(axis=0)[::-1], p.max(axis=0)[::-1] + 1) if len(p) else () for p in places]
        return [([np.concatenate(s)], [0.9], [0]) if s else ([], [], []) for s in sides]

    run = se.evaluate(find_square, f"every_frame(path='{folder}', fps=10)", classes=["square"])
    assert (run.blink_rate().value, run.blink_rate().n) == (0.2, 10)
    with pytest.raises(UsageError, match=r"not an array of numbers.*callable_detector"):
        se.evaluate(find_square, [(np.array(Image.open(folder / "000.png")), "square")])
