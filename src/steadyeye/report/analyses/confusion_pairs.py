"""Pairs of classes that a detector confuses among its confident mistakes, in pictures."""

from collections.abc import Iterator, Sequence

from steadyeye.core.disk_columns import release_pages
from steadyeye.core.film_frames import take_turns
from steadyeye.core.format import format_share, number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Mark, Picture, Section, Table, Topic
from steadyeye.core.stats.proportions import leads
from steadyeye.core.types import Evaluated, needs
from steadyeye.explain.mining.candidates import mistake_film
from steadyeye.explain.mining.causes import IOU, SCORE, Judged, judge_detections
from steadyeye.explain.mining.error_rates import LOWER, Confusion, confusions

LISTED, SHOWN, PICTURES = 20, 6, 4


@needs("boxes", "detections")
def confusion_pairs(evaluated: Sequence[Evaluated], score: float = SCORE) -> Section | None:
    """Pairs of classes that are confidently confused, how often, and how often at lower scores.

    `score`: to be exceeded. Of egregious misclassifications (Lau et al. 2021, Section 3.1):
    detections with a score above it on an object at IoU above 0.5, none of which has their class.
    None if no model makes one, and if the sealed predictions lack detections.
    """
    tables = (model.predictions for model in evaluated)
    filled = [
        (table, pairs)
        for table in tables
        if table.raw_detections is not None and (pairs := confusions(table, score))
    ]
    if not filled:
        return None
    lower = min(LOWER, score)
    return Section(
        topic=Topic.WHAT,
        place=23,
        title=_title(filled),
        text=(
            f"Objects that a detection of another class overlaps (IoU above {IOU:g}), with a score "
            f"above {score:g}: label → prediction. Shares are of all objects with that label. The "
            f"last share counts detections with any score above {lower:g}. If both shares are "
            "close, the detector makes this mistake with a high score whenever it makes it. In "
            "the pictures: white the true box, dashed orange the detection.",
            *(_sentence(table, pairs, score) for table, pairs in filled),
        ),
        tables=tuple(_table(table, pairs, lower) for table, pairs in filled),
        exhibits=tuple(_exhibits(filled)),
    )


def _title(confused: Sequence[tuple[Predictions, Sequence[Confusion]]]) -> str:
    """The title: the most frequent pair of a single model, if it is clearly the most frequent."""
    table, pairs = confused[0]
    counts = sorted((_videos(table, pair) for pair in pairs), reverse=True)
    first = _videos(table, pairs[0])
    second = counts[1] if len(counts) > 1 else 0
    if len(confused) == 1 and first == counts[0] and (leads(first, second) or not second):
        most = "most often " if second else ""
        pair = f"{pairs[0].true} → {pairs[0].predicted}"
        where = number_of(first, "video" if "video" in table.tags else "image")
        return f"Confusions: {most}{pair}, in {where}"
    several = len({(pair.true, pair.predicted) for _, pairs in confused for pair in pairs})
    return f"Confusions: {number_of(several, 'pair')} of classes"


def _videos(table: Predictions, pair: Confusion) -> int:
    """The number of videos, or of images without a video, in which a pair occurs."""
    assert table.boxes is not None, "asked for before"
    videos = table.tags.get("video", table.ids)
    return len({str(videos[table.boxes.image[place]]) for place in pair.places})


def _sentence(table: Predictions, pairs: Sequence[Confusion], score: float) -> str:
    first = pairs[0]
    objects = len({place for pair in pairs for place in pair.places})
    n = 0 if table.boxes is None else int((~table.boxes.crowd).sum())
    most = "That is"
    if len(pairs) > 1:
        tied = len(pairs[1].rows) == len(first.rows)
        most = "For example," if tied else "Most often"
    return (
        f"{table.model} confidently confuses {objects:,} of {number_of(n, 'object')}, in "
        f"{number_of(len(pairs), 'pair')} of classes. {most} {first.true} → {first.predicted}: "
        f"{len(first.rows):,} of {number_of(first.sure.n, 'object')} with this label with a score "
        f"above {score:g}, {format_share(first.sure)}; with a score above {min(LOWER, score):g}, "
        f"{format_share(first.unsure)}."
    )


def _table(table: Predictions, pairs: Sequence[Confusion], lower: float) -> Table:
    first = f", the first {LISTED} of {len(pairs):,}" if len(pairs) > LISTED else ""
    return Table(
        caption=f"{table.model}: confusions{first}",
        header=(
            "Label → prediction",
            "Objects confused",
            "Share of the label (95\u202f%)",
            f"Share above {lower:g} (95\u202f%)",
            "Objects with the label",
            "Label is a class of the detector",
            "Interval method",
        ),
        rows=tuple(
            (
                f"{pair.true} → {pair.predicted}",
                f"{len(pair.rows):,}",
                format_share(pair.sure),
                format_share(pair.unsure),
                f"{pair.sure.n:,}",
                "no" if pair.foreign else "yes",
                pair.sure.method,
            )
            for pair in pairs[:LISTED]
        ),
        open=True,
    )


def _exhibits(confused: Sequence[tuple[Predictions, Sequence[Confusion]]]) -> Iterator[Exhibit]:
    """Pictures of the most frequent pairs of each model, pair by pair."""
    judged = ((table, judge_detections(table, LOWER), pairs[:SHOWN]) for table, pairs in confused)
    for turn in take_turns([[(table, faint, p) for p in pairs] for table, faint, pairs in judged]):
        yield from _pair_exhibits(*turn)


def _pair_exhibits(table: Predictions, faint: Judged, pair: Confusion) -> Iterator[Exhibit]:
    """A picture of each of the most confident detections, with a film if it is of a video."""
    assert table.boxes is not None, "checked by needs"
    videos = table.tags.get("video", table.ids)
    names = [str(videos[table.boxes.image[place]]) for place in pair.places]
    # the most confident of each video: its film shows the others
    order = [i for i in range(len(names)) if names[i] not in names[:i]][:PICTURES]
    for i in order:
        yield Exhibit(
            title=f"{pair.true} → {pair.predicted}: {number_of(len(pair.rows), 'object')}",
            model=table.model,
            data=table.data,
            pictures=(_picture(table, pair, pair.rows[i], pair.places[i]),),
            film=mistake_film(table, faint, pair.rows[i]),
            labels=(pair.true,),
            kinds=(f"predicts {pair.predicted}",),
        )
        # a single entry of a column may bring a megabyte of it to memory
        release_pages()


def _picture(table: Predictions, pair: Confusion, row: int, place: int) -> Picture:
    boxes, detections = table.boxes, table.raw_detections
    assert boxes is not None, "checked by needs"
    assert detections is not None, "asked for before"
    score, sample = float(detections.score[row]), str(table.ids[detections.image[row]])
    return Picture(
        sample=sample,
        title=sample,
        lines=(f"predicts {pair.predicted}, {score:.2f}", f"label {pair.true}"),
        right=False,
        marks=(
            Mark("truth", tuple(boxes.boxes[place].tolist()), pair.true),
            Mark("wrong", tuple(detections.boxes[row].tolist()), f"{pair.predicted} {score:.2f}"),
        ),
    )
