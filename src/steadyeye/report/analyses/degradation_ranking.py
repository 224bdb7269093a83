"""Which model stands degradation best."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.format import interval, percent
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.degradation.curves import profiles, statistic
from steadyeye.report.comparison.leaderboards import RankedModel, leaderboard, rank


@needs("truth", "operator", "level", "profile")
def degradation_ranking(evaluated: Sequence[Evaluated]) -> Section | None:
    """Models by their accuracy over all operators and levels, on all images alike.

    A rank is 1 + the number of models that are shown to be better, by the paired bootstrap over
    images (or videos) with Holm's allowance for all pairs. None for a single model, or where models
    saw other operators or images.
    """
    if len(evaluated) < 2 or len({one.predictions.fingerprint for one in evaluated}) > 1:
        return None
    board = leaderboard("degraded_accuracy(images='all')", list(map(_entry, evaluated)))
    assert board is not None, "two models or more, each with a number"
    beside = {one.predictions.model: _beside(one) for one in evaluated}
    rows = [
        (
            rank(board, place),
            each.model,
            f"{percent(each.result.value)} ({interval(each.result.low, each.result.high)})",
            *beside[each.model],
        )
        for place, each in enumerate(board.standings)
    ]
    header = (
        "rank",
        "model",
        "accuracy under degradation, all images",
        "retained accuracy",
        "accuracy at level 0",
    )
    return Section(
        topic=Topic.COMPARED,
        place=12,
        title="Models ranked by accuracy under degradation",
        method=(
            "Ranked by the mean accuracy over all operators and levels, with the same images "
            "for every model. Rank = 1 + the number of models that are clearly better (paired "
            "bootstrap, p ≤ 0.05, adjusted by Holm for all pairs); = marks a shared rank. "
            "Retained accuracy counts the images that a model has right at level 0.",
        ),
        tables=(Table("Ranking under degradation", header, tuple(rows)),),
    )


def _entry(one: Evaluated) -> RankedModel:
    found = statistic(one.predictions, one.predictions.right, "all")
    result = Result.of("degraded_accuracy", found.interval())
    return RankedModel(one.predictions.model, result, found)


def _beside(one: Evaluated) -> tuple[str, str]:
    """The accuracy over what it had right at level 0, and that at level 0."""
    right = one.predictions.right
    first = right[profiles(one.predictions, images="all").row[0, 0]]
    kept = statistic(one.predictions, right, "right").value if first.any() else None
    return percent(kept), percent(float(np.mean(first)))
