"""The loop: steps in a fixed order, rounds that are judged, checkpoints that it goes on from."""

from collections.abc import Callable
from typing import Protocol

from steadyeye.storage.place import Place
from steadyeye.training.course import Course
from steadyeye.training.history import History
from steadyeye.training.task import Augment, Examples, Task


class Watcher(Protocol):
    """What is told of a training as it goes; `steadyeye.cli.progress` has some."""

    def begin(self, name: str, rows: int, done: int = 0) -> Callable[[int], None]:
        """A training of `rows` images begins; the returned function is told of more as they go."""
        ...

    def learned(self, name: str, loss: float) -> None:
        """The loss of the training `name`, smoothed over the latest steps."""
        ...

    def say(self, line: str) -> None:
        """Something that whoever waits should know."""
        ...


def train(
    task: Task, sides: tuple[Examples, Examples], course: Course, folder: Place, watcher: Watcher,
    augment: Augment | None = None,
) -> History:
    """Trains `task.module` on the first side, judged on the second; returns what it went like.

    `folder`: where checkpoints are; one that is there is gone on from.
    """
    raise NotImplementedError
