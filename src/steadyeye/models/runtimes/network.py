"""What a file of a network says of itself: its input, its outputs, and what stands beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Output:
    """An output of a network: its name, its axes (None: free), and whether it is whole numbers."""

    name: str
    shape: tuple[int | None, ...]
    whole: bool = False


class Network(Protocol):
    """A network of one image input that tells of itself what its file says."""

    @property
    def input_shape(self) -> tuple[int | None, ...]:
        """The declared axes of the input; None where one is free."""
        ...

    @property
    def described_outputs(self) -> Sequence[Output]:
        """Its outputs, in their order."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the file says besides, by key."""
        ...

    def outputs(self, batch: NDArray[np.float32]) -> Sequence[NDArray[np.float32]]:
        """All outputs of a batch of one image, float32."""
        ...
