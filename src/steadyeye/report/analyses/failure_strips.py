"""Images at the levels where a model fails, next to the originals."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from steadyeye.core.errors import list_texts
from steadyeye.core.film_frames import answer_picture, describe_answer
from steadyeye.core.format import number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Film, FilmFrame, Picture, Section, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.degradation.curves import UNKNOWN, Profiles, profiles


@needs("truth", "operator", "level")
def failure_strips(evaluated: Sequence[Evaluated]) -> Section | None:
    """One image at level 0 and at the failure points, one strip per operator.

    The model is the first; the image is the one with the median accuracy over all operators and
    levels. Thresholds that are reached at the same level share a picture; where one is not reached
    the last level is shown. None without `failure_points`, and where no image is right at level 0.
    Swingler 2022, Figures 7–9. After a search, which tests different images at different levels:
    for each model and operator the image that is wrong at the lowest level, next to the original;
    None if none is wrong.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_sweep
        >>> print(failure_strips(example_models(example_sweep())).title)
        One image at the level of each failure point
    """
    if any("profile" not in model.predictions.columns for model in evaluated):
        return _show_search([model.predictions for model in evaluated])
    predictions = evaluated[0].predictions
    points = find(evaluated[0].results, "failure_points")
    if points is None:
        return None
    # with --images all there may be none that is right and that degradation breaks
    right = predictions.right[profiles(predictions, "all").row[0, 0]]
    return _show_sweep(predictions, points) if right.any() else None


def _show_sweep(predictions: Predictions, points: Result) -> Section:
    curves = profiles(predictions)
    image = _typical(curves)
    strips = [_strip(curves, image, place, cell) for place, cell in enumerate(points.cells)]
    return Section(
        topic=Topic.WHAT,
        place=18,
        title="One image at the level of each failure point",
        text=(
            f"{curves.images[image]}, a typical image for {predictions.model}: at level 0 and at "
            "the first level where the accuracy over all images is below each threshold.",
        ),
        exhibits=tuple(strips),
        lead=_lead(curves, image),
    )


def _show_search(tables: Sequence[Predictions]) -> Section | None:
    """For each model and operator the image that is wrong at the lowest level of the search."""
    searched = [table for table in tables if "profile" not in table.columns]
    every = [[_pair(table, *lowest) for lowest in _lowest(table)] for table in searched]
    if not any(every):
        return None
    # a model with the lowest level of all leads; of equals the first one
    level, lead = min((level, i) for i, pairs in enumerate(every) for level, _ in pairs[:1])
    operator = every[lead][0][1]
    return Section(
        topic=Topic.WHAT,
        place=18,
        title="Images at the lowest level with a wrong prediction",
        text=(
            "For each operator: the original, which the model predicts correctly, and the same "
            "image at the lowest level at which the search found a wrong prediction for any "
            "image. The search tries few levels of each image, so lower ones may exist.",
        ),
        exhibits=tuple(exhibit for pairs in every for _, exhibit in pairs),
        lead=replace(
            operator, title=f"{operator.title}: wrong at level {level}, the lowest level found"
        ),
    )


def _lowest(table: Predictions) -> list[tuple[int, str, int]]:
    """(level, operator, row) of the first wrong prediction of each operator, rising.

    Among images wrong at the same level, the most confident mistake (ties: the earlier row).
    """
    tags = table.tags
    wrong = np.flatnonzero(~table.right & table.valid & (tags["level"] > 0))
    order = wrong[np.lexsort((wrong, -table.confidence[wrong], tags["level"][wrong]))]
    levels: dict[str, int] = {}
    for row in order.tolist():
        levels.setdefault(str(tags["operator"][row]), row)
    return sorted((int(tags["level"][row]), name, row) for name, row in levels.items())


def _pair(table: Predictions, level: int, operator: str, row: int) -> tuple[int, Exhibit]:
    """The original and the degraded image, with the tested levels between them."""
    tags = table.tags
    own = (tags["image"] == tags["image"][row]) & table.valid
    own &= (tags["level"] == 0) | (tags["operator"] == operator)
    rows = np.flatnonzero(own)
    rows = rows[np.argsort(tags["level"][rows], kind="stable")]
    exhibit = Exhibit(
        title=operator,
        model=table.model,
        data=table.data,
        pictures=(
            _picture(table, int(rows[0]), "level 0"),
            _picture(table, row, f"{operator}, level {level}"),
        ),
        film=_film(table, rows.tolist()),
    )
    return level, exhibit


def _typical(curves: Profiles) -> int:
    right = curves.predictions.right
    own = np.mean([right[rows].mean(axis=0) for _, _, rows in curves.curves()], axis=0)
    return int(np.lexsort((curves.images, np.abs(own - np.median(own))))[0])


def _lead(curves: Profiles, image: int) -> Exhibit | None:
    """The image at level 0 and at the lowest level at which an operator makes the model wrong.

    None if no operator does.
    """
    right, broken = curves.predictions.right, []
    for operator, levels, rows in curves.curves():
        own = rows[:, image]
        wrong = np.flatnonzero((own != UNKNOWN) & ~right[own])
        if len(wrong):
            broken.append((int(levels[wrong[0]]), operator, int(own[wrong[0]])))
    if not broken:
        return None
    level, operator, row = min(broken)
    before = int(curves.row[0, 0, image])
    return Exhibit(
        title=f"{operator}: wrong at level {level}; no operator makes it wrong at a lower level",
        model=curves.predictions.model,
        data=curves.predictions.data,
        pictures=(
            _picture(curves.predictions, before, "level 0"),
            _picture(curves.predictions, row, f"{operator}, level {level}"),
        ),
    )


def _strip(curves: Profiles, image: int, place: int, operator: Result) -> Exhibit:
    predictions, rows = curves.predictions, curves.row[place, :, image]
    known = np.flatnonzero(rows != UNKNOWN)
    last = int(curves.levels[known[-1]])
    reached: dict[int, list[str]] = {}
    never = []
    for point in operator.cells:
        threshold = float(point.name.removeprefix("below "))
        if point.value is None:
            never.append(threshold)
        else:
            reached.setdefault(round(point.value), []).append(percent(threshold, 0))
    titles = {
        level: f"level {level}: accuracy below {list_texts(shares)}"
        for level, shares in reached.items()
    }
    if never:
        begin = titles.get(last, f"level {last}, the last")
        titles[last] = f"{begin}; never below {percent(max(never), 0)}"
    titles = {0: "level 0", **titles}
    pictures = [
        _picture(predictions, int(rows[np.searchsorted(curves.levels, level)]), titles[level])
        for level in sorted(titles)
    ]
    return Exhibit(
        title=operator.name,
        model=predictions.model,
        data=predictions.data,
        pictures=tuple(pictures),
        wide=True,
        film=_film(predictions, rows[known].tolist()),
    )


def _film(predictions: Predictions, rows: Sequence[int]) -> Film | None:
    """The image at every level, from the first at which the model is wrong."""
    frames = tuple(_frame(predictions, row) for row in rows)
    start = next((i for i, frame in enumerate(frames) if not frame.right), 0)
    film = Film(frames, start=start, bar="probability of the true class")
    return film if len(frames) > 2 else None


def _frame(predictions: Predictions, row: int) -> FilmFrame:
    true = float(predictions.probability[row])
    return FilmFrame(
        sample=str(predictions.ids[row]),
        at=f"level {predictions.tags['level'][row]}",
        line=f"{describe_answer(predictions, row)}; true class {predictions.format_score(true)}",
        score=predictions.find_share(true),
        right=bool(predictions.right[row]),
        answer=predictions.answer(row),
    )


def _picture(predictions: Predictions, row: int, title: str) -> Picture:
    return answer_picture(predictions, row, title, _more(predictions, row))


def _more(predictions: Predictions, row: int) -> Iterator[str]:
    """The confidence of the true class if another class is predicted, and the pixels changed."""
    if not predictions.right[row]:
        above = number_of(int(predictions.rank[row]), "class")
        score = predictions.format_score(float(predictions.probability[row]))
        yield f"true class: {score}, {above} above it"
    if predictions.tags["level"][row]:
        yield f"{percent(float(predictions.tags['changed'][row]))} of pixels changed"
