"""Detectors that `steadyeye finetune` trained, built again from their folder alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import library
from steadyeye.core.storage.files import temporary_folder
from steadyeye.core.types import Classes
from steadyeye.models.detectors.hf_detector import answering, hf_detector
from steadyeye.models.detectors.torch_detector import TorchDetector
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.models.runtimes.network_sizes import check_config, check_settings, count_weights
from steadyeye.models.runtimes.torch_classifier import Execution
from steadyeye.models.runtimes.weights import fill_from


def read_detector(
    folder: Path, record: Mapping[str, Any], weights: Mapping[str, Tensor], execution: Execution
) -> TorchDetector:
    """The detector of a record and its weights, in fp32; nothing is downloaded.

    It runs in torch: on GPUs if `execution` says so, otherwise on the CPU. Raises `UsageError` if
    the library lacks the network of the record, and for another precision.
    """
    runtime = execution.detecting()
    classes, name = checkpoint_format.classes_of(record), folder.resolve().name
    settings, origin = record["detector"], checkpoint_format.origin(record)
    if settings["library"] == "torchvision":
        return _of_torchvision(settings, classes, (folder, weights, origin), runtime)
    module, processor = _of_transformers(settings, classes, weights, folder)
    filled = fill_from(module, weights, folder / checkpoint_format.WEIGHTS).eval()
    return hf_detector(name, filled, processor, classes, runtime, origin)


def _of_torchvision(
    settings: Mapping[str, Any], classes: Classes, trained: tuple[Path, Any, Any], runtime: str
) -> TorchDetector:
    # imports torchvision, which the detectors of transformers do without
    from steadyeye.models.detectors import torchvision_networks as networks
    from steadyeye.models.detectors.torchvision_detector import torchvision_detector

    folder, weights, origin = trained
    network = settings["network"]
    if network not in networks.names():
        raise UsageError(
            f"this torchvision has no network '{network}', which '{folder}' needs; update "
            "torchvision"
        )
    untrained = networks.network(network, len(classes), networks.settings_of(settings["settings"]))
    module = fill_from(untrained, weights, folder / checkpoint_format.WEIGHTS).eval()
    name = folder.resolve().name
    return torchvision_detector(name, module, classes, runtime, network, origin)


def _of_transformers(
    settings: Mapping[str, Any], classes: Classes, weights: Mapping[str, Tensor], trained: Path
) -> tuple[nn.Module, Any]:
    """A random network of the configuration, which `weights` can fill, and the image processor."""
    transformers = library("transformers")
    size, title = count_weights(weights), f"the detector of '{trained}'"
    check_settings(settings["config"], size, title)
    with temporary_folder() as folder:
        for file, key in (("config.json", "config"), ("preprocessor_config.json", "processor")):
            (folder / file).write_text(json.dumps(settings[key]), encoding="utf-8")
        try:
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            processor = transformers.AutoImageProcessor.from_pretrained(
                folder, backend="pil", trust_remote_code=False
            )
            answering(config, classes)
            kind = transformers.AutoModelForObjectDetection
            check_config(config, kind, size, title)
            module: nn.Module = kind.from_config(config, trust_remote_code=False)
        except (OSError, ValueError) as error:
            line = " ".join(str(error).split())[:240]
            raise UsageError(
                f"transformers cannot build {title}: {line}; install the version that it was "
                "trained with, or train again"
            ) from error
    return module.float(), processor
