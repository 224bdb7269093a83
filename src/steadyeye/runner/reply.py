"""What comes of a sample while a model is asked about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steadyeye.core import timing
from steadyeye.core.errors import SampleError
from steadyeye.core.types import Sample, Tag
from steadyeye.runner import cache_lookup
from steadyeye.runner.cache.codec import Answer, Kept
from steadyeye.runner.task import Task


@dataclass(frozen=True)
class Ready:
    """An image as the model takes it, or itself where its pixels may tell that its answer is kept.

    `size`, `seen` and `pixels`: as of `Reply`.
    """

    image: Any
    size: tuple[int, int]
    seen: Mapping[str, Tag]
    pixels: bytes | None


@dataclass(eq=False)
class Reply:
    """What came of one sample, filled in as it is asked about.

    `answer`: None where it failed; `error` then says why. `tags`: the sample's, with what was
    measured of its image, which is in `seen` too. `size`: (height, width) of the image. `pixels`:
    what its pixels are called, where nothing else tells what it is. `coming`: gives its image, or
    the `SampleError`; None where it was not begun.
    """

    sample: Sample
    tags: dict[str, Tag]
    answer: Answer | None = None
    error: str = ""
    seen: Mapping[str, Tag] = field(default_factory=dict)
    size: tuple[int, int] | None = None
    pixels: bytes | None = None
    coming: Callable[[], "Ready | SampleError"] | None = None

    @property
    def open(self) -> bool:
        """Whether nothing came of it yet."""
        return self.answer is None and not self.error

    def see(self, ready: Ready) -> None:
        """Takes what was found out about the image."""
        self.size, self.seen, self.pixels = ready.size, ready.seen, ready.pixels
        self.tags |= ready.seen

    def take(self, task: Task, found: Kept | None) -> None:
        """Takes what was kept for an answer, where it is one."""
        if found is not None and cache_lookup.fits(task, found.answer):
            self.answer, self.size = found.answer, self.size or found.size
            self.tags |= found.tags
            timing.add("hits", 1)
