"""Asking a model about samples: what is kept is looked up, the rest image by image as it goes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from steadyeye.cache.entry import Answer, Kept
from steadyeye.cache.store import Store
from steadyeye.core import tally
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.types import Image, Sample, Tag, detects
from steadyeye.evaluation import ahead, kept
from steadyeye.evaluation.answers import fault, split
from steadyeye.evaluation.tasks import Task


@dataclass(eq=False)
class Reply:
    """What came of one sample, filled in as it is asked about.

    `answer`: None where it failed; `error` then says why. `tags`: the sample's, with what was
    measured of its image, which is in `seen` too. `size`: (height, width) of the image.
    """

    sample: Sample
    tags: dict[str, Tag]
    answer: Answer | None = None
    error: str = ""
    seen: dict[str, Tag] = field(default_factory=dict)
    size: tuple[int, int] | None = None

    @property
    def open(self) -> bool:
        """Whether nothing came of it yet."""
        return self.answer is None and not self.error

    def take(self, task: Task, found: Kept | None) -> None:
        """Takes what was kept for an answer, where it is one."""
        if found is not None and kept.fits(task, found.answer):
            self.answer, self.size = found.answer, self.size or found.size
            self.tags |= found.tags
            tally.add("hits", 1)


def ask(task: Task, samples: Sequence[Sample]) -> list[Reply]:
    """What the model says of each sample, or why it says nothing.

    Raises `SampleError` at the first sample that fails, unless the job goes on, and `UsageError`
    where the model itself fails.
    """
    replies = [Reply(sample, dict(sample.tags)) for sample in samples]
    if task.store is None:
        _asked(task, replies)
    else:
        _looked_up(task, task.store, replies)
    tally.add("errors", sum(bool(reply.error) for reply in replies))
    return replies


def _looked_up(task: Task, store: Store, replies: Sequence[Reply]) -> None:
    """Fills in the replies whose answers are kept, asks for the others and keeps what comes."""
    with tally.timed("cache"):
        keys = kept.sample_keys(task, store, [reply.sample for reply in replies])
    named = {reply: key for reply, key in zip(replies, keys, strict=True) if key}
    while left := [reply for reply in named if reply.open]:
        claimed, theirs = store.flight.claim([named[reply] for reply in left])
        mine = {named[left[place]]: left[place] for place in claimed}
        given: dict[bytes, Kept] = {}
        try:
            _answered(task, store, mine, given)
        finally:
            store.flight.release(mine, given)
        for place, coming in theirs.items():
            left[place].take(task, coming.result().get(named[left[place]]))
    _by_pixels(task, store, [reply for reply, key in zip(replies, keys, strict=True) if not key])


def _answered(
    task: Task, store: Store, mine: Mapping[bytes, Reply], given: dict[bytes, Kept]
) -> None:
    """Answers what this thread claimed; `given` is filled with what others may take."""
    with tally.timed("cache"):
        given |= store.get(list(mine))
        for key, found in given.items():
            mine[key].take(task, found)
    asked = {key: reply for key, reply in mine.items() if reply.open}
    _asked(task, list(asked.values()))
    new = {
        key: Kept(reply.answer, reply.seen, reply.size or (0, 0))
        for key, reply in asked.items()
        if reply.answer is not None
    }
    given |= new
    with tally.timed("cache"):
        store.put(kept.about(task), new)


def _by_pixels(task: Task, store: Store, replies: Sequence[Reply]) -> None:
    """The same for images that are told by their pixels alone: these are decoded in any case."""
    new: list[tuple[bytes, Reply]] = []

    def known(reply: Reply, image: Image) -> bool:
        with tally.timed("cache"):
            key = kept.pixels_key(task, image)
            reply.take(task, store.get([key]).get(key))
        if reply.open:
            new.append((key, reply))
        return not reply.open

    _asked(task, replies, known)
    with tally.timed("cache"):
        answers = {key: Kept(reply.answer) for key, reply in new if reply.answer is not None}
        store.put(kept.about(task), answers)


def _never(reply: Reply, image: Image) -> bool:
    return False


def _asked(
    task: Task, replies: Sequence[Reply], known: Callable[[Reply, Image], bool] = _never
) -> None:
    """Asks the model about all of the samples that decode and whose image is not `known`."""
    if not replies:
        return
    there: list[Reply] = []
    skip = task.identity["on_error"] == "skip"

    def decoded() -> Iterator[Image]:
        images = ahead.made(partial(_tried, reply) for reply in replies)
        for reply, image in zip(replies, images, strict=True):
            if isinstance(image, SampleError):
                if not skip:
                    raise SampleError(
                        f"{image}; finished shards are kept: mend it and run the same command "
                        "again, or record such samples and go on with --on-error skip"
                    ) from image
                reply.error = str(image)
                continue
            if not known(reply, image):
                there.append(reply)
                yield image

    said = _said(task, replies, decoded())
    for reply, answer in zip(there, split(task, said, len(there)), strict=True):
        wrong = fault(task, answer, reply.sample.id)
        if wrong and not skip:
            kind = "detector" if detects(task.model) else "model"
            raise SampleError(f"{wrong}; check the {kind}, or go on with --on-error skip")
        reply.error = wrong
        reply.answer = None if wrong else answer


def _tried(reply: Reply) -> Image | SampleError:
    """The image of a sample, or why there is none."""
    try:
        with tally.timed("decode"):
            return _image(reply)
    except SampleError as error:
        return error


def _image(reply: Reply) -> Image:
    image = reply.sample.image()
    reply.size = (image.shape[0], image.shape[1])
    if reply.sample.measure:
        reply.seen = dict(reply.sample.measure(image))
        reply.tags |= reply.seen
    return image


def _said(task: Task, replies: Sequence[Reply], images: Iterator[Image]) -> Any:
    try:
        with tally.remainder("infer"):
            return task.model(images)
    except UsageError:
        raise
    except Exception as error:
        # a model is the user's code: whatever it raises is told in one line, the rest is chained
        raise UsageError(
            f"{task.model.name} failed between '{replies[0].sample.id}' and "
            f"'{replies[-1].sample.id}': {type(error).__name__}: {error}"
        ) from error
