"""Checks of sizes before a model is read: of an unpacked archive, and of a configured network.

A number in a configuration of transformers takes a few bytes, but its network may fill the memory
or take hours to build: it is first compared with the weights, and built without memory.
"""

import re
import threading
import zipfile
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
from steadyeye.core.storage.text_files import read_json

COUNTS = re.compile("(layer|depth|block|stage|level|repeat)s?$", re.IGNORECASE)
"""Settings that are numbers of parts, each with one tensor or more."""
FACTORS = re.compile("(coefficient|multiplier|ratio)$", re.IGNORECASE)
"""Settings that multiply sizes; any other fraction is no size."""
NAMES = ("_id", "_index", "2id", "2label", "seed")
"""Suffixes of settings that are no sizes."""
FEWEST = 256
"""Number of parts that is always allowed, because some share their weights."""
SMALLEST = 1 << 20
"""Numbers that are always allowed: 4 MB."""
TIMES = 2
"""The largest ratio of a network's numbers to those of its weights, for buffers and shared
weights."""
PARTS = 16
"""The most modules and parameters of a network per tensor of its weights."""
UNPACKED_TIMES = 16
"""The largest ratio of unpacked to packed size; weights hardly shrink, code shrinks by five."""
SMALLEST_UNPACKED = 1 << 24
"""Unpacked bytes that every archive may have."""


def check_unpacked_size(file: Path) -> None:
    """Raises `UsageError` for an archive that would fill the memory when unpacked.

    And `BadZipFile` for other files.
    """
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    packed = file.stat().st_size
    if unpacked > max(UNPACKED_TIMES * packed, SMALLEST_UNPACKED):
        raise UsageError(
            f"'{file}' has {packed:,} bytes and unpacks to {unpacked:,}; no model is packed so "
            "tightly: save it again, or copy it again"
        )


@dataclass(frozen=True)
class WeightsSize:
    """The number of tensors in a file of weights, of numbers in total, and the longest side."""

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

    None if there are none; loading then reports it.
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

    Must be called before the library reads the configuration, because it makes lists of the stated
    length. Raises `UsageError` as `check_settings` does, and for an index of weights that names a
    file outside.
    """
    _check_shards(Path(name))
    size = read_size(name)
    settings, _ = library("transformers").PretrainedConfig.get_config_dict(name)
    check_settings(settings, size, f"config.json of '{name}'")
    return size


def _check_shards(folder: Path) -> None:
    """Raises `UsageError` for an index of weights that names files outside `folder`."""
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
    """Raises `UsageError` for a number in settings that is too large for these weights.

    `size`: of the weights, None if they cannot be read. `title`: name of the settings in the
    message.
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
    """Raises `UsageError` for a configuration of a larger network than its weights.

    `kind`: the class of transformers, such as `AutoModelForObjectDetection`, that builds it.
    `size`: of its weights; None: nothing is checked. `title`: name of the configuration in the
    message.
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
    """A network under construction has more parts than allowed."""


@contextmanager
def _limit_parts(most: int) -> Iterator[None]:
    """A block in which this thread builds no network with more modules and parameters."""
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
