"""DAVIS as whole sequences with true tracks."""

from steadyeye.data.annotations.boxed_videos import Sequences, tracked_sequences
from steadyeye.data.annotations.davis_masks import find_sequences, read_objects
from steadyeye.data.video.paths import resolve
from steadyeye.data.video.pm_set_source import FrameSets


def davis_tracks(root: str, labels: str, fps: float = 24.0) -> FrameSets:
    """Every frame of the sequences of DAVIS in order, with a tight box and a track for each mask.

    `root`, `labels`: as for `davis`. `fps`: frames per second, 24 in DAVIS (Perazzi et al. 2016).
    Raises `UsageError` for missing files and labels.

    Example: `davis_tracks(root='davis', labels='labels.csv')`
    """
    base = resolve(root)
    sequences = find_sequences(base)
    objects, _, classes = read_objects(sequences, labels)
    videos = Sequences(sequences, objects, fps=dict.fromkeys(sequences, fps))
    return tracked_sequences(base.name, videos, classes)
