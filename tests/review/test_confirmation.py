"""Mistakes of a real detector on labels like VOC's, confirmed by people who know the truth."""

import json

import numpy as np
import pytest
from fastapi.testclient import TestClient
from forked import steadyeye

from steadyeye.core.boxes import iou
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.protocol import reviewers
from steadyeye.review.web.app import build_app

VOC = {
    **{"airplane": "aeroplane", "bicycle": "bicycle", "bird": "bird", "boat": "boat"},
    **{"bottle": "bottle", "bus": "bus", "car": "car", "cat": "cat", "chair": "chair"},
    **{"cow": "cow", "dining table": "diningtable", "dog": "dog", "horse": "horse"},
    **{"motorcycle": "motorbike", "person": "person", "potted plant": "pottedplant"},
    **{"sheep": "sheep", "couch": "sofa", "train": "train", "tv": "tvmonitor"},
    # VOC has no class of its own for these
    **{"truck": "car", "bench": "chair", "toilet": "chair", "laptop": "tvmonitor"},
    **{"giraffe": "horse", "zebra": "horse", "bear": "dog", "elephant": "cow"},
}
"""COCO's class → what labels like VOC's call it; others are not labelled."""

FINE = {"well_sized": True, "blurry": False, "occluded": False, "depiction": False}
SCORE = 0.5


def relabel(content):
    """COCO's content under the names of VOC, where each tenth object has a wrong one."""
    names = {category["id"]: category["name"] for category in content["categories"]}
    classes = sorted(set(VOC.values()))
    boxes = []
    for n, box in enumerate(content["annotations"]):
        label = VOC.get(names[box["category_id"]])
        if label is not None:
            label = "bus" if n % 10 == 0 else label
            boxes.append({**box, "category_id": 1 + classes.index(label)})
    categories = [{"id": n, "name": name} for n, name in enumerate(classes, start=1)]
    return {**content, "annotations": boxes, "categories": categories}


def find_truth(content, row):
    """What COCO calls the object in a suggested box; None: it has no object there."""
    names = {category["id"]: category["name"] for category in content["categories"]}
    image = next(i["id"] for i in content["images"] if row["name"] == str(i["id"]))
    own = [a for a in content["annotations"] if a["image_id"] == image and not a["iscrowd"]]
    corners = np.array([a["bbox"] for a in own], float).reshape(-1, 4)
    corners[:, 2:] += corners[:, :2]
    share = iou(np.array([[row[c] for c in ("x0", "y0", "x1", "y1")]]), corners)[0]
    # of several above a half the detector's own speaks for it, as in mining
    near = [names[a["category_id"]] for a, part in zip(own, share, strict=True) if part > 0.5]
    best = names[own[int(share.argmax())]["category_id"]] if near else None
    return row["label"] if row["label"] in near else best


def sign_in(app, token):
    session = TestClient(app, follow_redirects=False)
    session.headers["x-csrf-token"] = session.post("/sign-in", json={"token": token}).json()["csrf"]
    return session


def answer_all(session, stage, say):
    """Answers a stage over HTTP; returns how many."""
    queue = session.get(f"/stages/{stage}.json").json()["next"]
    answered = 0
    while queue:
        (item, *_) = queue
        body = {key: item[key] for key in ("assignment", "nonce")}
        body |= {"key": f"{stage}-{item['nonce']}", "answer": say(item["payload"]), "seconds": 1}
        done = session.post("/decisions", json=body)
        assert done.status_code == 200, done.text
        queue, answered = done.json()["next"], answered + 1
    return answered


@pytest.mark.slow
def test_no_right_detection_is_in_the_adversarial_set(test_data, tmp_path):
    root = test_data / "coco" / "tinycoco"
    images = root / "images" / "train2017"
    content = json.loads((root / "annotations" / "instances_train2017.json").read_text())
    (tmp_path / "voc.json").write_text(json.dumps(relabel(content)))

    def run(*words):
        done = steadyeye(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    model = f"onnx_detector(path='{test_data / 'models' / 'yolox_nano.onnx'}', decoder='yolox')"
    data = f"coco(annotations='voc.json', images='{images}')"
    run("mine", "--model", model, "--data", data, "--score", SCORE, "--out", "mined", "--quiet")
    names = {i["file_name"]: i["sample"] for i in read_json(tmp_path / "mined")["images"]}
    run("sample", "--boxes", "mined/candidates.json", "--images", "mined/images", "--out", "set")
    folder = review_set.read(tmp_path / "set")
    rows = [{**row, "name": names[row["name"]]} for row in folder.boxes.to_pylist()]
    truth = {row["id"]: find_truth(content, row) for row in rows}
    right = {row["id"] for row in rows if truth[row["id"]] == row["label"]}
    nothing = {id_ for id_, name in truth.items() if name is None}
    known = {row["id"]: row["annotated"] for row in rows}
    ids = {(r["image"], *(r[c] for c in ("x0", "y0", "x1", "y1"))): r["id"] for r in rows}

    manifest = {**folder.content, "review": {"stages": {"classification": 5, "boxes": 1}}}
    (folder.root / "set.json").write_text(json.dumps(manifest))
    store = database.connect(database.default_url(folder.root))
    with store.writing() as c:
        tokens = [reviewers.add_reviewer(c, f"r{n}") for n in range(5)]
    app = build_app(review_set.read(folder.root), store, ["testserver"])
    people = [sign_in(app, token) for token in tokens]

    def name_truth(number):
        def say(payload):
            assert not {"label", "predicted", "score", "annotated"} & set(payload)
            own = truth[ids[payload["image"], *payload["box"]]]
            if own is None:
                return {"object": None}
            # one of five is careless
            return {**FINE, "object": payload["choices"][0] if number == 4 else own}

        return say

    for number, person in enumerate(people):
        assert answer_all(person, "classification", name_truth(number)) == len(rows)
    answer_all(people[0], "boxes", lambda payload: {"boxes": payload["boxes"]})
    answer_all(people[1], "box_check", lambda payload: {"boxes": payload["boxes"]})
    run("review-export", "set", "--out", "nao")
    exported = read_json(tmp_path / "nao", "annotations.json")

    assert right, "the labels were wrong of something that the detector had right"
    assert {box["id"] for box in exported["detector_was_right"]} == right
    assert {box["id"] for box in exported["rejected"]} == nothing
    confirmed = {box["id"]: box["true_class"] for box in exported["confirmed"]}
    assert confirmed == {id_: name for id_, name in truth.items() if id_ not in right | nothing}
    assert confirmed, "the detector made a mistake"
    assert not right & set(confirmed)
    assert {b["id"]: b["annotated"] for b in exported["detector_was_right"]} == {
        id_: known[id_] for id_ in right
    }
    status = json.loads(run("review-status", "set", "--format", "json"))
    lines = {line["item"]: line["accepted"] for line in status["table_one"]}
    assert lines["suggested boxes"] == len(confirmed)
    assert lines["mistakes of the annotation"] == len(right)
    assert status["table"][0]["reasons"]["the detector was right"] == len(right)


def read_json(folder, name="candidates.json"):
    return json.loads((folder / name).read_text())
