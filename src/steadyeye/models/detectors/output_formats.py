"""Infers the decoder and the recipe of an exported detector from names and shapes.

Further information is read if present (the metadata of Ultralytics, a config.json of transformers
next to the file). If two families fit, nothing is guessed: the error names both.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.models.detectors.detector_families import (
    CENTRED,
    IMAGENET,
    UNIT,
    Format,
    count_cells,
)
from steadyeye.models.detectors.toolbox_exports import recognise_toolbox
from steadyeye.models.runtimes.network import Network, Output, axes_in_words, read_names


def recognise(network: Network, path: str, classes: int | None = None) -> Format:
    """The format of a network's outputs; `classes`: the user's number of classes.

    Raises `UsageError` if no format fits, or several.
    """
    outputs = network.described_outputs
    shapes = ", ".join(f"{o.name} ({axes_in_words(o.shape)})" for o in outputs)
    form = (
        _of_ultralytics(network, path)
        or recognise_toolbox(network, path)
        or _by_names(outputs, path, classes)
        or _of_torchvision(outputs)
        or _by_shape(network, path, classes)
    )
    if form is None and None in network.input_shape[1:]:
        sides = axes_in_words(network.input_shape)
        raise UsageError(
            f"'{path}' takes images of any size ({sides}), so that its outputs, {shapes}, do not "
            "show its family; write onnx_detector(path=…, decoder='…', recipe={'size': (h, w)})"
        )
    if form is None:
        raise UsageError(
            f"'{path}' gives {shapes}, which no decoder reads; name its family with "
            "onnx_detector(path=…, decoder='…'), or read the outputs with a function of your own: "
            "callable_detector(path='module:function')"
        )
    return form


def check_batch(network: Network, path: str) -> None:
    """Raises `UsageError` for a file with a fixed batch of several images."""
    batch = network.input_shape[0] if len(network.input_shape) == 4 else 1
    if batch not in (None, 1):
        raise UsageError(
            f"'{path}' takes batches of {batch} images only; export it with a batch size of 1, "
            "or a dynamic one"
        )


def _of_ultralytics(network: Network, path: str) -> Format | None:
    """The format in Ultralytics' own metadata, with the class names."""
    metadata, (first, *_) = network.metadata, network.described_outputs
    if "names" not in metadata or "task" not in metadata:
        return None
    if metadata["task"] != "detect":
        raise UsageError(
            f"'{path}' is an export of Ultralytics for the task '{metadata['task']}'; export a "
            "model for the task 'detect'"
        )
    names = read_names(metadata)
    shape = first.shape
    if len(shape) != 3:
        return None
    reason = f"Ultralytics' metadata, and output {first.name} ({axes_in_words(shape)})"
    if shape[2] == 4 + len(names) and "head" not in metadata and shape[1] != 4 + len(names):
        decoder = "ultralytics_rtdetr_classes"
    elif metadata.get("head") == "RTDETRDecoder":
        decoder = "ultralytics_rtdetr"
    elif shape[2] == 6 and shape[1] != 4 + len(names):
        decoder = "end_to_end"
        if "'nms': True" in metadata.get("args", ""):
            reason += "; boxes below the score that it was exported with are not in it"
    elif shape[2] == 5 + len(names):
        decoder = "yolox_decoded"
    else:
        decoder = "ultralytics"
    recipe = CENTRED if decoder == "yolox_decoded" else {}
    return Format(decoder, reason, names=names, width=len(names), recipe=recipe)


def _by_names(outputs: Sequence[Output], path: str, classes: int | None) -> Format | None:
    """The format by the names of the outputs."""
    names = [output.name for output in outputs]
    place = {name: index for index, name in enumerate(names)}
    reason = f"outputs named {', '.join(names)}"
    heads = sorted((n for n in names if n.startswith("cls_pred_stride_")), key=_stride)
    distances = sorted((n for n in names if n.startswith("dis_pred_stride_")), key=_stride)
    if heads and len(heads) == len(distances) and len(names) == 2 * len(heads):
        order = tuple(place[name] for name in (*heads, *distances))
        return Format("nanodet_heads", reason, order, width=outputs[order[0]].shape[-1])
    if {"boxes", "scores", "labels"} <= set(names) and len(outputs[place["scores"]].shape) == 2:
        order = (place["boxes"], place["scores"], place["labels"])
        return Format("boxes", reason, order, {"std": UNIT["std"]})
    if {"dets", "labels"} == set(names):
        # RF-DETR: ImageNet's mean and std
        order = (place["labels"], place["dets"])
        return Format("detr_sigmoid", reason, order, IMAGENET, outputs[order[0]].shape[-1])
    logits = "logits" if "logits" in place else "pred_logits"
    if {logits, "pred_boxes"} <= set(names):
        order = (place[logits], place["pred_boxes"])
        return _of_transformers(path, reason, order, outputs[order[0]].shape[-1], classes)
    if {"boxes", "scores"} == set(names) and len(outputs[place["scores"]].shape) == 3:
        width = outputs[place["scores"]].shape[-1]
        order = (place["boxes"], place["scores"])
        return Format("ssd", reason, order, width=None if width is None else width - 1)
    return None


def _stride(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else 0


def _of_transformers(
    path: str, reason: str, order: tuple[int, ...], width: int | None, classes: int | None
) -> Format:
    """The format of DETR models: a softmax over one class more, or in later models a sigmoid.

    config.json next to the file shows which, and preprocessor_config.json the preprocessing;
    without them the number of classes decides.
    """
    config = _read_json(Path(path).expanduser().with_name("config.json"))
    names = tuple(str(name) for _, name in sorted(_read_id2label(config.get("id2label"))))
    known = classes or len(names) or None
    kind = str(config.get("model_type", ""))
    # the networks of transformers whose scores are a softmax with "no object" as the last class
    softmax = kind in ("detr", "yolos", "table-transformer") if kind else None
    if softmax is None and width is not None:
        softmax = True if width == 92 else False if width in (80, 91) else None
        if known is not None:
            softmax = {known + 1: True, known: False}.get(width, softmax)
    if softmax is None:
        raise UsageError(
            f"'{path}' gives logits of {axes_in_words((width,))} classes, which may hold one for "
            "no object: write decoder='detr' if they do and decoder='detr_sigmoid' if not, or put "
            "the config.json of the model next to it"
        )
    reason += f", model_type '{kind}' in config.json" if kind else ""
    decoder = "detr" if softmax else "detr_sigmoid"
    count = None if width is None else width - softmax
    # of those with a sigmoid RT-DETR and D-FINE alone take shares of 255 as they are
    is_plain = kind.startswith(("rt_detr", "d_fine")) if kind else width != 91
    recipe = {} if softmax or is_plain else IMAGENET
    return Format(decoder, reason, order, {**recipe, **_processing(path)}, count, names=names)


def _processing(path: str) -> dict[str, Any]:
    """Mean and std of a preprocessor_config.json next to the file; empty if it has none."""
    settings = _read_json(Path(path).expanduser().with_name("preprocessor_config.json"))
    if not settings:
        return {}
    if not settings.get("do_normalize", True):
        return {"mean": (0.0,) * 3, "std": (255.0,) * 3}
    mean, std = settings.get("image_mean"), settings.get("image_std")
    if not (isinstance(mean, list) and isinstance(std, list)):
        return {}
    return {"mean": tuple(255.0 * m for m in mean), "std": tuple(255.0 * s for s in std)}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _read_id2label(names: object) -> list[tuple[int, str]]:
    if not isinstance(names, dict) or not all(str(key).isdigit() for key in names):
        return []
    return [(int(key), str(name)) for key, name in names.items()]


def _of_torchvision(outputs: Sequence[Output]) -> Format | None:
    """Detectors of torchvision: boxes (n, 4), scores (n) and whole labels (n), in any order."""
    if len(outputs) < 3 or any(len(output.shape) not in (1, 2) for output in outputs[:3]):
        return None
    three = list(enumerate(outputs[:3]))
    corners = [i for i, o in three if len(o.shape) == 2 and o.shape[-1] in (4, None)]
    labels = [i for i, o in three if len(o.shape) == 1 and o.whole]
    scores = [i for i, o in three if len(o.shape) == 1 and not o.whole]
    if (len(corners), len(scores), len(labels)) != (1, 1, 1):
        return None
    reason = "outputs without a batch axis: boxes, scores and whole labels, as torchvision's"
    order = (corners[0], scores[0], labels[0])
    return Format("torchvision", reason, order)


def _by_shape(network: Network, path: str, classes: int | None) -> Format | None:
    """The format by the shape of the only output."""
    outputs, side = network.described_outputs, network.input_shape[-2:]
    shape = outputs[0].shape
    reason = f"output {outputs[0].name} ({axes_in_words(shape)})"
    if len(outputs) != 1 or None in shape[1:] or None in side or len(side) != 2:
        return None
    if len(shape) == 4:
        return Format("fastestdet", reason, width=int(shape[1] or 0) - 5)
    if len(shape) != 3:
        return None
    rows, columns = int(shape[1] or 0), int(shape[2] or 0)
    size = (int(side[0] or 0), int(side[1] or 0))
    three, four = (count_cells(size, strides) for strides in ((8, 16, 32), (8, 16, 32, 64)))
    decoder: str | None = None
    is_yolov6 = False
    width: int | None = columns - 5
    if columns == 6 and rows not in (three, four, 3 * three, 3 * four):
        decoder, width = "end_to_end", None
    elif columns in (three, four) and rows > 4:
        decoder, width = "ultralytics", rows - 4
    elif rows in (3 * three, 3 * four):
        decoder = "yolox_decoded"
    elif rows == four and columns > 36 and columns - 5 != classes:
        decoder, width = _nanodet_or_yolox(path, columns, classes)
    elif rows in (three, four) and columns > 5:
        grey = _rows_of_grey(network, size)
        decoder = "yolox_decoded" if _is_decoded(grey, size[1]) else "yolox"
        is_yolov6 = decoder == "yolox_decoded" and bool((grey[:, 4] == 1).all())
    if decoder is None:
        return None
    # three anchors a cell are YOLOv5 and YOLOv7, objectness of 1 everywhere is YOLOv6: their
    # letterbox is Ultralytics'
    is_centred = is_yolov6 or (decoder == "yolox_decoded" and rows not in (three, four))
    names = read_names(network.metadata)
    names = names if len(names) == width else ()
    return Format(decoder, reason, (), CENTRED if is_centred else {}, width, names=names)


def _nanodet_or_yolox(path: str, columns: int, classes: int | None) -> tuple[str, int]:
    """Four strides: NanoDet-Plus of n − 32 classes, or a large YOLOX of n − 5."""
    known = classes or len(shipped_classes("coco"))
    if columns - 32 == known:
        return "nanodet", columns - 32
    if columns - 5 == known:
        return "yolox", columns - 5
    raise UsageError(
        f"'{path}' may be NanoDet-Plus of {columns - 32} classes or YOLOX of {columns - 5}; write "
        "decoder='nanodet' or decoder='yolox', or put its class list next to it"
    )


def _rows_of_grey(network: Network, size: tuple[int, int]) -> NDArray[np.float32]:
    """The (cells, columns) output rows of a network for a grey image."""
    outputs = network.outputs(np.full((1, 3, *size), 114, dtype=np.float32))
    return np.asarray(outputs[0][0])


def _is_decoded(rows: NDArray[np.float32], width: int) -> bool:
    """Whether a YOLOX outputs pixels: then the centres for a grey image go up to its width.

    Offsets from a cell and logarithms of sides are at most a few strides.
    """
    return bool(np.percentile(rows[:, 0], 90) > max(16, width / 4))
