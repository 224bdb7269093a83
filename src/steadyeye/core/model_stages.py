"""Optional stages of a model: preprocessing and inference, and the gradient at its input."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Detector, Image, Model

ClassGradient: TypeAlias = Callable[[NDArray[np.float32], Sequence[int]], NDArray[np.float32]]
"""`(image, members) -> (h, w, 3)`: the gradient of the probability of a class.

`image`: (h, w, 3) float32 in 0…255. `members`: the model classes of the class; the best of them
counts. The direction is exact; the length is that of the log-odds, which do not saturate.
"""


Triple: TypeAlias = tuple[float, float, float]
"""A value for each of R, G and B, in 0…255."""


@dataclass(frozen=True)
class AtInput:
    """A model in two parts, so that images can be changed at the model's input size.

    `fit`: image → (height, width, 3) uint8 of the input size. `model`: the rest, for such images.
    `gradient`: None if the model is not differentiable.
    """

    fit: Callable[[Image], Image]
    model: Model
    gradient: ClassGradient | None


@dataclass(frozen=True)
class Stages:
    """A model in two parts, so that one thread can prepare images while another infers.

    `prepare`: image → input of `infer`. `infer`: prepared images → predictions.
    """

    prepare: Callable[[Image], Any]
    infer: Callable[[Iterable[Any]], Any]


@runtime_checkable
class Staged(Protocol):
    """A model with `stages()`."""

    def stages(self) -> Stages:
        """The preprocessing of an image, and the inference on prepared ones."""
        ...


@runtime_checkable
class CutAtInput(Protocol):
    """A model with `at_input()`."""

    def at_input(self) -> AtInput:
        """The fitting of an image, and the model for fitted ones."""
        ...


@runtime_checkable
class Thresholded(Protocol):
    """A detector whose threshold on scores can be lowered: `with_threshold(threshold)`."""

    def with_threshold(self, threshold: float, /) -> Detector:
        """The same detector with another threshold."""
        ...


@runtime_checkable
class Normalised(Protocol):
    """A model whose input can be normalised in another way."""

    def with_normalisation(self, mean: Triple, std: Triple, /) -> Model | Detector:
        """The same model with `(x − mean) / std` of R, G and B, to be tried."""
        ...

    def with_reversed_channels(self) -> Model | Detector:
        """The same model with B, G and R for R, G and B, or the reverse, to be tried."""
        ...


def stages(model: Model) -> Stages:
    """The stages of a model; without `stages()` its preprocessing is empty."""
    if isinstance(model, Staged) and _speaks_for_calls(model, "stages"):
        return model.stages()
    return Stages(np.asarray, model)


def at_input(model: Model) -> AtInput:
    """The model cut at its input; without `at_input()` images are not fitted."""
    if isinstance(model, CutAtInput) and _speaks_for_calls(model, "at_input"):
        return model.at_input()
    return AtInput(np.asarray, model, None)


def lower_threshold(model: Detector, threshold: float) -> Detector:
    """The detector with another score threshold; itself if that cannot be set."""
    if isinstance(model, Thresholded) and _speaks_for_calls(model, "with_threshold"):
        return model.with_threshold(threshold)
    return model


def can_normalise(model: Model | Detector) -> TypeGuard[Normalised]:
    """Whether the input of a model can be normalised in another way."""
    return isinstance(model, Normalised) and _speaks_for_calls(model, "with_normalisation")


def _speaks_for_calls(model: object, method: str) -> bool:
    """Whether a method belongs to the class that defines the call, or to a subclass.

    It does not in a subclass with another call, or in a wrapper that passes attributes on.
    """
    for kind in type(model).__mro__:
        if method in vars(kind):
            return True
        if "__call__" in vars(kind):
            return False
    return False
