"""What a model can be cut into, where it says so, and how its answers rise with its input."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Detector, Image, Model

ClassGradient: TypeAlias = Callable[[NDArray[np.float32], Sequence[int]], NDArray[np.float32]]
"""`(image, members) -> (h, w, 3)`: how the probability of a class rises with each value.

`image`: (h, w, 3) float32 in 0…255. `members`: the model classes that make the class; the best of
them counts. The direction is exact, the length is not: it is that of the log-odds, which do not
saturate.
"""


@dataclass(frozen=True)
class AtInput:
    """A model cut in two, so that images can be changed at the size in which the model sees them.

    `fit`: image → (height, width, 3) uint8 as the model takes it. `model`: the rest, for such
    images. `gradient`: None where the model is not differentiable.
    """

    fit: Callable[[Image], Image]
    model: Model
    gradient: ClassGradient | None


@dataclass(frozen=True)
class Stages:
    """A model cut in two, so that one thread can prepare images while another infers.

    `prepare`: image → what `infer` takes. `infer`: what the model answers to images so prepared.
    """

    prepare: Callable[[Image], Any]
    infer: Callable[[Iterable[Any]], Any]


@runtime_checkable
class Staged(Protocol):
    """A model that can be cut in two: `stages()`."""

    def stages(self) -> Stages:
        """What prepares an image, and what answers to prepared ones."""
        ...


@runtime_checkable
class CutAtInput(Protocol):
    """A model that says where images have the size in which it sees them: `at_input()`."""

    def at_input(self) -> AtInput:
        """What fits an image, and the model for fitted ones."""
        ...


@runtime_checkable
class Thresholded(Protocol):
    """A detector whose threshold on scores can be lowered: `with_threshold(threshold)`."""

    def with_threshold(self, threshold: float, /) -> Detector:
        """The same with another threshold."""
        ...


def stages(model: Model) -> Stages:
    """The model cut in two; one that does not say takes images as they are."""
    if isinstance(model, Staged) and _speaks_for_calls(model, "stages"):
        return model.stages()
    return Stages(np.asarray, model)


def at_input(model: Model) -> AtInput:
    """The model cut at its input; one that does not say takes images as they are."""
    if isinstance(model, CutAtInput) and _speaks_for_calls(model, "at_input"):
        return model.at_input()
    return AtInput(np.asarray, model, None)


def lower_threshold(model: Detector, threshold: float) -> Detector:
    """The detector with another threshold on scores; itself where that cannot be set."""
    if isinstance(model, Thresholded) and _speaks_for_calls(model, "with_threshold"):
        return model.with_threshold(threshold)
    return model


def _speaks_for_calls(model: object, method: str) -> bool:
    """Whether a method is of the class that answers, or of one below it.

    It is not in a subclass that answers otherwise, or in a wrapper that passes attributes on.
    """
    for kind in type(model).__mro__:
        if method in vars(kind):
            return True
        if "__call__" in vars(kind):
            return False
    return False
