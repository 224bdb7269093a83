"""Builds a detector from a network: its output format, its recipe, its classes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes
from steadyeye.data.classes.class_lists import COCO_IDS, read, shipped_classes
from steadyeye.models.detectors.decoders import DECODERS, Outputs
from steadyeye.models.detectors.detector_families import (
    RECIPES,
    UNIT,
    Format,
    form_of_decoder,
)
from steadyeye.models.detectors.onnx_detector import (
    Decode,
    DetectorRecipe,
    InputFrame,
    OnnxDetector,
)
from steadyeye.models.detectors.output_formats import check_batch, recognise
from steadyeye.models.runtimes.network import Network, channels_first, name_classes


@dataclass(frozen=True)
class DetectorOptions:
    """The user's settings of a detector: `decoder`, `classes` and `recipe`, each may be None."""

    decoder: str | None = None
    classes: str | None = None
    recipe: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.decoder is not None and self.decoder not in DECODERS:
            raise unknown("decoder", self.decoder, DECODERS)


def read_format(network: Network, path: str, options: DetectorOptions) -> Format:
    """The format of a network's outputs: the user's, or inferred from its file."""
    network = channels_first(network)
    check_batch(network, path)
    count = len(read(options.classes)) if options.classes else None
    try:
        form = recognise(network, path, count)
    except UsageError:
        if options.decoder is None:
            raise
        return form_of_decoder(options.decoder, network, "as given")
    if options.decoder in (None, form.decoder):
        return form
    reason = f"as given, though the file looks like '{form.decoder}' by {form.reason}"
    if {options.decoder, form.decoder} == {"boxes", "torchvision"}:
        # the same outputs, which differ in what the labels count from
        recipe = {"std": UNIT["std"]} if options.decoder == "boxes" else {}
        return replace(form, decoder=options.decoder, recipe=recipe, reason=reason)
    return replace(form_of_decoder(options.decoder, network, reason), names=form.names)


def network_detector(
    network: Network, path: str, options: DetectorOptions, runtime: Mapping[str, Any]
) -> OnnxDetector:
    """The detector of a network; `runtime`: the record of its runtime.

    `runtime["content"]`, the fingerprint of its weights, is not part of the record.
    """
    network = channels_first(network)
    form = read_format(network, path, options)
    classes, decode = _classes(form, path, options.classes)
    settings = _settings(form, network, path, options.recipe)
    of_runtime = {key: value for key, value in runtime.items() if key != "content"}
    record = {**settings.record(), "decoder": form.decoder, **of_runtime}
    record = json.loads(json.dumps(record))
    reading = json.dumps([record, form.order, form.background, form.width == 91], sort_keys=True)
    mark = fingerprint(runtime["content"], reading, *classes.names)
    record["decoder_note"] = form.reason
    return OnnxDetector(
        name=Path(path).stem,
        classes=classes,
        settings=settings,
        outputs=network.outputs,
        decode=decode,
        recipe=record,
        fingerprint=mark,
        file=path,
    )


def _settings(
    form: Format, network: Network, path: str, recipe: Mapping[str, Any] | None
) -> DetectorRecipe:
    known = DetectorRecipe.__dataclass_fields__
    parameters = {**RECIPES[form.decoder], **form.recipe, **(recipe or {})}
    for key in recipe or {}:
        if key not in known:
            raise unknown("key of a detector's recipe", key, known)
    if "size" not in parameters:
        parameters["size"] = _size(network, path, form)
        if parameters["size"] is None:
            parameters["fit"] = "stretch"
    values: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()
    }
    return DetectorRecipe(**values)


def _size(network: Network, path: str, form: Format) -> tuple[int, int] | None:
    """The input size of the file; None if the network resizes images itself."""
    shape, sizes = network.input_shape, network.metadata.get("imgsz", "")
    *_, height, width = (None, None, *shape)
    if len(shape) in (3, 4) and height is not None and width is not None:
        return height, width
    try:
        sides = json.loads(sizes)
        return int(sides[0]), int(sides[1])
    except (ValueError, TypeError, IndexError):
        pass
    if form.background:
        return None
    raise UsageError(f"'{path}' takes input {shape}; give the size in the recipe, (h, w)")


def _classes(form: Format, path: str, chosen: str | None) -> tuple[Classes, Decode]:
    """The classes, and the decoder with its labels as indices into them."""
    decode: Decode = DECODERS[form.decoder]
    if form.order and form.order != tuple(range(len(form.order))):
        decode = partial(_in_order, decode, form.order)
    if chosen:
        classes = read(chosen)
        _check_count(len(classes), form, path)
    elif form.names:
        classes = name_classes(form.names)
    elif form.width in (None, 80, 91):
        classes = shipped_classes("coco")
    else:
        raise UsageError(
            f"the names of the {number_of(form.width or 0, 'class')} of '{path}' are not known; "
            "put a classes.txt next to it, one class a line, or give classes='…'"
        )
    by_coco_id = classes == shipped_classes("coco") and (form.width == 91 or form.background)
    if by_coco_id:
        return classes, partial(_renumber, decode, COCO_IDS)
    if form.background:
        return classes, partial(_renumber, decode, tuple(range(1, len(classes) + 1)))
    return classes, decode


def _check_count(classes: int, form: Format, path: str) -> None:
    """Raises `UsageError` for a class list that does not fit the outputs.

    A list with a background, or without its first class, would shift all names by one.
    """
    width = form.width
    if width is None or classes == width or (classes, width) == (80, 91):
        return
    # of those that came after DETR some outputs are of no class
    if form.decoder in ("detr", "detr_sigmoid") and classes < width:
        return
    raise UsageError(
        f"'{path}' predicts {number_of(width, 'class')}, and the list has {classes:,}; give the "
        "class list that it was trained on, without a background"
    )


def _in_order(
    decode: Decode, order: tuple[int, ...], outputs: Outputs, frame: InputFrame
) -> Detections:
    return decode([outputs[index] for index in order], frame)


def _renumber(
    decode: Decode, ids: tuple[int, ...], outputs: Outputs, frame: InputFrame
) -> Detections:
    """Detections with labels as indices of `ids`; other labels are dropped."""
    detections = decode(outputs, frame)
    place = np.full(max(*ids, int(detections.labels.max(initial=0))) + 1, -1, dtype=np.int32)
    place[list(ids)] = np.arange(len(ids))
    labels = np.where(detections.labels >= 0, place[np.maximum(detections.labels, 0)], -1).astype(
        np.int32
    )
    known = labels >= 0
    return replace(
        detections,
        boxes=detections.boxes[known],
        labels=labels[known],
        scores=detections.scores[known],
    )
