"""A reviewed set of boxes as data: splits, statistics, the card, and numbers from it."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from forked import steadyeye
from review_boxes import BOX, Boxes, candidates, fine, write

import steadyeye as se
from steadyeye.core.boxes import OOD, in_classes, iou
from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.data.images import image_file
from steadyeye.data.images.near_duplicates import NEAR, find_near_duplicates, make_view
from steadyeye.data.sources.coco import coco
from steadyeye.data.sources.nao import nao
from steadyeye.review.interchange import cvat, label_studio
from steadyeye.review.interchange.coco import count_objects, export_coco
from steadyeye.review.protocol.stages import STAGES, list_labels
from steadyeye.review.sampling.sampling import sample_boxes
from steadyeye.review.sampling.splits import SHARES, find_origins, split_images

CORNERS = ("x0", "y0", "x1", "y1")

# ---------------------------------------------------------------- splits


def spread(rng, images=400, sources=80, classes=8):
    """Images of sources of uneven size, with classes from common to rare."""
    of = rng.integers(0, sources, images)
    chance = 0.5 / 2 ** np.arange(classes)
    labels = [{f"c{c}" for c in np.flatnonzero(rng.random(classes) < chance)} for _ in of]
    return labels, [f"v{number:02}/0.jpg" for number in of]


def shares(labels, splits, name):
    """The share of the images with a class in each split."""
    having = [part for names, part in zip(labels, splits, strict=True) if name in names]
    return np.array([having.count(part) for part in SHARES]) / len(having)


def test_splits_keep_sources_whole_and_classes_balanced():
    aimed = np.array(list(SHARES.values()))
    for seed in range(5):
        labels, sources = spread(np.random.default_rng(seed))
        splits = split_images(labels, sources, seed)
        for source in set(sources):
            assert len({p for p, s in zip(splits, sources, strict=True) if s == source}) == 1
        sizes = np.array([splits.count(part) for part in SHARES]) / len(splits)
        assert np.abs(sizes - aimed).max() < 0.05
        counts = Counter(name for names in labels for name in names)
        counts = {name: n for name, n in counts.items() if n >= 10}
        off = [np.abs(shares(labels, splits, name) - aimed).max() for name in counts]
        # what chance alone leaves, sources placed without looking at their classes
        rng = np.random.default_rng(100 + seed)
        split_of = dict(zip(sorted(set(sources)), rng.choice(3, 80, p=aimed), strict=False))
        blind = [list(SHARES)[split_of[source]] for source in sources]
        chance = [np.abs(shares(labels, blind, name) - aimed).max() for name in counts]
        assert np.mean(off) < 0.6 * np.mean(chance)


def test_the_rarest_class_is_placed_first_by_hand():
    # one source has both images of the rare class; it must go to train, where 1.4 are lacking
    labels = [{"rare", "common"}, {"rare"}, *[{"common"}] * 8]
    sources = ["a", "a", *"bcdefghi"]
    splits = split_images(labels, sources)
    assert splits[:2] == ["train", "train"]
    # common: 9 images, 6.3, 1.35 and 1.35 aimed at
    assert Counter(splits) == {"train": 7, "val": 1, "test": 2} or Counter(splits) == {
        "train": 7,
        "val": 2,
        "test": 1,
    }


def test_splits_depend_on_names_and_seed_alone():
    labels, sources = spread(np.random.default_rng(0))
    splits = split_images(labels, sources, 3)
    order = np.random.default_rng(1).permutation(len(labels))
    again = split_images([labels[i] for i in order], [sources[i] for i in order], 3)
    assert [splits[i] for i in order] == again
    assert split_images(labels, sources, 4) != splits
    assert split_images([], []) == []
    assert set(split_images([set()] * 20, [f"{i}" for i in range(20)])) == set(SHARES)


def test_images_of_one_folder_and_those_that_nearly_equal_each_other_are_one_source():
    names = ["v/1.jpg", "w/1.jpg", "v/2.jpg", "x/1.jpg", "y.jpg", "z.jpg"]
    assert find_origins(names, []) == ["v/1.jpg", "w/1.jpg", "v/1.jpg", "x/1.jpg", "y.jpg", "z.jpg"]
    joined = find_origins(names, [(2, 3), (4, 5)])
    assert joined == ["v/1.jpg", "w/1.jpg", "v/1.jpg", "v/1.jpg", "y.jpg", "y.jpg"]
    # one folder for all says nothing
    assert find_origins(["in/a.jpg", "in/b.jpg"], []) == ["in/a.jpg", "in/b.jpg"]


def test_pairs_that_differ_little_count_as_near_duplicates():
    rng = np.random.default_rng(0)
    base = rng.uniform(0, 255, (40, 1024)).astype(np.float32)
    views = [*base, *(base[:5] + rng.uniform(-4, 4, (5, 1024)).astype(np.float32)), base[7] + 5]
    expected = [
        (i, j)
        for i in range(len(views))
        for j in range(i + 1, len(views))
        if np.abs(views[i] - views[j]).mean() < NEAR
    ]
    assert find_near_duplicates(views) == expected == [(i, 40 + i) for i in range(5)]
    assert find_near_duplicates([]) == []


def test_a_picture_saved_again_is_alike(test_data):
    photos = sorted((test_data / "photos").glob("*.jpg"))
    views = [make_view(image_file.read(photo)) for photo in photos]
    again = [
        make_view(image_file.decode(image_file.encode(image_file.read(photo), ".jpg"), ""))
        for photo in photos
    ]
    n = len(photos)
    assert find_near_duplicates([*views, *again]) == [(i, n + i) for i in range(n)]


# ---------------------------------------------------------------- statistics


def test_statistics_are_those_of_the_public_release(test_data):
    folder = test_data / "nao_stats"
    rows = json.loads((folder / "object_sizes.json").read_text())["data"]
    names = sorted({row[1] for row in rows})
    content = {
        "images": [{"id": name} for name in sorted({row[2] for row in rows})],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": [{"image_id": row[2], "category_id": names.index(row[1])} for row in rows],
    }
    counts = count_objects(content)
    assert (counts.images, counts.annotated, counts.objects) == (3009, 3009, 13604)
    balance = json.loads((folder / "class_balance.json").read_text())["data"]
    assert {(count.name, count.images, count.objects) for count in counts.classes} == {
        (name, images, objects) for name, images, objects, *_ in balance if objects
    }
    # the first two of the paper's Table 1; the release has more objects than the paper
    assert [count.name for count in counts.classes[:2]] == ["person", "cup"]


def test_objects_outside_and_crowds_are_no_objects_of_a_class():
    content = {
        "images": [{"id": 1}, {"id": 2}, {"id": 3}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "ood"}],
        "annotations": [
            {"image_id": 1, "category_id": 1},
            {"image_id": 1, "category_id": 1, "iscrowd": 1},
            {"image_id": 1, "category_id": 2},
            {"image_id": 2, "category_id": 2},
        ],
    }
    counts = count_objects(content, "ood")
    assert (counts.images, counts.annotated, counts.objects, counts.outside) == (3, 1, 1, 2)
    assert count_objects(content).objects == 3


# ---------------------------------------------------------------- objects outside, in the review


def test_boxes_can_be_called_ood_where_they_are_drawn():
    names = ("cat", "dog")
    assert list_labels("boxes", names) == list_labels("box_check", names) == ("cat", "dog", "ood")
    assert list_labels("classification", names) == names
    assert list_labels("boxes", ("ood", "cat")) == ("ood", "cat")
    answer = {"boxes": [{**BOX, "label": "ood"}]}
    for stage in ("boxes", "box_check"):
        assert STAGES[stage].check(answer, names) == answer
    with pytest.raises(UsageError, match="no class named 'odd'"):
        STAGES["boxes"].check({"boxes": [{**BOX, "label": "odd"}]}, names)
    assert '<Label value="ood"/>' in label_studio.build_config("boxes", names)
    assert '<Label value="ood"/>' not in label_studio.build_config("classification", names)
    assert '"ood"' in json.dumps(cvat.list_task_labels("box_check", names))
    assert '"ood"' not in json.dumps(cvat.list_task_labels("classification", names))


@pytest.fixture
def exported(tmp_path):
    """The toy candidates reviewed: every dog is called an object outside the classes."""
    sample_boxes(*write(tmp_path, candidates()))
    review = Boxes(review_set.read(tmp_path / "set"), 3, stages={"classification": 3, "boxes": 1})
    for number in range(3):
        review.everything("classification", fine, number)

    def renamed(payload):
        return {
            "boxes": [
                {**box, "label": "ood" if box["label"] == "dog" else box["label"]}
                for box in payload["boxes"]
            ]
        }

    review.everything("boxes", renamed, 0)
    review.everything("box_check", lambda payload: {"boxes": payload["boxes"]}, 1)
    with review.db.reading() as c:
        counts = export_coco(c, review.folder, review.plan, tmp_path / "out")
    return tmp_path / "out", counts


def test_objects_outside_are_a_category_of_the_export(exported):
    out, counts = exported
    assert (counts["boxes"], counts["boxes_outside_the_classes"]) == (4, 2)
    content = json.loads((out / "annotations.json").read_text())
    assert content["categories"] == [
        {"id": 3, "name": "cat"},
        {"id": 7, "name": "dog"},
        {"id": 8, "name": "ood"},
    ]
    source = nao(str(out))
    assert source.classes.names == ("cat", "dog")
    assert [source[i].boxes.labels.tolist() for i in range(3)] == [[0, OOD], [0], [OOD]]
    parts = [nao(str(out), split=part) for part in ("train", "val", "test")]
    assert sorted(id_ for part in parts for id_ in part.ids) == sorted(source.ids)
    assert [len(part) for part in parts] == [counts[part] for part in SHARES]
    assert {part.classes for part in parts} == {source.classes}
    assert parts[0].missing() == []
    plain = coco(str(out / "annotations" / "instances_train.json"), str(out / "images"), ood=None)
    assert plain.classes.names == ("cat", "dog", "ood")


def test_images_that_nearly_equal_each_other_are_in_one_split(tmp_path):
    arguments = write(tmp_path, candidates())
    first, second, _ = sorted((arguments[1] / "in").iterdir())
    again = image_file.decode(first.read_bytes(), "").astype(int) + 1
    second.write_bytes(image_file.encode(again.clip(0, 255).astype(np.uint8), ".jpg"))
    sample_boxes(*arguments)
    review = Boxes(review_set.read(tmp_path / "set"), stages={"classification": 1})
    review.everything("classification", fine)
    with review.db.reading() as c:
        export_coco(c, review.folder, review.plan, tmp_path / "out")
    images = json.loads((tmp_path / "out" / "annotations.json").read_text())["images"]
    assert [image["source"] for image in images] == ["in/a.jpg", "in/a.jpg", "in/c.png.jpg"]
    assert images[0]["split"] == images[1]["split"]


def test_the_card_says_what_and_how_and_leaves_the_licence(exported):
    text = (exported[0] / "README.md").read_text()
    assert "3 images with 2 boxes of 1 class, and 2 objects outside them (category `ood`)" in text
    assert "| 3 | 2 | cat (2) | — | — |" in text
    assert "| cat | 2 | 2 |" in text
    assert "4 boxes in 3 images were suggested (`candidates.json`). 3 reviewers made" in text
    assert "3 reviewers made 18 decisions" in text
    assert "| Objects | 3 | 4 | 4 |" in text
    assert "- images: …" in text
    assert not re.search(r"\{|None|nan", text)


# ---------------------------------------------------------------- from a detector to its numbers


def mistakes(run, annotations, most=12):
    """COCO's JSON of a run's confident boxes, the false ones first, and which of them are false."""
    predictions = run.predictions
    content = json.loads(annotations.read_text())
    ids = [category["id"] for category in content["categories"]]
    detections, truth = predictions.detections, in_classes(predictions.boxes)
    order = np.argsort(-detections.score)[:60]
    results, wrong = [], set()
    for row in order:
        own = np.flatnonzero(truth.image == detections.image[row])
        near = own[iou(detections.boxes[row : row + 1], truth.boxes[own])[0] > 0.5]
        false = not len(near)
        if false or len(results) - len(wrong) < most // 2:
            x0, y0, x1, y1 = detections.boxes[row].clip(min=0).tolist()
            wrong |= {str(row)} if false else set()
            results.append(
                {
                    "id": int(row),
                    "image_id": int(predictions.ids[detections.image[row]]),
                    "category_id": ids[detections.label[row]],
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "score": float(detections.score[row]),
                }
            )
    sizes = {image["id"]: (image["width"], image["height"]) for image in content["images"]}
    for result in results:
        x, y, w, h = result["bbox"]
        width, height = sizes[result["image_id"]]
        result["bbox"] = [x, y, min(w, width - x), min(h, height - y)]
    tables = {"images": content["images"], "categories": content["categories"]}
    return {**tables, "results": results}, wrong


def name_by(boxed, wrong):
    """The answers of people who know which boxes are of nothing that the classes name."""

    def name(payload):
        answer = fine(payload)
        return {**answer, "object": "thing"} if boxed[tuple(payload["box"])] in wrong else answer

    return name


@pytest.mark.slow
def test_a_detectors_boxes_become_a_set_it_is_measured_on(test_data, tmp_path):
    root = test_data / "coco" / "tinycoco"
    annotations = root / "annotations" / "instances_train2017.json"
    images = root / "images" / "train2017"
    model = test_data / "models" / "yolox_nano.onnx"
    yolox = f"onnx_detector(path='{model}', decoder='yolox')"
    first = se.evaluate(yolox, f"coco(annotations='{annotations}', images='{images}')")
    content, wrong = mistakes(first, annotations)
    assert wrong, "the detector makes no confident mistake"
    path = tmp_path / "candidates.json"
    path.write_text(json.dumps(content))
    sample_boxes(path, images, tmp_path / "mined", lambda done: None)

    folder = review_set.read(tmp_path / "mined")
    boxed = {tuple(row[c] for c in CORNERS): row["id"] for row in folder.boxes.to_pylist()}
    review = Boxes(folder, 5, stages={"classification": 5, "boxes": 1})
    name = name_by(boxed, wrong)
    for number in range(5):
        assert len(review.everything("classification", name, number)) == len(content["results"])

    truths = coco(str(annotations), str(images))
    file_of = {row["image"]: row["name"] for row in folder.boxes.to_pylist()}
    true_boxes = {path.name: truths[i].boxes for i, path in enumerate(truths.files())}

    def everything(payload):
        """COCO's boxes, and what lies on none of them as an object outside, whatever it is."""
        true = true_boxes[file_of[payload["image"]]]
        own = [
            {"box": box.tolist(), "label": truths.classes.names[label]}
            for box, label in zip(true.boxes, true.labels, strict=True)
        ]
        outside = [box for box in payload["boxes"] if boxed[tuple(box["box"])] in wrong]
        return {"boxes": [*own, *({**box, "label": "ood"} for box in outside)]}

    pictures = review.everything("boxes", everything, 0)
    same = review.everything("box_check", lambda payload: {"boxes": payload["boxes"]}, 1)
    mistaken = {row["image"] for row in folder.boxes.to_pylist() if row["id"] in wrong}
    assert len(pictures) == len(same) == len(mistaken)

    def run(*words):
        done = steadyeye(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    lines = run("review-export", "mined", "--out", "nao").splitlines()
    assert f"boxes outside the classes: {len(wrong)}" in lines
    metric_names = '"map, map_without_ood, mar"'
    assert (
        lines[-1]
        == f"next: steadyeye run --model … --data \"nao(root='nao')\" --metrics {metric_names}"
    )
    metrics = ("--metrics", "map, map_without_ood, mar", "--quiet")
    run("run", "--model", yolox, "--data", "nao(root='nao')", "--out", "a", *metrics)
    again = "coco(annotations='nao/annotations.json', images='nao/images')"
    run("run", "--model", yolox, "--data", again, "--out", "b", *metrics)
    run_a, run_b = (se.open_run(tmp_path / name) for name in "ab")
    assert (run_a.predictions.boxes.label == OOD).sum() == len(wrong)
    assert run_a.map_without_ood().value > run_a.map().value
    assert run_a.map_without_ood().value == run_b.map_without_ood().value
    assert run_a.mar().value < 0.9
    run("report", "a", "--out", "report.md")
    assert "Natural adversarial objects, compared with published detectors" in (
        tmp_path / "report.md"
    ).read_text(encoding="utf-8")
