"""A span of samples through a model: look up, decode, infer, check and store, batch by batch.

The stages are the methods of `Pipeline`, in this order. An image is decoded and fitted up to
`AHEAD` places before the model takes it, by the second thread of the worker where it has one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from steadyeye.core.abilities import cacheable
from steadyeye.core.boxes import Detections, describe_size_fault
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.format import number_of
from steadyeye.core.types import Image, Sample, Tag
from steadyeye.metrics.covariates.projections import add_projections
from steadyeye.runner.cache.codec import Answer, CachedAnswer
from steadyeye.runner.cache.lookup import Cache
from steadyeye.runner.cache.store import Store
from steadyeye.runner.task import Task
from steadyeye.runner.threads import AHEAD, Prefetch, Stopwatch, WorkerThread


@dataclass(frozen=True)
class Decoded:
    """An image as the model takes it; not yet fitted if its pixels may be a key of the cache.

    `size`, `measures`: as of `InferenceItem`. `pixel_key`: its key, None where its sample has one.
    """

    image: Any
    size: tuple[int, int]
    measures: Mapping[str, Tag]
    pixel_key: bytes | None


@dataclass(eq=False)
class InferenceItem:
    """A sample on its way through the pipeline, filled in stage by stage.

    `answer`: None where it failed; `error` then says why. `tags`: the sample's, with the
    `measures` of its image. `size`: (height, width) of the image. `key`: of the cache, by the
    content of its file, or `by_pixels`; None where there is none yet. `decoding`: gives its image,
    or the `SampleError`; None where it was not begun.
    """

    sample: Sample
    tags: dict[str, Tag]
    answer: Answer | None = None
    error: str = ""
    measures: Mapping[str, Tag] = field(default_factory=dict)
    size: tuple[int, int] | None = None
    key: bytes | None = None
    by_pixels: bool = False
    decoding: Prefetch[Decoded | SampleError] | None = None

    @property
    def open(self) -> bool:
        """Whether it has neither an answer nor an error yet."""
        return self.answer is None and not self.error

    def add_image(self, decoded: Decoded) -> None:
        """Adds the results of decoding the image."""
        self.size, self.measures = decoded.size, decoded.measures
        self.tags |= decoded.measures
        if decoded.pixel_key:
            self.key, self.by_pixels = decoded.pixel_key, True

    def make_entry(self) -> CachedAnswer | None:
        """Its entry for the cache; None if it failed."""
        if self.answer is None:
            return None
        # the same pixels may come of an image of another size, and are decoded in any case
        if self.by_pixels:
            return CachedAnswer(self.answer)
        return CachedAnswer(self.answer, self.measures, self.size or (0, 0))


def attach_cache(task: Task, store: Store | None) -> Task:
    """The task with a cache in the store, where the answers of its model may be stored."""
    if store is None or not cacheable(task.model):
        return replace(task, cache=None)
    spec = task.identity["model"]["spec"]
    cache = Cache(
        store,
        task.model,
        task.source.name,
        None if spec in task.objects else spec,
        "sweep" in task.identity,
        None if task.detects else task.width,
    )
    return replace(task, cache=cache)


def infer_items(task: Task, span: range, worker: WorkerThread) -> list[InferenceItem] | None:
    """The items of a span with their answers or errors; None where the worker was stopped."""
    items: list[InferenceItem] = []
    for batch in Pipeline(task, worker).infer_span(span):
        items += batch
        if len(items) < len(span) and worker.stopped():
            return None
    return items


class Pipeline:
    """The stages that take the samples of one task through its model, in one worker thread."""

    def __init__(self, task: Task, worker: WorkerThread) -> None:
        self.task, self.worker = task, worker
        self.samples, self.stopwatch = worker.open_samples(task.source), worker.stopwatch
        self.skips_errors = task.identity["on_error"] == "skip"

    def infer_span(self, span: range) -> Iterator[list[InferenceItem]]:
        """The items of a span with their answers or errors, batch by batch.

        Where no answer of a batch is in the cache, the first images after it are prefetched while
        the model runs; those beyond the span are for the span that begins there, if it is this
        worker's next. Raises `SampleError` at the first sample that fails, unless the job goes on,
        and `UsageError` where the model itself fails.
        """
        following: Sequence[InferenceItem] = ()
        for batch, following in pairwise(self._create_batches(span)):
            self.infer_batch(batch, following)
            if self.task.identity["reduce"] == "sum":
                refuse_sum_of_logits(self.task, batch)
            if self.task.detects:
                self._check_sizes(batch)
            self.stopwatch.count("errors", sum(bool(item.error) for item in batch))
            yield batch
        if self.worker.prefetches:
            items = enumerate(following, span.stop)
            self.worker.prefetched = {i: item for i, item in items if item.decoding}

    def infer_batch(
        self, batch: Sequence[InferenceItem], following: Sequence[InferenceItem] = ()
    ) -> None:
        """Fills in the answers or errors of a batch; raises as `infer_span` does."""
        if self.task.cache is None:
            self._infer(batch, following)
        else:
            self._infer_cached(self.task.cache, batch, following)

    # the stages, in order

    def _create_batches(self, span: range) -> Iterator[list[InferenceItem]]:
        """The items of a span in batches, and those that may be prefetched beyond it."""
        size = self.task.identity["batch"]
        prefetched = self.worker.take_prefetched()
        for start in range(span.start, span.stop, size):
            places = range(start, min(start + size, span.stop))
            yield [prefetched.get(i) or self._create_item(i) for i in places]
        upcoming: list[InferenceItem] = []
        if self.worker.prefetches:
            # what is wrong with a sample is raised at its turn
            with suppress(Exception):
                for i in range(span.stop, min(span.stop + AHEAD, len(self.task.source))):
                    upcoming.append(prefetched.get(i) or self._create_item(i))
        yield upcoming

    def _create_item(self, index: int) -> InferenceItem:
        sample = self.samples[index]
        if self.task.follows_objects:
            sample = add_projections(sample)
        return InferenceItem(sample, dict(sample.tags))

    def _infer_cached(
        self, cache: Cache, batch: Sequence[InferenceItem], following: Sequence[InferenceItem]
    ) -> None:
        """Fills in a batch from the cache, and infers and stores what it does not hold."""
        with self.stopwatch.time_stage("cache"):
            keys = cache.find_keys([item.sample for item in batch])
        for item, key in zip(batch, keys, strict=True):
            item.key = key
        keyed = [item for item in batch if item.key]
        claims = cache.store.claims
        while waiting := [item for item in keyed if item.open]:
            # a frame that several threads come to at once is inferred by the first of them
            claimed, others = claims.claim([item.key or b"" for item in waiting])
            mine = [waiting[place] for place in claimed]
            answers: dict[bytes, CachedAnswer] = {}
            try:
                answers |= self._look_up(cache, mine)
                missing = [item for item in mine if item.open]
                # where the cache holds some of a batch it may hold the next, too, without any image
                upcoming = () if answers or len(mine) < len(batch) else following
                answers |= self._store(cache, self._infer(missing, upcoming))
            finally:
                claims.release([item.key or b"" for item in mine], answers)
            for place, future in others.items():
                self._fill_in(cache, waiting[place], future.result())
        # the others have no key until they are decoded
        unkeyed = [item for item in batch if not item.key]
        self._store(cache, self._infer(unkeyed, () if keyed else following))

    def _look_up(self, cache: Cache, items: Sequence[InferenceItem]) -> dict[bytes, CachedAnswer]:
        """Fills in the items whose answers are in the cache; returns what it holds, by key."""
        with self.stopwatch.time_stage("cache"):
            answers = cache.store.get([item.key for item in items if item.key])
            for item in items:
                self._fill_in(cache, item, answers)
        return answers

    def _fill_in(
        self, cache: Cache, item: InferenceItem, answers: Mapping[bytes, CachedAnswer]
    ) -> None:
        """Fills in an item where there is an answer to it that fits the model."""
        cached = answers.get(item.key) if item.key else None
        if cached is not None and cache.fits(cached.answer):
            item.answer, item.size = cached.answer, item.size or cached.size
            item.tags |= cached.tags
            self.stopwatch.count("hits", 1)

    def _infer(
        self, batch: Sequence[InferenceItem], following: Sequence[InferenceItem]
    ) -> list[InferenceItem]:
        """Fills in the items that decode; returns those that the model was run on.

        Where the key of an item is of its pixels, it is looked up once it is decoded.
        """
        inferred: list[InferenceItem] = []
        if not batch:
            return inferred
        images = self._prepare(batch, following, inferred)
        try:
            with self.stopwatch.time_remainder("infer"):
                output = self.task.stages.infer(images)
        except UsageError:
            raise
        except Exception as error:
            # a model is the user's code: whatever it raises is one line, the rest is chained
            raise UsageError(
                f"{self.task.model.name} failed between '{batch[0].sample.id}' and "
                f"'{batch[-1].sample.id}': {type(error).__name__}: {error}"
            ) from error
        answers = split_output(self.task, output, len(inferred))
        for item, answer in zip(inferred, answers, strict=True):
            self._check(item, answer)
        return inferred

    def _prepare(
        self,
        batch: Sequence[InferenceItem],
        following: Sequence[InferenceItem],
        inferred: list[InferenceItem],
    ) -> Iterator[Any]:
        """The images that the model is to be run on, as it takes them; puts items in `inferred`.

        Up to `AHEAD` after an item are begun before it is due.
        """
        line = [*batch, *following][: len(batch) + AHEAD]
        for place, item in enumerate(batch):
            for near in line[place : place + 1 + AHEAD]:
                near.decoding = near.decoding or self.worker.start(
                    partial(decode_sample, self.task, near.sample)
                )
            decoding, item.decoding = item.decoding, None
            assert decoding, "begun above"
            decoded = decoding.result(self.stopwatch)
            if isinstance(decoded, SampleError):
                self._record_error(item, decoded)
                continue
            item.add_image(decoded)
            if item.by_pixels and self.task.cache:
                self._look_up(self.task.cache, [item])
            if item.open:
                inferred.append(item)
                unfitted = decoded.pixel_key is not None
                image = decoded.image
                yield fit_image(self.task, image, self.stopwatch) if unfitted else image

    def _record_error(self, item: InferenceItem, error: SampleError) -> None:
        """Records why a sample has no image; raises the error unless the job continues."""
        if not self.skips_errors:
            raise SampleError(
                f"{error}; finished shards are kept: fix it and run the same command "
                "again, or skip such samples with --on-error skip"
            ) from error
        item.error = str(error)

    def _check(self, item: InferenceItem, answer: Answer) -> None:
        """Sets the answer of an item, or records its fault; raises unless the job continues."""
        item.error = describe_fault(self.task, answer, item.sample.id)
        if item.error and not self.skips_errors:
            kind = "detector" if self.task.detects else "model"
            raise SampleError(
                f"{item.error}; check the {kind}, or skip such samples with --on-error skip"
            )
        item.answer = None if item.error else answer

    def _check_sizes(self, batch: Sequence[InferenceItem]) -> None:
        """Takes no item whose boxes are of an image of another size; raises unless it goes on."""
        for item in batch:
            if item.error or item.sample.boxes is None:
                continue
            if fault := describe_size_fault(item.sample.id, item.sample.size, item.size):
                self._record_error(item, SampleError(fault))
                item.answer = None

    def _store(self, cache: Cache, items: Sequence[InferenceItem]) -> dict[bytes, CachedAnswer]:
        """Puts the answers of items into the cache; returns them by key."""
        with self.stopwatch.time_stage("cache"):
            pairs = ((item.key, item.make_entry()) for item in items)
            answers = {key: entry for key, entry in pairs if key and entry is not None}
            cache.put(answers)
        return answers


def decode_sample(task: Task, sample: Sample, stopwatch: Stopwatch) -> Decoded | SampleError:
    """The image of a sample, or the error."""
    try:
        with stopwatch.time_stage("decode"):
            image = sample.image()
            size = (image.shape[0], image.shape[1])
            measures = dict(sample.measure(image)) if sample.measure else {}
    except SampleError as error:
        return error
    if task.cache is None or sample.key:
        return Decoded(fit_image(task, image, stopwatch), size, measures, None)
    with stopwatch.time_stage("cache"):
        return Decoded(image, size, measures, task.cache.hash_pixels(image))


def fit_image(task: Task, image: Image, stopwatch: Stopwatch) -> Any:
    """An image as the model takes it."""
    with stopwatch.time_stage("prepare"):
        return task.stages.prepare(image)


def split_output(task: Task, output: Any, images: int) -> Sequence[Answer]:
    """The answer to each of the images. Raises `UsageError` where there is not one for each."""
    if not images:
        return []
    if task.detects:
        if len(output) != images:
            raise UsageError(
                f"{task.model.name} returned {number_of(len(output), 'result')} for "
                f"{number_of(images, 'image')}; "
                "return boxes, scores and labels for every image"
            )
        return list(output)
    if output.shape != (images, task.width):
        raise UsageError(
            f"{task.model.name} returned scores of shape {output.shape} for "
            f"{number_of(images, 'image')} and {number_of(task.width, 'class')}; return one row "
            "per image and one column per class, or name the model's own classes with "
            "classes='…' in its spec"
        )
    return list(output)


def describe_fault(task: Task, answer: Answer, id_: str) -> str:
    """The fault of an answer and how to fix it, in words; '' without one."""
    if isinstance(answer, Detections):
        fault = describe_box_fault(answer, task.width)
        return f"{task.model.name} returned {fault} for '{id_}'" if fault else ""
    # the highest of −∞ alone is none either; +∞ is what overflows, and of several no best
    kind = "NaN" if np.isnan(answer).any() else "infinite" if np.isinf(answer.max()) else ""
    return f"{task.model.name} returned {kind} scores for '{id_}'" if kind else ""


def describe_box_fault(detections: Detections, classes: int) -> str:
    """The fault of detections, with the number and the first one; '' without one.

    Boxes that reach out of the image are no fault: detectors give them, and they are matched as
    they are; `predictions.caveats` counts them.
    """
    boxes, scores, labels = detections.boxes, detections.scores, detections.labels
    inverted = (boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1])
    tests = (
        ("NaN boxes", ~np.isfinite(boxes).all(axis=1), boxes),
        ("inverted boxes", inverted, boxes),
        ("scores outside 0…1", ~((scores >= 0) & (scores <= 1)), scores),
        ("class numbers outside its classes", (labels < 0) | (labels >= classes), labels),
    )
    for name, bad, values in tests:
        if bad.any():
            first = np.asarray(values)[int(bad.argmax())]
            return f"{int(bad.sum())} {name}, first {np.round(first, 3).tolist()},"
    return ""


def refuse_sum_of_logits(task: Task, batch: Sequence[InferenceItem]) -> None:
    """Raises `UsageError` where scores that are to be added are no probabilities."""
    answers = [item.answer for item in batch if isinstance(item.answer, np.ndarray)]
    scores = np.array(answers, dtype=np.float32).reshape(len(answers), task.width)
    if not np.isfinite(scores).all():
        return
    if (scores < 0).any() or (scores.sum(axis=1) > 1.01).any():
        raise UsageError(
            f"reduce='sum' adds probabilities, but {task.model.name} returns other scores; "
            "return probabilities, or use reduce='max'"
        )
