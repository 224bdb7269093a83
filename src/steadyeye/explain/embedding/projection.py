"""A map: points laid out on a plane, for the eye alone; nothing is measured on it."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.explain.embedding.knn import Vectors

NEIGHBOURS = 15


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
        found = UMAP(n_neighbors=NEIGHBOURS, random_state=seed, n_jobs=1).fit_transform(points)
    return Layout("UMAP", np.asarray(found, dtype=np.float64))
