"""MOTChallenge as whole sequences with true tracks."""

from dataclasses import replace

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import mot_file
from steadyeye.data.annotations.boxed_videos import tracked_sequences
from steadyeye.data.video.pm_set_source import FrameSets


def mot_tracks(root: str, fps: float | None = None) -> FrameSets:
    """Every frame of MOTChallenge's layout in order, with the track of each box.

    The files are those of `mot`; a line whose `active` is 0 neither rewards nor punishes. `fps`:
    frames per second, if seqinfo.ini has no frameRate. Raises `UsageError` without either.

    Example: `mot_tracks(root='MOT17/train')`
    """
    base, folders = mot_file.find_sequences(root)
    videos, classes = mot_file.read_sequences(base, folders)
    rates: dict[str, float] = {}
    for folder in folders:
        rate = mot_file.read_rate(folder) or fps
        if rate is None:
            raise UsageError(
                f"'{folder / mot_file.INFO}' has no frameRate; add it, or give fps=25 or what the "
                "frames were taken at"
            )
        rates[folder.name] = rate
    return tracked_sequences(base.name, replace(videos, fps=rates), classes)
