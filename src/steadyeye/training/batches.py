"""Examples made ready for the network ahead of time, in threads, in the order asked for."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from steadyeye.core.prefetch import in_order
from steadyeye.core.types import Image
from steadyeye.training.protocol import Augment, Example, Examples, TrainingTask

AHEAD = 2  # batches made ready before they are asked for
MEMORY = 2**30  # bytes of fitted images that are kept

Job = TypeVar("Job")
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is trained, on what, and judged by what.

    `augment`: what happens to an image before it is learned from; held examples stay as they are.
    `workers`: threads that decode and prepare.
    """

    task: TrainingTask
    learn: Examples
    held: Examples
    augment: Augment | None = None
    workers: int = 1


class ImageCache:
    """Decoded images as a task fits them, kept for the next epoch as long as there is room.

    Safe from any thread. What is kept stays: epochs go through all images, so an older one is
    needed as soon as any.
    """

    def __init__(self, fit: Callable[[Image], Image], room: int = MEMORY) -> None:
        self._fit, self._room = fit, room
        self._kept: dict[str, Image] = {}
        self._lock = threading.Lock()

    def __call__(self, example: Example) -> Image:
        """The fitted image of an example; not to be written to."""
        found = self._kept.get(example.id)
        if found is not None:
            return found
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
    """Each step with what the network is given. `batches`: step, epoch and indices of examples."""

    def prepare(job: tuple[int, int]) -> Any:
        index, epoch = job
        example = lesson.learn.items[index]
        image = images(example)
        if lesson.augment is not None:
            image = lesson.augment(image, example.id, epoch)
        return lesson.task.prepare(example, image)

    def jobs() -> Iterator[tuple[int, int]]:
        for step, epoch, indices in batches:
            waiting.append((step, len(indices)))
            yield from ((i, epoch) for i in indices)

    waiting: deque[tuple[int, int]] = deque()
    with closing(ahead(jobs(), prepare, lesson.workers, AHEAD * batch)) as ready:
        for first in ready:
            step, n = waiting.popleft()
            yield step, [first, *islice(ready, n - 1)]


def read_held_batches(
    lesson: Lesson, images: ImageCache, batch: int
) -> Generator[list[Any], None, None]:
    """The held examples in their order, in batches, as the network is given them."""

    def prepare(example: Example) -> Any:
        return lesson.task.prepare(example, images(example))

    with closing(ahead(lesson.held.items, prepare, lesson.workers, AHEAD * batch)) as ready:
        while part := list(islice(ready, batch)):
            yield part


def ahead(
    jobs: Iterable[Job], make: Callable[[Job], Found], threads: int, depth: int
) -> Generator[Found, None, None]:
    """`make(job)` of each job in their order, at most `depth` of them made before they are taken.

    What one raises comes out in its turn; those that were not begun by then never are.
    """
    calls = (partial(make, job) for job in jobs)
    with ThreadPoolExecutor(threads) as pool, closing(in_order(pool, calls, depth)) as found:
        yield from found
