"""What a model can be cut into, where it says so, and how its answers rise with its input."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image, Model

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


def own(model: object, method: str) -> Callable[[], Any] | None:
    """The method by which a model says how it is cut; None where it does not speak for its calls.

    As in a subclass that answers otherwise, or a wrapper that passes attributes on.
    """
    for kind in type(model).__mro__:
        if method in vars(kind):
            found: Callable[[], Any] = getattr(model, method)
            return found
        if "__call__" in vars(kind):
            return None
    return None
