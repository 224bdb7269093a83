"""Open Images' files as a source: columns in blocks, verified classes, bad input, a real run."""

import csv
import gzip
import json
from collections import defaultdict

import cv2
import numpy as np
import pytest

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.spec import parse
from steadyeye.data.classes import openimages
from steadyeye.data.images import image_file
from steadyeye.data.open_images import annotation_files, csv_blocks
from steadyeye.predictions.read import cells, read
from steadyeye.runner import saved_detections, validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run
from steadyeye.testing import check_source

MID = {name: mid for mid, name in openimages.released_names().items()}
NAMES = ("Person", "Man", "Animal", "Mammal", "Carnivore", "Cat", "Dog", "Bird", "Owl")
NAMES = (*NAMES, "Human head")
HEADER = (
    "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,"
    "IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
)
LABELS_HEADER = "ImageID,Source,LabelName,Confidence"
TREE = {
    "LabelName": "/m/0bl9f",
    "Subcategory": [
        {
            "LabelName": MID["Person"],
            "Subcategory": [{"LabelName": MID["Man"]}],
            "Part": [{"LabelName": MID["Human head"]}],
        },
        {"LabelName": MID["Bird"], "Subcategory": [{"LabelName": MID["Owl"]}]},
    ],
}


def row(image, name, *sides, group=0, depiction=0):
    corners = ",".join(map(str, sides))
    return f"{image},xclick,{MID.get(name, name)},1,{corners},0,0,{group},{depiction},0"


BOXES = (
    row("0b", "Cat", 0.25, 0.75, 0.5, 1),
    row("0b", "Man", 0, 0.5, 0, 1, group=1),
    row("00000000000000a1", "Dog", 0.125, 0.25, 0, 0.5, depiction=1),
    row("0b", "Owl", 0.1, 0.2, 0.3, 0.4, group=-1),
)
LABELS = ("0b,verification,{Bird},0", "c3,verification,{Animal},0", "c3,verification,{Man},1")


@pytest.fixture
def folder(tmp_path):
    """Three images of 40 × 60 pixels, one in a folder below; boxes, labels, descriptions."""
    (tmp_path / "images" / "train_0").mkdir(parents=True)
    for name in ("0b", "train_0/00000000000000a1", "c3"):
        picture = np.full((40, 60, 3), 90, np.uint8)
        cv2.imwrite(str(tmp_path / "images" / f"{name}.jpg"), picture)
    write(tmp_path / "val-annotations-bbox.csv", HEADER, *BOXES)
    labels = [line.format(**MID) for line in LABELS]
    write(tmp_path / "labels.csv", LABELS_HEADER, *labels)
    write(tmp_path / "classes.csv", *(f"{MID[name]},{name}" for name in NAMES))
    return tmp_path


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")


def build_source(folder, **options):
    settings = {
        "boxes": str(folder / "val-annotations-bbox.csv"),
        "images": str(folder / "images"),
        "classes": str(folder / "classes.csv"),
        "labels": str(folder / "labels.csv"),
        **options,
    }
    text = ", ".join(f"{key}={value!r}" for key, value in settings.items() if value is not None)
    return plugins.build("sources", parse(f"open_images({text})"))


def read_verified(source, id_):
    sample = source[list(source.ids).index(id_)]
    return {source.classes.names[label] for label in sample.verified}


# --- what a sample holds


def test_boxes_are_in_pixels_of_the_image_and_in_the_order_of_the_file(folder):
    source = build_source(folder)
    assert list(source.ids) == ["0b", "00000000000000a1", "c3"]
    first = source[0]
    assert first.size == (40, 60)
    assert first.image().shape == (40, 60, 3)
    assert first.boxes.boxes.tolist()[:2] == [[15, 20, 45, 40], [0, 0, 30, 40]]
    assert first.boxes.labels.tolist() == [NAMES.index(name) for name in ("Cat", "Man", "Owl")]
    assert first.boxes.crowd.tolist() == [False, True, False], "a group is a crowd"
    assert first.boxes.area.tolist()[0] == 600
    assert first.truth == (NAMES.index("Cat"), NAMES.index("Owl"))
    assert list(source.truths) == [source[i].truth for i in range(3)]
    assert source[1].boxes.boxes.tolist() == [[7.5, 0, 15, 20]]
    assert len(source[2].boxes) == 0
    assert source[-1].id == "c3"
    assert (source.missing(), source.name, len(source)) == ([], "val", 3)


def test_notes_count_what_a_reader_must_know(folder):
    assert build_source(folder).notes == (
        "3 images with 4 boxes, 1 of them crowds; 1 image without any object, first 'c3'",
        "1 box is a depiction, counted as objects",
        "for 1 box the labels do not say whether they hold a group; they count as one object",
        "classes verified to be in an image or not: from labels.csv and the boxes, with what "
        "follows by the hierarchy",
    )


def test_verified_classes_follow_the_hierarchy(folder):
    source = build_source(folder)
    # boxes of Cat, Man and Owl: there, and so is what stands above; Bird is verified not to be
    assert read_verified(source, "0b") == {*NAMES} - {"Dog", "Human head"}
    # Animal is not there, so no animal is; Man is, so Person is
    assert read_verified(source, "c3") == {*NAMES} - {"Human head"}
    # nobody looked for a person or a bird here
    above = {"Carnivore", "Mammal", "Animal"}
    assert read_verified(source, "00000000000000a1") == {"Dog", *above}


def test_a_positive_says_nothing_of_children_and_a_negative_nothing_of_parents(folder):
    lines = [f"d4,verification,{MID['Person']},1", f"d4,verification,{MID['Owl']},0"]
    write(folder / "labels.csv", LABELS_HEADER, *lines)
    assert read_verified(build_source(folder), "d4") == {"Person", "Owl"}


def test_without_labels_only_the_boxes_tell_what_was_verified(folder):
    source = build_source(folder, labels=None)
    assert len(source) == 2
    assert read_verified(source, "0b") == {*NAMES} - {"Dog", "Human head"}
    assert "no file of labels was given" in source.notes[-1]


def test_the_hierarchy_may_be_a_file_whose_parts_are_no_kinds(folder):
    (folder / "tree.json").write_text(json.dumps(TREE))
    source = build_source(folder, hierarchy=str(folder / "tree.json"))
    parents = dict(zip(NAMES, source.classes.parents, strict=True))
    assert parents["Man"] == (NAMES.index("Person"),)
    assert parents["Human head"] == parents["Cat"] == ()
    assert read_verified(source, "00000000000000a1") == {"Dog"}


def test_the_shipped_classes_are_taken_where_none_are_given(folder):
    source = build_source(folder, classes=None)
    assert len(source.classes) == 601
    assert {source.classes.names[label] for label in source[0].truth} == {"Cat", "Owl"}


def test_descriptions_of_later_releases_have_a_header(folder):
    lines = (folder / "classes.csv").read_text().splitlines()
    write(folder / "later.csv", "LabelName,DisplayName", *lines)
    later = build_source(folder, classes=str(folder / "later.csv"))
    assert later.classes == build_source(folder).classes


# --- images that are not there


def test_absent_images_are_missing_or_left_out(folder):
    (folder / "images" / "c3.jpg").unlink()
    files_too = folder / "images" / "e5.jpg"
    cv2.imwrite(str(files_too), np.zeros((4, 4, 3), np.uint8))
    assert build_source(folder).missing() == [str(folder / "images" / "c3.jpg")]
    source = build_source(folder, present=True)
    assert list(source.ids) == ["0b", "00000000000000a1"]
    assert source.missing() == []
    assert source[1].boxes.boxes.tolist() == [[7.5, 0, 15, 20]]
    assert read_verified(source, "0b") == {*NAMES} - {"Dog", "Human head"}
    assert source.notes[-2:] == (
        "1 of 3 listed images left out: not there",
        "1 image of the folder not listed, left out, first 'e5'",
    )


def write_sizes(folder, width, height):
    """The file of boxes with the size of the images in columns."""
    header, *lines = (folder / "val-annotations-bbox.csv").read_text().splitlines()
    sized = [f"{line},{width},{height}" for line in lines]
    write(folder / "sized.csv", f"{header},Width,Height", *sized)
    return str(folder / "sized.csv")


def test_sizes_may_be_columns_where_no_image_is_there(folder):
    sized = write_sizes(folder, 120, 80)
    alone = build_source(folder, boxes=sized, images=None)
    assert alone[0].size == (80, 120)
    assert alone[0].boxes.boxes.tolist()[0] == [30, 40, 90, 80]
    assert alone[2].size is None
    assert alone.missing() == ["the folder of the images (give images=…)"]
    with pytest.raises(SampleError, match="give images="):
        alone[0].image()
    # the copy at hand decides, whatever size the file of boxes speaks of
    assert build_source(folder, boxes=sized)[0].size == (40, 60)


def test_saved_detections_are_scored_without_pixels(folder):
    detection = {"image_id": "0b", "category_id": 5, "bbox": [15, 20, 30, 20], "score": 0.9}
    (folder / "cats.json").write_text(json.dumps([detection]))
    source = build_source(folder, boxes=write_sizes(folder, 60, 40), images=None)
    saved = saved_detections.load(folder / "cats.json", None)
    job = Job(models=("cats",), data=("val",), out=str(folder / "run"))
    plan = validate.of_objects(job, [saved], [("val", source)])
    saved_detections.ready(saved, plan.tasks[0])
    run(plan, Silent(), saved_detections.predict(saved))
    predictions = read(*cells(folder / "run")[0])
    for table in (predictions.detections, predictions.boxes):
        cats = table.label == NAMES.index("Cat")
        assert table.boxes[cats].tolist() == [[15, 20, 45, 40]]


def test_a_file_that_is_no_image_is_named(folder):
    (folder / "images" / "0b.jpg").write_bytes(b"\xff\xd8 no picture")
    with pytest.raises(SampleError, match=r"cannot decode the JPEG .*0b.jpg.*must be readable"):
        build_source(folder)[0]


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp"])
def test_the_size_of_a_file_is_that_of_its_pixels(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    cv2.imwrite(str(path), np.zeros((31, 47, 3), np.uint8))
    assert image_file.size(path) == image_file.read(path).shape[:2] == (31, 47)


def test_a_jpeg_whose_metadata_are_long_has_its_size_too(tmp_path):
    path = tmp_path / "a.jpg"
    cv2.imwrite(str(path), np.zeros((31, 47, 3), np.uint8))
    data = path.read_bytes()
    comment = b"\xff\xfe\xff\xff" + bytes(65533)
    path.write_bytes(data[:2] + comment * 2 + data[2:])
    assert image_file.size(path) == (31, 47)


# --- in blocks


def many(folder, rows=3000, images=400):
    """Random boxes, images in any order."""
    rng = np.random.default_rng(5)
    sides = np.sort(rng.random((rows, 2, 2)), axis=2).round(6)
    lines = [
        row(f"{rng.integers(images):016x}", NAMES[rng.integers(len(NAMES))], *x, *y, group=g)
        for (x, y), g in zip(sides, rng.integers(2, size=rows), strict=True)
    ]
    write(folder / "val-annotations-bbox.csv", HEADER, *lines)


def test_blocks_give_what_reading_row_by_row_gives(folder, monkeypatch):
    many(folder)
    monkeypatch.setattr(csv_blocks, "BLOCK", 2**12)
    source = build_source(folder, labels=None, classes=None)
    expected = defaultdict(list)
    with (folder / "val-annotations-bbox.csv").open() as file:
        for record in csv.DictReader(file):
            sides = [float(record[side]) for side in ("XMin", "YMin", "XMax", "YMax")]
            crowd = record["IsGroupOf"] == "1"
            expected[record["ImageID"]].append((record["LabelName"], sides, crowd))
    assert list(source.ids) == list(expected)
    table, mids = source.table, source.kinds.mids
    for place, id_ in enumerate(source.ids):
        own = slice(table.first[place], table.first[place + 1])
        boxes = zip(table.label[own], table.shares[own].tolist(), table.crowd[own], strict=True)
        assert [(mids[label], sides, crowd) for label, sides, crowd in boxes] == expected[id_]


def test_a_repeated_box_counts_once(folder, monkeypatch):
    """Drawn with few values, so that boxes share corners, classes and images without being one."""
    rng, distinct = np.random.default_rng(3), {}
    draws = zip(*(rng.integers(most, size=400).tolist() for most in (30, 2, 2, 2, 2)), strict=True)
    lines = [HEADER]
    for image, kind, x, y, group in draws:
        sides = (0, 0.25 + x / 4, 0.5, 0.75 + y / 4)
        lines.append(row(f"{image:016x}", NAMES[kind], *sides, group=group))
        distinct.setdefault(f"{image:016x}", {})[NAMES[kind], sides, group] = None
    write(folder / "val-annotations-bbox.csv", *lines)
    for step in (1 << 16, 7):
        monkeypatch.setattr(annotation_files, "STEP", step)
        source = build_source(folder, labels=None)
        table, names = source.table, source.classes.names
        assert list(source.ids) == list(distinct)
        for place, id_ in enumerate(source.ids):
            own = slice(table.first[place], table.first[place + 1])
            corners = [(x0, x1, y0, y1) for x0, y0, x1, y1 in table.shares[own].tolist()]
            labels = [names[label] for label in table.label[own]]
            own_boxes = list(zip(labels, corners, table.crowd[own].tolist(), strict=True))
            assert own_boxes == list(distinct[id_])
        total = sum(map(len, distinct.values()))
        assert total < 400
        assert f"{400 - total} of 400 boxes in the file twice" in source.notes[-1]


def test_a_packed_file_and_other_blocks_are_the_same_data(folder, monkeypatch):
    many(folder)
    whole = build_source(folder)
    monkeypatch.setattr(csv_blocks, "BLOCK", 2**11)
    path = folder / "val-annotations-bbox.csv"
    packed = folder / "val-annotations-bbox.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert build_source(folder, boxes=str(packed)).fingerprint == whole.fingerprint


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("val-annotations-bbox.csv", ",0.25,0.75,", ",0.25,0.750001,"),
        ("val-annotations-bbox.csv", MID["Cat"], MID["Dog"]),
        ("val-annotations-bbox.csv", "0b,", "0c,"),
        ("val-annotations-bbox.csv", "0,1,0,0\n", "0,0,0,0\n"),
        ("labels.csv", ",0\n", ",1\n"),
        ("classes.csv", ",Cat", ",Kitten"),
    ],
)
def test_any_change_of_boxes_labels_or_classes_is_another_fingerprint(folder, file, before, after):
    first = build_source(folder).fingerprint
    assert build_source(folder).fingerprint == first
    text = (folder / file).read_text()
    changed = text.replace(before, after)
    if before == "0,1,0,0\n":  # IsGroupOf of the second row
        changed = text.replace("0,0,1,0,0\n", "0,0,0,0,0\n")
    assert changed != text
    (folder / file).write_text(changed)
    assert build_source(folder).fingerprint != first


def test_a_column_that_no_number_reads_changes_nothing(folder):
    first = build_source(folder).fingerprint
    path = folder / "val-annotations-bbox.csv"
    path.write_text(path.read_text().replace("xclick", "activemil"))
    assert build_source(folder).fingerprint == first


# --- bad input


BAD = [
    ("val-annotations-bbox.csv", HEADER.replace("IsGroupOf", "Group"), "has no column IsGroupOf; "),
    ("labels.csv", "ImageID,LabelName", "labels.csv' has no column Confidence; its columns are"),
    ("classes.csv", "/m/04yx4", "1 line without a name, first line 1; write machine id, name"),
    ("classes.csv", "cat,dog", "holds no class; write lines such as /m/01g317,Person"),
    ("classes.csv", "/m/1,Cat\n/m/2,Cat", "has 1 class twice, first 'Cat'"),
]


@pytest.mark.parametrize(("file", "content", "message"), BAD)
def test_invalid_files_are_refused(folder, file, content, message):
    write(folder / file, content)
    check_refusal(folder, message)


def check_refusal(folder, *messages, **options):
    with pytest.raises(UsageError) as error:
        build_source(folder, **options)
    lines = str(error.value).splitlines()
    assert len(lines) == len(messages)
    for line, part in zip(lines, messages, strict=True):
        assert part in line


def test_rows_that_cannot_be_used_are_counted_with_the_first(folder, monkeypatch):
    bad = (
        row("0b", "Cat", 0.5, 0.4, 0, 1),
        row("0b", "Cat", 0, 1.01, 0, 1),
        row("0b", "Cat", "", 1, 0, 1),
        row("0b", "/m/gnome", 0, 1, 0, 1),
    )
    write(folder / "val-annotations-bbox.csv", HEADER, *BOXES, *bad)
    monkeypatch.setattr(csv_blocks, "BLOCK", 2**8)
    check_refusal(
        folder,
        "1 row of classes that have no description, first line 9: 0b, /m/gnome, 0.0",
        f"3 rows with a box outside 0…1 or inverted, first line 6: 0b, {MID['Cat']}, 0.5, 0.0, "
        "0.4, 1.0",
    )


def test_labels_that_no_person_gave_are_counted_with_the_first(folder):
    lines = [f"0b,machine,{MID['Cat']},0.7", "0b,verification,/m/gnome,1"]
    write(folder / "labels.csv", LABELS_HEADER, *lines)
    check_refusal(
        folder,
        "1 row of classes that have no description, first line 3: 0b, /m/gnome, 1.0",
        f"1 row with a confidence other than 0 and 1, not verified by people, first line 2: 0b, "
        f"{MID['Cat']}, 0.7",
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0b,xclick,/m/01yrx", "Expected 13 columns, got 3"),
        (row("0b", "Cat", "left", 1, 0, 1), "invalid value 'left'"),
    ],
)
def test_malformed_lines_are_refused(folder, line, message):
    write(folder / "val-annotations-bbox.csv", HEADER, *BOXES, line)
    check_refusal(folder, message)


def test_paths_that_lead_nowhere_are_refused(folder):
    check_refusal(folder, "no CSV file at", boxes=str(folder / "none.csv"))
    check_refusal(folder, "no class descriptions at", classes=str(folder / "none.csv"))
    check_refusal(folder, "give images=… too", images=None)
    (folder / "others").mkdir()
    others = {"images": str(folder / "others"), "present": True}
    check_refusal(folder, "holds none of the 3 images listed", **others)
    with pytest.raises(UsageError, match="no folder at"):
        build_source(folder, images=str(folder / "nowhere")).missing()
    (folder / "images" / "0b.png").write_bytes(b"")
    with pytest.raises(UsageError, match="has 1 image more than once, first '0b'"):
        build_source(folder).missing()


def test_a_hierarchy_that_goes_in_circles_is_refused(folder):
    inner = {"LabelName": MID["Man"], "Subcategory": [{"LabelName": MID["Person"]}]}
    tree = {"LabelName": MID["Person"], "Subcategory": [inner]}
    (folder / "tree.json").write_text(json.dumps(tree))
    line = "above itself; correct the hierarchy"
    check_refusal(folder, line, hierarchy=str(folder / "tree.json"))


# --- a real detector on real photos

PHOTOS = {
    "02b4196ce8a0e541": ("cat_720p", [("Cat", 0.09, 0.73, 0.12, 1)]),
    "1170c58625bec5dc": ("hot_dog", [("Hot dog", 0.19, 0.93, 0.2, 0.61)]),
    "165178f034f150ba": ("owl", [("Owl", 0.315, 0.645, 0.035, 0.955)]),
    "0f3ebab958f44f5f": ("parrot", [("Parrot", 0.2, 0.917, 0.11, 0.965)]),
    "82270c27bacdcaa4": (
        "pets",
        [("Dog", 0.214, 0.5, 0.06, 0.69), ("Dog", 0.671, 0.97, 0.39, 0.86)],
    ),
}
"""Image id → photo and boxes, drawn by eye."""


@pytest.fixture(scope="module")
def photos(test_data, tmp_path_factory):
    """YOLOX-nano on five photos of Open Images with classes of its own hierarchy."""
    root = tmp_path_factory.mktemp("photos")
    lines, labels = [], []
    for id_, (name, boxes) in PHOTOS.items():
        (root / f"{id_}.jpg").symlink_to(test_data / "photos" / f"{name}.jpg")
        lines += [row(id_, *box) for box in boxes]
        labels += [f"{id_},verification,{MID[box[0]]},1" for box in boxes[:1]]
        labels.append(f"{id_},verification,{MID['Kitchen & dining room table']},0")
    write(root / "val-annotations-bbox.csv", HEADER, *lines)
    write(root / "labels.csv", LABELS_HEADER, *labels)
    files = f"boxes='{root / 'val-annotations-bbox.csv'}', labels='{root / 'labels.csv'}'"
    data = f"open_images({files}, images='{root}')"
    assert check_source(plugins.build("sources", parse(data)))
    model = test_data / "models" / "yolox_nano.onnx"
    spec = f"onnx_detector(path='{model}', decoder='yolox')"
    return se.evaluate(spec, data, out=root / "run")


def test_a_coco_detector_answers_in_open_images_classes(photos):
    predictions = photos.predictions
    sure = predictions.detections.score > 0.7
    ids = predictions.ids[predictions.detections.image[sure]]
    names = [predictions.classes[label] for label in predictions.detections.label[sure]]
    answers = {"02b4": "Cat", "0f3e": "Bird", "1170": "Hot dog", "1651": "Bird", "8227": "Dog"}
    pairs = sorted((id_[:4], name) for id_, name in zip(ids, names, strict=True))
    assert pairs == [*answers.items(), ("8227", "Dog")]
    assert predictions.tags == {}
    record = json.loads(next((photos.folder / "cells").glob("*/cell.json")).read_text())
    assert record["class_map"] == "by Open Images' classes"


def test_the_hierarchy_and_what_was_verified_are_sealed_with_the_detections(photos):
    predictions = photos.predictions
    names = predictions.classes
    bird, owl = names.index("Bird"), names.index("Owl")
    assert bird in predictions.parents[owl]
    verified = predictions.verified
    assert verified.known.all()
    of_owl = verified.image == predictions.ids.tolist().index("165178f034f150ba")
    expected = {"Owl", "Bird", "Animal", "Kitchen & dining room table"}
    assert {names[label] for label in verified.label[of_owl]} == expected


def test_classes_that_are_found_score_and_those_of_no_coco_class_cannot(photos):
    # cat, hot dog and dog; Bird, the answer for Owl and Parrot, is no hit of mAP
    assert photos.map().value == pytest.approx(3 / 5)
    notes = " ".join(photos.predictions.notes)
    assert "Owl: no class of yolox_nano maps to it (1 sample" in notes


def people(images):
    """A man, an owl and a tree, in Open Images' classes."""
    names = list(openimages.released_names().values())
    labels = [names.index(name) for name in ("Man", "Owl", "Tree")]
    return [([[0, 0, 9, 9], [10, 0, 19, 9], [20, 0, 29, 9]], [0.9, 0.8, 0.7], labels)] * len(images)


def test_a_detector_of_open_images_answers_in_cocos_classes(folder):
    content = {
        "images": [{"id": 1, "file_name": "0b.jpg"}],
        "categories": [{"id": 1, "name": "person"}, {"id": 16, "name": "bird"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]},
            {"id": 2, "image_id": 1, "category_id": 16, "bbox": [10, 0, 9, 9]},
        ],
    }
    (folder / "coco.json").write_text(json.dumps(content))
    model = "callable_detector(path='test_open_images:people', classes='openimages')"
    data = f"coco(annotations='{folder / 'coco.json'}', images='{folder / 'images'}')"
    detector_run = se.evaluate(model, data, out=folder / "run")
    assert detector_run.map().value == pytest.approx(1)
    note = "1 detection left out: their 1 class is not in the data, first 'Tree' in '1'"
    assert note in detector_run.predictions.notes
