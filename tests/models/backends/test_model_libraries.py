"""timm, torchvision, transformers and Keras: equal to the library's own preprocessing and forward.

Weights are random: nothing is downloaded.
"""

import importlib
import json
import socketserver
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from gpu_marks import on_a_gpu, without_gpu
from PIL import Image as Pillow
from tiny_vit import save_vit
from toy_networks import spread

from steadyeye.core import imports, plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.images import image_file
from steadyeye.models.runtimes.torch_module import one_thread
from steadyeye.models.runtimes.weights import FORMER, architecture
from steadyeye.testing import check_model

PHOTOS = ("hot_dog.jpg", "cat_720p.jpg", "pets.jpg")
pytestmark = pytest.mark.usefixtures("own_cache", "torchvision")


@pytest.fixture(scope="module")
def photos(test_data):
    return [image_file.read(test_data / "photos" / name) for name in PHOTOS]


def build(plugin, **kwargs):
    torch.manual_seed(0)
    return plugins.build("models", Spec(plugin, kwargs))


def agree(model, photos, transform, module, tolerance=1e-5):
    """The plugin's inputs and scores against the library's; the largest difference of inputs."""
    largest = 0.0
    for photo in photos:
        own_input = np.empty((3, *model.settings.preprocessing.size), dtype=np.float32)
        model.settings.preprocessing(photo, own_input)
        expected_input = transform(Pillow.fromarray(photo))
        assert own_input.shape == tuple(expected_input.shape)
        largest = max(largest, float(np.abs(own_input - expected_input.numpy()).max()))
        with torch.inference_mode():
            expected = module(expected_input[None]).softmax(dim=1).numpy()
        np.testing.assert_allclose(model([photo]), expected, atol=tolerance)
    return largest


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("deit_tiny_patch16_224", marks=pytest.mark.slow),  # bicubic, crop_pct 0.9
        pytest.param("levit_128s", marks=pytest.mark.slow),
    ],
)
def test_timm_models_give_the_scores_of_timm(name, photos):
    import timm

    model = build("timm", name=name, pretrained=False)
    torch.manual_seed(0)
    module = timm.create_model(name).eval()
    config = timm.data.resolve_model_data_config(module)
    assert model.recipe["runtime"] == "onnx", model.recipe
    assert model.classes.names[934] == "hotdog"
    assert check_model(model)
    assert agree(model, photos, timm.data.create_transform(**config), module) < 1e-5


def test_timm_checkpoints_classes_and_errors(tmp_path, photos):
    import timm

    (tmp_path / "two.txt").write_text("dog\ncat")
    options = {"name": "mobilenetv3_small_050", "classes": str(tmp_path / "two.txt")}
    module = timm.create_model("mobilenetv3_small_050", num_classes=2).eval()
    torch.save(module.state_dict(), tmp_path / "weights.pth")
    model = build("timm", checkpoint=str(tmp_path / "weights.pth"), **options)
    config = timm.data.resolve_model_data_config(module)
    assert agree(model, photos[:1], timm.data.create_transform(**config), module) < 1e-5
    with pytest.raises(UsageError, match="timm cannot make 'mobilenet_v9'"):
        build("timm", name="mobilenet_v9", pretrained=False)


def test_a_torchvision_of_another_torch_is_reported_in_one_line(monkeypatch):
    def broken(name):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(importlib, "import_module", broken)
    for name in ("timm", "torchvision", "transformers"):
        with pytest.raises(UsageError, match="needs a torchvision built for this torch") as error:
            imports.library(name)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("plugin", "options", "repository"),
    [
        ("hf", {"name": "microsoft/resnet-50"}, "microsoft/resnet-50"),
        ("timm", {"name": "resnet10t"}, "timm/resnet10t.c3_in1k"),
        ("zero_shot", {"name": "openai/clip", "classes": "coco"}, "openai/clip"),
        ("zero_shot_detector", {"name": "google/owlvit", "classes": "coco"}, "google/owlvit"),
        (
            "open_clip",
            {"name": "ViT-B-32", "pretrained": "openai", "classes": "coco"},
            "timm/vit_base_patch32_clip_224.openai",
        ),
        (
            "open_clip",
            {"name": "ViT-B-16-SigLIP", "pretrained": __file__, "classes": "coco"},
            "timm/ViT-B-16-SigLIP",
        ),
    ],
)
def test_a_hub_that_hangs_up_is_asked_twice_and_not_for_each_file(
    plugin, options, repository, tmp_path, monkeypatch
):
    with (
        hub_that_hangs_up(tmp_path, monkeypatch) as (url, calls),
        pytest.raises(UsageError, match=f"cannot reach {url} for '{repository}'"),
    ):
        build(plugin, **options)
    assert len(calls) == 2


@contextmanager
def hub_that_hangs_up(cache, monkeypatch):
    """The address of a hub that ends every connection, and the connections to it."""
    calls = []

    class HangUp(socketserver.BaseRequestHandler):
        def handle(self):
            calls.append(self.client_address)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HangUp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
        yield url, calls
        server.shutdown()


@pytest.mark.slow
def test_a_model_in_the_cache_of_the_hub_is_read_where_the_hub_is_away(tmp_path, monkeypatch):
    from huggingface_hub import constants

    repository = tmp_path / "models--me--vit"
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 64, "width": 64}}
    save_vit(snapshot, processor, ["cat", "dog"])
    with hub_that_hangs_up(tmp_path, monkeypatch) as (url, calls):
        model = build("hf", name="me/vit", runtime="torch")
        assert (model.classes.names, len(calls)) == (("cat", "dog"), 2)
        # a session that finds a network later asks it again
        assert not constants.HF_HUB_OFFLINE
        (snapshot / "preprocessor_config.json").unlink()
        text = (
            f"cannot reach {url}, and 'me/vit' cannot be read from its cache .* alone .*; connect"
        )
        with pytest.raises(UsageError, match=text):
            build("hf", name="me/vit", runtime="torch")
    assert (len(calls), constants.HF_HUB_OFFLINE) == (4, False)


@pytest.mark.parametrize("mode", ["squash", "center", "border"])
def test_timm_crop_modes_are_those_of_its_transforms(mode, photos):
    import timm

    from steadyeye.models.backends.timm import _preprocessing

    config = {
        "input_size": (3, 96, 96),
        "crop_pct": 0.9,
        "crop_mode": mode,
        "mean": (0.5, 0.4, 0.3),
        "std": (0.2, 0.2, 0.3),
        "interpolation": "bilinear",
    }
    if mode == "border":
        with pytest.raises(UsageError, match="crop_mode='border'"):
            _preprocessing(config)
        return
    own_input = np.empty((3, 96, 96), dtype=np.float32)
    _preprocessing(config)(photos[0], own_input)
    expected_input = timm.data.create_transform(**config)(Pillow.fromarray(photos[0])).numpy()
    assert np.abs(own_input - expected_input).max() < 1e-5


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "squeezenet1_1"])
def test_torchvision_models_give_the_scores_of_torchvision(name, photos, torchvision):
    model = build("torchvision", name=name, weights=None)
    assert check_model(model)
    torch.manual_seed(0)
    module = torchvision.models.get_model(name).eval()
    transforms = torchvision.models.get_model_weights(name).DEFAULT.transforms()
    assert model.classes.wnids[934] == "n07697537"
    assert model.recipe["runtime"] == "onnx", model.recipe
    assert agree(model, photos, transforms, module) < 1e-5


def test_unknown_models_and_weights_of_torchvision_are_refused():
    with pytest.raises(UsageError, match="did you mean 'mobilenet_v3_small'"):
        build("torchvision", name="mobilenet_v3_smal")
    with pytest.raises(UsageError, match="no weights of resnet18 named 'IMAGENET1K_V3'"):
        build("torchvision", name="resnet18", weights="IMAGENET1K_V3")


@pytest.fixture
def torch_home(tmp_path, monkeypatch):
    """An empty cache of weights."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "hub" / "checkpoints").mkdir(parents=True)
    return tmp_path / "home" / "hub" / "checkpoints"


SSD = "ssdlite320_mobilenet_v3_large"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        (SSD, ()),
        ("fasterrcnn_mobilenet_v3_large_320_fpn", ()),
        ("retinanet_resnet50_fpn_v2", (224, 320)),
    ],
)
def test_torchvision_detectors_answer_as_the_library_does(
    name, size, tmp_path, photos, torchvision
):
    library_options = dict(zip(("min_size", "max_size"), size, strict=False))
    module = spread(torchvision.models.get_model(name, weights_backbone=None, **library_options))
    torch.save(module.state_dict(), tmp_path / "random.pth")
    plugin_options = {"checkpoint": str(tmp_path / "random.pth")} | (
        {"size": list(size)} if size else {}
    )
    model = build("torchvision", name=name, **plugin_options)
    entry = torchvision.models.get_model_weights(name).DEFAULT
    categories = entry.meta["categories"]
    getattr(module, "roi_heads", module).score_thresh = 0.001
    assert model.recipe["runtime"] == "torch"
    assert model.recipe["min_size"] == list(module.transform.min_size)
    for photo, detections in zip(photos[:1], model(photos[:1]), strict=True):
        # as many threads as the plugin takes: other sums would exchange scores that nearly tie
        with one_thread(), torch.inference_mode():
            (expected,) = module([entry.transforms()(Pillow.fromarray(photo))])
        assert len(detections) == len(expected["scores"]) > 0
        assert len(set(detections.scores.tolist())) > len(detections) / 2, (
            "scores that decide the order"
        )
        assert np.array_equal(detections.scores, expected["scores"].numpy())
        assert np.array_equal(detections.boxes, expected["boxes"].numpy())
        names = [categories[label] for label in expected["labels"]]
        own_names = [model.classes.names[label] for label in detections.labels]
        assert [name.partition("N/A")[0] for name in own_names] == [
            n.replace("N/A", "") for n in names
        ]
        assert detections.boxes.min() >= 0
        assert (detections.boxes.max(axis=0)[2:] <= photo.shape[1::-1]).all()


@on_a_gpu
@pytest.mark.parametrize("name", [SSD, "fasterrcnn_resnet50_fpn", "retinanet_resnet50_fpn_v2"])
def test_torchvision_detectors_on_a_gpu_find_what_they_find_on_the_processor(
    name, tmp_path, photos, torchvision
):
    module = spread(torchvision.models.get_model(name, weights_backbone=None))
    torch.save(module.state_dict(), tmp_path / "random.pth")
    on_gpu, on_processor = (
        build("torchvision", name=name, checkpoint=str(tmp_path / "random.pth"), runtime=runtime)
        for runtime in ("cuda", "torch")
    )
    assert on_gpu.fingerprint != on_processor.fingerprint
    answers = on_gpu(photos), on_processor(photos), on_gpu(photos)
    for detections, expected, again in zip(*answers, strict=True):
        # random weights have scores that nearly tie, so the last objects of the list may differ
        first = min(len(detections), len(expected), 20)
        assert first > 0
        np.testing.assert_allclose(detections.scores[:first], expected.scores[:first], atol=1e-3)
        np.testing.assert_array_equal(again.scores, detections.scores)
        np.testing.assert_array_equal(again.boxes, detections.boxes)


def test_torchvision_detectors_answer_in_the_classes_of_coco(photos):
    model = build("torchvision", name=SSD, weights=None)
    assert model.classes.names[:2] == ("person", "bicycle")
    assert model.classes.names[11] == "N/A 12"
    assert set(shipped_classes("coco").names) <= set(model.classes.names)
    assert "__background__" not in model.classes.names


def test_weights_of_torchvision_detectors_are_loaded_as_tensors_alone(
    tmp_path, torch_home, photos, torchvision
):
    module = spread(torchvision.models.get_model(SSD, weights_backbone=None))
    file = torch_home / torchvision.models.get_model_weights(SSD).DEFAULT.url.rpartition("/")[2]
    torch.save(module.state_dict(), file)
    built_by_name = build("torchvision", name=SSD)
    torch.save(module.state_dict(), tmp_path / "random.pth")
    built_from_file = build("torchvision", name=SSD, checkpoint=str(tmp_path / "random.pth"))
    assert (
        built_by_name(photos[:1])[0].boxes.tolist() == built_from_file(photos[:1])[0].boxes.tolist()
    )
    torch.save({"code": importlib.import_module}, file)
    with pytest.raises(UsageError, match="hold pickled objects, which may run code; delete ssd"):
        build("torchvision", name=SSD)


def test_torchvision_detectors_of_other_classes(tmp_path, torch_home, photos, torchvision):
    (tmp_path / "two.txt").write_text("cat\ndog")
    own = {"name": SSD, "classes": str(tmp_path / "two.txt")}
    module = torchvision.models.get_model(SSD, weights_backbone=None, num_classes=3)
    weights = spread(module).state_dict()
    # as of a model trained with its batch normalisation frozen
    own_weights = {
        name: w for name, w in weights.items() if not name.endswith("num_batches_tracked")
    }
    torch.save(own_weights, tmp_path / "two.pth")
    model = build("torchvision", checkpoint=str(tmp_path / "two.pth"), **own)
    assert model.classes.names == ("cat", "dog")
    assert set(model(photos[:1])[0].labels.tolist()) == {0, 1}
    with pytest.raises(UsageError, match="predict 90 classes, not 2; give checkpoint="):
        build("torchvision", **own)
    with pytest.raises(UsageError, match="does not fit SSD"):
        build("torchvision", name=SSD, checkpoint=str(tmp_path / "two.pth"))
    with pytest.raises(UsageError, match="did you mean 'ssdlite320_mobilenet_v3_large'"):
        build("torchvision", name="ssdlite320_mobilenet_v3")


SIZES = {
    "ViTImageProcessor": {"size": {"height": 64, "width": 64}},
    "ConvNextImageProcessor": {"size": {"shortest_edge": 64}, "crop_pct": 0.875},
    "BitImageProcessor": {
        "size": {"shortest_edge": 72},
        "crop_size": {"height": 64, "width": 64},
    },
    "LevitImageProcessor": {
        "size": {"shortest_edge": 64},
        "crop_size": {"height": 64, "width": 64},
    },
    "PoolFormerImageProcessor": {
        "size": {"shortest_edge": 64},
        "crop_size": {"height": 64, "width": 64},
        "crop_pct": 0.875,
    },
}


@pytest.mark.parametrize("processor", SIZES)
def test_hf_from_a_folder(processor, tmp_path, photos, torchvision):
    from transformers import AutoImageProcessor, AutoModelForImageClassification

    labels = torchvision.models.get_model_weights("resnet18").DEFAULT.meta["categories"]
    processor_config = {"image_processor_type": processor, **SIZES[processor]}
    folder = save_vit(tmp_path / "tiny", processor_config, labels)
    model = build("hf", name=folder)
    assert check_model(model)
    assert model.name == "tiny"
    assert model.classes.wnids[934] == "n07697537"
    assert model.recipe["runtime"] == "onnx", model.recipe
    module = AutoModelForImageClassification.from_pretrained(folder).eval()
    for backend, tolerance in (("pil", 1e-5), ("torchvision", 0.05)):
        image_processor = AutoImageProcessor.from_pretrained(folder, backend=backend)
        difference = agree(
            model,
            photos,
            lambda image, image_processor=image_processor: image_processor(
                images=image, return_tensors="pt"
            )["pixel_values"][0],
            lambda batch: module(pixel_values=batch).logits,
            tolerance=1e-4,
        )
        assert difference < tolerance, backend


@pytest.fixture
def tiny_yolos(tmp_path):
    """The folder of a detector of transformers with random weights."""
    from transformers import YolosConfig, YolosForObjectDetection

    torch.manual_seed(0)
    config = YolosConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=[64, 96],
        num_detection_tokens=20,
        id2label={0: "N/A", 1: "person", 2: "dog", 3: "N/A"},
        label2id={"person": 1, "dog": 2},
    )
    folder = tmp_path / "tiny-yolos"
    network = YolosForObjectDetection(config)
    # they start at zero, and all detections would be one
    torch.nn.init.normal_(network.vit.embeddings.detection_tokens)
    network.save_pretrained(folder)
    processor_config = {
        "image_processor_type": "YolosImageProcessor",
        "size": {"height": 64, "width": 96},
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor_config))
    return folder


def test_hf_detectors_answer_as_the_library_does(tiny_yolos, photos):
    from transformers import AutoImageProcessor, AutoModelForObjectDetection

    model = build("hf", name=str(tiny_yolos))
    assert model.classes.names == ("N/A 0", "person", "dog", "N/A 3")
    assert model.recipe["runtime"] == "torch"
    processor = AutoImageProcessor.from_pretrained(tiny_yolos, backend="pil")
    module = AutoModelForObjectDetection.from_pretrained(tiny_yolos).eval()
    for photo, detections in zip(photos, model(photos), strict=True):
        with torch.inference_mode():
            outputs = module(**processor(images=photo, return_tensors="pt"))
        (expected,) = processor.post_process_object_detection(
            outputs, threshold=0.001, target_sizes=[photo.shape[:2]]
        )
        assert len(detections) == len(expected["scores"]) > 0
        order = np.argsort(-expected["scores"].numpy(), kind="stable")
        np.testing.assert_allclose(detections.scores, expected["scores"].numpy()[order], atol=1e-6)
        np.testing.assert_allclose(detections.boxes, expected["boxes"].numpy()[order], atol=1e-3)
        assert detections.labels.tolist() == expected["labels"].numpy()[order].tolist()
        assert detections.boxes[:, 2].max() <= photo.shape[1] * 1.01


@without_gpu
def test_a_detector_on_a_machine_without_a_gpu_is_an_error_in_one_line(tiny_yolos):
    with pytest.raises(UsageError, match="runtime='cuda': no GPU is visible"):
        build("hf", name=str(tiny_yolos), runtime="cuda")


@on_a_gpu
def test_a_detector_on_a_gpu_finds_what_it_finds_on_the_processor(tiny_yolos, photos):
    on_gpu = build("hf", name=str(tiny_yolos), runtime="cuda")
    on_processor = build("hf", name=str(tiny_yolos))
    assert (on_gpu.recipe["runtime"], on_processor.recipe["runtime"]) == ("cuda", "torch")
    for detections, expected in zip(on_gpu(photos), on_processor(photos), strict=True):
        np.testing.assert_allclose(detections.scores, expected.scores, atol=1e-3)
        np.testing.assert_allclose(
            np.sort(detections.boxes, 0), np.sort(expected.boxes, 0), atol=0.5
        )
        assert sorted(detections.labels) == sorted(expected.labels)


def test_detectors_say_what_they_cannot_run_as(tiny_yolos):
    with pytest.raises(UsageError, match="no runtime named 'gpu'"):
        build("hf", name=str(tiny_yolos), runtime="gpu")
    with pytest.raises(UsageError, match="a detector runs in fp32, not bf16"):
        build("hf", name=str(tiny_yolos), runtime="torch", precision="bf16")


def test_hf_refuses_processors_that_do_more(tmp_path):
    processor_config = {
        "image_processor_type": "MobileViTImageProcessor",
        "size": {"shortest_edge": 72},
        "crop_size": {"height": 64, "width": 64},
    }
    folder = save_vit(tmp_path, processor_config, ["cat", "dog"])
    with pytest.raises(UsageError, match="does more than resize, centre crop and normalise"):
        build("hf", name=folder)
    with pytest.raises(UsageError, match="transformers cannot load"):
        build("hf", name=str(tmp_path / "none"))


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_unreadable_keras_files_are_refused_and_readable_ones_give_scores(
    runtime, tmp_path, photos
):
    (tmp_path / "three.txt").write_text("a\nb\nc")
    path = str(tmp_path / "toy.keras")
    recipe = {"mean": 127.5, "std": 127.5}
    with pytest.raises(UsageError, match="cannot load the Keras model"):
        build("keras", path=path, classes=str(tmp_path / "three.txt"), recipe=recipe)
    import keras

    keras.utils.set_random_seed(0)
    images = keras.Input((64, 64, 3))
    features = keras.layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(images)
    pooled = keras.layers.GlobalAveragePooling2D()(keras.layers.BatchNormalization()(features))
    network = keras.Model(images, keras.layers.Dense(3, activation="softmax")(pooled))
    network.save(path)
    classes = str(tmp_path / "three.txt")
    model = build("keras", path=path, classes=classes, recipe=recipe, runtime=runtime)
    assert check_model(model)
    assert model.recipe["runtime"] == runtime, model.recipe
    inputs = np.empty((len(photos), 3, 64, 64), dtype=np.float32)
    for photo, out in zip(photos, inputs, strict=True):
        model.settings.preprocessing(photo, out)
    expected = network.predict(inputs.transpose(0, 2, 3, 1), verbose=0)
    np.testing.assert_allclose(model(photos), expected, atol=1e-5)
    with pytest.raises(UsageError, match=r"not say how its input is .*give mean and std"):
        build("keras", path=path, classes=classes, recipe={"size": 64})
    # a short form has no recipe, and was always refused: one that rescales its input needs none
    pixels = keras.Input((64, 64, 3))
    turned = keras.layers.RandomFlip()(pixels)
    whole = keras.Model(pixels, network(keras.layers.Rescaling(1 / 127.5, offset=-1)(turned)))
    for saved in (whole, keras.Sequential([pixels, whole])):
        saved.save(tmp_path / "whole.keras")
        own = build("keras", path=str(tmp_path / "whole.keras"), classes=classes, runtime=runtime)
        np.testing.assert_allclose(own(photos), expected, atol=1e-4)
    unit = keras.Sequential([pixels, keras.layers.Rescaling(2, offset=-1), network])
    unit.save(tmp_path / "unit.keras")
    with pytest.raises(UsageError, match="give mean and std"):
        build("keras", path=str(tmp_path / "unit.keras"), classes=classes)
    # a network that ends in logits, as one trained with from_logits=True
    network.layers[-1].activation = keras.activations.linear
    network.save(path)
    model = build("keras", path=path, classes=classes, recipe=recipe, runtime=runtime)
    assert model.recipe["output"] == "logits"
    np.testing.assert_allclose(model(photos), expected, atol=1e-5)


@pytest.mark.parametrize("name", FORMER)
def test_networks_of_modules_that_moved_go_by_their_former_names(name):
    if name.endswith((".hf", ".keras")):
        pytest.importorskip({"hf": "transformers", "keras": "keras"}[name.rpartition(".")[2]])
    classes = [
        value
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, type) and value.__module__ == name
        if issubclass(value, torch.nn.Module)
    ]
    assert classes
    for network in classes:
        text = architecture(network(torch.nn.Identity()))
        assert text.startswith(f"{FORMER[name]}.{network.__qualname__} {network.__name__}(")


def test_places_are_read_as_torchvision_reads_them(torchvision):
    """Values and gradients of the tests' own reading of feature maps, to the last bit."""
    from torchvision_ops import REFERENCE, interpolate

    if REFERENCE is None:
        pytest.skip("torchvision imports as it is")
    random = torch.Generator().manual_seed(0)
    image = torch.randint(0, 2, (9,), generator=random)
    # some lie before the map and some behind it
    y, x = (12 * torch.rand(9, 7, 2, generator=random) - 2 for _ in range(2))
    results = []
    for read in (REFERENCE, interpolate):
        values = torch.rand(2, 3, 8, 6, generator=torch.Generator().manual_seed(1))
        values.requires_grad_()
        places = read(values, image, y, x, None, None)
        places.square().sum().backward()
        results.append((places, values.grad))
    for expected, computed in zip(*results, strict=True):
        assert torch.equal(expected, computed)
