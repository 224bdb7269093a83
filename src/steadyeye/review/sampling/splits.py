"""Train, validation and test parts of a set of images: every class in each, no source in two.

Sechidis, Tsoumakas, Vlahavas, "On the Stratification of Multi-Label Data", 2011, Algorithm 1
(iterative stratification), over groups of images rather than images.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.seeds import stream

SHARES: Mapping[str, float] = {"train": 0.7, "val": 0.15, "test": 0.15}
"""Split → the share of images it aims at."""


def find_origins(names: Sequence[str], alike: Sequence[tuple[int, int]]) -> Sequence[str]:
    """The source of each image, named after the first image of it.

    Images are of one source if they are in one folder, like the frames of a video, or nearly equal
    each other (`alike`: pairs of indices), or are connected by such images. If all are in one
    folder, the folder is ignored.
    """
    folders = [str(PurePosixPath(name).parent) for name in names]
    first: dict[str, int] = {}
    pairs = list(alike)
    if len(set(folders)) > 1:
        pairs += [(first.setdefault(f, i), i) for i, f in enumerate(folders) if f != "."]
    parent = list(range(len(names)))

    def find_root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for left, right in pairs:
        ends = sorted((find_root(left), find_root(right)), key=lambda i: names[i])
        parent[ends[1]] = ends[0]
    return [names[find_root(i)] for i in range(len(names))]


def split_images(
    labels: Sequence[Collection[str]], sources: Sequence[str], seed: int = 0
) -> Sequence[str]:
    """The split of each image, one of `SHARES`; images of one source are in the same.

    `labels`: the classes in each image. In turn, the class with the fewest unassigned images is
    taken, and each source with it, the largest first, is assigned to the split that lacks most
    images of the class, then to the one that lacks most images; ties are decided by the seed and
    the source's name. The order of the images does not matter.
    """
    groups = sorted(set(sources))
    place = {name: i for i, name in enumerate(groups)}
    names = sorted({name for own in labels for name in own})
    classes = {name: i for i, name in enumerate(names)}
    counts = np.zeros((len(groups), len(classes)), dtype=np.int64)
    images = np.zeros(len(groups), dtype=np.int64)
    for own, source in zip(labels, sources, strict=True):
        images[place[source]] += 1
        counts[place[source], [classes[name] for name in set(own)]] += 1
    chance = np.array([stream(seed, "split", name).random(len(SHARES)) for name in groups])
    chosen = _assign_splits(counts, images, chance)
    splits = tuple(SHARES)
    return [splits[chosen[place[source]]] for source in sources]


def _assign_splits(
    counts: NDArray[np.int64], images: NDArray[np.int64], chance: NDArray[np.float64]
) -> NDArray[np.int64]:
    """(groups,) the index of the split of each group.

    `counts`: (groups, classes) images of each class; `images`: (groups,) images. `chance`: (groups,
    splits) random numbers that decide ties.
    """
    shares = np.array(list(SHARES.values()))
    lacking = shares[:, None] * np.column_stack([counts, images]).sum(axis=0)
    weights = np.column_stack([counts, images])
    chosen = np.full(len(images), -1, dtype=np.int64)
    while (chosen < 0).any():
        left = chosen < 0
        remaining = counts[left].sum(axis=0)
        # images without any class go last, by their number alone
        label = -1
        if remaining.any():
            label = int(np.where(remaining > 0, remaining, np.iinfo(np.int64).max).argmin())
        mine = np.flatnonzero(left & (weights[:, label] > 0))
        for group in mine[np.lexsort((chance[mine, 0], -weights[mine, label]))]:
            best = np.lexsort((chance[group], lacking[:, -1], lacking[:, label]))[-1]
            chosen[group] = best
            lacking[best] -= weights[group]
    return chosen
