"""Boxes on the frames of videos: order of questions, tracks between frames, and export."""

import json
import shutil
import time

import pytest
from review_boxes import Boxes
from review_exports import VIDEOS, draw_moving, sample_videos
from sqlalchemy import update

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.data.sources.mot import mot
from steadyeye.review.database import assignments
from steadyeye.review.interchange import cvat, label_studio
from steadyeye.review.interchange.answers import import_annotations, list_answered
from steadyeye.review.interchange.coco import export_coco
from steadyeye.review.interchange.tracks import export_mot
from steadyeye.review.protocol.stages import check_boxes, read_plan
from steadyeye.review.workflow.sequences import find_nearby, interpolate_tracks, order_frames


@pytest.fixture
def folder(tmp_path):
    return sample_videos(tmp_path)


def review(folder, reviewers=1, **settings):
    return Boxes(folder, reviewers, stages={"boxes": 1}, **settings)


def place(payload):
    sequence = payload["sequence"]
    return sequence["name"], sequence["frame"]


def test_key_frames_come_first_then_those_between_by_the_numbers_in_their_names():
    names = {f"i{n}": f"clip/{n}.jpg" for n in (10, 2, 1, 9, 3)}
    places = order_frames(names, 3)
    assert [places[f"i{n}"].frame for n in (1, 2, 3, 9, 10)] == [0, 1, 2, 3, 4]
    assert [places[f"i{n}"].key for n in (1, 2, 3, 9, 10)] == [True, False, False, True, True]
    assert [places[f"i{n}"].turn for n in (1, 9, 10, 2, 3)] == [0, 1, 2, 3, 4]


def test_each_video_is_drawn_by_one_person_in_order(folder):
    boxes = review(folder, 2, key_frames=3)
    first = place(boxes.next("boxes", 0)[0].payload)[0]
    places = {number: [] for number in (0, 1)}
    for _ in range(4):  # the two take turns
        for number in (1, 0):
            (served,) = boxes.next("boxes", number)
            boxes.say(served, draw_moving(served.payload), number)
            places[number].append(place(served.payload))
    assert [{name for name, _ in own} for own in places.values()] == [{first}, {"a", "b"} - {first}]
    rest = boxes.everything("boxes", draw_moving, 0) + boxes.everything("boxes", draw_moving, 1)
    orders = {"a": [0, 3, 6, 7, 1, 2, 4, 5], "b": [0, 3, 1, 2]}
    every = [*places[0], *places[1], *map(place, rest)]
    assert {name: [n for video, n in every if video == name] for name in orders} == orders
    assert [place(payload) for payload in rest] == [("a", n) for n in (1, 2, 4, 5)]


def test_a_video_is_free_for_others_once_nobody_was_at_it_for_long(folder):
    boxes = review(folder, 3, key_frames=1)
    left = boxes.next("boxes", 0)[0]
    boxes.next("boxes", 1)
    assert boxes.next("boxes", 2) == []
    with boxes.db.writing() as c:
        old = update(assignments).where(assignments.c.id == left.assignment)
        c.execute(old.values(made_at=time.time() - 3600))
    assert place(boxes.next("boxes", 2)[0].payload) == place(left.payload)


def test_images_are_asked_in_random_order_by_default(folder):
    payloads = review(folder).everything("boxes", lambda payload: {"boxes": []})
    assert len(payloads) == sum(VIDEOS.values())
    assert not any("sequence" in payload for payload in payloads)


def test_between_two_key_frames_tracks_lie_on_a_line(folder):
    boxes = review(folder, 2, key_frames=7)
    near = []

    def draw(payload):
        answer = draw_moving(payload)
        return {"boxes": answer["boxes"][:1]} if place(payload) == ("a", 0) else answer

    who = boxes.who(0).id
    while served := boxes.next("boxes", 0):
        with boxes.db.reading() as c:
            near.append((place(served[0].payload), find_nearby(c, who, served[0].assignment)))
            assert find_nearby(c, boxes.who(1).id, served[0].assignment) is None
        boxes.say(served[0], draw(served[0].payload), 0)
    near = dict(near)
    assert near["a", 0] == {"before": None, "after": None, "between": []}
    assert near["a", 7]["before"]["frame"] == 0
    assert (near["a", 1]["before"]["frame"], near["a", 1]["after"]["frame"]) == (0, 7)
    # the second track begins after frame 0: it is on no line yet
    assert near["a", 1]["between"] == draw({"sequence": {"name": "a", "frame": 1}})["boxes"][:1]
    assert near["a", 2]["between"] == draw_moving({"sequence": {"name": "a", "frame": 2}})["boxes"]
    assert near["b", 2]["before"]["frame"] == 1


def test_lines_are_straight_and_need_both_ends():
    before = [
        {"box": [0.0, 0.0, 10.0, 10.0], "label": "car", "track": 4},
        {"box": [0.0, 0.0, 1.0, 1.0], "label": "car"},
    ]
    after = [
        {"box": [30.0, 6.0, 50.0, 16.0], "label": "person", "track": 4},
        {"box": [0.0, 0.0, 1.0, 1.0], "label": "car", "track": 5},
    ]
    assert interpolate_tracks(before, after, 1 / 3) == [
        {"box": [10.0, 2.0, 23.33, 12.0], "label": "car", "track": 4}
    ]


def test_track_numbers_are_checked():
    box = {"box": [0, 0, 2, 2], "label": "car"}
    assert check_boxes({"boxes": [{**box, "track": 7}, box]}, ["car"])["boxes"][0]["track"] == 7
    for track in (0, -1, 1.5, "7", True, 2**31):
        with pytest.raises(UsageError, match="give a whole number from 1"):
            check_boxes({"boxes": [{**box, "track": track}]}, ["car"])
    with pytest.raises(UsageError, match="two boxes are of track 7"):
        check_boxes({"boxes": [{**box, "track": 7}] * 2}, ["car"])
    for value in (-1, 1.5, True, "2"):
        with pytest.raises(UsageError, match=r"review.key_frames is"):
            read_plan({"kind": "boxes", "review": {"key_frames": value}})


@pytest.fixture
def finished(folder):
    """A review of the videos in which a second person dropped the car of frame 2 of `b`."""
    boxes = review(folder, 2, key_frames=3)
    boxes.everything("boxes", draw_moving, 0)

    def mend(payload):
        dropped = place(payload) == ("b", 2)
        return {"boxes": payload["boxes"][: 1 if dropped else 2]}

    assert len(boxes.everything("box_check", mend, 1)) == 12
    return boxes


def test_tracks_are_part_of_coco(finished, tmp_path):
    with finished.db.reading() as c:
        export_coco(c, finished.folder, finished.plan, tmp_path / "out")
    content = json.loads((tmp_path / "out/annotations.json").read_text())
    assert content["videos"] == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    images = {image["id"]: image for image in content["images"]}
    by_track = {}
    for box in content["annotations"]:
        image = images[box["image_id"]]
        assert image["file_name"] == f"{'ab'[image['video_id'] - 1]}/{image['frame_id']}.jpg"
        by_track.setdefault(box["track_id"], []).append((image["video_id"], box["category_id"]))
    assert {track: (len(own), *set(own)) for track, own in by_track.items()} == {
        1: (8, (1, 1)),
        2: (8, (1, 2)),
        3: (4, (2, 1)),
        4: (3, (2, 2)),
    }


def test_tracks_are_written_as_motchallenge_and_read_back(finished, tmp_path):
    with finished.db.reading() as c:
        counts = export_mot(c, finished.folder, finished.plan, tmp_path / "out")
    assert counts == {"videos": 2, "frames": 12, "boxes": 23, "tracks": 4, "undecided": 0}
    lines = (tmp_path / "out/b/gt/gt.txt").read_text().splitlines()
    assert lines[:2] == ["1,3,2.00,3.00,4.00,7.00,1,1,1", "1,4,4.00,5.00,6.00,5.00,1,2,1"]
    assert lines[4:] == ["3,3,6.00,3.00,4.00,7.00,1,1,1", *lines[5:]]
    assert (tmp_path / "out/labels.txt").read_text() == "person\ncar\nood\n"
    back = mot(root=str(tmp_path / "out"), anchors="all", k=1)
    assert {member.video for member in back.members} == {"a", "b"}
    sample = next(back[n] for n, m in enumerate(back.members) if (m.video, m.frame) == ("b", 2))
    assert sample.boxes.boxes.tolist() == [[5.0, 2.0, 9.0, 9.0]]
    assert back.classes.names == ("person", "car")
    both = next(back[n] for n, m in enumerate(back.members) if (m.video, m.frame) == ("b", 0))
    assert both.boxes.labels.tolist() == [0, 1]


def test_a_set_without_videos_is_no_motchallenge(folder, tmp_path):
    boxes = review(folder)
    with boxes.db.reading() as c, pytest.raises(UsageError, match="set key_frames"):
        export_mot(c, folder, boxes.plan, tmp_path / "out")
    boxes = review(folder, 0, key_frames=1)
    with (
        boxes.db.reading() as c,
        pytest.raises(UsageError, match="12 of 12 images not decided"),
    ):
        export_mot(c, folder, boxes.plan, tmp_path / "out")


@pytest.mark.parametrize("form", [label_studio, cvat])
def test_tracks_come_back_from_other_tools(finished, tmp_path, form):
    def find_boxes(review):
        with review.db.reading() as c:
            return [
                (row.key, decision.answer)
                for stage in ("boxes", "box_check")
                for row in list_answered(c, stage)
                for decision in row.decisions
            ]

    with finished.db.reading() as c:
        form.export_tasks(c, finished.folder, finished.plan, tmp_path / "out")
    ignored = shutil.ignore_patterns("review.sqlite*")
    shutil.copytree(finished.folder.root, tmp_path / "again", ignore=ignored)
    other = review(review_set.read(tmp_path / "again"), 0, key_frames=3)
    files = [
        *(tmp_path / "out").rglob("*.results.json"),
        *(tmp_path / "out").rglob("results/*.xml"),
    ]
    for file in sorted(files, key=lambda file: "box_check" in str(file)):
        with other.db.writing() as c:
            import_annotations(c, other.rules, form.read_annotations(other.folder, file))
    assert sorted(find_boxes(other), key=str) == sorted(find_boxes(finished), key=str)
    assert len(find_boxes(other)) == 24
