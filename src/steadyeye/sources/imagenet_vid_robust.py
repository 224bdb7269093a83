"""ImageNet-Vid-Robust as released."""

import json
import re
from pathlib import Path
from typing import Any

from steadyeye.classes.known import known, read
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.footage.paths import resolve
from steadyeye.footage.sets import COLUMNS, FrameSets, Member, set_notes
from steadyeye.footage.stills import absentees, sampler


def imagenet_vid_robust(root: str, videos: list[str] | None = None) -> FrameSets:
    """ImageNet-Vid-Robust in its released layout: 1,109 reviewed anchors, every frame labelled.

    `root` holds `metadata/pmsets.json`, `metadata/labels.json` and `val/`. Every frame carries its
    own label list; a set without neighbours counts as its anchor. `videos`: only these. A review
    exported in this layout may have classes of its own, in `metadata/classes.json`.
    Shankar et al., "Do Image Classifiers Generalize Across Time?", Section 2.
    """
    base = resolve(root)
    sets, labels = (
        _load(base / "metadata" / "pmsets.json"),
        _load(base / "metadata" / "labels.json"),
    )
    wanted = None if videos is None else set(videos)
    available = {Path(anchor).parent.name for anchor in sets}
    for video in sorted((wanted or set()) - available):
        raise unknown("video", video, available)
    members = tuple(
        _member(frame, anchor, labels)
        for anchor, neighbours in sets.items()
        if wanted is None or Path(anchor).parent.name in wanted
        for frame in sorted({anchor, *neighbours})
    )

    def locate(member: Member) -> Path:
        return base / member.id

    listed = base / "metadata" / "classes.json"
    classes = read(str(listed)) if listed.is_file() else known("vid30")
    several = sum(len(member.truth) > 1 for member in members)
    return FrameSets(
        name="imagenet_vid_robust",
        classes=classes,
        columns=(*COLUMNS, "truth"),
        fingerprint=fingerprint(
            *(f"{m.group}:{m.id}:{m.truth}" for m in members),
            *(classes.names if listed.is_file() else ()),
        ),
        members=members,
        sample=sampler(locate),
        absent=absentees(locate),
        notes=(*set_notes(members), f"{several:,} frames carry several labels"),
    )


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UsageError(f"no '{path}'; root must hold the released metadata folder") from None
    except ValueError as error:
        raise UsageError(f"cannot read '{path}': {error}") from error
    if not isinstance(content, dict):
        raise UsageError(f"'{path}' is not a JSON object; take the released file")
    return content


def _member(frame: str, anchor: str, labels: dict[str, list[int]]) -> Member:
    if frame not in labels:
        raise UsageError(
            f"labels.json lacks the frame '{frame}' of the set around '{anchor}'; "
            "take pmsets.json and labels.json from the same release"
        )
    number = _number(frame)
    return Member(
        id=frame,
        group=anchor,
        video=Path(frame).parent.as_posix(),
        frame=number,
        offset=number - _number(anchor),
        truth=tuple(sorted(int(label) for label in labels[frame])),
    )


def _number(frame: str) -> int:
    found = re.search(r"(\d+)\.\w+$", frame)
    if not found:
        raise UsageError(f"the frame '{frame}' has no number; take the released pmsets.json")
    return int(found.group(1))
