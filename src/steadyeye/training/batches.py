"""The examples of each step, prepared ahead of time in threads."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

from steadyeye.core.prepare_ahead import prepare_ahead
from steadyeye.core.seeds import stream
from steadyeye.core.types import Image
from steadyeye.training.hyperparameters import Course
from steadyeye.training.protocol import Augment, Example, Examples, MoveBoxes, TrainingTask

TENTH = 10
AHEAD = 2  # batches prepared in advance
MEMORY = 2**30  # bytes of fitted images that are kept


@dataclass(frozen=True)
class EpochSteps:
    """The steps of a training over `n` examples; the same for any number of threads or processes.

    An epoch is a permutation cut into as few batches as possible, of nearly equal sizes: 33
    examples in batches of 32 give one of 17 and one of 16. A small last batch would weigh its few
    examples as much as a full one, and batch normalisation needs more examples.
    """

    n: int
    course: Course

    @property
    def epoch(self) -> int:
        """Steps per epoch."""
        return -(-self.n // self.course.batch)

    @property
    def total(self) -> int:
        """Steps of the whole training without early stopping."""
        return self.course.iterations or self.course.epochs * self.epoch

    @property
    def round(self) -> int:
        """Steps between two validations."""
        if self.course.round:
            return self.course.round
        return max(1, self.total // TENTH) if self.course.iterations else self.epoch

    def ends_round(self, step: int) -> bool:
        """Whether a round ends once `step` steps are done."""
        return step % self.round == 0 or step == self.total

    def batch(self, step: int) -> list[int]:
        """The indices of the examples of a step, counted from 0."""
        epoch, place = divmod(step, self.epoch)
        order = _permutation(self.course.seed, epoch, self.n)
        return order[self._end(place) : self._end(place + 1)]

    def size(self, step: int) -> int:
        """The number of examples of a step."""
        place = step % self.epoch
        return self._end(place + 1) - self._end(place)

    def batches(self, first: int) -> Iterator[tuple[int, list[int]]]:
        """Every step from `first` on with its indices."""
        for step in range(first, self.total):
            yield step, self.batch(step)

    def images(self, steps: int) -> int:
        """The number of images of the first `steps` steps, with repeats over epochs."""
        epochs, rest = divmod(steps, self.epoch)
        return epochs * self.n + self._end(rest)

    def _end(self, steps: int) -> int:
        """The end of the first `steps` steps in an epoch's order."""
        return self.n * steps // self.epoch


@lru_cache(maxsize=4)
def _permutation(seed: int, epoch: int, n: int) -> list[int]:
    order: list[int] = stream(seed, "order", str(epoch)).permutation(n).tolist()
    return order


def share_batch(batch: Sequence[int], rank: int, ranks: int) -> tuple[list[int], float]:
    """The part of a batch for one of several processes, and its weight.

    The mean over the processes of their weighted mean losses is the mean loss of the batch. A
    process without examples takes the first one, with a weight of 0.
    """
    part = list(batch[rank::ranks])
    return (part, len(part) * ranks / len(batch)) if part else ([batch[0]], 0.0)


@dataclass(frozen=True, eq=False)
class Lesson:
    """The task, the training data and the validation data.

    `augment`: the augmentation of training images; held-out images are unchanged. `move`: moves
    training boxes with the augmentation; None: boxes do not move. `workers`: threads that decode
    and prepare.
    """

    task: TrainingTask
    learn: Examples
    validation: Examples
    augment: Augment | None = None
    workers: int = 1
    move: MoveBoxes | None = None


class ImageCache:
    """Decoded and fitted images, stored for the next epoch as long as there is room.

    Thread-safe. Stored images are never replaced: epochs go through all images, so no image is
    needed sooner than another.
    """

    def __init__(self, fit: Callable[[Image], Image], room: int = MEMORY) -> None:
        self._fit, self._room = fit, room
        self._kept: dict[str, Image] = {}
        self._lock = threading.Lock()

    def __call__(self, example: Example) -> Image:
        """The fitted image of an example; not to be written to."""
        cached = self._kept.get(example.id)
        if cached is not None:
            return cached
        image = self._fit(example.image())
        with self._lock:
            if image.nbytes <= self._room and example.id not in self._kept:
                self._room -= image.nbytes
                self._kept[example.id] = image
        return image


def read_training_batches(
    lesson: Lesson,
    images: ImageCache,
    batches: Iterable[tuple[int, int, Sequence[int]]],
    batch: int,
) -> Generator[tuple[int, list[Any]], None, None]:
    """Each step with the network's input. `batches`: step, epoch and indices of examples."""

    def prepare(job: tuple[int, int]) -> Any:
        index, epoch = job
        example = lesson.learn.items[index]
        image = images(example)
        if lesson.augment is not None:
            image = lesson.augment(image, example.id, epoch)
        if lesson.move is not None and example.boxes is not None:
            moved = lesson.move(example.boxes, image.shape[:2], example.id, epoch)
            example = replace(example, boxes=moved)
        return lesson.task.prepare(example, image)

    def jobs() -> Iterator[tuple[int, int]]:
        for step, epoch, indices in batches:
            waiting.append((step, len(indices)))
            yield from ((i, epoch) for i in indices)

    waiting: deque[tuple[int, int]] = deque()
    with closing(prepare_ahead(jobs(), prepare, lesson.workers, AHEAD * batch)) as ready:
        for first in ready:
            step, n = waiting.popleft()
            yield step, [first, *islice(ready, n - 1)]


def read_held_batches(
    lesson: Lesson, images: ImageCache, batch: int
) -> Generator[list[Any], None, None]:
    """The held-out examples in their order, as batches of network inputs."""

    def prepare(example: Example) -> Any:
        return lesson.task.prepare(example, images(example))

    with closing(
        prepare_ahead(lesson.validation.items, prepare, lesson.workers, AHEAD * batch)
    ) as ready:
        while part := list(islice(ready, batch)):
            yield part
