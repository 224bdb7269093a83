"""Open-vocabulary detectors of Hugging Face: OWL-ViT and OWLv2."""

from collections.abc import Sequence
from typing import Any

import torch

from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.imports import library
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.hub import hub_access, short_name
from steadyeye.core.types import Detector, Image
from steadyeye.data.classes.class_lists import read
from steadyeye.models.detectors.function_detector import FunctionDetector
from steadyeye.models.runtimes.torch_module import one_thread
from steadyeye.models.runtimes.weights import weights_fingerprint
from steadyeye.models.runtimes.zero_shot_head import list_templates

PACKAGES = ("torch", "transformers", "PIL")
EXTRA = "hf"
OWN_CODE = {"trust_remote_code": False}
THRESHOLD = 0.001

transformers = library("transformers")


def zero_shot_detector(*, name: str, classes: str, prompt: str = "{}") -> Detector:
    """A detector with classes given as words; it runs in torch, one image at a time.

    `name`: a folder or a name on the hub; safetensors. `classes`: `coco`, another known list or a
    class file. `prompt`: a template with {} for the class, part of the model's fingerprint as the
    classes are. Detections with a score below 0.001 are left out. Raises `UsageError` for models
    that cannot be loaded, and for other families.

    Example: `zero_shot_detector(name='google/owlvit-base-patch32', classes='coco')`
    """
    names = read(classes)
    (template,) = list_templates(prompt)
    texts = [template.replace("{}", label).lower() for label in names.names]
    try:
        with hub_access(name):
            processor = transformers.AutoProcessor.from_pretrained(name, **OWN_CODE)
            model = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(
                name, use_safetensors=True, **OWN_CODE
            ).eval()
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"transformers cannot load '{name}': {one_line(error)}; download or save it again"
        ) from error
    if not model.config.model_type.startswith("owl"):
        raise UsageError(
            f"'{name}' is {model.config.model_type}; only OWL-ViT and OWLv2 are supported: give "
            "others as callable_detector(path='module:function')"
        )

    def detect(images: Sequence[Image]) -> list[tuple[Any, Any, Any]]:
        with torch.inference_mode(), one_thread():
            return [_ask(model, processor, image, texts) for image in images]

    recipe = {
        "runtime": "torch",
        "precision": "fp32",
        "threshold": THRESHOLD,
        "prompts": texts,
        "processor": str(processor.image_processor.to_dict()),
    }
    mark = fingerprint(weights_fingerprint(model), str(recipe), *names.names)
    return FunctionDetector(detect, short_name(name), names, recipe, mark, cacheable=True)


def _ask(model: Any, processor: Any, image: Image, texts: list[str]) -> tuple[Any, Any, Any]:
    """The boxes, scores and labels of an image: one query per text, whose index is the class."""
    inputs = processor(text=[texts], images=image, return_tensors="pt")
    (result,) = processor.post_process_grounded_object_detection(
        model(**inputs), threshold=THRESHOLD, target_sizes=[image.shape[:2]]
    )
    return result["boxes"], result["scores"], result["labels"]
