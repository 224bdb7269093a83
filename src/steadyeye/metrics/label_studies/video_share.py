"""The result of a study for videos like these, besides the result for these sets.

Labels are sampled from all candidates over all videos. They represent the candidates, and an equal
part of the other sets, which do not count, is added: so each video has a part of its sets, and the
share of these sets is that of all. Videos are weighted by their sets, as in pm-k itself, and the
interval is that of pm-k over videos: Gaffke's bounds, which with all labels are those of a run
whose every set is labelled.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.stats.bounded_means import lower_bounds
from steadyeye.core.stats.intervals import Interval
from steadyeye.metrics.label_studies.answered_sets import count_at_least_and_most
from steadyeye.metrics.label_studies.judge import Labels, StudyResult
from steadyeye.metrics.label_studies.label_reuse import ReuseResult
from steadyeye.metrics.label_studies.sentences import say_numbers
from steadyeye.metrics.label_studies.study import LabelStudy

HARDLY = 0.1
"""The part of its width by which all labels narrow an interval at most, where they hardly do."""


@dataclass(frozen=True)
class VideoShare:
    """The share of sets that count, in videos like those of a study.

    `videos`: their number; `unit`: "video", or "image" if each image is independent. `interval`: in
    0…1, its n the labels; None if the labels do not apply to other videos. `why`: the reason for
    this; '' with an interval, or without labels.
    """

    videos: int
    unit: str
    interval: Interval | None
    why: str = ""


@dataclass(frozen=True, eq=False)
class _Counts:
    """Of each video, all (v,): sets that count at least and at most, of how many."""

    least: NDArray[np.float64]
    most: NDArray[np.float64]
    sets: NDArray[np.float64]


def find_video_share(study: LabelStudy, labels: Labels, result: StudyResult) -> VideoShare:
    """The share of sets that count in videos like these, with a 95 % interval.

    `result`: what `judge` says of the labels; the interval is never within that of these sets, so
    that it allows for a study that stopped as it was decided. A set that nobody could label counts
    as nothing at the lower end, and as one that counts at the upper end; where one label does for a
    scene, so does every set of a scene without a label. Where the premise is checked, the sets that
    may break it are added to the upper end.
    """
    share = _describe_videos(study)
    if not result.labels:
        return replace(share, why="")
    if share.why:
        return share
    if study.scenes:
        counts = _count_scenes(study, labels, result.labels)
    else:
        counted = study.candidates[: result.labels]
        counts = _count_sets(study, labels, study.candidates, counted)
    allowed = result.counts.checks.allow(any_time=True).sets / len(study.sets)
    return replace(share, interval=_find_interval(share, counts, result.interval, allowed))


def find_share_of_other(reuse: ReuseResult) -> VideoShare:
    """The share of sets that count in videos like these, for a model without labels of its own.

    Labels of sets that can count for both models stand for the others of these, as in
    `find_video_share`. Sets that can count for this model alone, which nobody was asked about,
    count as nothing at the lower end and as ones that count at the upper end, unless they have a
    label.
    """
    study = reuse.study
    share = _describe_videos(study)
    if not reuse.labels:
        return replace(share, why="")
    if share.why:
        return share
    candidates = [name for names in study.scenes.values() for name in names] or study.candidates
    sampled = [name for name in candidates if name in reuse.sampled]
    counted = [name for name in sampled if name in reuse.serving]
    if sampled and not counted:
        return replace(
            share,
            why="No label is from a random sample, so the labels say nothing about other "
            f"{share.unit}s.",
        )
    apart = [name for name in candidates if name not in reuse.sampled]
    counts = _count_sets(study, reuse.serving, sampled, counted, apart)
    return replace(share, interval=_find_interval(share, counts, reuse.interval))


def _describe_videos(study: LabelStudy) -> VideoShare:
    """How many videos there are, and why labels say nothing of others, where they do not."""
    videos = len(set(study.videos.values()))
    unit = "image" if study.question.of_images and videos == len(study.sets) else "video"
    why = ""
    if videos < 2:
        why = f"All sets are from one {unit}, so the labels say nothing about other {unit}s."
    elif study.strata:
        why = f"The order is by {study.strata_by}, so nothing is said about other {unit}s."
    return VideoShare(videos, unit, None, why)


def _find_interval(
    share: VideoShare, counts: _Counts, own: Interval, allowed: float = 0.0
) -> Interval:
    """The interval over videos, never within `own`, that of these sets.

    `allowed`: what is added to the upper end, a share of all sets.
    """
    sums = np.vstack([counts.least, np.maximum(counts.sets - counts.most, 0.0)])
    low, missing = lower_bounds(sums, np.vstack([counts.sets, counts.sets])).tolist()
    own_low, own_high = own.ends
    ends = min(low, own_low), min(max(1 - missing + allowed, own_high), 1.0)
    method = f"Gaffke's bounds over {number_of(share.videos, share.unit)}"
    return Interval(own.value, *ends, own.n, method)


def _count_sets(
    study: LabelStudy,
    labels: Labels,
    sampled: Collection[str],
    counted: Collection[str],
    apart: Collection[str] = (),
) -> _Counts:
    """The labelled candidates and, of the sets that count nothing, the same part.

    `counted`: the labelled ones of `sampled`. `apart`: other candidates, of which the same part is
    taken; one without a label may count.
    """
    part = len(counted) / len(sampled) if sampled else 1.0
    sets = Counter(study.videos.values())
    candidates = Counter(study.videos[name] for name in sampled)
    of_video = Counter(study.videos[name] for name in counted)
    right, possible = dict.fromkeys(sets, 0.0), dict.fromkeys(sets, 0.0)
    for names, weight in ((counted, 1.0), (apart, part)):
        for name in names:
            least, most = False, True
            if name in labels:
                metric, answers = study.question.metric, study.answers[name]
                least, most = count_at_least_and_most(metric, answers, labels[name])
            right[study.videos[name]] += least * weight
            possible[study.videos[name]] += most * weight
    sizes = {v: of_video[v] + part * (sets[v] - candidates[v]) for v in sets}
    present = [v for v, size in sizes.items() if size]
    columns = ([count[v] for v in present] for count in (right, possible, sizes))
    fewest, highest, totals = (np.array(column, dtype=np.float64) for column in columns)
    return _Counts(fewest, highest, totals)


def _count_scenes(study: LabelStudy, labels: Labels, labelled: int) -> _Counts:
    """All sets; those of scenes without a label may count."""
    sets = Counter(study.videos.values())
    least, most = Counter[str](), Counter[str]()
    for name, members in study.scenes.items():
        classes = next((labels[s] for s in (name, *members) if s in labels), ())
        for member in members:
            ends = count_at_least_and_most(study.question.metric, study.answers[member], classes)
            least[study.videos[member]] += ends[0]
            most[study.videos[member]] += ends[1]
    columns = ([count[v] for v in sets] for count in (least, most, sets))
    fewest, highest, sizes = (np.array(column, dtype=np.float64) for column in columns)
    return _Counts(fewest, highest, sizes)


def say_videos(share: VideoShare, result: StudyResult | ReuseResult) -> str:
    """The result for videos like these, in words; '' without labels."""
    if share.interval is None:
        return share.why
    among = f"{share.unit.capitalize()}s like these {share.videos:,}"
    return f"{among}: {say_numbers(share.interval)}; {_say_more(share, result)}."


def _say_more(share: VideoShare, result: StudyResult | ReuseResult) -> str:
    own, videos = result.interval, share.interval
    assert videos is not None, "there is one"
    widths = [(ends.high or 0.0) - (ends.low or 0.0) for ends in (own, videos)]
    # what the labels do not show and what other videos may be add up as variances
    rest = 1 - (widths[0] / widths[1]) ** 2 if widths[1] else 1.0
    if rest >= (1 - HARDLY) ** 2:
        return f"more labels will hardly narrow this, more {share.unit}s will"
    return f"more labels and more {share.unit}s will narrow this"
