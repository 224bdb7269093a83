"""One image at the failure points of each operator."""

from collections.abc import Sequence

import numpy as np

from steadyeye.charts.style import percent
from steadyeye.core.results import find
from steadyeye.core.sections import Exhibit, Picture, Section, Topic
from steadyeye.core.table import Predictions
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.degradation.profiles import Profiles, profiles


@needs("truth", "operator", "level", "profile")
def failure_strips(evaluated: Sequence[Evaluated]) -> Section | None:
    """The picture of one image at level 0 and at the failure points, a strip an operator.

    Of the first model; the image is the one whose own accuracy over all operators and levels is
    the median. None without `failure_points`. Swingler 2022, Figures 7–9.
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
        title="One image at the levels where accuracy falls below a threshold",
        text=(
            f"{found.images[image]}, a typical image of {predictions.model}, at level 0 and where "
            "its accuracy over all images first falls below each threshold.",
        ),
        exhibits=tuple(strips),
    )


def _typical(found: Profiles) -> int:
    right = found.predictions.right
    own = np.mean([right[rows].mean(axis=0) for _, _, rows in found.curves()], axis=0)
    return int(np.lexsort((found.images, np.abs(own - np.median(own))))[0])


def _strip(found: Profiles, image: int, which: int, operator: Result) -> Exhibit:
    rows = found.row[which, :, image]
    pictures = [_picture(found.predictions, int(rows[0]), "level 0")]
    for point in operator.cells:
        share = percent(float(point.name.removeprefix("below ")), 0)
        if point.value is not None:
            at = int(np.searchsorted(found.levels, point.value))
            title = f"level {point.value:.0f}: below {share}"
            pictures.append(_picture(found.predictions, int(rows[at]), title))
    return Exhibit(
        title=operator.name,
        model=found.predictions.model,
        data=found.predictions.data,
        pictures=tuple(pictures),
        wide=True,
    )


def _picture(predictions: Predictions, row: int, title: str) -> Picture:
    said = predictions.answer(row)
    changed = percent(float(predictions.tags["changed"][row]))
    return Picture(
        sample=str(predictions.ids[row]),
        title=title,
        lines=(
            f"says {said}, {percent(float(predictions.confidence[row]))}",
            f"true class: rank {predictions.rank[row]}, "
            f"{percent(float(predictions.probability[row]))}",
            f"{changed} of pixels changed",
        ),
        right=bool(predictions.right[row]),
    )
