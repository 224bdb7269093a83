"""One cached answer as bytes, and back; its checksum detects changes."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Detections
from steadyeye.core.types import Tag

CHECK = 16  # bytes of the checksum that an entry begins with
KINDS = ("<f4", "<f8", "<i4", "<i8")
"""Number types of answers; NumPy would accept more texts than these."""

Answer: TypeAlias = NDArray[np.float32] | Detections
"""The scores of one image, (classes,) over the model's own, or the detections in it."""


@dataclass(frozen=True, eq=False)
class CachedAnswer:
    """The answer of a model to one image, and what was recorded of the image when it was decoded.

    `tags`: the result of the sample's `measure`. `size`: (height, width) of the image.
    """

    answer: Answer
    tags: Mapping[str, Tag] = field(default_factory=dict)
    size: tuple[int, int] = (0, 0)


def encode(key: bytes, cached: CachedAnswer) -> bytes:
    """The entry of `key`: checksum, length of the head, head (JSON) and the arrays."""
    answer = cached.answer
    arrays: list[NDArray[Any]]
    if isinstance(answer, Detections):
        arrays = [answer.boxes, answer.labels, answer.scores]
    else:
        arrays = [answer]
    head = json.dumps(
        {
            # every float32 is the same again when it is read
            "tags": {
                name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
                for name, value in cached.tags.items()
            },
            "size": [int(side) for side in cached.size],
            "arrays": [[array.dtype.str, list(array.shape)] for array in arrays],
        }
    ).encode()
    body = b"".join(
        [len(head).to_bytes(4, "little"), head, *(np.ascontiguousarray(a).data for a in arrays)]
    )
    return _checksum(key, body) + body


def decode(key: bytes, entry: bytes) -> CachedAnswer | None:
    """The content of an entry of `key`; None if it was changed after it was written."""
    body = memoryview(entry)[CHECK:]
    if _checksum(key, body) != entry[:CHECK]:
        return None
    try:
        return _read_body(body)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return None  # whoever wrote it knew the key, and is no version of ours


def _read_body(body: memoryview) -> CachedAnswer:
    end = 4 + int.from_bytes(body[:4], "little")
    tags, size, shapes = _head(bytes(body[4:end]))
    arrays = []
    for dtype, shape in shapes:
        count = math.prod(shape)
        arrays.append(np.frombuffer(body, dtype, count, end).reshape(shape))
        end += count * dtype.itemsize
    answer = arrays[0] if len(arrays) == 1 else Detections(*arrays)
    return CachedAnswer(answer, tags, size)


@lru_cache(maxsize=256)
def _head(
    text: bytes,
) -> tuple[Mapping[str, Tag], tuple[int, int], list[tuple[np.dtype[Any], tuple[int, ...]]]]:
    """The tags, the size and the arrays described by a head; cached, as many entries share them."""
    head = json.loads(text)
    height, width = head["size"]
    tags = {name: _tag(value) for name, value in head["tags"].items()}
    shapes = [(np.dtype(KINDS[KINDS.index(kind)]), tuple(shape)) for kind, shape in head["arrays"]]
    return tags, (height, width), shapes


def _tag(value: Any) -> Tag:
    return np.array(value, dtype=np.float32) if isinstance(value, list) else value


def _checksum(key: bytes, body: bytes | memoryview) -> bytes:
    # with the key, so that an entry in the place of another is no answer either
    return hashlib.blake2b(body, digest_size=CHECK, key=key).digest()
