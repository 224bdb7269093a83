"""Spots: points that lie together, found without saying how many there are."""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN
from sklearn.neighbors import NearestNeighbors

from steadyeye.explain.embedding.knn import Vectors

LEAST = 5
DIMENSIONS = 16
REACH = 0.9
"""The share of points whose neighbours are within the height at which one spot alone is cut."""


def spots(points: Vectors) -> NDArray[np.int64]:
    """(n,) the spot of each point, from 0 by falling size; −1 for a point in none.

    `points`: (n, d) float32, the leading `DIMENSIONS` of which count. HDBSCAN (Campello, Moulavi
    and Sander, "Density-Based Clustering Based on Hierarchical Density Estimates", PAKDD 2013): a
    spot has at least `LEAST` points and a twentieth of them. Its choice of clusters looks for
    several, so that of one alone it keeps the core; where it leaves out more than half of the
    points, its tree is cut at one height. None in fewer than `LEAST`.
    """
    if len(points) < LEAST:
        return np.full(len(points), -1, dtype=np.int64)
    # so that the order in which points come makes no difference
    order = np.lexsort(points.T[::-1])
    ordered = points[order, :DIMENSIONS].astype(np.float64)
    smallest = max(LEAST, len(points) // 20)
    tree = HDBSCAN(min_cluster_size=smallest, min_samples=LEAST, copy=True).fit(ordered)
    labels = tree.labels_
    if (labels < 0).mean() > 0.5:
        near = NearestNeighbors(n_neighbors=LEAST).fit(ordered).kneighbors(ordered)[0][:, -1]
        labels = tree.dbscan_clustering(float(np.quantile(near, REACH)), smallest)
    found = np.empty(len(points), dtype=np.int64)
    found[order] = _by_size(labels)
    return found


def _by_size(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """The labels numbered anew by falling size, ties by who comes first; −1 stays."""
    names, first, sizes = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    rank = np.full(int(labels.max(initial=-1)) + 2, -1, dtype=np.int64)
    rank[names[np.lexsort((first, -sizes))]] = np.arange(len(names))
    return np.asarray(rank[labels])
