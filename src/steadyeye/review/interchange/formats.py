"""The formats of exports, by name, and the tools whose answers can be imported.

The files of an export are written to a temporary folder and then moved. An export that is stopped
while it writes has changed nothing. One that is stopped while it moves files is finished by the
next export to the folder.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.storage.files import (
    encode,
    explain_failure,
    make_folder,
    sync_folder,
    write_file,
)
from steadyeye.core.storage.sha256sums import merge_sums
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.interchange import cvat, label_studio
from steadyeye.review.interchange.answers import Annotations
from steadyeye.review.interchange.coco import export_coco
from steadyeye.review.interchange.frames import export_pmsets, export_set
from steadyeye.review.interchange.tracks import export_mot
from steadyeye.review.protocol.guidelines import FOLDER, list_pictures, list_shown
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.results.history import list_comments
from steadyeye.review.studies.live_study import export_labels

COMMENTS = "comments.json"
"""File of every export with the comments on standing decisions, the newest first."""

GUIDELINES = "guidelines.json"
"""File of every export with each version of the guidelines that was shown; its pictures are in a
folder."""

Export = Callable[..., Mapping[str, int]]
Reader = Callable[[SetFolder, Path, str], Annotations]

FORMATS: Mapping[str, Export] = {
    "set": export_set,
    "coco": export_coco,
    "pmsets": export_pmsets,
    "mot": export_mot,
    "labels": export_labels,
    "label_studio": label_studio.export_tasks,
    "cvat": cvat.export_tasks,
}
"""Name → the function that writes it to a folder and returns counts."""

TOOLS = ("label_studio", "cvat")
"""Formats for annotation tools, which need no earlier review."""

READERS: Mapping[str, Reader] = {
    "label_studio": label_studio.read_annotations,
    "cvat": cvat.read_annotations,
}
"""Name → the function that reads the answers that people gave in another tool."""


def choose_formats(folder: SetFolder, text: str | None) -> Sequence[str]:
    """The formats in a text with commas; for None that from which the set is evaluated.

    Raises `UsageError` for an unknown one.
    """
    usual = {"boxes": "coco", "labels": "labels"}.get(str(folder.content.get("kind")), "set")
    names = [name.strip() for name in (text or usual).split(",")]
    for name in names:
        if name not in FORMATS:
            raise unknown("format", name, FORMATS)
    return names


def export_formats(
    connection: Connection,
    folder: SetFolder,
    plan: ReviewPlan,
    out: Path,
    *,
    names: Sequence[str],
    partial: bool,
) -> Sequence[Mapping[str, int]]:
    """The counts of each format written to a folder, with comments and guidelines beside them.

    All files are written or, if something fails, the folder is unchanged.
    """
    with stage_export(out, names) as part:
        counts = [FORMATS[name](connection, folder, plan, part, partial=partial) for name in names]
        comments = list_comments(connection)
        write_file(part / COMMENTS, encode({"comments": comments}))
        write_file(part / GUIDELINES, encode({"guidelines": list_shown(connection)}))
        for picture in list_pictures(folder.root):
            (part / FOLDER).mkdir(exist_ok=True)
            write_file(part / FOLDER / picture.name, picture.read_bytes())
    more = {"comments": len(comments)} if comments else {}
    return [{**own, **more} for own in counts]


def find_reader(name: str) -> Reader:
    """The function that reads the answers of a tool. Raises `UsageError` for an unknown one."""
    if name not in READERS:
        raise unknown("tool", name, READERS)
    return READERS[name]


def suggest_next(name: str, out: Path, plan: ReviewPlan) -> Sequence[str]:
    """The next steps with an export, one line each."""
    specs = {
        "set": f"reviewed(root='{out}')",
        "coco": f"nao(root='{out}')",
        "pmsets": f"imagenet_vid_robust(root='{out}')",
    }
    if name in specs:
        metrics = ' --metrics "map, map_without_ood, mar"' if name == "coco" else ""
        lines = [f'next: steadyeye run --model … --data "{specs[name]}"{metrics}']
        if name == "coco":
            lines.insert(
                0, f"add the licence of the images to {out}/README.md before you publish it"
            )
            if "boxes" not in plan.votes:
                lines.insert(
                    0, "the labels are the suggested ones: the review had no stage 'boxes'"
                )
        if name == "pmsets" and (out / "metadata" / "classes.json").is_file():
            lines.append(
                f"the classes are not VID-30: other readers need {out}/metadata/classes.json"
            )
        return lines
    if name == "labels":
        return [f"next: keep {out}; studies of other models on the same data can use its labels"]
    if name == "mot":
        return [f"next: tools for MOTChallenge read {out}; its classes are the lines of labels.txt"]
    return [f"next: annotate {out}/{name}; then: steadyeye review-import SET FILE --from {name}"]


PART, WHOLE = ".export.part", ".export.whole"
FORMAT_LIST = ".formats.json"
"""File that lists the formats in a folder `WHOLE`; it is moved last."""
MARKS: Mapping[str, str] = {
    "set": "set.json",
    "coco": "annotations.json",
    "pmsets": "metadata",
    "mot": "labels.txt",
}
"""Format → a file by which an export is recognised; other formats may be written again."""


@contextmanager
def stage_export(out: Path, formats: Sequence[str]) -> Iterator[Path]:
    """A folder for the files of an export, which are moved to `out` after the block.

    Raises `UsageError` if `out` already holds an export in one of the formats, unless a stopped
    export had begun to move its files.
    """
    with explain_failure(out):
        moved = _move_files(out)
        part = out / PART
        if part.exists():
            shutil.rmtree(part)
        for name in formats:
            if name in MARKS and name not in moved and (out / MARKS[name]).exists():
                kind = "a set" if name == "set" else f"an export as {name}"
                raise UsageError(f"'{out}' holds {kind} already; choose another --out")
        is_new = not out.exists()
        make_folder(part)
    try:
        yield part
        merge_sums(part, out)
        write_file(part / FORMAT_LIST, encode({"formats": list(formats)}))
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):
            if is_new:
                out.rmdir()
        raise
    with explain_failure(out):
        part.rename(out / WHOLE)
        _move_files(out)


def _move_files(out: Path) -> Sequence[str]:
    """Moves the files of a complete export to `out`; returns its formats, () if there is none."""
    whole = out / WHOLE
    if not (whole / FORMAT_LIST).is_file():
        return ()
    formats: list[str] = json.loads((whole / FORMAT_LIST).read_bytes())["formats"]
    files = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file()]
    for name in files:
        if name != Path(FORMAT_LIST):
            make_folder(out / name.parent)
            with explain_failure(out / name):
                (whole / name).replace(out / name)
    for folder in {out / name.parent for name in files}:
        sync_folder(folder / "*")
    (whole / FORMAT_LIST).unlink()
    shutil.rmtree(whole)
    return formats
