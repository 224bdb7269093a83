"""The space in which vectors are compared, and a map of them on a plane, for the eye alone."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.explain.embedding.density_ratio import Vectors

DIMENSIONS = 64
NEIGHBOURS = 15


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


@dataclass(frozen=True, eq=False)
class Layout:
    """Where points lie on a map. `name`: "UMAP" or "PCA"; `place`: (n, 2) float64."""

    name: str
    place: NDArray[np.float64]


def layout(points: Vectors, seed: int = 0) -> Layout:
    """The points on a plane by UMAP, or by their first two components where it is not installed.

    `points`: (n, d ≥ 2) float32, components by falling variance. McInnes, Healy and Melville,
    "UMAP: Uniform Manifold Approximation and Projection", 2018; one thread, seeded.
    """
    plain = Layout("PCA", points[:, :2].astype(np.float64))
    if len(points) <= 2 * NEIGHBOURS:
        return plain
    try:
        from umap import UMAP
    except ModuleNotFoundError:
        return plain
    with warnings.catch_warnings():
        # that one thread is slower, and that graphs may fall apart: both are wanted
        warnings.simplefilter("ignore")
        positions = UMAP(n_neighbors=NEIGHBOURS, random_state=seed, n_jobs=1).fit_transform(points)
    return Layout("UMAP", np.asarray(positions, dtype=np.float64))
