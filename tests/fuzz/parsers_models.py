"""Files of models: networks and weights."""

import os
import zipfile
from functools import partial

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import tiny_onnx
import torch
import toy_networks
from fuzzing import Parser
from safetensors.torch import save_file

from steadyeye.core import plugins
from steadyeye.core.boxes import Detections
from steadyeye.core.spec import Spec
from steadyeye.models.runtimes import torch_export
from steadyeye.runner.cache import codec

NAMES = "\n".join(f"class {i}" for i in range(10))
IMAGE = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
SMALL = {"size": 32, "resize": 32}
ZEROS = torch.zeros(1, 3, 32, 32)


def infer(backend, **options):
    """Reads a model as a spec does, and infers an image."""
    torch.set_num_threads(1)  # threads do not outlive the fork
    plugins.build("models", Spec(backend, options))([IMAGE])


def infer_file(name, file, folder, **options):
    """As `infer`, of a file in the folder with the ten classes beside it."""
    classes = folder / "names.txt"
    if not classes.exists():
        classes.write_text(NAMES)
    infer(name, path=str(folder / file), classes=str(classes), **options)


def unpack(file, folder):
    """The entries of a zip file as files of a folder, so that each can be damaged."""
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    file.unlink()


def pack(folder, file):
    """The files of a folder as a whole zip file, its sums right."""
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            archive.write(path, path.relative_to(folder).as_posix())


def parse_entries(name, build, read, file, forms):
    """A parser of a zip file whose entries are damaged, not the file around them."""

    def build_entries(folder):
        build(folder)
        unpack(folder / file, folder / "entries")

    def read_entries(folder):
        pack(folder / "entries", folder / file)
        read(folder)

    return Parser(name, build_entries, read_entries, forms)


def build_scripted(folder):
    torch.jit.trace(toy_networks.net(), ZEROS).save(folder / "net.pt")


def build_exported(folder):
    program = torch.export.export(toy_networks.net(), (ZEROS,))
    torch.export.save(program, folder / "net.pt2")


def build_checkpoint(folder):
    state = {f"module.{k}": v for k, v in toy_networks.net().state_dict().items()}
    torch.save({"epoch": 3, "state_dict": state}, folder / "net.pth")


def build_old_checkpoint(folder):
    """As torch wrote them before it wrote zip files."""
    state = toy_networks.net().state_dict()
    torch.save(state, folder / "net.pth", _use_new_zipfile_serialization=False)


def build_safetensors(folder):
    save_file(toy_networks.net().state_dict(), folder / "net.safetensors")


def read_weights(file, folder):
    """Reads weights into a network of the user's own."""
    classes = folder / "names.txt"
    classes.write_text(NAMES)
    infer(
        "torch",
        path="py:toy_networks:net",
        checkpoint=str(folder / file),
        classes=str(classes),
        recipe=SMALL,
        runtime="torch",
    )


def build_keras(folder):
    import keras

    keras.utils.set_random_seed(0)
    images = keras.Input((32, 32, 3))
    features = keras.layers.Conv2D(4, 3, strides=2, activation="relu")(images)
    pooled = keras.layers.GlobalAveragePooling2D()(features)
    network = keras.Model(images, keras.layers.Dense(10, activation="softmax")(pooled))
    network.save(folder / "net.keras")


def read_keras(folder):
    recipe = {"mean": 127.5, "std": 127.5, "resize": 32}
    infer_file("keras", "net.keras", folder, recipe=recipe, runtime="torch")


def read_detector(folder):
    (folder / "names.txt").write_text("cat\ndog\n")
    path, classes = str(folder / "net.onnx"), str(folder / "names.txt")
    infer("onnx_detector", path=path, decoder="boxes", classes=classes)


def build_classes(file, text):
    def build(folder):
        tiny_onnx.save_classifier(folder / "net.onnx")
        (folder / file).write_text(text)

    return build


def read_classes(file, folder):
    classes, path = str(folder / file), str(folder / "net.onnx")
    infer("onnx", path=path, classes=classes, recipe={"resize": 32})


KEY = b"key"


def build_answer(folder):
    """An answer of the cache without its checksum, which whoever alters it can make anew."""
    boxes = np.array([[1.0, 2, 20, 30], [5, 5, 9, 9]])
    detections = Detections(boxes, np.array([0, 1], np.int32), np.array([0.9, 0.4]))
    cached = codec.CachedAnswer(detections, {"brightness": 0.5}, (40, 50))
    (folder / "answer").write_bytes(codec.encode(KEY, cached)[codec.CHECK :])


def read_answer(folder):
    body = (folder / "answer").read_bytes()
    codec.decode(KEY, codec._checksum(KEY, body) + body)


def build_note(folder):
    (folder / "net.refused.json").write_text('{"note": "dynamo exporter: no kernel"}')


LISTS = {
    "names.txt": (NAMES, "text"),
    "names.csv": ("name,wnid\n" + NAMES.replace("\n", ",\n") + ",\n", "csv"),
    "names.json": (str({str(i): f"class {i}" for i in range(10)}).replace("'", '"'), "json"),
}


def parse_classes(file):
    text, form = LISTS[file]
    name = f"model-with-{file.replace('.', '-')}"
    return Parser(name, build_classes(file, text), partial(read_classes, file), {file: form})


read_onnx = partial(infer_file, "onnx", "net.onnx", recipe={"resize": 32})
read_torch = partial(infer_file, "torch", recipe=SMALL, runtime="torch")
read_scripted = partial(read_torch, "net.pt")
read_exported = partial(read_torch, "net.pt2", allow_pickle=True)
BYTES = {"*": "bytes"}
ENTRIES = {"entries/**/*": "bytes"}
JSON_AND_BYTES = {"entries/**/*.json": "json", **ENTRIES}
PARSERS = [
    Parser("onnx", lambda f: tiny_onnx.save_classifier(f / "net.onnx"), read_onnx, BYTES),
    Parser(
        "onnx-with-data-beside",
        lambda folder: tiny_onnx.save_classifier(folder / "net.onnx", "weights.bin"),
        read_onnx,
        BYTES,
    ),
    Parser(
        "onnx-detector", lambda f: tiny_onnx.save_detector(f / "net.onnx"), read_detector, BYTES
    ),
    Parser("torchscript", build_scripted, read_scripted, BYTES),
    parse_entries("torchscript-entries", build_scripted, read_scripted, "net.pt", ENTRIES),
    Parser("exported-program", build_exported, read_exported, BYTES),
    parse_entries(
        "exported-program-entries", build_exported, read_exported, "net.pt2", JSON_AND_BYTES
    ),
    Parser("checkpoint", build_checkpoint, partial(read_weights, "net.pth"), BYTES),
    parse_entries(
        "checkpoint-entries", build_checkpoint, partial(read_weights, "net.pth"), "net.pth", ENTRIES
    ),
    Parser(
        "checkpoint-of-old-torch", build_old_checkpoint, partial(read_weights, "net.pth"), BYTES
    ),
    Parser("safetensors", build_safetensors, partial(read_weights, "net.safetensors"), BYTES),
    Parser("keras", build_keras, read_keras, BYTES),
    parse_entries("keras-entries", build_keras, read_keras, "net.keras", JSON_AND_BYTES),
    *map(parse_classes, LISTS),
    Parser("cached-answer", build_answer, read_answer, BYTES),
    Parser(
        "note-of-an-export",
        build_note,
        lambda folder: torch_export._read_note(folder / "net.refused.json"),
        {"*": "json"},
    ),
]
