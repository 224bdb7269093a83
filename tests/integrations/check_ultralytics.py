"""Ultralytics through its package, its ONNX exports, and supervision: one script, its own place.

Run by `make integrations`, which installs ultralytics (AGPL-3.0, no dependency of steadyeye) and
supervision beside this checkout without their OpenCV. The networks have random weights: there are
none to be had here. What `predict` of the package gives is the native road.
"""

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.mkdtemp())
os.environ.setdefault("YOLO_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fixtures"))

import numpy as np
import torch
from torchvision_ops import torchvision  # noqa: F401 — ultralytics imports it

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.spec import Spec, parse
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.runner.short_forms import expand_model
from steadyeye.testing import check_model

NAMES = {0: "cat", 1: "dog", 2: "bird"}
SIDE = 160
IMAGES = [patterns(97, 160, 1)[0], patterns(160, 120, 1)[0], patterns(200, 333, 1)[0]]


def build_network(stem, folder):
    """A network of three classes with spread weights, saved as the package saves it."""
    import ultralytics
    import yaml

    file = next(Path(ultralytics.__file__).parent.rglob(f"{stem.removesuffix('n')}.yaml"))
    content = yaml.safe_load(file.read_text()) | {"nc": len(NAMES)}
    (folder / f"{stem}.yaml").write_text(yaml.safe_dump(content))
    model = ultralytics.YOLO(str(folder / f"{stem}.yaml"))
    model.model.names = NAMES
    spread(model.model)
    model.save(str(folder / f"{stem}.pt"))
    return folder / f"{stem}.pt"


def spread(network):
    """Gives the last layers weights that tell images and cells apart."""
    torch.manual_seed(3)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
            module.reset_running_stats()
    network.train()
    images = np.stack(patterns(SIDE, SIDE, 4)).transpose(0, 3, 1, 2)
    with torch.no_grad():
        network(torch.from_numpy(images.astype(np.float32) / 255))
    network.eval()
    head = network.model[-1]
    for name in ("cv2", "cv3", "one2one_cv2", "one2one_cv3"):
        for branch in getattr(head, name, None) or []:
            torch.nn.init.normal_(branch[-1].weight, 0, 0.25)
            torch.nn.init.constant_(branch[-1].bias, -2.0 if "cv3" in name else 1.5)


def check_same(detections, boxes, name):
    """Whether detections are those of `predict`: each box has a partner within a tenth pixel."""
    expected = boxes.data.cpu().numpy()
    own = np.column_stack([detections.boxes, detections.scores, detections.labels])
    own = own[detections.scores >= 0.05]
    expected = expected[expected[:, 4] >= 0.05]
    gaps = np.abs(own[:, None] - expected[None])
    far = gaps[..., :4].max(-1) + 1000 * gaps[..., 4] + 1000 * (gaps[..., 5] > 0)
    assert len(own) == len(expected) > 5, (name, len(own), len(expected))
    assert max(far.min(0).max(), far.min(1).max()) < 0.1, (name, far.min(0).max())
    print(f"{name}: {len(own)} boxes equal to predict's within {far.min(1).max():.1e} pixels")


def check_network(stem, folder, **export):
    """The export by its path alone, and the .pt file through the package, against `predict`."""
    from ultralytics import YOLO

    file = build_network(stem, folder)
    form = export if "format" in export else {"format": "onnx", "simplify": False, **export}
    exported = YOLO(str(file)).export(imgsz=SIDE, **form)
    text = expand_model(str(exported))
    model = plugins.build("models", parse(text))
    print(text, "—", model.recipe["decoder_note"])
    assert model.classes.names == tuple(NAMES.values())
    options = {"conf": 0.001, "imgsz": SIDE, "verbose": False, "iou": 0.7, "max_det": 3000}
    for image in IMAGES:
        bgr = np.ascontiguousarray(image[..., ::-1])
        native = YOLO(str(exported), task="detect").predict(bgr, **options)[0]
        check_same(model([image])[0], native.boxes, f"{stem} {export or ''} {image.shape[:2]}")
    arguments = {"path": str(file), "allow_pickle": True, "size": SIDE}
    package = plugins.build("models", Spec("ultralytics", arguments))
    options["max_det"] = 300
    bgr = np.ascontiguousarray(IMAGES[0][..., ::-1])
    check_same(package(IMAGES[:1])[0], YOLO(str(file)).predict(bgr, **options)[0].boxes, file.name)
    return package


def check_supervision(package):
    """The same numbers from tuples, from Results of the package, and from supervision."""
    import supervision

    truth = [package([image])[0] for image in IMAGES]
    data = []
    for image, detections in zip(IMAGES, truth, strict=True):
        few = slice(0, 3)
        sets = supervision.Detections(
            xyxy=detections.boxes[few].astype(np.float32), class_id=detections.labels[few]
        )
        data.append((image, sets))
    native = [
        (image, {"boxes": sets.xyxy, "labels": sets.class_id.tolist()}) for image, sets in data
    ]

    def detect(images):
        return [
            supervision.Detections(xyxy=f.boxes, class_id=f.labels, confidence=f.scores)
            for f in package(images)
        ]

    names = list(NAMES.values())
    first = se.evaluate(detect, data, classes=names).map()
    second = se.evaluate(package, native, classes=names).map()
    assert abs(first.value - second.value) < 1e-6, (first, second)
    print(f"supervision: {first}, as on the native road")


def main():
    """Every check; raises AssertionError where a number is not that of the native road."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            package = check_network("yolov8n", Path(name))
            check_network("yolo26n", Path(name), end2end=True)
            check_model(package)
            check_supervision(package)
        finally:
            os.chdir(home)


if __name__ == "__main__":
    main()
