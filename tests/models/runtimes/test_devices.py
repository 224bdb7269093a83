"""Several images per pass, several devices, GPUs: the results of one image on the CPU."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import onnxruntime as ort
import pytest
import tiny_onnx
import torch
import toy_networks
from gpu_marks import on_a_gpu, without_gpu
from packaged_models import LITE, photos
from torch import nn

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.types import Classes
from steadyeye.models.introspection.embedder import embedder
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes import devices
from steadyeye.models.runtimes.classifier import Recipe
from steadyeye.models.runtimes.onnx_session import CUDA
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.torch_module import ThreadCopies, TorchModule

__all__ = ["photos"]

RECIPE = Recipe(Preprocessing((32, 40), (36, 48), (127.0,) * 3, (128.0,) * 3))
TEN = Classes(tuple(map(str, range(10))))
IMAGES = patterns(60, 80, 11)
pytestmark = pytest.mark.usefixtures("own_cache")
on_cuda_runtime = pytest.mark.skipif(
    CUDA not in ort.get_available_providers() or not torch.cuda.is_available(),
    reason="there is no GPU here, or an onnxruntime that does not compute on it",
)


class Counting(nn.Module):
    """A network that remembers the shapes of its inputs."""

    def __init__(self, network):
        super().__init__()
        self.network, self.shapes = network, []

    def forward(self, images):
        self.shapes.append(tuple(images.shape))
        return self.network(images)


class Roomy(nn.Module):
    """Has memory for so many images a pass."""

    def __init__(self, room):
        super().__init__()
        self.room, self.tried = room, []

    def forward(self, images):
        self.tried.append(len(images))
        if len(images) > self.room:
            raise torch.OutOfMemoryError
        return images.mean((2, 3))


class Summed(nn.Module):
    """One row of scores, of however many images."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network(images).sum(dim=0, keepdim=True)


def model(network, runtime="torch"):
    return torch_classifier(network, "toy", TEN, RECIPE, Execution(runtime))


def test_several_images_a_pass_score_as_one_does():
    network = Counting(toy_networks.net())
    single = model(network)
    shapes = single.forward._copies.mine()[0].shapes
    shapes.clear()
    expected = single(IMAGES)
    assert shapes == [(1, 3, 32, 40)] * 11
    shapes.clear()
    four = replace(single, most=4)
    np.testing.assert_allclose(four(iter(IMAGES)), expected, atol=1e-6)
    assert shapes == [(4, 3, 32, 40), (4, 3, 32, 40), (3, 3, 32, 40)]
    assert four([]).shape == (0, 10)
    np.testing.assert_array_equal(single(IMAGES), expected)


def test_channels_may_be_last():
    single = model(toy_networks.net())

    def last(batch):
        return single.forward(np.ascontiguousarray(batch.transpose(0, 3, 1, 2)))

    nhwc = replace(single, settings=replace(RECIPE, layout="nhwc"), forward=last)
    for most in (1, 4):
        np.testing.assert_allclose(replace(nhwc, most=most)(IMAGES), single(IMAGES), atol=1e-6)


def test_features_of_several_images_a_pass():
    single = model(toy_networks.net())
    features = embedder(replace(single, most=4))(IMAGES)
    assert features.shape == (11, 8)
    np.testing.assert_allclose(features, embedder(single)(IMAGES), atol=1e-6)


@pytest.mark.parametrize("shape", [(5, 10), (4, 10, 2)])
def test_an_output_without_one_row_per_image_is_an_error_in_one_line(shape):
    classifier = replace(model(toy_networks.net()), most=4, forward=lambda _: np.zeros(shape, "f4"))
    with pytest.raises(UsageError, match=r"for 4 images; a classifier gives \(4, classes\)"):
        classifier(IMAGES)


def test_a_run_hands_over_what_a_pass_takes(test_data, tmp_path):
    data = f"frames(path='{test_data}/davis/JPEGImages/dog', anchors=8, k=2)"
    single = model(toy_networks.net())
    runs = {}
    several = replace(single, most=6, recipe={**single.recipe, "runtime": "cuda"}, device="a GPU")
    for name, used, options in (
        ("one", single, {}),
        ("several", several, {}),
        ("fewer", several, {"batch": 5}),
    ):
        runs[name] = se.evaluate(used, data, out=tmp_path / name, **options)
    written = tmp_path.glob("*/cells/*/cell.json")
    batches = {path.parents[2].name: json.loads(path.read_text())["batch"] for path in written}
    assert batches == {"one": 16, "several": 64, "fewer": 5}
    for run in runs.values():
        scores = run.predictions.scores
        np.testing.assert_allclose(scores, runs["one"].predictions.scores, atol=1e-6)
    logs = {name: (tmp_path / name / "log.jsonl").read_text() for name in runs}
    assert '"gpu": "a GPU"' in logs["several"]
    assert '"gpu"' not in logs["one"]


def test_as_many_images_a_pass_as_fit():
    network = Roomy(room=11)
    forward = TorchModule(network)
    tried = forward._copies.mine()[0].tried
    assert devices.fitting(forward, (3, 8, 8), (devices.CPU,)) == 8
    assert tried == [64, 32, 16, 8]
    with pytest.raises(UsageError, match="no memory left; give a smaller --batch"):
        forward(np.zeros((12, 3, 8, 8), dtype=np.float32))


def test_a_network_made_for_one_image_gets_one_a_pass():
    exported_network = torch.export.export(
        toy_networks.net(), (torch.zeros(1, 3, 32, 40),)
    ).module()
    assert devices.fitting(TorchModule(exported_network), (3, 32, 40), (devices.CPU,)) == 1
    frozen = torch.jit.trace(Summed(toy_networks.net()), torch.zeros(1, 3, 32, 40))
    assert devices.fitting(TorchModule(frozen), (3, 32, 40), (devices.CPU,)) == 1


def test_threads_take_devices_in_turn_and_share_their_weights():
    places = (torch.device("cpu"), torch.device("cpu", 0))  # two names of the same device
    network = toy_networks.net()
    copies = ThreadCopies(network, places)
    together = threading.Barrier(4)

    def mine(_):
        module_and_place = copies.mine()
        together.wait()
        assert copies.mine() == module_and_place
        return module_and_place

    with ThreadPoolExecutor(4) as pool:
        modules = list(pool.map(mine, range(4)))
    assert len({id(module) for module, _ in modules}) == 4
    weights = {place: set() for place in places}
    for module, place in modules:
        weights[place].add(module.linear.weight.data_ptr())
    assert [len(weights[place]) for place in places] == [1, 1]
    assert weights[places[0]] == {network.linear.weight.data_ptr()} != weights[places[1]]


@without_gpu
@pytest.mark.parametrize(
    "spec",
    [
        "efficientnet_lite0(runtime='cuda')",
        "torch(path='py:toy_networks:net', classes='imagenet1k', runtime='cuda')",
    ],
)
def test_a_machine_without_a_gpu_is_an_error_in_one_line(spec):
    with pytest.raises(UsageError, match="runtime='cuda': no GPU is visible") as error:
        plugins.build("models", parse(spec))
    assert "\n" not in str(error.value)


def test_a_runtime_that_is_not_known_is_an_error_in_one_line(test_data):
    for spec in (
        f"onnx(path='{test_data}/models/yolox_nano.onnx', classes='coco', runtime='tpu')",
        "efficientnet_lite0(runtime='tpu')",
    ):
        with pytest.raises(UsageError, match="no runtime named 'tpu'"):
            plugins.build("models", parse(spec))


@pytest.mark.skipif(CUDA in ort.get_available_providers(), reason="this onnxruntime has CUDA")
def test_an_onnxruntime_without_cuda_is_an_error_in_one_line(test_data):
    file = test_data / "models" / "yolox_nano.onnx"
    for spec in (
        f"onnx_detector(path='{file}', decoder='yolox', runtime='cuda')",
        f"onnx(path='{file}', classes='imagenet1k', runtime='cuda')",
    ):
        with pytest.raises(UsageError, match="install onnxruntime-gpu in its place"):
            plugins.build("models", parse(spec))


@on_a_gpu
def test_a_program_bound_to_the_device_of_its_export_is_an_error_in_one_line(tmp_path):
    program = torch.export.export(toy_networks.net(), (torch.zeros(1, 3, 32, 32),))
    torch.export.save(program, tmp_path / "net.pt2")
    how = "classes='imagenet1k', runtime='cuda', allow_pickle=True"
    spec = f"torch(path='{tmp_path}/net.pt2', {how})"
    with pytest.raises(UsageError, match="runs on the device that it was exported for"):
        plugins.build("models", parse(spec))


@on_a_gpu
@pytest.mark.parametrize("name", LITE)
def test_a_gpu_scores_as_the_processor_does(name, photos):
    on_gpu = plugins.build("models", parse(f"{name}(runtime='cuda')"))
    on_processor = plugins.build("models", parse(name))
    assert on_gpu.recipe["runtime"] == "cuda"
    assert on_gpu.fingerprint != on_processor.fingerprint
    assert on_gpu.most > 1
    pictures = [*photos.values()]
    scores, expected = on_gpu(pictures), on_processor(pictures)
    np.testing.assert_allclose(scores, expected, atol=1e-3)
    assert (scores.argmax(axis=1) == expected.argmax(axis=1)).all()
    np.testing.assert_array_equal(on_gpu(pictures), scores)
    assert torch.from_numpy(on_gpu._page()).is_pinned()


@on_a_gpu
@pytest.mark.parametrize(("precision", "largest"), [("bf16", 0.5), ("fp16", 0.05)])
def test_half_precision_on_a_gpu_is_near_fp32(precision, largest, photos):
    spec = "efficientnet_lite0(runtime='cuda', precision='{}')"
    half = plugins.build("models", parse(spec.format(precision)))
    whole = plugins.build("models", parse(spec.format("fp32")))
    assert half.recipe["precision"] == precision
    assert half.fingerprint != whole.fingerprint
    pictures = [*photos.values()]
    scores, expected = half(pictures), whole(pictures)
    assert scores.dtype == np.float32
    assert 0 < np.abs(scores - expected).max() < largest
    assert (scores.argmax(axis=1) == expected.argmax(axis=1)).all()
    np.testing.assert_array_equal(half(pictures), scores)


@on_a_gpu
def test_features_and_gradients_beside_a_gpu_are_those_of_the_processor(photos):
    on_gpu = plugins.build("models", parse("efficientnet_lite0(runtime='cuda')"))
    on_processor = plugins.build("models", parse("efficientnet_lite0(runtime='torch')"))
    pictures = [*photos.values()]
    features = [embedder(network)(pictures) for network in (on_gpu, on_processor)]
    np.testing.assert_allclose(*features, atol=1e-3 * np.abs(features[1]).max())
    image = on_gpu.at_input().fit(pictures[0]).astype(np.float32)
    best = [int(on_processor(pictures[:1]).argmax())]
    gradients = [network.at_input().gradient(image, best) for network in (on_gpu, on_processor)]
    np.testing.assert_allclose(*gradients, atol=1e-3 * np.abs(gradients[1]).max())


@on_a_gpu
def test_threads_on_a_gpu_do_not_mix_their_images():
    on_gpu = model(toy_networks.seeded(toy_networks.Forgetful), "cuda")
    parts = [IMAGES[i : i + 3] for i in range(9)]
    expected = [on_gpu(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            for scores, expected_scores in zip(pool.map(on_gpu, parts), expected, strict=True):
                np.testing.assert_array_equal(scores, expected_scores)


@on_cuda_runtime
def test_a_detector_in_a_file_finds_on_a_gpu_what_it_finds_on_the_processor(test_data, photos):
    pictures = [*photos.values()]
    for file, decoder in (("yolox_nano", "yolox"), ("FastestDet", "fastestdet")):
        spec = f"onnx_detector(path='{test_data}/models/{file}.onnx', decoder='{decoder}'"
        on_gpu = plugins.build("models", parse(f"{spec}, runtime='cuda')"))
        on_processor = plugins.build("models", parse(f"{spec})"))
        assert on_gpu.fingerprint != on_processor.fingerprint
        answers = on_gpu(pictures), on_processor(pictures), on_gpu(pictures)
        for detections, expected, again in zip(*answers, strict=True):
            assert detections.labels.tolist() == expected.labels.tolist()
            np.testing.assert_allclose(detections.scores, expected.scores, atol=1e-5)
            np.testing.assert_allclose(detections.boxes, expected.boxes, atol=1e-2)
            np.testing.assert_array_equal(again.scores, detections.scores)
            np.testing.assert_array_equal(again.boxes, detections.boxes)


@on_cuda_runtime
def test_a_classifier_in_a_file_scores_on_a_gpu_as_on_the_processor(tmp_path, ten):
    tiny_onnx.save_classifier(tmp_path / "tiny.onnx")
    recipe = {"size": 32, "resize": 32, "mean": 127.0, "std": 64.0}
    spec = f"onnx(path='{tmp_path}/tiny.onnx', classes='{ten}', recipe={recipe}"
    on_gpu = plugins.build("models", parse(f"{spec}, runtime='cuda')"))
    on_processor = plugins.build("models", parse(f"{spec})"))
    assert (on_gpu.device, on_processor.device) == ("cuda:0", "")
    assert on_gpu.most == 1, "the file is made for one image"
    scores = on_gpu(IMAGES)
    np.testing.assert_allclose(scores, on_processor(IMAGES), atol=1e-5)
    np.testing.assert_array_equal(on_gpu(IMAGES), scores)
