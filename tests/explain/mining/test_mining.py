"""Confident mistakes: causes by hand and against a slow reference, ranked by novelty."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from mining_toys import ANIMAL, BEAR, CAR, CLASSES, KITE, OWN, PARENTS, REACH, table

from steadyeye.core.boxes import OOD, BoxTable, Detections, Verified, areas, detection_table
from steadyeye.core.errors import UsageError
from steadyeye.data.classes.class_map import ancestors, descendants
from steadyeye.explain.mining import causes
from steadyeye.explain.mining.candidates import GAP, candidates, tracks
from steadyeye.explain.mining.causes import (
    CAUSES,
    IN_CROWD,
    RIGHT,
    find_known_classes,
    find_relatives,
    judge_detections,
)
from steadyeye.explain.mining.crops import (
    ALIKE,
    farthest_first,
    find_first_alike,
    novelty,
    thumbnails,
)
from steadyeye.explain.mining.mistakes import OUTSIDE
from steadyeye.metrics.detection.frame_ap import outside
from steadyeye.metrics.map_without_ood import map_without_ood

BOX, HALF, AWAY = [0, 0, 10, 10], [0, 0, 10, 5], [50, 50, 60, 60]
NEAR = [0, 0, 10, 9]
_, DATA_BEAR, DATA_CAR, DATA_GOAT = range(4)
CROWD = True


def cause(truth, detection, **more):
    """What one detection is on one image."""
    judgements = judge_detections(table([truth], [[detection]], **more))
    if not len(judgements):
        return None
    return {RIGHT: "right", IN_CROWD: "crowd", **dict(enumerate(CAUSES))}[int(judgements.cause[0])]


@pytest.mark.parametrize(
    ("truth", "detection", "expected"),
    [
        # the two kinds of the paper
        ([(BOX, DATA_CAR)], (BOX, BEAR, 0.9), "misclassification"),
        ([(BOX, DATA_CAR)], (AWAY, CAR, 0.9), "background"),
        ([(BOX, DATA_CAR)], (BOX, CAR, 0.9), "right"),
        # both bounds are to be exceeded: a score of 0.8 is not confident, an IoU of 0.5 no match
        ([(BOX, DATA_CAR)], (BOX, BEAR, 0.8), None),
        # in single precision, in which models compute: its 0.8 is above that of a double
        ([(BOX, DATA_CAR)], (BOX, BEAR, np.float32(0.8)), None),
        ([(BOX, DATA_CAR)], (BOX, BEAR, np.nextafter(np.float32(0.8), 1)), "misclassification"),
        ([(BOX, DATA_CAR)], (HALF, BEAR, 0.9), "background"),
        ([(BOX, DATA_CAR)], (HALF, CAR, 0.9), "background"),
        ([(BOX, DATA_CAR)], ([0, 0, 10, 5.001], CAR, 0.9), "right"),
        # one box of its class among several is enough, even where another overlaps more
        ([(BOX, DATA_CAR), (NEAR, DATA_BEAR)], (BOX, BEAR, 0.9), "right"),
        # the cause is that of the box it overlaps most
        ([(NEAR, DATA_CAR), (BOX, DATA_GOAT)], (BOX, BEAR, 0.9), "out_of_distribution"),
        ([(BOX, DATA_CAR), (NEAR, DATA_GOAT)], (BOX, BEAR, 0.9), "misclassification"),
        # an object that is labelled as outside, by whatever class
        ([(BOX, OOD)], (BOX, BEAR, 0.9), "out_of_distribution"),
        ([(BOX, OOD)], (BOX, KITE, 0.9), "out_of_distribution"),
        ([(BOX, OOD)], (AWAY, BEAR, 0.9), "background"),
        # a class that the data does not have: wrong on an object, nobody's mistake elsewhere
        ([(BOX, DATA_CAR)], (BOX, KITE, 0.9), "misclassification"),
        ([(BOX, DATA_CAR)], (AWAY, KITE, 0.9), "unverified"),
        ([], (AWAY, BEAR, 0.9), "background"),
        # a crowd of its class excuses what lies in it by half, or more
        ([(BOX, DATA_CAR, CROWD)], ([0, 0, 4, 4], CAR, 0.9), "crowd"),
        ([(BOX, DATA_CAR, CROWD)], ([5, 0, 15, 10], CAR, 0.9), "crowd"),
        ([(BOX, DATA_CAR, CROWD)], ([5.01, 0, 15.01, 10], CAR, 0.9), "background"),
        ([(BOX, DATA_CAR, CROWD)], (BOX, BEAR, 0.9), "background"),
        ([(BOX, OOD, CROWD)], (BOX, KITE, 0.9), "unverified"),
        ([(BOX, DATA_CAR, CROWD), (NEAR, DATA_BEAR)], (NEAR, CAR, 0.9), "crowd"),
    ],
)
def test_causes_by_hand(truth, detection, expected):
    assert cause(truth, detection) == expected


@pytest.mark.parametrize(
    ("label", "predicted", "flat", "deep"),
    [
        # a parent or a child of the truth is not egregious
        (DATA_BEAR, ANIMAL, "misclassification", "right"),
        (0, BEAR, "misclassification", "right"),
        # a sibling is; and what stands below a class of the detector is no foreign object
        (DATA_GOAT, BEAR, "out_of_distribution", "misclassification"),
        (DATA_GOAT, ANIMAL, "out_of_distribution", "right"),
        (DATA_GOAT, CAR, "out_of_distribution", "misclassification"),
    ],
)
def test_the_hierarchy_by_hand(label, predicted, flat, deep):
    assert cause([(BOX, label)], (BOX, predicted, 0.9)) == flat
    assert cause([(BOX, label)], (BOX, predicted, 0.9), parents=PARENTS) == deep


def test_a_crowd_of_a_parent_excuses_too():
    crowd = [(BOX, 0, CROWD)]
    assert cause(crowd, (BOX, BEAR, 0.9)) == "background"
    assert cause(crowd, (BOX, BEAR, 0.9), parents=PARENTS) == "crowd"


@pytest.mark.parametrize(
    ("labels", "known", "truth", "expected"),
    [
        ([DATA_BEAR], True, [], "background"),
        ([DATA_CAR], True, [], "unverified"),
        ([], True, [], "unverified"),
        ([], False, [], "background"),
        # what stands on a box is a mistake whatever was verified
        ([], True, [(BOX, DATA_CAR)], "misclassification"),
        ([], True, [(BOX, DATA_BEAR)], "right"),
    ],
)
def test_unverified_detections_have_a_cause_of_their_own(labels, known, truth, expected):
    none = np.zeros(len(labels), dtype=np.int64)
    verified = Verified(none, np.array(labels, dtype=np.int64), np.array([known]))
    assert cause(truth, (BOX, BEAR, 0.9), verified=verified) == expected


def test_ancestors_go_all_the_way_up_and_stop_in_a_circle():
    chain = ((), (0,), (1,), (2, 0))
    assert ancestors(chain, 4) == (set(), {0}, {0, 1}, {0, 1, 2})
    assert descendants(chain, 4) == ({1, 2, 3}, {2, 3}, {3}, set())
    assert ancestors(((1,), (0,)), 2) == descendants(((1,), (0,)), 2) == ({1}, {0})
    assert ancestors(None, 2) == descendants(None, 2) == (set(), set())
    relatives = find_relatives(((), (0,), (1,), ()), 4)
    near = [relatives.members[a:b].tolist() for a, b in pairwise(relatives.first)]
    assert near == [[1, 2], [0, 2], [0, 1], []]
    known = find_known_classes(np.array([1, -1]), ((), (0,), (1,), ()), 4)
    assert known.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("label", "own", "judgement"), [(0, ANIMAL, "right"), (1, BEAR, "misclassification")]
)
def test_a_goat_is_an_animal_to_a_cause_and_outside_to_ap(label, own, judgement):
    """The detector says animal and not goat: no foreign object, but none that AP lets it find."""
    truth = [(BOX, DATA_GOAT), (AWAY, DATA_BEAR)]
    labels, scores = np.array([label, 1], dtype=np.int32), np.array([0.95, 0.9])
    detections = Detections(np.array([BOX, AWAY], dtype=np.float64), labels, scores)
    predictions = table([truth], [[(BOX, own, 0.95)]], parents=PARENTS)
    predictions = replace(predictions, detections=detection_table([detections]))
    assert find_known_classes(REACH, PARENTS, 4).all()
    assert outside(predictions, predictions.boxes).tolist() == [True, False]
    assert cause(truth, (BOX, own, 0.95), parents=PARENTS) == judgement
    result = map_without_ood(predictions)
    assert result.value == pytest.approx(1)
    assert [cell.name for cell in result.cells] == ["bear"]


def test_an_earlier_version_is_told_to_run_again():
    old = replace(table([[]], [[(BOX, BEAR, 0.9)]]), raw_detections=None)
    with pytest.raises(UsageError, match=r"m on d were written by an earlier version.*run again"):
        judge_detections(old)


# ---------------------------------------------------------------- against a slow reference


def area(box):
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def intersect_boxes(box, other):
    low, high = np.maximum(box[:2], other[:2]), np.minimum(box[2:], other[2:])
    return area([*low, *high])


def reference(predictions, score, iou):
    """Cause, object and IoU of each confident detection, box by box from the definition."""
    above = ancestors(predictions.parents, len(predictions.classes))
    reached = {int(label) for label in predictions.model_to_data_class if label >= 0}
    detections, truth = predictions.raw_detections, predictions.boxes
    verified = predictions.verified
    pairs = set(zip(verified.image.tolist(), verified.label.tolist(), strict=True))
    judgements = []
    for d in np.flatnonzero(detections.score > score):
        image = int(detections.image[d])
        label = int(predictions.model_to_data_class[detections.label[d]])
        own = crowd = False
        best, where = 0.0, -1
        for t in np.flatnonzero(truth.image == image):
            true_label = int(truth.label[t])
            inside = intersect_boxes(detections.boxes[d], truth.boxes[t])
            same = label >= 0 and true_label >= 0
            same = same and (
                label in {true_label, *above[true_label]} or true_label in above[label]
            )
            if truth.crowd[t]:
                crowd |= same and inside / area(detections.boxes[d]) >= 0.5
                continue
            union = area(detections.boxes[d]) + area(truth.boxes[t]) - inside
            share = inside / union
            own |= same and share > iou
            if share > best:
                best, where = share, int(t)
        true_label = int(truth.label[where]) if where >= 0 else OOD
        if own:
            kind = RIGHT
        elif crowd:
            kind = IN_CROWD
        elif best > iou:
            foreign = true_label == OOD or not reached & {true_label, *above[true_label]}
            kind = CAUSES.index("out_of_distribution" if foreign else "misclassification")
        elif label < 0 or (verified.known[image] and (image, label) not in pairs):
            kind = CAUSES.index("unverified")
        else:
            kind = CAUSES.index("background")
        judgements.append((int(d), kind, where, best))
    return judgements


def random_boxes(rng, n, images, least, most):
    corner = rng.integers(0, 12, (n, 2)).astype(float)
    corners = np.hstack([corner, corner + rng.integers(1, 12, (n, 2))])
    # in the order of no image: tables are sorted where they are read
    return BoxTable(
        rng.integers(0, images, n),
        rng.integers(least, most, n),
        corners,
        np.round(rng.random(n), 1),
        rng.random(n) < 0.15,
        areas(corners),
    )


@pytest.mark.parametrize("seed", range(40))
def test_random_tables_are_judged_as_the_reference_does(seed, monkeypatch):
    monkeypatch.setattr(causes, "PIECE", 7 if seed % 3 else 200_000)
    rng = np.random.default_rng(seed)
    images = int(rng.integers(1, 12))
    pairs = rng.random((images, len(CLASSES))) < 0.5
    known = rng.random(images) < 0.5
    image, label = np.nonzero(pairs & known[:, None])
    predictions = replace(
        table([[]] * images, [[]] * images),
        boxes=random_boxes(rng, int(rng.integers(0, 60)), images, -1, len(CLASSES)),
        raw_detections=random_boxes(rng, 80, images, 0, len(OWN)),
        model_to_data_class=rng.permutation(REACH),
        parents=PARENTS if seed % 2 else None,
        verified=Verified(image, label, known),
    )
    judgements = judge_detections(predictions, score=0.3, iou=0.25)
    columns = (judgements.detection, judgements.cause, judgements.object, judgements.iou)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    expected = reference(predictions, 0.3, 0.25)
    assert [row[:3] for row in rows] == [row[:3] for row in expected]
    assert [row[3] for row in rows] == pytest.approx([row[3] for row in expected], abs=1e-12)
    assert len(rows) > 20


# ---------------------------------------------------------------- the same mistake once


def find_candidates(*tables, **more):
    return candidates(tables, [judge_detections(predictions) for predictions in tables], **more)


def test_several_models_on_one_image_make_one_candidate():
    first = table([[(BOX, DATA_CAR)]], [[(BOX, BEAR, 0.9), (AWAY, BEAR, 0.85)]])
    second = table([[(BOX, DATA_CAR)]], [[(NEAR, BEAR, 0.95), (BOX, ANIMAL, 0.9)]])
    second = replace(second, model="n")
    mistakes = find_candidates(first, second)
    assert [(c.predicted, c.score, c.models, c.times) for c in mistakes] == [
        ("bear", 0.95, ("m", "n"), 2),
        ("animal", 0.9, ("n",), 1),
        ("bear", 0.85, ("m",), 1),
    ]
    expected = [(1, "car", "misclassification")] * 2 + [(0, "", "background")]
    assert [(c.table, c.truth, c.cause) for c in mistakes] == expected
    assert mistakes[0].box == tuple(NEAR)


def test_a_mistake_takes_few_bytes_until_it_is_asked_for():
    """Columns alone stay, however many mistakes there are: as objects they took 500 bytes each."""
    several = 3_000
    predictions = table([[]] * several, [[(BOX, BEAR, 0.9), (AWAY, BEAR, 0.85)]] * several)
    judged = [judge_detections(predictions)]
    candidates([predictions], judged)  # what compiled functions take
    tracemalloc.start()
    mistakes = candidates([predictions], judged)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(mistakes) == 2 * several
    assert taken / len(mistakes) < 40
    assert (mistakes[-1].score, mistakes[-1].row) == (0.85, several - 1)
    with pytest.raises(IndexError):
        mistakes[2 * several]


def test_classes_are_the_same_by_name_whatever_their_number():
    first = table([[(BOX, DATA_CAR)]], [[(BOX, BEAR, 0.9)]])
    other = replace(
        table([[(BOX, DATA_CAR)]], [[(BOX, 1, 0.95)]]),
        model="n",
        model_classes=("car", "bear"),
        model_to_data_class=np.array([2, 1]),
    )
    (mistake,) = find_candidates(first, other)
    assert mistake.models == ("m", "n")


def test_the_same_place_on_other_images_or_other_data_is_another_mistake():
    two = table([[], []], [[(BOX, BEAR, 0.9)], [(BOX, BEAR, 0.9)]])
    assert len(find_candidates(two)) == 2
    assert len(find_candidates(two, replace(two, data="e"))) == 4
    assert len(find_candidates(two, replace(two, model="n"))) == 2


def test_half_an_overlap_is_not_enough():
    assert len(find_candidates(table([[]], [[(BOX, BEAR, 0.9), (HALF, BEAR, 0.95)]]))) == 2


def film_detections(detections, frames, videos=None):
    """One detection a frame, of nothing."""
    rows = [[detection] if detection else [] for detection in detections]
    predictions = table([[]] * len(detections), rows)
    tags = {"video": np.array(videos or ["v"] * len(detections)), "frame": np.array(frames)}
    return replace(predictions, tags=tags)


def move_box(by, score):
    return [by, 0, by + 10, 10], BEAR, score


def test_a_mistake_is_followed_along_a_video_and_shown_by_its_most_confident_frame():
    # each box overlaps the one before it by 8 of 12, the last the first not at all
    detections = [move_box(2 * i, 0.85 + (0.1 if i == 3 else 0)) for i in range(7)]
    (mistake,) = find_candidates(film_detections(detections, range(7)))
    assert (mistake.row, mistake.score, mistake.times) == (3, pytest.approx(0.95), 7)
    # the order of the rows does not matter, that of the frames does
    (again,) = find_candidates(film_detections(detections[::-1], range(6, -1, -1)))
    assert (again.sample, again.times) == ("i3", 7)
    assert len(find_candidates(film_detections(detections, range(7), list("vvvwwww")))) == 2


def test_frames_without_the_mistake_end_it_after_a_while():
    gone = [None] * (GAP - 1)
    detections = [move_box(0, 0.9), *gone, move_box(0, 0.9)]
    assert len(find_candidates(film_detections(detections, range(len(detections))))) == 1
    detections = [move_box(0, 0.9), *gone, None, move_box(0, 0.9)]
    assert len(find_candidates(film_detections(detections, range(len(detections))))) == 2
    # only frames that the data has count
    assert len(find_candidates(film_detections([move_box(0, 0.9)] * 2, [0, 1000]))) == 1


def test_two_mistakes_side_by_side_stay_two():
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10]]
    detections = [[(box, BEAR, 0.9) for box in boxes]] * 5
    tags = {"video": np.array(["v"] * 5), "frame": np.arange(5)}
    predictions = replace(table([[]] * 5, detections), tags=tags)
    assert [c.times for c in find_candidates(predictions)] == [5, 5]


def test_pm_sets_without_a_video_are_followed_by_their_offsets():
    predictions = replace(
        table([[]] * 4, [[move_box(0, 0.9)]] * 4),
        groups=np.array(["a", "a", "b", "b"]),
        tags={"offset": np.array([0, 1, 0, 1])},
    )
    assert [c.times for c in find_candidates(predictions)] == [2, 2]


def test_unverified_detections_are_candidates_only_on_request():
    detections = [(AWAY, KITE, 0.9), (BOX, BEAR, 0.9)]
    predictions = table([[(BOX, OOD)]], [detections])
    (mistake,) = find_candidates(predictions)
    assert (mistake.cause, mistake.truth) == ("out_of_distribution", OUTSIDE)
    assert [c.cause for c in find_candidates(predictions, causes=("unverified",))] == ["unverified"]
    assert len(find_candidates(table([[(BOX, DATA_BEAR)]], [[(BOX, BEAR, 0.9)]]))) == 0
    assert len(find_candidates(table([[]], [[]]))) == 0


@pytest.mark.parametrize("seed", range(20))
def test_random_tracks_join_as_the_slow_rule_does(seed):
    rng = np.random.default_rng(seed)
    n = 120
    key, frame = rng.integers(0, 3, n), rng.integers(0, 30, n)
    corner = rng.integers(0, 8, (n, 2)).astype(float)
    boxes = np.hstack([corner, corner + rng.integers(6, 10, (n, 2))])
    score = np.round(rng.random(n), 1)
    track = tracks(key, frame, boxes, score)
    open_: dict[int, list[list[int]]] = {}
    for i in sorted(range(n), key=lambda i: (key[i], frame[i], -score[i], i)):
        best, where = 0.5, None
        for members in open_.setdefault(int(key[i]), []):
            newest = max(frame[m] for m in members)
            last = next(m for m in members if frame[m] == newest)
            union = area(boxes[i]) + area(boxes[last]) - intersect_boxes(boxes[i], boxes[last])
            share = intersect_boxes(boxes[i], boxes[last]) / union
            if frame[i] - newest <= GAP and share > best:
                best, where = share, members
        if where is None:
            open_[int(key[i])].append([i])
        else:
            where.append(i)
    expected = {frozenset(rows) for lists in open_.values() for rows in lists}
    assert {frozenset(np.flatnonzero(track == t).tolist()) for t in set(track.tolist())} == expected
    assert 3 < len(expected) < n - 3


# ---------------------------------------------------------------- novelty


def test_novelty_by_hand():
    line = np.array([[0.0], [1.0], [1.5], [5.0]])
    assert np.isnan(novelty(line, np.zeros((0, 1)))[0])
    assert novelty(line, np.zeros((0, 1)))[1:].tolist() == [1, 0.5, 3.5]
    assert novelty(line, np.array([[4.0]])).tolist() == [4, 1, 0.5, 1]


def test_the_farthest_comes_first_and_a_kind_has_its_limit():
    line = np.array([[1.0], [2.0], [6.0], [9.0]])
    known, kinds = np.array([[0.0]]), np.array([0, 0, 0, 1])
    # 9 is farthest from 0; then 6 is 3 from 9, 2 is 2 from 0, 1 is 1 from 0
    assert farthest_first(line, known, kinds, 9).tolist() == [3, 2, 1, 0]
    assert farthest_first(line, known, kinds, 2).tolist() == [3, 2, 1]
    assert farthest_first(line, np.zeros((0, 1)), kinds, 1).tolist() == [0, 3]
    assert farthest_first(np.zeros((0, 1)), known, np.zeros(0, dtype=int), 2).tolist() == []


def test_the_distance_of_thumbnails_is_that_of_their_pixels():
    black, white = np.zeros((16, 24, 3), np.uint8), np.full((50, 10, 3), 255, np.uint8)
    half = black.copy()
    half[:8] = 255
    vectors = thumbnails([black, white, half])
    assert np.linalg.norm(vectors[0] - vectors[1]) == pytest.approx(1)
    assert np.linalg.norm(vectors[0] - vectors[2]) == pytest.approx(np.sqrt(0.5))


def test_pictures_of_a_class_that_look_the_same_are_one():
    grey = [np.full((20, 20, 3), value, np.uint8) for value in (100, 102, 105, 102)]
    vectors = thumbnails(grey)
    assert find_first_alike(vectors, np.array([0, 0, 0, 1])).tolist() == [0, 0, 2, 3]
    assert pytest.approx(3 / 255) == ALIKE
