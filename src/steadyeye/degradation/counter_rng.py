"""A counter-based generator for kernels: draw i of a key is a pure function of both.

SplitMix64's finaliser over `key + i × γ` (Steele, Lea and Flood, "Fast Splittable Pseudorandom
Number Generators", OOPSLA 2014). Setting up a generator of numpy costs more than most operators.
"""

import hashlib

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

GAMMA = uint64(0x9E3779B97F4A7C15)
FIRST = uint64(0xBF58476D1CE4E5B9)
SECOND = uint64(0x94D049BB133111EB)
LOW = uint64(0xFFFFFFFF)
HIGH = uint64(32)


def stream_key(seed: int, image: str, operator: str) -> np.uint64:
    """The key of the stream of (seed, image id, operator); other names give independent streams."""
    digest = hashlib.sha256("\x00".join((str(seed), image, operator)).encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def level_key(key: np.uint64, level: int) -> np.uint64:
    """The key of the stream of one level."""
    return np.uint64(draw(key, level))


@njit(nogil=True, cache=True, inline="always")
def draw(key: np.uint64, i: int) -> np.uint64:
    """64 random bits: draw `i` of the stream `key`."""
    z = uint64(key) + uint64(i) * GAMMA
    z = (z ^ (z >> uint64(30))) * FIRST
    z = (z ^ (z >> uint64(27))) * SECOND
    return z ^ (z >> uint64(31))


@njit(nogil=True, cache=True, inline="always")
def high(bits: np.uint64, n: int) -> int:
    """A uniform integer in 0 … n − 1 from the upper half of `bits`; its bias is below n / 2³²."""
    return np.int64(((bits >> HIGH) * uint64(n)) >> HIGH)  # type: ignore[return-value]


@njit(nogil=True, cache=True, inline="always")
def low(bits: np.uint64, n: int) -> int:
    """A uniform integer in 0 … n − 1 from the lower half of `bits`."""
    return np.int64(((bits & LOW) * uint64(n)) >> HIGH)  # type: ignore[return-value]


@njit(nogil=True, cache=True)
def uniform(key: np.uint64, n: int, count: int) -> NDArray[np.uint32]:
    """(count,) uniform integers in 0 … n − 1, independent, so with repeats.

    Drawn in one loop before they are used, because that loop runs in vector registers.
    """
    half = (count + 1) // 2
    out = np.empty(2 * half, dtype=np.uint32)
    for i in range(half):
        bits = draw(key, i)
        out[i] = np.uint32(high(bits, n))
        out[half + i] = np.uint32(low(bits, n))
    return out[:count]
