"""One image at the failure points of each operator."""

from collections.abc import Sequence

import numpy as np

from steadyeye.charts.films import share
from steadyeye.charts.style import percent
from steadyeye.core.errors import listed
from steadyeye.core.results import find
from steadyeye.core.sections import Exhibit, Film, Frame, Picture, Section, Topic
from steadyeye.core.table import Predictions
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.degradation.profiles import UNKNOWN, Profiles, profiles


@needs("truth", "operator", "level", "profile")
def failure_strips(evaluated: Sequence[Evaluated]) -> Section | None:
    """The picture of one image at level 0 and at the failure points, a strip an operator.

    Of the first model; the image is the one whose own accuracy over all operators and levels is
    the median. Thresholds that are reached at the same level share a picture; where one is not
    reached the last level is shown. None without `failure_points`. Swingler 2022, Figures 7–9.
    """
    points = find(evaluated[0].results, "failure_points")
    if points is None:
        return None
    predictions = evaluated[0].predictions
    found = profiles(predictions)
    image = _typical(found)
    strips = [_strip(found, image, which, cell) for which, cell in enumerate(points.cells)]
    return Section(
        topic=Topic.WHAT,
        place=18,
        title="One image at the level of each failure point",
        text=(
            f"{found.images[image]}, a typical image for {predictions.model}: at level 0 and at "
            "the first level where the accuracy over all images is below each threshold.",
        ),
        exhibits=tuple(strips),
        lead=_lead(found, image),
    )


def _typical(found: Profiles) -> int:
    right = found.predictions.right
    own = np.mean([right[rows].mean(axis=0) for _, _, rows in found.curves()], axis=0)
    return int(np.lexsort((found.images, np.abs(own - np.median(own))))[0])


def _lead(found: Profiles, image: int) -> Exhibit | None:
    """The image at level 0 and at the lowest level at which an operator makes the model wrong.

    None where no operator does.
    """
    right, broken = found.predictions.right, []
    for operator, levels, rows in found.curves():
        own = rows[:, image]
        wrong = np.flatnonzero((own != UNKNOWN) & ~right[own])
        if len(wrong):
            broken.append((int(levels[wrong[0]]), operator, int(own[wrong[0]])))
    if not broken:
        return None
    level, operator, row = min(broken)
    before = int(found.row[0, 0, image])
    return Exhibit(
        title=f"{operator} breaks it at level {level}, no operator at a lower one",
        model=found.predictions.model,
        data=found.predictions.data,
        pictures=(
            _picture(found.predictions, before, "level 0"),
            _picture(found.predictions, row, f"{operator}, level {level}"),
        ),
    )


def _strip(found: Profiles, image: int, which: int, operator: Result) -> Exhibit:
    rows = found.row[which, :, image]
    there = np.flatnonzero(rows != UNKNOWN)
    last = int(found.levels[there[-1]])
    reached: dict[int, list[str]] = {}
    never = []
    for point in operator.cells:
        threshold = float(point.name.removeprefix("below "))
        if point.value is None:
            never.append(threshold)
        else:
            reached.setdefault(round(point.value), []).append(percent(threshold, 0))
    titles = {
        level: f"level {level}: accuracy below {listed(shares)}"
        for level, shares in reached.items()
    }
    if never:
        begin = titles.get(last, f"level {last}, the last")
        titles[last] = f"{begin}; never below {percent(max(never), 0)}"
    titles = {0: "level 0", **titles}
    pictures = [
        _picture(found.predictions, int(rows[np.searchsorted(found.levels, level)]), titles[level])
        for level in sorted(titles)
    ]
    return Exhibit(
        title=operator.name,
        model=found.predictions.model,
        data=found.predictions.data,
        pictures=tuple(pictures),
        wide=True,
        film=_film(found.predictions, rows[there].tolist()),
    )


def _film(predictions: Predictions, rows: Sequence[int]) -> Film | None:
    """The image at every level, from the first at which the model is wrong."""
    frames = tuple(_frame(predictions, row) for row in rows)
    start = next((i for i, frame in enumerate(frames) if not frame.right), 0)
    film = Film(frames, start=start, bar="probability of the true class")
    return film if len(frames) > 2 else None


def _frame(predictions: Predictions, row: int) -> Frame:
    said, score = predictions.answer(row), float(predictions.confidence[row])
    true = float(predictions.probability[row])
    return Frame(
        sample=str(predictions.ids[row]),
        at=f"level {predictions.tags['level'][row]}",
        line=f"says {said}, {percent(score)}; true class {percent(true)}",
        score=share(true),
        right=bool(predictions.right[row]),
        answer=said,
    )


def _picture(predictions: Predictions, row: int, title: str) -> Picture:
    said = predictions.answer(row)
    changed = percent(float(predictions.tags["changed"][row]))
    return Picture(
        sample=str(predictions.ids[row]),
        title=title,
        lines=(
            f"predicts {said}, {percent(float(predictions.confidence[row]))}",
            f"true class: rank {predictions.rank[row]}, "
            f"{percent(float(predictions.probability[row]))}",
            f"{changed} of pixels changed",
        ),
        right=bool(predictions.right[row]),
    )
