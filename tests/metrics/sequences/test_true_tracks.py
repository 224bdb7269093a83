"""True tracks: states, delays, Zhang and Wang's errors and trackers' scores against plain loops."""

import itertools
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

from steadyeye import testing
from steadyeye.core.boxes import Detections, boxes, detection_table, take, truth_table
from steadyeye.core.errors import UsageError
from steadyeye.core.stats.bounded_means import intervals
from steadyeye.core.types import Evaluated
from steadyeye.metrics.center_position_error import center_position_error
from steadyeye.metrics.detection_delay import detection_delay
from steadyeye.metrics.fragment_error import fragment_error
from steadyeye.metrics.object_recall import object_recall
from steadyeye.metrics.pm_k_map import pm_k_map
from steadyeye.metrics.scale_and_ratio_error import scale_and_ratio_error
from steadyeye.metrics.sequences.true_tracks import FOUND, LOST, RENAMED, WEAKLY_FOUND, follow
from steadyeye.metrics.true_blink_rate import true_blink_rate
from steadyeye.metrics.true_detection_delay import true_detection_delay
from steadyeye.metrics.window_map import window_map
from steadyeye.report.analyses.lost_tracks import lost_tracks

FRAMES = 14


def film(truth, answers, frames=FRAMES):
    """Two videos at 10 frames a second; `truth(v, f)`: (box, label, track) or with a fourth, crowd.

    `answers(v, f)`: (box, label, score).
    """
    table = testing.example_video(frames)
    true, detected = [], []
    for video, frame in zip(table.tags["video"], table.tags["frame"], strict=True):
        some = [(*item, False)[:4] for item in truth(video, int(frame))]
        corners, labels, tracks, crowd = ([item[i] for item in some] for i in range(4))
        true.append(boxes(corners, labels, crowd, track=tracks))
        items = answers(video, int(frame))
        corners = np.array([item[0] for item in items], dtype=float).reshape(-1, 4)
        detected.append(
            Detections(
                corners,
                np.array([item[1] for item in items], dtype=np.int32),
                np.array([item[2] for item in items], dtype=float),
            )
        )
    answers_table = detection_table(detected)
    return replace(
        table,
        columns=(*table.columns, "truth", "boxes", "detections", "tracks"),
        boxes=truth_table(true),
        detections=answers_table,
        raw_detections=answers_table,
        model_to_data_class=np.arange(3),
    )


def square(x, side=40.0):
    return (x, 20.0, x + side, 20.0 + side)


def test_states_and_numbers_by_hand():
    """v0: an object found, then of another class, below the threshold, gone; v1: found late."""

    def truth(video, frame):
        return (
            [(square(100), 0, 7)] if video == "v0" else [(square(200), 1, 7)] if frame > 3 else []
        )

    def answers(video, frame):
        if video == "v1":
            return [(square(205), 1, 0.9)] if frame >= 6 else []
        label, score = (1, 0.9) if frame == 5 else (0, 0.3) if frame == 6 else (0, 0.9)
        return [] if frame in (7, 8) else [(square(102), label, score)]

    table = film(truth, answers)
    objects = follow(table)
    assert objects.video.tolist() == ["v0", "v1"]
    expected = [FOUND] * 5 + [RENAMED, WEAKLY_FOUND, LOST, LOST] + [FOUND] * 5
    assert objects.state[objects.track == 0].tolist() == expected
    assert objects.state[objects.track == 1].tolist() == [LOST, LOST] + [FOUND] * 8
    recall = object_recall(table)
    assert (recall.value, recall.n) == (pytest.approx((10 / 14 + 8 / 10) / 2), 2)
    parts = {cell.name: cell.value for cell in recall.cells}
    assert parts["another class"] == pytest.approx(1 / 14 / 2)
    assert parts["below the threshold"] == pytest.approx(1 / 14 / 2)
    assert parts["not found"] == pytest.approx((2 / 14 + 2 / 10) / 2)
    assert true_blink_rate(table).value == pytest.approx(4 / (14 + 8))
    assert fragment_error(table).value == pytest.approx((2 / 13 + 1 / 9) / 2)
    assert center_position_error(table).value == pytest.approx(0, abs=1e-12)
    # 0 s of one object, 0.2 s of the other: by the first of them half are found
    delay = true_detection_delay(table)
    assert (delay.value, delay.n, delay.unit) == (0.0, 2, "seconds")


def test_a_score_in_single_precision_reaches_its_own_threshold():
    table = film(
        lambda video, frame: [(square(100), 0, 7)],
        lambda video, frame: [(square(100), 0, np.float32(0.7))],
    )
    recall = object_recall(table, score=0.7)
    assert (recall.value, recall.n) == (1.0, 2)


def test_objects_that_the_model_cannot_name_are_left_out_and_other_data_refused():
    def truth(video, frame):
        return [(square(100), 0, 1), (square(300), 2, 2), (square(500), 0, 3, True)]

    table = film(truth, lambda video, frame: [(square(100), 0, 0.9), (square(500), 0, 0.9)])
    without = replace(table, model_to_data_class=np.array([0, 1, -1]))
    assert len(follow(without)) == 2
    assert object_recall(without).notes == (
        "2 objects left out: of classes that the model does not have",
    )
    assert object_recall(table).value == 0.5
    with pytest.raises(UsageError, match="has no true tracks"):
        object_recall(testing.example_detections())
    with pytest.raises(UsageError, match=r"score=1: give a score between"):
        object_recall(table, score=1)
    nothing = film(lambda video, frame: [], lambda video, frame: [])
    for metric in (object_recall, true_blink_rate, true_detection_delay, fragment_error):
        assert metric(nothing).value is None, metric.__name__
    assert window_map(nothing, k=1).value is None


def test_two_boxes_that_match_go_before_one_that_matches_better():
    """Both detections lie on the first object, one on the second as well."""

    def answers(video, frame):
        return [(square(100), 0, 0.9), (square(90), 0, 0.8)]

    table = film(lambda v, f: [(square(98), 0, 1), (square(112), 0, 2)], answers)
    assert (follow(table).state == FOUND).all()


def naive_errors(table, score=0.5):
    """Zhang and Wang's errors, object by object in plain Python, matched by trying all ways."""
    histories = {}
    truth, raw = table.boxes, table.raw_detections
    for row in range(len(table)):
        video, frame = str(table.tags["video"][row]), int(table.tags["frame"][row])
        true = [i for i in range(len(truth)) if truth.image[i] == row]
        near = [i for i in range(len(raw)) if raw.image[i] == row and raw.score[i] >= score]
        best, chosen = (0, 0.0), {}
        for picks in itertools.product([None, *near], repeat=len(true)):
            used = [pick for pick in picks if pick is not None]
            if len(set(used)) < len(used):
                continue
            pairs = [(t, d) for t, d in zip(true, picks, strict=True) if d is not None]
            overlaps = [overlap(truth.boxes[t], raw.boxes[d]) for t, d in pairs]
            same = all(truth.label[t] == raw.label[d] for t, d in pairs)
            if not same or min(overlaps, default=1) < 0.5:
                continue
            if (len(pairs), sum(overlaps)) > best:
                best, chosen = (len(pairs), sum(overlaps)), dict(pairs)
        for t in true:
            histories.setdefault((video, int(truth.track[t])), []).append(
                (frame, truth.boxes[t], raw.boxes[chosen[t]] if t in chosen else None)
            )
    fragments, centres, scales = [], [], []
    for unsorted in histories.values():
        entries = [entry for _, *entry in sorted(unsorted, key=lambda entry: entry[0])]
        hits = [detection is not None for _, detection in entries]
        changes = sum(a != b for a, b in itertools.pairwise(hits))
        if len(entries) > 1:
            fragments.append(changes / (len(entries) - 1))
        ex, ey, es, er = [], [], [], []
        for true, detection in entries:
            if detection is None:
                continue
            (gx, gy, gw, gh), (px, py, pw, ph) = map(describe, (true, detection))
            ex.append((px - gx) / gw)
            ey.append((py - gy) / gh)
            es.append(math.sqrt(pw * ph / (gw * gh)))
            er.append((pw / ph) / (gw / gh))
        if len(ex) > 1:
            centres.append(statistics.pstdev(ex) + statistics.pstdev(ey))
            scales.append(statistics.pstdev(es) + statistics.pstdev(er))
    return fragments, centres, scales


def describe(box):
    x0, y0, x1, y1 = map(float, box)
    return (x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0


def overlap(a, b):
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = wide * high
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


@pytest.mark.parametrize("seed", range(4))
def test_errors_are_those_of_zhang_and_wang(seed):
    rng = np.random.default_rng(seed)

    def truth(video, frame):
        some = range(3) if frame % 5 else range(2)
        return [(square(60 + 25 * n + 3 * frame), n % 2, n) for n in some]

    def answers(video, frame):
        objects = []
        for n in range(3):
            if rng.random() < 0.8:
                box = np.add(square(60 + 25 * n + 3 * frame), rng.normal(0, 4, 4))
                objects.append((box, rng.integers(0, 2) if rng.random() < 0.3 else n % 2, 0.9))
        return objects

    table = film(truth, answers)
    metrics = (fragment_error, center_position_error, scale_and_ratio_error)
    for metric, values in zip(metrics, naive_errors(table), strict=True):
        result = metric(table)
        assert (result.value, result.n) == (pytest.approx(statistics.mean(values)), len(values))


def test_notes_say_why_objects_have_no_error():
    """One object is in a single frame, one is found in a single one of its frames."""

    def truth(video, frame):
        return [(square(100), 0, 1)] * (frame == 4) + [(square(200), 0, 2)]

    def answers(video, frame):
        return [(square(100), 0, 0.9)] + [(square(200), 0, 0.9)] * (frame == 6)

    table = film(truth, answers)
    assert fragment_error(table).n == 2
    assert fragment_error(table).notes == ("2 objects left out: in fewer than two frames",)
    assert center_position_error(table).notes == (
        "4 objects left out: found in fewer than two frames",
    )


def test_bounds_hold_for_the_worst_boxes():
    """No detection with an IoU of 0.5 moves the errors beyond the bounds of their intervals."""
    rng = np.random.default_rng(0)
    true = np.array([0.0, 0, 1, 1])
    for _ in range(20000):
        w, h, x, y = rng.uniform([0.4, 0.4, -1, -1], [2.5, 2.5, 1, 1])
        box = np.array([x, y, x + w, y + h])
        if overlap(true, box) >= 0.5:
            assert abs(x + w / 2 - 0.5) <= 0.5
            assert 0.5 <= w * h <= 2
            assert 1 / 2.25 <= w / h <= 2.25


def test_delay_without_labels_goes_back_over_weak_boxes():
    """Weak from frame 3 on, detected from frame 7: 0.4 s; what is there from the start is not."""

    def answers(video, frame):
        score = 0.2 if frame < 7 else 0.9
        objects = [(square(100 + 2 * frame), 0, score)] if frame >= 3 else []
        return [*objects, (square(400), 1, 0.9)]

    result = detection_delay(film(lambda v, f: [], answers))
    assert (result.value, result.n) == (pytest.approx(0.4), 2)
    assert result.notes == ("2 objects left out: present from the first frame of a scene on",)


def test_worst_frames_of_sequences_are_those_of_pm_sets():
    """As pm_k_map on the same frames as sets, each a row of its own."""
    table = testing.example_true_tracks(frames=12)
    rows, offsets, sets = [], [], []
    frame, video = table.tags["frame"], table.tags["video"]
    for anchor in range(len(table)):
        for row in range(len(table)):
            if video[row] == video[anchor] and abs(frame[row] - frame[anchor]) <= 3:
                rows.append(row)
                offsets.append(frame[row] - frame[anchor])
                sets.append(f"s{anchor}")

    def repeat(boxes_table):
        parts = [np.flatnonzero(boxes_table.image == row) for row in rows]
        copied = take(boxes_table, np.concatenate(parts))
        return replace(copied, image=np.repeat(np.arange(len(rows)), [len(p) for p in parts]))

    picked = testing._rows(table, np.array(rows))
    as_sets = replace(
        picked,
        groups=np.array(sets),
        ids=np.array([f"{s}/{r}" for s, r in zip(sets, rows, strict=True)]),
        tags={**picked.tags, "offset": np.array(offsets)},
        columns=("group", "offset", "video", "frame", "truth", "boxes", "detections"),
        boxes=repeat(table.boxes),
        detections=repeat(table.detections),
    )
    assert window_map(table, k=3).value == pytest.approx(pm_k_map(as_sets, k=3).value)


def test_the_section_says_what_goes_with_losing_objects():
    """Small objects are lost; they are also those that move most for their size."""
    rng = np.random.default_rng(1)

    def truth(video, frame):
        return [(square(30 + 90 * n + 2 * frame, 20 + 10 * n), 0, n) for n in range(6)]

    def answers(video, frame):
        objects = truth(video, frame)
        hits = rng.random(6) < [0.5, 0.6, 0.7, 0.8, 0.9, 0.97]
        return [(box, 0, 0.9) for (box, _, _), keep in zip(objects, hits, strict=True) if keep]

    table = film(truth, answers, frames=60)
    section = lost_tracks([Evaluated(table, {"object_recall": object_recall(table)})])
    assert "Losing an object is most clearly related to" in section.text[0]
    odds = {row[0]: row for row in section.tables[1].rows}
    assert odds["share covered by other objects"][2] == "—"
    low = float(odds["size"][2].split("–")[1].rstrip(")"))
    assert low < 1
    assert lost_tracks([Evaluated(table, {})]) is None


def test_trackers_scores_are_those_of_trackeval():
    from steadyeye.metrics.hota import hota
    from steadyeye.metrics.idf1 import idf1

    def truth(video, frame):
        return [(square(100 + frame), 0, 1), (square(300), 1, 2), (square(500), 2, 3, True)]

    def perfect(video, frame):
        return [(square(100 + frame), 0, 0.9), (square(300), 1, 0.9), (square(500), 2, 0.9)]

    assert hota(film(truth, perfect)).value == pytest.approx(1)
    assert idf1(film(truth, perfect)).value == 1

    def worse(video, frame):
        """The second object is of another class from frame 7 on: half of its frames are lost."""
        return [(square(100 + frame), 0, 0.9), (square(300), 1 if frame < 7 else 2, 0.9)]

    # of 2 · 28 true boxes 2 · 21 have the identity of their object; 2 · 28 are detected
    assert idf1(film(truth, worse)).value == pytest.approx(2 * 42 / (56 + 56))
    assert 0.4 < hota(film(truth, worse)).value < 0.9
    for metric in (hota, idf1):
        assert testing.check_metric(metric, testing.example_true_tracks())
        # a video of two frames a second, in which nothing is followed, does not count as missed
        table = film(truth, worse)
        slow = np.asarray(table.tags["video"]) == "v1"
        seconds = np.where(slow, 5 * table.tags["seconds"], table.tags["seconds"])
        mixed = metric(replace(table, tags={**table.tags, "seconds": seconds}))
        assert (mixed.value, mixed.n) == (pytest.approx(metric(table).value), 2)
        assert "1 scene left out" in mixed.notes[0]


def test_trackers_scores_over_videos_and_classes_are_those_of_trackeval():
    trackeval = pytest.importorskip("trackeval")
    from steadyeye.metrics.hota import hota
    from steadyeye.metrics.idf1 import idf1
    from steadyeye.metrics.sequences.track_evaluation import list_sequences

    def truth(video, frame):
        return [(square(100 + frame), 0, 1), (square(300), 1, 2), (square(500), 1, 3)]

    def answers(video, frame):
        every = truth(video, frame)[: 3 if video == "v0" else 2]
        return [(box, label, 0.9) for box, label, track in every if (frame + track) % 5]

    table = film(truth, answers)
    for metric, judge, field in (
        (hota, trackeval.metrics.HOTA, "HOTA"),
        (idf1, trackeval.metrics.Identity, "IDF1"),
    ):
        own = judge({"PRINT_CONFIG": False})
        parts = [own.eval_sequence(data) for _, data in list_sequences(table, 0.5)]
        every = own.combine_sequences({str(i): part for i, part in enumerate(parts)})
        result = metric(table)
        assert len(parts) == 4
        assert result.value == pytest.approx(np.mean(every[field]), abs=1e-12)
        assert result.interval == "Gaffke's bounds over 2 videos"
    sums = [[2 * part["IDTP"], 2 * part["IDTP"] + part["IDFN"] + part["IDFP"]] for part in parts]
    by_video = np.array(sums, dtype=float).reshape(2, 2, 2).sum(axis=1)
    low, high = intervals(by_video[None, :, 0], by_video[None, :, 1])
    assert (result.low, result.high) == pytest.approx((low[0], high[0]), abs=0.02)


@pytest.mark.parametrize("videos", [3, 5, 20])
def test_the_bounds_of_trackers_scores_hold(videos):
    """Of 5 videos with other errors each the bootstrap had IDF1 below its lower end in 9 of 100."""
    from steadyeye.metrics.sequences.track_evaluation import TrackShare, bound_mean

    rng = np.random.default_rng(0)
    whole = rng.choice([20.0, 60.0, 300.0], (400, 1))
    right = whole * rng.beta(2, 1, (400, 1))
    true = right.sum() / whole.sum()
    names = [f"v{number}" for number in range(videos)]

    def sample():
        some = rng.integers(0, 400, videos)
        return bound_mean([TrackShare(right[v], whole[v], 1) for v in some], names)

    samples = [sample() for _ in range(150)]
    assert sum(own.low > true for own in samples) <= 8
    assert sum(own.high < true for own in samples) <= 8


def test_of_one_video_objects_are_no_frames_and_classes_no_sample():
    """The interval of a tracker's score was a bootstrap over the classes of the only video."""
    pytest.importorskip("trackeval")
    from steadyeye.metrics.hota import hota
    from steadyeye.metrics.idf1 import idf1

    def truth(video, frame):
        return [(square(100 * n), n, n) for n in range(4)]

    def answers(video, frame):
        return [(square(100 * n), n, 0.9) for n in range(4) if (frame + n) % 5]

    both = replace(film(truth, answers), model_to_data_class=np.arange(4))
    table = replace(both, tags={**both.tags, "video": np.repeat("v0", 2 * FRAMES)})
    for metric in (hota, idf1):
        result = metric(table)
        assert 0 < result.value < 1
        assert (result.low, result.high) == (None, None), result.interval
    for metric in (object_recall, fragment_error):
        assert metric(table).interval == (
            "Gaffke's bounds over 4 objects, within this one video only"
        )
