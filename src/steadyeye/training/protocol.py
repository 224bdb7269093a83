"""The interface between the loop and the task: examples, a task, and its validation."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from torch import Tensor, nn

from steadyeye.core.boxes import Boxes
from steadyeye.core.types import Classes, Image, Labels

Augment: TypeAlias = Callable[[Image, str, int], Image]
"""`(image, id, epoch)` → an image of the same shape; the same three give the same image.

The image is an output of `Task.fit`: degraded at the size at which degradation is measured.
"""

MoveBoxes: TypeAlias = Callable[[Boxes, tuple[int, int], str, int], Boxes]
"""`(boxes, (height, width), id, epoch)` → the true boxes after an `Augment`."""


@dataclass(frozen=True, eq=False)
class Example:
    """One image for training or validation.

    `id`: unique among all examples. `video`: its video; examples of one video are never on both
    sides of a split, except for a split by time; a single image is its own video, named by its
    `id`. `image()`: (h, w, 3) uint8, decoded when called, from any thread. `labels`: indices into
    the trained classes: the first is the target of single-label training, and a prediction of any
    of them is right. `boxes`: with the same indices; None if the data have no boxes. `frame`: its
    number in the video, in native frames; None if not known. `verified`: the classes whose presence
    was verified; None: all.
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
    """The examples of one side of a split, over the trained classes, in the source's order.

    `notes`: remarks on how they were chosen.
    """

    name: str
    classes: Classes
    items: tuple[Example, ...]
    fingerprint: str
    notes: tuple[str, ...] = ()


class TrainingTask(Protocol):
    """The task of a training, which is all that the loop knows.

    `kind`: "classifier" or "detector". `module`: fp32, with its new head, on the CPU at first; the
    loop moves it. `criterion`: the metric of `judge` for early stopping and the best checkpoint,
    `lower` whether lower is better; written as `watched`.
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
        """The network's input for an output of `fit`, augmented or not; many threads.

        CPU tensors, or containers of them.
        """
        ...

    def loss(self, module: nn.Module, prepared: Sequence[Any]) -> Tensor:
        """The loss of a batch, a scalar, of the module in training mode on its own device."""
        ...

    def judge(self, module: nn.Module, prepared: Iterable[Sequence[Any]]) -> Mapping[str, float]:
        """Metrics on held-out examples, in batches and in order, from the module in eval mode.

        `loss` if it has one, and accuracy or AP as shares of 1.
        """
        ...

    def record(self) -> Mapping[str, Any]:
        """The values from which the trained model is built again, besides the weights.

        `steadyeye.models.finetuned.checkpoint_format` reads it.
        """
        ...
