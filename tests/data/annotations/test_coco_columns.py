"""Files read as columns against the same files read annotation by annotation."""

import json

import numpy as np
import pytest

from steadyeye.core import disk_columns
from steadyeye.core.boxes import EMPTY, OOD
from steadyeye.core.errors import UsageError
from steadyeye.core.storage import json_lists
from steadyeye.data.annotations import coco_columns, coco_file
from steadyeye.data.annotations.column_images import NO_FOLDER, BoxedImage, MissingImage
from steadyeye.data.images import image_file
from steadyeye.data.sources.coco import coco

MASKS = ([[1, 1, 5, 1, 5, 5]], [[1, 1, 5, 1, 5, 6]], None)


def draw(rng, images=40):
    """A file whose annotations are in no order, some of them there two or three times."""
    annotations = []
    for number in range(200):
        x, y = rng.integers(0, 4, 2) * 10.5
        entry = {
            "id": number,
            "image_id": int(rng.integers(0, images)),
            "category_id": int(rng.choice([2, 7, 9])),
            "bbox": [x, y, (20, 20.0)[rng.integers(0, 2)], 30 + int(rng.integers(0, 2))],
            **({"iscrowd": int(rng.integers(0, 2))} if rng.random() < 0.7 else {}),
            **({"area": float(rng.integers(1, 500))} if rng.random() < 0.7 else {}),
        }
        mask = MASKS[rng.integers(0, 3)]
        annotations += [entry | ({"segmentation": mask} if mask else {})] * rng.integers(1, 3)
    rng.shuffle(annotations)
    return {
        "images": [{"id": i, "file_name": f"{i % 39}.jpg", "width": 90} for i in range(images)],
        "categories": [{"id": i, "name": name} for i, name in ((7, "cat"), (2, "ood"), (9, "dog"))],
        "annotations": annotations,
    }


@pytest.mark.parametrize("ood", [None, "ood"])
def test_columns_are_what_each_annotation_says(tmp_path, ood):
    rng = np.random.default_rng(3)
    for _ in range(10):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(draw(rng), indent=int(rng.integers(0, 2))))
        text = path.read_text()
        assert coco_columns.parse(text) is not None
        quick, plain = coco_file.read(path, ood), coco_file._from_entries(path, text, ood)
        assert (quick.classes, quick.category_ids, quick.outside, quick.notes) == (
            plain.classes,
            plain.category_ids,
            plain.outside,
            plain.notes,
        )
        assert len(quick.notes) == 2
        for image in quick.images:
            quick_boxes, plain_boxes = quick.boxes(image), plain.boxes(image)
            if quick_boxes is EMPTY:
                assert plain_boxes is EMPTY
            for name in ("boxes", "labels", "crowd", "area"):
                mine, its = getattr(quick_boxes, name), getattr(plain_boxes, name)
                assert mine.dtype == its.dtype
                assert np.array_equal(mine, its)


@pytest.mark.parametrize(
    "change",
    [
        {"bbox": [1, 2, -3, 4]},
        {"bbox": [1, 2, 3]},
        {"bbox": [1e308, 2, 1e308, 4]},
        {"category_id": 3},
        {"category_id": 2.5},
        {"image_id": 77},
        {"iscrowd": 2},
        {"area": None},
        {"area": -1},
        {"bbox": [1, 2, True, 4]},
        {"bbox": ["1", 2, 3, 4]},
        {"area": 1e40},
    ],
)
def test_both_readers_refuse_a_wrong_entry_with_the_same_message(tmp_path, change):
    content = draw(np.random.default_rng(1))
    content["annotations"][17] = content["annotations"][17] | change
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError) as plain:
        coco_file._from_entries(path, path.read_text(), None)
    with pytest.raises(UsageError) as error:
        coco_file.read(path)
    assert str(error.value) == str(plain.value)


def test_masks_beyond_any_number_are_no_traceback(tmp_path):
    """Two alike, so that their masks are compared."""
    content = draw(np.random.default_rng(2))
    content["annotations"][:2] = [content["annotations"][0] | {"segmentation": [[1, 2]]}] * 2
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content).replace("[[1, 2]]", "[[1e999, 2]]"))
    quick, plain = coco_file.read(path), coco_file._from_entries(path, path.read_text(), None)
    assert quick.notes == plain.notes


def write(path, content, rng):
    """The parts of a file in any order, with blanks or without."""
    keys = list(content)
    rng.shuffle(keys)
    text = json.dumps({key: content[key] for key in keys}, indent=(None, 0, 3)[rng.integers(0, 3)])
    path.write_text(text.replace(",", " ,\n") if rng.random() < 0.3 else text)


def assert_same_boxes(quick, plain):
    assert [len(own) for own in quick] == [len(own) for own in plain]
    for mine, its in zip(quick, plain, strict=True):
        for name in ("boxes", "labels", "crowd", "area"):
            assert getattr(mine, name).dtype == getattr(its, name).dtype
            assert getattr(mine, name).tolist() == getattr(its, name).tolist()


def test_a_file_that_is_never_held_as_a_whole_says_the_same(tmp_path, monkeypatch):
    """In blocks of a few annotations, each of which is cut at other places."""
    rng = np.random.default_rng(5)
    monkeypatch.setattr(coco_columns, "PIECE", 7)
    monkeypatch.setattr(disk_columns, "PIECE", 5)
    monkeypatch.setattr(disk_columns, "LARGE", 1)
    path = tmp_path / "a.json"
    for block in (400, 401, 533, 1000, 5000, 1 << 20):
        monkeypatch.setattr(json_lists, "BLOCK", block)
        content = draw(rng) | {"info": {"note": 'of "images": [{}] and }] {}'}}
        write(path, content, rng)
        assert coco_columns.read(path) is not None
        quick, plain = coco_file.read(path), coco_file._from_entries(path, path.read_text(), None)
        assert (quick.images, quick.notes) == (plain.images, plain.notes)
        assert_same_boxes(*(list(map(own.boxes, own.images)) for own in (quick, plain)))


ANNOTATION = {"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 2, 30, 40]}
OTHER = ANNOTATION | {"bbox": [5, 6, 70, 80]}
HEAD = '"images": [{"id": 1}], "categories": [{"id": 7, "name": "cat"}]'
ODD = {
    "within another object first": '{"info": {"annotations": [TWO]}, "annotations": [ONE], HEAD}',
    "within another object": '{HEAD, "info": {"annotations": [TWO]}, "\\u0061nnotations": [ONE]}',
    "two lists": '{"annotations": [TWO], HEAD, "annotations": [ONE]}',
    "the key in a text": '{"info": "\\"annotations\\": [{}, {}]", HEAD, "annotations": [ONE]}',
    "objects in an annotation": '{HEAD, "annotations": [OPEN, "parts": [{"a": 1}, {"b": 2}]}]}',
    "ends in a text": '{HEAD, "annotations": [OPEN, "note": "}], {}, {"}, ONE]}',
    "annotations first": '{"annotations": [ONE, TWO], HEAD}',
    "a mark at the start": '\ufeff{"annotations": [ONE, TWO], HEAD}',
    "another list of objects behind": '{"annotations": [ONE], HEAD, "more": [{"a": [{}, {}]}]}',
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
@pytest.mark.parametrize("block", [90, 1 << 20])
def test_lists_that_are_hard_to_find_say_the_same(tmp_path, monkeypatch, text, block):
    monkeypatch.setattr(json_lists, "BLOCK", block)
    first, second = json.dumps(ANNOTATION), json.dumps(OTHER)
    parts = (("OPEN", first[:-1]), ("ONE", first), ("TWO", second), ("HEAD", HEAD))
    for name, content in parts:
        text = text.replace(name, content)
    path = tmp_path / "a.json"
    path.write_text(text)
    quick = coco_file.read(path)
    plain = coco_file._from_entries(path, path.read_text().removeprefix("\ufeff"), None)
    assert_same_boxes([quick.boxes({"id": 1})], [plain.boxes({"id": 1})])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"annotations": [',
        '{"annotations": [ONE',
        '{"annotations": [ONE, ONE]',
        '{"annotations": [ONE, ONE], HEAD',
        '{"annotations": [ONE, ONE]], HEAD}',
        '{"annotations": [ONE, ONE], HEAD} {}',
        '{"annotations": [ONE, ONE]}',
        '{"annotations": [], HEAD}',
        '{"annotations": {}, HEAD}',
        "[ONE, ONE]",
    ],
)
def test_a_file_that_is_cut_or_no_object_is_read_as_a_whole(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text.replace("ONE", json.dumps(ANNOTATION)).replace("HEAD", HEAD))
    assert coco_columns.read(path) is None


@pytest.mark.parametrize("with_images", [False, True])
def test_samples_are_those_of_single_images(tmp_path, with_images):
    """Ids that are texts, sides that are not known, and images without boxes among them."""
    content = draw(np.random.default_rng(4))
    for place, image in enumerate(content["images"]):
        image.update({"id": f"{place:03d}"} if place % 2 else {})
        image.update({"height": 50} if place % 3 else {"width": None})
    content["annotations"] = [
        own | {"image_id": content["images"][own["image_id"]]["id"]}
        for own in content["annotations"]
        if own["image_id"] != 7
    ]
    path, folder = tmp_path / "a.json", tmp_path / "images"
    path.write_text(json.dumps(content))
    source = coco(str(path), images=str(folder) if with_images else None)
    whole = coco_file._from_entries(path, path.read_text(), "ood")
    images = [
        BoxedImage(
            str(image["id"]),
            folder / image["file_name"] if with_images else None,
            whole.boxes(image),
            coco_file.read_size(image),
        )
        for image in whole.images
    ]
    paths = [image.path for image in images if image.path]
    assert source.ids == [image.id for image in images]
    assert source.truths == [image.labels for image in images]
    empty = [image.id for image in images if not image.labels]
    boxes = [its for image in images for its in image.boxes.labels.tolist()]
    crowds = sum(int(image.boxes.crowd.sum()) for image in images)
    note = (
        f"40 images with {len(boxes)} boxes, {crowds} of them crowds, {boxes.count(OOD)} of "
        f"objects outside the classes; {len(empty)} images without any object of the classes, "
        f"first '{empty[0]}'"
    )
    assert source.notes == (note, *whole.notes)
    assert 0 < len(empty) < 40
    assert crowds
    assert (source.category_ids, source.columns) == (whole.category_ids, ("truth", "boxes"))
    assert source.missing() == (list(map(str, paths)) if paths else [NO_FOLDER])
    assert source.files() == list(dict.fromkeys(paths))
    assert source.file_names == [image["file_name"] for image in whole.images]
    assert len(source) == len(images) == 40
    for place in range(-1, 40):
        mine, its = source[place], images[place]
        assert (mine.id, mine.truth, mine.size) == (its.id, its.labels, its.size)
        file = its.path and image_file.ImageFile(its.path)
        assert mine.image == (file or MissingImage(its.id))
        assert (mine.key is None) == (its.path is None)
        assert (mine.masks is None) == (mine.size is None)
        assert_same_boxes([mine.boxes], [its.boxes])
