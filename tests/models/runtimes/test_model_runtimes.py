"""Runtimes: exports that agree with torch or are refused, ONNX files, functions."""

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
import toy_networks
from onnxruntime.transformers.float16 import convert_float_to_float16
from torch import nn

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse
from steadyeye.core.types import Classes
from steadyeye.data.images import image_file
from steadyeye.models.introspection.multilabel_head import Independent
from steadyeye.models.runtimes import torch_export
from steadyeye.models.runtimes.classifier import read_recipe, softmax
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.models.runtimes.python_function import FunctionClassifier
from steadyeye.models.runtimes.torch_module import one_thread
from steadyeye.models.runtimes.weights import load_content, serialise, weights_fingerprint
from steadyeye.testing import check_model

SMALL = {"size": 32}
IMAGES = patterns(48, 64, 3)


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def build(plugin, **kwargs):
    return plugins.build("models", Spec(plugin, kwargs))


def exported(module):
    settings = read_recipe(SMALL).preprocessing
    return torch_export.export(module, settings, weights_fingerprint(module))


@pytest.mark.slow
def test_a_module_that_does_not_export_stays_in_torch_and_says_so(ten):
    options = {"path": "py:toy_networks:branching", "classes": ten, "recipe": SMALL}
    model = build("torch", **options)
    assert model.recipe["runtime"] == "torch"
    note = model.recipe["runtime_note"]
    assert note.startswith("TorchScript exporter: export differs from torch by"), note
    assert "dynamo exporter" in note
    assert build("torch", **options).recipe["runtime_note"] == note
    assert len(list(torch_export.cache_folder().glob("*.refused.json"))) == 1


def test_a_module_that_does_not_export_leaves_stdout_alone(capfd, monkeypatch):
    """TorchScript's exporter has no pooling of 7 to 4, and prints its whole graph."""
    monkeypatch.setattr(torch_export, "EXPORTERS", {"TorchScript exporter": False})
    module = nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.AdaptiveAvgPool2d(4), nn.Flatten()).eval()
    result = exported(module)
    os.write(1, b"after it")
    assert capfd.readouterr().out == "after it"
    assert result.session is None
    assert result.note.startswith("TorchScript exporter: ")


def test_an_export_is_cached_and_compared_again(monkeypatch):
    first = exported(toy_networks.net())
    assert first.session, first.note
    (file,) = torch_export.cache_folder().glob("*.onnx")
    written = file.stat().st_mtime_ns
    monkeypatch.setattr(torch_export, "_onnx", lambda *_: pytest.fail("exported again"))
    assert exported(toy_networks.net()).session
    assert file.stat().st_mtime_ns == written
    monkeypatch.undo()


def test_a_cached_export_of_other_code_is_replaced(tmp_path):
    assert exported(toy_networks.net()).session
    changed = toy_networks.seeded(gain=2.0)
    export = exported(changed)
    assert len(list(torch_export.cache_folder().glob("*.onnx"))) == 1
    batch = torch.rand(1, 3, 32, 32)
    with torch.inference_mode():
        np.testing.assert_allclose(export.session(batch.numpy()), changed(batch), atol=1e-5)
    cached = next(torch_export.cache_folder().glob("*.onnx"))
    cached.write_bytes(b"cut short")
    assert exported(changed).session


def test_modules_that_keep_state_are_safe_in_threads(ten):
    options = {"path": "py:toy_networks:forgetful", "classes": ten, "recipe": SMALL}
    model = build("torch", runtime="torch", **options)
    assert check_model(model)
    threads = torch.get_num_threads()
    expected = [model([image]).tobytes() for image in IMAGES]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda i: model([IMAGES[i % 3]]).tobytes(), range(120)))
    assert answers == expected * 40
    assert torch.get_num_threads() == threads


def toy_onnx(tmp_path, channels_last=False, batch=1):
    module = toy_networks.net()
    path = tmp_path / f"toy{batch}.onnx"
    if channels_last:
        module = torch.nn.Sequential(Transposed(), module).eval()
    shape = (batch, 32, 40, 3) if channels_last else (batch, 3, 32, 40)
    torch.onnx.export(module, (torch.zeros(shape),), str(path), dynamo=False)
    return str(path)


class Transposed(torch.nn.Module):
    def forward(self, images):
        return images.permute(0, 3, 1, 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("channels_last", [False, True])
def test_onnx_files_declare_their_layout_and_size(channels_last, tmp_path, ten):
    path = toy_onnx(tmp_path, channels_last)
    model = build("onnx", path=path, classes=ten)
    assert check_model(model)
    assert model.recipe["layout"] == ("nhwc" if channels_last else "nchw")
    assert model.recipe["preprocessing"]["size"] == [32, 40]
    batch = np.empty((len(IMAGES), 3, 32, 40), dtype=np.float32)
    for image, out in zip(IMAGES, batch, strict=True):
        model.settings.preprocessing(image, out)
    with torch.inference_mode():
        logits = toy_networks.net()(torch.from_numpy(batch)).numpy()
    np.testing.assert_allclose(model(IMAGES), softmax(logits), atol=1e-6)
    # they were used as they are: degraded_probability then had no value, without a word
    message = r"gives scores of -?[\d.]+ to [\d.]+, which are no probabilities; leave output out"
    with pytest.raises(UsageError, match=message):
        build("onnx", path=path, classes=ten, recipe={"output": "probabilities"})


@pytest.mark.filterwarnings("ignore")
def test_onnx_files_that_cannot_be_used_are_reported_in_one_line(tmp_path, ten, test_data):
    path = toy_onnx(tmp_path)
    (tmp_path / "text.onnx").write_text("nothing")
    detector = str(test_data / "models" / "yolox_nano.onnx")
    for options, message in [
        ({"classes": "imagenet1k"}, "scores have 10 columns but the class list has 1000"),
        ({"recipe": {"size": 64}}, "cannot run on input"),
        ({"recipe": {"std": 0.5}}, "multiply mean and std by 255"),
        ({"recipe": {"sise": 32}}, "did you mean 'size'"),
        ({"recipe": {"output": "logit"}}, "did you mean 'logits'"),
        ({"path": str(tmp_path / "text.onnx")}, "cannot load"),
        ({"path": str(tmp_path / "none.onnx")}, "no ONNX file"),
        ({"path": toy_onnx(tmp_path, batch=8)}, "a free batch"),
        ({"path": detector}, r"shape \(1, 3549, 85\)"),
    ]:
        with pytest.raises(UsageError, match=message) as error:
            build("onnx", **{"path": path, "classes": ten, **options})
        assert "\n" not in str(error.value)


def test_functions_take_mixed_shapes_in_order():
    dark, light = np.zeros((20, 30, 3), np.uint8), np.full((20, 30, 3), 200, np.uint8)
    other = np.full((10, 10, 3), 100, np.uint8)
    model = FunctionClassifier(toy_networks.brightness)
    scores = model(iter([dark, other, light]))
    assert scores.dtype == np.float32
    # the third column is the number of images that came in one call
    assert scores.tolist() == [[255, 0, 2], [155, 100, 1], [55, 200, 2]]
    assert model([]).shape == (0, 0)
    assert pickle.loads(pickle.dumps(model)).fingerprint == model.fingerprint


def test_functions_get_the_size_they_ask_for():
    def shape(images):
        return [images.shape[1:3]] * len(images)

    images = [np.full((20, 30, 3), 7, np.uint8), np.full((40, 25, 3), 7, np.uint8)]
    assert FunctionClassifier(shape, size=16)(images).tolist() == [[16, 16]] * 2
    assert FunctionClassifier(shape, size=(8, 12))(images).tolist() == [[8, 12]] * 2
    assert FunctionClassifier(toy_networks.brightness, size=16)(images)[:, 1].tolist() == [7, 7]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (toy_networks.flat, r"returns shape \(3,\) for 3 images; it should return \(3, classes\)"),
        (toy_networks.text, "not an array of numbers"),
        (toy_networks.brightness, "scores have 3 columns but the class list has 2"),
    ],
)
def test_functions_that_return_something_else_are_reported_in_one_line(function, message):
    with pytest.raises(UsageError, match=message) as error:
        FunctionClassifier(function, Classes(("dark", "bright")))(IMAGES)
    assert "\n" not in str(error.value)


def test_a_function_may_return_a_list_of_tensors_as_it_trains_them():
    """NumPy took none that has gradients, and no bfloat16 within a list."""
    weights = torch.tensor([[1.0, -1.0]], requires_grad=True)

    def scores(images):
        return [(weights * float(image.mean()))[0] for image in images]

    def halves(images):
        return tuple(row.bfloat16() for row in scores(images))

    images = [np.full((4, 4, 3), level, np.uint8) for level in (8, 64)]
    for function in (scores, halves):
        assert FunctionClassifier(function)(images).tolist() == [[8, -8], [64, -64]]


@pytest.mark.parametrize("pack", [dict, SimpleNamespace])
def test_outputs_with_logits_among_other_things_say_which_to_return(pack):
    def predict(images):
        return pack(loss=None, logits=np.zeros((len(images), 2)))

    message = rf"predict returns {pack.__name__}, not an array of numbers; return its logits alone"
    with pytest.raises(UsageError, match=message):
        FunctionClassifier(predict)(IMAGES)


def test_the_callable_plugin_finds_functions():
    model = plugins.build("models", parse("callable(path='toy_networks:brightness', size=16)"))
    assert model.name == "brightness"
    assert model(IMAGES).shape == (3, 3)
    with pytest.raises(UsageError, match="no Python path"):
        build("callable", path="toy_networks")
    with pytest.raises(UsageError, match="not a function"):
        build("callable", path="toy_networks:__doc__")


def test_a_session_uses_one_thread(tmp_path):
    session = exported(toy_networks.net()).session
    options = session._session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL


def test_a_thread_that_overlaps_another_leaves_the_number_of_threads():
    before, inside, over = torch.get_num_threads(), threading.Event(), threading.Event()

    def other():
        with one_thread():
            inside.set()
            over.wait(10)

    torch.set_num_threads(2)
    try:
        with one_thread():
            helper = threading.Thread(target=other)
            helper.start()
            inside.wait(10)
            with one_thread():
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 1
        over.set()
        helper.join()
        thread_counts = []
        # a thread that has not asked yet is told the number that was set last
        late = threading.Thread(target=lambda: thread_counts.append(torch.get_num_threads()))
        late.start()
        late.join()
        assert [torch.get_num_threads(), *thread_counts] == [2, 2]
    finally:
        torch.set_num_threads(before)


class Softmaxed(torch.nn.Module):
    """The toy network with its softmax, its logits spread so that the probabilities differ."""

    def __init__(self):
        super().__init__()
        self.network = toy_networks.seeded(gain=4.0)

    def forward(self, images):
        return self.network(images).softmax(1)


def run_module(module, model):
    """What a module itself makes of `IMAGES` as a model prepares them."""
    prepared = np.stack([model.stages().prepare(image) for image in IMAGES])
    with torch.inference_mode():
        return module(torch.from_numpy(prepared)).numpy()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", [{}, {"dynamic_axes": {"images": {0: "n"}}}])
def test_probabilities_of_an_onnx_file_get_no_second_softmax(batch, tmp_path, ten):
    path, module = str(tmp_path / "softmaxed.onnx"), Softmaxed().eval()
    names = {"input_names": ["images"], "output_names": ["scores"]}
    torch.onnx.export(module, (torch.zeros(1, 3, 32, 40),), path, dynamo=False, **names, **batch)
    model = build("onnx", path=path, classes=ten)
    assert model.recipe["output"] == "probabilities"
    expected = run_module(module, model)
    np.testing.assert_allclose(model(IMAGES), expected, atol=1e-5)
    assert np.ptp(expected.max(axis=1)) > 0.01, "or a second softmax could pass for the first"
    same_model = build("onnx", path=path, classes=ten, recipe={"output": "probabilities"})
    assert same_model.fingerprint == model.fingerprint
    with pytest.raises(UsageError, match=r"gives probabilities .* leave output out"):
        build("onnx", path=path, classes=ten, recipe={"output": "logits"})


@pytest.mark.filterwarnings("ignore")
def test_a_classifier_exported_in_half_precision(tmp_path, ten):
    path, module = str(tmp_path / "half.onnx"), Softmaxed().eval()
    half = Softmaxed().eval().half()
    torch.onnx.export(half, (torch.zeros(1, 3, 32, 40).half(),), path, dynamo=False)
    model = build("onnx", path=path, classes=ten)
    assert model.recipe["output"] == "probabilities"
    scores, expected = model(IMAGES), run_module(module, model)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=5e-3)
    assert np.ptp(expected.max(axis=1)) > 0.01


def test_a_detector_exported_in_half_precision(tmp_path, test_data):
    path = str(test_data / "models" / "FastestDet.onnx")
    half = convert_float_to_float16(onnx.load(path), keep_io_types=False)
    onnx.save(half, tmp_path / "half.onnx")
    detector = build("onnx_detector", path=str(tmp_path / "half.onnx"))
    pictures = [image_file.read(test_data / "photos" / f"{n}.jpg") for n in ("parrot", "pets")]
    answers = detector(pictures), build("onnx_detector", path=path)(pictures)
    for rounded, exact in zip(*answers, strict=True):
        sure = exact.scores > 0.3
        assert sure.any()
        distances = np.abs(rounded.boxes[:, None] - exact.boxes[sure]).max(axis=2)
        nearest = distances.argmin(axis=0)
        assert (rounded.labels[nearest] == exact.labels[sure]).all()
        np.testing.assert_allclose(rounded.scores[nearest], exact.scores[sure], atol=0.02)
        # of two overlapping boxes rounding may prefer the other
        is_near = distances.min(axis=0) < 1
        assert is_near.mean() > 0.9


def test_probabilities_of_a_torch_module_get_no_second_softmax(ten, monkeypatch):
    monkeypatch.setattr(toy_networks, "softmaxed", lambda: Softmaxed().eval(), raising=False)
    options = {"path": "py:toy_networks:softmaxed", "classes": ten, "runtime": "torch"}
    model = build("torch", **options, recipe=SMALL)
    assert model.recipe["output"] == "probabilities"
    np.testing.assert_allclose(model(IMAGES).sum(axis=1), 1, atol=1e-5)
    expected = run_module(Softmaxed().eval(), model)
    np.testing.assert_allclose(model(IMAGES), expected, atol=1e-5)


class Sigmoid(torch.nn.Module):
    """The toy network with a sigmoid: each class by itself."""

    def __init__(self):
        super().__init__()
        self.network = toy_networks.seeded(gain=4.0)

    def forward(self, images):
        return self.network(images).sigmoid()


@pytest.mark.parametrize("backend", ["onnx", "torch"])
@pytest.mark.filterwarnings("ignore")
def test_a_sigmoid_is_asked_about(tmp_path, ten, monkeypatch, backend):
    """A softmax over its probabilities flattened them: the confidence was a tenth or two."""
    path, module = str(tmp_path / "sigmoid.onnx"), Sigmoid().eval()
    options = {"path": path, "classes": ten}
    if backend == "onnx":
        torch.onnx.export(module, (torch.zeros(1, 3, 32, 40),), path, dynamo=False)
    else:
        monkeypatch.setattr(toy_networks, "sigmoid", lambda: Sigmoid().eval(), raising=False)
        options |= {"path": "py:toy_networks:sigmoid", "runtime": "torch"}
    recipe = SMALL if backend == "torch" else {}
    with pytest.raises(UsageError, match=r"in 0…1 that do not sum to 1.*output='probabilities'"):
        build(backend, **options, recipe=recipe)
    model = build(backend, **options, recipe=recipe | {"output": "probabilities"})
    expected = run_module(module, model)
    np.testing.assert_allclose(model(IMAGES), expected, atol=1e-5)
    logits = build(backend, **options, recipe=recipe | {"output": "logits"})
    np.testing.assert_allclose(logits(IMAGES), softmax(expected), atol=1e-5)


class Trained(torch.nn.Module):
    """The toy network between a batch normalisation and a dropout, in training mode."""

    def __init__(self, dropout):
        super().__init__()
        layers = [nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveMaxPool2d(1)]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(dropout), nn.Linear(8, 10))

    def forward(self, images):
        return self.layers(images)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("suffix", "dropout", "cause"),
    [(".pt", 0.5, "asked again"), (".pt", 0.0, "beside another"), (".onnx", 0.0, "beside another")],
)
def test_a_network_in_training_mode_is_refused(tmp_path, ten, suffix, dropout, cause):
    """Its scores were random, or those of batch statistics, and nothing said so."""
    torch.manual_seed(0)
    module, images = Trained(dropout).train(), torch.rand(1, 3, 32, 32)
    path, options = str(tmp_path / f"net{suffix}"), {"classes": ten, "recipe": SMALL}
    if suffix == ".onnx":
        how = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
        axes = {"dynamic_axes": {"images": {0: "n"}}, "input_names": ["images"]}
        torch.onnx.export(module, (images,), path, dynamo=False, **how, **axes)
    else:
        torch.jit.trace(module, images, check_trace=False).save(path)
    backend = {".onnx": "onnx", ".pt": "torch"}[suffix]
    with pytest.raises(UsageError, match=rf"other scores when it .*{cause}.*call eval\(\)"):
        build(backend, path=path, **options)
    torch.jit.trace(module.eval(), images).save(str(tmp_path / "eval.pt"))
    assert check_model(build("torch", path=str(tmp_path / "eval.pt"), **options))


@pytest.mark.parametrize("output", [None, "logits"])
def test_one_logit_per_image_is_refused(tmp_path, output):
    """Softmax made 1 of it, whatever the image showed."""
    (tmp_path / "one.txt").write_text("cat\n")
    module = nn.Sequential(toy_networks.seeded(), nn.Linear(10, 1)).eval()
    path, recipe = str(tmp_path / "one.pt"), SMALL | ({"output": output} if output else {})
    torch.jit.trace(module, torch.rand(1, 3, 32, 32)).save(path)
    with pytest.raises(UsageError, match="gives one number per image"):
        build("torch", path=path, classes=str(tmp_path / "one.txt"), recipe=recipe)


@pytest.mark.filterwarnings("ignore")
def test_an_onnx_file_of_grey_images_is_refused_by_its_shape(tmp_path, ten):
    grey = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(28 * 28, 10)).eval()
    path = str(tmp_path / "grey.onnx")
    torch.onnx.export(grey, (torch.zeros(1, 1, 28, 28),), path, dynamo=False)
    with pytest.raises(UsageError) as refusal:
        build("onnx", path=path, classes=ten)
    assert "takes input (1, 1, 28, 28), which does not have three channels" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_model_whose_module_moved_has_the_fingerprint_that_earlier_runs_hold():
    layer = torch.nn.Linear(2, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(6.0).reshape(3, 2))
        layer.bias.copy_(torch.tensor([0.0, 1.0, -1.0]))
    # written down while the class stood in steadyeye/inference/independent.py
    assert weights_fingerprint(Independent(layer)) == "1deb5fec1f6b318c"


def test_content_that_was_read_from_a_file_is_written_with_the_same_bytes(tmp_path):
    name, group = "".join(["lo", "ss"]), {"lr": 0.1}
    content = {
        "history": [{name: 1.0}, {"loss": 2.0}, group, group],
        "loss": ("loss", name, [torch.arange(3.0)]),
    }
    (tmp_path / "a.pt").write_bytes(serialise(content))
    again = load_content(tmp_path / "a.pt")
    again["history"][1] = {"".join(["l", "oss"]): 2.0}
    assert serialise(again) == (tmp_path / "a.pt").read_bytes()
    assert again["history"] == content["history"]
    assert again["loss"][:2] == ("loss", "loss")
