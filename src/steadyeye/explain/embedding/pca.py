"""The space in which vectors are compared."""

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 64


def space(vectors: NDArray[np.float32], dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    """(n, ≤ `dimensions`) float32: vectors of length 1, on their leading principal components.

    `vectors`: (n, d). Of length 1, a distance is one of directions, as networks compare; few
    dimensions, since distances in many differ little (Beyer et al., "When Is Nearest Neighbor
    Meaningful?", ICDT 1999). Components of both sets together, so that no set is preferred; their
    signs are fixed by the largest loading. A vector of length 0 stays there.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    centred = unit - unit.mean(axis=0)
    _, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    leading = axes[:, ::-1][:, :dimensions]
    sign = np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(leading.shape[1])])
    return np.asarray(centred @ (leading * sign).astype(np.float32), dtype=np.float32)
