"""The description of a network in its file: its input, its outputs, and its metadata."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.data.classes.class_lists import from_names, read, shipped_classes

Infer: TypeAlias = Callable[[NDArray[np.float32]], Sequence[NDArray[np.float32]]]
"""A batch of one image → all outputs of a network, float32."""


@dataclass(frozen=True)
class Output:
    """An output of a network: its name, its axes (None: free), and whether it has whole numbers."""

    name: str
    shape: tuple[int | None, ...]
    whole: bool = False


class Network(Protocol):
    """A network with one image input and the description of its file."""

    @property
    def input_shape(self) -> tuple[int | None, ...]:
        """The declared axes of the input; None where one is free."""
        ...

    @property
    def input_names(self) -> Sequence[str]:
        """The names of all inputs; what is no image says of which size it is."""
        ...

    @property
    def takes_bytes(self) -> bool:
        """Whether the input is of whole numbers, 0…255."""
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


@dataclass(frozen=True)
class NetworkAround:
    """A `Network` over another one, with an input or outputs of its own."""

    input_shape: tuple[int | None, ...]
    input_names: Sequence[str]
    takes_bytes: bool
    described_outputs: Sequence[Output]
    metadata: Mapping[str, str]
    outputs: Infer


def wrap_network(
    network: Network, outputs: Infer, input_shape: tuple[int | None, ...] | None = None
) -> NetworkAround:
    """The network with other `outputs`, and another `input_shape` if it is given."""
    return NetworkAround(
        input_shape=input_shape or network.input_shape,
        input_names=network.input_names,
        takes_bytes=network.takes_bytes,
        described_outputs=network.described_outputs,
        metadata=network.metadata,
        outputs=outputs,
    )


def channels_first(network: Network) -> Network:
    """The network itself, or one that takes (1, 3, h, w) if its input is (1, h, w, 3)."""
    shape = network.input_shape
    if len(shape) != 4 or shape[3] != 3 or shape[1] == 3:
        return network
    batch, height, width, channels = shape
    outputs = partial(_infer_channels_last, network)
    return wrap_network(network, outputs, (batch, channels, height, width))


def _infer_channels_last(
    network: Network, batch: NDArray[np.float32]
) -> Sequence[NDArray[np.float32]]:
    return network.outputs(np.ascontiguousarray(batch.transpose(0, 2, 3, 1)))


def axes_in_words(shape: Sequence[int | None]) -> str:
    """The axes of a tensor, as "1, any, 85"."""
    return ", ".join("any" if side is None else str(side) for side in shape)


def read_input_axes(shape: tuple[int | None, ...], path: str) -> dict[str, Any]:
    """The layout and size of a classifier's input, for a recipe.

    Raises `UsageError` for a fixed batch of several images, and for other than three channels.
    """
    if len(shape) != 4 or shape[0] not in (None, 1):
        raise UsageError(
            f"'{path}' takes input {shape}; export it for images (1, 3, h, w) or a free batch"
        )
    layout = "nhwc" if shape[3] == 3 and shape[1] != 3 else "nchw"
    channels = shape[3] if layout == "nhwc" else shape[1]
    if channels not in (None, 3):
        raise UsageError(
            f"'{path}' takes input ({axes_in_words(shape)}), which does not have three channels; "
            "images are RGB here: export it with a first layer that takes (1, 3, h, w)"
        )
    height, width = shape[1:3] if layout == "nhwc" else shape[2:4]
    if height is None or width is None:
        return {"layout": layout}
    return {"layout": layout, "size": (height, width)}


def read_classes(
    classes: str | None, width: int | None, path: str, metadata: Mapping[str, str] | None = None
) -> Classes:
    """The class list of a classifier of `width` outputs; ImageNet-1k's if it has 1,000.

    `metadata`: of the file, which may name the classes. Raises `UsageError` if the classes are not
    known.
    """
    if classes is not None:
        return read(classes)
    if width == len(shipped_classes("imagenet1k")):
        return shipped_classes("imagenet1k")
    if (names := read_names(metadata or {})) and len(names) == width:
        return name_classes(names)
    raise UsageError(
        f"the classes of '{path}' are not known; write them into a classes.txt, one a line, and "
        "give classes='…'"
    )


def note_assumed_classes(classes: str | None, names: Classes) -> dict[str, Any]:
    """The entry of a recipe for classes that were not given but taken for ImageNet-1k's."""
    if classes is not None or names.names != shipped_classes("imagenet1k").names:
        return {}
    note = (
        f"its {len(names):,} outputs are taken for the classes of ImageNet-1k in their usual "
        "order; give classes='…' in its spec where they are others"
    )
    return {"classes_note": note}


def read_names(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """The names in Ultralytics' metadata, `{0: 'person', 1: 'car'}` or a list; () for none."""
    try:
        names = ast.literal_eval(metadata.get("names", ""))
        # those of a .tflite file were JSON, whose keys are texts
        names = {int(k): v for k, v in names.items()} if isinstance(names, dict) else names
        return tuple(str(names[index]) for index in range(len(names)))
    except (ValueError, SyntaxError, KeyError, TypeError):
        return ()


def name_classes(names: Sequence[str]) -> Classes:
    """The classes of these names; repeated names get their number as a suffix."""
    return from_names(
        [
            name if names.index(name) == index else f"{name} {index}"
            for index, name in enumerate(names)
        ]
    )
