"""The contracts of every kind of plugin, as checks for plugin authors and for our own tests.

    from steadyeye.testing import check_operator
    check_operator(darken())

Each check raises `ContractError` with one line for the first violation.
"""

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import plugins
from steadyeye.core.abilities import cacheable, detects
from steadyeye.core.boxes import Detections, boxes, detection_table, truth_table
from steadyeye.core.defaults import IMAGENET_C
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Section
from steadyeye.core.spec import Spec, parse
from steadyeye.core.types import (
    Classes,
    Detector,
    Evaluated,
    Image,
    Labels,
    Model,
    Result,
    Sample,
    Source,
    read_needs,
)
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import Context, Operator
from steadyeye.explain.context import Probe, ProbeGrid, Subject
from steadyeye.explain.targets import targets

SHAPES = ((64, 48, 3), (31, 57, 3), (40, 40), (1, 1, 3), (2, 2))
COLUMNS = ("truth", "group", "offset", "frame", "video")
"""Columns of `example_predictions`."""


class ContractError(UsageError):
    """A plugin that violates the contract of its kind; its text is the violation.

    Example:
        >>> from steadyeye.core.types import Result
        >>> check_metric(lambda predictions: Result("ones", 1.0, None, None, 1, "none"))
        Traceback (most recent call last):
        steadyeye.testing.ContractError: on empty input its value is 1.0, not None

    """


def check_plugin(kind: str, text: str, predictions: Predictions | None = None) -> str:
    """Checks the plugin of a spec; returns the checks as one line.

    `kind`: as in `steadyeye ls`. `text`: the spec, a name with arguments in brackets.
    `predictions`: the input of metrics and analyses; by default `example_predictions()`. Raises
    `UsageError` if it cannot be loaded, and `ContractError` for a violation.

    Example:
        >>> print(check_plugin("operators", "jpeg(subsampling='444')"))
        jpeg: 5 shapes, levels 0 to 30

    """
    spec = parse(text)
    _require(bool(plugins.declaration(kind, spec.name).summary), f"{spec.name} has no docstring")
    table = predictions or example_predictions()
    if kind in ("metrics", "analyses"):
        plugin = plugins.load(kind, spec.name)
        plugins.check_arguments(plugin, spec, positional=1)
        lacking = [name for name in read_needs(plugin) if name not in table.columns]
        if lacking:
            raise UsageError(
                f"{spec.name} needs {', '.join(lacking)}; name a run that has them with --run"
            )
        check = check_metric if kind == "metrics" else check_analysis
        return check(partial(plugin, **spec.kwargs), predictions)
    if kind == "probes":
        return check_probe(plugins.load(kind, spec.name), spec)
    plugin = plugins.build(kind, spec)
    checks: dict[str, Callable[[Any], str]]
    checks = {"operators": check_operator, "sources": check_source, "models": check_model}
    return checks[kind](plugin)


def check_operator(operator: Operator) -> str:
    """Level 0 is the image; levels do not depend on earlier ones; the image is not changed.

    `operator` is run on `example_image` in five shapes, colour and grey, at level 0, 1, 2 and its
    last. Returns the checks as one line; raises `ContractError` for a violation.

    Example:
        >>> from steadyeye.degradation.operators.contrast import contrast
        >>> print(check_operator(contrast()))
        contrast: 5 shapes, levels 0 to 5

    """
    _require(isinstance(operator, Operator), "it returns no steadyeye.degradation.Operator")
    key = stream_key(0, "a photo", operator.name)
    levels = sorted({1, min(2, operator.last), operator.last})
    gradient = _gradient if operator.needs_gradient else None
    for shape in SHAPES:
        image = example_image(shape)
        before, context = image.copy(), Context(key, gradient)
        trail = operator.start(image, context)
        _require(np.array_equal(trail(0), before), "level 0 is not the image itself")
        for level in levels:
            degraded = trail(level)
            copy_ = degraded.copy()
            form, dtype = degraded.shape, degraded.dtype
            _require(form == shape, f"level {level} changes the shape {shape}: {form}")
            _require(dtype == np.uint8, f"level {level} is {dtype}, not uint8")
            alone = operator.start(before.copy(), context)(level)
            _require(
                np.array_equal(alone, copy_),
                f"level {level} differs when it is made alone: draw only from context.key",
            )
        _require(np.array_equal(image, before), "it writes into the image that it is given")
    return f"{operator.name}: {len(SHAPES)} shapes, levels 0 to {operator.last}"


def _gradient(image: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.ones_like(image)


def check_source(source: Source, *columns: str) -> str:
    """Ids are unique; ids and labels are known in advance; images are RGB and decode the same.

    The first, the middle and the last sample of `source` are decoded. `columns`: columns that need
    not have a value in each sample. Returns the checks as one line; raises `ContractError` for a
    violation.

    Example:
        >>> print(check_source(example_source(sets=2)))
        example: 10 samples, 3 of them decoded

    """
    ids, truths = list(source.ids), list(source.truths)
    _require(len(source) > 0, "it has no samples")
    _require(len(ids) == len(truths) == len(source), "ids, truths and its length differ")
    _require(len(set(ids)) == len(ids), "an id comes twice")
    _require(isinstance(source.fingerprint, str), "its fingerprint is no text")
    rows = sorted({0, len(source) // 2, len(source) - 1})
    for row in rows:
        sample = source[row]
        _require(sample.id == ids[row], f"sample {row} has the id {sample.id}, not {ids[row]}")
        _require(tuple(sample.truth) == tuple(truths[row]), f"sample {row} has other labels")
        image = sample.image()
        _require(
            image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3,
            f"sample {row} is {image.shape} {image.dtype}, not (h, w, 3) uint8",
        )
        again = source[row]
        _require(np.array_equal(again.image(), image), f"sample {row} decodes to another image")
        if sample.key is not None and again.key is not None:
            _require(sample.key() == again.key(), f"the key of sample {row} changes")
        known = {"truth", "group", "boxes", "verified", *columns, *sample.tags}
        lacking = [name for name in source.columns if name not in known]
        _require(sample.measure is not None or not lacking, f"sample {row} lacks {lacking}")
    return f"{source.name}: {len(source):,} samples, {len(rows)} of them decoded"


def check_model(model: Model | Detector, side: int = 64) -> str:
    """One row per image, in any order; the same in any batch if predictions may be cached.

    `model` is run on four images of `example_image`, `side` pixels high and wide, together and
    alone. Returns the checks as one line; raises `ContractError` for a violation.

    Example:
        >>> print(check_model(example_subject().model))
        detect_nothing: 4 images, alone and together

    """
    images = [example_image((side, side, 3), seed) for seed in range(4)]
    before = [image.copy() for image in images]
    answers = model(images)
    _require(len(answers) == len(images), f"{len(answers)} answers for {len(images)} images")
    if detects(model):
        for answer in answers:
            _require(isinstance(answer, Detections), "a detector gives Detections")
    else:
        scores = np.asarray(answers)
        width = len(model.classes) if model.classes else scores.shape[1]
        shape = scores.shape
        _require(shape == (len(images), width), f"scores of shape {shape}, {width} classes")
        _require(not np.isnan(scores).any(), "scores are NaN")
    _require(all(map(np.array_equal, images, before)), "it writes into the images")
    _require(len(model([])) == 0, "no images give an answer")
    if cacheable(model):
        turned = model(images[::-1])
        same = all(_same(a, b) for a, b in zip(answers, reversed(list(turned)), strict=True))
        _require(same, "its answer depends on the order of the batch, but it says cacheable = True")
        _require(_same(model(images[:1])[0], answers[0]), "its answer depends on the batch")
    return f"{model.name}: {len(images)} images, alone and together"


def _same(answer: Any, other: Any) -> bool:
    if isinstance(answer, Detections):
        return all(
            np.array_equal(getattr(answer, part), getattr(other, part))
            for part in ("boxes", "scores", "labels")
        )
    return np.array_equal(answer, other)


def check_metric(
    metric: Callable[[Predictions], Result], predictions: Predictions | None = None
) -> str:
    """The same twice and in any order of rows; None on empty input; predictions not changed.

    `metric` is run on `predictions` or, by default, on `example_predictions()`, those rows in
    reverse order, and no rows. Returns the checks as one line; raises `ContractError` for a
    violation.

    Example:
        >>> from steadyeye.metrics.accuracy import accuracy
        >>> print(check_metric(accuracy))
        accuracy: 60 rows, in two orders, and none

    """
    table = predictions or example_predictions()
    before, result = copy.deepcopy(table), metric(table)
    _require(isinstance(result, Result), "it returns no Result")
    _require(metric(table) == result, "it gives another result the second time")
    _require_unchanged(table, before)
    if predictions is None:
        turned = metric(_rows(table, np.arange(len(table))[::-1]))
        same = turned.value == result.value or np.isclose(turned.value or 0, result.value or 0)
        _require((turned.n, bool(same)) == (result.n, True), "it depends on the order of the rows")
        empty = metric(_rows(table, np.arange(0)))
        _require(empty.value is None, f"on empty input its value is {empty.value}, not None")
    return f"{result.name}: {len(table):,} rows{'' if predictions else ', in two orders, and none'}"


def check_analysis(
    analysis: Callable[[Sequence[Evaluated]], Section | None],
    predictions: Predictions | None = None,
) -> str:
    """The same section twice, or None; each figure has a text; predictions are not changed.

    `analysis` is run on one model without results, of `predictions` or, by default, of some that
    are all right and of some that are not. Returns the title of its section and the checks as one
    line; raises `ContractError` for a violation.

    Example:
        >>> from steadyeye.report.analyses.failures import failures
        >>> print(check_analysis(failures))
        The frames that break a model: 60 rows, right and wrong

    """
    tables = [predictions] if predictions else [example_predictions(margin=m) for m in (1.0, 0.5)]
    titles = []
    for table in tables:
        before, models = copy.deepcopy(table), [Evaluated(table, {})]
        section = analysis(models)
        _require(section is None or isinstance(section, Section), "it returns no Section")
        _require(analysis(models) == section, "it gives another section the second time")
        _require_unchanged(table, before)
        if section is not None:
            _require(all(figure.alt for figure in section.figures), "a figure has no text `alt`")
            titles.append(section.title)
    name = titles[0] if titles else "nothing to say of these predictions"
    return f"{name}: {len(tables[0]):,} rows{'' if predictions else ', right and wrong'}"


def check_probe(probe: Callable[..., Any], spec: Spec, subject: Subject | None = None) -> str:
    """Images decode the same; for targets × steps, the first is the unchanged image.

    `probe`: the function, called with the subject and the arguments of `spec`. `subject`: the input
    of the probe, by default `example_subject()`. Returns the checks as one line. Raises
    `ContractError` for a violation, and `UsageError` for inputs that the probe refuses, such as a
    detector without gradients.

    Example:
        >>> from steadyeye.explain.probes.patch_shuffle import patch_shuffle
        >>> print(check_probe(patch_shuffle, parse("patch_shuffle(repeats=5)")))
        patch_shuffle: 36 images of 6 detections

    """
    _require(bool(inspect.signature(probe).parameters), "it takes no subject")
    plugins.check_arguments(probe, spec, positional=1)
    subject = subject or example_subject()
    results = [probe(subject, **spec.kwargs) for _ in range(2)]
    _require(all(isinstance(result, Probe) for result in results), "it returns no Probe")
    source, again = (result.source for result in results)
    _require(source.fingerprint == again.fingerprint, "its fingerprint changes")
    check_source(source, spec.name.rpartition(":")[2])
    if isinstance(source, ProbeGrid):
        plain = subject.sample(source.targets[0]).image()
        _require(np.array_equal(source[0].image(), plain), "its first image is not as it was")
    names = {tuple(source[row].tags) for row in (0, len(source) - 1)}
    _require(len(names) == 1, "its samples have different tags")
    return f"{spec.name}: {len(source):,} images of {len(subject.targets)} detections"


def example_image(shape: tuple[int, ...] = (64, 48, 3), seed: int = 0) -> Image:
    """An image of `shape`, uint8: noise over a gradient, so that neighbours differ; seeded.

    Example:
        >>> example_image((2, 3))
        array([[ 47, 135, 228],
               [ 15, 117, 202]], dtype=uint8)

    """
    rng = np.random.default_rng(seed)
    slope = np.linspace(0, 200, shape[1]).reshape(1, -1, *(1,) * (len(shape) - 2))
    return (slope + rng.integers(0, 56, shape)).astype(np.uint8)


def degrade_example(operator: Operator, level: int) -> str:
    """How far `operator` changes `example_image` at `level`: share of pixels, and mean value.

    Example:
        >>> from steadyeye.degradation.operators.jpeg import jpeg
        >>> print(degrade_example(jpeg(), level=30))
        100 % of pixels changed, mean 127 → 127

    """
    from steadyeye.degradation.kernels import measure_brightness, measure_changed_share

    image = example_image()
    degraded = operator.start(image, Context(stream_key(0, "example", operator.name)))(level)
    share = 100 * measure_changed_share(degraded, image)
    before, after = measure_brightness(image), measure_brightness(degraded)
    return f"{share:.0f} % of pixels changed, mean {before:.0f} → {after:.0f}"


def example_predictions(
    sets: int = 12, seed: int = 0, margin: float = 1.0, k: int = 2
) -> Predictions:
    """`sets` pm-sets of an anchor and `k` frames on each side, three classes, with `COLUMNS`.

    `margin`: the true class's score minus a uniform score in 0…1; from 1 on all predictions are
    right. `seed`: of the labels and the scores. Two sets are of one video.

    Example:
        >>> example_predictions(sets=4, k=1).scores.shape
        (12, 3)

    """
    rng = np.random.default_rng(seed)
    offsets, size = np.tile(np.arange(-k, k + 1), sets), 2 * k + 1
    groups = np.repeat([f"v{i // 2}:{i:02d}" for i in range(sets)], size)
    labels = np.repeat(rng.integers(0, 3, sets), size)
    scores = rng.random((len(labels), 3)) + margin * np.eye(3)[labels]
    tags = {
        "offset": offsets,
        "frame": offsets + 100 * np.repeat(np.arange(sets), size),
        "video": np.asarray([group.partition(":")[0] for group in groups]),
    }
    return _table(labels, scores, groups, tags)


def example_video(frames: int = 120, seed: int = 0) -> Predictions:
    """Two videos of `frames` frames at 10 per second without labels, with spells of predictions.

    `seed`: of the spells and the scores. A spell has one class and lasts 20 frames on average.

    Example:
        >>> from steadyeye.metrics.flip_rate import flip_rate
        >>> flip_rate(example_video(frames=50)).n
        98

    """
    rng = np.random.default_rng(seed)
    frame = np.tile(np.arange(frames), 2)
    video = np.repeat(["v0", "v1"], frames)
    tags = {"frame": frame, "video": video, "scene": np.zeros(2 * frames, dtype=np.int64)}
    spell = np.cumsum(rng.random(2 * frames) < 0.05)
    scores = rng.dirichlet(np.ones(3), 2 * frames) + np.eye(3)[spell % 3]
    tags |= {"seconds": frame / 10, "step": np.ones(2 * frames, dtype=np.int64)}
    tags["fps"] = np.full(2 * frames, 10.0)
    table = _table(np.full(2 * frames, -1), scores / 2, video, tags)
    return replace(table, columns=("group", *tags))


def example_tracks(frames: int = 120, seed: int = 0, late: int = 0) -> Predictions:
    """`example_video` of a detector: two objects per video, and some false boxes.

    Of an object's `frames` one in ten has a score below 0.5, one in twenty no box, and one in fifty
    another class; `seed`: of all random numbers. `late`: the frame in which they appear; for five
    more frames the scores are below 0.5.

    Example:
        >>> example_tracks(frames=30).raw_detections.boxes.shape
        (115, 4)

    """
    rng = np.random.default_rng(seed)
    table = example_video(frames, seed)
    answers = []
    for frame in table.tags["frame"]:
        corners = np.concatenate([_example_objects(frame), [[0.0, 0, 9, 9]]])
        fate, noise = rng.random(3), rng.normal(0, 0.5, (3, 4))
        present = (fate < [0.95, 0.95, 0.02]) & (frame >= late)
        weak = fate < [0.1, 0.1, 0.0] if frame >= late + 5 * bool(late) else [True] * 3
        scores = np.where(weak, 0.3, 0.8) + 0.1 * rng.random(3)
        labels = np.where(rng.random(3) < 0.02, 1, [0, 2, 0]).astype(np.int32)
        answers.append(Detections((corners + noise)[present], labels[present], scores[present]))
    columns = (*table.columns, "detections")
    return replace(table, raw_detections=detection_table(answers), columns=columns)


def _example_objects(frame: int) -> NDArray[np.float64]:
    """(2, 4) the boxes of the two objects of `example_tracks` in a frame."""
    left, right = 10.0 + frame, 300.0 - 2 * frame
    return np.array([[left, 20, left + 40, 60], [right, 80, right + 60, 120]])


def example_true_tracks(frames: int = 120, seed: int = 0) -> Predictions:
    """`example_tracks` with the same `frames` and `seed`, and with the true boxes and tracks.

    Example:
        >>> example_true_tracks(frames=30).boxes.track.shape
        (120,)

    """
    table = example_tracks(frames, seed)
    truth = [boxes(_example_objects(frame), [0, 2], track=[0, 1]) for frame in table.tags["frame"]]
    columns = (*table.columns, "truth", "boxes", "tracks")
    labels = np.tile([True, False, True], (len(table), 1))
    return replace(
        table,
        columns=columns,
        truth=labels,
        boxes=truth_table(truth),
        detections=table.raw_detections,
        model_to_data_class=np.arange(3),
    )


def example_corruptions(images: int = 20, seed: int = 0) -> Predictions:
    """A sweep of the fifteen corruptions of ImageNet-C at all severities, as `example_sweep`.

    Example:
        >>> len(example_corruptions(images=2))
        152

    """
    return example_sweep(images, 5, seed, IMAGENET_C)


def example_sweep(
    images: int = 20, levels: int = 4, seed: int = 0, operators: Sequence[str] = ("blur", "noise")
) -> Predictions:
    """A sweep of operators over `images` photos, levels 0 to `levels`, with falling accuracy.

    `seed`: of the labels and the scores. Level 0 occurs once, without an operator.

    Example:
        >>> len(example_sweep(images=5, levels=2))
        25

    """
    rng = np.random.default_rng(seed)
    steps = [
        ("", 0),
        *((name, step) for name in operators for step in range(1, levels + 1)),
    ]
    operator, level = (np.repeat(np.array(column), images) for column in zip(*steps, strict=True))
    labels = np.tile(rng.integers(0, 3, images), len(steps))
    scores = rng.random((len(labels), 3)) * (0.9 + 0.3 * level[:, None]) + np.eye(3)[labels]
    tags = {
        "operator": operator,
        "level": level,
        "image": np.tile([f"photo {i:02d}" for i in range(images)], len(steps)),
        "changed": level / levels,
        "brightness": np.full(len(level), 128.0),
    }
    table = _table(labels, scores / scores.sum(axis=1, keepdims=True), tags["image"], tags)
    return replace(table, columns=("truth", *tags, "profile"))


def example_detector_sweep(images: int = 12, levels: int = 4, seed: int = 0) -> Predictions:
    """`example_sweep` of a detector: two objects per image, more often missed or misplaced.

    `images`, `levels`, `seed`: as in `example_sweep`.

    Example:
        >>> len(example_detector_sweep(images=5, levels=2).boxes)
        50

    """
    rng = np.random.default_rng(seed)
    table = example_sweep(images, levels, seed)
    corners = rng.integers(0, 60, (images, 2, 2)) + np.array([[0.0, 0], [80, 0]])
    kind = rng.integers(0, 3, (images, 2))
    truth, answers = [], []
    for place, level in enumerate(table.tags["level"]):
        image = place % images
        objects = np.concatenate([corners[image], corners[image] + 30], axis=1)
        truth.append(boxes(objects, kind[image]))
        present = rng.random(2) > 0.15 * level
        moved = (objects + rng.normal(0, 1 + level, (2, 4)))[present]
        labels = kind[image][present].astype(np.int32)
        answers.append(Detections(moved, labels, rng.uniform(0.4, 1, int(present.sum()))))
    return replace(
        table,
        columns=(*table.columns, "boxes", "detections"),
        boxes=truth_table(truth),
        detections=detection_table(answers),
    )


def example_detections(sets: int = 30, seed: int = 0) -> Predictions:
    """The `sets` of `example_predictions` for a detector: one object per frame, often detected.

    `seed`: of the objects, 40 pixels wide and high, and of the displacement of the detections.

    Example:
        >>> example_detections(sets=3).boxes.boxes.shape
        (15, 4)

    """
    rng = np.random.default_rng(seed)
    table = example_predictions(sets, seed, 0.8)
    label, n = table.truth.argmax(axis=1), len(table)
    corners = rng.integers(0, 50, (n, 2))
    objects = np.concatenate([corners, corners + 40], axis=1).astype(np.float64)
    shifts = rng.integers(-6, 7, (n, 2))
    truth = [boxes(objects[i : i + 1], label[i : i + 1]) for i in range(n)]
    detected = objects + np.concatenate([shifts, shifts], axis=1)
    answers = [Detections(detected[i : i + 1], table.top[i], table.top_scores[i]) for i in range(n)]
    columns = (*(name for name in COLUMNS if name != "truth"), "boxes", "detections")
    true_boxes, detections = truth_table(truth), detection_table(answers)
    return replace(table, columns=columns, boxes=true_boxes, detections=detections)


def example_models(*tables: Predictions) -> list[Evaluated]:
    """Models of invented predictions with all results that these allow, as inputs of analyses.

    `tables`: the predictions of each model, such as `example_predictions(seed=1)`.

    Example:
        >>> (model,) = example_models(example_video())
        >>> model.results["flip_rate"].n
        238

    """
    # the runner imports the packages of a run, which few checks need
    from steadyeye.runner.collect import evaluate_metrics

    several = len(tables) > 1
    models = [
        replace(t, model=f"example {i}" if several else t.model) for i, t in enumerate(tables)
    ]
    return [evaluate_metrics(table) for table in models]


def example_subject() -> Subject:
    """A detector with confident mistakes and correct detections on `example_detections`.

    The input of a probe. Its detector detects nothing, and `sealed` is not available.

    Example:
        >>> [target.cause for target in example_subject().targets][:4]
        ['misclassification', 'misclassification', 'misclassification', '']

    """
    spec = Spec("callable_detector", {"path": "steadyeye.testing:detect_nothing"})
    table, source = example_detections(), example_source(30)
    own_labels = {"raw_detections": table.detections, "model_to_data_class": np.arange(3)}
    table = replace(table, **own_labels)  # type: ignore[arg-type]
    chosen = targets(table, score=0.5, limit=3)
    model = plugins.build("models", spec)
    return Subject(model, source, table, None, None, chosen, 0, _refuse_inference, 0.5)


def detect_nothing(images: Sequence[Image]) -> list[tuple[Any, Any, Any]]:
    """No box in any of the `images`, for `example_subject`: (0, 4) boxes, (0,) scores and labels.

    Example:
        >>> [part.shape for part in detect_nothing([example_image()])[0]]
        [(0, 4), (0,), (0,)]

    """
    return [(np.zeros((0, 4)), np.zeros(0), np.zeros(0)) for _ in images]


def _refuse_inference(name: str, source: Source) -> Predictions:
    raise UsageError(f"{name} asks the detector first, which `steadyeye explain` does")


def example_source(sets: int = 12) -> Source:
    """The images of `example_predictions(sets)`: (96, 96, 3), brighter for later classes.

    Example:
        >>> source = example_source(sets=2)
        >>> len(source), source[0].image().shape
        (10, (96, 96, 3))

    """
    return _ExampleImages(example_predictions(sets))


def tell_example_classes(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(n, 3) scores of the images of `example_source`, all right: 1 for the class, else 0.

    `images`: (n, h, w, 3) uint8.

    Example:
        >>> tell_example_classes(np.full((1, 8, 8, 3), 150, dtype=np.uint8))
        array([[0., 0., 1.]])

    """
    brightness = images.reshape(len(images), -1).mean(axis=1)
    return np.asarray(np.eye(3)[(brightness // 64).astype(int)])


@dataclass(frozen=True, eq=False)
class _ExampleImages:
    table: Predictions
    name: str = "example"
    classes: Classes = field(default_factory=lambda: Classes(("bird", "cat", "dog"), closed=True))
    columns: tuple[str, ...] = COLUMNS
    notes: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        return f"example {len(self)}"

    @property
    def ids(self) -> Sequence[str]:
        return self.table.ids.tolist()  # type: ignore[no-any-return]

    @property
    def truths(self) -> Sequence[Labels]:
        return [(int(label),) for label in self.table.truth.argmax(axis=1)]

    def missing(self) -> Sequence[str]:
        return ()

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> Sample:
        label = self.truths[index]
        return Sample(
            self.ids[index],
            lambda: example_image((96, 96, 3), index) // 4 + np.uint8(64 * label[0]),
            label,
            str(self.table.groups[index]),
            {name: values[index].item() for name, values in self.table.tags.items()},
        )


def _table(
    labels: NDArray[np.int64],
    scores: NDArray[np.float64],
    groups: NDArray[np.str_],
    tags: dict[str, NDArray[Any]],
) -> Predictions:
    """Predictions of three classes; `labels`: (n,) the true ones, −1: none."""
    names, stored = ("bird", "cat", "dog"), scores.astype(np.float32)
    return Predictions(
        model="example",
        data="example",
        classes=names,
        model_classes=names,
        columns=COLUMNS,
        ids=np.asarray([f"s{i:03d}" for i in range(len(labels))]),
        groups=groups,
        truth=np.vstack([np.eye(3, dtype=np.bool_), np.zeros((1, 3), dtype=np.bool_)])[labels],
        scores=stored,
        top=stored.argmax(axis=1)[:, None].astype(np.int32),
        top_scores=stored.max(axis=1, keepdims=True),
        errors=np.full(len(labels), ""),
        tags=tags,
    )


def _rows(table: Predictions, rows: NDArray[np.intp]) -> Predictions:
    return replace(
        table,
        tags={name: values[rows] for name, values in table.tags.items()},
        **{
            part: getattr(table, part)[rows]
            for part in ("ids", "groups", "truth", "scores", "top", "top_scores", "errors")
        },
    )


def _require_unchanged(table: Predictions, before: Predictions) -> None:
    for part in ("ids", "groups", "truth", "scores", "top", "top_scores", "errors"):
        old, new = getattr(before, part), getattr(table, part)
        equal = np.array_equal(old, new, equal_nan=old.dtype.kind == "f")
        _require(equal, f"it writes into predictions.{part}")
    for name, values in table.tags.items():
        _require(values.tobytes() == before.tags[name].tobytes(), f"it writes into tags['{name}']")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ContractError(otherwise)
