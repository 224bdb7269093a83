"""onnxruntime-gpu in place of onnxruntime: the processor's scores; without a GPU, one line.

Run by `make integrations` over the packages of the tests. Where there is a GPU with CUDA's
libraries, it is to give the processor's scores.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fixtures"))
import tiny_onnx

from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.models.runtimes.probe_images import patterns

REFUSED = {
    "cuda": "ONNX Runtime found no GPU it can use for",
    "tensorrt": "Please install TensorRT libraries",
}
"""What is said of each where it cannot compute."""


def write_spec(folder, runtime):
    """The spec of a small classifier in a file."""
    recipe = {"size": 32, "resize": 32, "mean": 127.0, "std": 64.0}
    places = f"path='{folder}/tiny.onnx', classes='{folder}/ten.txt'"
    return f"onnx({places}, recipe={recipe}, runtime='{runtime}')"


def check_runtime(folder, runtime, expected):
    """A process of its own gives the scores expected, or says in one line why it cannot."""
    program = (
        "import sys, numpy as np\n"
        "from steadyeye.core import plugins\n"
        "from steadyeye.core.errors import UsageError\n"
        "from steadyeye.core.spec import parse\n"
        "from steadyeye.models.runtimes.probe_images import patterns\n"
        "try:\n"
        "    model = plugins.build('models', parse(sys.argv[1]))\n"
        "    np.save(sys.argv[2], model(patterns(48, 40, 4)))\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    words = [sys.executable, "-c", program, write_spec(folder, runtime), folder / "scores.npy"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    if not done.stdout:
        np.testing.assert_allclose(np.load(folder / "scores.npy"), expected, atol=1e-5)
        return "the processor's scores"
    (line,) = (done.stdout + done.stderr).splitlines()
    assert line.startswith(f"runtime='{runtime}': "), line
    assert REFUSED[runtime] in line, line
    return "refused in one line"


def main():
    """Compares, and fails where a score differs or more than a line is printed."""
    assert "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_onnx.save_classifier(folder / "tiny.onnx")
        (folder / "ten.txt").write_text("\n".join("abcdefghij"))
        model = plugins.build("models", parse(write_spec(folder, "onnx")))
        scores = model(patterns(48, 40, 4))
        np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)
        answers = [f"{runtime}: {check_runtime(folder, runtime, scores)}" for runtime in REFUSED]
    print(f"onnxruntime-gpu {onnxruntime.__version__}: {'; '.join(answers)}")


if __name__ == "__main__":
    main()
