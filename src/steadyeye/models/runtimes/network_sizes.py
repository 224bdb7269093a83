"""Whether a configuration of transformers asks for a network that its weights can fill.

A number in a configuration is a few bytes, and a network of it may be all the memory there is, or
take hours to build: what is asked for is compared with the weights first, and built without memory.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules import module as torch_modules

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import library
from steadyeye.core.storage.hub import check_download
from steadyeye.core.storage.text_files import read_json

COUNTS = re.compile("(layer|depth|block|stage|level|repeat)s?$", re.IGNORECASE)
"""Settings of which a network has as many parts, each of one tensor or more."""
FACTORS = re.compile("(coefficient|multiplier|ratio)$", re.IGNORECASE)
"""Settings that sizes are multiplied by; any other fraction is no size."""
NAMES = ("_id", "_index", "2id", "2label", "seed")
"""Ends of settings that are no sizes."""
FEWEST = 256
"""Parts that are always allowed, since some share their weights."""
SMALLEST = 1 << 20
"""Numbers that are always allowed: 4 MB."""
TIMES = 2
"""How many times the numbers of its weights a network may have: buffers, and what is shared."""
PARTS = 16
"""How many modules and parameters a network may have for a tensor of its weights."""


@dataclass(frozen=True)
class WeightsSize:
    """How many tensors a file of weights holds, how many numbers in all, the longest side."""

    tensors: int
    numbers: int
    longest: int

    def __str__(self) -> str:
        return f"{self.tensors:,} tensors of {self.numbers:,} numbers"


def count_weights(weights: Mapping[str, Tensor]) -> WeightsSize:
    """The size of weights that were read."""
    return _add_shapes([tuple(tensor.shape) for tensor in weights.values()])


def _add_shapes(shapes: Sequence[Sequence[int]]) -> WeightsSize:
    longest = max(chain(*shapes), default=0)
    return WeightsSize(len(shapes), sum(map(prod, shapes)), longest)


def read_size(name: str) -> WeightsSize | None:
    """The size of the safetensors of a folder or a name on the hub, by their headers.

    None where there are none, which whoever loads them says.
    """
    hub, safetensors = library("transformers.utils.hub"), library("safetensors")
    shapes: list[Sequence[int]] = []
    with suppress(Exception):
        missing = {"_raise_exceptions_for_missing_entries": False}
        single = hub.cached_file(name, "model.safetensors", **missing)
        index = None if single else hub.cached_file(name, "model.safetensors.index.json", **missing)
        files = [single] if single else hub.get_checkpoint_shard_files(name, index)[0]
        for file in files:
            with safetensors.safe_open(Path(file), framework="pt") as content:
                shapes += [content.get_slice(key).get_shape() for key in content.keys()]  # noqa: SIM118
        return _add_shapes(shapes)
    return None


def check_file(name: str) -> WeightsSize | None:
    """The size of the weights of a folder or a name on the hub, its config.json checked.

    To be called before the library makes anything of the configuration: it makes lists as long as
    that says. Raises `UsageError` as `check_settings` does, and for an index of weights that names
    a file elsewhere.
    """
    _check_shards(Path(name))
    check_download(name)
    size = read_size(name)
    settings, _ = library("transformers").PretrainedConfig.get_config_dict(name)
    check_settings(settings, size, f"config.json of '{name}'")
    return size


def _check_shards(folder: Path) -> None:
    """Raises `UsageError` for an index of the weights in `folder` that names files elsewhere."""
    for path in sorted(folder.glob("*.index.json")) if folder.is_dir() else ():
        content = read_json(path, "index of weights")
        shards = content.get("weight_map") if isinstance(content, dict) else None
        if not isinstance(shards, dict):
            raise UsageError(f"'{path}' has no weight_map; download or save the model again")
        for shard in shards.values():
            if not isinstance(shard, str) or shard != Path(shard).name:
                raise UsageError(
                    f"'{path}' names the weights {str(shard)[:200]!r}, which are no file "
                    "next to it; download or save the model again"
                )


def check_settings(settings: Mapping[str, Any], size: WeightsSize | None, title: str) -> None:
    """Raises `UsageError` for a number in settings that no network of these weights can have.

    `size`: of the weights, None: they cannot be read. `title`: whose settings, for the message.
    """
    known = size or WeightsSize(0, 0, 0)
    for key, value in _walk("", settings):
        most = max(known.numbers, SMALLEST)
        if COUNTS.search(key):
            most = max(known.tensors, FEWEST)
        elif key.endswith("num_labels"):
            most = max(known.longest, FEWEST)
        if value > most:
            weights = f"its weights are {size}" if size else "no weights of it can be read"
            raise UsageError(
                f"{title} says {key} = {str(value)[:40]}, and {weights}; download or save it again"
            )


def check_config(config: Any, kind: Any, size: WeightsSize | None, title: str) -> None:
    """Raises `UsageError` for a configuration that asks for more than its weights hold.

    `kind`: the class of transformers, such as `AutoModelForObjectDetection`, that builds it.
    `size`: of its weights; nothing is checked where it is None. `title`: whose configuration it is,
    for the message.
    """
    if size is None:
        return
    check_settings(config.to_dict(), size, title)
    try:
        with torch.device("meta"), _limit_parts(PARTS * max(size.tensors, FEWEST)):
            network = kind.from_config(config, trust_remote_code=False)
    except _TooManyPartsError:
        raise UsageError(
            f"{title} asks for a network of more parts than its weights, {size}, can fill; "
            "download or save it again"
        ) from None
    except Exception:
        # who loads it meets the same error, and says it
        return
    asked_numbers = sum(part.numel() for part in chain(network.parameters(), network.buffers()))
    if asked_numbers > TIMES * size.numbers + SMALLEST:
        raise UsageError(
            f"{title} asks for a network of {asked_numbers:,} numbers, and its weights hold "
            f"{size.numbers:,}; download or save it again"
        )


class _TooManyPartsError(Exception):
    """A network that is being built has more parts than it may have."""


@contextmanager
def _limit_parts(most: int) -> Iterator[None]:
    """A block in which this thread builds no network of more modules and parameters than that."""
    thread, left = threading.get_ident(), most

    def count(*_: object) -> None:
        nonlocal left
        if threading.get_ident() == thread:
            left -= 1
            if left < 0:
                raise _TooManyPartsError

    hooks = [
        torch_modules.register_module_module_registration_hook(count),
        torch_modules.register_module_parameter_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _walk(path: str, value: Any) -> Iterator[tuple[str, float]]:
    """Every number in nested settings, with its place, `backbone_config.depths`."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            # numbers that name a token or a class are no sizes
            if not str(key).endswith(NAMES):
                yield from _walk(f"{path}.{key}".removeprefix("."), part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _walk(path, part)
    elif type(value) is int or (isinstance(value, float) and FACTORS.search(path)):
        yield path, value
