"""MOTChallenge: sequences of frames with the boxes of people and vehicles."""

from steadyeye.data.annotations import mot_file
from steadyeye.data.annotations.boxed_videos import boxed_sets
from steadyeye.data.video.pm_set_source import Drawing, FrameSets


def mot(root: str, anchors: int | str = 1, k: int = 10, seed: int = 0) -> FrameSets:
    """MOTChallenge's layout, SEQUENCE/img1 and SEQUENCE/gt/gt.txt, as pm-sets.

    `root`: the folder of the sequences. A line of gt.txt is frame, id, left, top, width, height,
    active, class, visibility; frames and pixels count from 1, so that boxes begin at left − 1 and
    top − 1. Inactive boxes, distractors, occluders, reflections and crowds neither reward nor
    punish: those of vehicles for detections of their class, all others for detections of a person.
    With a labels.txt, as `steadyeye review-export` and CVAT write it, the classes are its lines,
    and `ood` is for objects outside them. `anchors`: number per sequence, drawn by `seed` from the
    frames with an object; neighbours are all frames within ±`k`. Raises `UsageError` for invalid
    lines and missing files. Milan et al., "MOT16", 2016.

    Example: `mot(root='MOT17/train', anchors=10, k=10)`
    """
    base, folders = mot_file.find_sequences(root)
    videos, classes = mot_file.read_sequences(base, folders)
    return boxed_sets(base.name, videos, classes, Drawing(anchors, k, seed))
