"""The main job of each extra on a small input; `check_installs.py` does them."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LITE0 = (
    "onnx(path='{lite0}', classes='imagenet1k', recipe={{'size': 224, 'resize': 256, "
    "'mean': 127.0, 'std': 128.0, 'interpolation': 'bicubic'}})"
)
NETWORK = (
    "torch(path='py:toy_networks:net', classes='ten.txt', "
    "recipe={'size': 64, 'mean': 127.0, 'std': 64.0})"
)


class JobError(Exception):
    """A command with an unexpected exit code; its text is the output."""


@dataclass(frozen=True)
class Inputs:
    """The shared inputs of all checks.

    `wheel`: this checkout's. `video`: the packaged video. `lite0`: EfficientNet-Lite0 as an ONNX
    file. `demo`: the Python of the environment in which `make demo` ran.
    """

    wheel: Path
    video: Path
    lite0: Path
    demo: Path


@dataclass(frozen=True)
class Environment:
    """An environment with the wheel installed.

    `work`: a folder for what the job writes. `variables`: more of them for its commands.
    """

    python: Path
    work: Path
    inputs: Inputs
    variables: Mapping[str, str]

    def steadyeye(self, *arguments: str, report: str = "") -> str:
        """Its output. Raises `JobError` unless it ends with 0 and writes `report`."""
        printed = self.run(self.python.parent / "steadyeye", *arguments)
        if report and not (self.work / report).is_file():
            raise JobError(f"{' '.join(arguments)}: no {report}")
        return printed

    def run(self, *command: object, **environment: str) -> str:
        """The output of a command in `work`. Raises `JobError` unless it ends with 0."""
        more = {**self.variables, **environment}
        return execute([str(part) for part in command], self.work, more)

    @property
    def clip(self) -> str:
        """The packaged video with its labels, a few anchors of it."""
        labels = ROOT / "examples" / "bikes.json"
        return f"video(path='{self.inputs.video}', anchors=8, k=3, labels='{labels}')"

    @property
    def model(self) -> str:
        """A classifier that needs no extra."""
        return LITE0.format(lite0=self.inputs.lite0)


def execute(command: list[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """The output of a command in `folder`. Raises `JobError` unless it ends with 0."""
    inherited = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHONPATH", "VIRTUAL_ENV"))
    }
    environment = {**inherited, "PYTHONPATH": str(ROOT / "tests" / "fixtures"), **(more or {})}
    done = subprocess.run(  # noqa: S603 — our own commands
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode or "Traceback" in done.stderr:
        raise JobError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def do_core(at: Environment) -> None:
    """The three main jobs of a classifier, and the readers of their runs, without any extra."""
    at.steadyeye(
        "run", "--model", at.model, "--data", at.clip, "--out", "a", report="a/report.html"
    )
    at.steadyeye("measure", "a")
    at.steadyeye(
        "report", "a", "--out", "page.html", "--format", "html,md,csv,json", report="page.md"
    )
    at.steadyeye("gate", "a", "--require", "pm_k(k=3) >= 0%")
    sweep = ("--operators", "jpeg,white_fog", "--levels", "0:30:15", "--out", "d")
    at.steadyeye("degrade", "--model", at.model, "--data", at.clip, *sweep, report="d/report.html")
    ids = at.run(at.python, "-c", IDS.format(spec=at.clip)).splitlines()
    (at.work / "saved.json").write_text(json.dumps(dict.fromkeys(ids, "bicycle")))
    labels = ROOT / "examples" / "bikes.json"
    names = list(json.loads(labels.read_text())["classes"])
    (at.work / "names.txt").write_text("\n".join(names))
    scored = ("score", "saved.json", "--data", at.clip, "--classes", "names.txt", "--out", "s")
    at.steadyeye(*scored, report="s/report.html")
    at.run(at.python, "-c", EVALUATE.format(spec=at.clip))


IDS = """
from steadyeye.core import plugins, spec
print(*plugins.build("sources", spec.parse({spec!r})).ids, sep="\\n")
"""
EVALUATE = """
import numpy as np, steadyeye as se
def brightness(images):
    scores = np.zeros((len(images), 1000), dtype=np.float32)
    scores[np.arange(len(images)), images.reshape(len(images), -1).mean(axis=1).astype(int)] = 1
    return scores
run = se.evaluate(brightness, {spec!r}, classes="imagenet1k")
print(run.accuracy())
run.report("python.html")
"""


def do_demo(at: Environment) -> None:
    """The packaged models; `make demo` itself runs all of them."""
    clip = ("--data", at.clip, "--out", "a")
    at.steadyeye("run", "--model", "efficientnet_lite0", *clip, report="a/report.html")


def do_torch(at: Environment) -> None:
    """A network of the user's own, with the operator that looks into it."""
    (at.work / "ten.txt").write_text("\n".join(f"class {i}" for i in range(10)))
    clip = ("--data", f"every_frame(path='{at.inputs.video}')", "--out", "a")
    at.steadyeye("run", "--model", NETWORK, *clip, report="a/report.html")


def do_timm(at: Environment) -> None:
    """A network of timm, with random weights: nothing is downloaded."""
    model = "timm(name='mobilenetv3_small_050', pretrained=False)"
    clip = ("--data", at.clip, "--out", "a")
    at.steadyeye("run", "--model", model, *clip, report="a/report.html")


def do_hf(at: Environment) -> None:
    """A vision transformer saved by transformers, with random weights."""
    at.run(at.python, "-c", SAVE_VIT)
    clip = ("--data", f"every_frame(path='{at.inputs.video}')", "--out", "a")
    at.steadyeye("run", "--model", "hf(name='tiny')", *clip, report="a/report.html")


SAVE_VIT = """
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor
labels = {i: f"class {i}" for i in range(10)}
config = ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                   image_size=64, patch_size=16, id2label=labels,
                   label2id={name: i for i, name in labels.items()})
ViTForImageClassification(config).save_pretrained("tiny")
ViTImageProcessor(size={"height": 64, "width": 64}).save_pretrained("tiny")
"""


def do_keras(at: Environment) -> None:
    """A network saved by Keras, with random weights."""
    at.run(at.python, "-c", SAVE_KERAS, KERAS_BACKEND="torch")
    (at.work / "three.txt").write_text("a\nb\nc")
    model = "keras(path='toy.keras', classes='three.txt', recipe={'mean': 127.5, 'std': 127.5})"
    clip = ("--data", f"every_frame(path='{at.inputs.video}')", "--out", "a")
    at.steadyeye("run", "--model", model, *clip, report="a/report.html")


SAVE_KERAS = """
import keras
images = keras.Input((64, 64, 3))
features = keras.layers.Conv2D(8, 3, strides=2, activation="relu")(images)
pooled = keras.layers.GlobalAveragePooling2D()(features)
keras.Model(images, keras.layers.Dense(3, activation="softmax")(pooled)).save("toy.keras")
"""


def do_openvino(at: Environment) -> None:
    """An ONNX file that OpenVINO compiles."""
    model = LITE0.format(lite0=at.inputs.lite0).replace("onnx(", "openvino(", 1)
    clip = ("--data", f"every_frame(path='{at.inputs.video}')", "--out", "a")
    at.steadyeye("run", "--model", model, *clip, report="a/report.html")


def do_litert(at: Environment) -> None:
    """The backend imports, and an invalid file is refused in one line: there is no .tflite file."""
    (at.work / "broken.tflite").write_bytes(b"no network")
    at.run(at.python, "-c", REFUSE_TFLITE)


REFUSE_TFLITE = """
import steadyeye as se
try:
    se.evaluate("litert(path='broken.tflite')", [])
except se.UsageError as error:
    assert "into LiteRT" in str(error) or "empty" in str(error), error
import steadyeye.models.runtimes.litert_network
"""


def do_clip(at: Environment) -> None:
    """The packages import; weights of CLIP cannot be packaged."""
    at.run(at.python, "-c", "import open_clip")


def do_ray(at: Environment) -> None:
    """The same run on a Ray of this machine."""
    clip = ("--data", at.clip, "--engine", "ray", "--out", "a")
    at.steadyeye("run", "--model", at.model, *clip, report="a/report.html")


def do_train(at: Environment) -> None:
    """A few steps of training, and a run of the trained model."""
    (at.work / "ten.txt").write_text("\n".join(f"class {i}" for i in range(10)))
    split = ("--holdout", "0.25", "--by", "time", "--gap", "5", "--iterations", "4", "--batch", "4")
    at.steadyeye(
        "finetune",
        *("--model", NETWORK, "--data", at.clip, *split, "--out", "ft"),
        report="ft/report.html",
    )
    # the trained folder names the function that built its network
    clip = ("--data", at.clip, "--allow-code", "toy_networks:net", "--out", "a")
    at.steadyeye("run", "--model", "torch(path='ft')", *clip, report="a/report.html")


def do_explain(at: Environment) -> None:
    """The four explanations of a detector of coloured squares."""
    write = "explain_toys.write(pathlib.Path('toy')); explain_toys.write(pathlib.Path('other'), 4)"
    at.run(at.python, "-c", f"import explain_toys, pathlib; {write}")
    model = "callable_detector(path='explain_toys:detector', classes='toy/classes.json')"
    data, other = (f"coco(annotations='{d}/boxes.json', images='{d}/images')" for d in FOLDERS)
    embedder = f'blind_spots(embedder="{at.model}")'
    probes = f"patch_shuffle(repeats=2), background(folder='toy/behind'), {embedder}"
    at.steadyeye(
        *("explain", "--model", model, "--data", data, "--reference", other),
        *("--analyses", probes, "--out", "x"),
        report="x/report.html",
    )


FOLDERS = ("toy", "other")


def do_review(at: Environment) -> None:
    """A set sampled from the video, served to a reviewer, exported."""
    at.steadyeye("sample", str(at.inputs.video), "--out", "set", "--anchors", "2", "--k", "2")
    at.run(at.python, "-c", SERVE, at.python.parent / "steadyeye")


SERVE = """
import socket, subprocess, sys, time
from urllib import error, request
# another environment may serve its review at the same time
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = str(free.getsockname()[1])
server = subprocess.Popen([sys.argv[1], "review", "set", "--reviewer", "one", "--port", port],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
words = (word for line in server.stdout for word in line.split())
link = next(word for word in words if word.startswith("http"))
# the link gives a cookie and leads to the page
browser = request.build_opener(request.HTTPCookieProcessor())
try:
    for attempt in range(60):
        try:
            page = browser.open(link, timeout=30).read()
            break
        except error.HTTPError:
            raise
        except OSError:
            # the link is printed just before the server listens
            time.sleep(0.5)
    assert b"<html" in page, page[:200]
finally:
    server.terminate()
"""


def do_stores(module: str) -> Callable[[Environment], None]:
    """The job of a store: its package connects; without an answer there is one line."""

    def do(at: Environment) -> None:
        at.run(
            at.python, "-c", f"import fsspec, {module}; import steadyeye.core.storage.remote_path"
        )

    return do


JOBS: Mapping[str, Callable[[Environment], None]] = {
    "core": do_core,
    "demo": do_demo,
    "torch": do_torch,
    "timm": do_timm,
    "hf": do_hf,
    "keras": do_keras,
    "openvino": do_openvino,
    "litert": do_litert,
    "clip": do_clip,
    "ray": do_ray,
    "train": do_train,
    "explain": do_explain,
    "review": do_review,
    "s3": do_stores("s3fs"),
    "gcs": do_stores("gcsfs"),
    "hub": do_stores("huggingface_hub"),
}
