"""Random streams that depend on a seed and a name alone: same in any order, process or machine."""

import hashlib

import numpy as np


def stream(seed: int, *names: str) -> np.random.Generator:
    """The generator of (`seed`, `names`); other names give independent streams."""
    digest = hashlib.sha256("\x00".join([str(seed), *names]).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def fingerprint(*parts: str | bytes) -> str:
    """A 16-digit hexadecimal digest of `parts`, each kept apart from the next."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:16]
