"""What is written as JSON."""

import json

from fuzzing import Parser
from parsers_text import NAMES, write

from steadyeye.data.annotations import box_file
from steadyeye.data.classes import class_lists, map_file
from steadyeye.data.sources.coco import coco
from steadyeye.data.video import label_sidecar
from steadyeye.runner import saved_detections, saved_scores


def describe_coco(names):
    """A small file of annotations: two images, two classes, a crowd."""
    boxes = [[1, 2, 10.5, 12], [5, 5, 20, 20], [0, 0, 40, 30]]
    return {
        "info": {"description": "example"},
        "images": [
            {"id": i, "file_name": name, "width": 40, "height": 30} for i, name in enumerate(names)
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 18, "name": "dog"}],
        "annotations": [
            {"id": n, "image_id": n % 2, "category_id": (1, 18)[n % 2], "bbox": box}
            | {
                "area": box[2] * box[3],
                "iscrowd": int(n == 2),
                "segmentation": [[0, 0, 9, 0, 9, 9]],
            }
            for n, box in enumerate(boxes)
        ],
    }


def build_coco(folder):
    write({"images/a.png": "", "images/b.png": ""}, folder)
    (folder / "coco.json").write_text(json.dumps(describe_coco(["a.png", "b.png"])))


def read_coco(folder):
    """Reads annotations, and what is known of every image without decoding it."""
    source = coco(str(folder / "coco.json"), str(folder / "images"))
    assert all(source[i].id for i in range(len(source)))


def build_box_file(folder):
    (folder / "boxes.json").write_text(
        json.dumps(describe_coco(["clip/000001.jpg", "clip/000002.jpg"]))
    )


def build_scores(folder):
    (folder / "scores.json").write_text(
        json.dumps({"v/1": [0.1, 0.7, 0.2], "v/2": 1, "v/3": "car", "v/4": [1.0, 0.0, 0.0]})
    )


def read_scores(folder):
    saved_scores.load(folder / "scores.json", NAMES)


def build_detections(folder):
    rows = [
        {"image_id": i, "category_id": 1, "bbox": [1, 2, 3.5, 4], "score": 0.5} for i in range(4)
    ]
    (folder / "results.json").write_text(json.dumps(rows))


def read_detections(folder):
    saved_detections.load(folder / "results.json", NAMES)


def build_class_lists(folder):
    (folder / "list.json").write_text(json.dumps(["cat", "dog"]))
    (folder / "known.json").write_text(json.dumps({"cat": "n02121620", "dog": None}))
    (folder / "id2label.json").write_text(json.dumps({"0": "cat", "1": "dog"}))


def read_class_lists(folder):
    for path in sorted(folder.iterdir()):
        class_lists.read(str(path))


def build_labels(folder):
    videos = {
        "clip.mp4": {"labels": [{"first": 0, "last": 9, "labels": ["cat"]}]},
        "*": {"labels": [{"labels": ["dog"]}], "cuts": [5, 9]},
    }
    content = {"classes": {"cat": "n02121620", "dog": None}, "videos": videos}
    (folder / "labels.json").write_text(json.dumps(content))


def read_labels(folder):
    sidecar = label_sidecar.read(str(folder / "labels.json"))
    assert sidecar.of("clip.mp4") is not None


PARSERS = [
    Parser("class-list-json", build_class_lists, read_class_lists, {"*.json": "json"}),
    Parser(
        "class-map-json",
        lambda folder: (folder / "map.json").write_text('{"car": "car", "dog": "dog"}'),
        lambda folder: map_file.from_file(folder / "map.json", NAMES, NAMES),
        {"map.json": "json"},
    ),
    Parser("labels-of-videos-json", build_labels, read_labels, {"labels.json": "json"}),
    Parser("coco-annotations", build_coco, read_coco, {"coco.json": "json"}),
    Parser(
        "boxes-of-videos-json",
        build_box_file,
        lambda folder: box_file.read(str(folder / "boxes.json")),
        {"boxes.json": "json"},
    ),
    Parser("saved-scores", build_scores, read_scores, {"scores.json": "json"}),
    Parser("coco-results", build_detections, read_detections, {"results.json": "json"}),
]
