"""Image-text models, with tiny random weights: the scores and boxes are those of the libraries."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from steadyeye.core import plugins
from steadyeye.core.boxes import iou
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.testing import check_model

pytestmark = pytest.mark.slow
NAMES = ["cat", "dog", "owl"]
TEXT = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
TEXT |= {"intermediate_size": 64, "vocab_size": 600}
VISION = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
VISION |= {"intermediate_size": 64, "image_size": 64, "patch_size": 16}


def save_tokenizer(folder):
    """CLIP's tokenizer with single letters alone."""
    from transformers import CLIPTokenizer

    letters = [chr(code) for code in range(33, 127)]
    words = [*letters, *(f"{letter}</w>" for letter in letters)]
    words += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {word: place for place, word in enumerate(words)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\na b\n")
    vocabulary["ab"] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    return CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))


@pytest.fixture
def class_file(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_text("\n".join(NAMES))
    return str(path)


def build(backend, **arguments):
    return plugins.build("models", Spec(backend, arguments))


@pytest.fixture
def clip(tmp_path, torchvision):
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPProcessor

    folder = tmp_path / "clip"
    folder.mkdir()
    tokenizer = save_tokenizer(folder)
    torch.manual_seed(0)
    ends = {"bos_token_id": 188, "eos_token_id": 189, "pad_token_id": 189}
    config = CLIPConfig(text_config=TEXT | ends, vision_config=VISION, projection_dim=16)
    CLIPModel(config).eval().save_pretrained(folder)
    sizes = {"size": {"shortest_edge": 64}, "crop_size": {"height": 64, "width": 64}}
    CLIPProcessor(CLIPImageProcessorPil(**sizes), tokenizer).save_pretrained(folder)
    return folder


def test_clip_gives_the_logits_of_transformers(clip, class_file):
    from transformers import CLIPModel, CLIPProcessor

    model = build("zero_shot", name=str(clip), classes=class_file, runtime="torch")
    library, processor = CLIPModel.from_pretrained(clip).eval(), CLIPProcessor.from_pretrained(clip)
    images = patterns(64, 64, 3)
    texts = [f"a photo of a {name}." for name in NAMES]
    pictures = [Image.fromarray(image) for image in images]
    inputs = processor(text=texts, images=pictures, return_tensors="pt", padding=True)
    with torch.inference_mode():
        expected = library(**inputs).logits_per_image.softmax(-1).numpy()
    np.testing.assert_allclose(model(images), expected, atol=2e-3)
    assert np.ptp(expected, axis=0).max() > 1e-3
    check_model(model)
    # other words are another model
    options = {"name": str(clip), "classes": class_file, "runtime": "torch"}
    other = build("zero_shot", prompts="a sketch of a {}.", **options)
    assert other.fingerprint != model.fingerprint
    assert other.recipe["prompts"] == ["a sketch of a {}."]
    with pytest.raises(UsageError, match=r"needs one \{\} where the class goes"):
        build("zero_shot", prompts="a photo", **options)


def test_open_clip_gives_the_probabilities_of_its_library(tmp_path, class_file, torchvision):
    library = pytest.importorskip("open_clip")
    config = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 64, "layers": 1, "width": 64, "patch_size": 16},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 1,
                     "layers": 1},
    }  # fmt: skip
    (tmp_path / "tiny-test.json").write_text(json.dumps(config))
    library.add_model_config(tmp_path / "tiny-test.json")
    torch.manual_seed(0)
    original, _, transform = library.create_model_and_transforms("tiny-test")
    torch.save(original.state_dict(), tmp_path / "weights.pt")
    arguments = {"name": "tiny-test", "pretrained": str(tmp_path / "weights.pt")}
    model = build("open_clip", classes=class_file, runtime="torch", **arguments)
    images = patterns(80, 100, 3)
    tokens = library.get_tokenizer("tiny-test")([f"a photo of a {name}." for name in NAMES])
    with torch.inference_mode():
        original.eval()
        pictures = torch.stack([transform(Image.fromarray(image)) for image in images])
        pictures = original.encode_image(pictures, normalize=True)
        texts = original.encode_text(tokens, normalize=True)
        expected = (original.logit_scale.exp() * pictures @ texts.T).softmax(-1).numpy()
    np.testing.assert_allclose(model(images), expected, atol=2e-3)
    check_model(model)


def test_an_open_vocabulary_detector_gives_the_boxes_of_transformers(
    tmp_path, class_file, torchvision
):
    from transformers import (
        AutoProcessor,
        OwlViTConfig,
        OwlViTForObjectDetection,
        OwlViTImageProcessorPil,
        OwlViTProcessor,
    )

    folder = tmp_path / "owl"
    folder.mkdir()
    tokenizer = save_tokenizer(folder)
    torch.manual_seed(0)
    ends = {"bos_token_id": 188, "eos_token_id": 189, "pad_token_id": 0}
    config = OwlViTConfig(
        text_config=TEXT | ends | {"max_position_embeddings": 16},
        vision_config=VISION,
        projection_dim=32,
    )
    library = OwlViTForObjectDetection(config).eval()
    library.save_pretrained(folder)
    processor = OwlViTProcessor(
        OwlViTImageProcessorPil(size={"height": 64, "width": 64}), tokenizer
    )
    processor.save_pretrained(folder)
    model = build("zero_shot_detector", name=str(folder), classes=class_file)
    # which of its image processors the library takes depends on what is installed
    processor = AutoProcessor.from_pretrained(folder)
    image = patterns(80, 100, 1)[0]
    detections = model([image])[0]
    inputs = processor(text=[NAMES], images=image, return_tensors="pt")
    with torch.inference_mode():
        (expected,) = processor.post_process_grounded_object_detection(
            library(**inputs), threshold=0.001, target_sizes=[image.shape[:2]]
        )
    assert len(detections) == len(expected["boxes"]) > 3
    np.testing.assert_allclose(detections.boxes, expected["boxes"], atol=1e-3)
    np.testing.assert_array_equal(detections.labels, expected["labels"])
    assert iou(detections.boxes, detections.boxes).max() > 0.99
    check_model(model)
