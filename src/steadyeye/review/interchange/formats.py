"""What a review is exported as."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sqlalchemy import Connection

from steadyeye.core.errors import unknown
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.interchange import (
    coco,
    cvat,
    label_studio,
    pmsets,
)
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.results import export
from steadyeye.review.results.import_decisions import Annotations

Export = Callable[..., Mapping[str, int]]
Reader = Callable[[SetFolder, Path, str], Annotations]

FORMATS: Mapping[str, Export] = {
    "set": export.export,
    "coco": coco.export,
    "pmsets": pmsets.export,
    "label_studio": label_studio.export,
    "cvat": cvat.export,
}
"""Name → what writes it to a folder and returns counts."""

TOOLS = ("label_studio", "cvat")
"""The formats that ask; a set needs no review before."""

READERS: Mapping[str, Reader] = {
    "label_studio": label_studio.read,
    "cvat": cvat.read,
}
"""Name → what reads the answers that people gave in another tool."""


def default(folder: SetFolder) -> str:
    """The format from which a set is evaluated."""
    return "coco" if folder.content.get("kind") == "boxes" else "set"


def choose_formats(folder: SetFolder, text: str | None) -> Sequence[str]:
    """The formats in a text with commas, the default one for None. Raises `UsageError`."""
    names = [name.strip() for name in (text or default(folder)).split(",")]
    for name in names:
        if name not in FORMATS:
            raise unknown("format", name, FORMATS)
    return names


def write(
    connection: Connection,
    folder: SetFolder,
    plan: ReviewPlan,
    out: Path,
    *,
    name: str,
    partial: bool,
) -> Mapping[str, int]:
    """Writes one format to a folder and returns its counts."""
    out.mkdir(parents=True, exist_ok=True)
    return FORMATS[name](connection, folder, plan, out, partial=partial)


def reader(name: str) -> Reader:
    """What reads the answers of a tool. Raises `UsageError` for one that is unknown."""
    if name not in READERS:
        raise unknown("tool", name, READERS)
    return READERS[name]


def following(name: str, out: Path, plan: ReviewPlan) -> Sequence[str]:
    """What to do next with an export, a line each."""
    told = {
        "set": f"reviewed(root='{out}')",
        "coco": f"nao(root='{out}')",
        "pmsets": f"imagenet_vid_robust(root='{out}')",
    }
    if name in told:
        asked = ' --metrics "map, map_without_ood, mar"' if name == "coco" else ""
        lines = [f'next: steadyeye run --model … --data "{told[name]}"{asked}']
        if name == "coco":
            lines.insert(
                0, f"add the licence of the images to {out}/README.md before passing it on"
            )
            if "boxes" not in plan.votes:
                lines.insert(0, "labels are as suggested: the review had no stage boxes")
        if name == "pmsets" and (out / "metadata" / "classes.json").is_file():
            lines.append(
                f"the classes are not VID-30: other readers need {out}/metadata/classes.json"
            )
        return lines
    return [f"next: annotate {out}/{name}; then: steadyeye review-import SET FILE --from {name}"]
