"""Folders of models: what finetune wrote, and what transformers saved."""

import hashlib
import json
import shutil
from contextlib import suppress
from functools import partial

import tiny_vit
import torch
from fuzzing import FEW, Parser
from parsers_models import NAMES, infer, pack, unpack

from steadyeye.core.storage.files import CHECKSUM, FORMAT
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import Recipe

RECIPE = Recipe(Preprocessing((32, 32), 32, (0.0,) * 3, (1.0,) * 3))
VIT = {"image_processor_type": "ViTImageProcessor", "size": {"height": 64, "width": 64}}
YOLOS = {"image_processor_type": "YolosImageProcessor", "size": {"height": 64, "width": 96}}


def import_torchvision():
    """Imports it as tests have it, before timm or transformers does; it takes a second."""
    import torchvision_ops  # noqa: F401


def write_trained(folder, record, weights):
    """A folder of finetune; without a checksum of its record, as those of earlier versions."""
    checkpoint_format.write(folder, json.loads(json.dumps(record)), weights)
    path = folder / checkpoint_format.FILE
    content = json.loads(path.read_text())
    plain = {key: value for key, value in content.items() if key not in (CHECKSUM, FORMAT)}
    path.write_text(json.dumps(plain))


def build_trained(folder):
    import_torchvision()
    import timm

    spec = "timm(name='test_resnet', pretrained=False)"
    torch.manual_seed(0)
    module = timm.create_model("test_resnet", num_classes=10)
    record = {
        "kind": "classifier",
        "base": {"spec": spec, "name": "test_resnet", "fingerprint": "0"},
        "build": spec,
        "classes": {"names": NAMES.split("\n"), "wnids": None},
        "several": False,
        "recipe": RECIPE.record(),
        "bare": True,
        "head": {"layers": ["fc"], "kept": False},
        "trained on": {"name": "toy", "fingerprint": "0", "n": 3, "videos": []},
        "augmentation": None,
    }
    write_trained(folder / "trained", record, module.state_dict())


def read_trained(folder):
    infer("torch", path=str(folder / "trained"), runtime="torch")


def make_detector(folder):
    """A detector of transformers as small as can be, saved; its module."""
    import_torchvision()
    from transformers import YolosConfig, YolosForObjectDetection

    torch.manual_seed(0)
    config = YolosConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=[64, 96],
        num_detection_tokens=4,
        id2label={0: "cat", 1: "dog"},
        label2id={"cat": 0, "dog": 1},
    )
    module = YolosForObjectDetection(config).eval()
    module.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(YOLOS))
    return module


def build_trained_detector(folder):
    module = make_detector(folder / "yolos")
    shutil.rmtree(folder / "yolos")
    config = {**module.config.to_dict(), "architectures": ["YolosForObjectDetection"]}
    record = {
        "kind": "detector",
        "base": {"spec": "hf(name='yolos')", "name": "yolos", "fingerprint": "0"},
        "build": "hf(name='yolos')",
        "classes": {"names": ["cat", "dog"], "wnids": None},
        "detector": {"library": "transformers", "config": config, "processor": YOLOS},
    }
    write_trained(folder / "trained", record, module.state_dict())


def build_trained_entries(folder):
    build_trained(folder)
    unpack(folder / "trained" / checkpoint_format.WEIGHTS, folder / "entries")


def read_trained_entries(folder):
    """The weights packed again, and their sum written as finetune would."""
    weights = folder / "trained" / checkpoint_format.WEIGHTS
    pack(folder / "entries", weights)
    path = folder / "trained" / checkpoint_format.FILE
    with suppress(ValueError):
        content = json.loads(path.read_text())
        content["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
        path.write_text(json.dumps(content))
    read_trained(folder)


def build_vit(folder):
    import_torchvision()
    tiny_vit.save_vit(folder / "vit", VIT, ["cat", "dog"])


def read_hf(name, folder):
    infer("hf", name=str(folder / name), runtime="torch")


JSON = {"*/*.json": "json"}
PARSERS = [
    Parser("trained-classifier", build_trained, read_trained, JSON),
    Parser(
        "trained-classifier-weights",
        build_trained_entries,
        read_trained_entries,
        {"entries/**/*": "bytes"},
        cases=FEW,
    ),
    Parser("trained-detector", build_trained_detector, read_trained, JSON),
    Parser(
        "hf-classifier", build_vit, partial(read_hf, "vit"), {**JSON, "*/*.safetensors": "bytes"}
    ),
    Parser(
        "hf-detector",
        lambda f: make_detector(f / "yolos"),
        partial(read_hf, "yolos"),
        {**JSON, "*/*.safetensors": "bytes"},
    ),
    Parser("hf-classifier-numbers", build_vit, partial(read_hf, "vit"), {"vit/*.json": "numbers"}),
    Parser(
        "hf-detector-numbers",
        lambda f: make_detector(f / "yolos"),
        partial(read_hf, "yolos"),
        {"yolos/*.json": "numbers"},
    ),
]
