"""Whether a model's input seems to be prepared in another way than in its training.

A model file does not say how it is normalised, nor the order of its channels, and a wrong answer
costs accuracy without an error. On labelled images the usual other ways are tried: the best one is
chosen on a third of them, and compared with the recipe on the rest, so that chance does not look
like one.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import plugins
from steadyeye.core.boxes import iou
from steadyeye.core.errors import UsageError
from steadyeye.core.format import percent
from steadyeye.core.model_stages import Triple, can_normalise, stages
from steadyeye.core.spec import parse
from steadyeye.core.types import Detector, Model, Sample
from steadyeye.models.preprocessing.recipe import IMAGENET_MEAN, IMAGENET_STD
from steadyeye.runner import classify, detect
from steadyeye.runner.infer import InferenceItem, Pipeline, decode_sample
from steadyeye.runner.task import Task
from steadyeye.runner.threads import Prefetch, WorkerThread

LEAST, MOST = 30, 48
"""Labelled images: with fewer nothing is tried, and not more are looked at."""
ENOUGH = 0.7
"""Share of right images from which nothing else is tried."""
MORE, TIMES = 0.3, 2.0
"""Another way is named if it makes this share of the images more right, and this many times as many
right or as few wrong."""
IOU = 0.5
"""Intersection over union from which a detection is on an object."""
WAYS: tuple[tuple[str, Triple, Triple], ...] = (
    ("ImageNet's mean and standard deviation", IMAGENET_MEAN, IMAGENET_STD),
    ("values in 0…1", (0.0,) * 3, (255.0,) * 3),
    ("values in −1…1", (127.5,) * 3, (127.5,) * 3),
    ("values in 0…255", (0.0,) * 3, (1.0,) * 3),
    ("ImageNet's mean alone", IMAGENET_MEAN, (1.0,) * 3),
)


def describe_normalisation(task: Task) -> str:
    """Which other normalisation, or order of channels, makes far more images right; "" if none.

    A classifier is right on an image whose label it predicts, a detector where its most confident
    detection is on an object of its class. Runs the model on up to `MOST` undegraded images; on a
    third of them if most of these are right.
    """
    model, has_labels = task.model, "truth" in task.identity["data"]["columns"]
    if not has_labels or not can_normalise(model) or not _takes_recipe(task):
        return ""
    samples = _choose_samples(task)
    if len(samples) < LEAST:
        return ""
    (own,) = _share_right(task, [task.model], samples[::3])
    if own >= ENOUGH:
        return ""
    others = [model.with_normalisation(mean, std) for _, mean, std in WAYS]
    others.append(model.with_reversed_channels())
    shares = _share_right(task, others, samples[::3])
    best = int(shares.argmax())
    if shares[best] < own + MORE / 2:
        return ""
    rest = [sample for place, sample in enumerate(samples) if place % 3]
    own, other = _share_right(task, [task.model, others[best]], rest)
    fewer_wrong = (1 - other) * TIMES <= 1 - own
    if other < own + MORE or not (fewer_wrong or other >= own * TIMES):
        return ""
    rights = f"{percent(other)} of {len(rest)} images are right instead of {percent(own)}"
    return _describe_way(best, rights)


def _describe_way(best: int, rights: str) -> str:
    """`best`: index into `WAYS`, or their number for the reverse order of the channels."""
    if best == len(WAYS):
        return (
            "the colour channels seem to be in another order than in the model's training: with "
            f"red and blue exchanged, {rights}; check the order of the model's recipe"
        )
    return (
        f"the images seem to be normalised in another way than in the model's training: with "
        f"{WAYS[best][0]}, {rights}; check mean and std of the model's recipe, and the order of "
        "its channels"
    )


def _takes_recipe(task: Task) -> bool:
    """Whether the recipe of a model is the user's, and not that of a library."""
    text = task.identity["model"]["spec"]
    if text in task.objects:
        return False
    return "recipe" in signature(plugins.load("models", parse(text).name)).parameters


def _choose_samples(task: Task) -> list[Sample]:
    """Labelled samples at even distances, undegraded; at most `MOST`."""
    source = task.source
    labelled = np.flatnonzero([bool(truth) for truth in source.truths])
    if "level" in source.columns:
        # of a sweep every image is there once a level, and level 0 once an operator
        undegraded = [not source[i].tags["level"] for i in labelled.tolist()]
        labelled = labelled[undegraded]
    places = np.linspace(0, len(labelled) - 1, min(MOST, len(labelled)))
    return [source[int(index)] for index in labelled[places.astype(np.intp)]]


def _share_right(
    task: Task, models: Sequence[Model | Detector], samples: Sequence[Sample]
) -> NDArray[np.float64]:
    """(models,) share of the samples that each model is right on; one image is decoded at a time.

    Images that cannot be decoded are left out. What the cache holds is not predicted again.
    """
    right: list[list[bool]] = []
    with WorkerThread(lambda: False, prefetches=False) as worker:
        pipelines = [Pipeline(_replace_model(task, model), worker) for model in models]
        for sample in samples:
            decoded_once = replace(sample, image=cache(sample.image))
            items = [_infer_sample(pipeline, sample, decoded_once) for pipeline in pipelines]
            if all(item.size for item in items):
                right.append([_is_right(task, item) for item in items])
    return np.mean(right, axis=0) if right else np.ones(len(models))


def _replace_model(task: Task, model: Any) -> Task:
    """The task with another model, or its own, whose samples may fail.

    Predictions of its own are left to the run to be stored, so that its bytes are those of a run
    without a cache.
    """
    own = model is task.model
    stored = task.cache and (
        replace(task.cache, stores=False) if own else replace(task.cache, model=model, marks={})
    )
    identity = {**task.identity, "on_error": "skip"}
    return replace(task, model=model, stages=stages(model), cache=stored, identity=identity)


def _infer_sample(pipeline: Pipeline, sample: Sample, decoded_once: Sample) -> InferenceItem:
    """The item of a sample with its answer or error; no image is decoded for what is cached."""
    decoding = Prefetch(partial(decode_sample, pipeline.task, decoded_once), None)
    item = InferenceItem(sample, dict(sample.tags), decoding=decoding)
    try:
        pipeline.infer_batch([item])
    except UsageError as error:
        # an input of bytes takes pixels alone, and some values make scores infinite
        item.error = str(error)
    return item


def _is_right(task: Task, item: InferenceItem) -> bool:
    if item.error:
        return False
    sample = item.sample
    rows = detect.build_rows(task, [item]) if task.detects else classify.build_rows(task, [item])
    detections = rows.detections
    if detections is None or sample.boxes is None:
        return int(rows.answers["predicted"][0]) in sample.truth
    if not len(detections):
        return False
    best = detections.score.argmax()
    overlaps = iou(detections.boxes[best : best + 1], sample.boxes.boxes)[0]
    return bool((overlaps[sample.boxes.labels == detections.label[best]] >= IOU).any())
