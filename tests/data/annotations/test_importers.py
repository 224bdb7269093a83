"""Annotations from other tools that could be misread silently: corrected, refused or noted."""

import io
import json
import tempfile
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from time import process_time

import cv2
import numpy as np
import pytest
from forked import steadyeye
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from whole_runs import Watcher

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.data.annotations import box_file, coco_images
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.video import label_sidecar
from steadyeye.metrics.map import map as mean_ap
from steadyeye.predictions.read import cells, read
from steadyeye.runner import saved_detections, validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import run

IMAGES = [{"id": i, "file_name": f"{i:03d}.jpg", "width": 640, "height": 480} for i in (1, 2, 3)]
CATEGORIES = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]


def annotation(number, image, category, bbox, **more):
    return {"id": number, "image_id": image, "category_id": category, "bbox": bbox, **more}


def truth():
    rng = np.random.default_rng(0)
    annotations = []
    for number in range(30):
        box = rng.uniform([0, 0, 40, 40], [300, 300, 150, 150]).round(1).tolist()
        annotations.append(annotation(number + 1, number % 3 + 1, number % 2 + 1, box))
    return annotations


def content(annotations=None, images=IMAGES, categories=CATEGORIES):
    entries = truth() if annotations is None else annotations
    return {"images": images, "categories": categories, "annotations": entries}


def write_truth(folder, **parts):
    path = folder / "truth.json"
    path.write_text(json.dumps(content(**parts)))
    return path


def build_source(spec):
    return plugins.build("sources", parse(spec))


def has_note(notes, start):
    return any(note.startswith(start) for note in notes)


def coco(path):
    return build_source(f"coco(annotations='{path}')")


def score(folder, spec, entries):
    (folder / "said.json").write_text(json.dumps(entries))
    saved = saved_detections.load(folder / "said.json", None)
    out = Path(tempfile.mkdtemp(dir=folder))
    job = Job(models=("said.json",), data=(spec,), out=str(out))
    plan = validate.with_models(job, [saved])
    checked = replace(plan, tasks=tuple(saved_detections.ready(saved, t) for t in plan.tasks))
    run(checked, Watcher(), saved_detections.predict(saved))
    return read(*cells(out)[0])


def reference(folder, annotations, entries):
    """AP at 0.5 by pycocotools."""
    path = folder / "reference.json"
    full = [
        {"iscrowd": 0, "area": a["bbox"][2] * a["bbox"][3], **a, "id": n}
        for n, a in enumerate(annotations, start=1)
    ]
    path.write_text(json.dumps({**content(full), "info": {}}))
    with redirect_stdout(io.StringIO()):
        ground_truth = COCO(str(path))
        evaluated = COCOeval(ground_truth, ground_truth.loadRes(entries), "bbox")
        evaluated.evaluate()
        evaluated.accumulate()
        evaluated.summarize()
    return evaluated.stats[1]


def draw_detections(annotations, seed=1, lost=0.2):
    rng = np.random.default_rng(seed)
    return [
        {
            "image_id": a["image_id"],
            "category_id": a["category_id"],
            "bbox": [v + float(rng.normal(0, 2)) for v in a["bbox"]],
            "score": float(rng.uniform(0.1, 1)),
        }
        for a in annotations
        if rng.random() > lost
    ]


# --- COCO's annotations


def test_a_repeated_annotation_counts_once_as_by_pycocotools(tmp_path):
    once = truth()
    twice = [*once, *[{**a, "id": a["id"] + 100} for a in once[:12]]]
    path = write_truth(tmp_path, annotations=twice)
    table = score(tmp_path, f"coco(annotations='{path}')", draw_detections(once))
    as_once, as_twice = (reference(tmp_path, n, draw_detections(once)) for n in (once, twice))
    assert mean_ap(table).value == pytest.approx(as_once, abs=1e-12)
    assert mean_ap(table).value != pytest.approx(as_twice, abs=1e-3)
    assert has_note(table.notes, "12 of 42 annotations in the file twice")


def test_two_objects_in_one_box_stay_two_where_their_masks_differ(tmp_path):
    box = [10.0, 10.0, 50.0, 50.0]
    masks = [[10, 10, 60, 10, 60, 60]], [[10, 10, 60, 60, 10, 60]]
    both = [annotation(n, 1, 1, box, segmentation=mask) for n, mask in enumerate(masks, start=1)]
    source = coco(write_truth(tmp_path, annotations=[*both, {**both[0], "id": 9}]))
    assert len(source[0].boxes) == 2
    assert source[0].masks().shape == (2, 480, 640), "masks are of the boxes that are there"


def runs(counts, *size):
    return {"size": size, "counts": counts}


BAD_MASKS = {
    "ten gigabytes": runs([0, 10**10], 10**5, 10**5),
    "of another image": runs([0, 64], 8, 8),
    "counting back": runs([-5, 480 * 640 + 5], 480, 640),
    "too short": runs([0, 5], 480, 640),
    "a run without end": runs("o" * 200_000, 480, 640),
    "no size": {"counts": [0, 5]},
    "sides that are none": runs([0, 5], None, "a"),
    "a corner beyond all numbers": [[0, 0, 1e308, 0, 9, 9]],
    "a corner that is none": [[0, 0, float("nan"), 0, 9, 9]],
    "an odd number": [[0, 0, 9]],
    "a text": ["polygon"],
}


@pytest.mark.parametrize("kind", BAD_MASKS)
def test_an_invalid_mask_is_one_line_and_takes_no_memory(kind, tmp_path):
    start = process_time()
    box = {"bbox": [10.0, 10.0, 50.0, 50.0]}
    for part in (box, {}):
        entry = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": BAD_MASKS[kind], **part}
        path = write_truth(tmp_path, annotations=[entry])
        try:
            with pytest.raises(UsageError, match=r"truth\.json'.*(annotation 1|image 1)") as raised:
                coco(path)[0].masks()
            assert len(str(raised.value).splitlines()) == 1
        finally:
            coco_images._segmentations.cache_clear()
    assert process_time() - start < 5


def test_masks_of_an_image_are_together_no_more_than_a_gigabyte(tmp_path):
    images = [{"id": 1, "file_name": "1.jpg", "width": 10**5, "height": 10**5}]
    entry = annotation(1, 1, 1, [1, 1, 5, 5], segmentation=[[0, 0, 9, 0, 9, 9]])
    with pytest.raises(UsageError, match="1 mask of 100000 × 100000 pixels are over 1,073,741,824"):
        coco(write_truth(tmp_path, images=images, annotations=[entry]))[0].masks()


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (
            {"categories": [{"id": 1, "name": "cat"}, {"id": 1, "name": "dog"}]},
            "1 category id twice",
        ),
        ({"categories": [*CATEGORIES, {"id": 3, "name": "cat "}]}, "has 1 category twice"),
        ({"categories": [{"id": "1", "name": "cat"}]}, "give each an id, a whole number"),
        ({"categories": [{"id": 1}]}, "give each an id, a whole number, and a name"),
        ({"categories": ["cat"]}, "give each an id, a whole number"),
        ({"annotations": [annotation(1, 1, True, [1, 1, 5, 5])]}, "category_id True"),
        ({"annotations": [annotation(1, 1, "1", [1, 1, 5, 5])]}, "category_id 1, which"),
        ({"annotations": [annotation(1, 1, 1, [1, 1, 5, 5], iscrowd="0")]}, "iscrowd '0'"),
        ({"annotations": [annotation(1, "1", 1, [1, 1, 5, 5])]}, "1 image that it does not list"),
        ({"annotations": [annotation(1, 1, 1, [0.1, 0.2, 0.5, 0.6])]}, "shares of the image's"),
        ({"annotations": [1]}, "annotations must be a list of objects"),
    ],
)
def test_annotations_that_would_be_read_wrongly_are_refused(tmp_path, parts, why):
    with pytest.raises(UsageError, match=why) as error:
        coco(write_truth(tmp_path, **parts))
    assert "\n" not in str(error.value)


def test_names_are_read_without_the_blanks_around_them_and_a_bom_is_none(tmp_path):
    path = tmp_path / "truth.json"
    names = [{"id": 1, "name": " cat "}, {"id": 2, "name": "guinea  pig"}]
    path.write_text(json.dumps(content(categories=names)), encoding="utf-8-sig")
    assert coco(path).classes.names == ("cat", "guinea pig")


def test_images_that_are_one_file_are_noted(tmp_path):
    same = [*IMAGES, {"id": 4, "file_name": "001.jpg"}]
    notes = coco(write_truth(tmp_path, images=same)).notes
    assert any("1 image file listed more than once" in note for note in notes)


def test_a_repeated_image_is_refused(tmp_path):
    path = write_truth(tmp_path, images=[*IMAGES, IMAGES[0]])
    with pytest.raises(UsageError, match="has 1 id more than once, first '1'"):
        score(tmp_path, f"coco(annotations='{path}')", draw_detections(truth()))


def test_synsets_of_lvis_say_what_a_name_means(tmp_path):
    categories = [
        {"id": 1, "name": "kite", "synset": "kite.n.03"},
        {"id": 2, "name": "crane", "synset": "crane.n.05"},
        {"id": 3, "name": "cab_(taxi)", "synset": "cab.n.03"},
        {"id": 4, "name": "gnome", "synset": "gnome.n.99"},
    ]
    classes = coco(write_truth(tmp_path, annotations=[], categories=categories)).classes
    assert classes.wnids == ("n03621473", "n02012849", "n02930766", "")


# --- YOLO


@pytest.fixture
def yolo(tmp_path):
    for kind in ("images", "labels"):
        (tmp_path / kind).mkdir()
    cv2.imwrite(str(tmp_path / "images" / "a.jpg"), np.zeros((100, 200, 3), np.uint8))
    (tmp_path / "data.yaml").write_text("val: images\nnames: [cat, dog]\n")

    def make(lines, names=None):
        (tmp_path / "labels" / "a.txt").write_text(lines, encoding="utf-8-sig")
        if names:
            (tmp_path / "data.yaml").write_text(f"val: images\nnames: {names}\n")
        return build_source(f"yolo(data='{tmp_path / 'data.yaml'}')")

    return make


def test_a_polygon_of_yolo_counts_as_the_box_around_it(yolo):
    source = yolo("1 0.1 0.2 0.5 0.2 0.5 0.8 0.3 0.9\n")
    assert source[0].boxes.boxes == pytest.approx(np.array([[20, 20, 100, 90]]))
    assert source[0].truth == (1,)


def test_a_repeated_line_of_yolo_counts_once(yolo):
    source = yolo("0 .5 .5 .2 .2\n0 .5 .5 .2 .2\n1 .5 .5 .2 .2\n")
    assert source[0].boxes.labels.tolist() == [0, 1]
    assert has_note(source.notes, "1 of 3 boxes in the file twice")


def test_numbers_of_yolo_names_decide_not_their_order(yolo):
    assert yolo("0 .5 .5 .2 .2", "{1: dog, 0: cat}").classes.names == ("cat", "dog")


@pytest.mark.parametrize(
    ("line", "names", "why"),
    [
        ("0 120 50 40 20", None, "lies outside the image; boxes are shares"),
        ("0 .5 .5 .2 .2 .9", None, "is no box; write class x y width height"),
        ("0.5 .5 .5 .2 .2", None, "classes go from 0 to 1"),
        ("0 .5 .5 .2 .2", "{1: cat, 2: dog}", "must go from 0"),
        ("0 .5 .5 .2 .2", "[cat, 'cat ']", "names the class 'cat' twice"),
        ("0 .5 .5 .2 .2", "cat", "is no list of classes"),
    ],
)
def test_lines_of_yolo_that_would_be_read_wrongly_are_refused(yolo, line, names, why):
    with pytest.raises(UsageError, match=why) as error:
        yolo(line, names)
    assert "\n" not in str(error.value)


# --- VOC


def xml(folder, name, *objects, image=None):
    inner = "".join(
        f"<object><name>{label}</name><bndbox><xmin>{a}</xmin><ymin>{b}</ymin><xmax>{c}</xmax>"
        f"<ymax>{d}</ymax></bndbox></object>"
        for label, a, b, c, d in objects
    )
    text = f"<annotation><filename>{image or name}.jpg</filename>{inner}</annotation>"
    (folder / f"{name}.xml").write_text(text)


def voc(folder):
    return build_source(f"voc(annotations='{folder}', images='{folder}')")


def test_voc_reads_names_without_blanks_and_objects_once(tmp_path):
    xml(tmp_path, "a", (" sofa ", 1, 1, 9, 9), ("sofa", 1, 1, 9, 9), ("sofa", 2, 1, 9, 9))
    source = voc(tmp_path)
    assert source.classes.names == ("sofa",)
    assert source[0].boxes.boxes.tolist() == [[0, 0, 9, 9], [1, 0, 9, 9]]
    assert has_note(source.notes, "1 of 3 boxes in the file twice")


def test_voc_that_counts_from_zero_is_noted(tmp_path):
    xml(tmp_path, "a", ("sofa", 0, 3, 9, 9), ("sofa", 1, 1, 9, 9))
    assert has_note(voc(tmp_path).notes, "1 of 2 boxes with xmin or ymin 0")


def test_voc_in_shares_of_the_image_is_refused(tmp_path):
    xml(tmp_path, "a", ("sofa", 0.3, 0.2, 1, 0.9))
    xml(tmp_path, "b", ("sofa", 0, 0.1, 0.5, 0.5))
    with pytest.raises(UsageError, match=r"all boxes lie within 1 × 1 pixel.*sides; give pixels"):
        voc(tmp_path)
    xml(tmp_path, "b", ("sofa", 1, 1, 2, 1))
    assert len(voc(tmp_path)) == 2


def test_images_of_voc_without_a_file_are_counted(tmp_path):
    xml(tmp_path, "a", ("sofa", 1, 1, 9, 9))
    names = [image.name for image in voc(tmp_path).files()]
    assert not any("XML" in note for note in voc(tmp_path).notes)
    (tmp_path / "more").mkdir()
    for name in (*names, "c.jpg", "b.PNG", "more/a.jpg", "notes.txt"):
        (tmp_path / name).touch()
    source = voc(tmp_path)
    assert len(source) == 1
    assert "3 images without an XML file left out, first 'b.PNG'" in source.notes


@pytest.mark.parametrize(
    ("name", "why"),
    [("sofa", "1 image is named by several files, first 'same"), (" ", "object without a name")],
)
def test_files_of_voc_for_one_image_and_objects_without_a_name_are_refused(tmp_path, name, why):
    for file in "ab":
        xml(tmp_path, file, (name, 1, 1, 9, 9), image="same")
    with pytest.raises(UsageError, match=why):
        voc(tmp_path)


# --- sidecars


def test_labels_of_a_csv_sidecar_lose_the_blanks_around_them(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("video , labels\na.mp4,car | bicycle |car\nb.mp4, car\n", encoding="utf-8-sig")
    labels = label_sidecar.read(str(path))
    assert labels.classes.names == ("bicycle", "car")
    assert labels.of("a.mp4").at(0) == (0, 1)
    assert labels.of("b.mp4").at(0) == (1,)


def test_labels_of_a_json_sidecar_lose_them_too_and_one_may_stand_alone(tmp_path):
    path = tmp_path / "labels.json"
    ranges = [{"labels": " car"}, {"first": 3, "labels": ["guinea  pig"]}]
    path.write_text(json.dumps({"videos": {"a.mp4": {"labels": ranges}}}), encoding="utf-8-sig")
    labels = label_sidecar.read(str(path))
    assert labels.classes.names == ("car", "guinea pig")
    assert labels.of("a.mp4").at(3) == (0, 1)


def test_a_json_sidecar_may_have_keys_of_others(tmp_path):
    path = tmp_path / "labels.json"
    entry = {"first": 3, "labels": "car", "by": "Ann"}
    path.write_text(json.dumps({"version": 2, "videos": {"a": {"fps": 25, "labels": [entry]}}}))
    assert label_sidecar.read(str(path)).of("a").at(3) == (0,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"videos": {"a": {}, "a": {}}}', "name 'a' twice"),
        ('{"videos": {"a": {"labels": [{"first": 1}]}}}', "a range without a list of labels"),
        ('{"videos": {"a": {"labels": "car"}}}', "must be an object with labels or cuts"),
        ('{"classes": ["car", "car "], "videos": {}}', "two classes that differ by blanks"),
        ('{"classes": "car", "videos": {}}', "classes must be names"),
        (
            '{"classes": ["car"], "closd": true, "videos": {}}',
            "a key 'closd'; did you mean 'closed'",
        ),
        ('{"videos": {"a": {"cut": [3]}}}', "a key 'cut'; did you mean 'cuts'"),
        ('{"videos": {"a": {"labl": [{"labels": "car"}]}}}', "'labl'; did you mean 'labels'"),
        (
            '{"videos": {"a": {"labels": [{"lst": 9, "labels": "car"}]}}}',
            "'lst'; did you mean 'last'",
        ),
    ],
)
def test_sidecars_that_would_be_read_wrongly_are_refused(tmp_path, text, why):
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(UsageError, match=why) as error:
        label_sidecar.read(str(tmp_path / "labels.json"))
    assert "\n" not in str(error.value)


HEADER = "video,frame,label,x0,y0,x1,y1,crowd\n"


def test_boxes_of_a_csv_count_once_and_lose_blanks(tmp_path):
    lines = "a.mp4,0, car ,1,2,30,40,\na.mp4,0,car,1,2,30,40,0\na.mp4,0,car,1,2,30,40,TRUE\n"
    (tmp_path / "boxes.csv").write_text(HEADER + lines, encoding="utf-8-sig")
    boxes = box_file.read(str(tmp_path / "boxes.csv"))
    assert boxes.classes.names == ("car",)
    assert boxes.at("a.mp4", 0).crowd.tolist() == [False, True]
    assert boxes.notes(["a.mp4"])[0].startswith("1 of 3 boxes in the file twice")


def test_a_crowd_that_is_neither_is_refused(tmp_path):
    (tmp_path / "boxes.csv").write_text(HEADER + "a.mp4,0,car,1,2,30,40,yes\n")
    with pytest.raises(UsageError, match="line 2: crowd is 'yes'; write 1, 0 or nothing"):
        box_file.read(str(tmp_path / "boxes.csv"))


# --- detections: whose images, which classes

NAMES = ("person", "car", "dog", "chair", "tv")


def detect_objects(annotations, number=lambda category: category, **keys):
    """COCO's results of a detector that is right in all but its last few boxes."""
    entries = []
    for place, original in enumerate(annotations):
        entry = {key: original[key] for key in ("image_id", "bbox")}
        entry |= {"category_id": number(original["category_id"]), "score": 0.9 - place / 1000}
        entries.append({**entry, **{key: make(original) for key, make in keys.items()}})
    return entries


@pytest.fixture
def yolo_data(tmp_path):
    """Images and boxes as YOLO keeps them, and the same as COCO's annotations with file names."""
    rng = np.random.default_rng(3)
    for kind in ("images", "labels"):
        (tmp_path / kind / "val").mkdir(parents=True)
    annotations, images = [], []
    for i in range(8):
        name = f"{100 + i}"
        cv2.imwrite(str(tmp_path / "images" / "val" / f"{name}.jpg"), np.zeros((480, 640, 3), "u1"))
        images.append({"id": i + 1, "file_name": f"{name}.jpg", "width": 640, "height": 480})
        lines = []
        for j in range(4):
            label = int(rng.integers(0, 5))
            x, y, w, h = 10.0 + 150 * j, 20.0 + 10 * i, 120.0, 200.0
            lines.append(f"{label} {(x + w / 2) / 640} {(y + h / 2) / 480} {w / 640} {h / 480}")
            annotations.append(annotation(len(annotations) + 1, i + 1, label, [x, y, w, h]))
        (tmp_path / "labels" / "val" / f"{name}.txt").write_text("\n".join(lines))
    (tmp_path / "data.yaml").write_text(f"val: images/val\nnames: {list(NAMES)}\n")
    return tmp_path, images, annotations


def as_yolo(folder):
    return f"yolo(data='{folder / 'data.yaml'}')"


def as_coco(folder, images, annotations, first):
    """COCO's annotations of the same, with categories counted from `first`."""
    categories = [{"id": i + first, "name": name} for i, name in enumerate(NAMES)]
    moved = [{**a, "category_id": a["category_id"] + first} for a in annotations]
    path = folder / f"from{first}.json"
    path.write_text(json.dumps(content(moved, images, categories)))
    return f"coco(annotations='{path}')"


def ultralytics(images, annotations, **keys):
    """predictions.json: stems as numbers, the name of the file, categories from 1."""
    name = {image["id"]: image["file_name"] for image in images}
    return detect_objects(
        annotations,
        lambda category: category + 1,
        image_id=lambda a: int(name[a["image_id"]].removesuffix(".jpg")),
        **keys or {"file_name": lambda a: name[a["image_id"]]},
    )


@pytest.mark.parametrize("first", [0, 1, None])
@pytest.mark.parametrize("with_names", [True, False])
def test_predictions_of_ultralytics_are_read_as_they_are_meant(yolo_data, first, with_names):
    folder, images, annotations = yolo_data
    spec = as_yolo(folder) if first is None else as_coco(folder, images, annotations, first)
    entries = ultralytics(images, annotations)
    if not with_names:
        entries = [{k: v for k, v in e.items() if k != "file_name"} for e in entries]
    table = score(folder, spec, entries)
    assert mean_ap(table).value == 1
    if first != 1:
        assert any("read as counted from 1" in note for note in table.notes)
    assert any("matched to images by" in note for note in table.notes)


def test_ids_that_are_numbers_of_other_files_do_not_mislead(yolo_data):
    folder, images, annotations = yolo_data
    # image 1 has the file 102.jpg, and 102 is the id of another one
    images = [{**image, "id": image["id"] + 101} for image in images]
    annotations = [{**a, "image_id": a["image_id"] + 101} for a in annotations]
    images = [*images, {"id": 100, "file_name": "x.jpg"}, {"id": 101, "file_name": "y.jpg"}]
    spec = as_coco(folder, images, annotations, 1)
    table = score(folder, spec, ultralytics(images, annotations))
    assert mean_ap(table).value == 1
    note = next(note for note in table.notes if "matched to images by file_name" in note)
    assert "as ids, 32 of them would be of other images" in note


def test_results_of_coco_stay_what_they_are_as_by_pycocotools(yolo_data):
    folder, images, annotations = yolo_data
    for first in (0, 1, 7):
        spec = as_coco(folder, images, annotations, first)
        entries = detect_objects(annotations, lambda category, first=first: category + first)
        table = score(folder, spec, entries)
        assert mean_ap(table).value == 1
        assert not [
            note for note in table.notes if "read as" in note or "matched to images by" in note
        ]


def test_a_bad_detector_is_no_other_numbering(yolo_data):
    folder, images, annotations = yolo_data
    rng = np.random.default_rng(5)
    entries = detect_objects(annotations, lambda _: int(rng.integers(1, 6)))
    table = score(folder, as_coco(folder, images, annotations, 1), entries)
    assert mean_ap(table).value < 0.5
    assert not [note for note in table.notes if "read as" in note]


def test_an_ambiguous_numbering_of_categories_is_refused(yolo_data):
    folder, images, annotations = yolo_data
    spec = as_yolo(folder)
    inner = [a for a in annotations if a["category_id"] in (1, 2)]
    away = [{**e, "bbox": [600, 400, 10, 10]} for e in ultralytics(images, inner)]
    with pytest.raises(UsageError, match=r"from 0 or counted from 1 .* --category-ids 0 or"):
        score(folder, spec, away)


def test_the_user_says_the_numbering(yolo_data):
    folder, images, annotations = yolo_data
    (folder / "said.json").write_text(json.dumps(ultralytics(images, annotations)))
    for base, right in (("1", True), ("0", False)):
        done = steadyeye(
            *("score", str(folder / "said.json"), "--data", as_yolo(folder)),
            *("--category-ids", base, "--out", str(folder / f"run{base}"), "--metrics", "map"),
        )
        if not right:
            assert "with a category_id that the data does not have" in done.stderr
            continue
        assert done.returncode == 0, done.stderr
        assert "100.0 %" in done.stdout


def test_a_numbering_that_does_not_fit_names_the_data(yolo_data):
    folder, images, annotations = yolo_data
    (folder / "said.json").write_text(json.dumps(ultralytics(images, annotations)))
    spec = as_yolo(folder)
    name = plugins.build("sources", parse(spec)).name
    done = steadyeye(
        *("score", str(folder / "said.json"), "--data", spec),
        *("--category-ids", "2", "--out", str(folder / "run")),
    )
    expected = f"steadyeye: --category-ids '2' does not fit '{name}'; give 0, 1\n"
    assert (done.returncode, done.stderr) == (2, expected)


def test_names_of_categories_decide(yolo_data):
    folder, images, annotations = yolo_data
    other = (40, 10, 30, 20, 50)
    spelt = ("Person", "automobile", "dog", "chair", "tvmonitor")
    entries = detect_objects(
        annotations,
        lambda category: other[category],
        category_name=lambda a: spelt[a["category_id"]],
    )
    table = score(folder, as_coco(folder, images, annotations, 1), entries)
    assert mean_ap(table).value == 1
    assert "category ids are matched by category_name" in table.notes


def test_cocos_own_numbers_are_read_over_cocos_classes(tmp_path):
    numbers = [n for n in range(1, 91) if n not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]
    assert len(numbers) == 80
    coco_names = shipped_classes("coco").names
    categories = [{"id": i, "name": name} for i, name in enumerate(coco_names)]
    annotations = [annotation(i, i % 3 + 1, i, [5.0 * i, 10, 100, 100]) for i in range(0, 80, 3)]
    path = write_truth(tmp_path, annotations=annotations, categories=categories)
    spec = f"coco(annotations='{path}')"
    table = score(tmp_path, spec, detect_objects(annotations, lambda category: numbers[category]))
    assert mean_ap(table).value == 1
    assert any("read as COCO's own numbers, 1 to 90" in note for note in table.notes)


def test_boxes_of_results_that_are_corners_or_shares_are_refused(yolo_data):
    folder, images, annotations = yolo_data
    spec = as_coco(folder, images, annotations, 1)
    entries = detect_objects(annotations, lambda category: category + 1)
    x0y0x1y1 = [{**e, "bbox": [x, y, x + w, y + h]} for e in entries for x, y, w, h in [e["bbox"]]]
    with pytest.raises(UsageError, match="extend beyond their image as x, y, width, height"):
        score(folder, spec, x0y0x1y1)
    shares = [{**e, "bbox": (np.array(e["bbox"]) / 640).tolist()} for e in entries]
    with pytest.raises(UsageError, match="as if they were shares of the image's"):
        score(folder, spec, shares)


def test_images_without_a_detection_and_detections_that_stand_twice_are_noted(yolo_data):
    folder, images, annotations = yolo_data
    entries = detect_objects(annotations, lambda category: category + 1)
    table = score(folder, as_coco(folder, images, annotations, 1), [*entries[4:], entries[-1]])
    notes = "\n".join(table.notes)
    assert "no detection in the file for 1 of 8 images, first '1'" in notes
    assert "1 of 29 detections in the file twice; each counts" in notes


def test_ids_of_images_as_texts_or_whole_floats_and_a_bom_are_read(yolo_data):
    folder, images, annotations = yolo_data
    entries = detect_objects(annotations, lambda category: category + 1)
    mixed = [
        {**e, "image_id": make(e["image_id"])}
        for e, make in zip(entries, [str, float] * 16, strict=True)
    ]
    assert mean_ap(score(folder, as_coco(folder, images, annotations, 1), mixed)).value == 1
    path = folder / "bom.json"
    path.write_text(json.dumps(entries), encoding="utf-8-sig")
    assert saved_detections.are_detections(path)
    assert len(saved_detections.load(path, None).entries) == 32
