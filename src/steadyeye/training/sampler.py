"""Which examples each step is given: an order of its own for every epoch, from the seed alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from steadyeye.core.seeds import stream
from steadyeye.training.hyperparameters import Course

TENTH = 10


@dataclass(frozen=True)
class EpochSteps:
    """The steps of a training over `n` examples; the same for any number of threads or processes.

    An epoch is a permutation cut into as few batches as hold it, as even as can be: of 33 examples
    in batches of 32, one of 17 and one of 16. A last batch of what is left over would weigh its few
    examples as much as all of another, and batch normalisation needs more of them than that.
    """

    n: int
    course: Course

    @property
    def epoch(self) -> int:
        """Steps an epoch."""
        return -(-self.n // self.course.batch)

    @property
    def total(self) -> int:
        """Steps of the whole training, unless it is stopped early."""
        return self.course.iterations or self.course.epochs * self.epoch

    @property
    def round(self) -> int:
        """Steps between two judgements."""
        if self.course.round:
            return self.course.round
        return max(1, self.total // TENTH) if self.course.iterations else self.epoch

    def ends_round(self, step: int) -> bool:
        """Whether a round ends once `step` steps are done."""
        return step % self.round == 0 or step == self.total

    def batch(self, step: int) -> list[int]:
        """The indices of the examples of a step, counted from 0."""
        epoch, place = divmod(step, self.epoch)
        return _permutation(self.course.seed, epoch, self.n)[
            self._end(place) : self._end(place + 1)
        ]

    def size(self, step: int) -> int:
        """How many examples a step is given."""
        place = step % self.epoch
        return self._end(place + 1) - self._end(place)

    def batches(self, first: int) -> Iterator[tuple[int, list[int]]]:
        """Every step from `first` on with its indices."""
        for step in range(first, self.total):
            yield step, self.batch(step)

    def images(self, steps: int) -> int:
        """How many images the first `steps` steps take, each epoch's repeats counted."""
        epochs, rest = divmod(steps, self.epoch)
        return epochs * self.n + self._end(rest)

    def _end(self, steps: int) -> int:
        """Where in an epoch's order its first `steps` steps end."""
        return self.n * steps // self.epoch


@lru_cache(maxsize=4)
def _permutation(seed: int, epoch: int, n: int) -> list[int]:
    found: list[int] = stream(seed, "order", str(epoch)).permutation(n).tolist()
    return found


def share(batch: Sequence[int], rank: int, ranks: int) -> tuple[list[int], float]:
    """The part of a batch that one of several processes takes, and its weight.

    The mean over the processes of their weighted mean losses is the mean loss of the batch. A
    process for which nothing is left takes the first example, with a weight of 0.
    """
    part = list(batch[rank::ranks])
    return (part, len(part) * ranks / len(batch)) if part else ([batch[0]], 0.0)
