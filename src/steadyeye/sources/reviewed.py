"""A set that people reviewed, or one that waits for them."""

from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Sample
from steadyeye.footage import set_folder
from steadyeye.footage.sets import COLUMNS, FrameSets, Member, set_notes, tags
from steadyeye.images.files import ImageFile


def reviewed(root: str, review: bool = True) -> FrameSets:
    """A set of `steadyeye sample`, or of `steadyeye review-export`: pm-sets of stored frames.

    Of a set that was reviewed only accepted anchors and neighbours count; of one that was not, all
    frames but those across a scene cut from their anchor. `review=False` takes every frame, with
    the tag `accepted` (1 or 0), to see what the review changed. Raises `UsageError` for a set of
    boxes.
    """
    folder = set_folder.read(root)
    if folder.content.get("kind") == "boxes":
        raise UsageError(
            f"'{root}' is a set of boxes; export it with `steadyeye review-export` and evaluate "
            "that with coco(annotations=…, images=…)"
        )
    rows = folder.frames.to_pylist()
    anchors = {row["group"] for row in rows if row["offset"] == 0 and row["accepted"]}
    kept = [row for row in rows if not review or (row["accepted"] and row["group"] in anchors)]
    if not kept:
        raise UsageError(f"the review accepted no anchor of '{root}'; evaluate with review=False")
    by_id = {row["id"]: row for row in kept}
    members = tuple(
        Member(r["id"], r["group"], r["video"], r["frame"], r["offset"], tuple(r["labels"]))
        for r in kept
    )

    def sample(member: Member) -> Sample:
        row = by_id[member.id]
        more = {"seconds": row["seconds"], "fps": row["fps"], "frame_type": row["frame_type"]}
        more |= {} if review else {"accepted": int(row["accepted"] and row["group"] in anchors)}
        image = ImageFile(set_folder.image_path(folder.root, row["image"]))
        told = {**tags(member), **more}
        return Sample(member.id, image, member.truth, member.group, told, key=image.key)

    def absent(asked: object) -> list[str]:
        paths = {set_folder.image_path(folder.root, row["image"]) for row in kept}
        return sorted(str(path) for path in paths if not path.is_file())

    extra = ("seconds", "fps", "frame_type", *(() if review else ("accepted",)))
    return FrameSets(
        name=folder.name if review else f"{folder.name}, unreviewed",
        classes=folder.classes,
        columns=(*COLUMNS, *extra, *(("truth",) if folder.classes else ())),
        fingerprint=f"{folder.fingerprint}{'' if review else '-all'}",
        members=members,
        sample=sample,
        absent=absent,
        notes=(*set_notes(members), *_left_out(Path(root), len(rows), len(kept))),
    )


def _left_out(root: Path, all_rows: int, kept: int) -> tuple[str, ...]:
    left = all_rows - kept
    return (f"{left:,} of {all_rows:,} frames of {root.name} were not accepted",) if left else ()
