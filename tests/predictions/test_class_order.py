"""Classes in another order than their names: they are put into it here."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hand_tables import table

import steadyeye as se
from steadyeye.core.boxes import BoxTable, areas
from steadyeye.core.format import percent
from steadyeye.predictions.class_order import describe_class_order

CLASSES = 6


def predict(order, accuracy=0.9, seed=0, videos=40, frames=4):
    """Predictions of videos of one class each, with class `order[c]` where `c` is meant."""
    rng = np.random.default_rng(seed)
    label = np.repeat(rng.integers(0, CLASSES, videos), frames)
    meant = np.where(rng.random(len(label)) < accuracy, label, rng.integers(0, CLASSES, len(label)))
    video = np.repeat([f"v{n:02d}" for n in range(videos)], frames)
    offsets = np.tile(np.arange(frames), videos)
    scores = np.eye(CLASSES)[np.asarray(order)[meant]]
    predictions = table(
        scores, [(int(c),) for c in label], video, offsets, video=video, frame=offsets
    )
    return predictions, label, np.asarray(order)[meant]


ROTATED = (1, 2, 3, 4, 5, 0)
SWAPPED = (3, 1, 2, 0, 4, 5)


def test_what_is_learned_from_a_video_is_not_tested_on_it():
    """A model that is wrong in its own way in every video has no order."""
    rng = np.random.default_rng(0)
    label = np.repeat(rng.integers(0, CLASSES, 40), 10)
    predicted = np.repeat(rng.integers(0, CLASSES, 40), 10)
    video = np.repeat([f"v{n:02d}" for n in range(40)], 10)
    frame = np.tile(np.arange(10), 40)
    truths = [(int(c),) for c in label]
    predictions = table(np.eye(CLASSES)[predicted], truths, video, frame, video=video, frame=frame)
    assert describe_class_order(predictions) == ""


def test_one_video_few_samples_or_several_labels_tell_nothing():
    predictions, label, predicted = predict(ROTATED)
    scores = np.eye(CLASSES)[predicted]
    truths = [(int(c),) for c in label]
    same, zeros = np.full(160, "v"), [0] * 160
    one_video = table(scores, truths, same, zeros, video=same, frame=zeros)
    few = table(scores[:29], truths[:29], same[:29], zeros[:29])
    both = replace(predictions, truth=predictions.truth | np.eye(CLASSES, dtype=bool)[predicted])
    unlabelled = replace(predictions, truth=np.zeros_like(predictions.truth))
    for tried in (one_video, few, both, unlabelled):
        assert describe_class_order(tried) == ""


def detect(order, accuracy=0.9, seed=0, images=30, per_image=4, junk=50):
    """Detections of a detector that finds objects and names them in another order.

    `junk`: weak boxes anywhere in every image, of any class.
    """
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(images), per_image)
    label = rng.integers(0, CLASSES, len(image))
    low = np.stack(
        [np.tile(np.arange(per_image) * 100.0, images), rng.uniform(0, 300, len(image))], 1
    )
    corners = np.concatenate([low, low + rng.uniform(40, 90, low.shape)], 1)
    meant = np.where(rng.random(len(image)) < accuracy, label, rng.integers(0, CLASSES, len(image)))
    weak = np.repeat(np.arange(images), junk)
    start = rng.uniform(0, 300, (len(weak), 2))
    boxes = np.concatenate([start, start + rng.uniform(20, 100, start.shape)], 1)
    rows = np.argsort(np.concatenate([image, weak]), kind="stable")
    pairs = (
        (image, weak),
        (np.asarray(order)[meant], rng.integers(0, CLASSES, len(weak))),
        (corners + rng.normal(0, 1, corners.shape), boxes),
        (rng.uniform(0.5, 1, len(image)), rng.uniform(0, 0.1, len(weak))),
    )
    detections = box_table(*(np.concatenate(pair)[rows] for pair in pairs))
    names = [f"i{n}" for n in range(images)]
    plain = table(np.zeros((images, CLASSES)), [()] * images, names, [0] * images)
    truth = box_table(image, label, corners, np.ones(len(image)))
    return replace(plain, boxes=truth, detections=detections), label, np.asarray(order)[meant]


def box_table(image, label, corners, score):
    return BoxTable(image, label, corners, score, np.zeros(len(image), np.bool_), areas(corners))


BOTH = pytest.mark.parametrize(
    ("make", "counted"), [(predict, "160 samples"), (detect, "120 objects")]
)


@BOTH
@pytest.mark.parametrize("seed", range(10))
def test_a_rotated_order_is_named(make, counted, seed):
    predictions, label, predicted = make(ROTATED, seed=seed)
    sentence = describe_class_order(predictions)
    names = predictions.classes
    right = np.mean(np.roll(np.arange(CLASSES), 1)[predicted] == label)
    assert f"'{names[1]}' for '{names[0]}'" in sentence
    assert f"with it, {percent(right)} of {counted} are right" in sentence
    assert f"instead of {percent(np.mean(predicted == label))}" in sentence


@BOTH
@pytest.mark.parametrize("accuracy", [0.0, 0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("order", [range(CLASSES), SWAPPED, (2,) * CLASSES])
@pytest.mark.parametrize("seed", range(5))
def test_a_bad_model_is_not_warned_of(make, counted, order, accuracy, seed):
    """Neither one that guesses, nor one that mixes up two of six classes, nor says always one."""
    assert describe_class_order(make(order, accuracy, seed)[0]) == ""


def count_labels_from(start, classes=(2, 7, 14), **options):
    """A detector of 20 classes whose labels count from `start`, on data of three of them."""
    predictions, _, label = detect(range(CLASSES), **options)
    detections = predictions.detections
    own = np.full(20, -1)
    own[list(classes)] = range(3)
    names = tuple(f"class {i}" for i in range(20))
    label = np.asarray(classes)[detections.label % 3] + start
    truth = replace(predictions.boxes, label=predictions.boxes.label % 3)
    known = np.flatnonzero(own[label] >= 0)
    of_data = replace(
        detections,
        label=own[label][known],
        **{
            name: getattr(detections, name)[known]
            for name in ("image", "boxes", "score", "crowd", "area")
        },
    )
    return replace(
        predictions,
        classes=tuple(names[i] for i in classes),
        model_classes=names,
        model_to_data_class=own,
        boxes=truth,
        detections=of_data,
        raw_detections=replace(detections, label=label),
    )


@pytest.mark.parametrize(("start", "words"), [(1, "one too high"), (-1, "one too low")])
@pytest.mark.parametrize("seed", range(3))
def test_labels_that_count_from_another_number_are_named(start, words, seed):
    """The classes beside those of the data are not in the data, so none seems exchanged."""
    sentence = describe_class_order(count_labels_from(start, seed=seed))
    assert sentence.startswith(f"the labels of the detections seem to be {words}: ")
    assert "objects are right instead of" in sentence


@pytest.mark.parametrize("accuracy", [0.0, 0.5, 1.0])
def test_labels_that_count_from_0_are_not_warned_of(accuracy):
    assert describe_class_order(count_labels_from(0, accuracy=accuracy)) == ""


def test_a_detector_without_detections_or_objects_is_not_warned_of():
    predictions = detect(ROTATED)[0]
    nothing = box_table(np.zeros(0, int), np.zeros(0, int), np.zeros((0, 4)), np.zeros(0))
    assert describe_class_order(replace(predictions, detections=nothing)) == ""
    assert describe_class_order(replace(predictions, boxes=nothing)) == ""


def tell_colour(images):
    """Scores of red, green and blue, in the order blue, red, green."""
    mean = np.stack([image.reshape(-1, 3).mean(axis=0) for image in images])
    return mean[:, [2, 0, 1]]


def test_a_report_begins_with_it(tmp_path):
    """Of a real run whose classes were named in another order than the model has them."""
    rng = np.random.default_rng(0)
    for colour, name in enumerate(("red", "green", "blue")):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(15):
            image = rng.integers(0, 80, (32, 32, 3), dtype=np.uint8)
            image[..., 2 - colour] += 150
            cv2.imwrite(str(tmp_path / "data" / name / f"{number}.png"), image)
    (tmp_path / "classes.txt").write_text("red\ngreen\nblue\n")
    model = f"callable(path='test_class_order:tell_colour', classes='{tmp_path / 'classes.txt'}')"
    run = se.evaluate(model, f"image_folder(root='{tmp_path / 'data'}')", out=tmp_path / "run")
    assert run.predictions.warning.startswith("the classes seem to be in another order")
    assert f"with it, {percent(1.0)} of 45 samples are right" in run.predictions.warning
    assert "'red' for 'blue'" in run.predictions.warning
    html = run.report(tmp_path / "report.html").read_text()
    assert "The classes seem to be in another order" in html
