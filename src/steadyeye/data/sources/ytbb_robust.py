"""YTBB-Robust as released."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import read_table
from steadyeye.core.types import Classes, Labels
from steadyeye.data.annotations.ytbb_reviews import PairReviews, frame_of, read_pairs, read_reviews
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.video.frame_folders import sampler
from steadyeye.data.video.paths import resolve
from steadyeye.data.video.pm_set_source import COLUMNS, FrameSets, Member, set_notes

NAME = "ytbb_robust"
CSV = "ytbb_robustness_test_anchors_full.csv"
# in the CSV, and there alone, car is 22 and none 23
EXCHANGED = {22: 23, 23: 22}
UNNAMEABLE = ("cow", "giraffe", "skateboard", "toilet")
"""Classes without a member in ILSVRC-2012: ImageNet models are always wrong on them."""
ANCHORS, PAIRS = 2_030, 36_827  # Shankar et al., Table 1
GOOD_ANCHORS = "395b565176ba70ff"
"""The fingerprint of the 2,169 anchors that the released reviews call good, with their labels."""


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

    `root` contains `metadata/` (anchor CSV, reviews) and `frames/<video>_<ms>/frame-<n>.jpg`. An
    anchor counts if its review says good and neither bad nor unsure; its labels are the annotated
    class (in the CSV the labels 22 and 23 are exchanged) and those that reviewers added; they apply
    within ±`k`. Classes that no ImageNet model can name stay. `metadata/pmk_labels.json` has the
    accepted neighbours and the dropped anchors: with it the set is the released one, 2,030 anchors
    and 36,827 pairs. Without it every frame within ±`k` counts, the source's name says so, and no
    published number is shown. `sets`: only these `<video>_<ms>`. `review`: if False, all reviewed
    frames, tagged `accepted` 1 or 0, for the section on the review's impact; other numbers leave
    out the 0. Shankar et al., "Do Image Classifiers Generalize Across Time?", Section 2; the rules
    are those of its released scorer. Raises `UsageError` for inconsistent metadata.

    Example: `ytbb_robust(root='ytbb_robust', k=10)`
    """
    base = resolve(root)
    classes = shipped_classes("ytbb")
    anchors = _anchors(base / "metadata", classes)
    pairs = read_pairs(base / "metadata" / "pmk_labels.json")
    dropped = pairs.bad_anchors if pairs else frozenset()
    accepted = {n for n, a in anchors.items() if a.good and f"{n}/{a.file}" not in dropped}
    available = {name: anchor for name, anchor in anchors.items() if name in accepted or not review}
    for name in sorted(set(sets or ()) - set(available)):
        raise unknown("reviewed set", name, available)
    chosen = {name: available[name] for name in (sets if sets is not None else available)}
    sets_of = {
        name: _set(base / "frames" / name, anchor, k, pairs, None if review else name in accepted)
        for name, anchor in chosen.items()
    }
    members = tuple(chain.from_iterable(sets_of.values()))

    inside = confine(base / "frames", base / "metadata")

    def locate(member: Member) -> Place:
        return inside(member.id)

    return FrameSets(
        is_published_list=True,
        name=_name(anchors, accepted, members, pairs is not None),
        classes=classes,
        columns=(*COLUMNS, "truth", *(() if review else ("accepted",))),
        fingerprint=fingerprint(*map(_mark, members)),
        members=members,
        sample=sampler(locate),
        image_files=lambda member: [locate(member)],
        notes=(
            *set_notes(members),
            *_review_notes(anchors, accepted, pairs),
            *_label_notes(classes, [anchors[name] for name in chosen if name in accepted]),
            *_gaps(chosen, sets_of, k, pairs),
        ),
    )


def _mark(member: Member) -> str:
    mark = f"{member.id}:{member.truth}"
    return mark if member.accepted is None else f"{mark}:{member.accepted}"


def _name(
    anchors: Mapping[str, _Anchor],
    accepted: Collection[str],
    members: Iterable[Member],
    reviewed: bool,
) -> str:
    """`ytbb_robust` for the released set only; otherwise a name with the difference."""
    good = sorted(f"{n}/{a.file}:{a.truth}" for n, a in anchors.items() if a.good)
    if not reviewed:
        return f"{NAME}, neighbours not reviewed"
    offsets = [member.offset for member in members if member.accepted is not False]
    counts = offsets.count(0), len(offsets) - offsets.count(0)
    if fingerprint(*good) == GOOD_ANCHORS and len(accepted) == ANCHORS:
        return NAME if counts == (ANCHORS, PAIRS) else f"{NAME}, part"
    return f"{NAME}, not as released"


def _anchors(metadata: Path, classes: Classes) -> dict[str, _Anchor]:
    """Set name → its reviewed anchor."""
    reviews = read_reviews(metadata / "anchor_labels.json", ("good", "unsure", "bad"))
    annotated = _read_annotations(metadata / CSV, classes)
    position = {name: i for i, name in enumerate(classes.names)}
    anchors: dict[str, _Anchor] = {}
    for key, words in reviews:
        name, file = frame_of(key, metadata / "anchor_labels.json")
        if name not in annotated:
            path = metadata / "anchor_labels.json"
            raise UsageError(f"'{path}': '{name}' is no anchor of {CSV}; take both of one release")
        if name in anchors and anchors[name].file != file:
            raise UsageError(
                f"'{metadata / 'anchor_labels.json'}' has two anchors of the set '{name}', "
                f"{anchors[name].file} and {file}; take the released file"
            )
        labels = {annotated[name]} | {position[word] for word in words if word in position}
        good = "good" in words and not words & {"bad", "unsure"}
        # of an anchor reviewed twice the last review holds, as in the released scorer
        anchors[name] = _Anchor(file, tuple(sorted(labels)), good)
    return anchors


def _read_annotations(path: Path, classes: Classes) -> dict[str, int]:
    """Set name → the annotated class of its anchor."""
    labels: dict[str, int] = {}
    for row in read_table(path, "anchors of the release", ("ytid", "time_ms", "label")):
        name, label = f"{row.get('ytid')}_{row.whole('time_ms')}", row.whole("label")
        label = EXCHANGED.get(label, label)
        if not 0 <= label < len(classes) or classes.names[label] == "none":
            raise UsageError(
                f"{row.place}: label {row.get('label')}; the released file numbers classes "
                f"from 0 to 22, and car is 22 there; take it unchanged"
            )
        if labels.setdefault(name, label) != label:
            raise UsageError(f"{row.place}: another label for '{name}' than before; keep one")
    return labels


def _set(
    folder: Path, anchor: _Anchor, k: int, pairs: PairReviews | None, is_accepted: bool | None
) -> list[Member]:
    """The frames within ±k of an anchor; all should be where there is no folder.

    `is_accepted`: None for the accepted frames alone; else whether the anchor is one, and the
    others come too. Without reviews of pairs every frame is accepted that is there; with them those
    are, there or not, that were: what is missing of them is missed before a run.
    """
    prefix, _, number = Path(anchor.file).stem.rpartition("-")
    centre, suffix = int(number), Path(anchor.file).suffix
    name, video, exists = folder.name, folder.name.rpartition("_")[0], folder.is_dir()
    members = []
    for frame in range(max(centre - k, 0), centre + k + 1):
        file = f"{prefix}-{frame}{suffix}"
        judged = pairs is None or frame == centre or pairs.accepts(name, anchor.file, file)
        needed = frame == centre or not exists or (pairs is not None and judged)
        if (judged or is_accepted is not None) and (needed or (folder / file).is_file()):
            accepted = None if is_accepted is None else is_accepted and judged
            offset = frame - centre
            id_ = f"{name}/{file}"
            members.append(Member(id_, name, video, frame, offset, anchor.truth, accepted))
    return members


def _review_notes(
    anchors: Mapping[str, _Anchor], accepted: Collection[str], pairs: PairReviews | None
) -> tuple[str, ...]:
    good = sum(anchor.good for anchor in anchors.values())
    text = (
        f"{number_of(len(anchors), 'anchor')} reviewed: {len(anchors) - good:,} not judged good, "
    )
    if pairs is None:
        return (
            f"{text}{len(accepted):,} kept",
            f"not the published set of {number_of(ANCHORS, 'anchor')} and "
            f"{number_of(PAIRS, 'pair')}: metadata/pmk_labels.json, which lists the accepted "
            "neighbours and the dropped anchors, is missing; every frame counts, and no "
            "published value is shown",
        )
    owners = {f"{name}/{anchors[name].file}" for name in accepted}
    lone = len(owners - pairs.anchors)
    pairs_of_owners = sum(anchor in owners for anchor, _ in pairs.accepted)
    return (
        f"{text}{good - len(accepted):,} dropped in the review of pairs, {len(accepted):,} kept",
        f"{number_of(pairs.pairs, 'pair')} reviewed: {pairs_of_owners:,} of kept anchors accepted",
        *(
            (f"{number_of(lone, 'kept anchor')} without a reviewed pair, counted alone",)
            if lone
            else ()
        ),
    )


def _label_notes(classes: Classes, anchors: Collection[_Anchor]) -> tuple[str, ...]:
    unnameable = {classes.names.index(name) for name in UNNAMEABLE}
    n = sum(set(anchor.truth) <= unnameable for anchor in anchors)
    if not n:
        return ()
    return (
        f"{n:,} of {number_of(len(anchors), 'anchor')} show only classes that no ImageNet model "
        f"can name ({', '.join(UNNAMEABLE)}); such a model is wrong on them, as in the released "
        "scorer",
    )


def _gaps(
    chosen: Mapping[str, _Anchor],
    sets_of: Mapping[str, list[Member]],
    k: int,
    pairs: PairReviews | None,
) -> tuple[str, ...]:
    """A note on missing frames within ±k that are not among the accepted ones."""
    if pairs is not None:
        return ()
    short = {name: 2 * k + 1 - len(members) for name, members in sets_of.items()}
    gone = {name: n for name, n in short.items() if n}
    if not gone:
        return ()
    return (
        f"{number_of(sum(gone.values()), 'frame')} within ±{k} of {len(gone):,} of "
        f"{number_of(len(chosen), 'anchor')} do not exist or are not in their folders, first of "
        f"'{next(iter(gone))}'",
    )
