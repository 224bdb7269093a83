"""Image classifiers and detectors of Hugging Face transformers."""

import os
from typing import Any

from torch import Tensor, nn

from steadyeye.core.errors import UsageError, list_texts, one_line
from steadyeye.core.imports import library
from steadyeye.core.storage.hub import hub_access, short_name
from steadyeye.core.types import Classes, Detector, Model
from steadyeye.data.classes.class_lists import from_names, read
from steadyeye.models.detectors import hf_detector
from steadyeye.models.preprocessing.recipe import check_size
from steadyeye.models.runtimes.classifier import Recipe
from steadyeye.models.runtimes.hf_processor import preprocessing
from steadyeye.models.runtimes.network_sizes import WeightsSize, check_config, check_file
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier

PACKAGES = ("torch", "transformers", "PIL")
EXTRA = "hf"
OWN_CODE = {"trust_remote_code": False}
"""Only code of transformers itself is run; without this setting it would ask at the terminal."""

transformers = library("transformers")
# its bars would be drawn over ours, for weights that load in a second
transformers.utils.logging.disable_progress_bar()
if "TRANSFORMERS_VERBOSITY" not in os.environ:
    # advice on processors and kernels; what fails is raised
    transformers.utils.logging.set_verbosity_error()


def hf(
    *, name: str, classes: str | None = None, runtime: str = "onnx", precision: str = "fp32"
) -> Model | Detector:
    """An image classifier or detector of Hugging Face, from a folder or the hub; safetensors.

    `name`: the folder or the name. `precision`: "fp32", in torch also "bf16" and "fp16". A model is
    a detector if its configuration says ForObjectDetection; it runs in torch, with the library's
    own pre- and postprocessing. Raises `UsageError` for incomplete weights, and for a classifier
    whose preprocessing cannot be reproduced. A classifier's preprocessing is that of the image
    processor, compared with it on a test pattern. `classes`: by default the configuration's labels,
    which are taken as ImageNet-1k's if they equal these in order. `runtime`: "onnx", "torch", or
    "cuda" on GPUs.

    Example: `hf(name='microsoft/resnet-50')`
    """
    execution = Execution(runtime, precision)
    try:
        with hub_access(name):
            size = check_file(name)
            processor = transformers.AutoImageProcessor.from_pretrained(
                name, backend="pil", **OWN_CODE
            )
            _check_sides(processor, name)
            config = transformers.AutoConfig.from_pretrained(name, **OWN_CODE)
            kinds = config.architectures or ()
            if any(kind.endswith("ForObjectDetection") for kind in kinds):
                return _detector((name, size), processor, classes, execution)
            module = _load((name, size), transformers.AutoModelForImageClassification)
        labels = read(classes) if classes else _labels(module.config)
        settings = Recipe(preprocessing(processor))
    except (UsageError, ModuleNotFoundError):
        raise
    except Exception as error:
        # transformers takes what a folder says as it is
        raise UsageError(
            f"transformers cannot load '{name}': {one_line(error)}; download or save it again"
        ) from error
    return torch_classifier(_Logits(module).eval(), short_name(name), labels, settings, execution)


def _check_sides(processor: Any, name: str) -> None:
    """Raises `UsageError` for a processor whose images would not fit into memory."""
    settings = processor.to_dict()
    for key in ("size", "crop_size"):
        sides = dict(settings.get(key) or {})
        edge = sides.get("shortest_edge") or sides.get("longest_edge") or 1
        size = (sides.get("height", edge), sides.get("width", edge))
        check_size(size, f"{key} of the image processor of '{name}'")


def _detector(
    saved: tuple[str, WeightsSize | None],
    processor: Any,
    classes: str | None,
    execution: Execution,
) -> Detector:
    runtime = execution.detecting()
    module = _load(saved, transformers.AutoModelForObjectDetection)
    names = read(classes) if classes else hf_detector.labels(module.config)
    return hf_detector.hf_detector(short_name(saved[0]), module.eval(), processor, names, runtime)


def _load(saved: tuple[str, WeightsSize | None], kind: Any) -> Any:
    """The module with all its weights; missing ones, which transformers would draw, are refused."""
    name, size = saved
    config = transformers.AutoConfig.from_pretrained(name, **OWN_CODE)
    check_config(config, kind, size, f"config.json of '{name}'")
    options = {"use_safetensors": True, "output_loading_info": True, **OWN_CODE}
    module, loading = kind.from_pretrained(name, **options)
    if missing := sorted(loading["missing_keys"]):
        raise UsageError(
            f"the weights of '{name}' lack {list_texts(missing, 2)}; give a model that was trained "
            "for this task, or save it again"
        )
    return module


class _Logits(nn.Module):
    """The model with its scores as the only output."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: Tensor) -> Tensor:
        """(n, 3, h, w) → (n, classes) logits."""
        logits: Tensor = self.model(pixel_values=pixel_values).logits
        return logits


def _labels(config: Any) -> Classes | None:
    """The classes of a configuration; None if it only numbers them."""
    names = [str(config.id2label[index]) for index in sorted(config.id2label)]
    numbered = [f"LABEL_{index}" for index in range(len(names))]
    return None if names == numbered else from_names(names)
