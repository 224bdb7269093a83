"""Examples in two: those to train on, and those to be judged by."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.training.dataset import choose_examples, names, present
from steadyeye.training.protocol import Example, Examples


@dataclass(frozen=True)
class Split:
    """The two sides, over the same classes; `notes`: how they were parted, for the report."""

    train: Examples
    held: Examples
    notes: tuple[str, ...]


def by_video(found: Examples, share: float, seed: int = 0) -> Split:
    """Whole videos on either side: of each class `share` of its videos are held, seeded.

    A video is of the class that most of its frames are of; those without any object are a class of
    their own. Of a class with several videos at least
    one is held and one is not; of a class with one, none is. Which of them is decided by (seed,
    video) alone. Raises `UsageError` where no class has two videos.
    """
    _check_share(share)
    videos = _videos(found.items)
    of_class: dict[int, list[str]] = {}
    for video, items in videos.items():
        counts = Counter(label for one in items for label in one.labels[:1])
        main = min(counts, key=lambda label: (-counts[label], label), default=-1)
        of_class.setdefault(main, []).append(video)
    held: set[str] = set()
    for listed in of_class.values():
        wanted = min(max(round(share * len(listed)), 1), len(listed) - 1)
        held |= set(sorted(listed, key=lambda video: fingerprint(str(seed), video))[:wanted])
    if not held:
        raise UsageError(
            f"'{found.name}' has one video of each class, so none can be held out whole; split by "
            "time with a gap (--by time --gap N), or give --val"
        )
    text = (
        f"{len(held):,} of {number_of(len(videos), 'video')} held out whole: {share:.0%} of those "
        f"of each class, at least one if there are two, seed {seed}"
    )
    train = [one for one in found.items if one.video not in held]
    return _split(found, train, [one for one in found.items if one.video in held], (text,))


def by_time(found: Examples, share: float, gap: int | None) -> Split:
    """The last part of every video is held, and the frames just before it are left out.

    `share`: of the labelled frames of each video, rounded up. `gap`: how many native frames lie
    between the last that is trained on and the first that is held; what is in between is on
    neither side, and counted, as are videos too short for it. Raises `UsageError` without a gap,
    for images that do not know their place in a video, and where nothing is left on a side.
    """
    _check_share(share)
    if gap is None or gap < 1:
        raise UsageError(
            f"a split by time needs a gap{'' if gap is None else f' above 0, not {gap}'}: frames "
            "next to each other are nearly the same; give --gap N in frames"
        )
    timeless = [one.id for one in found.items if one.frame is None]
    if timeless:
        raise UsageError(
            f"'{found.name}' does not say when its images were taken, first '{timeless[0]}'; "
            "split by video, or give --val"
        )
    sides: tuple[list[Example], list[Example]] = ([], [])
    short: list[str] = []
    for video, items in _videos(found.items).items():
        before, after = _in_time(items, share, gap)
        if before and after:
            sides[0].extend(before)
            sides[1].extend(after)
        else:
            short.append(video)
    between = len(found.items) - len(sides[0]) - len(sides[1])
    text = (
        f"the last {share:.0%} of every video held out; gap: {number_of(gap, 'frame')} between the "
        f"sides, {number_of(between, 'example')} on neither"
    )
    notes = [f"{text}; both sides share their videos, as a split by time does"]
    if short:
        notes.append(
            f"{number_of(len(short), 'video')} too short for that, left out, first '{short[0]}'"
        )
    return _split(found, *sides, notes)


def pair_sources(train: Examples, held: Examples) -> Split:
    """Two sources as the two sides, over the same classes; the held ones as `onto` left them.

    Single pictures are named as their files are, which two folders may share: the held ones are
    then told apart by a `val:` before their ids.
    """
    ours = {one.id for one in train.items}
    if any(one.id in ours and one.video == one.id for one in held.items):
        items = [
            replace(one, id=f"val:{one.id}", video=f"val:{one.id}") if one.video == one.id else one
            for one in held.items
        ]
        held = choose_examples(held, items)
    return _check_split(Split(train, held, (f"held-out data from another source, '{held.name}'",)))


def _split(
    found: Examples, train: Sequence[Example], held: Sequence[Example], notes: Sequence[str]
) -> Split:
    sides = Split(choose_examples(found, train), choose_examples(found, held), tuple(notes))
    return _check_split(sides)


def _check_split(split: Split) -> Split:
    """The split with what it lacks; raises `UsageError` for an empty side."""
    for what, side in (("train on", split.train), ("be judged by", split.held)):
        if not side.items:
            raise UsageError(
                f"'{side.name}' leaves no examples to {what} ({'; '.join(split.notes)}); "
                "hold out another share, or give --val"
            )
    classes = split.train.classes
    train, held = set(present(split.train.items)), set(present(split.held.items))
    notes = list(split.notes)
    for only, text in (
        (train - held, "only in the training data, so never validated"),
        (held - train, "only in the held-out data, so never trained"),
        (set(range(len(classes))) - train - held, "without any example"),
    ):
        if only:
            notes.append(
                f"{len(only)} of {number_of(len(classes), 'class')} {text}: "
                f"{names(classes, sorted(only))}"
            )
    return Split(split.train, split.held, tuple(notes))


def _in_time(
    items: Sequence[Example], share: float, gap: int
) -> tuple[list[Example], list[Example]]:
    ordered = sorted(items, key=lambda one: one.frame or 0)
    held = ordered[len(ordered) - ceil(share * len(ordered)) :]
    first = held[0].frame or 0
    return [one for one in ordered if (one.frame or 0) < first - gap], held


def _videos(items: Sequence[Example]) -> Mapping[str, list[Example]]:
    found: dict[str, list[Example]] = {}
    for one in items:
        found.setdefault(one.video, []).append(one)
    return found


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise UsageError(f"holdout {share:g}: give a share above 0 and below 1, such as 0.2")
