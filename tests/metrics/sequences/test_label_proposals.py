"""Labels from steady objects: which objects propose, over which frames, and a set made of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from test_true_tracks import film, square

from steadyeye.core.errors import UsageError
from steadyeye.data.video import label_sidecar
from steadyeye.metrics.sequences.label_proposals import Proposal, list_ranges, propose_labels
from steadyeye.testing import example_detections

FRAMES = 30
"""Of each of two videos, at 10 frames a second."""


def answers(video, frame):
    """v0: one from frame 5 on, one that is renamed once, one that is unsure; v1: a short one."""
    if video == "v1":
        return [(square(100), 1, 0.9)] if frame < 8 else []
    objects = [(square(100 + frame), 0, 0.9)] if frame >= 5 else []
    return [*objects, (square(300), 1 if frame == 9 else 2, 0.9), (square(500), 1, 0.6)]


def test_only_long_sure_objects_of_one_class_propose():
    table = film(lambda video, frame: [], answers, FRAMES)
    (proposal,) = propose_labels(table)
    assert (proposal.video, proposal.first, proposal.last) == ("v0", 5, 29)
    assert (proposal.label, proposal.frames) == (table.model_classes[0], 25)
    assert proposal.score == pytest.approx(0.9)
    assert {candidate.label for candidate in propose_labels(table, sure=0.5)} == set(
        table.model_classes[:2]
    )
    assert len(propose_labels(table, seconds=0.5)) == 2
    with pytest.raises(UsageError, match="give seconds above 0"):
        propose_labels(table, seconds=0)


@pytest.mark.parametrize("start", range(15))
def test_an_object_of_exactly_the_minimum_time_and_score_proposes_a_label(start):
    """0.9 + 1.0 − 0.9 is less than 1, and a model's 0.7 less than 0.7."""

    def steady(video, frame):
        is_in_view = start <= frame <= start + 10 and video == "v0"
        return [(square(100), 0, float(np.float32(0.7)))] if is_in_view else []

    (proposal,) = propose_labels(film(lambda video, frame: [], steady, FRAMES))
    assert (proposal.first, proposal.last) == (start, start + 10)


@pytest.mark.parametrize("frames", [20, 40, 60, 100])
def test_an_object_that_is_lost_in_exactly_the_most_frames_proposes_a_label(frames):
    """One frame of twenty: 1 − 19 / 20 is more than 0.05."""

    def blinking(video, frame):
        is_lost = video == "v1" or frame >= frames or frame % 20 == 9
        return [] if is_lost else [(square(100), 0, 0.9)]

    (proposal,) = propose_labels(film(lambda video, frame: [], blinking, frames + 5))
    assert (proposal.first, proposal.last) == (0, frames - 1)


def test_an_object_that_is_lost_too_often_proposes_nothing():
    def blinking(video, frame):
        return [] if frame % 10 == 5 else [(square(100), 0, 0.9)]

    assert propose_labels(film(lambda video, frame: [], blinking, FRAMES)) == []


def test_ranges_hold_all_labels_of_their_frames(tmp_path):
    proposals = [
        Proposal("a.mp4", 0, 9, "dog", 10, 0.9, "a/5"),
        Proposal("a.mp4", 5, 19, "cat", 15, 0.9, "a/12"),
        Proposal("b.mp4", 3, 3, "dog", 1, 0.9, "b/3"),
    ]
    ranges = list_ranges(proposals)
    assert ranges == {
        "a.mp4": [(0, 4, ["dog"]), (5, 9, ["cat", "dog"]), (10, 19, ["cat"])],
        "b.mp4": [(3, 3, ["dog"])],
    }
    by_frame = np.zeros(20, dtype=int)
    for first, last, labels in ranges["a.mp4"]:
        by_frame[first : last + 1] += len(labels)
    assert by_frame.tolist() == [1] * 5 + [2] * 5 + [1] * 10


def test_the_command_writes_a_sidecar_that_sample_takes(tmp_path, monkeypatch, capsys):
    from steadyeye.cli import sample as module
    from steadyeye.runner import collect

    table = film(lambda video, frame: [], answers, FRAMES)
    monkeypatch.setattr(collect, "tables", lambda runs: [(runs[0], replace(table))])
    out = tmp_path / "proposed.json"
    module.propose("runs/a", out)
    assert json.loads(out.read_text())["videos"]["v0"]["labels"][0]["first"] == 5
    known = label_sidecar.read(str(out))
    assert known.classes.names == (table.model_classes[0],)
    assert [known.of("v0").at(frame) for frame in (4, 5, 29)] == [(), (0,), (0,)]
    with pytest.raises(UsageError, match=r"no object of 'runs/a' is followed for 9 s"):
        module.propose("runs/a", out, seconds=9)


def test_the_command_refuses_a_video_that_was_predicted_twice(tmp_path, monkeypatch):
    """The labels of two detectors, or of two videos of one name, would be joined."""
    from steadyeye.cli import sample as module
    from steadyeye.runner import collect

    table = film(lambda video, frame: [], answers, FRAMES)
    second = replace(table, data="other")
    monkeypatch.setattr(collect, "tables", lambda runs: [(runs[0], table), (runs[0], second)])
    with pytest.raises(UsageError, match=r"'v0' of 'runs/a' was predicted by several detectors"):
        module.propose("runs/a", tmp_path / "proposed.json")
    assert not (tmp_path / "proposed.json").exists()


def test_labels_are_proposed_from_videos_alone():
    with pytest.raises(UsageError, match="run a detector on a video"):
        propose_labels(example_detections())
