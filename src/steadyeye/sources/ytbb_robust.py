"""YTBB-Robust as released."""

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyeye.classes.known import known
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Labels
from steadyeye.footage.paths import resolve
from steadyeye.footage.sets import COLUMNS, FrameSets, Member, set_notes
from steadyeye.footage.stills import absentees, sampler


@dataclass(frozen=True)
class _Anchor:
    """A reviewed anchor: its file, its labels, and whether it was judged good."""

    file: str
    truth: Labels
    good: bool


def ytbb_robust(
    root: str, k: int = 10, sets: list[str] | None = None, review: bool = True
) -> FrameSets:
    """YTBB-Robust in its released layout: anchors reviewed as good, their labels on their sets.

    `root` holds `metadata/` (anchor CSV, reviews, class maps) and `frames/<video>_<ms>/` with
    `frame-<n>.jpg`. An anchor's labels are its annotated class and those its reviewers added; they
    hold for the frames within ±`k`. Anchors none of whose labels the released class map reaches
    are left out, as no ImageNet model can name them. `sets`: only these `<video>_<ms>`. With
    `review=False` the anchors that were not judged good come too, tagged `accepted` 0, for the
    section on the review's impact; all other numbers leave them out again. The release does not
    say which neighbours were rejected.
    Shankar et al., "Do Image Classifiers Generalize Across Time?", Section 2.
    """
    base = resolve(root)
    classes = known("ytbb")
    every, notes = _anchors(base / "metadata", classes)
    anchors = {name: anchor for name, anchor in every.items() if anchor.good or not review}
    for name in sorted(set(sets or ()) - set(anchors)):
        raise unknown("reviewed set", name, anchors)
    chosen = {name: anchors[name] for name in (sets if sets is not None else anchors)}
    members = tuple(
        member
        for name, anchor in chosen.items()
        for member in _set(base / "frames" / name, anchor, k)
    )
    if not review:
        judged = {name: anchor.good for name, anchor in chosen.items()}
        members = tuple(replace(member, accepted=judged[member.group]) for member in members)

    def locate(member: Member) -> Path:
        return base / "frames" / member.id

    return FrameSets(
        name="ytbb_robust",
        classes=classes,
        columns=(*COLUMNS, "truth", *(() if review else ("accepted",))),
        fingerprint=fingerprint(*map(_mark, members)),
        members=members,
        sample=sampler(locate),
        absent=absentees(locate),
        notes=(*set_notes(members), *notes),
    )


def _mark(member: Member) -> str:
    mark = f"{member.id}:{member.truth}"
    return mark if member.accepted is None else f"{mark}:{member.accepted}"


def _anchors(metadata: Path, classes: Classes) -> tuple[dict[str, _Anchor], tuple[str, ...]]:
    """Set name → the anchor, of those that an ImageNet model can name, and what the review did."""
    reviews = _json(metadata / "anchor_labels.json")
    reachable = set(_json(metadata / "class_idx_map.json").values())
    annotated = _annotated(metadata / "ytbb_robustness_test_anchors_full.csv")
    position = {name: i for i, name in enumerate(classes.names)}
    meaning = reviews["labels"]
    found: dict[str, _Anchor] = {}
    rejected = unreachable = 0
    for review in reviews["annotations"]:
        *_, name, file = review["key"].split("/")
        said = [meaning[i] for i in review["labels"]]
        good = "good" in said
        rejected += not good
        if name not in annotated:
            raise UsageError(f"the review of '{name}' has no anchor in the CSV; take one release")
        labels = {annotated[name]} | {position[word] for word in said if word in position}
        if labels & reachable:
            found[name] = _Anchor(file, tuple(sorted(labels)), good)
        else:
            unreachable += good
    return found, (
        f"{len(reviews['annotations']):,} anchors reviewed: {rejected:,} not judged good, "
        f"{unreachable:,} without a class an ImageNet model knows, "
        f"{sum(anchor.good for anchor in found.values()):,} kept",
    )


def _annotated(path: Path) -> dict[str, int]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            return {f"{row['ytid']}_{row['time_ms']}": int(row["label"]) for row in rows}
    except OSError:
        raise UsageError(f"no '{path}'; root must hold the released metadata folder") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError:
        raise UsageError(f"no '{path}'; root must hold the released metadata folder") from None
    except ValueError as error:
        raise UsageError(f"cannot read '{path}': {error}") from error


def _set(folder: Path, anchor: _Anchor, k: int) -> list[Member]:
    """The set of one anchor: the frames in its folder, or all that should be where it is absent."""
    prefix, _, number = Path(anchor.file).stem.rpartition("-")
    centre = int(number)
    names = {
        f: f"{prefix}-{f}{Path(anchor.file).suffix}" for f in range(centre - k, centre + k + 1)
    }
    there = folder.is_dir()
    return [
        Member(
            id=f"{folder.name}/{name}",
            group=folder.name,
            video=folder.name.rpartition("_")[0],
            frame=frame,
            offset=frame - centre,
            truth=anchor.truth,
        )
        for frame, name in names.items()
        if frame >= 0 and (frame == centre or not there or (folder / name).is_file())
    ]
