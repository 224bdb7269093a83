"""The seam between the loop and what it trains: examples, a task, and what a judgement is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from torch import Tensor, nn

from steadyeye.core.boxes import Boxes
from steadyeye.core.types import Classes, Image, Labels

Augment: TypeAlias = Callable[[Image, str, int], Image]
"""`(image, id, epoch)` → an image of the same shape; the same three give the same image.

The image is one that `Task.fit` gave: degraded at the size at which degradation is measured.
"""

MoveBoxes: TypeAlias = Callable[[Boxes, tuple[int, int], str, int], Boxes]
"""`(boxes, (height, width), id, epoch)` → the true boxes where an `Augment` puts them."""


@dataclass(frozen=True, eq=False)
class Example:
    """One image to learn from or to be judged by.

    `id`: unique among all examples. `video`: what it was filmed in; examples of one video are never
    on both sides of a split, but for a split by time; a single picture is its own video, and named
    as its `id`. `image()`: (h, w, 3) uint8, decoded when called, from any thread. `labels`: indices
    into the classes that are learned: the first is what one label a picture learns, an answer of
    any of them is right. `boxes`: the same indices; None where the data has no boxes. `frame`: its
    number in the video, in native frames; None where that is not known. `verified`: of which
    classes somebody verified whether they are there; None: of all.
    """

    id: str
    video: str
    image: Callable[[], Image]
    labels: Labels
    boxes: Boxes | None = None
    frame: int | None = None
    verified: Labels | None = None


@dataclass(frozen=True)
class Examples:
    """What one side of a split holds, over the classes that are learned, in the source's order.

    `notes`: what a reader must know of how they were chosen.
    """

    name: str
    classes: Classes
    items: tuple[Example, ...]
    fingerprint: str
    notes: tuple[str, ...] = ()


class TrainingTask(Protocol):
    """What is trained and how it is judged; the loop knows nothing else of it.

    `kind`: "classifier" or "detector". `module`: fp32, with its new head, on the CPU when it is
    handed over; the loop moves it. `criterion`: the name of the number of `judge` that early
    stopping and the best checkpoint go by, `lower` whether less is better; written as `watched`.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def module(self) -> nn.Module: ...  # noqa: D102
    @property
    def criterion(self) -> str: ...  # noqa: D102
    @property
    def lower(self) -> bool: ...  # noqa: D102

    def fit(self, image: Image) -> Image:
        """A decoded image at the size at which it is augmented, (h, w, 3) uint8; many threads.

        The size at which a sweep degrades it: a classifier's own resize and crop, so that what is
        trained on is what is measured. A detector takes images as they are, and so do its sweeps.
        """
        ...

    def prepare(self, example: Example, image: Image) -> Any:
        """What the network is given of one image that `fit` gave, augmented or not; many threads.

        CPU tensors, or containers of them.
        """
        ...

    def loss(self, module: nn.Module, prepared: Sequence[Any]) -> Tensor:
        """The loss of a batch, a scalar, of the module in training mode on its own device."""
        ...

    def judge(self, module: nn.Module, prepared: Iterable[Sequence[Any]]) -> Mapping[str, float]:
        """Numbers of held examples, in batches and in order, from the module in eval mode.

        `loss` where it has one, and accuracy or AP as shares of 1.
        """
        ...

    def record(self) -> Mapping[str, Any]:
        """All that is needed beside the weights to build the trained model again, as plain values.

        `steadyeye.models.finetuned.checkpoint_format` reads it.
        """
        ...
