"""DAVIS: sequences of frames with a mask each, as boxes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Sample
from steadyeye.data.annotations.boxed_videos import Sequences, boxed_sets
from steadyeye.data.annotations.davis_masks import (
    find_sequences,
    locate_mask,
    read_objects,
    read_parts,
)
from steadyeye.data.video.paths import resolve
from steadyeye.data.video.pm_set_source import Drawing, FrameSets, Member


def davis(root: str, labels: str, anchors: int | str = 1, k: int = 10, seed: int = 0) -> FrameSets:
    """DAVIS' layout, JPEGImages/SEQUENCE and Annotations/SEQUENCE: masks are read as tight boxes.

    `root`: the folder that contains both. `labels`: a sidecar that names the class of each
    sequence's object (`video,labels`); if a sequence has several, its masks are numbered and the
    labels are in that order. `anchors`: number per sequence, drawn by `seed` from the frames with
    an object; "all" takes each, as for training (with k=0). Neighbours are all frames within ±`k`;
    those with an empty mask are counted in the notes. Raises `UsageError` for missing files and
    labels. Perazzi et al., CVPR 2016.

    Example: `davis(root='DAVIS', labels='classes.csv', anchors=2, k=5)`
    """
    base, how = resolve(root), Drawing(anchors, k, seed)
    sequences = find_sequences(base)
    objects, labels_of, classes = read_objects(sequences, labels)
    sets = boxed_sets(base.name, Sequences(sequences, objects), classes, how)

    def sample(member: Member) -> Sample:
        frame, several = sequences[member.video][member.frame], len(labels_of[member.video])

        def read_masks() -> NDArray[np.bool_]:
            parts = read_parts(frame, several)
            # empty ones have no box
            return np.asarray(parts[parts.any(axis=(1, 2))])

        return replace(sets.sample(member), masks=read_masks)

    def image_files(member: Member) -> list[Path]:
        frame = sequences[member.video][member.frame]
        return [frame, locate_mask(frame)]

    return replace(sets, sample=sample, image_files=image_files)
