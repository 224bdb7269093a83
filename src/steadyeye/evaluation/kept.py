"""Between a task and the store of answers: what they are kept under, and whether they fit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from steadyeye.cache import keys, place
from steadyeye.cache.entry import Answer
from steadyeye.cache.store import Store, opened
from steadyeye.cache.upkeep import SPARE, shrink
from steadyeye.core.boxes import Detections
from steadyeye.core.errors import SampleError
from steadyeye.core.types import Image, Sample, cacheable, detects
from steadyeye.evaluation.answers import classes
from steadyeye.evaluation.engines.choice import choice
from steadyeye.evaluation.job import Job
from steadyeye.evaluation.tasks import Task


def store(job: Job) -> Store | None:
    """The store that a job keeps answers in; None where it keeps none.

    A cluster keeps none: its nodes share no disk.
    """
    folder = place.folder(job.cache)
    if folder is None or choice(job.engine, job.address):
        return None
    return opened(folder)


def serving(store: Store | None, task: Task) -> Task:
    """The task with the store, where the answers of its model may be kept."""
    return replace(task, store=store if cacheable(task.model) else None)


@contextmanager
def closing(store: Store | None, say: Callable[[str], None]) -> Iterator[None]:
    """Notes at the end of the block what was used, keeps to the limit and says what went wrong."""
    most = place.limit()
    if store:
        # what a run keeps must be able to stay when the store is brought to its limit
        store.room = int(most * SPARE)
    try:
        yield
    finally:
        if store:
            store.finish()
            shrink(store, most)
            if store.room <= 0:
                say(f"the cache is full at {most / 1e9:g} GB; {place.LIMIT} sets its size")
            if store.problem:
                say(store.problem)


def mark(task: Task) -> str:
    """What all answers of the task's model share."""
    return keys.model_mark(task.model.fingerprint, "sweep" in task.identity)


def about(task: Task) -> tuple[str, str, str]:
    """What answers are listed by: the model's fingerprint, its name and the data's."""
    return task.model.fingerprint, task.model.name, task.source.name


def key(task: Task, sample: Sample) -> bytes | None:
    """The key of the answer to a sample; None where only its pixels say what it is."""
    try:
        return keys.of_sample(mark(task), sample.key()) if sample.key else None
    except SampleError:
        return None  # decoding it says what is wrong


def pixels_key(task: Task, image: Image) -> bytes:
    """The key of the answer to an image."""
    return keys.of_pixels(mark(task), image)


def fits(task: Task, answer: Answer) -> bool:
    """Whether what was kept is an answer as the task's model gives them."""
    if isinstance(answer, Detections):
        return detects(task.model)
    return not detects(task.model) and answer.shape == (classes(task),)
