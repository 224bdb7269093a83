"""Sets of boxes from candidates to COCO's format; cuts, the released layout, Table 1, impact."""

import io
import itertools
import json
import os
from dataclasses import replace

import cv2
import numpy as np
import pytest
from forked import steadyeye
from PIL import Image as Pillow
from review_boxes import BOX, FINE, Boxes, candidates, write
from review_toys import CLASSES, GOOD, NO, SERVER, YES, Review, draw, source
from whole_runs import davis

from steadyeye.api import evaluate
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.data.annotations import review_set
from steadyeye.data.images import image_file
from steadyeye.data.sources.coco import coco
from steadyeye.data.sources.imagenet_vid_robust import imagenet_vid_robust
from steadyeye.data.sources.reviewed import reviewed
from steadyeye.metrics.pm_k import pm_k
from steadyeye.predictions.read import cells, read
from steadyeye.review.interchange.coco import export_coco
from steadyeye.review.interchange.frames import export_pmsets, export_set
from steadyeye.review.protocol.counts import read_item_counts
from steadyeye.review.protocol.objects import check_object
from steadyeye.review.protocol.reviewers import lock_reviewer
from steadyeye.review.results import status
from steadyeye.review.results.agreement import list_videos, measure_shares
from steadyeye.review.results.impact import measure_impact
from steadyeye.review.results.recount import check_counts
from steadyeye.review.results.verdicts import judge_frames
from steadyeye.review.sampling.image_store import strip_orientation
from steadyeye.review.sampling.sampling import Sampling, sample_boxes
from steadyeye.review.workflow import queue
from steadyeye.review.workflow.quality import set_gold
from steadyeye.testing import check_source

__all__ = ["davis"]


@pytest.fixture
def boxes(tmp_path):
    sample_boxes(*write(tmp_path, candidates()))
    return review_set.read(tmp_path / "set")


def test_jpeg_files_are_kept_as_they_are_and_boxes_as_corners(boxes, tmp_path):
    rows = boxes.boxes.to_pylist()
    assert [(r["id"], r["name"], r["label"]) for r in rows] == [
        ("10", "in/a.jpg", "cat"),
        ("11", "in/a.jpg", "dog"),
        ("12", "in/b.jpg", "cat"),
        ("13", "in/c.png", "dog"),
    ]
    assert [[r[c] for c in ("x0", "y0", "x1", "y1")] for r in rows[:2]] == [
        [1, 2, 21, 22],
        [30, 5, 40, 13],
    ]
    for row in rows[:3]:
        stored = review_set.image_path(boxes.root, row["image"]).read_bytes()
        assert stored == (tmp_path / "images" / row["name"]).read_bytes()
    assert boxes.classes.names == ("cat", "dog")
    assert boxes.content["category_ids"] == [3, 7]
    with pytest.raises(UsageError, match="holds a set already"):
        sample_boxes(*write(tmp_path, candidates()))
    with pytest.raises(UsageError, match="is a set of boxes; export it"):
        reviewed(root=str(boxes.root))


@pytest.mark.parametrize("sources", [4.0, [4.0], {"a": 1}, "mined"])
def test_a_damaged_origin_is_reported_in_one_line(boxes, sources):
    path = boxes.root / "set.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sources": sources}))
    with pytest.raises(UsageError, match=r"cannot read '.*set.json': .*sources.*; sample the set"):
        review_set.read(boxes.root)


def table_one(connection, folder, plan):
    assert check_counts(connection, plan) == []
    shares = measure_shares(connection, list_videos(folder, plan))
    counts = read_item_counts(connection)
    return status.build_table_one(connection, folder, plan, counts, shares)


def make_box(**more):
    return {"image_id": 0, "category_id": 3, "bbox": [1, 1, 5, 5], **more}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"annotations": [make_box(image_id=9)]}, "box 1 is of image 9, which is not listed"),
        ({"annotations": [make_box(category_id=1)]}, "box 1 is of category 1, which is not listed"),
        ({"annotations": [make_box(bbox=[1, 1, 5])]}, "box 1 has the bbox"),
        ({"annotations": [make_box(bbox=[1, 1, 0, 5])]}, "give a width and a height above 0"),
        ({"annotations": [make_box(bbox=[1, 1, float("nan"), 5])]}, "has the bbox"),
        ({"annotations": [make_box(bbox=[30, 1, 15, 5])]}, "outside the image of 40 × 32 pixels"),
        ({"annotations": [{"image_id": 0}]}, "box 1 needs image_id, category_id and bbox"),
        ({"annotations": [make_box(id=1), make_box(id=1)]}, "several boxes with the id 1"),
        ({"annotations": []}, "has no box to review"),
        ({"annotations": None}, "has no list of annotations or results"),
        ({"categories": [{"id": 3}]}, "number 1 of categories needs id and name"),
        ({"images": [{"id": 0, "file_name": "../x"}]}, "give a path inside the folder"),
        (
            {"images": [{"id": 0, "file_name": "gone"}], "annotations": [make_box()]},
            "1 image is not",
        ),
    ],
)
def test_bad_candidates_are_reported_in_one_line(tmp_path, change, message):
    arguments = write(tmp_path, candidates(**change))
    if "gone" in str(change):
        next(arguments[1].rglob("gone*")).unlink()
    with pytest.raises(UsageError, match=message) as refused:
        sample_boxes(*arguments)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "set" / "set.json").exists()


def test_a_results_list_and_real_annotations_are_taken(test_data, tmp_path):
    root = test_data / "coco" / "tinycoco"
    annotations = next((root / "annotations").glob("*.json"))
    content = json.loads(annotations.read_text())
    content["results"] = [
        {key: box[key] for key in ("image_id", "category_id", "bbox")} | {"score": 0.5}
        for box in content.pop("annotations")
        if min(box["bbox"][2:]) > 0
    ]
    path = tmp_path / "candidates.json"
    path.write_text(json.dumps(content))
    folder = next(p for p in (root / "images").rglob("*.jpg")).parent
    pictures, box_count = sample_boxes(path, folder, tmp_path / "set", lambda done: None)
    stored_set = review_set.read(tmp_path / "set")
    assert box_count == len(content["results"]) == stored_set.boxes.num_rows
    assert pictures == len(stored_set.images)
    for row in stored_set.boxes.to_pylist():
        assert (folder / row["name"]).stat().st_size == (
            review_set.image_path(stored_set.root, row["image"]).stat().st_size
        )


def test_a_note_to_turn_a_picture_is_taken_out_and_its_pixels_stay():
    picture = np.random.default_rng(1).integers(0, 255, (16, 24, 3), np.uint8)
    exif = Pillow.Exif()
    for orientation in (1, 6):
        exif[0x0112] = orientation
        sink = io.BytesIO()
        Pillow.fromarray(picture).save(sink, "jpeg", exif=exif)
        plain_jpeg = strip_orientation(sink.getvalue())
        assert (plain_jpeg == sink.getvalue()) is (orientation == 1)
        assert np.array_equal(
            image_file.decode(plain_jpeg, ""), image_file.decode(sink.getvalue(), "")
        )
        turned = cv2.imdecode(np.frombuffer(plain_jpeg, np.uint8), cv2.IMREAD_COLOR)
        assert turned.shape == (16, 24, 3)


def test_gold_questions_of_boxes_are_no_review(boxes):
    """Of four suggestions one has a known answer, and of the three drawings another."""
    rows = boxes.boxes.to_pylist()
    alone = next(r for r in rows if [x["image"] for x in rows].count(r["image"]) == 1)
    plain = Boxes(boxes, 2, stages={"classification": 2, "boxes": 1, "box_check": 1})
    with plain.db.writing() as c:
        set_gold(c, "classification", alone["id"], check_object(FINE, ("cat",)))
    for number in (0, 1):
        plain.everything("classification", lambda payload: FINE, number)
    payloads = plain.everything("boxes", lambda payload: {"boxes": [BOX]}, 0)
    plain.everything("box_check", lambda payload: {"boxes": [BOX]}, 1)
    with plain.db.writing() as c:
        set_gold(c, "box_check", payloads[0]["image"], {"boxes": [BOX]})
    with plain.db.reading() as c:
        lines = table_one(c, boxes, plain.plan)
        summary = status.summarise(c, boxes, plain.plan)
    assert (len(rows), len(payloads)) == (4, 2)  # an image opens once people answered of it
    lines_of = {line["stage"]: line for line in summary["table"]}
    assert [(e["reviewed"], e["accepted"], e["gold"]) for e in lines_of.values()] == [
        (3, 3, 1),
        (2, 2, 0),
        (1, 1, 1),
    ]
    assert [(line.item, line.reviewed, line.accepted) for line in lines] == [
        ("suggested boxes", 3, 3),
        ("images", 1, 1),
        ("boxes", None, 1),
        ("mistakes of the annotation", None, 0),
    ]


def test_a_known_answer_is_no_mistake_that_people_found_in_the_annotation(tmp_path):
    """Four detections of a cat that the data call dog; of one it is known, people say the rest."""
    content = candidates()
    for box in content["annotations"]:
        box |= {"category_id": 3, "score": 0.9, "annotated": "dog"}
    sample_boxes(*write(tmp_path, content))
    folder = review_set.read(tmp_path / "set")
    review = Boxes(folder, 1, stages={"classification": 1})
    with review.db.writing() as c:
        set_gold(c, "classification", "12", check_object(FINE, ("cat",)))
    review.everything("classification", lambda payload: FINE)
    with review.db.reading() as c:
        lines = table_one(c, folder, review.plan)
        summary = status.summarise(c, folder, review.plan)
    assert summary["table"][0]["reasons"] == {"the detector was right": 3}
    assert lines[-1] == status.CountedLine("mistakes of the annotation", None, 3)


@pytest.mark.skipif(SERVER not in os.environ, reason="SQLite has one writer at a time")
def test_who_checks_boxes_does_not_wait_for_who_drew_them(boxes):
    """Two who check what the other one drew would else wait for each other for ever."""
    review = Boxes(boxes, 2, stages={"boxes": 1})
    for number in (0, 1):
        (drawing,) = review.next("boxes", number)
        review.say(drawing, {"boxes": [BOX]}, number)
    (check,) = review.next("box_check", 0)
    with review.db.writing() as c:
        lock_reviewer(c, review.who(1))  # as while an answer of theirs is stored
        review.say(check, {"boxes": [BOX]}, 0)
    with review.db.reading() as c:
        assert check_counts(c, review.plan) == []


@pytest.mark.slow
def test_objects_confirmed_then_boxes_drawn_and_decided(boxes, tmp_path):
    review = Boxes(boxes, 5, stages={"classification": 5, "boxes": 1})
    for number, well in enumerate([True, True, True, False, False]):
        payloads = review.everything(
            "classification",
            lambda payload, well=well: {
                **FINE,
                "blurry": payload["choices"] == ["dog"],
                "well_sized": well,
            },
            number,
        )
        assert len(payloads) == 4
    drawings = review.everything("boxes", lambda payload: {"boxes": [BOX]}, 0)
    assert [len(payload["boxes"]) for payload in drawings] == [1, 1]
    assert sorted(len(payload["rejected"]) for payload in drawings) == [0, 1]
    assert review.next("box_check", 0) == []
    with review.db.reading() as c, pytest.raises(UsageError, match="2 of 3 images not decided"):
        export_coco(c, boxes, review.plan, tmp_path / "out")
    better = {"box": [2.5, 3.0, 20.0, 25.25], "label": "dog"}
    checked = review.everything(
        "box_check", lambda payload: {"boxes": [*payload["boxes"], better]}, 1
    )
    assert [payload["boxes"] for payload in checked] == [[BOX], [BOX]]
    with review.db.reading() as c:
        counts = export_coco(c, boxes, review.plan, tmp_path / "out")
        lines = table_one(c, boxes, review.plan)
    assert counts == {
        "images": 3,
        "images_accepted": 2,
        "boxes_suggested": 4,
        "boxes_rejected": 2,
        "boxes_confirmed": 2,
        "detector_was_right": 0,
        "annotation_mistakes": 0,
        "boxes": 4,
        "boxes_outside_the_classes": 0,
        "train": 2,
        "val": 0,
        "test": 0,
        "undecided": 0,
    }
    assert [(line.item, line.reviewed, line.accepted) for line in lines] == [
        ("suggested boxes", 4, 2),
        ("images", 3, 2),
        ("boxes", None, 4),
        ("mistakes of the annotation", None, 0),
    ]
    methods = "Gaffke's bounds over 3 images", "Clopper–Pearson over 3 images"
    assert tuple(line.method for line in lines[:2]) == methods
    # Clopper and Pearson's of 2 of 3
    assert (lines[1].low, lines[1].high) == pytest.approx((0.0943, 0.9916), abs=1e-4)
    back = coco(str(tmp_path / "out/annotations.json"), str(tmp_path / "out/images"))
    assert back.classes.names == ("cat", "dog")
    assert back.category_ids == (3, 7)
    for number in range(2):
        assert back[number].boxes.boxes.tolist() == [BOX["box"], better["box"]]
        assert back[number].boxes.labels.tolist() == [0, 1]
        assert back[number].image().shape == (32, 40, 3)
    content = json.loads((tmp_path / "out/annotations.json").read_text())
    assert {(r["id"], r["file_name"], r["reason"]) for r in content["rejected"]} == {
        ("11", "in/a.jpg", "blurry"),
        ("13", "in/c.png.jpg", "blurry"),
    }


def test_without_a_stage_of_boxes_the_confirmed_suggestions_hold(boxes, tmp_path):
    review = Boxes(boxes, stages={"classification": 1})
    review.everything(
        "classification", lambda payload: {**FINE, "well_sized": payload["choices"] == ["cat"]}
    )
    with review.db.reading() as c:
        counts = export_coco(c, boxes, review.plan, tmp_path / "out")
    assert (counts["images_accepted"], counts["boxes"], counts["boxes_rejected"]) == (2, 2, 2)
    back = coco(str(tmp_path / "out/annotations.json"), str(tmp_path / "out/images"))
    assert back[0].boxes.boxes.tolist() == [[1, 2, 21, 22]]
    assert back.missing() == []


def cutting(anchors=2, k=2):
    """The source of the queue's tests, with a jump of brightness after the anchor of `v0`."""
    plain = source(anchors, k)

    def make_sample(member):
        sample = plain.sample(member)
        if member.video == "v0" and member.offset > 0:
            return type(sample)(
                sample.id,
                lambda: np.full((32, 40, 3), 200, np.uint8),
                sample.truth,
                sample.group,
                sample.tags,
            )
        return sample

    return type(plain)(plain.name, plain.classes, plain.columns, "cut", plain.members, make_sample)


def test_frames_across_a_cut_are_rejected_without_asking(tmp_path):
    draw([cutting()], tmp_path / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    review = Review(folder, stages={"pairs": 1})
    assert len(review.everything("pairs", lambda payload: YES)) == 6
    frame_verdicts = review.verdicts()
    assert [(v.accepted, v.reason) for v in frame_verdicts.values()].count(
        (False, "scene cut")
    ) == 2
    assert sum(v.accepted for v in frame_verdicts.values()) == 8
    accepted = reviewed(root=str(tmp_path / "set"))
    assert check_source(accepted)
    assert [m.offset for m in accepted.members] == [-2, -1, 0, -2, -1, 0, 1, 2]
    every = reviewed(root=str(tmp_path / "set"), review=False)
    assert [every[i].tags["accepted"] for i in range(10)] == [1, 1, 1, 0, 0] + [1] * 5


def test_a_plan_may_ask_across_cuts(tmp_path):
    draw([cutting()], tmp_path / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    review = Review(folder, stages={"pairs": 1}, across_cuts=True)
    assert len(review.everything("pairs", lambda payload: YES)) == 8
    assert sum(v.accepted for v in review.verdicts().values()) == 10


def test_reviewers_see_which_earlier_anchor_an_anchor_nearly_equals(tmp_path):
    twin = source(1)
    again = type(twin)(
        "again",
        CLASSES,
        twin.columns,
        "again",
        tuple(type(m)(f"x{m.id}", "x", "x", m.frame, m.offset, (0,)) for m in twin.members),
        lambda m: twin.sample(type(m)(m.id, m.group, "v0", m.frame, m.offset, (0,))),
    )
    draw([twin, again], tmp_path / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    payloads = {
        item.key: item.payload for item in queue.list_set_items(folder, Review(folder).plan)
    }
    assert payloads["x"]["duplicate_of"] == "v0/0"
    assert payloads["x"]["duplicate_image"] == payloads["v0/0"]["image"]
    assert "duplicate_of" not in payloads["v0/0"]


@pytest.mark.slow
def test_the_released_layout_reads_back_as_it_was(test_data, tmp_path):
    released = imagenet_vid_robust(
        root=str(test_data / "imagenet_vid_robust"), videos=["ILSVRC2015_val_00000000"]
    )
    how = Sampling("turtle", {}, released.classes)
    draw([released], tmp_path / "set", how)
    folder = review_set.read(tmp_path / "set")
    review = Review(folder, stages={"pairs": 1})
    review.rules = type(review.rules)(review.plan, released.classes.names, "")
    review.everything("pairs", lambda payload: NO if abs(payload["offset"]) > 7 else YES)
    review.everything("joint", lambda payload: NO)
    with review.db.reading() as c:
        counts = export_pmsets(c, folder, review.plan, tmp_path / "out")
    assert counts == {"anchors": 1, "frames": 15, "undecided": 0}
    again = imagenet_vid_robust(root=str(tmp_path / "out"))
    assert list(again.members) == [m for m in released.members if abs(m.offset) <= 7]
    assert again.missing() == []
    assert not (tmp_path / "out/metadata/classes.json").exists()
    for number, member in enumerate(again.members):
        original = test_data / "imagenet_vid_robust" / member.id
        assert (tmp_path / "out" / member.id).read_bytes() == original.read_bytes()
        assert np.array_equal(again[number].image(), image_file.read(original))


@pytest.mark.parametrize("closed", [False, True])
def test_other_classes_go_beside_the_released_layout(closed, tmp_path):
    classes = replace(CLASSES, closed=closed)
    draw([source()], tmp_path / "set", Sampling("set", {}, classes))
    folder = review_set.read(tmp_path / "set")
    review = Review(folder)
    review.everything("anchors", lambda payload: {"quality": "good", "labels": ["dog"]})
    review.everything("pairs", lambda payload: YES)
    with review.db.reading() as c:
        export_pmsets(c, folder, review.plan, tmp_path / "out")
    again = imagenet_vid_robust(root=str(tmp_path / "out"))
    assert again.classes.names == CLASSES.names
    # else a model is judged among other classes than on the same frames in the format set
    assert again.classes.closed is closed
    assert {m.truth for m in again.members} == {(1,)}
    assert [(m.video, m.frame, m.offset) for m in again.members] == [
        (f"val/{m.video}", m.frame, m.offset) for m in source().members
    ]


class GreyModel:
    """A model that reads the grey of a toy frame: `wrong` greys are called a dog."""

    def __init__(self, wrong):
        self.wrong = wrong
        self.name = "told"
        self.classes = Classes(("cat", "dog"))
        self.recipe = {}
        self.fingerprint = "told"

    def __call__(self, images):
        rows = [
            [0.1, 0.9] if any(abs(i.mean() - w) < 1 for w in self.wrong) else [0.9, 0.1]
            for i in images
        ]
        return np.array(rows, np.float32)


@pytest.mark.slow
def test_table_one_and_the_impact_of_a_review(tmp_path):
    # greys: anchors 20, 60, 100, 140; their neighbours 4 apart
    draw([source(4)], tmp_path / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    review = Review(folder)
    model = GreyModel([28, 52, 100, 136])
    evaluate(model, reviewed(root=str(folder.root), review=False), out=tmp_path / "run")
    (cell,) = cells(tmp_path / "run")
    predictions = read(*cell)

    def measure_review():
        with review.db.reading() as c:
            frame_verdicts = judge_frames(c, folder, review.plan)
            return measure_impact(predictions, folder, review.plan, frame_verdicts), table_one(
                c, folder, review.plan
            )

    (before, after), lines = measure_review()
    for impact in (before, after):
        assert (impact.original.value, impact.perturbed.value, impact.drop.value) == (
            0.75,
            0.0,
            0.75,
        )
    assert [(line.reviewed, line.accepted) for line in lines] == [(0, 0), (None, 0), (0, 0)]
    answers = {"v2": {"quality": "bad"}, "v3": {"quality": "good", "labels": ["cat", "dog"]}}
    review.everything("anchors", lambda payload: answers.get(payload["video"], GOOD))
    review.everything("pairs", lambda s: NO if (s["video"], s["offset"]) == ("v0", 2) else YES)
    (_, after), _ = measure_review()
    assert after.original.n == 3  # v0's doubted frame is not decided and stays: v0 and v1 break
    assert after.perturbed.value == pytest.approx(1 / 3)
    review.everything("joint", lambda payload: NO)
    (before, after), lines = measure_review()
    assert before.perturbed.value == 0.0
    assert (after.original.value, after.perturbed.value) == (1.0, pytest.approx(2 / 3))
    assert after.drop.value == pytest.approx(1 / 3)
    assert after.neighbours == 11
    assert [(line.item, line.reviewed, line.accepted) for line in lines] == [
        ("anchor frames", 4, 3),
        ("anchor labels updated", None, 1),
        ("frame pairs", 12, 11),
    ]
    words = ("review-status", folder.root, "--runs", tmp_path / "run", *review.option)
    done = steadyeye(*words, check=True)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "0.0 % 0.0–60.2 % 4 pm-2 without told" in lines
    assert "33.3 % 0.8–90.6 % 3 drop with told" in lines
    with review.db.reading() as c:
        export_set(c, folder, review.plan, tmp_path / "out")
    evaluate(model, reviewed(root=str(tmp_path / "out")), out=tmp_path / "final")
    (cell,) = cells(tmp_path / "final")
    assert pm_k(read(*cell)).value == after.perturbed.value


@pytest.mark.slow
def test_runs_of_other_frames_are_refused(tmp_path):
    for name, anchors in (("set", 3), ("other", 2)):
        how = Sampling(name, {}, CLASSES)
        draw([source(anchors)], tmp_path / name, how)
    review = Review(review_set.read(tmp_path / "set"))
    evaluate(GreyModel([]), reviewed(root=str(tmp_path / "other")), out=tmp_path / "run")
    (cell,) = cells(tmp_path / "run")
    with pytest.raises(UsageError, match="the run of told lacks 5 of 15 frames of set, first"):
        measure_impact(read(*cell), review.folder, review.plan, review.verdicts())


@pytest.mark.slow
def test_the_command_line_from_candidates_to_status(tmp_path):
    path, images, *_ = write(tmp_path, candidates())

    def run(*words):
        done = steadyeye(*words, cwd=tmp_path)
        return done.returncode, done.stdout + done.stderr

    code, output = run("sample", "--boxes", path, "--images", images, "--out", "set", "--quiet")
    assert (code, output.splitlines()[0]) == (
        0,
        "set: 4 boxes in 3 images; next: steadyeye review set",
    )
    assert run("sample", "--out", "other")[1].startswith(
        "steadyeye: nothing to sample; give videos"
    )
    assert "takes --boxes and --images" in run("sample", "--boxes", path, "--out", "other")[1]
    review = Boxes(review_set.read(tmp_path / "set"), 2, stages={"classification": 5, "boxes": 1})
    for number in range(2):
        review.everything("classification", lambda payload: FINE, number)
    code, output = run("review-status", "set", *review.option)
    assert code == 0
    assert "suggested boxes" in output
    assert "r0" in output
    code, output = run("review-status", "set", "--format", "json", *review.option)
    assert json.loads(output)["set"] == "set"
    code, output = run("review-export", "set", "--out", "out", "--format", "csv")
    assert (code, output) == (2, "steadyeye: no format named 'csv'; did you mean 'cvat'?\n")
    code, output = run("review-export", "set", "--out", "out", "--partial", *review.option)
    assert code == 0
    assert "undecided: 3" in output
    assert next(itertools.islice(reversed(output.splitlines()), 1)).startswith(
        "next: steadyeye run"
    )
