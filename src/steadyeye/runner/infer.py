"""Asking a model about samples: what is kept is looked up, the rest image by image as it goes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

from steadyeye.core import timing
from steadyeye.core.abilities import detects
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.types import Image, Sample
from steadyeye.runner import cache_lookup
from steadyeye.runner.cache.codec import Kept
from steadyeye.runner.cache.store import Store
from steadyeye.runner.output_checks import fault, split
from steadyeye.runner.prefetch import AHEAD, begun, helper, leave, left_over
from steadyeye.runner.reply import Ready, Reply
from steadyeye.runner.task import Task


def replies(task: Task, span: range) -> Iterator[list[Reply]]:
    """What the model says of the samples of a span, or why it says nothing, batch by batch.

    Where the model knows nothing of a batch, the first images after it are made ready while it is
    asked; those beyond the span are for the span that begins there, if it is this thread's next.
    Raises `SampleError` at the first sample that fails, unless the job goes on, and `UsageError`
    where the model itself fails.
    """
    size, before = task.identity["batch"], left_over()

    def batches() -> Iterator[list[Reply]]:
        for start in range(span.start, span.stop, size):
            yield [reply(i) for i in range(start, min(start + size, span.stop))]
        yield beyond()

    def reply(i: int) -> Reply:
        return before.get(i) or Reply(sample := task.source[i], dict(sample.tags))

    def beyond() -> list[Reply]:
        found: list[Reply] = []
        if helper():
            # what is wrong with a sample is told at its turn
            with suppress(Exception):
                for i in range(span.stop, min(span.stop + AHEAD, len(task.source))):
                    found.append(reply(i))
        return found

    following: Sequence[Reply] = ()
    for batch, following in pairwise(batches()):
        if task.store is None:
            _asked(task, batch, following)
        else:
            _looked_up(task, task.store, batch, following)
        timing.add("errors", sum(bool(reply.error) for reply in batch))
        yield batch
    leave({i: each for i, each in enumerate(following, span.stop) if each.coming})


def _looked_up(
    task: Task, store: Store, batch: Sequence[Reply], following: Sequence[Reply]
) -> None:
    """Fills in the replies whose answers are kept, asks for the others and keeps what comes."""
    with timing.time_stage("cache"):
        keys = cache_lookup.sample_keys(task, store, [reply.sample for reply in batch])
    named = {reply: key for reply, key in zip(batch, keys, strict=True) if key}
    while left := [reply for reply in named if reply.open]:
        claimed, theirs = store.flight.claim([named[reply] for reply in left])
        mine = {named[left[place]]: left[place] for place in claimed}
        given: dict[bytes, Kept] = {}
        try:
            _answered(task, store, mine, given, following if len(mine) == len(batch) else ())
        finally:
            store.flight.release(mine, given)
        for place, coming in theirs.items():
            left[place].take(task, coming.result().get(named[left[place]]))
    unnamed = [reply for reply, key in zip(batch, keys, strict=True) if not key]
    _by_pixels(task, store, unnamed, () if named else following)


def _answered(
    task: Task,
    store: Store,
    mine: Mapping[bytes, Reply],
    given: dict[bytes, Kept],
    following: Sequence[Reply],
) -> None:
    """Answers what this thread claimed; `given` is filled with what others may take."""
    with timing.time_stage("cache"):
        given |= store.get(list(mine))
        for key, found in given.items():
            mine[key].take(task, found)
    asked = {key: reply for key, reply in mine.items() if reply.open}
    # where some answers are kept those of the next batch may be too, without any image
    _asked(task, list(asked.values()), () if given else following)
    new = {
        key: Kept(reply.answer, reply.seen, reply.size or (0, 0))
        for key, reply in asked.items()
        if reply.answer is not None
    }
    given |= new
    with timing.time_stage("cache"):
        store.put(cache_lookup.about(task), new)


def _by_pixels(
    task: Task, store: Store, batch: Sequence[Reply], following: Sequence[Reply]
) -> None:
    """The same for images that are told by their pixels alone: these are decoded in any case."""
    new: list[Reply] = []

    def known(reply: Reply) -> bool:
        if reply.pixels:
            with timing.time_stage("cache"):
                reply.take(task, store.get([reply.pixels]).get(reply.pixels))
        if reply.open:
            new.append(reply)
        return not reply.open

    _asked(task, batch, following, known)
    with timing.time_stage("cache"):
        answers = {
            reply.pixels: Kept(reply.answer)
            for reply in new
            if reply.pixels and reply.answer is not None
        }
        store.put(cache_lookup.about(task), answers)


def _never(reply: Reply) -> bool:
    return False


def _asked(
    task: Task,
    batch: Sequence[Reply],
    following: Sequence[Reply],
    known: Callable[[Reply], bool] = _never,
) -> None:
    """Asks the model about all of a batch that decode and are not `known` by their pixels."""
    if not batch:
        return
    there: list[Reply] = []
    skip = task.identity["on_error"] == "skip"

    def ready() -> Iterator[Any]:
        for reply, found in _images(task, batch, following):
            if isinstance(found, SampleError):
                if not skip:
                    raise SampleError(
                        f"{found}; finished shards are kept: fix it and run the same command "
                        "again, or skip such samples with --on-error skip"
                    ) from found
                reply.error = str(found)
                continue
            reply.see(found)
            if not known(reply):
                there.append(reply)
                yield _fitted(task, found.image) if found.pixels else found.image

    said = _said(task, batch, ready())
    for reply, answer in zip(there, split(task, said, len(there)), strict=True):
        wrong = fault(task, answer, reply.sample.id)
        if wrong and not skip:
            kind = "detector" if detects(task.model) else "model"
            raise SampleError(
                f"{wrong}; check the {kind}, or skip such samples with --on-error skip"
            )
        reply.error = wrong
        reply.answer = None if wrong else answer


def _images(
    task: Task, batch: Sequence[Reply], following: Sequence[Reply]
) -> Iterator[tuple[Reply, Ready | SampleError]]:
    """The image of each of a batch; up to `AHEAD` after it are begun before it is due."""
    line = [*batch, *following][: len(batch) + AHEAD]
    for place, reply in enumerate(batch):
        for each in line[place : place + 1 + AHEAD]:
            each.coming = each.coming or begun(partial(_tried, task, each.sample))
        coming, reply.coming = reply.coming, None
        assert coming, "begun above"
        yield reply, coming()


def _tried(task: Task, sample: Sample) -> Ready | SampleError:
    """The image of a sample, or why there is none."""
    try:
        with timing.time_stage("decode"):
            image = sample.image()
            size = (image.shape[0], image.shape[1])
            seen = dict(sample.measure(image)) if sample.measure else {}
    except SampleError as error:
        return error
    if task.store is None or sample.key:
        return Ready(_fitted(task, image), size, seen, None)
    with timing.time_stage("cache"):
        return Ready(image, size, seen, cache_lookup.pixels_key(task, image))


def _fitted(task: Task, image: Image) -> Any:
    with timing.time_stage("prepare"):
        return task.stages.prepare(image)


def _said(task: Task, batch: Sequence[Reply], prepared: Iterator[Any]) -> Any:
    try:
        with timing.remainder("infer"):
            return task.stages.infer(prepared)
    except UsageError:
        raise
    except Exception as error:
        # a model is the user's code: whatever it raises is told in one line, the rest is chained
        raise UsageError(
            f"{task.model.name} failed between '{batch[0].sample.id}' and "
            f"'{batch[-1].sample.id}': {type(error).__name__}: {error}"
        ) from error
