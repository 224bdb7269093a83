"""The same network as deployed: OpenVINO, LiteRT, quantised ONNX; a missing GPU is an error."""

import os
import subprocess
import sys

import numpy as np
import onnxruntime as ort
import pytest
import tiny_onnx

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.testing import check_model

RECIPE = {"size": 32, "resize": 32, "mean": 127.0, "std": 64.0}


@pytest.fixture
def files(tmp_path):
    tiny_onnx.save_classifier(tmp_path / "tiny.onnx")
    (tmp_path / "ten.txt").write_text("\n".join("abcdefghij"))
    return tmp_path


def build(backend, path, **more):
    arguments = {"path": str(path), "recipe": RECIPE, **more}
    text = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return plugins.build("models", parse(f"{backend}({text})"))


def test_openvino_in_f32_gives_the_scores_of_onnx(files):
    openvino = pytest.importorskip("steadyeye.models.runtimes.openvino_network").openvino
    names = {"classes": str(files / "ten.txt")}
    images = [np.ascontiguousarray(image) for image in patterns(48, 40, 4)]
    original = build("onnx", files / "tiny.onnx", **names)
    # not `convert_model`, which begins processes for its telemetry
    network = openvino.Core().read_model(files / "tiny.onnx")
    openvino.save_model(network, files / "tiny.xml")
    for file in ("tiny.onnx", "tiny.xml"):
        deployed = build("openvino", files / file, **names)
        # the .xml keeps its weights in 16 bits unless it is told otherwise
        tolerance = 1e-5 if file == "tiny.onnx" else 1e-2
        np.testing.assert_allclose(deployed(images), original(images), atol=tolerance)
        assert deployed.recipe["precision"] == "fp32"
        assert deployed.fingerprint != original.fingerprint
        check_model(deployed)
    with pytest.raises(UsageError, match="no precision named 'int8'"):
        build("openvino", files / "tiny.onnx", precision="int8", **names)
    (files / "tiny.bin").unlink()
    with pytest.raises(UsageError, match=r"has no tiny\.bin next to it"):
        build("openvino", files / "tiny.xml", **names)


def test_openvino_sends_no_telemetry():
    """Importing it begins a process that does, unless `openvino_telemetry` is missing."""
    pytest.importorskip("openvino_telemetry")
    code = (
        "import sys, concurrent.futures.thread as t\n"
        "t.ThreadPoolExecutor.submit = lambda *_: sys.exit('telemetry is sent')\n"
        "from steadyeye.models.runtimes.openvino_network import openvino\n"
        "assert openvino.Core().available_devices\n"
        "assert 'openvino_telemetry' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("telemetry", ["off", "on"])
def test_onnx_runtime_sends_no_telemetry(files, tmp_path, telemetry):
    """What it would send it stores in a file first; a user who has set its variable is obeyed."""
    home = tmp_path / "home"
    home.mkdir()
    hidden = ("CI", "ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    env = {name: value for name, value in os.environ.items() if name not in hidden} | {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        **({"ORT_DISABLE_TELEMETRY": "0"} if telemetry == "on" else {}),
    }
    code = (
        "from steadyeye.models.runtimes.onnx_session import OnnxSession\n"
        "from pathlib import Path\n"
        f"OnnxSession(Path({str(files / 'tiny.onnx')!r}), 'tiny')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    assert bool(list(home.rglob("onnxruntime.db"))) == (telemetry == "on")


def test_a_detector_in_openvino_is_recognised_too(files, tmp_path):
    pytest.importorskip("openvino")
    tiny_onnx.save_detector(tmp_path / "detector.onnx")
    (tmp_path / "two.txt").write_text("cat\ndog")
    image = patterns(48, 40, 1)
    pair = [
        plugins.build("models", parse(f"{backend}(path={str(tmp_path / 'detector.onnx')!r}, "
                                      f"classes={str(tmp_path / 'two.txt')!r})"))
        for backend in ("onnx_detector", "openvino")
    ]  # fmt: skip
    first, second = (model(image)[0] for model in pair)
    np.testing.assert_allclose(first.boxes, second.boxes)
    np.testing.assert_allclose(first.scores, second.scores)
    assert first.labels.tolist() == second.labels.tolist() == [0, 1]


def test_a_quantised_tflite_gives_what_its_interpreter_gives(test_data):
    interpreters = pytest.importorskip("ai_edge_litert.interpreter")
    path = str(test_data / "models" / "mobilenet_v2_1.0_224_quant.tflite")
    model = plugins.build("models", parse(f"litert(path={path!r}, recipe={{'resize': 224}})"))
    image = patterns(224, 224, 1)[0]
    interpreter = interpreters.Interpreter(path, num_threads=1)
    interpreter.allocate_tensors()
    # the pixels go in as they are, and the first of 1,001 outputs is the background
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image[None])
    interpreter.invoke()
    raw = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0]
    np.testing.assert_allclose(model([image])[0], raw[1:] / 256, atol=1e-7)
    assert len(model.classes) == 1000
    assert model.settings.output == "probabilities"
    check_model(model)


@pytest.mark.parametrize(
    ("scale", "mean", "std"),
    [
        ((1 / 127.5, 0), 128, 127.5),  # of −1…1
        ((1 / 255, -128), 0, 255),  # of 0…1
        ((1.0, 0), 128, 1),  # pixels less 128
        ((4.758 / 255, -14), 123.675, 58.395),  # of ImageNet's −2.12…2.64
        ((9 / 255, 0), 123.675, 58.395),  # of noise as well
    ],
)
def test_an_int8_input_gets_the_values_that_its_scale_is_for(tmp_path, scale, mean, std):
    """ImageNet's mean and std were used for all, and what was out of range was cut off."""
    pytest.importorskip("ai_edge_litert")
    from tiny_tflite import save_channel_means

    (tmp_path / "three.txt").write_text("red\ngreen\nblue")
    options = {"path": save_channel_means(tmp_path / "net.tflite", scale)}
    options |= {"classes": str(tmp_path / "three.txt"), "recipe": {"resize": 8, "output": "logits"}}
    model = plugins.build("models", Spec("litert", options))
    image = np.broadcast_to(np.array([250, 100, 5], np.uint8), (8, 8, 3))
    page = model.stages().prepare(image)[np.newaxis]
    assert page[0, 0, 0, 0] == pytest.approx((250 - mean) / std)
    np.testing.assert_allclose(model.forward(page)[0], page[0, 0, 0], atol=scale[0])


def test_a_tflite_file_without_a_classifier_is_refused_in_one_line(tmp_path):
    pytest.importorskip("ai_edge_litert")
    (tmp_path / "broken.tflite").write_bytes(b"no network")
    with pytest.raises(UsageError, match=r"cannot load '.*broken\.tflite' into LiteRT") as error:
        plugins.build("models", parse(f"litert(path={str(tmp_path / 'broken.tflite')!r})"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("runtime", "library"), [("cuda", "CUDA"), ("tensorrt", "TensorRT")])
def test_a_provider_that_is_not_built_in_is_an_error_in_one_line(runtime, library, files):
    provider = {"cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}[runtime]
    if provider in ort.get_available_providers():
        pytest.skip(f"this onnxruntime has {library}")
    with pytest.raises(UsageError, match=f"is built without {library}; install onnxruntime-gpu"):
        build("onnx", files / "tiny.onnx", classes=str(files / "ten.txt"), runtime=runtime)
