"""Whether a configuration of transformers asks for a network that its weights can fill.

A number in a configuration is a few bytes, and a network of it may be all the memory there is, or
take hours to build: what is asked for is compared with the weights first, and built without memory.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import library

COUNTS = re.compile("layer|depth|block|stage|level", re.IGNORECASE)
"""Settings of which a network has as many parts, each of one tensor or more."""
FEWEST = 256
"""Parts that are always allowed, since some share their weights."""
SMALLEST = 1 << 20
"""Numbers that are always allowed: 4 MB."""
TIMES = 2
"""How many times the numbers of its weights a network may have: buffers, and what is shared."""


@dataclass(frozen=True)
class WeightsSize:
    """How many tensors a file of weights holds, and how many numbers in all."""

    tensors: int
    numbers: int


def count_weights(weights: Mapping[str, Tensor]) -> WeightsSize:
    """The size of weights that were read."""
    return WeightsSize(len(weights), sum(tensor.numel() for tensor in weights.values()))


def read_size(name: str) -> WeightsSize | None:
    """The size of the safetensors of a folder or a name on the hub, by their headers.

    None where there are none, which whoever loads them says.
    """
    hub, safetensors = library("transformers.utils.hub"), library("safetensors")
    tensors = numbers = 0
    with suppress(Exception):
        missing = {"_raise_exceptions_for_missing_entries": False}
        single = hub.cached_file(name, "model.safetensors", **missing)
        index = None if single else hub.cached_file(name, "model.safetensors.index.json", **missing)
        files = [single] if single else hub.get_checkpoint_shard_files(name, index)[0]
        for file in files:
            with safetensors.safe_open(Path(file), framework="pt") as content:
                shapes = [content.get_slice(key).get_shape() for key in content.keys()]  # noqa: SIM118
            tensors, numbers = tensors + len(shapes), numbers + sum(map(prod, shapes))
        return WeightsSize(tensors, numbers)
    return None


def check_config(config: Any, kind: Any, size: WeightsSize | None, title: str) -> None:
    """Raises `UsageError` for a configuration that asks for more than its weights hold.

    `kind`: the class of transformers, such as `AutoModelForObjectDetection`, that builds it.
    `size`: of its weights; nothing is checked where it is None. `title`: whose configuration it is,
    for the message.
    """
    if size is None:
        return
    for key, value in _walk("", config.to_dict()):
        most = max(size.tensors, FEWEST) if COUNTS.search(key) else max(size.numbers, SMALLEST)
        if value > most:
            raise UsageError(
                f"{title} says {key} = {str(value)[:40]}, and its weights are {size.tensors:,} "
                f"tensors of {size.numbers:,} numbers; download or save it again"
            )
    try:
        with torch.device("meta"):
            network = kind.from_config(config, trust_remote_code=False)
    except Exception:
        # who loads it meets the same error, and says it
        return
    asked_numbers = sum(part.numel() for part in chain(network.parameters(), network.buffers()))
    if asked_numbers > TIMES * size.numbers + SMALLEST:
        raise UsageError(
            f"{title} asks for a network of {asked_numbers:,} numbers, and its weights hold "
            f"{size.numbers:,}; download or save it again"
        )


def _walk(path: str, value: Any) -> Iterator[tuple[str, int]]:
    """Every whole number in nested settings, with its place, `backbone_config.depths`."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            # numbers that name a token or a class are no sizes
            if not str(key).endswith(("_id", "_index", "2id", "2label")):
                yield from _walk(f"{path}.{key}".removeprefix("."), part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _walk(path, part)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, value
