"""Integrated gradients of detectors: by hand on a linear one, complete on real architectures."""

import json

import cv2
import numpy as np
import pytest
import torch
from toy_networks import spread

from steadyeye.core.errors import UsageError
from steadyeye.core.plugins import build as build_plugin
from steadyeye.core.spec import Spec
from steadyeye.data.images import image_file
from steadyeye.models.introspection.differentiable import FixedCandidates, choose_candidate

BOX = (2.0, 1.0, 5.0, 4.0)
BLOTS = np.random.default_rng(5).integers(0, 256, (9, 12, 3), dtype=np.uint8)
PHOTO = cv2.resize(BLOTS, (160, 120), interpolation=cv2.INTER_CUBIC)
IMAGE = np.random.default_rng(3).integers(1, 256, (6, 8, 3), dtype=np.uint8)


def attribute(*parts, **options):
    # captum takes seconds to import
    from steadyeye.explain.probes.integrated_gradients import attribute_detection

    return attribute_detection(*parts, **options)


def build(plugin, **kwargs):
    return build_plugin("models", Spec(plugin, kwargs))


def values_of(image):
    return torch.from_numpy(image.astype(np.float32)).permute(2, 0, 1)[None] / 255


def linear(weight):
    """A detector of one candidate and two classes whose second score is Σ weight × value."""

    def scores(values):
        second = (values * torch.from_numpy(weight).float()).sum((1, 2, 3))
        return torch.stack([torch.zeros_like(second), second], -1)[:, None]

    boxes = np.array(BOX)[None, None]
    return FixedCandidates(IMAGE, values_of, (1.0, 1.0), boxes, scores)


@pytest.mark.parametrize(("baseline", "grey"), [("black", 0), ("grey", round(IMAGE.mean()))])
def test_a_linear_detector_gives_weight_times_difference(baseline, grey):
    weight = np.random.default_rng(0).normal(size=(3, 6, 8)) / 20
    difference = (IMAGE.transpose(2, 0, 1).astype(float) - grey) / 255
    score = (weight * IMAGE.transpose(2, 0, 1) / 255).sum()
    attribution = attribute(linear(weight), (BOX, 1, score), baseline)
    np.testing.assert_allclose(
        attribution.values, np.abs(weight * difference).sum(axis=0), atol=1e-6
    )
    assert attribution.total == pytest.approx((weight * difference).sum(), abs=1e-5)
    assert attribution.complete
    assert attribution.steps == 32


def test_a_score_that_no_candidate_has_is_refused():
    with pytest.raises(UsageError, match="no candidate of the opened detector scores"):
        attribute(linear(np.zeros((3, 6, 8))), (BOX, 1, 0.9))
    with pytest.raises(UsageError, match="no baseline named 'white'"):
        attribute(linear(np.zeros((3, 6, 8))), (BOX, 1, 0.0), "white")


def test_steps_rise_until_complete_and_what_is_not_says_so():
    # a step at a thousandth of the way: few points see it
    def scores(values):
        return torch.sigmoid(2000 * (values.mean((1, 2, 3)) - 0.3))[:, None, None]

    candidates = FixedCandidates(IMAGE, values_of, (1.0, 1.0), np.array(BOX)[None, None], scores)
    few = attribute(candidates, (BOX, 0, 1.0), most=32)
    assert not few.complete
    assert few.steps == 32
    more = attribute(candidates, (BOX, 0, 1.0))
    assert more.steps > 32
    assert more.residual < few.residual


def saved(folder, kind, seed):
    """A transformers detector of random weights and its processor's configuration.

    The seeds give networks whose scores differ enough between a picture and black.
    """
    import transformers

    torch.manual_seed(seed)
    names = {"id2label": {0: "person", 1: "dog"}, "label2id": {"person": 0, "dog": 1}}
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    if kind == "Yolos":
        more = {"intermediate_size": 64, "image_size": [64, 96], "num_detection_tokens": 20}
        config = transformers.YolosConfig(**size, **more, **names)
        processor_config = {"size": {"height": 64, "width": 96}}
    else:
        layers = {"encoder_layers": 1, "decoder_layers": 1, "num_queries": 10, "d_model": 32}
        heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
        sides = {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
        backbone = transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1]
        )
        config = getattr(transformers, f"{kind}Config")(
            **layers, **heads, **sides, backbone_config=backbone, **names
        )
        processor_config = {"size": {"shortest_edge": 64, "longest_edge": 96}}
    getattr(transformers, f"{kind}ForObjectDetection")(config).save_pretrained(folder)
    processor_config["image_processor_type"] = f"{kind}ImageProcessor"
    (folder / "preprocessor_config.json").write_text(json.dumps(processor_config))
    return build("hf", name=str(folder))


def check(model, image):
    """Completeness of the detection that differs most from that candidate's score on black.

    A network of random weights tells most of its candidates hardly from black.
    """
    (answer,) = model([image])
    candidates = model.fix_candidates(image)
    with torch.no_grad():
        scores, black = (
            candidates.scores(candidates.prepare(picture))[0].double().numpy()
            for picture in (image, np.zeros_like(image))
        )
    detections = list(
        zip(answer.boxes, answer.labels.tolist(), answer.scores.tolist(), strict=True)
    )
    rows = [choose_candidate(candidates, scores, *row_detection) for row_detection in detections]
    labels = answer.labels.tolist()
    away = [abs(scores[i, c] - black[i, c]) for i, c in zip(rows, labels, strict=True)]
    detection = detections[int(np.argmax(away))]
    attribution = attribute(candidates, detection)
    assert attribution.score == pytest.approx(detection[2], abs=1e-5)
    assert attribution.complete, (attribution.residual, attribution.steps)
    height, width = image.shape[:2]
    assert attribution.values.shape[0] >= height * attribution.scale[1] - 1
    assert attribution.values.shape[1] >= width * attribution.scale[0] - 1
    return candidates, attribution


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize(("kind", "seed"), [("Yolos", 0), ("Detr", 3), ("ConditionalDetr", 0)])
def test_transformers_detectors_are_complete(kind, seed, tmp_path):
    candidates, attribution = check(saved(tmp_path, kind, seed), PHOTO)
    assert candidates.boxes.shape[1:] == (1, 4)
    assert attribution.values.max() > 0


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("ssdlite320_mobilenet_v3_large", {}),
        ("fasterrcnn_mobilenet_v3_large_320_fpn", {"size": [192, 256]}),
        ("retinanet_resnet50_fpn_v2", {"size": [192, 256]}),
        ("fcos_resnet50_fpn", {"size": [192, 256]}),
    ],
)
def test_torchvision_detectors_are_opened_at_what_they_say(name, more, torchvision):
    model = build("torchvision", name=name, weights=None, **more)
    spread(model.copies.module)
    (answer,) = model([PHOTO])
    candidates = model.fix_candidates(PHOTO)
    with torch.no_grad():
        scores = candidates.scores(candidates.prepare(PHOTO))[0].double().numpy()
    for i in range(min(len(answer), 5)):
        box, label, score = answer.boxes[i], int(answer.labels[i]), float(answer.scores[i])
        candidate = choose_candidate(candidates, scores, box, label, score)
        assert scores[candidate, label] == pytest.approx(score, abs=1e-4)
        candidate_box = candidates.boxes[candidate, min(label, candidates.boxes.shape[1] - 1)]
        np.testing.assert_allclose(candidate_box, box, atol=1.5)


@pytest.mark.slow
def test_a_real_mistake_is_complete(test_data, monkeypatch):
    # the goat that YOLOX-nano calls a bear, its network computed by torch
    from onnx_in_torch import yolox

    from steadyeye.explain.probes import integrated_gradients

    monkeypatch.setattr(integrated_gradients, "FIRST", 48)  # 32 are too few, and take seconds
    photo = image_file.read(test_data / "davis" / "JPEGImages" / "goat" / "00040.jpg")
    ((boxes, scores, labels),) = yolox([photo])
    session = build(
        "onnx_detector", path=str(test_data / "models" / "yolox_nano.onnx"), decoder="yolox"
    )
    (answer,) = session([photo])
    np.testing.assert_allclose(scores, answer.scores, atol=1e-4)
    np.testing.assert_allclose(boxes, answer.boxes, atol=1e-2)
    assert session.classes.names[labels[0]] == "bear"
    attribution = attribute(
        yolox.fix_candidates(photo), (boxes[0], int(labels[0]), float(scores[0])), most=48
    )
    assert attribution.score > 0.8
    assert attribution.without < 0.01
    assert attribution.complete, (attribution.residual, attribution.steps)
