"""Every frame of videos, in order and without labels."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place, absent, inside
from steadyeye.data.images import image_file
from steadyeye.data.video import decoder, label_sidecar
from steadyeye.data.video import shot_detection as detected
from steadyeye.data.video.clip_source import COLUMNS, Clip, WholeClips
from steadyeye.data.video.frame_folders import list_frame_folders
from steadyeye.data.video.paths import VIDEOS, holds, list_files, resolve_path
from steadyeye.data.video.video_index import order_notes

Cuts = tuple[int, ...]


def every_frame(
    path: str, step: int = 1, cuts: str = "detect", fps: float | None = None
) -> WholeClips:
    """Every frame of videos, a file or a folder, in order and without labels.

    `step`: only every n-th frame. `cuts`: "detect" finds the scene cuts (a pass over each video,
    see `shot_detection`), "none" takes each video for one scene, and a JSON sidecar names
    them (see `label_sidecar`). A folder without videos is taken for folders of numbered
    images, one a video, for which `fps` says how many frames a second they are.
    Tags: video, frame, step, scene, seconds (since the first frame), fps, and for videos frame_type
    (I, P or B).
    """
    if step < 1:
        raise UsageError(f"step={step}: take every frame (1), every second one (2), and so on")
    root = resolve_path(path)
    known = _read_cuts(cuts)
    if root.is_dir() and not holds(root, VIDEOS) and holds(root, image_file.SUFFIXES):
        return _of_images(root, step, known, fps)
    if fps is not None:
        raise UsageError(f"fps={fps} is for folders of images; '{path}' knows its own, leave it")
    clips: list[Clip] = []
    marks: list[str] = []
    videos: dict[str, decoder.VideoIndex] = {}
    single = root.is_file()
    for file in list_files(root, VIDEOS):
        name = file.name if single else inside(file, root).as_posix()
        index = videos[name] = decoder.index(file)
        scene_cuts = known(name, len(index)) if known else detected.of_video(index)
        clips.append(
            Clip(
                name,
                len(index),
                index.fps,
                scene_cuts,
                partial(_seconds, index),
                _reader(index),
                index.key,
                [file],
            )
        )
        marks.append(f"{name}:{len(index)}:{file.stat().st_size}:{scene_cuts}")
    return WholeClips(
        name=root.stem,
        columns=(*COLUMNS, "frame_type"),
        fingerprint=fingerprint("every_frame", *marks, str(step)),
        clips=clips,
        step=step,
        reading=order_notes(videos),
    )


def _of_images(
    root: Place, step: int, known: Callable[[str, int], Cuts] | None, fps: float | None
) -> WholeClips:
    if fps is None or not 0 < fps < float("inf"):
        raise UsageError(
            f"'{root}' holds images, which do not say how fast they follow each other; give "
            f"fps={'25, or what they were taken at' if fps is None else f'… above 0, not {fps}'}"
        )
    clips: list[Clip] = []
    marks: list[str] = []
    videos = list_frame_folders(root)
    for name, paths in videos.items():
        scene_cuts = known(name, len(paths)) if known else detected.of_images(paths)
        clips.append(
            Clip(
                name,
                len(paths),
                float(fps),
                scene_cuts,
                partial(_at, fps),
                _still(paths),
                _key(paths),
                paths,
            )
        )
        marks += [f"{name}/{path.name}:{path.stat().st_size}" for path in paths]
        marks.append(str(scene_cuts))

    def lacking() -> list[str]:
        return [str(path) for paths in videos.values() for path in absent(paths)]

    return WholeClips(
        name=root.name,
        columns=COLUMNS,
        fingerprint=fingerprint("every_frame", *marks, str(step), str(fps)),
        clips=clips,
        step=step,
        absent=lacking,
    )


def _read_cuts(cuts: str) -> Callable[[str, int], Cuts] | None:
    """What names the cuts of a video; None where they are to be found."""
    if cuts == "detect":
        return None
    if cuts == "none":
        return lambda *_: ()
    if Path(cuts).suffix.lower() != ".json":
        raise UsageError(
            f"cuts='{cuts}' is neither 'detect' nor 'none' nor a JSON sidecar that names the cuts"
        )
    sidecar = label_sidecar.read(cuts)
    return lambda name, frames: sidecar.of(name).within(name, frames).cuts


def _seconds(index: decoder.VideoIndex, number: int) -> float:
    return float((index.pts[number] - index.pts[0]) * index.time_base)


def _at(fps: float, number: int) -> float:
    return number / fps


def _reader(index: decoder.VideoIndex) -> Callable[[int], decoder.Frame]:
    return lambda number: decoder.frame(index, number)


def _still(paths: Sequence[Place]) -> Callable[[int], decoder.Frame]:
    return lambda number: decoder.Frame(decoder.UNSEEN, partial(image_file.read, paths[number]))


def _key(paths: Sequence[Place]) -> Callable[[int], str]:
    return lambda number: image_file.ImageFile(paths[number]).key()
