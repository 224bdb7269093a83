"""Between a task and the store of answers: what they are kept under, and whether they fit."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MethodType

from steadyeye.core import plugins
from steadyeye.core.abilities import cacheable, detects
from steadyeye.core.boxes import Detections
from steadyeye.core.errors import SampleError
from steadyeye.core.storage.run_lock import machine
from steadyeye.core.types import Image, Sample
from steadyeye.data.images.image_file import ImageFile
from steadyeye.runner.cache import answer_code, keys, settings
from steadyeye.runner.cache.codec import Answer
from steadyeye.runner.cache.eviction import SPARE, shrink
from steadyeye.runner.cache.store import FILE, Store, opened
from steadyeye.runner.job import Job
from steadyeye.runner.task import Task

MODEL = "model"


@dataclass(frozen=True)
class Shared:
    """A store as another process is told of it; `room`: bytes that the process may write.

    `file`: the device and the number of its file, `machine`: where that was found. Nothing else is
    used: SQLite's shared memory, by which writers agree, does not reach beyond a machine.
    """

    folder: Path
    file: tuple[int, int]
    machine: str
    room: int


def store(job: Job) -> Store | None:
    """The store that a job keeps answers in; None where it keeps none."""
    folder = settings.folder(job.cache)
    return opened(folder) if folder else None


def shared(store: Store, workers: int) -> Shared | None:
    """The store for so many worker processes; None where it cannot be used."""
    if not store.ready():
        return None
    return Shared(store.folder, _file(store.folder), machine(), store.room // workers)


def joined(answers: Shared) -> Store | None:
    """The driver's store in a worker; None where the worker is on another machine."""
    if machine() != answers.machine or _file(answers.folder) != answers.file:
        return None
    found = opened(answers.folder)
    found.room = answers.room
    return found


def elsewhere(answers: Shared) -> str:
    """What a worker says that is on another machine."""
    return (
        f"the cache '{answers.folder}' is a file of one machine: workers on other machines do "
        "not use it"
    )


def serving(store: Store | None, task: Task) -> Task:
    """The task with the store, where the answers of its model may be kept."""
    return replace(task, store=store if cacheable(task.model) else None, marks={})


@contextmanager
def closing(store: Store | None, say: Callable[[str], None]) -> Iterator[None]:
    """Notes at the end of the block what was used, keeps to the limit and says what went wrong."""
    most = settings.limit()
    if store:
        # what a run keeps must be able to stay when the store is brought to its limit
        store.room = int(most * SPARE)
    try:
        yield
    finally:
        if store:
            store.finish()
            shrink(store, most)
            for line in troubles(store):
                say(line)


def troubles(store: Store) -> tuple[str, ...]:
    """What the user should know of a store: that it is full, or not used any further."""
    full = f"the cache is full at {settings.limit() / 1e9:g} GB; {settings.LIMIT} sets its size"
    return (*((full,) if store.room <= 0 else ()), *((store.problem,) if store.problem else ()))


def mark(task: Task) -> str:
    """What all answers of the task's model share, found out once."""
    if MODEL not in task.marks:
        spec = task.identity["model"]["spec"]
        modules = () if spec in task.given else plugins.modules("models", spec)
        of_model = answer_code.mark(
            [task.model], modules, task.store.folder if task.store else None
        )
        fitted = "sweep" in task.identity
        task.marks[MODEL] = keys.model_mark(task.model.fingerprint, fitted, of_model)
    return task.marks[MODEL]


def about(task: Task) -> tuple[str, str, str]:
    """What answers are listed by: the model's fingerprint, its name and the data's."""
    return task.model.fingerprint, task.model.name, task.source.name


def sample_keys(task: Task, store: Store, samples: Sequence[Sample]) -> list[bytes | None]:
    """The keys of the answers to samples; None where only its pixels say what one is.

    A file that is as it was when its content was named is not read again.
    """
    stamps = [_stamp(sample) for sample in samples]
    known = store.names([stamp for stamp in stamps if stamp])
    names = [
        known.get(stamp or "") or _name(sample)
        for stamp, sample in zip(stamps, samples, strict=True)
    ]
    named = {stamp: name for stamp, name in zip(stamps, names, strict=True) if stamp and name}
    store.name({stamp: name for stamp, name in named.items() if stamp not in known})
    of_model, of_image = mark(task), partial(_image_code, task, store)
    return [
        keys.of_sample(of_model, of_image(sample), name) if name else None
        for sample, name in zip(samples, names, strict=True)
    ]


def _image_code(task: Task, store: Store, sample: Sample) -> str:
    """The mark of the code that makes the image of a sample."""
    shape = answer_code.image_shape(sample)
    if shape not in task.marks:
        task.marks[shape] = answer_code.mark([sample], (), store.folder)
    return task.marks[shape]


def _stamp(sample: Sample) -> str | None:
    file = sample.key.__self__ if isinstance(sample.key, MethodType) else None
    return file.stamp() if isinstance(file, ImageFile) else None


def _name(sample: Sample) -> str | None:
    try:
        return sample.key() if sample.key else None
    except SampleError:
        return None  # decoding it says what is wrong


def pixels_key(task: Task, image: Image) -> bytes:
    """The key of the answer to an image."""
    return keys.of_pixels(mark(task), image)


def fits(task: Task, answer: Answer) -> bool:
    """Whether what was kept is an answer as the task's model gives them."""
    if isinstance(answer, Detections):
        return detects(task.model)
    return not detects(task.model) and answer.shape == (task.width,)


def _file(folder: Path) -> tuple[int, int]:
    try:
        found = (folder / FILE).stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
