"""Random streams that depend on a seed and a name alone: equal in any order and process."""

import hashlib

import numpy as np

DIGITS = 16  # of a fingerprint


def stream(seed: int, *names: str) -> np.random.Generator:
    """The generator of (`seed`, `names`); other names give independent streams."""
    digest = hashlib.sha256("\x00".join([str(seed), *names]).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def fingerprint(*parts: str | bytes) -> str:
    """A 16-digit hexadecimal digest of `parts`; the boundaries between parts count."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:DIGITS]


class BlockFingerprint:
    """The `fingerprint` of parts that arrive in blocks; `length`: of the first part, in bytes."""

    def __init__(self, length: int | None = None) -> None:
        self._digest = hashlib.sha256()
        if length is not None:
            self.begin(length)

    def begin(self, length: int) -> None:
        """Begins the next part; `length`: of all its blocks, in bytes."""
        self._digest.update(length.to_bytes(8, "little"))

    def add(self, block: bytes) -> None:
        """Adds the next block."""
        self._digest.update(block)

    def __str__(self) -> str:
        return self._digest.hexdigest()[:DIGITS]
