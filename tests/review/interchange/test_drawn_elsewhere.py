"""Boxes drawn in other tools: shapes, rotated pictures and pictures of another size."""

import json
import time
from xml.etree import ElementTree

import pytest
from review_boxes import Boxes, candidates, write

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review.interchange import cvat, label_studio
from steadyeye.review.protocol import reviewers
from steadyeye.review.sampling.sampling import sample_boxes


@pytest.fixture
def review(tmp_path):
    sample_boxes(*write(tmp_path, candidates()))
    return Boxes(review_set.read(tmp_path / "set"), 0, stages={"boxes": 1})


def export(review, tool, out):
    with review.db.reading() as connection:
        tool.export_tasks(connection, review.folder, review.plan, out)


REGION = {
    "id": "drawn",
    "from_name": "boxes",
    "to_name": "image",
    "type": "rectanglelabels",
    "image_rotation": 0,
    "value": {"x": 25, "y": 25, "width": 50, "height": 50, "rectanglelabels": ["cat"]},
}
CORNERS = {"points": [[10, 10], [50, 10], [50, 50]]}


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (
            {"type": "polygonlabels", "value": {**CORNERS, "polygonlabels": ["cat"]}},
            "polygonlabels",
        ),
        ({"type": "rectangle"}, "rectangle"),
        ({"type": "brushlabels", "value": {"brushlabels": ["cat"]}}, "brushlabels"),
        ({"image_rotation": 90}, "the image of the box drawn was turned by 90 degrees"),
    ],
)
def test_label_studio_regions_that_are_no_upright_boxes_are_refused(
    review, tmp_path, region, message
):
    """Left out they would say that the image shows no such object."""
    export(review, label_studio, tmp_path / "out")
    tasks = json.loads((tmp_path / "out/label_studio/boxes.tasks.json").read_text())
    path = tmp_path / "project.json"

    def read(region_drawn):
        about = {"id": 1, "completed_by": 7, "result": [region_drawn], "was_cancelled": False}
        path.write_text(json.dumps([{**tasks[0], "annotations": [about]}]))
        return label_studio.read_annotations(review.folder, path)

    (answer,) = read(REGION).answers
    assert answer.answer == {"boxes": [{"box": [10.0, 8.0, 30.0, 24.0], "label": "cat"}]}
    with pytest.raises(UsageError, match=message):
        read({**REGION, **region})


def read_cvat(review, path, change):
    """What is read of a file of CVAT whose first picture is answered, after a change of it."""
    export(review, cvat, path.parent / "out")
    tree = ElementTree.parse(path.parent / "out/cvat/boxes/annotations.xml").getroot()
    image = tree.find("image")
    ElementTree.SubElement(image, "tag", {"label": "steadyeye"})
    change(tree, image)
    path.write_bytes(ElementTree.tostring(tree))
    return cvat.read_annotations(review.folder, path, "ann")


def test_boxes_on_pictures_of_another_size_are_refused(review, tmp_path):
    """Twice as large a copy: each corner would be read as one of the picture of the set."""

    def enlarge(tree, image):
        image.set("width", "80")
        image.set("height", "64")

    with pytest.raises(UsageError, match=r"it is 80 × 64 pixels there, and 40 × 32 in this set"):
        read_cvat(review, tmp_path / "job.xml", enlarge)


@pytest.mark.parametrize("size", ["", "wide", "nan"])
def test_a_size_or_a_rotation_that_is_no_number_is_refused(review, tmp_path, size):
    with pytest.raises(UsageError, match=r"pixels there, and 40 × 32 in this set"):
        read_cvat(review, tmp_path / "job.xml", lambda tree, image: image.set("width", size))
    with pytest.raises(UsageError, match="its box 1 is rotated or outside"):
        read_cvat(
            review,
            tmp_path / "job.xml",
            lambda tree, image: image.find("box").set("rotation", size or "x"),
        )


def test_a_picture_in_two_folders_is_refused(review, tmp_path):
    """CVAT keeps the folders of what was uploaded; the second answer would replace the first."""

    def repeat(tree, image):
        again = ElementTree.SubElement(tree, "image", {**image.attrib})
        again.set("name", f"again/{image.get('name')}")

    with pytest.raises(UsageError, match="twice; export one task a file"):
        read_cvat(review, tmp_path / "job.xml", repeat)


def test_each_reviewer_has_a_file_of_answers(review, tmp_path):
    """Names that differ in what no file name holds; the second file would replace the first."""
    names = ["Ann B", "Ann_B", "\U00020000" * 80]
    with review.db.writing() as connection:
        for name in names:
            reviewers.add_reviewer(connection, name)
    for number in range(len(names)):
        review.say(review.next("boxes", number)[0], {"boxes": []}, number)
    export(review, cvat, tmp_path / "out")
    files = (tmp_path / "out/cvat/boxes/results").iterdir()
    read = [cvat.read_annotations(review.folder, file).answers for file in files]
    assert sorted(answer.annotator for own in read for answer in own) == sorted(names)


def test_a_time_without_a_zone_is_the_same_on_every_machine(review, tmp_path, monkeypatch):
    """By the zone of the machine an older annotation could pass for the newer one."""
    export(review, label_studio, tmp_path / "out")
    tasks = json.loads((tmp_path / "out/label_studio/boxes.tasks.json").read_text())
    about = {"id": 1, "completed_by": 7, "result": [REGION], "updated_at": "2024-05-01T12:00:00"}
    path = tmp_path / "project.json"
    path.write_text(json.dumps([{**tasks[0], "annotations": [about]}]))
    moments = []
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        (answer,) = label_studio.read_annotations(review.folder, path).answers
        moments.append(answer.made_at)
    monkeypatch.undo()
    time.tzset()
    assert moments == [1714564800] * 3


def answer_objects(review, tool, out, move):
    """A file with answers about all objects; `move(box)`: changes of the first one's region."""
    export(review, tool, out)
    if tool is label_studio:
        tasks = json.loads((out / "label_studio/classification.tasks.json").read_text())
        words = {"well_sized": "yes", "blurry": "no", "occluded": "no", "depiction": "no"}
        choices = [
            {"from_name": n, "to_name": "image", "type": "choices", "value": {"choices": [w]}}
            for n, w in words.items()
        ]
        control = {"from_name": "object", "to_name": "image", "type": "textarea"}
        choices.append({**control, "value": {"text": ["cannot tell"]}})
        for task in tasks:
            regions = task["predictions"][0]["result"]
            task["annotations"] = [{"id": 1, "completed_by": "ann", "result": regions + choices}]
        move(tasks[0]["annotations"][0]["result"][0]["value"])
        path = out / "project.json"
        path.write_text(json.dumps(tasks))
        return path
    path = out / "cvat/classification/annotations.xml"
    tree = ElementTree.parse(path)
    for image in tree.iter("image"):
        tag = ElementTree.SubElement(image, "tag", {"label": "steadyeye"})
        ElementTree.SubElement(tag, "attribute", {"name": "object"}).text = "cannot tell"
    move(tree.find("image/box").attrib)
    tree.write(path)
    return path


def shrink(box):
    """The left half of a box of Label Studio, in percent, or of CVAT."""
    if "width" in box:
        box["width"] /= 2
    else:
        box["xbr"] = str((float(box["xtl"]) + float(box["xbr"])) / 2)


def round_box(box):
    """As a tool that keeps two decimals writes it."""
    for side in ("x", "y", "width", "height", "xtl", "ytl", "xbr", "ybr"):
        if side in box:
            box[side] = type(box[side])(round(float(box[side]), 2))


@pytest.mark.parametrize("tool", [label_studio, cvat])
def test_a_moved_box_of_an_object_that_was_asked_about_is_refused(tmp_path, tool):
    sample_boxes(*write(tmp_path, candidates()))
    folder = review_set.read(tmp_path / "set")
    asking = Boxes(folder, 0, stages={"classification": 2})
    moved = answer_objects(asking, tool, tmp_path / "a", shrink)
    with pytest.raises(UsageError, match=r"its box was moved from \(.*\) to \(.*; move it back"):
        tool.read_annotations(folder, moved, "ann")
    path = answer_objects(asking, tool, tmp_path / "b", round_box)
    answers = tool.read_annotations(folder, path, "ann").answers
    assert len(answers) == folder.boxes.num_rows > 0
    assert all("boxes" not in answer.answer for answer in answers)


def test_another_box_beside_that_of_an_object_is_refused(tmp_path):
    sample_boxes(*write(tmp_path, candidates()))
    folder = review_set.read(tmp_path / "set")
    asking = Boxes(folder, 0, stages={"classification": 2})
    path = answer_objects(asking, cvat, tmp_path / "a", round_box)
    tree = ElementTree.parse(path)
    image = tree.find("image")
    image.append(image.find("box"))
    tree.write(path)
    with pytest.raises(UsageError, match="it has 2 boxes, but asks about one object; delete the"):
        cvat.read_annotations(folder, path, "ann")
