"""A set that people reviewed, or one that waits for them."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, shorten
from steadyeye.core.format import number_of
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.sha256sums import NAME, check_sums
from steadyeye.core.types import Sample
from steadyeye.data.annotations import review_set
from steadyeye.data.images.image_file import ImageFile
from steadyeye.data.video.pm_set_source import COLUMNS, FrameSets, Member, set_notes, tags


def reviewed(root: str, review: bool = True) -> FrameSets:
    """A set of `steadyeye sample` or `steadyeye review-export`: pm-sets of stored frames.

    `root`: the folder. In a reviewed set only accepted anchors and neighbours count; in an
    unreviewed one, all frames except those across a scene cut from their anchor. `review`: if
    False, the decisions are ignored: every sampled frame counts, tagged `accepted` (1 or 0) for the
    section on the impact of the review; labels are the reviewers' in both cases. A frame across a
    scene cut counts in neither, unless people were asked about it (tag `sampled`). Raises
    `UsageError` for a set of boxes, and if a file differs from `SHA256SUMS`.

    Example: `reviewed(root='sets/street')`
    """
    folder = _frames(root)
    rows = folder.frames.to_pylist()
    anchors = {row["group"] for row in rows if row["offset"] == 0 and row["accepted"]}
    accepted = [row for row in rows if not review or (row["accepted"] and row["group"] in anchors)]
    if not accepted:
        raise UsageError(f"the review accepted no anchor of '{root}'; evaluate with review=False")
    by_id = {row["id"]: row for row in accepted}
    timed = all(row["seconds"] is not None for row in accepted)
    facts = (*(("seconds",) if timed else ()), "fps", "frame_type")
    marks = {} if review else _marks(folder, rows, anchors)
    members = tuple(
        Member(r["id"], r["group"], r["video"], r["frame"], r["offset"], tuple(r["labels"]))
        for r in accepted
    )

    def sample(member: Member) -> Sample:
        row = by_id[member.id]
        more = {**{name: row[name] for name in facts}, **marks.get(member.id, {})}
        image, columns = ImageFile(locate(member)), {**tags(member), **more}
        return Sample(member.id, image, member.truth, member.group, columns, key=image.key)

    inside = confine(folder.root, folder.root / "frames.parquet")

    def locate(member: Member) -> Path:
        path = review_set.image_path(folder.root, by_id[member.id]["image"])
        inside(path.relative_to(folder.root).as_posix())
        return path

    extra = (*facts, *(() if review else ("accepted", "sampled")))
    undecided = sum(row["reason"] == review_set.UNDECIDED for row in rows)
    state = (", partly reviewed" if undecided else "") if review else ", unreviewed"
    notes = _review_notes(folder, len(rows), len(rows) - len(accepted), undecided)
    return FrameSets(
        name=f"{folder.name}{state}",
        classes=folder.classes,
        columns=(*COLUMNS, *extra, *(("truth",) if folder.classes else ())),
        fingerprint=f"{folder.fingerprint}{'' if review else '-all'}",
        members=members,
        sample=sample,
        image_files=lambda member: [locate(member)],
        notes=(*set_notes(members), *folder.notes, *notes),
    )


def _frames(root: str) -> review_set.SetFolder:
    """The set of frames in a folder, after a check of its files."""
    check_sums(Path(root))
    folder = review_set.read(root)
    if folder.content.get("kind") == "boxes":
        raise UsageError(
            f"'{root}' is a set of boxes; export it with `steadyeye review-export` and evaluate "
            "that with coco(annotations=…, images=…)"
        )
    return folder


def _marks(
    folder: review_set.SetFolder, rows: Sequence[Mapping[str, Any]], anchors: Collection[str]
) -> Mapping[str, Mapping[str, int]]:
    """Frame id → whether the review accepted it, and whether it is part of the sample at all."""
    cuts_asked = _are_cuts_asked(folder)
    return {
        row["id"]: {
            "accepted": int(row["accepted"] and row["group"] in anchors),
            "sampled": int(cuts_asked or not row["across_cut"]),
        }
        for row in rows
    }


def _are_cuts_asked(folder: review_set.SetFolder) -> bool:
    """Whether the plan of the review asks people about frames across a scene cut."""
    record = folder.content.get("review", {})
    value = record.get("across_cuts", False) if isinstance(record, dict) else None
    if not isinstance(value, bool):
        raise UsageError(
            f"'{folder.root / 'set.json'}' has the review {shorten(repr(record))}; write "
            "across_cuts as true or false in it"
        )
    return value


def _review_notes(
    folder: review_set.SetFolder, frames: int, left: int, undecided: int
) -> tuple[str, ...]:
    """Notes on the review; `left`, `undecided`: how many of the `frames` are not accepted, and why.

    And on a set whose files have no checksums.
    """
    changed = folder.content.get("reviewed", {}).get("counts", {}).get("labels_updated", 0)
    name, every = folder.root.name, number_of(frames, "frame")
    texts = []
    if not (folder.root / NAME).is_file():
        texts.append(f"{name} has no {NAME}, so changes in it cannot be detected")
    if left:
        texts.append(f"{left:,} of {every} of {name} not accepted")
    if undecided:
        texts.append(
            f"{undecided:,} of {every} not decided yet, counted as not accepted; the fewer "
            "neighbours count, the higher is pm-k"
        )
    if changed and not left:
        anchors = number_of(changed, "anchor has", "anchors have")
        texts.append(f"{anchors} the labels that reviewers gave them")
    return tuple(texts)
