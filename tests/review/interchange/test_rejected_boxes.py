"""Suggestions that people rejected are no ground truth in any export, whoever saved them."""

import itertools
import json
from xml.etree import ElementTree

import numpy as np
import pytest
from review_boxes import FINE, Boxes
from review_toys import GOOD, NO, YES, Review, draw, source
from sqlalchemy import select

from steadyeye.data.annotations import review_set
from steadyeye.data.images import image_file
from steadyeye.data.sources.coco import coco
from steadyeye.review.database import decisions, items
from steadyeye.review.interchange.formats import export_formats
from steadyeye.review.results import status
from steadyeye.review.sampling.sampling import sample_boxes
from steadyeye.review.workflow import sequences

SIZE = (40, 32)
FRAMES = 5
REAL = [2.0, 3.0, 12.0, 15.0]
REJECTED = [20.0, 10.0, 34.0, 27.0]
SAVED = [{"box": REJECTED, "label": "car", "track": 9}]
KEEP = {**FINE, "object": "person"}
HOW = (
    ({"object": None},) * 2,
    ({**KEEP, "well_sized": False},) * 2,
    ({**KEEP, "object": "car"}, {**KEEP, "object": "tree"}),
    ({**KEEP, "depiction": True},) * 2,
)
"""What each of two people says of a suggestion that is rejected: on one frame after another."""


@pytest.fixture
def folder(tmp_path):
    """A video on each of whose frames two objects are suggested."""
    rng = np.random.default_rng(0)
    root = tmp_path / "images" / "clip"
    root.mkdir(parents=True)
    for number in range(FRAMES):
        picture = rng.integers(0, 255, (SIZE[1], SIZE[0], 3), np.uint8)
        (root / f"{number}.jpg").write_bytes(image_file.encode(picture, ".jpg"))
    numbers = itertools.count()
    content = {
        "images": [{"id": n, "file_name": f"clip/{n}.jpg"} for n in range(FRAMES)],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}],
        "annotations": [
            {"id": next(numbers), "image_id": n, "category_id": 1}
            | {"bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]]}
            for n in range(FRAMES)
            for box in (REAL, REJECTED)
        ],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    sample_boxes(tmp_path / "boxes.json", tmp_path / "images", tmp_path / "set", lambda done: None)
    return review_set.read(tmp_path / "set")


def judge(review):
    """Both people say what every suggestion is: REAL is a person, REJECTED is as in HOW."""
    for number in (0, 1):
        review.everything("classification", choose(review, number), number)


def choose(review, number):
    """What a person says of each suggestion."""
    frames = {row["image"]: n for n, row in enumerate(review.folder.boxes.to_pylist()[::2])}

    def say(payload):
        turn = HOW[frames[payload["image"]] % len(HOW)]
        return turn[number] if is_bad(payload["box"]) else KEEP

    return say


def is_bad(box):
    return all(abs(a - b) < 0.5 for a, b in zip(box, REJECTED, strict=True))


def save_with(more):
    return lambda s: {"boxes": [*(b for b in s["boxes"] if not is_bad(b["box"])), *more]}


def draw_it_anyway(review):
    """Both save the rejected box beside those they were shown; the second one 0.05 px off."""
    near = [{**SAVED[0], "box": [x + 0.05 for x in REJECTED]}]
    assert len(review.everything("boxes", save_with(SAVED), 0)) == FRAMES
    assert len(review.everything("box_check", save_with(near), 1)) == FRAMES


def change_minds(review):
    """Both take back what they said of the second suggestion, and reject it."""
    joined = select(decisions.c.id, items.c.payload).join(items, items.c.id == decisions.c.item)
    for number in (0, 1):
        own = decisions.c.reviewer == review.who(number).id
        with review.db.reading() as c:
            rows = c.execute(joined.where(own, items.c.stage == "classification")).all()
        for row in rows:
            if is_bad(row.payload["box"]):
                review.undo(row.id, number)
        review.everything("classification", choose(review, number), number)


@pytest.fixture(params=["before", "after"])
def exported(request, folder, tmp_path):
    """A review whose second suggestions were rejected before or after drawing; its export."""
    review = Boxes(folder, 2, stages={"classification": 2, "boxes": 1}, key_frames=2)
    if request.param == "before":
        judge(review)
    else:
        for number in (0, 1):
            review.everything("classification", lambda payload: KEEP, number)
    draw_it_anyway(review)
    if request.param == "after":
        change_minds(review)
    names = ["coco", "mot", "label_studio", "cvat"]
    with review.db.reading() as c:
        export_formats(c, folder, review.plan, tmp_path / "out", names=names, partial=False)
    return review, tmp_path / "out"


def to_corners(x, y, width, height):
    return [x, y, x + width, y + height]


def read_coco(out):
    for path in (out / "annotations.json", *sorted((out / "annotations").glob("*.json"))):
        for box in json.loads(path.read_text())["annotations"]:
            yield path.name, to_corners(*box["bbox"])


def read_mot(out):
    for path in out.rglob("gt.txt"):
        for line in path.read_text().splitlines():
            x, y, width, height = map(float, line.split(",")[2:6])
            yield "mot", to_corners(x - 1, y - 1, width, height)


def read_label_studio(out):
    for stage in ("boxes", "box_check"):
        for kind in ("tasks", "results"):
            text = (out / "label_studio" / f"{stage}.{kind}.json").read_text()
            for task in json.loads(text):
                for result in (*task.get("annotations", ()), *task["predictions"]):
                    for part in result["result"]:
                        if part["type"] == "rectanglelabels":
                            value = [part["value"][k] for k in ("x", "y", "width", "height")]
                            scaled = np.array(value) * (*SIZE, *SIZE) / 100
                            yield f"{stage} {kind}", to_corners(*scaled)


def read_cvat(out):
    for stage in ("boxes", "box_check"):
        folder = out / "cvat" / stage
        for path in (folder / "annotations.xml", *(folder / "results").glob("*.xml")):
            for box in ElementTree.parse(path).getroot().iter("box"):
                corners = [float(box.get(k)) for k in ("xtl", "ytl", "xbr", "ybr")]
                yield f"{stage} {path.parent.name}", corners


READERS = (read_coco, read_mot, read_label_studio, read_cvat)


@pytest.mark.slow
def test_a_rejected_suggestion_is_in_no_export_of_boxes(exported):
    review, out = exported
    for read in READERS:
        boxes = list(read(out))
        places = {place for place, box in boxes if is_bad(box)}
        assert places == set(), f"{read.__name__} has what people rejected"
        assert len([box for _, box in boxes if box == pytest.approx(REAL, abs=0.02)]) >= FRAMES
    whole = json.loads((out / "annotations.json").read_text())
    flagged = [to_corners(*box["bbox"]) for box in whole["rejected"]]
    assert flagged == [REJECTED] * FRAMES
    reasons = {box["reason"] for box in whole["rejected"]}
    assert len(reasons) == len(HOW)
    assert all(reasons)
    assert len(whole["annotations"]) == FRAMES
    back = coco(str(out / "annotations.json"), str(out / "images"))
    assert [back[n].boxes.boxes.tolist() for n in range(FRAMES)] == [[REAL]] * FRAMES
    with review.db.reading() as c:
        summary = status.summarise(c, review.folder, review.plan)
    counts = {line["item"]: line["accepted"] for line in summary["table_one"]}
    assert (counts["suggested boxes"], counts["boxes"]) == (FRAMES, FRAMES)


@pytest.mark.slow
def test_rejected_boxes_are_not_copied_to_other_frames(folder):
    """A frame around is answered with a rejected box in it: what a person takes over has none."""
    review = Boxes(folder, 2, stages={"classification": 2, "boxes": 1}, key_frames=2)
    judge(review)
    for _ in range(3):  # frames 0, 2 and 4
        key = review.next("boxes", 0)[0]
        assert key.payload["sequence"]["key"]
        real = [{**box, "track": 1} for box in key.payload["boxes"]]
        review.say(key, {"boxes": real + SAVED}, 0)
    between = review.next("boxes", 0)[0]
    with review.db.reading() as c:
        near = sequences.find_nearby(c, review.who(0).id, between.assignment)
    expected = [{"box": REAL, "label": "person", "track": 1}]
    assert near["before"]["boxes"] == near["after"]["boxes"] == near["between"] == expected


@pytest.mark.slow
def test_rejected_frames_are_flagged_in_a_set_and_absent_from_pm_sets(tmp_path):
    draw([source()], tmp_path / "set")
    review = Review(review_set.read(tmp_path / "set"), 3, stages={"anchors": 1, "pairs": 1})
    review.everything("anchors", lambda payload: GOOD)
    review.everything("pairs", lambda payload: NO if payload["offset"] == 1 else YES)
    for number in range(3):
        review.everything("joint", lambda payload: NO, number)
    with review.db.reading() as c:
        names = ["set", "pmsets"]
        export_formats(c, review.folder, review.plan, tmp_path / "out", names=names, partial=False)
    rows = review_set.read(tmp_path / "out").frames.to_pylist()
    assert {(row["accepted"], row["reason"]) for row in rows if row["offset"] == 1} == {
        (False, "blur")
    }
    assert all(row["accepted"] for row in rows if row["offset"] != 1)
    metadata = tmp_path / "out" / "metadata"
    files = {f"val/{row['video']}/{row['frame']:06d}.JPEG": row for row in rows}
    labelled = json.loads((metadata / "labels.json").read_text())
    assert {files[name]["offset"] for name in labelled} == {-2, -1, 0, 2}
    sets = json.loads((metadata / "pmsets.json").read_text())
    assert {files[name]["offset"] for own in sets.values() for name in own} == {-2, -1, 2}
    pictures = {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("*.JPEG")}
    assert pictures == set(labelled)
