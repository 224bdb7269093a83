"""FiftyOne: classes and boxes of a dataset give the numbers of the same files, read natively.

Run by `make integrations` in an environment of its own: FiftyOne wants another OpenCV. Its database
is a MongoDB of 127.0.0.1, fetched by pip for this script alone (SSPL: never shipped), and ended
with it.
"""

import importlib.util
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

NAMES = ["cat", "dog"]


def start_database(folder):
    """The process of a mongod, and its address."""
    package = Path(importlib.util.find_spec("fiftyone").origin).parent / "db" / "bin" / "mongod"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(package), "--dbpath", str(folder), "--bind_ip", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process, f"mongodb://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.1)
    process.terminate()
    raise SystemExit("mongod does not answer")


def tell(images):
    """Scores that depend on every pixel."""
    share = images.astype(float).mean(axis=(1, 2, 3)) / 255
    return np.stack([share, 1 - share], axis=1)


def detect(images):
    """A box of each image, a little off its true one."""
    rows = []
    for image in images:
        height, width = image.shape[:2]
        box = [[width / 4, height / 4, width * 0.7, height * 0.8]]
        # no two scores alike: which of equal ones comes first is not the same everywhere
        score = 0.5 + image.mean() / 1_000
        rows.append((np.array(box), np.array([score]), np.array([int(image.mean() > 90)])))
    return rows


def main():
    """Both checks; raises AssertionError where a number is not that of the native road."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "db").mkdir()
        process, address = start_database(Path(name) / "db")
        os.environ |= {
            "FIFTYONE_DATABASE_URI": address,
            "FIFTYONE_DATABASE_DIR": f"{name}/db",
            "FIFTYONE_DO_NOT_TRACK": "true",
            "FIFTYONE_DEFAULT_DATASET_DIR": f"{name}/sets",
        }
        try:
            check(Path(name))
        finally:
            process.terminate()
            process.wait(30)


def check(folder):
    """Classes, then boxes."""
    import fiftyone

    import steadyeye as se

    rng = np.random.default_rng(0)
    classes, boxes = fiftyone.Dataset(), fiftyone.Dataset()
    native, native_boxes = [], []
    for number in range(8):
        pixels = rng.integers(0, 100 + 20 * number, (40, 60 + number, 3), np.uint8)
        label = NAMES[number % 2]
        path = folder / label / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(path)
        sample = fiftyone.Sample(str(path))
        sample["ground_truth"] = fiftyone.Classification(label=label)
        classes.add_sample(sample)
        native.append((path, label))
        sample = fiftyone.Sample(str(path))
        shares = [0.25, 0.25, 0.5, 0.5]
        detection = fiftyone.Detection(label=label, bounding_box=shares)
        sample["boxes"] = fiftyone.Detections(detections=[detection])
        boxes.add_sample(sample)
        width = 60 + number
        corners = [[width / 4, 10, width * 3 / 4, 30]]
        native_boxes.append((path, {"boxes": corners, "labels": [label]}))
    first = se.evaluate(tell, classes).accuracy()
    second = se.evaluate(tell, f"image_folder(root='{write_copies(folder, native)}')").accuracy()
    assert (first.value, first.n) == (second.value, second.n), (first, second)
    print(f"classes: {first}, as from files")
    first = se.evaluate(detect, boxes, classes=NAMES).map()
    second = se.evaluate(detect, native_boxes, classes=NAMES).map()
    assert abs(first.value - second.value) < 1e-9, (first, second)
    print(f"boxes: {first}, as from pixels")
    check_results(classes, boxes, write_copies(folder, native))
    view = classes[:4]
    assert len(se.evaluate(tell, view).predictions) == 4
    print("a view of four samples has four rows")


def check_results(classes, boxes, root):
    """FiftyOne evaluates what a run added to its datasets: the numbers are those of the run."""
    import fiftyone

    import steadyeye as se

    run = se.evaluate(tell, classes)
    run.to_fiftyone(classes, "answers")
    report = classes.evaluate_classifications("answers", gt_field="ground_truth").report()
    expected = run.accuracy().value
    assert 0 < expected < 1
    assert abs(report["accuracy"] - expected) < 1e-9, (report, expected)
    assert np.mean(classes.values("answers_right")) == expected
    run = se.evaluate(detect, boxes, classes=NAMES)
    run.to_fiftyone(boxes, "answers")
    results = boxes.evaluate_detections(
        "answers", gt_field="boxes", method="coco", compute_mAP=True, classes=NAMES
    )
    expected = run.map(iou="coco").value
    assert 0 < expected < 1
    assert abs(results.mAP() - expected) < 1e-6, (results.mAP(), expected)
    # a run of a folder, whose ids are paths, into a dataset of the same files
    copies = fiftyone.Dataset()
    copies.add_samples([fiftyone.Sample(str(file)) for file in sorted(root.rglob("*.png"))[::-1]])
    run = se.evaluate(tell, f"image_folder(root='{root}')")
    run.to_fiftyone(copies)
    for sample in copies:
        row = next(i for i, x in enumerate(run.predictions.ids) if sample.filepath.endswith(x))
        assert sample.steadyeye.label == run.predictions.answer(row)
        assert sample.steadyeye_right == bool(run.predictions.right[row])
    refusal = ""
    try:
        run.to_fiftyone(classes[:3])
    except se.UsageError as error:
        refusal = str(error)
    assert "give the dataset that was evaluated" in refusal
    print(f"FiftyOne evaluates what the runs added: accuracy and mAP {expected:.4f} are the same")


def write_copies(folder, pairs):
    """The same photos in a folder of their own, a folder a class."""
    root = folder / "native"
    for path, label in pairs:
        (root / label).mkdir(parents=True, exist_ok=True)
        (root / label / path.name).write_bytes(path.read_bytes())
    return root


if __name__ == "__main__":
    main()
